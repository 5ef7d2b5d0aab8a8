"""Universes: the sets of possible values of a record, their numbering, and the check of records.

Records are one array (or DataFrame) with a row per record, or an iterable of such chunks:

======================  =====================================================================
universe                records
======================  =====================================================================
`FiniteUniverse`        (n,) whole numbers 0..N-1
`BooleanCube`           (n, d) of 0 and 1
`CategoricalProduct`    (n, c) level codes, or a DataFrame that has the columns by name
`UnitBall`              (n, d) reals, each row of Euclidean norm at most 1
`SymmetricCube`         (n, d) reals in [-1, 1]
======================  =====================================================================

`CategoricalProduct` takes the columns of a DataFrame by name, the others take all columns in order.
Errors name the row (counted from 0 over all chunks) and for an entry the column, but no value. No
record is clipped; only `UnitBall` shortens rows whose norm may exceed 1 by rounding.

`OpenUniverse` takes hashable objects of any kind, and has no declared size.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray, RandomState
from geomdp._validation import listed, whole
from geomdp.workloads.records import (
    Records,
    chunk_arrays,
    level_codes,
    numeric_array,
    reals_in_ball,
    reals_in_cube,
)

__all__ = [
    "BooleanCube",
    "CategoricalProduct",
    "Elements",
    "FiniteUniverse",
    "OpenUniverse",
    "Records",
    "SymmetricCube",
    "UnitBall",
    "Universe",
]


#: `elements` lists only elements with numbers below this limit, and `numbers` refuses universes of
#: more elements. If two numbers below 2^62 are added, the result fits in an int64.
MAX_ELEMENT_NUMBER = 1 << 62


class Universe(abc.ABC):
    """The set X of possible values of a record. Implementations are frozen and hashable.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> universe = gd.workloads.CategoricalProduct([2, 3])
    >>> universe.elements(0, 4)
    array([[0, 0],
           [0, 1],
           [0, 2],
           [1, 0]])
    >>> universe.numbers(np.array([[1, 2]]))
    array([5])
    >>> universe.sample(2, 0).shape
    (2, 2)
    """

    @property
    @abc.abstractmethod
    def size(self) -> int | None:
        """Number of elements |X|; None for an infinite universe."""

    @property
    @abc.abstractmethod
    def record_shape(self) -> tuple[int, ...]:
        """Shape of one record: () for single codes, (d,) for rows."""

    @property
    def column_names(self) -> tuple[str, ...] | None:
        """Names of the columns to take from a DataFrame; None to take all columns in order."""
        return None

    def validate(self, records: Records, first_row: int = 0) -> npt.NDArray[Any]:
        """Records as a C-contiguous array (n,) + `record_shape` of int64 codes or float64 reals.

        `records` are one chunk: a (n, ...) array, a DataFrame or a list of rows. ``ValueError`` if
        they are not numeric, of another shape, NaN, or outside the universe. The message names the
        row, counted from `first_row`, and the column if a single entry is wrong.
        """
        return self._check(numeric_array(records, self.record_shape, self.column_names), first_row)

    def chunks(self, records: Records | Iterable[Records], rows: int) -> Iterator[npt.NDArray[Any]]:
        """Checked chunks of at most `rows` records, read lazily and only once.

        A list or tuple is a list of chunks if each item is a DataFrame or an array with the axes of
        a record array; else its items are records. Another iterable yields chunks, with one in
        memory at a time. Arrays and errors are as in `validate`; row numbers count over all chunks.
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
    def _sample(self, n: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """`n` independent uniform records."""


#: Largest number of columns that the repr of a `CategoricalProduct` lists. For more columns, the
#: repr states only the numbers of columns and elements.
LISTED_COLUMNS = 8


@dataclass(frozen=True, init=False, repr=False)
class FiniteUniverse(Universe):
    """The set {0, ..., N - 1} of a given size N; records are an array (n,) of whole numbers.

    A DataFrame must have exactly one column.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> universe = gd.workloads.FiniteUniverse(4)
    >>> universe.elements()
    array([0, 1, 2, 3])
    >>> try:
    ...     universe.validate(np.array([0, 4]))
    ... except ValueError as reason:
    ...     print(reason)
    records must be codes from 0 to 3: row 1, column 0 is outside
    """

    N: int

    def __init__(self, size: int) -> None:
        object.__setattr__(self, "N", whole(size, "size"))

    def __repr__(self) -> str:
        return f"FiniteUniverse({self.N})"

    @property
    def size(self) -> int:
        return self.N

    @property
    def record_shape(self) -> tuple[int, ...]:
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
    >>> universe.size
    6
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
        if len(self.levels) > LISTED_COLUMNS:
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


class _Rows(Universe):
    d: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "d", whole(self.d, "d"))

    @property
    def size(self) -> int | None:
        return None

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
    >>> cube.size
    8
    >>> cube.elements(0, 4)
    array([[0, 0, 0],
           [0, 0, 1],
           [0, 1, 0],
           [0, 1, 1]])
    >>> cube.numbers(cube.sample(5, 0))
    array([7, 0, 0, 7, 7])
    """

    d: int

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

    Let t = (d + 8) 2^-53. A row is accepted if its computed norm is at most 1 + t. If the exact
    norm of an accepted row is above 1, or float64 cannot decide whether it is, the row is
    multiplied by 1 - 2 t. So all records lie in the ball exactly (proof: `records.reals_in_ball`).

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> ball = gd.workloads.UnitBall(2)
    >>> try:
    ...     ball.validate(np.array([[0.6, 0.8], [1.0, 1.0]]))
    ... except ValueError as reason:
    ...     print(reason)
    records must have Euclidean norm at most 1: row 1 is above
    """

    d: int

    def _check(self, array: npt.NDArray[Any], first_row: int) -> FloatArray:
        return reals_in_ball(array, first_row)

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
    >>> import numpy as np
    >>> import geomdp as gd
    >>> cube = gd.workloads.SymmetricCube(2)
    >>> cube.validate(np.array([[0, 1], [-1, 1]]))
    array([[ 0.,  1.],
           [-1.,  1.]])
    >>> cube.sample(3, 0).shape
    (3, 2)
    """

    d: int

    def _check(self, array: npt.NDArray[Any], first_row: int) -> FloatArray:
        return reals_in_cube(array, first_row)

    def _sample(self, n: int, rng: np.random.Generator) -> FloatArray:
        return rng.uniform(-1, 1, (n, self.d))


#: Records of the open universe: an iterable of elements, or of arrays, Series or lists of elements.
Elements: TypeAlias = "Iterable[Hashable] | Records | Iterable[Records]"


@dataclass(frozen=True)
class OpenUniverse(Universe):
    """All hashable Python objects, such as strings, whole numbers and tuples.

    Records are an iterable of elements, such as a list, a Series, a one-dimensional array or a
    generator, but not a text or a mapping. An item that is an array, a Series or a list is a chunk
    of records, and a tuple is one element. `chunks` reads a generator once, one chunk at a time.
    Elements are the same if Python calls them equal (``1 == 1.0 == True``). An element must equal
    itself, so NaN and ``pandas.NA`` are refused, also within tuples. None is accepted.

    Examples
    --------
    >>> import geomdp as gd
    >>> universe = gd.workloads.OpenUniverse()
    >>> universe.validate(["north", ("south", 3)])
    array(['north', ('south', 3)], dtype=object)
    >>> for chunk in universe.chunks((word for word in ["a", "b", "c"]), rows=2):
    ...     print(chunk)
    ['a' 'b']
    ['c']
    """

    @property
    def size(self) -> int | None:
        return None

    @property
    def record_shape(self) -> tuple[int, ...]:
        return ()

    def validate(self, records: Elements, first_row: int = 0) -> npt.NDArray[Any]:
        """The records as objects (n,); ``ValueError`` names the row of a wrong element."""
        chunk = list(_elements(records))
        array = np.empty(len(chunk), dtype=object)
        array[:] = chunk
        return self._check(array, first_row)

    def chunks(self, records: Elements, rows: int) -> Iterator[npt.NDArray[Any]]:
        rows = whole(rows, "rows")
        stream, first_row = _elements(records), 0
        while chunk := list(islice(stream, rows)):
            array = np.empty(len(chunk), dtype=object)
            array[:] = chunk
            yield self._check(array, first_row)
            first_row += len(chunk)

    def _check(self, array: npt.NDArray[Any], first_row: int) -> npt.NDArray[Any]:
        for row, element in enumerate(array, start=first_row):
            try:
                hash(element)
            except TypeError as error:
                kind = type(element).__name__
                raise ValueError(f"records must be hashable: row {row} is a {kind}") from error
            if not _equals_itself(element):
                raise ValueError(
                    "records must not be missing values such as NaN: row "
                    f"{row} does not equal itself"
                )
        return array

    def _sample(self, n: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        del n, rng
        raise ValueError(f"{self!r} is infinite and has no uniform distribution")


def _equals_itself(element: Hashable) -> bool:
    """Whether `element` equals itself; for a tuple, whether all its parts equal themselves."""
    if isinstance(element, tuple):
        # Python compares the parts of tuples by identity first. So a tuple equals itself even if a
        # part is NaN.
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
    if getattr(chunk, "ndim", None) == 0:  # A NumPy scalar is an element, not a chunk.
        return [chunk.item()]
    if getattr(chunk, "ndim", None) != 1:
        shape = getattr(chunk, "shape", None)
        raise ValueError(f"records must be one-dimensional, got {type(chunk).__name__} of {shape}")
    return list(chunk.tolist())
