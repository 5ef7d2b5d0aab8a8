"""Counts of records: the input of private measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from geomdp._typing import IntArray
from geomdp.workloads.universe.universes import CategoricalProduct, Universe


class Counts(Protocol):
    """Counts of records; `CountedRecords` and `RecordCounts` satisfy this protocol."""

    @property
    def count(self) -> int:
        """Number of records."""

    def table(self, columns: Sequence[int]) -> IntArray:
        """Counts of the table of `columns`, with one axis per column, in the order of `columns`."""

    def histogram(self) -> IntArray:
        """How often each of the N elements of the universe occurs, as an array (N,)."""


@dataclass(frozen=True, eq=False)
class RecordCounts:
    """Counts of valid records that are in memory, in the encoding of the universe."""

    universe: Universe
    records: npt.NDArray[Any] = field(repr=False)

    @property
    def count(self) -> int:
        return len(self.records)

    def table(self, columns: Sequence[int]) -> IntArray:
        assert isinstance(self.universe, CategoricalProduct)
        shape = tuple(self.universe.levels[column] for column in columns)
        if not shape:
            return np.array(self.count)
        cells = np.ravel_multi_index(tuple(self.records[:, list(columns)].T), shape)
        return np.bincount(cells, minlength=math.prod(shape)).reshape(shape)

    def histogram(self) -> IntArray:
        size = self.universe.size
        assert size is not None
        return np.bincount(self.universe.numbers(self.records), minlength=size)
