"""How far the upper bound of a workload is from its lower bound: chaining against packings.

Theorem 4 of Nikolov (2022) bounds the Gaussian width of a net of answers by a chaining sum, and
each term of this sum by a packing at the same scale. Both are computed here with explicit
constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._validation import positive, require_type
from geomdp.bounds.certificates.problem import Problem, SideConditionError
from geomdp.bounds.certificates.rung import excluded_records
from geomdp.bounds.metrics import MEAN_L2
from geomdp.bounds.packings.separated import single_elements
from geomdp.geometry.farthest_points import farthest_points
from geomdp.workloads import Workload, WorkloadSizeError, explicit_answers

#: Largest number of points of a net. Each point costs one pass over the universe.
MAX_NET = 1 << 12
#: Sum over j >= 1 of 2^(-j/2): the geometric series of the chaining sum.
SERIES = 1 / (math.sqrt(2) - 1)


@dataclass(frozen=True)
class Scale:
    """One scale of the chaining sum, with the packing bound at this scale.

    Parameters
    ----------
    level : int
        Number j of the scale, from 1.
    separation : float
        t_j = 2^-j diam / sqrt(k), per query; at the last level alpha, the separation of the net.
    count : int
        N_j, the size of a maximal subset of the net whose points are t_j apart; at the last level
        the size of the net.
    chaining : float
        2 t_j sqrt(2 ln N_j): the term of this scale in the bound on w / sqrt(k).
    records : int
        Certified lower bound from single elements at this scale: sc > records at error alpha / 4.
    """

    level: int
    separation: float
    count: int
    chaining: float
    records: int


@dataclass(frozen=True)
class InstanceOptimality:
    """Chaining and packing bounds of one workload, from its diameter down to alpha.

    Parameters
    ----------
    scales : tuple of Scale
        Coarsest first.
    diameter : float
        Largest distance of two answers divided by sqrt(k), or an upper bound on it.
    epsilon, alpha : float
        Privacy, and separation of the net. The packings exclude an error of alpha / 4.

    Examples
    --------
    >>> import geomdp as gd
    >>> found = gd.bounds.instance_optimality(gd.workloads.Prefixes(32), epsilon=0.1, alpha=0.1)
    >>> [(scale.level, scale.count, scale.records) for scale in found.scales]
    [(1, 4, 49), (2, 16, 67), (3, 32, 60), (4, 32, 60)]
    >>> found.lower
    67
    >>> round(found.upper), round(found.limit)
    (14209, 81995)
    """

    scales: tuple[Scale, ...]
    diameter: float
    epsilon: float
    alpha: float

    def __repr__(self) -> str:
        return f"InstanceOptimality({len(self.scales)} scales, sc > {self.lower} at alpha / 4)"

    @property
    def width(self) -> float:
        """Explicit bound on w(net) / sqrt(k): the sum over all scales (JL-L27)."""
        return math.fsum(scale.chaining for scale in self.scales)

    @property
    def upper(self) -> float:
        """Shape of the upper bound on the sample complexity: w^2 / (k alpha^2 epsilon) (JL-L26).

        The theorem leaves two constants open: a factor of this bound, and a factor of alpha.
        """
        return self.width**2 / (self.alpha**2 * self.epsilon)

    @property
    def lower(self) -> int:
        """The best certified packing bound over all scales: sc > lower at error alpha / 4."""
        return max(scale.records for scale in self.scales)

    @property
    def limit(self) -> float:
        """Explicit bound on `upper` in terms of `lower` (JL-T4).

        A packing of N_j elements t_j apart excludes all n <= floor(T t_j / alpha), T at least
        ln(N_j - 1) / epsilon - 1. So ln N_j <= epsilon (alpha (s + 1) / t_j + 1) + ln 2 with
        s = `lower`, and the terms of all scales add up to at most

            sqrt(8) ((alpha epsilon (s + 1) D)^(1/2) / (sqrt(2) - 1)
                     + D (epsilon + ln 2)^(1/2) + last),

        D = `diameter`; `last` is the term of the net itself, with alpha in place of t_j. The bound
        grows like s D / alpha: the factor of the theorem.
        """
        reach = self.alpha * self.epsilon * (self.lower + 1)
        constant = math.sqrt(self.epsilon + math.log(2))
        series = SERIES * math.sqrt(reach * self.diameter) + constant * self.diameter
        last = math.sqrt(reach * self.alpha) + constant * self.alpha
        total = math.sqrt(8) * (series + last)
        return total**2 / (self.alpha**2 * self.epsilon)

    @property
    def excess(self) -> float:
        """`upper` / (`lower` + 1) divided by `diameter` / alpha; at most a constant (JL-T4)."""
        return self.upper / (self.lower + 1) / (self.diameter / self.alpha)


def instance_optimality(workload: Workload, *, epsilon: float, alpha: float) -> InstanceOptimality:
    """Chaining bound and packing bound of a workload at every scale from its diameter to alpha.

    Parameters
    ----------
    workload : Workload
        k queries on a finite universe of N elements, N k <= 2^26.
    epsilon : float
        Pure differential privacy.
    alpha : float
        Separation of the net per query, below the diameter of the answers.

    Returns
    -------
    InstanceOptimality

    Raises
    ------
    WorkloadSizeError
        For a larger or infinite universe, or a net of more than 4096 points.
    SideConditionError
        If alpha is not below the diameter. A single point is then a net, and there is no packing.

    Notes
    -----
    Cost: O(N k) for each point of the net, one pass over the answers, and O(M^2 k) for a net of M
    points.

    References
    ----------
    Nikolov 2022, Lemmas 26 and 27, Theorem 4; formula sheet JL-L7, JL-L26, JL-L27, JL-T4.

    Examples
    --------
    >>> import geomdp as gd
    >>> found = gd.bounds.instance_optimality(gd.workloads.Prefixes(32), epsilon=0.1, alpha=0.1)
    >>> found
    InstanceOptimality(4 scales, sc > 67 at alpha / 4)
    >>> round(found.excess, 1)
    21.2
    """
    epsilon, alpha = positive(epsilon, "epsilon"), positive(alpha, "alpha")
    require_type(workload, Workload, "workload")
    answers, first = np.unique(explicit_answers(workload), axis=0, return_index=True)
    elements = workload.universe.elements_at(first)
    diameter = workload.l2_diameter() / math.sqrt(workload.n_queries)
    if not alpha < diameter:
        raise SideConditionError(
            f"alpha must be below the diameter {diameter:.6g} of the answers, got {alpha!r}"
        )
    net = farthest_points(answers, MEAN_L2.norm, least=alpha, most=MAX_NET)
    if net.rest >= alpha:
        raise WorkloadSizeError(f"alpha must leave a net of at most {MAX_NET} points, got {alpha}")
    problem = Problem(epsilon, alpha / MEAN_L2.separation, MEAN_L2)
    levels = math.ceil(math.log2(diameter / alpha))
    # Required separation of the subset at each level; at the last level, of the whole net.
    asked = [diameter * 2.0**-level for level in range(1, levels)] + [alpha]
    scales = []
    for level, separation in enumerate(asked, start=1):
        count = net.count(separation)
        term = 2 * diameter * 2.0**-level * math.sqrt(2 * math.log(count))
        packing = single_elements(workload, elements, net.order[:count], "net")
        records = excluded_records(packing, problem)
        scales.append(Scale(level, separation, count, term, records))
    return InstanceOptimality(tuple(scales), diameter, epsilon, alpha)
