"""K-norm bodies found in float64, proved to hold all differences of whole-number answers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.linalg
from scipy.spatial.distance import cdist

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
    MAX_CHECKED,
    SLACK,
    CertifiedRows,
    longest_difference,
    proved_bound,
    pulled_back,
)
from geomdp.mechanisms.sensitivity import answer_hull
from geomdp.noise import Noise
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload

#: How far the vertices of a triangulated body may be from whole numbers, in relative terms: those
#: that this library finds are made larger by 1e-9.
NEARLY_WHOLE = 1e-8


def holds_as_given(body: Body) -> bool:
    """Whether float64 holds all parameters of a body of whole-number answers exactly.

    A body of this kind that holds all differences of neighbours in real arithmetic does so on the
    computer.
    """
    match body:
        case Box():
            return _whole(body.lower) and _whole(body.upper)
        case SymmetrisedBox():
            return _whole(body.upper)
        case CrossPolytope():
            return _whole(np.array(body.r))
        case LinearImage():
            return _whole(body.matrix) and holds_as_given(body.body)
        case _:
            return isinstance(body, SimplexDifference)


def certified_body(
    workload: Workload,
    body: Body,
    adjacency: Adjacency,
    noise_of: Callable[[Body], Noise],
) -> CertifiedRows | None:
    """The answers that determine the others, with K-norm noise of a body that is proved to fit.

    As `certified_rows`, for other bodies. Of a triangulated polytope with whole vertices the image
    itself is used, proved in whole numbers and with no slack; others are made larger by `SLACK`.

    Parameters
    ----------
    workload : Workload
        m queries.
    body : Body
        In R^m. Found to hold all differences of neighbours in float64.
    adjacency : Adjacency
        Neighbour relation.
    noise_of : callable
        Body in R^r -> noise that is private for changes in it.

    Returns
    -------
    CertifiedRows or None
        None for answers that are not whole, a universe above 2^12 elements, or no proof.
    """
    size = workload.universe.size
    if size is None or size > MAX_CHECKED or not workload.whole_answers:
        return None
    basis = body.affine_hull().basis
    pivots = scipy.linalg.qr(basis.T, mode="r", pivoting=True)[1]
    places = np.asarray(pivots[: basis.shape[1]], dtype=np.int64)
    points = np.unique(workload.evaluate(workload.universe.elements())[:, places], axis=0)
    fitting = _fitting(body, places, points, adjacency)
    if fitting is None:
        return None
    found, slack = fitting
    offset = np.zeros(body.dimension)
    if adjacency is Adjacency.REPLACE_ONE:
        offset = answer_hull(workload, adjacency).offset
    lift = np.asarray(np.linalg.solve(basis[places].T, basis.T).T, dtype=np.float64)
    return CertifiedRows(places, noise_of(found), lift, offset, slack)


def _fitting(
    body: Body, places: IntArray, points: FloatArray, adjacency: Adjacency
) -> tuple[Body, float] | None:
    """A body in R^r that is proved to hold the differences of the points, and its slack."""
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
    """The image on some coordinates, with whole vertices, if it is proved to hold the points."""
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
        # The body need not be symmetric: points and their negatives.
        widths = np.abs(heights).max(axis=0)
    return image if (widths <= offsets).all() else None


def framed(body: Body) -> tuple[FloatArray, Body]:
    """A matrix (m, k) and a body in R^k whose image under it is `body`."""
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
    """Whether the image of `core` under the root (r, r) is proved to hold all differences.

    False for bodies without a proof here: boxes, balls, l_p balls and products of them have one.
    """
    pulled = pulled_back(root, points, adjacency)
    if pulled is None:
        return False
    images, error = pulled
    return bool(_gauge_bound(core, images, error, adjacency) <= 1)


def _gauge_bound(body: Body, images: FloatArray, error: float, adjacency: Adjacency) -> float:
    """A proved bound on the gauge of all differences of images that are known up to `error`.

    Each has a Euclidean ball of known radius inside, which turns the error into one of the gauge.
    Infinite for other bodies.
    """
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
    # Powers of an l_p norm and quotients add some roundings more.
    return proved_bound(longest, 1.001 * error / inner, dimension) * (1 + 1e-10)


def _product_bound(body: Product, images: FloatArray, error: float, adjacency: Adjacency) -> float:
    """The largest bound of a factor: the gauge of a product is the largest of its factors."""
    start, bound = 0, 0.0
    for factor in body.bodies:
        stop = start + factor.dimension
        bound = max(bound, _gauge_bound(factor, images[:, start:stop], error, adjacency))
        start = stop
    return bound


def _whole(values: FloatArray) -> bool:
    return bool((values == np.rint(values)).all())
