"""Uniform points of bodies as functions of uniform numbers in ball arithmetic, by type of body.

`lift_of` adds a map to answers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch
from itertools import accumulate

import scipy.sparse as sp
from flint import arb

from geomdp._typing import FloatArray
from geomdp.bodies import (
    Ball,
    Body,
    Box,
    CrossPolytope,
    Ellipsoid,
    Elliptope,
    LinearImage,
    LpBall,
    NuclearBall,
    Product,
    PsdBox,
    Scaled,
    Simplex,
    SimplexDifference,
    Spectraplex,
    SpectraplexDifference,
    SymmetrisedBox,
    TableMoments,
    TriangulatedPolytope,
)
from geomdp.bodies.symmetrised import Shifted
from geomdp.noise.exact.tables import cell_map, table_cells, table_contrasts
from geomdp.noise.exact.variates import (
    Draw,
    LinearMap,
    Vector,
    ball_sum,
    bartlett_factor,
    direction,
    dirichlet,
    dyadic,
    exponentials,
    gram,
    laplaces,
    linear_map,
    power_exponentials,
    whole_number,
)


class NoExactPath(TypeError):  # noqa: N818 (a name like MissingOracle)
    """Raised for a noise or body that cannot be drawn with correct rounding."""

    def __init__(self, item: object, reason: str) -> None:
        super().__init__(f"{item!r} has no correctly rounded draws: {reason}")


# Bodies of psd matrices, from Bartlett's factor L of a Wishart matrix L L^T


def correlations(order: int, draw: Draw) -> Vector:
    """Entries above the diagonal of a uniform correlation matrix: normalised rows of L (X-LKJ)."""
    rows = [_over(row, _squared_length(row).sqrt()) for row in bartlett_factor(order, draw)]
    products = gram(rows)
    return [products[i][j] for i in range(order) for j in range(i + 1, order)]


def spectraplex(order: int, draw: Draw) -> Vector:
    """A uniform psd matrix of trace <= 1 (X-SPX): svec of U^(1/D) W / tr W for a Wishart W."""
    size = draw.uniform().root(order * (order + 1) // 2)
    rows = bartlett_factor(order, draw)
    trace = ball_sum([_squared_length(row) for row in rows])
    return [size * entry / trace for entry in _svec(gram(rows))]


def psd_box(order: int, draw: Draw) -> Vector:
    """A uniform psd matrix of diagonal <= 1 (X-PSDBOX): svec of S R S, S_ii = U_i^(1 / (d + 1))."""
    scales = [value.root(order + 1) for value in draw.uniforms(order)]
    above = iter(correlations(order, draw) if order > 1 else [])
    two = arb(2).sqrt()
    return [
        scales[i] * scales[i] if i == j else two * scales[i] * scales[j] * next(above)
        for i in range(order)
        for j in range(i, order)
    ]


def _svec(matrix: list[Vector]) -> Vector:
    two, order = arb(2).sqrt(), len(matrix)
    return [
        matrix[i][j] if i == j else two * matrix[i][j]
        for i in range(order)
        for j in range(i, order)
    ]


def _squared_length(row: Vector) -> arb:
    return ball_sum([x * x for x in row])


def _over(row: Vector, length: arb) -> Vector:
    return [x / length for x in row]


# Uniform points by type of body

#: A random vector as a function of uniform numbers, evaluated in ball arithmetic.
Computable = Callable[[Draw], Vector]

#: Bodies that have a float64 sampler but no correctly rounded one, with the reason.
NO_EXACT_POINTS: dict[type[Body], str] = {
    NuclearBall: (
        "its eigenvalues are drawn by coupling from the past, which is too costly in ball "
        "arithmetic"
    ),
    SpectraplexDifference: (
        "its eigenvalues are drawn by coupling from the past, which is too costly in ball "
        "arithmetic"
    ),
}

#: Largest p of an l_p ball with a sampler here. For far larger p, powers x^p leave the range of
#: exponents of an `arb`. For p above the limit, a box differs from the l_p ball by less than 1 part
#: in 10^4 in up to 10^40 dimensions.
LARGEST_EXPONENT = 2.0**20


@singledispatch
def uniform_point(body: Body) -> Computable:
    """A uniform point of `body` in its affine hull; `NoExactPath` is raised before any draw."""
    reason = NO_EXACT_POINTS.get(type(body), "no sampler in ball arithmetic is written for it")
    raise NoExactPath(body, reason)


@uniform_point.register
def _ball(body: Ball) -> Computable:
    return _ball_points(body.m, arb(body.r))


def _ball_points(dimension: int, radius: arb) -> Computable:
    """r U^(1/m) times a uniform direction, for dimension m, radius r and U uniform on [0, 1]."""

    def point(draw: Draw) -> Vector:
        length = radius * draw.uniform().root(dimension)
        return [length * x for x in direction(dimension, draw)]

    return point


@uniform_point.register
def _cross_polytope(body: CrossPolytope) -> Computable:
    radius = arb(body.r)

    def point(draw: Draw) -> Vector:
        entries = laplaces(body.m, draw)
        total = ball_sum([abs(x) for x in entries]) + exponentials(1, draw)[0]
        return [radius * x / total for x in entries]

    return point


@uniform_point.register
def _lp_ball(body: LpBall) -> Computable:
    """r x / (sum_i |x_i|^p + E)^(1/p), density of x_i as exp(-|x|^p), E exponential (SAM-4)."""
    if body.p == 1:
        return _cross_polytope(CrossPolytope(body.m, body.r))
    if body.p > LARGEST_EXPONENT:
        raise NoExactPath(
            body, "its exponent is above 2^20; use a Box, which is nearly the same body"
        )
    exponent, radius = arb(body.p), arb(body.r)

    def point(draw: Draw) -> Vector:
        sizes = power_exponentials(body.m, exponent, draw)
        powers = ball_sum([x**exponent for x in sizes]) + exponentials(1, draw)[0]
        norm = powers ** (1 / exponent)
        signs = [1 - 2 * whole_number(2, draw) for _ in sizes]
        return [sign * radius * x / norm for sign, x in zip(signs, sizes, strict=True)]

    return point


@uniform_point.register
def _box(body: Box) -> Computable:
    lower, upper = dyadic(body.lower), dyadic(body.upper)

    def point(draw: Draw) -> Vector:
        heights = draw.uniforms(len(lower))
        # If a == b, return a itself, without rounding errors. The number a may be the midpoint of
        # two points of the output grid. Then a ball of positive radius around a contains numbers
        # that are rounded down and numbers that are rounded up, at any precision.
        return [
            a if a == b else a + (b - a) * u for a, b, u in zip(lower, upper, heights, strict=True)
        ]

    return point


@uniform_point.register
def _ellipsoid(body: Ellipsoid) -> Computable:
    """A uniform point of the unit ball, mapped by `root`. The map must be one-to-one or zero."""
    rank, columns = body.affine_hull().dimension, body.root.shape[1]
    if rank == 0:
        return lambda _: [arb(0)] * body.dimension
    if rank < columns:
        raise NoExactPath(body, f"its root has {columns} columns but rank {rank}")
    return _composed(linear_map(body.root), _ball_points(rank, arb(1)))


@uniform_point.register
def _symmetrised_box(body: SymmetrisedBox) -> Computable:
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
def _simplex(body: Simplex) -> Computable:
    count = len(body.vertices)
    if count == 1:
        vertex = dyadic(body.vertices[0])
        return lambda _: vertex
    return _composed(linear_map(body.vertices.T), lambda draw: dirichlet(count, 2, draw))


@uniform_point.register
def _simplex_difference(body: SimplexDifference) -> Computable:
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
        above = ball_sum([x for i, x in enumerate(parts) if i in positive])
        below = ball_sum([x for i, x in enumerate(parts) if i not in positive])
        size = draw.uniform().root(rank)
        return to_answers(
            [size * x / above if i in positive else -size * x / below for i, x in enumerate(parts)]
        )

    return point


@uniform_point.register
def _triangulated(body: TriangulatedPolytope) -> Computable:
    """A uniform point of a simplex conv(0, v_1, .., v_r) drawn in proportion to its volume."""
    cones = body.whole_cones
    if cones is None:
        reason = (
            "an entry of a vertex is not a whole number, 0 is not an interior point, or no cut "
            "into simplices is proved"
        )
        raise NoExactPath(body, reason)
    ends, order = list(accumulate(cones.volumes)), body.dimension
    corners = cones.points[cones.cones].tolist()

    def point(draw: Draw) -> Vector:
        chosen = corners[bisect_right(ends, whole_number(ends[-1], draw))]
        # Leave out the weight of the vertex 0, which adds nothing.
        weights = dirichlet(order + 1, 2, draw)[:order]
        return [
            ball_sum([weight * x for weight, x in zip(weights, entries, strict=True)])
            for entries in zip(*chosen, strict=True)
        ]

    return point


@uniform_point.register
def _elliptope(body: Elliptope) -> Computable:
    return lambda draw: correlations(body.order, draw)


@uniform_point.register
def _spectraplex(body: Spectraplex) -> Computable:
    return lambda draw: spectraplex(body.d, draw)


@uniform_point.register
def _psd_box(body: PsdBox) -> Computable:
    return lambda draw: psd_box(body.d, draw)


@uniform_point.register
def _table_moments(body: TableMoments) -> Computable:
    return lambda draw: table_contrasts(body.levels, body.violation, draw)


@uniform_point.register
def _product(body: Product) -> Computable:
    factors = [uniform_point(factor) for factor in body.bodies]
    return lambda draw: [entry for factor in factors for entry in factor(draw)]


@uniform_point.register
def _scaled(body: Scaled) -> Computable:
    inner, factor = uniform_point(body.body), arb(body.factor)
    return lambda draw: [factor * x for x in inner(draw)]


@uniform_point.register
def _shifted(body: Shifted) -> Computable:
    inner, offset = uniform_point(body.body), dyadic(body.offset)
    return lambda draw: [x + o for x, o in zip(inner(draw), offset, strict=True)]


@uniform_point.register
def _linear_image(body: LinearImage) -> Computable:
    if not body.one_to_one:
        raise NoExactPath(body, "its matrix is not one-to-one on the body")
    return _composed(linear_map(body.matrix), uniform_point(body.body))


def _composed(outer: Callable[[Vector], Vector], inner: Computable) -> Computable:
    return lambda draw: outer(inner(draw))


# A uniform point with a map to answers


@dataclass(frozen=True)
class Lift:
    """A uniform point x of a body, with answers (matrix @ x + constant) / denominator."""

    point: Computable
    product: LinearMap
    constant: Vector | None
    denominator: int = 1

    def answers(self, vector: Vector, count: arb) -> Vector:
        """(matrix @ vector + count * constant) / denominator; `count` is noise on the number n."""
        images = self.product(vector)
        if self.constant is not None:
            images = [x + count * c for x, c in zip(images, self.constant, strict=True)]
        return images if self.denominator == 1 else [x / self.denominator for x in images]


def lift_of(body: Body, matrix: sp.csr_array | None, constant: FloatArray | None = None) -> Lift:
    """The uniform point of `body` and its map to answers: the exact `cell_map` if there is one."""
    if isinstance(body, TableMoments) and matrix is not None:
        cells = cell_map(body.levels, matrix, constant)
        if cells is not None:
            levels, limit = body.levels, body.violation
            return Lift(
                lambda draw: table_cells(levels, limit, draw),
                linear_map(cells.numerators),
                None if constant is None else dyadic(cells.constant),
                cells.denominator,
            )
    product = (lambda vector: vector) if matrix is None else linear_map(matrix)
    return Lift(uniform_point(body), product, None if constant is None else dyadic(constant))
