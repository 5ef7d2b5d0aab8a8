"""Single queries as JSON values and back, for public transcripts."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from geomdp.workloads.single_queries.single_query import DenseQuery, SparseQuery


def query_to_record(query: object) -> dict[str, object]:
    """One query as plain values, ready for JSON.

    A `DenseQuery` lists its values; a `SparseQuery` its support and values. Elements may be
    strings, whole numbers, None, and tuples of such; a tuple becomes ``{"tuple": [...]}``.

    Raises
    ------
    ValueError
        For another kind of query, or an element of another type.
    """
    match query:
        case DenseQuery():
            return {"kind": "dense", "values": query.values.tolist()}
        case SparseQuery():
            return {
                "kind": "sparse",
                "support": [_element_to_plain(x) for x in query.support],
                "values": query.values.tolist(),
            }
    raise ValueError(f"query must be a DenseQuery or SparseQuery, got {type(query).__name__}")


def query_from_record(record: Mapping[str, Any]) -> DenseQuery | SparseQuery:
    """The query that a record of `query_to_record` describes.

    Raises
    ------
    ValueError
        If the record describes no query.
    """
    match record:
        case {"kind": "dense", "values": list(values)}:
            return DenseQuery(np.array(values, dtype=np.float64))
        case {"kind": "sparse", "support": list(support), "values": list(values)}:
            elements = tuple(_element_from_plain(x) for x in support)
            return SparseQuery(elements, np.array(values, dtype=np.float64))
    raise ValueError(f"not the record of a query: {sorted(record)}")


def _element_to_plain(element: Hashable) -> object:
    match element:
        case bool():
            pass  # refused below: as an element, true would equal the whole number 1
        case None | str() | int():
            return element
        case np.integer():
            return int(element)
        case tuple():
            return {"tuple": [_element_to_plain(part) for part in element]}
    raise ValueError(
        "elements must be str, int, None or tuples of such to be written as JSON, "
        f"got {type(element).__name__}"
    )


def _element_from_plain(plain: object) -> Hashable:
    match plain:
        case {"tuple": list(parts)}:
            return tuple(_element_from_plain(part) for part in parts)
        case None | str() | int():
            return plain
    raise ValueError(f"not the record of an element: {plain!r}")
