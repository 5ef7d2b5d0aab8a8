"""Proofs that noise with float64 parameters is private for all changes (X-GRID)."""

from __future__ import annotations

import enum
from collections.abc import Callable

import numpy as np
import scipy
import scipy.sparse as sp
from flint import arb, arb_mat, ctx

from geomdp import bodies
from geomdp._typing import FloatArray, IntArray
from geomdp.bodies import Body
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.mechanisms.additive_noise.sums import (
    MAX_CHECKED,
    Change,
    ExactPath,
    ExactSums,
    FewRows,
    MeasuredSums,
    RealRecords,
    ResidualSums,
    Units,
)
from geomdp.mechanisms.base import LARGEST_SUM
from geomdp.noise import GaussianNoise, KNormNoise, LaplaceNoise, Noise, PairedNoise, RecursiveNoise
from geomdp.noise.differences import ConeNoise, wishart_difference
from geomdp.noise.few_queries import GeometricNoise, LatticeBoxNoise, StaircaseNoise
from geomdp.noise.gaussian import isotropic
from geomdp.noise.knorm import MappedNoise, Part
from geomdp.noise.rounding import Numbers, Rounded, grid_for, public_grid
from geomdp.privacy import Adjacency

#: Certified slack tau (X-GRID): the body found in float64 is made 1 + tau times as large, to leave
#: room for its rounding errors.
SLACK = 1e-6
#: A triangulated body is certified only if every coordinate of its vertices is within this share of
#: max(1, radius) of a whole number. The library scales such bodies by 1 + 1e-9.
NEARLY_WHOLE = 1e-8
#: Working precision, in bits, for the residual of an approximate inverse.
RESIDUAL_BITS = 256
#: Number of rows of the matrix of distances that are computed together: at most 16 MB.
ROWS = 512
#: Twice the largest relative error of one rounding in float64.
UNIT = 2.0**-52


class Origin(enum.Enum):
    """Where a law takes the parameters of its noise from, which decides how its floats are proved.

    The root of mapped Gaussian noise counts as an ellipsoid, so as a body.
    """

    #: Formulas whose values are exact, or rounded to more noise by the law; there is no body.
    FORMULA = enum.auto()
    #: A ball around all changes. Only its radius can be rounded.
    BALL = enum.auto()
    #: An ellipsoid that an optimiser found. It counts as rounded, even if its entries are whole.
    SOLVER = enum.auto()
    #: The hull of all changes, or a body in closed form around it. Whole parameters are exact.
    CHANGES = enum.auto()
    #: A body of the caller. It counts as rounded, even if its parameters are whole.
    CALLER = enum.auto()


def proved(
    noise: Noise,
    sums: ExactSums,
    change: Change,
    law: Callable[[Change], Noise],
    origin: Origin | None,
) -> ExactPath | None:
    """Exact sums with the noise that unseeded releases add; None without a proof for its floats.

    `law` gave `noise` for `change`. Without an `origin`, no proof for its parameters is known.
    """
    if origin is None:
        return None
    match sums:
        case MeasuredSums() | ResidualSums():
            # The scales were proved in exact arithmetic, for the changes of the measurements.
            return ExactPath(sums, sums.rounded(noise))
        case RealRecords():
            return _proved_on_real_records(noise, sums, change, origin)
        case Units():
            change = Change(sums.answers, change.adjacency)
    match noise:
        case LaplaceNoise() | StaircaseNoise() | GeometricNoise():
            # A whole sensitivity below 2^53 is exact, and scales are rounded up.
            exact = change.l1.is_integer() and change.l1 < LARGEST_SUM
            return ExactPath(sums, sums.rounded(law(change))) if exact else None
        case LatticeBoxNoise():
            return ExactPath(sums, sums.rounded(noise))  # units and counts are whole
        case GaussianNoise():
            # The noise is isotropic in R^m: its projection on the span, whose basis is rounded, has
            # the law of `noise`. For squares of whole numbers, the scale of the law is proved.
            found = law(change)
            assert isinstance(found, GaussianNoise)
            grid = grid_for(found.scale) if isinstance(sums, Units) else public_grid(noise)
            return ExactPath(sums, Rounded([isotropic(noise.dimension, found.scale)], grid))
        case ConeNoise() | PairedNoise():
            cone = _exact_cone(noise, sums, change)
            return None if cone is None else ExactPath(sums, sums.rounded(cone))
        case KNormNoise() if origin in (Origin.CHANGES, Origin.CALLER):
            return _of_body(noise, noise, sums, change, origin)
        case RecursiveNoise() if noise.undivided is not None:
            return _of_body(noise.undivided, noise, sums, change, origin)
        case KNormNoise() | MappedNoise() if origin in (Origin.BALL, Origin.SOLVER):
            return on_few_rows(noise, sums, change, origin)
    return None


