"""The universe: the possible values of a record, their numbering, and the check of records."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import IntArray, RandomState
from geomdp._validation import whole
from geomdp.workloads.universe.records import Records, chunk_arrays, numeric_array

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
