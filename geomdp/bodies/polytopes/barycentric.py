"""Vertices and barycentric coordinates, for a simplex and its difference body."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from geomdp._numerics.linalg import significant
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import whole
from geomdp.bodies.arguments import frozen_array
from geomdp.bodies.base import Body


class Barycentric:
    """The barycentric coordinates y(x) = 1/(r+1) + linear @ (x - centre) of points x on the r + 1
    vertices of a simplex, where `centre` is the mean of the vertices.
    """

    def __init__(self, vertices: FloatArray) -> None:
        # The mean of equal numbers can be rounded to another number.
        same = np.ptp(vertices, axis=0) == 0
        self.centre = np.where(same, vertices[0], vertices.mean(axis=0))
        centred = (vertices - self.centre).T
        # For vertices v_i with mean c, the columns v_i - c add up to 0. So the weighted sum of the
        # columns stays the same if the same number is added to all weights. The weights of least
        # norm therefore add up to 0.
        left, singular, right = np.linalg.svd(centred, full_matrices=False)
        rank = len(vertices) - 1
        found = int(significant(singular).sum())
        if found != rank:
            raise ValueError(
                f"vertices must be affinely independent, got {len(vertices)} with affine hull of "
                f"dimension {found}"
            )
        self.basis = np.ascontiguousarray(left[:, :rank])
        self.singular = singular[:rank]
        self.linear = (right[:rank].T / self.singular) @ self.basis.T

    def weights(self, points: FloatArray) -> FloatArray:
        """Barycentric coordinates (b, r + 1) of the nearest points of the affine hull."""
        return np.asarray(1 / len(self.linear) + (points - self.centre) @ self.linear.T)


@dataclass(frozen=True, eq=False)
class BarycentricBody(Body):
    """Base class of a simplex and of its difference body; stores the vertices of the simplex."""

    vertices: FloatArray  # (r + 1, m), affinely independent

    def __post_init__(self) -> None:
        vertices = frozen_array(self.vertices, "vertices", ndim=2)
        if 0 in vertices.shape or vertices.shape[0] > vertices.shape[1] + 1:
            raise ValueError(
                f"vertices must have shape (r + 1, m) with 0 <= r <= m, m >= 1, got "
                f"{vertices.shape}"
            )
        object.__setattr__(self, "vertices", vertices)

    @classmethod
    def at_units(cls, count: int) -> Self:
        """The body of e_1, ..., e_count in O(count) memory, as a view of 2 count - 1 numbers."""
        body = object.__new__(cls)
        sequence = np.zeros(2 * whole(count, "count", minimum=1) - 1)
        sequence[count - 1] = 1.0
        object.__setattr__(body, "vertices", sliding_window_view(sequence, count)[::-1])
        vars(body)["_at_units"] = True
        return body

    def _summary(self) -> str:
        return f"{len(self.vertices)} vertices"

    @cached_property
    def _map(self) -> Barycentric:
        return Barycentric(self.vertices)

    @cached_property
    def _at_units(self) -> bool:
        """Whether the vertices are the unit vectors e_1, ..., e_(r+1), in this order."""
        rows, columns = self.vertices.shape
        if rows != columns or not (np.diagonal(self.vertices) == 1).all():
            return False
        return bool(np.count_nonzero(self.vertices) == rows)

    @cached_property
    def constant(self) -> BoolArray:
        """Array (m,) that says which coordinates are the same at all vertices."""
        if self._at_units:
            return np.full(self.dimension, self.dimension == 1)
        return np.asarray(np.ptp(self.vertices, axis=0) == 0)

    @property
    def dimension(self) -> int:
        return int(self.vertices.shape[1])

    @property
    def effective_dimension(self) -> int:
        return len(self.vertices) - 1 if self._at_units else self.affine_hull().dimension


def log_simplex_volume(singular: FloatArray) -> float:
    """Logarithm of the volume, from the singular values of the vertices minus their mean."""
    rank = len(singular)
    gram = math.log(rank + 1) / 2 + float(np.log(singular).sum())
    return gram - math.lgamma(rank + 1)
