"""Proofs that a body found in float64 contains all differences of whole-number answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp.bodies import (
    Ball,
    Body,
    Box,
    CrossPolytope,
    Ellipsoid,
    LinearImage,
    LpBall,
    Product,
    Scaled,
    SimplexDifference,
    SymmetrisedBox,
    TriangulatedPolytope,
)
from geomdp.mechanisms.additive_noise.certified_rows import (
    SLACK,
    CertifiedRows,
    can_be_checked,
    independent_rows,
    lifted,
    longest_difference,
    proved_bound,
    pulled_back,
)
from geomdp.noise import Noise
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload

#: Let s be the larger of 1 and the radius of a triangulated body. If a coordinate of a vertex is
#: farther than this number times s from a whole number, the body is not certified. The limit is
#: above 0 because the library makes such bodies larger by the factor 1 + 1e-9.
NEARLY_WHOLE = 1e-8


def holds_as_given(body: Body) -> bool:
    """Whether `body` is known to have whole-number parameters, which float64 holds exactly."""
    match body:
        case Box():
            return _whole(body.lower) and _whole(body.upper)
        case SymmetrisedBox():
            return _whole(body.upper)
        case CrossPolytope():
            return _whole(np.array(body.r))
        case LinearImage():
            return _whole(body.matrix) and holds_as_given(body.body)
        case Product():
            return all(map(holds_as_given, body.bodies))
        case _:
            return isinstance(body, SimplexDifference)


def certified_body(
    workload: Workload,
    body: Body,
    adjacency: Adjacency,
    noise_of: Callable[[Body], Noise],
) -> CertifiedRows | None:
    """K-norm noise of a body in R^r proved to contain all differences of r answers; else None."""
    if not can_be_checked(workload):
        return None
    basis = body.affine_hull().basis
    places = independent_rows(basis)
    points = np.unique(workload.evaluate(workload.universe.elements())[:, places], axis=0)
    fitting = _fitting(body, places, points, adjacency)
    if fitting is None:
        return None
    found, slack = fitting
    return lifted(workload, basis, places, adjacency, noise_of(found), slack)


def _fitting(
    body: Body, places: IntArray, points: FloatArray, adjacency: Adjacency
) -> tuple[Body, float] | None:
    """A body in R^r proved to hold all differences of `points` (N, r), and its slack; or None."""
    if isinstance(body, TriangulatedPolytope):
        whole = _whole_image(body, places, points, adjacency)
        return None if whole is None else (whole, 0.0)
    matrix, core = framed(body)
    root = matrix[places] * (1 + SLACK)
    square = root.shape[0] == root.shape[1]
    if not square or not core_holds(root, core, points, adjacency):
        return None
    return LinearImage(root, core), SLACK


def _whole_image(
    body: TriangulatedPolytope, places: IntArray, points: FloatArray, adjacency: Adjacency
) -> TriangulatedPolytope | None:
    """The projection to `places` with rounded vertices; None if not proved to hold differences."""
    vertices = body.vertices[:, places]
    rounded = np.rint(vertices)
    if np.abs(vertices - rounded).max() > NEARLY_WHOLE * max(1.0, body.radius()):
        return None
    image = TriangulatedPolytope(np.unique(rounded, axis=0))
    cones = image.whole_cones
    if cones is None:
        return None
    heights, offsets = cones.heights(points)
    if adjacency is Adjacency.REPLACE_ONE:
        widths = heights.max(axis=0) - heights.min(axis=0)
    else:
        # Check each point p and -p, because the inequalities need not come in opposite pairs.
        widths = np.abs(heights).max(axis=0)
    return image if (widths <= offsets).all() else None


def framed(body: Body) -> tuple[FloatArray, Body]:
    """A matrix (m, k), and a body in R^k that the matrix maps onto `body`."""
    match body:
        case Scaled():
            matrix, core = framed(body.body)
            return matrix * body.factor, core
        case LinearImage():
            matrix, core = framed(body.body)
            return body.matrix @ matrix, core
        case Ellipsoid():
            return body.root, Ball(body.root.shape[1], 1.0)
        case _:
            return np.eye(body.dimension), body


def core_holds(root: FloatArray, core: Body, points: FloatArray, adjacency: Adjacency) -> bool:
    """Whether `root` times `core` is proved to hold all p - q (under add/remove, all p and -p)."""
    pulled = pulled_back(root, points, adjacency)
    if pulled is None:
        return False
    images, error = pulled
    return bool(_gauge_bound(core, images, error, adjacency) <= 1)


def _gauge_bound(body: Body, images: FloatArray, error: float, adjacency: Adjacency) -> float:
    """A proved bound on gauges of all differences of rows, known up to `error`; may be infinite."""
    from scipy.spatial.distance import cdist  # slow import

    dimension = images.shape[1]
    match body:
        case Box():
            if not (body.lower == -body.upper).all() or not (body.upper > 0).all():
                return np.inf
            scaled, inner = images / body.upper, float(body.upper.min())
            longest = longest_difference(scaled, adjacency, partial(cdist, metric="chebyshev"))
        case Ball():
            longest, inner = longest_difference(images, adjacency) / body.r, body.r
        case CrossPolytope():
            longest = longest_difference(images, adjacency, partial(cdist, metric="cityblock"))
            longest, inner = longest / body.r, body.r / np.sqrt(dimension)
        case LpBall():
            metric = partial(cdist, metric="minkowski", p=body.p)
            longest = longest_difference(images, adjacency, metric) / body.r
            inner = body.r * min(1.0, dimension ** (0.5 - 1 / body.p))
        case Product():
            return _product_bound(body, images, error, adjacency)
        case _:
            return np.inf
    # The body contains a ball of radius `inner`, so an error e changes a gauge by <= e / inner.
    # The factors 1.001 and 1 + 1e-10 cover the rounding errors of powers and quotients.
    return proved_bound(longest, 1.001 * error / inner, dimension) * (1 + 1e-10)


def _product_bound(body: Product, images: FloatArray, error: float, adjacency: Adjacency) -> float:
    """The largest bound of a factor, because a product's gauge is the largest gauge of a factor."""
    start, bound = 0, 0.0
    for factor in body.bodies:
        stop = start + factor.dimension
        bound = max(bound, _gauge_bound(factor, images[:, start:stop], error, adjacency))
        start = stop
    return bound


def _whole(values: FloatArray) -> bool:
    return bool((values == np.rint(values)).all())
