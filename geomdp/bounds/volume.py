"""Volume radii of projections, and the lower bound on error that they prove.

vr_i(K) = max over subspaces V of dimension i of vr(Pi_V K) is bounded from below by the volume
radius of one projection, or of a body inside it, and from above by Urysohn's inequality.

The bound on error is for mechanisms on **histograms with real, unbounded counts under add/remove**,
private with respect to the l1 distance of histograms. A mechanism for records need only be private
on whole counts, and at large epsilon it can be more accurate: at epsilon = 50, geometric noise
answers one count with a mean error of 2 e^-50, while the bound is 1 / (8 e^2 epsilon). So the bound
approximates what records allow when epsilon is small; it says nothing about data sets of n records
under replace-one, and never enters a bracket.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import positive
from geomdp.bodies import Body, neighbour_body
from geomdp.bodies.gaussian_vectors import mean_gaussian_norm
from geomdp.bodies.norm_balls.unit_ball import log_unit_ball_volume
from geomdp.bodies.operand import checked_body
from geomdp.bodies.polytopes.triangulated import triangulated
from geomdp.bodies.shadows import shadow
from geomdp.bounds.bound import Bound, Side
from geomdp.bounds.certificates.problem import Problem, SideConditionError
from geomdp.bounds.metrics import MEAN_L2, Metric
from geomdp.bounds.rounding import rounded_down
from geomdp.geometry.volumes.volume import volume_radius
from geomdp.geometry.width.width import gaussian_width
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload

#: Probability that an upper bound is too small, where the Gaussian width is simulated.
LEVEL = 1e-6
#: Random directions per dimension: their extreme points stand for vertices that are not listed.
DIRECTIONS = 8
#: Relative margin taken off volumes, far above the rounding of a product of pivots.
MARGIN = 1e-9
#: Highest dimension in which projections on principal axes are cut into simplices; above, it takes
#: minutes or exceeds the limit of `triangulate`.
MAX_CUT = 5


@dataclass(frozen=True)
class VolumeRadius:
    """vr_i(K), the largest volume radius of a projection on i dimensions, from below and above.

    Parameters
    ----------
    dimension : int
        i.
    lower : float
        Proved lower bound: never from an outer relaxation.
    upper : float
        Urysohn's bound w(K) / mu_i.
    source : str
        What the lower bound is the volume radius of.
    """

    dimension: int
    lower: float
    upper: float
    source: str


def urysohn(width: float, dimension: int) -> float:
    """Explicit upper bound on vr_i(K) for a K of Gaussian `width` w: w / mu_i, i = `dimension`.

    vr(K) <= w(K) / mu_i in dimension i, with equality for balls, and projecting does not increase
    the width. As mu_i >= i / sqrt(i + 1), i vr_i(K) <= sqrt(i + 1) w(K) (Lemma 20).

    References
    ----------
    Urysohn 1924; Nikolov 2022, (13) and Lemma 20; formula sheet JL-URY.
    """
    return positive(width, "width") / mean_gaussian_norm(dimension)


def volume_radii(body: Body, rng: RandomState = None) -> tuple[VolumeRadius, ...]:
    """vr_1(K), ..., vr_r(K) of a symmetric body of dimension r, from below and above.

    The lower bound is the best of

    * the volume radius of K itself (i = r) where it is known exactly: closed forms and small
      polytopes, cut into simplices;
    * that of the projection on the first i principal axes of its points, where it is known exactly;
    * that of conv(+-v_1, ..., +-v_i) on its own span, for points v_1, v_2, ... of K chosen greedily
      for their volume (QR with pivoting): 2^i |det| / i!;
    * any of these in a higher dimension: vr_j(K) >= vr_i(K) for j <= i (Alexandrov-Fenchel).

    Parameters
    ----------
    body : Body
        K in R^m, symmetric, not the point 0.
    rng : Generator, int or None
        Directions in which points of K are found where it lists no vertices, and those of the
        Gaussian width where that has no closed form.

    Returns
    -------
    tuple of VolumeRadius
        For i = 1, ..., r. Upper bounds from a simulated width fail with probability at most 1e-6.

    Raises
    ------
    ValueError
        If K is not known to be symmetric or is a single point.

    References
    ----------
    Hardt-Talwar 2010; Nikolov 2022, Lemmas 17 and 20; formula sheet JL-VR, JL-L17, JL-URY.
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
    """Explicit lower bound on the error in counts, in l2 norm, of any epsilon-DP mechanism.

    For F x with histograms x of real counts of every size under add/remove, sup over x of
    E ||M(x) - F x||_2 >= i vr_i(K) / (8 e^2 epsilon), K = F B_1. Proof: pack points 2R apart into
    the projection of (i / epsilon) K; there are at least (i vr_i / (2 R epsilon))^i of them, within
    l1 distance 2 i / epsilon of each other; R = i vr_i / (4 e^2 epsilon). The proved lower bound
    stands for vr_i. False for whole counts at large epsilon, see the module's docstring.

    References
    ----------
    Hardt-Talwar 2010, with the constant of formula sheet JL-VR.
    """
    share = radius.dimension * radius.lower / (8 * math.e**2)
    return share / positive(epsilon, "epsilon")


