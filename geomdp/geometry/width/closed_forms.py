"""Bodies whose Gaussian width is known exactly, or through that of a simpler body."""

from __future__ import annotations

import functools
import math

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bodies.base import Body
from geomdp.bodies.norm_balls.balls import Ball, CrossPolytope
from geomdp.bodies.norm_balls.boxes import Box
from geomdp.bodies.norm_balls.ellipsoids import Ellipsoid
from geomdp.bodies.operations.linear_image import LinearImage
from geomdp.bodies.operations.products import Product
from geomdp.bodies.operations.symmetrised import Difference
from geomdp.bodies.operations.transforms import Scaled, Shifted
from geomdp.bodies.polytopes.simplex import Simplex, SimplexDifference
from geomdp.bodies.polytopes.vpolytope import VPolytope
from geomdp.bodies.spectral.spectraplex import Spectraplex
from geomdp.bodies.spectral.symmetric import SpectraplexDifference
from geomdp.geometry.width.gaussian_vectors import (
    mean_gaussian_maximum,
    mean_gaussian_modulus,
    mean_gaussian_norm,
    mean_norm,
)

#: Lengths that agree to this share count as equal: rounding of inner products and decompositions.
EQUAL_LENGTHS = 1e-12
#: Simplices with more vertices are not tested for equal edges: the test takes O(N^2 m).
LARGEST_TESTED = 2048


@functools.singledispatch
def closed_width(body: Body) -> float | None:
    """Gaussian width in closed form or by one-dimensional quadrature (1e-13); None if unknown."""
    del body
    return None


@closed_width.register
def _(body: Ball) -> float:
    return mean_gaussian_norm(body.dimension) * body.radius()


@closed_width.register
def _(body: CrossPolytope) -> float:
    return mean_gaussian_modulus(body.dimension) * body.radius()


@closed_width.register
def _(body: Box) -> float:
    return float((body.upper - body.lower).sum()) / math.sqrt(2 * math.pi)


@closed_width.register
def _(body: Ellipsoid) -> float:
    # ||root^T g|| has the law of ||(s_1 g_1, ..., s_r g_r)|| for the singular values s.
    return mean_norm(np.asarray(np.linalg.svd(body.root, compute_uv=False), dtype=np.float64))


@closed_width.register
def _(body: Simplex) -> float | None:
    edge = _common_edge(body.vertices)
    return None if edge is None else _regular_simplex_width(len(body.vertices), edge)


@closed_width.register
def _(body: VPolytope) -> float | None:
    if len(body.vertices) > body.dimension + 1:
        return None
    edge = _common_edge(body.vertices)
    return None if edge is None else _regular_simplex_width(len(body.vertices), edge)


@closed_width.register
def _(body: Spectraplex) -> float | None:
    if body.d == 1:
        return 1 / math.sqrt(2 * math.pi)
    if body.d == 2:
        # The largest eigenvalue is (g + r) / sqrt(2), g Gaussian and r the norm of two more, and
        # E max(g + r, 0) = integral of r e^(-r^2/2) (r Phi(r) + phi(r)) over r > 0.
        return 3 * math.sqrt(math.pi) / 8 + 1 / (2 * math.sqrt(math.pi))
    return None


@closed_width.register
def _(body: Product) -> float | None:
    parts = [exact_width(factor) for factor in body.bodies]
    known = [part for part in parts if part is not None]
    return math.fsum(known) if len(known) == len(parts) else None


def exact_width(body: Body) -> float | None:
    """`closed_width` of a body or of the simpler one it reduces to; None if unknown."""
    factor, inner = reduced(body)
    width = closed_width(inner)
    return None if width is None else factor * width


def reduced(body: Body) -> tuple[float, Body]:
    """(c, L) with w(K) = c w(L), L as simple as the rules of `_step` make it."""
    factor, inner = _step(body)
    if inner is body:
        return 1.0, body
    deeper, innermost = reduced(inner)
    return factor * deeper, innermost


@functools.singledispatch
def _step(body: Body) -> tuple[float, Body]:
    """One rule, if any applies: w(cK) = |c| w(K), w(K + v) = w(K), w(K - K) = 2 w(K).

    Also w(AK) = c w(K) for a matrix A that multiplies all lengths within the affine hull by c.
    """
    return 1.0, body


@_step.register
def _(body: Scaled) -> tuple[float, Body]:
    return abs(body.factor), body.body


@_step.register
def _(body: Shifted) -> tuple[float, Body]:
    return 1.0, body.body


@_step.register
def _(body: LinearImage) -> tuple[float, Body]:
    inner = body.body.affine_hull()
    stretches = np.linalg.svd(body.matrix @ inner.basis, compute_uv=False)
    if len(stretches) < inner.dimension or len(stretches) == 0:
        return 1.0, body
    if np.ptp(stretches) > EQUAL_LENGTHS * stretches.max():
        return 1.0, body
    return float(stretches.mean()), body.body


@_step.register
def _(body: Difference) -> tuple[float, Body]:
    return 2.0, body.body


@_step.register
def _(body: SimplexDifference) -> tuple[float, Body]:
    return 2.0, Simplex(body.vertices)


@_step.register
def _(body: SpectraplexDifference) -> tuple[float, Body]:
    return 2.0, Spectraplex(body.d)


def _regular_simplex_width(count: int, edge: float) -> float:
    """Width of the hull of `count` points at distance `edge`: edge / sqrt(2) times a frame."""
    return edge / math.sqrt(2) * mean_gaussian_maximum(count)


def _common_edge(vertices: FloatArray) -> float | None:
    """Length of the edges if all are equal, 0 for a point; None if they differ or are too many."""
    count = len(vertices)
    if count == 1:
        return 0.0
    if count > LARGEST_TESTED:
        return None
    centred = vertices - vertices.mean(axis=0)
    products = centred @ centred.T
    squares = np.diag(products)[:, None] + np.diag(products) - 2 * products
    squares = squares[np.triu_indices(count, 1)]
    if np.ptp(squares) > EQUAL_LENGTHS * squares.max():
        return None
    return math.sqrt(squares.mean())
