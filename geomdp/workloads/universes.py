"""Universes: the sets of possible values of a record, their numbering, and the check of records.

Records are one array (or DataFrame) with a row per record, or an iterable of such chunks.
`CategoricalProduct` takes the columns of a DataFrame by name, the others take all in order. Errors
name the row (counted from 0 over all chunks) and for an entry the column, but no value. No record
is clipped; only `UnitBall` shortens rows whose norm may exceed 1 by rounding.
"""

from __future__ import annotations

import abc
import math
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from geomdp._typing import BoolArray, FloatArray, IntArray, RandomState
from geomdp._validation import listed, whole

if TYPE_CHECKING:
    import pandas as pd


#: Records: an array or a DataFrame with one row per record.
Records: TypeAlias = "npt.NDArray[Any] | pd.DataFrame"
#: Largest number of elements that are listed and numbered: sums of two numbers fit in an int64.
MAX_ELEMENT_NUMBER = 1 << 62


class Universe(abc.ABC):
    """The set X of possible values of a record. Implementations are frozen and hashable.

    Examples
    --------
    >>> import geomdp as gd
    >>> universe = gd.workloads.CategoricalProduct([2, 3])
    >>> universe.elements(3, 5)
    array([[1, 0],
           [1, 1]])
    >>> universe.numbers([[1, 2]])
    array([5])
    """

    @property
    def size(self) -> int | None:
        """Number of elements |X|; None for an infinite universe."""
        return None

    @property
    def record_shape(self) -> tuple[int, ...]:
        """Shape of one record: () for single codes, (d,) for rows."""
        return ()

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns to take from a DataFrame; None to take all columns in order."""
        return None

    def validate(self, records: Records, first_row: int = 0) -> npt.NDArray[Any]:
        """Records as a C-contiguous array (n,) + `record_shape` of int64 codes or float64 reals.

        `records` are one chunk: an array (n, ...), a DataFrame or a list of rows. ``ValueError`` if
        they are not numeric, of another shape, NaN, or outside the universe. The message names the
        row, counted from `first_row`, and the column if a single entry is wrong.
        """
        return self._check(numeric_array(records, self.record_shape, self.column_names), first_row)

    def chunks(self, records: Records | Iterable[Records], rows: int) -> Iterator[npt.NDArray[Any]]:
        """Checked chunks of at most `rows` records, read lazily and only once.

        A list or tuple is a list of chunks if each item is a DataFrame or an array with the axes of
        a record array; else its items are records. Another iterable yields chunks. Arrays and
        errors are as in `validate`; row numbers count over all chunks.
        """
        rows = whole(rows, "rows")
        first_row = 0
        for array in chunk_arrays(records, self.record_shape, self.column_names, rows):
            yield self._check(array, first_row)
            first_row += len(array)

    def elements(self, start: int = 0, stop: int | None = None) -> IntArray:
        """The elements with numbers `start` to `stop` - 1 of a finite universe, as a record array.

        Products are in row-major order: the last column changes fastest. ``ValueError`` for an
        infinite universe, a range outside 0..|X|, or numbers of 2^62 or more.
        """
        end = self._finite_size()
        stop = whole(end if stop is None else stop, "stop", minimum=0, maximum=end)
        start = whole(start, "start", minimum=0, maximum=stop)
        return self._elements_at(np.arange(start, stop, dtype=np.int64))

    def elements_at(self, numbers: IntArray) -> IntArray:
        """Elements with `numbers` (b,) in the order of `elements`; ``ValueError`` as there."""
        end = self._finite_size()
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < end):
            raise ValueError(
                f"element numbers must be from 0 to {end - 1}, "
                f"got {numbers.min()} to {numbers.max()}"
            )
        return self._elements_at(numbers)

    def numbers(self, records: Records) -> IntArray:
        """The inverse (n,) of `elements_at`; ``ValueError`` also if |X| > 2^62."""
        if self._finite_size() != self.size:
            raise ValueError(f"{self!r} has more than 2^62 elements, too many to number")
        return self._numbers(self.validate(records))

    def _finite_size(self) -> int:
        """The size |X|, or 2^62 if |X| is larger; ``ValueError`` for an infinite universe."""
        if self.size is None:
            raise ValueError(f"{self!r} is infinite and has no list of elements")
        return min(self.size, MAX_ELEMENT_NUMBER)

    def _elements_at(self, numbers: IntArray) -> IntArray:
        raise NotImplementedError

    def _numbers(self, records: IntArray) -> IntArray:
        raise NotImplementedError

    def sample(self, n: int, rng: RandomState = None) -> npt.NDArray[Any]:
        """`n` independent uniform records, as a record array."""
        return self._sample(whole(n, "n", minimum=0), np.random.default_rng(rng))

    @abc.abstractmethod
    def _check(self, array: npt.NDArray[Any], first_row: int) -> npt.NDArray[Any]:
        """`array` in the type of the universe; ``ValueError`` for a record outside it."""

    @abc.abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> npt.NDArray[Any]: ...


@dataclass(frozen=True, init=False, repr=False)
class FiniteUniverse(Universe):
    """The set {0, ..., N - 1}; records are an array (n,) of codes, or a DataFrame of one column."""

    N: int

    def __init__(self, size: int) -> None:
        object.__setattr__(self, "N", whole(size, "size"))

    def __repr__(self) -> str:
        return f"FiniteUniverse({self.N})"

    @property
    def size(self) -> int:
        return self.N

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

    Records are an array (n, c) of level codes, or a DataFrame whose columns are taken by name. A
    missing column raises ``ValueError``, and additional columns are ignored.

    Parameters
    ----------
    columns : mapping of str to int, or sequence of int
        Number of levels of each column. Columns given by a sequence are named c0, c1, ...

    Examples
    --------
    >>> import pandas as pd
    >>> import geomdp as gd
    >>> universe = gd.workloads.CategoricalProduct({"region": 3, "smoker": 2})
    >>> universe.validate(pd.DataFrame({"smoker": [1, 0], "region": [2, 0]}))
    array([[2, 1],
           [0, 0]])
    """

    names: tuple[str, ...]
    levels: tuple[int, ...]

    def __init__(self, columns: Mapping[str, int] | Iterable[int]) -> None:
        if not isinstance(columns, Mapping):
            columns = {f"c{i}": levels for i, levels in enumerate(listed(columns, "columns"))}
        if not columns:
            raise ValueError("columns must hold at least 1 column, got 0")
        levels = tuple(whole(n, f"number of levels of {name!r}") for name, n in columns.items())
        object.__setattr__(self, "names", tuple(columns))
        object.__setattr__(self, "levels", levels)

    def __repr__(self) -> str:
        if len(self.levels) > 8:
            return f"CategoricalProduct({len(self.levels)} columns, {self.size} elements)"
        return f"CategoricalProduct({self.columns!r})"

    @property
    def columns(self) -> dict[str, int]:
        """Number of levels of each column, by name, in column order."""
        return dict(zip(self.names, self.levels, strict=True))

    @property
    def size(self) -> int:
        return math.prod(self.levels)

    @property
    def record_shape(self) -> tuple[int, ...]:
        return (len(self.levels),)

    @property
    def column_names(self) -> tuple[str, ...]:
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


