"""Uniform points of bodies of positive semidefinite matrices, from Bartlett's factor.

Bartlett's factor is a random triangular matrix L. The product L L^T is a Wishart matrix. In svec
coordinates, a symmetric matrix is its upper triangle, row by row. Entries off the diagonal are
multiplied by sqrt(2).
"""

from __future__ import annotations

from flint import arb

from geomdp.noise.exact.linear import gram
from geomdp.noise.exact.uniforms import Draw
from geomdp.noise.exact.variates import Vector, ball_sum, bartlett_factor


def correlations(order: int, draw: Draw) -> Vector:
    """Entries above the diagonal of a uniform correlation matrix, row by row (X-LKJ).

    A uniform correlation matrix of order p is the Gram matrix of p independent uniform unit vectors
    in R^(p + 1), see `Elliptope.sample_uniform`. The rows of Bartlett's factor, divided by their
    lengths, have a Gram matrix of the same distribution.
    """
    rows = [_over(row, _squared_length(row).sqrt()) for row in bartlett_factor(order, draw)]
    products = gram(rows)
    return [products[i][j] for i in range(order) for j in range(i + 1, order)]


def spectraplex(order: int, draw: Draw) -> Vector:
    """A uniform psd matrix of trace at most 1, in svec coordinates (X-SPX).

    The matrix is U^(1/D) W / tr W, where U is uniform on [0, 1], and W is a Wishart matrix of order
    d with d + 1 degrees of freedom. D = d (d + 1) / 2 is the dimension.
    """
    size = draw.uniform().root(order * (order + 1) // 2)
    rows = bartlett_factor(order, draw)
    trace = ball_sum([_squared_length(row) for row in rows])
    return [size * entry / trace for entry in _svec(gram(rows))]


def psd_box(order: int, draw: Draw) -> Vector:
    """A uniform psd matrix with diagonal entries at most 1, in svec coordinates (X-PSDBOX).

    The matrix is S R S, where R is a uniform correlation matrix of order d, and S is diagonal with
    S_ii = U_i^(1 / (d + 1)) for U_i uniform on [0, 1].
    """
    scales = [value.root(order + 1) for value in draw.uniforms(order)]
    above = iter(correlations(order, draw) if order > 1 else [])
    two = arb(2).sqrt()
    return [
        scales[i] * scales[i] if i == j else two * scales[i] * scales[j] * next(above)
        for i in range(order)
        for j in range(i, order)
    ]


def _svec(matrix: list[Vector]) -> Vector:
    """The svec coordinates of a symmetric matrix."""
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
