"""Workloads that a certificate names instead of listing their answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from geomdp._typing import FloatArray
from geomdp.workloads import (
    Histogram,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    Ranges,
    Workload,
)

#: Name and parameters, as in certificate files, of each class of workload.
NAMED_WORKLOADS: dict[type[Workload], Callable[[Any], dict[str, Any]]] = {
    Marginals: lambda W: {"name": "marginals", "d": W.d, "k": W.k},
    Parities: lambda W: {"name": "parities", "d": W.d, "k": W.k},
    Histogram: lambda W: {"name": "histogram", "N": W.N},
    Prefixes: lambda W: {"name": "prefixes", "N": W.N},
    Ranges: lambda W: {"name": "ranges", "N": W.N},
    MarginalTables: lambda W: {"name": "marginal tables", "columns": list(W.levels), "k": W.k},
}

#: Largest modulus of an answer in a certificate: squares and sums stay far within float64.
MAX_ANSWER = 1e100


def bounded_answers(workload: Workload, elements: np.ndarray[Any, Any]) -> FloatArray:
    """Answers (E, k) of the elements.

    Raises
    ------
    ValueError
        If one is not finite or above 1e100 in modulus.
    """
    answers = workload.evaluate(elements)
    largest = float(np.abs(answers).max())
    if not largest <= MAX_ANSWER:
        raise ValueError(f"answers must be at most {MAX_ANSWER:g} in modulus, got {largest:g}")
    return answers


def workload_document(workload: Workload) -> dict[str, Any] | None:
    """Name and parameters of a workload of the table; None for any other."""
    named = NAMED_WORKLOADS.get(type(workload))
    return None if named is None else named(workload)


def workload_subject(workload: Workload) -> str:
    """A key that identifies a workload: its name and parameters, or else its identity."""
    named = workload_document(workload)
    return f"{workload!r} at {id(workload)}" if named is None else str(named)


def listing_document(
    workload: Workload, elements: np.ndarray[Any, Any], answers: FloatArray
) -> dict[str, Any]:
    """Workload and elements as a certificate lists them.

    A workload of the table by its name with the `elements` (E, ...), any other by their `answers`
    (E, k).
    """
    named = workload_document(workload)
    return {"answers": answers} if named is None else {"workload": named, "elements": elements}
