"""Half the diameter of a body: the Lipschitz constant of half its width."""

from __future__ import annotations

import functools
import math

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bodies.base import Body
from geomdp.bodies.of_workloads.workload_polytope import WorkloadPolytope
from geomdp.bodies.operations.products import Product
from geomdp.bodies.operations.transforms import Scaled, Shifted

#: Entries of one batch of directions: 16 MB of float64.
BATCH_ENTRIES = 2**21
#: Below this many multiplications the diameter of a list of vertices is found pair by pair.
PAIRS_WORK = 10**8


@functools.singledispatch
def half_diameter(body: Body) -> float:
    """An upper bound on half the diameter of a body, half the diameter itself where cheap.

    `radius` of a symmetric body; for listed vertices half the largest distance, or if there are too
    many pairs the largest distance from the mean; half the workload's diameter for its polytope;
    otherwise the smaller of `radius` and half the diagonal of the bounding box.
    """
    if body.symmetric:
        return body.radius()
    if body.implements("vertex_list"):
        return _of_points(body.vertex_list())
    rows = max(1, BATCH_ENTRIES // body.dimension)
    squares = 0.0
    for start in range(0, body.dimension, rows):
        axes = np.eye(min(rows, body.dimension - start), body.dimension, k=start)
        squares += float((body.breadth(axes) ** 2).sum())
    return min(body.radius(), math.sqrt(squares) / 2)


@half_diameter.register
def _(body: Product) -> float:
    return math.hypot(*(half_diameter(factor) for factor in body.bodies))


@half_diameter.register
def _(body: Scaled) -> float:
    return abs(body.factor) * half_diameter(body.body)


@half_diameter.register
def _(body: Shifted) -> float:
    return half_diameter(body.body)


@half_diameter.register
def _(body: WorkloadPolytope) -> float:
    return min(body.workload.l2_diameter() / 2, body.radius())


def _of_points(points: FloatArray) -> float:
    """Half the largest distance, or if there are too many pairs the largest from the mean."""
    centred = points - points.mean(axis=0)
    squares = np.einsum("nm,nm->n", centred, centred)
    if len(points) * points.size > PAIRS_WORK:
        return math.sqrt(squares.max())
    largest = (squares[:, None] + squares - 2 * centred @ centred.T).max()
    return math.sqrt(max(largest, 0.0)) / 2
