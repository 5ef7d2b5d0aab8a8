"""Universes: the sets of possible values of a record.

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
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import listed, whole
from geomdp.workloads.universe.base import Universe
from geomdp.workloads.universe.records import Records, level_codes, reals_in_ball, reals_in_cube

#: Largest number of columns that the repr of a `CategoricalProduct` lists. For more columns, the
#: repr states only the numbers of columns and elements.
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
