"""Uniform points of bodies of psd matrices, from Bartlett's factor L of a Wishart matrix L L^T."""

from __future__ import annotations

from flint import arb

from geomdp.noise.exact.linear import gram
from geomdp.noise.exact.uniforms import Draw
from geomdp.noise.exact.variates import Vector, ball_sum, bartlett_factor


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