def _proved_on_real_records(
    noise: Noise, sums: RealRecords, change: Change, origin: Origin
) -> ExactPath | None:
    """A proof for noise on sums of real records; None if there is none."""
    slack, found = 0.0, noise
    match noise:
        case LaplaceNoise():
            # The slack covers the rounding of the square root in the sensitivity.
            slack = SLACK
            found = LaplaceNoise(noise.dimension, noise.scale * (1 + slack))
        # `Spectraplex` and `PsdBox` contain x x^T for all records x, and have no parameter that
        # could be rounded. A centre a that is not 0 occurs in Z as -(r_1 - r_2) T a, where the
        # number of records is public. Then r_1 - r_2 may be published, so a may be rounded.
        case ConeNoise(body=bodies.Spectraplex() as body):
            entries = wishart_difference(body.d, noise.rate, float(noise.centre[0]))
            return ExactPath(sums, Rounded([Numbers(entries)], sums.grid(noise)))
        # The scale of Gaussian noise is proved for a whole square, and the noise fills R^m.
        case GaussianNoise() | ConeNoise(body=bodies.PsdBox()):
            pass
        case _ if origin is Origin.BALL:
            # The answers span R^m, so the basis is the identity. If the radius is not whole, it is
            # a rounded square root, and the slack covers the rounding.
            slack = 0.0 if change.l2.is_integer() else SLACK
            found = _with_root(noise, change.l2 * np.eye(noise.dimension) * (1 + slack))
        case _ if origin is Origin.SOLVER:
            slack = SLACK
            found = _with_root(noise, _root(noise) * (1 + slack))
        case _:
            return None
    return ExactPath(sums, sums.rounded(found), slack)


# Cone noise.


def cone_noise(
    body: Body,
    rate: float,
    adjacency: Adjacency,
    matrix: sp.csr_array | None = None,
    constant: FloatArray | None = None,
    cells: sp.csr_array | None = None,
) -> ConeNoise:
    """Cone noise over `body` for answers `constant` + `matrix` q of records with points q in it."""
    origin = np.zeros(body.dimension)
    if adjacency is Adjacency.REPLACE_ONE:
        # If there is a map T, it maps the centroid to 0, so no centre is needed.
        centre = body.centroid() if matrix is None else origin
        return ConeNoise(body, rate, centre, matrix, cells=cells)
    # The number of records is private, so the sum of the constants needs noise, too.
    return ConeNoise(body, rate, origin, matrix, constant, cells)


def _exact_cone(
    noise: ConeNoise | PairedNoise, sums: ExactSums, change: Change
) -> ConeNoise | PairedNoise | None:
    """Cone noise with exact parameters for whole answers; None if no such noise is known."""
    body = noise.body
    if isinstance(sums, Units):
        found: Body = bodies.Box(sums.rows.min(axis=0), sums.rows.max(axis=0))
        if not is_upright_box(body):
            found = bodies.sensitivity_polytope(sums.answers)
        if isinstance(noise, ConeNoise) and isinstance(found, bodies.Simplex | bodies.Box):
            return cone_noise(found, noise.rate, change.adjacency)
        return None
    # The maps are exact in float64: for products of signs, entries are +-2^-k, and those of `cells`
    # are whole. Simplices and boxes need no map. A cut body contains the points of all records.
    if isinstance(body, bodies.TableMoments) and noise.matrix is not None:
        return None if noise.cells is None else noise
    return noise if isinstance(body, bodies.Elliptope | bodies.Simplex | bodies.Box) else None


