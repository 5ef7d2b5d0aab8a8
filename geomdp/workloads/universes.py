"""Universes: the sets that single records come from, and the checks on records.

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

An error about records names the row (counted from 0 over all chunks) and the column, never the
value. Nothing is clipped or rounded into the universe.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import BoolArray, FloatArray, IntArray, RandomState
from geomdp._validation import whole
from geomdp.workloads.records import Records, chunk_arrays, numeric_array

__all__ = [
    "BooleanCube",
    "CategoricalProduct",
    "FiniteUniverse",
    "Records",
    "SymmetricCube",
    "UnitBall",
    "Universe",
]

#: Relative rounding allowed above norm 1 in the unit ball: normalising a row in float64 leaves
#: its norm within a few units in the last place (1e-16) of 1, in float32 within 1e-7, which is
#: refused. The reach of a quadratic query grows by at most twice this share.
NORM_TOLERANCE = 1e-9


class Universe(abc.ABC):
    """The set X that one record comes from. Implementations are frozen and hashable."""

    @property
    @abc.abstractmethod
    def size(self) -> int | None:
        """Number of elements |X|; None for an infinite universe."""

    @property
    @abc.abstractmethod
    def record_shape(self) -> tuple[int, ...]:
        """Shape of one record: () for single codes, (d,) for rows."""

    @property
    def dimension(self) -> int:
        """Number of columns of a record array (1 for single codes)."""
        return math.prod(self.record_shape)

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Columns by which a DataFrame is read; None if it is read by position."""
        return None

    @abc.abstractmethod
    def _check(self, array: npt.NDArray[Any], first_row: int) -> npt.NDArray[Any]:
        """`array` in the universe's own type, or ``ValueError`` naming row and column."""

    def validate(self, records: Records, first_row: int = 0) -> npt.NDArray[Any]:
        """Records as an array of the universe's own type: int64 codes or float64 reals.

        Parameters
        ----------
        records : (n, ...) array, DataFrame or list of rows
            One chunk of records.
        first_row : int
            Number of the first row, for messages.

        Returns
        -------
        array
            (n,) + `record_shape`, C-contiguous.

        Raises
        ------
        ValueError
            Not numeric, wrong shape, NaN, or outside the universe; names row and column.
        """
        return self._check(numeric_array(records, self.record_shape, self.column_names), first_row)

    def chunks(self, records: Records | Iterable[Records], rows: int) -> Iterator[npt.NDArray[Any]]:
        """Validated chunks of at most `rows` records, read lazily and only once.

        Parameters
        ----------
        records : array, DataFrame, or iterable of chunks of one
            A list or tuple is an iterable of chunks if it is not empty and all its items are
            DataFrames or arrays with one axis per axis of a record array; any other list or tuple
            is one array, as `numpy.asarray` reads it. Every other iterable (a generator, a reader)
            is an iterable of chunks and is never materialised.
        rows : int
            Largest number of rows of a yielded chunk; larger chunks are split.

        Raises
        ------
        ValueError
            As `validate`; row numbers run on across chunks.
        """
        rows = whole(rows, "rows")
        first_row = 0
        for array in chunk_arrays(records, self.record_shape, self.column_names, rows):
            yield self._check(array, first_row)
            first_row += len(array)

    def elements(self, start: int = 0, stop: int | None = None) -> IntArray:
        """Elements number `start` to `stop` - 1 of a finite universe, as a record array.

        Products are enumerated in row-major order: the last column changes fastest.

        Raises
        ------
        ValueError
            For an infinite universe, or a range outside 0..|X|.
        """
        size = self.size
        if size is None:
            raise ValueError(f"{self!r} is infinite and has no list of elements")
        stop = whole(size if stop is None else stop, "stop", minimum=0, maximum=size)
        start = whole(start, "start", minimum=0, maximum=stop)
        return self._elements(np.arange(start, stop, dtype=np.int64))

    def _elements(self, indices: IntArray) -> IntArray:
        """Elements with the given numbers; only called for finite universes."""
        raise NotImplementedError

    def sample(self, n: int, rng: RandomState = None) -> npt.NDArray[Any]:
        """`n` independent uniform records, as a record array."""
        return self._sample(whole(n, "n", minimum=0), np.random.default_rng(rng))

    @abc.abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """`n` independent uniform records."""


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

    def _check(self, array: npt.NDArray[Any], first_row: int) -> IntArray:
        return _codes(array[:, None], (self.N,), None, first_row)[:, 0]

    def _elements(self, indices: IntArray) -> IntArray:
        return indices

    def _sample(self, n: int, rng: np.random.Generator) -> IntArray:
        return rng.integers(self.N, size=n)


