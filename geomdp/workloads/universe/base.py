"""The universe: what one record may be, how records are checked, and how elements are numbered."""

from __future__ import annotations

import abc
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import IntArray, RandomState
from geomdp._validation import whole
from geomdp.workloads.universe.records import Records, chunk_arrays, numeric_array

#: Largest element number. Numbers are int64, and 2^62 leaves room for sums of two of them.
MAX_ELEMENT_NUMBER = 1 << 62


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
    def column_names(self) -> tuple[str, ...] | None:
        """Columns by which a DataFrame is read; None if it is read by position."""
        return None

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
        """Chunks of at most `rows` records, as from `validate`, read lazily and only once.

        Raises as `validate`; row numbers run on across chunks.

        Parameters
        ----------
        records : array, DataFrame, or iterable of chunks of one
            A list or tuple is an iterable of chunks if it is not empty and all its items are
            DataFrames or arrays with one axis per axis of a record array; any other list or tuple
            is one array, as `numpy.asarray` reads it. Every other iterable (a generator, a reader)
            is an iterable of chunks and is never materialised.
        rows : int
            Largest number of rows of a yielded chunk; larger chunks are split.
        """
        rows = whole(rows, "rows")
        first_row = 0
        for array in chunk_arrays(records, self.record_shape, self.column_names, rows):
            yield self._check(array, first_row)
            first_row += len(array)

    def elements(self, start: int = 0, stop: int | None = None) -> IntArray:
        """Elements number `start` to `stop` - 1 of a finite universe, as a record array.

        Products are enumerated in row-major order: the last column changes fastest. Raises
        ``ValueError`` for an infinite universe, a range outside 0..|X|, or numbers above 2^62.
        """
        end = self._finite_size()
        stop = whole(end if stop is None else stop, "stop", minimum=0, maximum=end)
        start = whole(start, "start", minimum=0, maximum=stop)
        return self._elements_at(np.arange(start, stop, dtype=np.int64))

    def elements_at(self, numbers: IntArray) -> IntArray:
        """Elements with the given `numbers` (b,) in the order of `elements`, as a record array.

        Raises ``ValueError`` for an infinite universe, or a number outside 0..|X|-1.
        """
        end = self._finite_size()
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < end):
            raise ValueError(
                f"element numbers must be from 0 to {end - 1}, "
                f"got {numbers.min()} to {numbers.max()}"
            )
        return self._elements_at(numbers)

    def numbers(self, records: Records) -> IntArray:
        """Numbers (n,) of records in the order of `elements`: the inverse of `elements_at`.

        Raises as `validate`, and for an infinite universe or one of more than 2^62 elements.
        """
        if self._finite_size() != self.size:
            raise ValueError(f"{self!r} has more than 2^62 elements, too many to number")
        return self._numbers(self.validate(records))

    def _finite_size(self) -> int:
        """Number of elements that have an int64 number."""
        if self.size is None:
            raise ValueError(f"{self!r} is infinite and has no list of elements")
        return min(self.size, MAX_ELEMENT_NUMBER)

    def _elements_at(self, numbers: IntArray) -> IntArray:
        """Elements with the given numbers, known to be in range; only for finite universes."""
        raise NotImplementedError

    def _numbers(self, records: IntArray) -> IntArray:
        """Numbers of valid records; only for finite universes."""
        raise NotImplementedError

    def sample(self, n: int, rng: RandomState = None) -> npt.NDArray[Any]:
        """`n` independent uniform records, as a record array."""
        return self._sample(whole(n, "n", minimum=0), np.random.default_rng(rng))

    @abc.abstractmethod
    def _check(self, array: npt.NDArray[Any], first_row: int) -> npt.NDArray[Any]:
        """`array` in the universe's own type, or ``ValueError`` naming row and column."""

    @abc.abstractmethod
    def _sample(self, n: int, rng: np.random.Generator) -> npt.NDArray[Any]:
        """`n` independent uniform records."""