def is_upright_box(body: Body) -> bool:
    """Whether a body is known to be a box with edges along the axes: its own bounding box."""
    if isinstance(body, bodies.Scaled):
        return is_upright_box(body.body)
    if isinstance(body, bodies.LinearImage):
        alone = all((np.count_nonzero(body.matrix, axis=axis) <= 1).all() for axis in (0, 1))
        return alone and is_upright_box(body.body)
    return isinstance(body, bodies.Box)


# K-norm noise of bodies, and Gaussian noise of ellipsoids.


def _of_body(
    noise: KNormNoise, released: Noise, sums: ExactSums, change: Change, origin: Origin
) -> ExactPath | None:
    """A proof for K-norm noise of any body; `released` has the same law, and gives the grid."""
    if not isinstance(noise.uniform, ExactSampler):
        return None
    if origin is Origin.CHANGES and isinstance(sums, Units):
        hull = change.body
        if isinstance(hull, bodies.SimplexDifference):
            return ExactPath(sums, sums.rounded(knorm(hull, noise.epsilon)))
    elif origin is Origin.CHANGES and holds_as_given(noise.body):
        return ExactPath(sums, Rounded.of(noise, public_grid(released)))
    return on_few_rows(noise, sums, change, origin)


def knorm(body: Body, epsilon: float) -> KNormNoise:
    """K-norm noise of a body with an exact sampler."""
    return KNormNoise(body, epsilon, ExactSampler(body))


def on_few_rows(noise: Noise, sums: ExactSums, change: Change, origin: Origin) -> ExactPath | None:
    """Noise on r answers that determine the others, of a body proved to hold all their changes.

    All pairs of elements are checked (under add/remove, all elements). Whole-number vertices need
    no slack; any other body is made larger by `SLACK`. None if the proof fails.
    """
    workload, size = change.workload, change.workload.universe.size
    if size is None or size > MAX_CHECKED or not workload.whole_answers:
        return None
    answers = workload.evaluate(workload.universe.elements())
    factor = sums.factor if isinstance(sums, Units) else 1.0
    slack = SLACK
    if origin in (Origin.BALL, Origin.SOLVER):
        columns = _root(noise) * factor
        places = independent_rows(columns)
        points = np.unique(answers[:, places], axis=0)
        square = columns[places] * (1 + SLACK)
        if not core_holds(square, bodies.Ball(len(square), 1.0), points, change.adjacency):
            return None
        found = _with_root(noise, square)
    else:
        assert isinstance(noise, KNormNoise)
        body = bodies.Scaled(noise.body, factor) if isinstance(sums, Units) else noise.body
        columns = body.affine_hull().basis
        places = independent_rows(columns)
        points = np.unique(answers[:, places], axis=0)
        fitting = _fitting(body, places, points, change.adjacency)
        if fitting is None:
            return None
        found, slack = knorm(fitting[0], noise.epsilon), fitting[1]
    lift = np.asarray(np.linalg.solve(columns[places].T, columns.T).T, dtype=np.float64)
    rows = FewRows(places, found, lift, change.hull.offset)
    return ExactPath(sums, sums.rounded(found), slack, rows)


def _root(noise: Noise) -> FloatArray:
    """The root (m, r) of the ellipsoid of K-norm noise, or of the map of Gaussian noise."""
    match noise:
        case KNormNoise(body=bodies.Ellipsoid() as body):
            return body.root
        case MappedNoise(parts=[Part(matrix=np.ndarray() as root)]):
            return root
    raise ArithmeticError(f"{noise!r} is not noise of an ellipsoid")


