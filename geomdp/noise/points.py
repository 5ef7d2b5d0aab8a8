"""Random vectors and uniform points of bodies as functions of uniform numbers, in balls."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from collections.abc import Callable, Iterable
from functools import partial, reduce, singledispatch
from itertools import accumulate, pairwise
from operator import mul

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from flint import arb, arb_mat

from geomdp import bodies
from geomdp._typing import FloatArray
from geomdp.bodies import Body
from geomdp.noise.rounding import (
    Computable,
    Draw,
    NoExactPath,
    Undecided,
    Vector,
    decided_below,
    exponentials,
    gaussians,
    laplaces,
)

# Random numbers and vectors


def whole_part(value: arb) -> int:
    """The largest whole number that is at most `value`; `Undecided` if the ball allows several."""
    part = value.floor().unique_fmpz()
    if part is None:
        raise Undecided
    return int(part)


def whole_number(below: int, draw: Draw) -> int:
    """A uniform whole number in 0, .., k - 1 for k = `below`: floor(k U)."""
    return whole_part(draw.uniform() * below)


def half_gamma(twice_shape: int, draw: Draw) -> arb:
    """A gamma variable of shape `twice_shape` / 2: -ln(U_1 .. U_s), plus E cos^2(2 pi V) if odd."""
    total = arb(0)
    if twice_shape >= 2:
        total = -reduce(mul, draw.uniforms(twice_shape // 2)).log()
    if twice_shape % 2:
        first, second = draw.uniforms(2)
        total -= first.log() * (2 * second).cos_pi() ** 2
    return total


def gamma(shape: int, draw: Draw) -> arb:
    return half_gamma(2 * shape, draw)


def dirichlet(count: int, twice_shape: int, draw: Draw) -> Vector:
    """Shares of the Dirichlet law with `count` equal parameters `twice_shape` / 2."""
    if twice_shape == 2:
        parts = exponentials(count, draw)
    else:
        parts = [half_gamma(twice_shape, draw) for _ in range(count)]
    total = ball_sum(parts)
    return [part / total for part in parts]


def direction(dimension: int, draw: Draw) -> Vector:
    """A uniformly distributed unit vector: a Gaussian vector divided by its length."""
    return _normalised(gaussians(dimension, draw))


def power_exponentials(count: int, exponent: arb, draw: Draw) -> Vector:
    """Independent variables of density proportional to exp(-x^p) on x > 0, for p > 1.

    An exponential X is kept with probability exp(X - X^p - c), at least 1/e on average, where c is
    the maximum of x - x^p, at x = p^(-1/(p - 1)).
    """
    top = exponent ** (-1 / (exponent - 1))
    highest = top - top**exponent
    kept: Vector = []
    while len(kept) < count:
        value, other = exponentials(2, draw)
        if decided_below(highest - value + value**exponent, other):
            kept.append(value)
    return kept


def bartlett_row(place: int, order: int, draw: Draw) -> Vector:
    """Row i = `place` of a lower triangular L such that L L^T has the law of G G^T (Bartlett 1933).

    G is a standard Gaussian matrix (p, p + 1) with p = `order`. The first i entries are Gaussian,
    and the diagonal entry is a chi variable with p + 1 - i degrees of freedom.
    """
    return [*gaussians(place, draw), (2 * half_gamma(order + 1 - place, draw)).sqrt()]


def bartlett_factor(order: int, draw: Draw) -> list[Vector]:
    return [bartlett_row(place, order, draw) for place in range(order)]


def ball_sum(values: Iterable[arb]) -> arb:
    return sum(values, start=arb(0))


def dot(first: Vector, second: Vector) -> arb:
    return ball_sum(a * b for a, b in zip(first, second, strict=True))


# Linear maps in ball arithmetic

#: A matrix with a larger share of non-zero entries is multiplied as a dense matrix. One
#: multiplication in FLINT's dense product takes a fifth of the time of one in Python.
DENSE = 0.2

LinearMap = Callable[[Vector], Vector]


def dyadic(values: FloatArray) -> Vector:
    return [arb(value) for value in np.asarray(values, dtype=np.float64).tolist()]


def scaled_variables(variables: Callable[[int, Draw], Vector], scales: FloatArray) -> Computable:
    """Independent `variables` of different `scales` (m,), which are taken as exact numbers."""
    factors = dyadic(scales)
    return lambda draw: [
        factor * x for factor, x in zip(factors, variables(len(factors), draw), strict=True)
    ]


def linear_map(matrix: npt.ArrayLike | sp.csr_array) -> LinearMap:
    """The map x -> matrix @ x in ball arithmetic, for a dense, sparse or implicit matrix (m, k)."""
    sparse = sp.csr_array(matrix if sp.issparse(matrix) else np.asarray(matrix), copy=True)
    m, k = sparse.shape
    sparse.eliminate_zeros()
    if sparse.nnz > DENSE * m * k:
        exact = arb_mat(m, k, sparse.toarray().ravel().tolist())
        return lambda vector: (exact * arb_mat(k, 1, vector)).entries()
    # Convert each different entry once, because maps of tables have few different entries.
    distinct = {entry: arb(entry) for entry in set(sparse.data.tolist())}
    entries = [distinct[entry] for entry in sparse.data.tolist()]
    places, starts = sparse.indices.tolist(), sparse.indptr.tolist()

    def product(vector: Vector) -> Vector:
        terms = [entry * vector[place] for entry, place in zip(entries, places, strict=True)]
        return [ball_sum(terms[a:b]) for a, b in pairwise(starts)]

    return product


def combined(weights: Vector, rows: list[Vector]) -> Vector:
    """The sum of weight * row over the first rows, one for each weight."""
    chosen = rows[: len(weights)]
    return [dot(weights, list(entries)) for entries in zip(*chosen, strict=True)]


def gram(rows: list[Vector]) -> list[Vector]:
    """R R^T for the matrix R with these rows. Entries missing at the end of a row are 0."""
    width, count = max(map(len, rows)), len(rows)
    padded = [entry for row in rows for entry in (*row, *[arb(0)] * (width - len(row)))]
    matrix = arb_mat(count, width, padded)
    flat = (matrix * matrix.transpose()).entries()
    return [flat[i * count : (i + 1) * count] for i in range(count)]


def composed(outer: Callable[[Vector], Vector], inner: Computable) -> Computable:
    return lambda draw: outer(inner(draw))


# Bodies of psd matrices, from Bartlett's factor L of a Wishart matrix L L^T


def correlations(order: int, draw: Draw) -> Vector:
    """Entries above the diagonal of a uniform correlation matrix: normalised rows of L (X-LKJ)."""
    products = gram([_normalised(row) for row in bartlett_factor(order, draw)])
    return [products[i][j] for i, j in itertools.combinations(range(order), 2)]


def spectraplex(order: int, draw: Draw) -> Vector:
    """A uniform psd matrix of trace <= 1 (X-SPX): svec of U^(1/D) W / tr W for a Wishart W."""
    size = draw.uniform().root(order * (order + 1) // 2)
    rows = bartlett_factor(order, draw)
    trace, products, two = ball_sum(dot(row, row) for row in rows), gram(rows), arb(2).sqrt()
    return [
        size * (products[i][j] if i == j else two * products[i][j]) / trace
        for i, j in itertools.combinations_with_replacement(range(order), 2)
    ]


def psd_box(order: int, draw: Draw) -> Vector:
    """A uniform psd matrix of diagonal <= 1 (X-PSDBOX): svec of S R S, S_ii = U_i^(1 / (d + 1))."""
    scales = [value.root(order + 1) for value in draw.uniforms(order)]
    above, two = iter(correlations(order, draw) if order > 1 else []), arb(2).sqrt()
    return [
        scales[i] * scales[i] if i == j else two * scales[i] * scales[j] * next(above)
        for i, j in itertools.combinations_with_replacement(range(order), 2)
    ]


def _normalised(row: Vector) -> Vector:
    length = dot(row, row).sqrt()
    return [x / length for x in row]


# Uniform points by type of body

#: Bodies that have a float64 sampler but no correctly rounded one, with the reason.
NO_EXACT_POINTS: dict[type[Body], str] = dict.fromkeys(
    (bodies.NuclearBall, bodies.SpectraplexDifference),
    "its eigenvalues are drawn by coupling from the past, which is too costly in ball arithmetic",
)

#: Largest p of an l_p ball: for far larger p, powers x^p leave the range of exponents of an `arb`.
LARGEST_EXPONENT = 2.0**20


@singledispatch
def uniform_point(body: Body) -> Computable:
    """A uniform point of `body` in its affine hull; `NoExactPath` is raised before any draw."""
    reason = NO_EXACT_POINTS.get(type(body), "no sampler in ball arithmetic is written for it")
    raise NoExactPath(body, reason)


def _ball_points(dimension: int, radius: arb) -> Computable:
    """r U^(1/m) times a uniform direction, for dimension m, radius r and U uniform on [0, 1]."""

    def point(draw: Draw) -> Vector:
        length = radius * draw.uniform().root(dimension)
        return [length * x for x in direction(dimension, draw)]

    return point


uniform_point.register(bodies.Ball, lambda body: _ball_points(body.m, arb(body.r)))
uniform_point.register(bodies.Elliptope, lambda body: partial(correlations, body.order))
uniform_point.register(bodies.Spectraplex, lambda body: partial(spectraplex, body.d))
uniform_point.register(bodies.PsdBox, lambda body: partial(psd_box, body.d))


@uniform_point.register
def _cross_polytope(body: bodies.CrossPolytope) -> Computable:
    radius = arb(body.r)

    def point(draw: Draw) -> Vector:
        entries = laplaces(body.m, draw)
        total = ball_sum(abs(x) for x in entries) + exponentials(1, draw)[0]
        return [radius * x / total for x in entries]

    return point


@uniform_point.register
def _lp_ball(body: bodies.LpBall) -> Computable:
    """r x / (sum_i |x_i|^p + E)^(1/p), density of x_i as exp(-|x|^p), E exponential (SAM-4)."""
    if body.p == 1:
        return _cross_polytope(bodies.CrossPolytope(body.m, body.r))
    if body.p > LARGEST_EXPONENT:
        reason = "its exponent is above 2^20; use a Box, which is nearly the same body"
        raise NoExactPath(body, reason)
    exponent, radius = arb(body.p), arb(body.r)

    def point(draw: Draw) -> Vector:
        sizes = power_exponentials(body.m, exponent, draw)
        powers = ball_sum(x**exponent for x in sizes) + exponentials(1, draw)[0]
        norm = powers ** (1 / exponent)
        signs = [1 - 2 * whole_number(2, draw) for _ in sizes]
        return [sign * radius * x / norm for sign, x in zip(signs, sizes, strict=True)]

    return point


@uniform_point.register
def _box(body: bodies.Box) -> Computable:
    lower, upper = dyadic(body.lower), dyadic(body.upper)

    def point(draw: Draw) -> Vector:
        # If a == b, return a itself: if a is the midpoint of two points of the output grid, no
        # precision would decide the rounding of a ball of positive radius around a.
        sides = zip(lower, upper, draw.uniforms(len(lower)), strict=True)
        return [a if a == b else a + (b - a) * u for a, b, u in sides]

    return point


@uniform_point.register
def _ellipsoid(body: bodies.Ellipsoid) -> Computable:
    """A uniform point of the unit ball, mapped by `root`. The map must be one-to-one or zero."""
    rank, columns = body.affine_hull().dimension, body.root.shape[1]
    if rank == 0:
        return lambda _: [arb(0)] * body.dimension
    if rank < columns:
        raise NoExactPath(body, f"its root has {columns} columns but rank {rank}")
    return composed(linear_map(body.root), _ball_points(rank, arb(1)))


@uniform_point.register
def _symmetrised_box(body: bodies.SymmetrisedBox) -> Computable:
    """u_i (c_i - c_0) with one of c_0, .., c_m equal to 0 and the others uniform on [0, 1].

    The points x / u of the body are the (c_1 - c_0, .., c_m - c_0) for c whose entries differ by at
    most 1. In cell i, the smallest entry c_i is taken as 0, and all cells have equal volumes.
    """
    upper = dyadic(body.upper)

    def point(draw: Draw) -> Vector:
        lowest = whole_number(len(upper) + 1, draw)
        corner = draw.uniforms(len(upper))
        corner.insert(lowest, arb(0))
        return [side * (c - corner[0]) for side, c in zip(upper, corner[1:], strict=True)]

    return point


@uniform_point.register
def _simplex(body: bodies.Simplex) -> Computable:
    count = len(body.vertices)
    if count == 1:
        return lambda _: dyadic(body.vertices[0])
    return composed(linear_map(body.vertices.T), lambda draw: dirichlet(count, 2, draw))


@uniform_point.register
def _simplex_difference(body: bodies.SimplexDifference) -> Computable:
    """A point in a cell (I, J) as in `SimplexDifference.sample_uniform` (X-SIM).

    I holds the chosen objects among the first r + 1, if r of 2 r are drawn without replacement.
    """
    rank = len(body.vertices) - 1
    if rank == 0:
        return lambda _: [arb(0)] * body.dimension
    to_answers = linear_map(body.vertices.T)

    def point(draw: Draw) -> Vector:
        positive = set(draw.order(2 * rank)[:rank])
        parts = exponentials(rank + 1, draw)
        above = ball_sum(x for i, x in enumerate(parts) if i in positive)
        below = ball_sum(x for i, x in enumerate(parts) if i not in positive)
        size = draw.uniform().root(rank)
        shares = (x / above if i in positive else -x / below for i, x in enumerate(parts))
        return to_answers([size * share for share in shares])

    return point


@uniform_point.register
def _triangulated(body: bodies.TriangulatedPolytope) -> Computable:
    """A uniform point of a simplex conv(0, v_1, .., v_r) drawn in proportion to its volume."""
    cones = body.whole_cones
    if cones is None:
        reason = "an entry of a vertex is not a whole number, or no cut around 0 is proved"
        raise NoExactPath(body, reason)
    ends, order = list(accumulate(cones.volumes)), body.dimension
    corners = cones.points[cones.cones].tolist()

    def point(draw: Draw) -> Vector:
        chosen = corners[bisect_right(ends, whole_number(ends[-1], draw))]
        weights = dirichlet(order + 1, 2, draw)[:order]  # without that of the vertex 0
        return combined(weights, chosen)

    return point


@uniform_point.register
def _product(body: bodies.Product) -> Computable:
    factors = [uniform_point(factor) for factor in body.bodies]
    return lambda draw: [entry for factor in factors for entry in factor(draw)]


@uniform_point.register
def _scaled(body: bodies.Scaled) -> Computable:
    inner, factor = uniform_point(body.body), arb(body.factor)
    return lambda draw: [factor * x for x in inner(draw)]


@uniform_point.register
def _linear_image(body: bodies.LinearImage) -> Computable:
    if not body.one_to_one:
        raise NoExactPath(body, "its matrix is not one-to-one on the body")
    return composed(linear_map(body.matrix), uniform_point(body.body))