def volume_bound(
    workload: Workload,
    *,
    epsilon: float,
    alpha: float,
    metric: Metric = MEAN_L2,
    adjacency: Adjacency,
    rng: RandomState = None,
) -> Bound:
    """Lower bound on the declared n at which histograms of real counts are answered within alpha.

    Sums of answers divided by a public n, under add/remove, for histograms of every size. The error
    in counts of `count_error` is at most n alpha sqrt(k), so
    n >= max_i i vr_i / (8 e^2 epsilon alpha sqrt(k)). Not a theorem about records, whose counts are
    whole: see `count_error`.

    Parameters
    ----------
    workload : Workload
        k queries.
    epsilon, alpha, metric : as for `Problem`
        Privacy, error, and how the error is measured; the bound is the same for all metrics, as
        `MeanL2` is the smallest.
    adjacency : Adjacency
        Must be add/remove.
    rng : Generator, int or None
        See `volume_radii`.

    Returns
    -------
    Bound
        Its certificate is the `VolumeRadius` used. It must not be compared with an upper bound for
        data sets of n records.

    Raises
    ------
    SideConditionError
        Under replace-one.

    References
    ----------
    Formula sheet JL-VR.
    """
    problem = Problem(epsilon, alpha, metric, adjacency)
    if adjacency is not Adjacency.ADD_REMOVE:
        raise SideConditionError(
            "a volume bound needs add/remove neighbours and data sets of every size, "
            f"got {adjacency.value}"
        )
    radii = volume_radii(neighbour_body(workload, adjacency), rng)
    winner = max(radii, key=lambda radius: radius.dimension * radius.lower)
    error = count_error(winner, epsilon=problem.epsilon)
    least = error / (problem.alpha * math.sqrt(workload.n_queries))
    value = max(0, math.ceil(least) - 1)
    statement = (
        f"no {rounded_down(problem.epsilon)}-DP mechanism (add/remove) for histograms with real "
        f"counts of every size has {metric.name} at most {rounded_down(problem.alpha)} after "
        f"division by a declared n <= {value}: the sensitivity body has a projection of volume "
        f"radius {rounded_down(winner.lower, 4)} on {winner.dimension} dimensions ({winner.source})"
    )
    assumptions = (
        "data sets of every size",
        "counts are real numbers: for whole counts the bound can be false unless epsilon is small",
    )
    return Bound(float(value), Side.LOWER, statement, assumptions, winner)


def _points(body: Body, basis: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Points of the body (N, m): its vertices, or extreme points in many directions."""
    if body.implements(Body.vertex_list):
        return body.vertex_list()
    rank = basis.shape[1]
    directions = np.vstack([np.eye(rank), rng.standard_normal((DIRECTIONS * rank, rank))])
    return body.extreme_point(directions @ basis.T)


def _inner_cross_polytopes(points: FloatArray) -> list[tuple[float, str]]:
    """Volume radii of conv(+-v_1, ..., +-v_i), i = 1..r, for pivots v_i of `points` (N, r)."""
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
    """Volume radii known exactly, by dimension: of the body, and along its principal axes."""
    rank = basis.shape[1]
    within = points @ basis
    axes = (basis @ np.linalg.eigh(within.T @ within)[1][:, ::-1]).T
    # On a line, use the support function: a shadow may be only an outer segment there.
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
