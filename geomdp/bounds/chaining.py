"""An upper bound on the sample complexity by chaining, and a lower bound by packings.

A chaining sum bounds the Gaussian width of a set of answers far apart (Nikolov 2022, Theorem 4).
Each of its terms belongs to a scale, and a packing at this scale bounds the term. The sum and the
packing bounds are computed here with explicit constants.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._numerics.linalg import farthest_points
from geomdp._validation import positive, require_type
from geomdp.bounds.certificates import excluded_records
from geomdp.bounds.packings import single_elements
from geomdp.bounds.problem import MEAN_L2, Problem, SideConditionError
from geomdp.workloads import Workload, WorkloadSizeError, explicit_answers

#: Largest number of points of a net. Each point costs one pass over the universe.
MAX_NET = 1 << 12
#: Sum over j >= 1 of 2^(-j/2): the geometric series of the chaining sum.
SERIES = 1 / (math.sqrt(2) - 1)


@dataclass(frozen=True)
class Scale:
    """One scale of the chaining sum, with its packing bound."""

    level: int
    separation: float
    count: int
    chaining: float
    records: int


@dataclass(frozen=True)
class InstanceOptimality:
    """Chaining and packing bounds of a workload, at scales t_j = 2^-j D from D down to alpha.

    D is the l2 diameter of the answers per query (divided by sqrt(k)), and w the width of the net.
    """

    scales: tuple[Scale, ...]
    diameter: float
    epsilon: float
    alpha: float

    def __repr__(self) -> str:
        return f"InstanceOptimality({len(self.scales)} scales, sc > {self.lower} at alpha / 4)"

    @property
    def width(self) -> float:
        """Explicit bound on w / sqrt(k): the sum of the terms of all scales (JL-L27)."""
        return math.fsum(scale.chaining for scale in self.scales)

    @property
    def upper(self) -> float:
        """w^2 / (k alpha^2 epsilon), at least sc up to a factor and a factor of alpha (JL-L26)."""
        return self.width**2 / (self.alpha**2 * self.epsilon)

    @property
    def lower(self) -> int:
        """The best certified packing bound over all scales: sc > lower at error alpha / 4."""
        return max(scale.records for scale in self.scales)

    @property
    def limit(self) -> float:
        """Explicit bound on `upper` in terms of s = `lower` and D; for large s, like s D / alpha.

        The packing of N_j elements excludes all n <= floor(T t_j / alpha), for a number of copies T
        of at least ln(N_j - 1) / epsilon - 1. So N_j has a logarithm of at most epsilon (alpha (s +
        1) / t_j + 1) + ln 2, which bounds the terms of all scales (JL-T4). The last level has
        separation alpha.
        """
        reach = self.alpha * self.epsilon * (self.lower + 1)
        constant = math.sqrt(self.epsilon + math.log(2))
        series = SERIES * math.sqrt(reach * self.diameter) + constant * self.diameter
        last = math.sqrt(reach * self.alpha) + constant * self.alpha
        total = math.sqrt(8) * (series + last)
        return total**2 / (self.alpha**2 * self.epsilon)

    @property
    def excess(self) -> float:
        """`upper` / (`lower` + 1) / (D / alpha); by `limit` bounded for epsilon <= 1."""
        return self.upper / (self.lower + 1) / (self.diameter / self.alpha)


def instance_optimality(workload: Workload, *, epsilon: float, alpha: float) -> InstanceOptimality:
    """Chaining and packing bounds at the scales between the diameter of the answers and alpha.

    Distances of answers are l2 distances divided by sqrt(k), and D is their diameter. A net is a
    set of answers at least alpha apart; its width is w. The result has the `scales`; `width`, an
    explicit bound on w / sqrt(k); `upper`, the bound w^2 / (k alpha^2 epsilon) on the sample
    complexity up to constants that Lemma 26 leaves open; `lower`, the best packing bound (sc >
    lower at error alpha / 4); and `limit`, an explicit bound on `upper` in terms of `lower` and D.

    Cost: for a net of M points, M passes over the answers at O(N k) each, and O(M^2 k) per scale.
    Source: Nikolov 2022, Lemmas 26 and 27, Theorem 4; JL-L7, JL-L26, JL-L27, JL-T4.

    Parameters
    ----------
    workload : Workload
        k queries on a finite universe of N elements, N k <= 2^26.
    epsilon, alpha : float
        Parameter of pure differential privacy; separation of the net per query, below D.

    Raises
    ------
    WorkloadSizeError
        If N k is above 2^26, the universe is infinite, or the net has more than 4096 points.
    SideConditionError
        If alpha is at least D: above D, no two answers are alpha apart, so there is no packing.

    Examples
    --------
    >>> import geomdp as gd
    >>> found = gd.bounds.instance_optimality(gd.workloads.Prefixes(32), epsilon=0.1, alpha=0.1)
    >>> found
    InstanceOptimality(4 scales, sc > 67 at alpha / 4)
    """
    epsilon, alpha = positive(epsilon, "epsilon"), positive(alpha, "alpha")
    require_type(workload, Workload, "workload")
    answers, first = np.unique(explicit_answers(workload), axis=0, return_index=True)
    elements = workload.universe.elements_at(first)
    diameter = workload.l2_diameter() / math.sqrt(workload.n_queries)
    if not alpha < diameter:
        raise SideConditionError(
            f"alpha must be below the diameter {diameter:.6g} of the answers per query, got "
            f"{alpha!r}"
        )
    net = farthest_points(answers, MEAN_L2.norm, least=alpha, most=MAX_NET)
    if net.rest >= alpha:
        raise WorkloadSizeError(
            f"alpha must be so large that the net has at most {MAX_NET} points, got {alpha}"
        )
    problem = Problem(epsilon, alpha / MEAN_L2.separation, MEAN_L2)
    levels = math.ceil(math.log2(diameter / alpha))
    # Required separation of the subset at each level; at the last level the subset is the net.
    asked = [diameter * 2.0**-level for level in range(1, levels)] + [alpha]
    scales = []
    for level, separation in enumerate(asked, start=1):
        count = net.count(separation)
        term = 2 * diameter * 2.0**-level * math.sqrt(2 * math.log(count))
        packing = single_elements(workload, elements, net.order[:count], "net")
        records = excluded_records(packing, problem)
        scales.append(Scale(level, separation, count, term, records))
    return InstanceOptimality(tuple(scales), diameter, epsilon, alpha)
