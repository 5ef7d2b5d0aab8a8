"""A uniform point of a body with a map to answers, in ball arithmetic."""

from __future__ import annotations

from dataclasses import dataclass

import scipy.sparse as sp
from flint import arb

from geomdp._typing import FloatArray
from geomdp.bodies import Body, TableMoments
from geomdp.noise.exact.linear import LinearMap, dyadic, linear_map
from geomdp.noise.exact.points import Computable, uniform_point
from geomdp.noise.exact.tables.cell_maps import cell_map
from geomdp.noise.exact.tables.points import table_cells
from geomdp.noise.exact.variates import Vector


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
