"""The open universe of all hashable objects, with no declared size."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from geomdp._validation import whole
from geomdp.workloads.universe.base import Universe
from geomdp.workloads.universe.records import Records

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
