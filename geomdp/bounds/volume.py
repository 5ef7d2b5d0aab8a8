"""Volume radii of projections, and the lower bound on error that they prove.

The bound is for mechanisms on **histograms with real, unbounded counts under add/remove**, private
with respect to the l1 distance of histograms. A mechanism for records need only be private on whole
counts, and can be more accurate at large epsilon. At epsilon = 50, geometric noise answers one
count with a mean error of 2 e^-50, but the bound is 1 / (8 e^2 epsilon). So no bracket (a lower and
an upper bound on the sample complexity for n records) uses this bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import positive
from geomdp.bodies import Body
from geomdp.bodies.balls import log_unit_ball_volume, mean_gaussian_norm
from geomdp.bodies.base import checked_body
from geomdp.bodies.sensitivity import shadow
from geomdp.bodies.vpolytope import triangulated
from geomdp.geometry.volumes import gaussian_width, volume_radius

#: If the Gaussian width is simulated, an upper bound on a volume radius can be too small. This
#: happens with probability at most `LEVEL`.
LEVEL = 1e-6
#: Number of random directions per dimension. If a body does not list its vertices, the extreme
#: points in these directions replace the vertices.
DIRECTIONS = 8
#: Relative margin by which volume radii are rounded down, far above their rounding errors.
MARGIN = 1e-9
#: Highest dimension in which projections on principal axes are cut into simplices. In higher
#: dimensions the cutting takes minutes or exceeds the limit of `triangulate`.
MAX_CUT = 5


@dataclass(frozen=True)
class VolumeRadius:
    """Bounds on vr_i(K), the largest volume radius of a projection of K on i dimensions.

    The volume radius of a body is the radius of the ball with its volume.
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
    E ||M(x) - F x||_2. For records, whose counts are whole numbers, it can be false at large
    epsilon.

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