def _with_root(noise: Noise, root: FloatArray) -> Noise:
    """Noise of the same kind with another root (m, r)."""
    match noise:
        case KNormNoise():
            return knorm(bodies.Ellipsoid(root), noise.epsilon)
        case MappedNoise(parts=[Part(noise=GaussianNoise() as inner)]):
            return MappedNoise([Part(GaussianNoise(np.eye(root.shape[1]), inner.scale), root)])
    raise ArithmeticError(f"{noise!r} is not noise of an ellipsoid")


def independent_rows(columns: FloatArray) -> IntArray:
    """Indices of r rows that determine all rows of a matrix (m, r) of full rank."""
    pivots = scipy.linalg.qr(columns.T, mode="r", pivoting=True)[1]
    return np.asarray(pivots[: columns.shape[1]], dtype=np.int64)


def pulled_back(
    root: FloatArray, points: FloatArray, adjacency: Adjacency
) -> tuple[FloatArray, float] | None:
    """A^-1 p for whole points p (N, r) and the root A, with a bound on Euclidean errors; or None.

    Under replace-one, p is a point minus the first point. Let X be an approximate inverse of A,
    R = I - A X, and v a vector. Then A^-1 v = X v + A^-1 R v and ||A^-1|| <= ||X|| / (1 - ||R||). R
    is computed in ball arithmetic; a bound on the float64 rounding of X v is added.
    """
    if np.linalg.matrix_rank(root) < len(root):
        return None
    inverse, rank = np.linalg.inv(root), len(root)
    with ctx.workprec(RESIDUAL_BITS):
        product = arb_mat(root.tolist()) * arb_mat(inverse.tolist())
        rest = product - arb_mat(np.eye(rank).tolist())
        residual = float(sum((x * x for x in rest.entries()), start=arb(0)).sqrt().upper())
    if not residual < 0.5:
        return None
    # A difference of whole numbers is exact if its modulus is below 2^53.
    moved = points - points[0] if adjacency is Adjacency.REPLACE_ONE else points
    rounding = rank * UNIT * np.linalg.norm(np.abs(moved) @ np.abs(inverse).T, axis=1).max()
    solved = 2 * residual * np.linalg.norm(inverse) * np.linalg.norm(moved, axis=1).max()
    return moved @ inverse.T, float(rounding + solved)


def longest_difference(images: FloatArray, adjacency: Adjacency, order: float = 2.0) -> float:
    """Largest l_p distance (p: `order`) of rows of `images` (N, r), or of one to 0 (add/remove)."""
    from scipy.spatial.distance import cdist  # slow import

    others = images if adjacency is Adjacency.REPLACE_ONE else np.zeros((1, images.shape[1]))
    blocks = (images[i : i + ROWS] for i in range(0, len(images), ROWS))
    return max(float(cdist(block, others, "minkowski", p=order).max()) for block in blocks)


def proved_bound(longest: float, error: float, rank: int) -> float:
    """A bound on a distance of points known up to `error`, from its computed value `longest`."""
    # The factor above 1 covers rounding in `longest` and in this bound.
    return (longest + 2 * error) * (1 + 4 * (rank + 8) * UNIT)


def holds_as_given(body: Body) -> bool:
    """Whether `body` is known to have whole-number parameters, which float64 holds exactly."""
    match body:
        case bodies.Box():
            return _whole(body.lower) and _whole(body.upper)
        case bodies.SymmetrisedBox():
            return _whole(body.upper)
        case bodies.CrossPolytope():
            return _whole(np.array(body.r))
        case bodies.LinearImage():
            return _whole(body.matrix) and holds_as_given(body.body)
        case bodies.Product():
            return all(map(holds_as_given, body.bodies))
        case _:
            return isinstance(body, bodies.SimplexDifference)


