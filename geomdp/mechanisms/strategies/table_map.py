"""The map from the noisy counts of one table to the answers, without forming a matrix."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._typing import FloatArray, IntArray
from geomdp.mechanisms.strategies.interactions import Interactions
from geomdp.noise import KNormNoise, LaplaceNoise
from geomdp.noise.base import Noise
from geomdp.noise.mapped import Columns

#: Largest number of cell counts whose basis is changed at a time: 2^22 float64 take 32 MB. A larger
#: array is divided into parts of whole columns, and each part has at least one column.
MAX_NUMBERS = 1 << 22


@dataclass(frozen=True, eq=False)
class TableMap:
    """The part R x of the answers that comes from one table, where x are the counts of its cells.

    Several tables can estimate an interaction (see `Interactions`). R multiplies each by the share
    of this table (`shares`, by the position in `interactions.sets`; 0 if missing), because shares
    of all tables add up to 1. R is not formed: O(l) operations for each cell and axis with l
    levels.
    """

    interactions: Interactions = field(repr=False)
    table: tuple[int, ...]
    shares: dict[int, float] = field(repr=False)

    @property
    def shape(self) -> tuple[int, int]:
        return self.interactions.workload.n_queries, self.interactions.cells(self.table)

    @property
    def expansion(self) -> Interactions:
        """The last step of a product with R: it computes the answers from the interactions."""
        return self.interactions

    def to_coordinates(self, columns: Columns) -> FloatArray:
        """Coordinates (dimension, b) of all interactions times shares, from counts (cells, b)."""
        cells, width = columns.shape
        found = np.zeros((self.interactions.dimension, width))
        sources, targets, factors = self._entries
        step = max(1, MAX_NUMBERS // cells)
        for start in range(0, width, step):
            part = columns[:, start : start + step]
            dense = part.toarray() if sp.issparse(part) else np.ascontiguousarray(part)
            own = self.interactions.to_interactions(self.table, dense)[sources]
            found[targets, start : start + step] = factors[:, None] * own
        return found

    def __matmul__(self, columns: Columns) -> FloatArray:
        """The product R x, where x is `columns`, of shape (cells, b) or (cells,)."""
        if columns.ndim == 1:
            return self._image(columns.reshape((-1, 1)))[:, 0]
        return self._image(columns)

    def _image(self, columns: Columns) -> FloatArray:
        return self.interactions.to_answers(self.to_coordinates(columns))

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> FloatArray:
        """The matrix R, of shape `shape`; it fits in memory only for tables of few cells."""
        del copy
        return np.asarray(self @ np.eye(self.shape[1]), dtype=dtype)

    def image_variances(self, noise: Noise) -> FloatArray:
        """Variances (m,) of the m entries of R Z, for the noise Z of a `CellNoise`."""
        match noise:
            case LaplaceNoise():
                along = 2 * noise.scale**2
            case KNormNoise():
                along = noise.second_moment().value / noise.effective_dimension
            case _:
                along = noise.second_moment().value / noise.dimension
        # Z has the same variance along each unit vector of its support. The coordinates of theta_U
        # are inner products of Z with orthogonal vectors of squared length (cells of the table) /
        # (cells of U).
        own, cells = np.zeros(len(self.interactions.sets)), self.shape[1]
        for u, share in self.shares.items():
            stretch = cells / self.interactions.cells(self.interactions.sets[u])
            own[u] = share**2 * along * stretch
        return self.interactions.variances(own)

    @cached_property
    def _entries(self) -> tuple[IntArray, IntArray, FloatArray]:
        """Positions of the coordinates with a share, in the table and in all, and the shares."""
        kept = [
            (sources, targets, np.full(len(sources), self.shares[u]))
            for u, sources, targets in self.interactions.coordinates(self.table)
            if u in self.shares
        ]
        sources, targets, factors = (np.concatenate(parts) for parts in zip(*kept, strict=True))
        return sources, targets, factors