@dataclass(frozen=True)
class _Rows(Universe):
    d: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole(self.d, "d"))

    @property
    def record_shape(self) -> tuple[int, ...]:
        return (self.d,)


@dataclass(frozen=True)
class BooleanCube(_Rows):
    """The cube {0, 1}^d; records are an array (n, d) of 0 and 1 (or booleans).

    Examples
    --------
    >>> import geomdp as gd
    >>> cube = gd.workloads.BooleanCube(3)
    >>> cube.size, cube.numbers([[1, 1, 0]])
    (8, array([6]))
    """

    @property
    def size(self) -> int:
        return 1 << self.d

    def _elements_at(self, numbers: IntArray) -> IntArray:
        # Numbers are below 2^62, so higher bits are 0. A shift of an int64 by 64 is not defined.
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

    For t = (d + 8) 2^-53, a row is accepted if its computed norm is at most 1 + t, and multiplied
    by 1 - 2 t if its exact norm may be above 1. So all records lie in the ball (proof: `_check`).

    Examples
    --------
    >>> import geomdp as gd
    >>> try:
    ...     gd.workloads.UnitBall(2).validate([[0.6, 0.8], [1.0, 1.0]])
    ... except ValueError as reason:
    ...     print(reason)
    records must have Euclidean norm at most 1: row 1 is above
    """

    def _check(self, array: npt.NDArray[Any], first_row: int) -> FloatArray:
        # Let u = 2^-53 and t = (d + 8) u. Proof of the rule, up to terms of order (d u)^2: the
        # relative error of a computed norm is at most (d / 2 + 2) u, and each entry of
        # y = x / ||x|| is rounded once more. So the exact norm of y is at most 1 + (d / 2 + 3) u,
        # the computed norm is at most 1 + (d + 5) u, and y is accepted. An accepted row has an
        # exact norm of at most 1 + (d + 9) u + (d / 2 + 2) u, and after multiplication by 1 - 2 t,
        # which rounds once more, of at most 1 - (d / 2 + 4) u. A computed norm of at most 1 - t
        # implies an exact norm below 1.
        reals = _finite(array, first_row)
        tolerance = (reals.shape[1] + 8) * ROUNDOFF
        with np.errstate(over="ignore"):  # infinite norms are rejected
            norms = np.linalg.norm(reals, axis=1)
        outside = norms > 1 + tolerance
        if outside.any():
            row = first_row + int(np.argmax(outside))
            raise ValueError(f"records must have Euclidean norm at most 1: row {row} is above")
        near = np.flatnonzero(norms > 1 - tolerance)
        above = near[_above_one(reals[near])]
        if len(above):
            reals = reals.copy()  # The array of the caller is not changed.
            reals[above] *= 1 - 2 * tolerance
        return reals

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        directions = rng.standard_normal((n, self.d))
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        # P(radius <= r) = r^d, so the radius is U^(1/d) for uniform U in [0, 1].
        return np.asarray(directions * rng.random((n, 1)) ** (1 / self.d))


@dataclass(frozen=True)
class SymmetricCube(_Rows):
    """The cube [-1, 1]^d; records are an array (n, d) of reals.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.workloads.SymmetricCube(2).validate([[0, 1], [-1, 1]])
    array([[ 0.,  1.],
           [-1.,  1.]])
    """

    def _check(self, array: npt.NDArray[Any], first_row: int) -> FloatArray:
        reals = _finite(array, first_row)
        _require(np.abs(reals) <= 1, first_row, None, "lie in [-1, 1]", "is outside")
        return reals

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(-1, 1, (n, self.d))


#: Records of the open universe: an iterable of elements, or of arrays, Series or lists of elements.
Elements: TypeAlias = "Iterable[Hashable] | Records | Iterable[Records]"


@dataclass(frozen=True)
class OpenUniverse(Universe):
    """All hashable Python objects; they are the same if Python calls them equal (``1 == True``).

    Records are an iterable of elements or of chunks, which are arrays, Series or lists. An element
    must equal itself, so NaN and ``pandas.NA`` are refused, also within tuples.
    """

    def validate(self, records: Elements, first_row: int = 0) -> npt.NDArray[Any]:
        return self._check(_object_array(list(_elements(records))), first_row)

    def chunks(self, records: Elements, rows: int) -> Iterator[npt.NDArray[Any]]:
        rows = whole(rows, "rows")
        stream, first_row = _elements(records), 0
        while chunk := list(islice(stream, rows)):
            yield self._check(_object_array(chunk), first_row)
            first_row += len(chunk)

    def _check(self, array: npt.NDArray[Any], first_row: int) -> npt.NDArray[Any]:
        for row, element in enumerate(array, start=first_row):
            try:
                hash(element)
            except TypeError as error:
                kind = type(element).__name__
                raise ValueError(f"records must be hashable: row {row} is a {kind}") from error
            if not _equals_itself(element):
                rule = "records must not be missing values such as NaN"
                raise ValueError(f"{rule}: row {row} does not equal itself")
        return array

    def _sample(self, n: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        del n, rng
        raise ValueError(f"{self!r} is infinite and has no uniform distribution")


def _object_array(elements: list[Hashable]) -> npt.NDArray[Any]:
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array


def _equals_itself(element: Hashable) -> bool:
    # Python compares the parts of tuples by identity first, so a tuple with NaN equals itself.
    if isinstance(element, tuple):
        return all(map(_equals_itself, element))
    same = element == element
    return isinstance(same, bool | np.bool_) and bool(same)


def _elements(records: object) -> Iterator[Hashable]:
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        raise ValueError(f"records must be an iterable of elements, got {type(records).__name__}")
    if hasattr(records, "tolist") or hasattr(records, "columns"):
        return iter(_as_list(records))
    return chain.from_iterable(
        _as_list(item) if isinstance(item, list) or hasattr(item, "__array__") else (item,)
        for item in records
    )


def _as_list(chunk: Any) -> list[Hashable]:
    if isinstance(chunk, list):
        return [item.item() if isinstance(item, np.generic) else item for item in chunk]
    axes = getattr(chunk, "ndim", None)
    if axes == 0:  # A NumPy scalar is an element, not a chunk.
        return [chunk.item()]
    if axes != 1:
        shape = getattr(chunk, "shape", None)
        raise ValueError(f"records must be one-dimensional, got {type(chunk).__name__} of {shape}")
    return list(chunk.tolist())


# Records as numeric arrays, with unchecked values.


def _is_frame(records: object) -> TypeGuard[pd.DataFrame]:
    pandas = sys.modules.get("pandas")  # an import would be slow
    return pandas is not None and isinstance(records, pandas.DataFrame)


def numeric_array(
    records: object, record_shape: tuple[int, ...], column_names: tuple[str, ...] | None
) -> npt.NDArray[Any]:
    """A chunk as a numeric array (n,) + `record_shape`, with unchecked values."""
    if _is_frame(records):
        array = _frame_array(records, column_names)
        if record_shape == () and array.shape[1] == 1:
            array = array[:, 0]
    elif isinstance(records, list | tuple) and not records:
        array = np.empty((0, *record_shape))
    elif np.ma.is_masked(records):
        raise ValueError("records must have no masked entries")
    else:
        try:
            array = np.asarray(records)
        except ValueError as error:  # ragged rows
            raise ValueError("records must form a rectangular array") from error
    if array.dtype.kind not in "biuf":
        raise ValueError(f"records must be numeric, got dtype {array.dtype}")
    if array.ndim != 1 + len(record_shape) or array.shape[1:] != record_shape:
        wanted = f"(n, {record_shape[0]})" if record_shape else "(n,)"
        raise ValueError(f"records must have shape {wanted}, got {array.shape}")
    return array


def _frame_array(frame: pd.DataFrame, column_names: tuple[str, ...] | None) -> npt.NDArray[Any]:
    """Columns of a DataFrame as one numeric array (n, c); missing values become NaN."""
    if not frame.columns.is_unique:
        raise ValueError(f"records must have each column once, got {list(frame.columns)}")
    if column_names is not None:
        missing = [name for name in column_names if name not in frame.columns]
        if missing:
            raise ValueError(f"records must have the columns {missing}, got {list(frame.columns)}")
        frame = frame[list(column_names)]
    columns = []
    for position, name in enumerate(frame.columns):
        series = frame.iloc[:, position]
        if series.dtype.kind not in "biuf":
            raise ValueError(f"records must be numeric, column {name!r} has dtype {series.dtype}")
        if isinstance(series.dtype, np.dtype):
            columns.append(series.to_numpy())
        elif series.dtype.kind in "iu" and not series.hasnans:  # Nullable and Arrow types
            columns.append(series.to_numpy(np.dtype(f"{series.dtype.kind}8")))
        else:
            columns.append(series.to_numpy(np.float64, na_value=np.nan))
    return np.column_stack(columns) if columns else np.empty((len(frame), 0))


def chunk_arrays(
    records: Records | Iterable[Records],
    record_shape: tuple[int, ...],
    column_names: tuple[str, ...] | None,
    rows: int,
) -> Iterator[npt.NDArray[Any]]:
    """Chunks of at most `rows` records as numeric arrays, read once; see `Universe.chunks`."""
    for chunk in _as_chunks(records, axes=1 + len(record_shape)):
        if _is_frame(chunk):
            # Convert part by part, to avoid a second copy of a large DataFrame.
            for start in range(0, max(len(chunk), 1), rows):
                part = chunk.iloc[start : start + rows]
                yield numeric_array(part, record_shape, column_names)
        else:
            array = numeric_array(chunk, record_shape, column_names)
            for start in range(0, len(array), rows):
                yield array[start : start + rows]


def _as_chunks(records: object, axes: int) -> Iterable[object]:
    if _is_frame(records) or hasattr(records, "__array__"):
        return [records]
    if isinstance(records, list | tuple):
        in_chunks = records and all(
            _is_frame(item) or (isinstance(item, np.ndarray) and item.ndim == axes)
            for item in records
        )
        return records if in_chunks else [records]
    if isinstance(records, str | bytes | Mapping) or not isinstance(records, Iterable):
        kinds = "an array, a DataFrame or an iterable of arrays or DataFrames"
        raise ValueError(f"records must be {kinds}, got {type(records).__name__}")
    return records


# Checks of values.

#: Unit roundoff u of float64.
ROUNDOFF = 2.0**-53
#: `_above_one` splits an entry into a multiple of 1 / SPLIT, of exact square, and a small rest.
SPLIT = 2.0**26


def _require(
    good: BoolArray, first_row: int, names: tuple[str, ...] | None, rule: str, fault: str = "is not"
) -> None:
    """Name the row and the column of the first entry of `good` (n, c) that is False."""
    if not good.all():
        row, column = (int(i) for i in np.argwhere(~good)[0])
        label = column if names is None else repr(names[column])
        place = f"row {first_row + row}, column {label}"
        raise ValueError(f"records must {rule}: {place} {fault}")


def level_codes(
    array: npt.NDArray[Any], levels: tuple[int, ...], names: tuple[str, ...] | None, first_row: int
) -> IntArray:
    """`array` (n, c) as int64 codes below `levels`."""
    if array.dtype.kind == "f":  # NaN is refused here. An infinity fails the next check.
        _require(array == np.floor(array), first_row, names, "be whole numbers")
    inside = (array >= 0) & (array < np.array(levels))
    if not inside.all():
        top = levels[np.argwhere(~inside)[0, 1]] - 1
        _require(inside, first_row, names, f"be codes from 0 to {top}", "is outside")
    if array.dtype.kind == "f":
        # Beside one float, NumPy and pandas make floats of all codes, which rounds large ones.
        exact = array < 2.0 ** (np.finfo(array.dtype).nmant + 1)
        fault = "is a float that may be rounded"
        _require(exact, first_row, names, "be stored as whole numbers", fault)
    return np.ascontiguousarray(array, dtype=np.int64)


def _finite(array: npt.NDArray[Any], first_row: int) -> FloatArray:
    reals = np.ascontiguousarray(array, dtype=np.float64)
    _require(np.isfinite(reals), first_row, None, "be finite")
    return reals


def _above_one(rows: FloatArray) -> BoolArray:
    """Whether the exact norm of each row x of `rows` (n, d) near 1 is above 1; True if unknown.

    c holds the multiples of 2^-26 nearest to x, and f = x - c. ||x||^2 is the sum of c_i^2, exact
    in float64, plus the sum of f_i (x_i + c_i). As |f_i| <= 2^-27, the rounding error of the second
    sum is at most (d + 2) u 2^-27 (2 ||x|| + 2^-27 sqrt(d)) sqrt(d) < 2^-77 d^(3/2) for d < 2^50,
    and 0 if f is 0.
    """
    coarse = np.round(rows * SPLIT) / SPLIT
    fine = rows - coarse
    excess = ((coarse**2).sum(axis=1) - 1) + (fine * (rows + coarse)).sum(axis=1)
    doubt = np.where(fine.any(axis=1), 2.0**-77 * rows.shape[1] ** 1.5, 0.0)
    return np.asarray(excess > -doubt)