@dataclass(frozen=True)
class BooleanCube(Universe):
    """The cube {0, 1}^d; records are an array (n, d) of 0 and 1 (or booleans)."""

    d: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole(self.d, "d"))

    @property
    def size(self) -> int:
        """Number of elements 2^d."""
        return 1 << self.d

    @property
    def record_shape(self) -> tuple[int, ...]:
        """Shape of one record: (d,)."""
        return (self.d,)

    def _check(self, array: npt.NDArray[Any], first_row: int) -> IntArray:
        return _codes(array, (2,) * self.d, None, first_row)

    def _elements(self, indices: IntArray) -> IntArray:
        return indices[:, None] >> np.arange(self.d - 1, -1, -1) & 1

    def _sample(self, n: int, rng: np.random.Generator) -> IntArray:
        return rng.integers(2, size=(n, self.d))


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

    def __init__(self, columns: Mapping[str, int] | Sequence[int]) -> None:
        if not isinstance(columns, Mapping):
            columns = {f"c{i}": levels for i, levels in enumerate(columns)}
        if not columns:
            raise ValueError("columns must hold at least 1 column, got 0")
        levels = tuple(whole(n, f"number of levels of {name!r}") for name, n in columns.items())
        object.__setattr__(self, "names", tuple(columns))
        object.__setattr__(self, "levels", levels)

    def __repr__(self) -> str:
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

    def _check(self, array: npt.NDArray[Any], first_row: int) -> IntArray:
        return _codes(array, self.levels, self.names, first_row)

    def _elements(self, indices: IntArray) -> IntArray:
        return np.stack(np.unravel_index(indices, self.levels), axis=1)

    def _sample(self, n: int, rng: np.random.Generator) -> IntArray:
        return rng.integers(np.array(self.levels), size=(n, len(self.levels)))


@dataclass(frozen=True)
class UnitBall(Universe):
    """The ball {x in R^d : ||x||_2 <= 1}; records are an array (n, d) of reals.

    Norms up to 1 + 1e-9 are accepted, for rounding.
    """

    d: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole(self.d, "d"))

    @property
    def size(self) -> None:
        """None: infinite."""
        return None

    @property
    def record_shape(self) -> tuple[int, ...]:
        """Shape of one record: (d,)."""
        return (self.d,)

    def _check(self, array: npt.NDArray[Any], first_row: int) -> FloatArray:
        reals = _reals(array, first_row)
        outside = np.linalg.norm(reals, axis=1) > 1 + NORM_TOLERANCE
        if outside.any():
            row = first_row + int(np.argmax(outside))
            raise ValueError(f"records must have Euclidean norm at most 1: row {row} is above")
        return reals

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        directions = rng.standard_normal((n, self.d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        # P(radius <= r) = r^d, so the radius is U^(1/d).
        return directions * rng.random((n, 1)) ** (1 / self.d)


@dataclass(frozen=True)
class SymmetricCube(Universe):
    """The cube [-1, 1]^d; records are an array (n, d) of reals."""

    d: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole(self.d, "d"))

    @property
    def size(self) -> None:
        """None: infinite."""
        return None

    @property
    def record_shape(self) -> tuple[int, ...]:
        """Shape of one record: (d,)."""
        return (self.d,)

    def _check(self, array: npt.NDArray[Any], first_row: int) -> FloatArray:
        reals = _reals(array, first_row)
        outside = np.abs(reals) > 1
        if outside.any():
            place = _place(outside, first_row, None)
            raise ValueError(f"records must lie in [-1, 1]: {place} is outside")
        return reals

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(-1, 1, (n, self.d))


def _place(bad: BoolArray, first_row: int, names: tuple[str, ...] | None) -> str:
    """Where the first True of `bad` (n, c) is, in words."""
    row, column = (int(i) for i in np.argwhere(bad)[0])
    label = str(column) if names is None else f"{names[column]!r}"
    return f"row {first_row + row}, column {label}"


def _codes(
    array: npt.NDArray[Any],
    levels: tuple[int, ...],
    names: tuple[str, ...] | None,
    first_row: int,
) -> IntArray:
    """`array` (n, c) as int64 codes below `levels`, or ``ValueError`` naming row and column."""
    if array.dtype.kind == "f":
        broken = array != np.floor(array)  # True for NaN, False for an infinity
        if broken.any():
            place = _place(broken, first_row, names)
            raise ValueError(f"records must be whole numbers: {place} is not")
    outside = (array < 0) | (array >= np.array(levels))
    if outside.any():
        column = np.argwhere(outside)[0, 1]
        place = _place(outside, first_row, names)
        top = levels[column] - 1
        raise ValueError(f"records must be codes from 0 to {top}: {place} is outside")
    return np.ascontiguousarray(array, dtype=np.int64)


def _reals(array: npt.NDArray[Any], first_row: int) -> FloatArray:
    """`array` (n, d) as finite float64, or ``ValueError`` naming row and column."""
    reals = np.ascontiguousarray(array, dtype=np.float64)
    broken = ~np.isfinite(reals)
    if broken.any():
        raise ValueError(f"records must be finite: {_place(broken, first_row, None)} is not")
    return reals
