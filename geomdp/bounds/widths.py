"""What Gaussian widths say of sample complexity and error: chaining, packings and volumes.

A chaining sum bounds the width of a set of answers far apart (Nikolov 2022, Theorem 4). Each of its
terms belongs to a scale, and a packing at this scale bounds the term. Urysohn's inequality bounds
the volumes of projections by the width. All constants are explicit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from geomdp._numerics.linalg import farthest_points
from geomdp._typing import FloatArray, RandomState
from geomdp._validation import positive, require_type
from geomdp.bodies import Body
from geomdp.bodies.balls import log_unit_ball_volume, mean_gaussian_norm
from geomdp.bodies.base import checked_body
from geomdp.bodies.sensitivity import shadow
from geomdp.bodies.vpolytope import triangulated
from geomdp.bounds.certificates import excluded_records
from geomdp.bounds.packings import single_elements
from geomdp.bounds.problem import MEAN_L2, Problem, SideConditionError
from geomdp.geometry.volumes import gaussian_width, volume_radius
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
    """Chaining and packing bounds of a workload, at scales t_j = 2^-j D from D down to alpha, for
    the l2 diameter D of the answers divided by sqrt(k), and the width w of the net.
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

    Distances are l2 distances of answers divided by sqrt(k), D is the diameter, and w the width of
    a net: answers at least alpha apart. The result has the `scales`; `width`, an explicit bound on
    w / sqrt(k); `upper`, a bound on the sample complexity up to constants that Lemma 26 leaves
    open; `lower`, the best packing bound (sc > lower at error alpha / 4); and `limit`, an explicit
    bound on `upper` in terms of `lower` and D.

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
        of_answers = f"the diameter {diameter:.6g} of the answers per query"
        raise SideConditionError(f"alpha must be below {of_answers}, got {alpha!r}")
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


# Volume radii of projections, and the lower bound on error that they prove, for mechanisms on
# **histograms of real, unbounded counts under add/remove**. A mechanism for records need only be
# private on whole counts: at epsilon = 50, geometric noise answers one count with a mean error of
# 2 e^-50, but the bound is 1 / (8 e^2 epsilon). So no bracket uses this bound.

#: Largest probability that an upper bound is too small if the Gaussian width is simulated.
LEVEL = 1e-6
#: Number of random directions per dimension for extreme points, if a body lists no vertices.
DIRECTIONS = 8
#: Relative margin by which volume radii are rounded down, far above their rounding errors.
MARGIN = 1e-9
#: Highest dimension in which projections on principal axes are cut into simplices in seconds.
MAX_CUT = 5


@dataclass(frozen=True)
class VolumeRadius:
    """Bounds on vr_i(K), the largest volume radius (the radius of the ball with the same volume) of
    a projection of K on i dimensions.
    """

    dimension: int
    lower: float
    upper: float
    source: str


def urysohn(width: float, dimension: int) -> float:
    """Urysohn's bound w / mu_i on vr_i(K), i = `dimension`; it is at most sqrt(i + 1) w / i."""
    return positive(width, "width") / mean_gaussian_norm(dimension)


def volume_radii(body: Body, rng: RandomState = None) -> tuple[VolumeRadius, ...]:
    """Lower and upper bounds on vr_1(K), ..., vr_r(K) for a symmetric body K of dimension r.

    A volume is known exactly if there is a closed form, or if a small polytope is cut into
    simplices. The lower bound is the best of these volume radii:

    * K itself (i = r), and for i <= 5 the projection of K on the first i principal axes of its
      points, if the volume is known exactly.
    * The set conv(+-v_1, ..., +-v_i) of volume 2^i |det(v_1, ..., v_i)| / i! in its span. The
      points v_1, v_2, ... of K are chosen greedily for a large volume (QR with pivoting).
    * The bound for a higher dimension: vr_j(K) >= vr_i(K) for j <= i (Alexandrov-Fenchel).

    The upper bound is w(K) / mu_i, where mu_i is the mean norm of a Gaussian vector in R^i. With a
    simulated width w(K), it fails with probability at most 1e-6. Source: Urysohn 1924; Hardt-Talwar
    2010; Nikolov 2022, (13), Lemmas 17 and 20; JL-VR, JL-L17, JL-URY.

    Parameters
    ----------
    body : Body
        K in R^m. ``ValueError`` if K is not known to be symmetric or is a single point.
    rng : Generator, int or None
        Draws random directions: for extreme points if K does not list its vertices, and for the
        Gaussian width if the width has no closed form.

    Examples
    --------
    >>> import geomdp as gd
    >>> cross = gd.bodies.CrossPolytope(3)
    >>> for radius in gd.bounds.volume_radii(cross, rng=0):
    ...     print(radius.dimension, round(radius.lower, 3), round(radius.upper, 3))
    1 1.0 1.662
    2 0.798 1.058
    3 0.683 0.831
    """
    if not checked_body(body).symmetric:
        raise ValueError(f"body must be symmetric, got {body!r}")
    basis = body.affine_hull().basis
    rank = basis.shape[1]
    if rank == 0:
        raise ValueError(f"body must have more than one point, got {body!r}")
    generator = np.random.default_rng(rng)
    points = _points(body, basis, generator)
    found = _inner_cross_polytopes(points @ basis)
    for i, radius in _exact_projections(body, basis, points).items():
        found[i - 1] = max(found[i - 1], radius)
    width = gaussian_width(body, rng=generator, level=LEVEL).interval[1]
    radii: list[VolumeRadius] = []
    best = (0.0, "")
    for i in range(rank, 0, -1):
        best = max(best, found[i - 1])
        radii.append(VolumeRadius(i, best[0], urysohn(width, i), best[1]))
    return tuple(reversed(radii))


