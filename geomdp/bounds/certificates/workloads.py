"""Workloads that a certificate names instead of listing their answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray
from geomdp.workloads import (
    Histogram,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    Ranges,
    Workload,
)

#: For each class of workload, its name and parameters as certificate files write them.
NAMED_WORKLOADS: dict[type[Workload], Callable[[Any], dict[str, Any]]] = {
    Marginals: lambda W: {"name": "marginals", "d": W.d, "k": W.k},
    Parities: lambda W: {"name": "parities", "d": W.d, "k": W.k},
    Histogram: lambda W: {"name": "histogram", "N": W.N},
    Prefixes: lambda W: {"name": "prefixes", "N": W.N},
    Ranges: lambda W: {"name": "ranges", "N": W.N},
    MarginalTables: lambda W: {"name": "marginal tables", "columns": list(W.levels), "k": W.k},
}

#: Largest modulus of an answer in a certificate. Its square, and sums of squares, do not overflow.
MAX_ANSWER = 1e100


def bounded_answers(workload: Workload, elements: np.ndarray[Any, Any]) -> FloatArray:
    """Answers (E, k) of the elements.

    Raises
    ------
    ValueError
        If an answer is not finite or above 1e100 in modulus.
    """
    answers = workload.evaluate(elements)
    largest = float(np.abs(answers).max())
    if not largest <= MAX_ANSWER:
        raise ValueError(f"answers must be at most {MAX_ANSWER:g} in modulus, got {largest:g}")
    return answers


def element_rows(values: npt.ArrayLike, count: int, name: str) -> IntArray:
    """`values` as a read-only array (a, b) of row numbers of a list of `count` elements.

    Raises
    ------
    ValueError
        If `values` is empty, does not have two axes, or holds a number that is no row.
    """
    rows = np.array(values, dtype=np.int64, order="C")
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"{name} must have a shape (a, b), both at least 1, got {rows.shape}")
    if not (rows.min() >= 0 and rows.max() < count):
        raise ValueError(
            f"{name} must hold rows of elements, 0 to {count - 1}, got {rows.min()} to {rows.max()}"
        )
    rows.setflags(write=False)
    return rows


def workload_document(workload: Workload) -> dict[str, Any] | None:
    """Name and parameters of a workload in `NAMED_WORKLOADS`; None for any other workload."""
    named = NAMED_WORKLOADS.get(type(workload))
    return None if named is None else named(workload)


def workload_subject(workload: Workload) -> str:
    """A key for a workload: its name and parameters, or for other workloads the object's id."""
    named = workload_document(workload)
    return f"{workload!r} at {id(workload)}" if named is None else str(named)


def listing_document(
    workload: Workload, elements: np.ndarray[Any, Any], answers: FloatArray
) -> dict[str, Any]:
    """Workload and elements as a certificate lists them.

    For a workload in `NAMED_WORKLOADS` these are its name and parameters and the `elements`
    (E, ...). For any other they are only the `answers` (E, k) of the elements.
    """
    named = workload_document(workload)
    return {"answers": answers} if named is None else {"workload": named, "elements": elements}
