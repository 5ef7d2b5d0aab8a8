"""Workloads that a certificate describes by name and parameters instead of a list of answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import whole_array
from geomdp.workloads import (
    Histogram,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    Ranges,
    Workload,
)

#: For each class of workload, the name and the parameters in certificate files.
NAMED_WORKLOADS: dict[type[Workload], Callable[[Any], dict[str, Any]]] = {
    Marginals: lambda W: {"name": "marginals", "d": W.d, "k": W.k},
    Parities: lambda W: {"name": "parities", "d": W.d, "k": W.k},
    Histogram: lambda W: {"name": "histogram", "N": W.N},
    Prefixes: lambda W: {"name": "prefixes", "N": W.N},
    Ranges: lambda W: {"name": "ranges", "N": W.N},
    MarginalTables: lambda W: {"name": "marginal tables", "columns": list(W.levels), "k": W.k},
}

#: Largest absolute value of an answer in a certificate. Sums of squares of such numbers do not
#: overflow in float64.
MAX_ANSWER = 1e100


def bounded_answers(workload: Workload, elements: np.ndarray[Any, Any]) -> FloatArray:
    """The answers (E, k) of `workload` on `elements`; ``ValueError`` for NaN and beyond +-1e100."""
    answers = workload.evaluate(elements)
    largest = float(np.abs(answers).max())
    if not largest <= MAX_ANSWER:
        raise ValueError(
            f"answers must be at most {MAX_ANSWER:g} in absolute value, got {largest:g}"
        )
    return answers


def element_rows(values: npt.ArrayLike, count: int, name: str) -> IntArray:
    """`values` as a read-only, nonempty matrix of row numbers of a list of `count` elements."""
    rows = whole_array(values, name, ndim=2)
    if 0 in rows.shape:
        raise ValueError(f"{name} must have a shape (a, b), both at least 1, got {rows.shape}")
    if not (rows.min() >= 0 and rows.max() < count):
        raise ValueError(
            f"{name} must hold row numbers of elements, 0 to {count - 1}, got {rows.min()} to "
            f"{rows.max()}"
        )
    rows.setflags(write=False)
    return rows


def workload_document(workload: Workload) -> dict[str, Any] | None:
    """Name and parameters of a workload in `NAMED_WORKLOADS`; None for any other workload."""
    named = NAMED_WORKLOADS.get(type(workload))
    return None if named is None else named(workload)


def workload_subject(workload: Workload) -> str:
    """A key that identifies a workload: name and parameters if it is named, else `repr` and id."""
    named = workload_document(workload)
    return f"{workload!r} at {id(workload)}" if named is None else str(named)


def listing_document(
    workload: Workload, elements: np.ndarray[Any, Any], answers: FloatArray
) -> dict[str, Any]:
    """A named workload with its `elements` (E, ...); for any other, only the `answers` (E, k)."""
    named = workload_document(workload)
    return {"answers": answers} if named is None else {"workload": named, "elements": elements}
