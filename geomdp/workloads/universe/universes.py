"""Universes: the sets that single records come from.

Records are one array (or DataFrame) with a row per record, or an iterable of chunks of one:

======================  =====================================================================
universe                records
======================  =====================================================================
`FiniteUniverse`        (n,) whole numbers 0..N-1
`BooleanCube`           (n, d) of 0 and 1
`CategoricalProduct`    (n, c) level codes, or a DataFrame that has the columns by name
`UnitBall`              (n, d) reals, each row of Euclidean norm at most 1
`SymmetricCube`         (n, d) reals in [-1, 1]
======================  =====================================================================

Except for categorical columns, a DataFrame is read by position: all its columns, in order. An
error about records names the row (counted from 0 over all chunks) and the column, never the
value. Nothing is clipped into the universe; only `UnitBall` takes back the rounding of a norm.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import whole
from geomdp.workloads.universe.base import Universe
from geomdp.workloads.universe.records import Records, level_codes, reals_in_ball, reals_in_cube

#: The repr of a product lists this many columns; of more it says only how many there are.
LISTED_COLUMNS = 8

__all__ = [
    "BooleanCube",
    "CategoricalProduct",
    "FiniteUniverse",
    "Records",
    "SymmetricCube",
    "UnitBall",
    "Universe",
]


@dataclass(frozen=True, init=False, repr=False)
class FiniteUniverse(Universe):
    """The set {0, ..., N - 1} of a given size N; records are an array (n,) of whole numbers.

    A DataFrame is accepted if it has exactly one column.
    """

    N: int

    def __init__(self, size: int) -> None:
        object.__setattr__(self, "N", whole(size, "size"))

    def __repr__(self) -> str:
        return f"FiniteUniverse({self.N})"

    @property
    def size(self) -> int:
        """Number of elements N."""
        return self.N

    @property
    def record_shape(self) -> tuple[int, ...]:
        """Shape of one record: ()."""
        return ()

    def _elements_at(self, numbers: IntArray) -> IntArray:
        return numbers

    def _numbers(self, records: IntArray) -> IntArray:
        return records

    def _check(self, array: npt.NDArray[Any], first_row: int) -> IntArray:
        return level_codes(array[:, None], (self.N,), None, first_row)[:, 0]

    def _sample(self, n: int, rng: np.random.Generator) -> IntArray:
        return rng.integers(self.N, size=n)


@dataclass(frozen=True, init=False, repr=False)
class CategoricalProduct(Universe):
    """Product of c categorical columns, column i with levels 0..l_i - 1.

    Records are an array (n, c) of level codes in column order, or a DataFrame; from a DataFrame
    the columns are taken by name, other columns are ignored, missing ones raise ``ValueError``.

    Parameters
    ----------
    columns : mapping of column name to number of levels, or sequence of numbers of levels
        Columns of a sequence are named c0, c1, ...
    """

    names: tuple[str, ...]
    levels: tuple[int, ...]

    def __init__(self, columns: Mapping[str, int] | Iterable[int]) -> None:
        if not isinstance(columns, Iterable):
            raise ValueError(f"columns must map names to numbers of levels, got {columns!r}")
        if not isinstance(columns, Mapping):
            columns = {f"c{i}": levels for i, levels in enumerate(columns)}
        if not columns:
            raise ValueError("columns must hold at least 1 column, got 0")
        levels = tuple(whole(n, f"number of levels of {name!r}") for name, n in columns.items())
        object.__setattr__(self, "names", tuple(columns))
        object.__setattr__(self, "levels", levels)

    def __repr__(self) -> str:
        if len(self.levels) > LISTED_COLUMNS:
            return f"CategoricalProduct({len(self.levels)} columns, {self.size} elements)"
        return f"CategoricalProduct({self.columns!r})"

    @property
    def columns(self) -> dict[str, int]:
        """Number of levels of each column, by name, in column order."""
        return dict(zip(self.names, self.levels, strict=True))

    @property
    def size(self) -> int:
        """Number of elements: the product of the numbers of levels."""
        return math.prod(self.levels)

    @property
    def record_shape(self) -> tuple[int, ...]:
        """Shape of one record: (c,)."""
        return (len(self.levels),)

    @property
    def column_names(self) -> tuple[str, ...]:
        """Columns by which a DataFrame is read."""
        return self.names

    def _elements_at(self, numbers: IntArray) -> IntArray:
        codes = np.empty((len(numbers), len(self.levels)), dtype=np.int64)
        for column in range(len(self.levels) - 1, -1, -1):
            numbers, codes[:, column] = np.divmod(numbers, self.levels[column])
        return codes

    def _numbers(self, records: IntArray) -> IntArray:
        return np.asarray(np.ravel_multi_index(tuple(records.T), self.levels), dtype=np.int64)

    def _check(self, array: npt.NDArray[Any], first_row: int) -> IntArray:
        return level_codes(array, self.levels, self.names, first_row)

    def _sample(self, n: int, rng: np.random.Generator) -> IntArray:
        return rng.integers(np.array(self.levels), size=(n, len(self.levels)))


class _Rows(Universe):
    """A universe whose records are rows of d numbers."""

    d: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole(self.d, "d"))

    @property
    def size(self) -> int | None:
        """None: infinite."""
        return None

    @property
    def record_shape(self) -> tuple[int, ...]:
        """Shape of one record: (d,)."""
        return (self.d,)


@dataclass(frozen=True)
class BooleanCube(_Rows):
    """The cube {0, 1}^d; records are an array (n, d) of 0 and 1 (or booleans)."""

    d: int

    @property
    def size(self) -> int:
        """Number of elements 2^d."""
        return 1 << self.d

    def _elements_at(self, numbers: IntArray) -> IntArray:
        # Numbers stay below 2^62, and int64 shifts must stay below 64.
        places = np.minimum(np.arange(self.d - 1, -1, -1), 62)
        return np.ascontiguousarray(numbers[:, None] >> places & 1)

    def _numbers(self, records: IntArray) -> IntArray:
        return np.asarray(records @ (1 << np.arange(self.d - 1, -1, -1)))

    def _check(self, array: npt.NDArray[Any], first_row: int) -> IntArray:
        return level_codes(array, (2,) * self.d, None, first_row)

    def _sample(self, n: int, rng: np.random.Generator) -> IntArray:
        return rng.integers(2, size=(n, self.d))


@dataclass(frozen=True)
class UnitBall(_Rows):
    """The ball {x in R^d : ||x||_2 <= 1}; records are an array (n, d) of reals.

    Rows that were normalised in float64 are accepted although their norm may exceed 1 by rounding:
    by at most (d + 8) 2^-53, as computed. Such a row is shortened by twice that share, so that all
    records lie in the ball exactly (proof: `records.reals_in_ball`). Longer rows are refused.
    """

    d: int

    def _check(self, array: npt.NDArray[Any], first_row: int) -> FloatArray:
        return reals_in_ball(array, first_row)

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        directions = rng.standard_normal((n, self.d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        # P(radius <= r) = r^d, so the radius is U^(1/d).
        return np.asarray(directions * rng.random((n, 1)) ** (1 / self.d))


@dataclass(frozen=True)
class SymmetricCube(_Rows):
    """The cube [-1, 1]^d; records are an array (n, d) of reals."""

    d: int

    def _check(self, array: npt.NDArray[Any], first_row: int) -> FloatArray:
        return reals_in_cube(array, first_row)

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(-1, 1, (n, self.d))