def _fitting(
    body: Body, places: IntArray, points: FloatArray, adjacency: Adjacency
) -> tuple[Body, float] | None:
    """A body in R^r proved to hold all differences of `points` (N, r), and its slack; or None."""
    if isinstance(body, bodies.TriangulatedPolytope):
        whole = _whole_image(body, places, points, adjacency)
        return None if whole is None else (whole, 0.0)
    matrix, core = framed(body)
    root = matrix[places] * (1 + SLACK)
    square = root.shape[0] == root.shape[1]
    held = square and core_holds(root, core, points, adjacency)
    return (bodies.LinearImage(root, core), SLACK) if held else None


def _whole_image(
    body: bodies.TriangulatedPolytope, places: IntArray, points: FloatArray, adjacency: Adjacency
) -> bodies.TriangulatedPolytope | None:
    """The projection to `places` with rounded vertices; None if not proved to hold differences."""
    vertices = body.vertices[:, places]
    rounded = np.rint(vertices)
    if np.abs(vertices - rounded).max() > NEARLY_WHOLE * max(1.0, body.radius()):
        return None
    image = bodies.TriangulatedPolytope(np.unique(rounded, axis=0))
    cones = image.whole_cones
    if cones is None:
        return None
    heights, offsets = cones.heights(points)
    # Under add/remove p and -p are checked, as the inequalities need not come in opposite pairs.
    replaced = adjacency is Adjacency.REPLACE_ONE
    widths = np.ptp(heights, axis=0) if replaced else np.abs(heights).max(axis=0)
    return image if (widths <= offsets).all() else None


def framed(body: Body) -> tuple[FloatArray, Body]:
    """A matrix (m, k), and a body in R^k that the matrix maps onto `body`."""
    match body:
        case bodies.Scaled():
            matrix, core = framed(body.body)
            return matrix * body.factor, core
        case bodies.LinearImage():
            matrix, core = framed(body.body)
            return body.matrix @ matrix, core
        case bodies.Ellipsoid():
            return body.root, bodies.Ball(body.root.shape[1], 1.0)
        case _:
            return np.eye(body.dimension), body


def core_holds(root: FloatArray, core: Body, points: FloatArray, adjacency: Adjacency) -> bool:
    """Whether `root` times `core` is proved to hold all p - q (under add/remove, all p and -p)."""
    pulled = pulled_back(root, points, adjacency)
    return pulled is not None and bool(_gauge_bound(core, *pulled, adjacency) <= 1)


def _gauge_bound(body: Body, images: FloatArray, error: float, adjacency: Adjacency) -> float:
    """A proved bound on gauges of all differences of rows, known up to `error`; may be infinite."""
    dimension = images.shape[1]
    match body:
        case bodies.Box():
            if not (body.lower == -body.upper).all() or not (body.upper > 0).all():
                return np.inf
            images, order, radius, inner = images / body.upper, np.inf, 1.0, body.upper.min()
        case bodies.Ball():
            order, radius, inner = 2.0, body.r, body.r
        case bodies.CrossPolytope():
            order, radius, inner = 1.0, body.r, body.r / np.sqrt(dimension)
        case bodies.LpBall():
            order, radius = body.p, body.r
            inner = radius * min(1.0, dimension ** (0.5 - 1 / order))
        case bodies.Product():
            # The gauge of a product is the largest gauge of a factor.
            ends = np.cumsum([factor.dimension for factor in body.bodies])[:-1]
            pairs = zip(body.bodies, np.split(images, ends, axis=1), strict=True)
            return max(_gauge_bound(factor, own, error, adjacency) for factor, own in pairs)
        case _:
            return np.inf
    longest = longest_difference(images, adjacency, order) / radius
    # The body contains a ball of radius `inner`, so an error e changes a gauge by <= e / inner.
    # The factors 1.001 and 1 + 1e-10 cover the rounding errors of powers and quotients.
    return proved_bound(longest, 1.001 * error / inner, dimension) * (1 + 1e-10)


def _whole(values: FloatArray) -> bool:
    return bool((values == np.rint(values)).all())