def count_error(radius: VolumeRadius, *, epsilon: float) -> float:
    """The bound i vr_i(K) / (8 e^2 epsilon) on the l2 error of answers to k queries, from a radius.

    A mechanism answers the queries F x on histograms x of real counts, of every size, under
    add/remove; K = F B_1 for the l1 unit ball B_1. The bound holds for the supremum over x of
    E ||M(x) - F x||_2. For whole counts, it can be false at large epsilon.

    Proof: the projection of (i / epsilon) K on the best i dimensions holds (i vr_i / (2 R
    epsilon))^i points that are 2R apart, for R = i vr_i / (4 e^2 epsilon). Their histograms have l1
    distances of at most 2 i / epsilon (Hardt-Talwar 2010, with the constant of JL-VR).
    """
    share = radius.dimension * radius.lower / (8 * math.e**2)
    return share / positive(epsilon, "epsilon")


def _points(body: Body, basis: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Points (N, m) of the body: its vertices, or extreme points in many directions."""
    if body.implements(Body.vertex_list):
        return body.vertex_list()
    rank = basis.shape[1]
    directions = np.vstack([np.eye(rank), rng.standard_normal((DIRECTIONS * rank, rank))])
    return body.extreme_point(directions @ basis.T)


def _inner_cross_polytopes(points: FloatArray) -> list[tuple[float, str]]:
    """Volume radii of conv(+-v_1, ..., +-v_i), i = 1..r; QR picks the v_i from `points` (N, r)."""
    pivots = np.abs(np.diag(scipy.linalg.qr(points.T, mode="r", pivoting=True)[0]))
    radii: list[tuple[float, str]] = []
    log_volume = 0.0
    with np.errstate(divide="ignore"):
        logs = np.log(2 * pivots * (1 - MARGIN))
    for i, log_pivot in enumerate(logs.tolist(), start=1):
        log_volume += log_pivot - math.log(i)
        radius = math.exp((log_volume - log_unit_ball_volume(i)) / i)
        radii.append((radius, f"hull of {i} answer vectors and their negatives"))
    return radii


def _exact_projections(
    body: Body, basis: FloatArray, points: FloatArray
) -> dict[int, tuple[float, str]]:
    """Volume radii, rounded down, by dimension: of K and of its projections on principal axes."""
    rank = basis.shape[1]
    within = points @ basis
    axes = (basis @ np.linalg.eigh(within.T @ within)[1][:, ::-1]).T
    # For i = 1 use the support function, because `shadow` makes segments longer by 1e-9.
    exact = {1: (float(body.support(axes[:1])[0]) * (1 - MARGIN), "its widest principal axis")}
    if _is_exact(body):
        exact[rank] = (volume_radius(body).value * (1 - MARGIN), "the body itself")
    for i in range(2, min(rank - 1, MAX_CUT) + 1):
        image = shadow(body, axes[:i])
        if _is_exact(image):
            radius = volume_radius(image).value * (1 - MARGIN)
            exact[i] = (radius, f"its projection on {i} principal axes")
    return exact


def _is_exact(body: Body) -> bool:
    if body.implements(Body.volume):
        return True
    small = body.affine_hull().dimension <= MAX_CUT
    return small and triangulated(body) is not None
