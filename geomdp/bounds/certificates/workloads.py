"""Workloads that a certificate names instead of listing their answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomdp._typing import FloatArray
from geomdp.workloads import (
    Explicit,
    Histogram,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    Ranges,
    Workload,
)


@dataclass(frozen=True)
class PublicWorkload:
    """One row of the table: a class, its name in files, and the parameters that determine it."""

    name: str
    kind: type[Workload]
    parameters: Callable[[Any], dict[str, Any]]
    build: Callable[..., Workload]


PUBLIC_WORKLOADS = (
    PublicWorkload("marginals", Marginals, lambda W: {"d": W.d, "k": W.k}, Marginals),
    PublicWorkload("parities", Parities, lambda W: {"d": W.d, "k": W.k}, Parities),
    PublicWorkload("histogram", Histogram, lambda W: {"N": W.N}, Histogram),
    PublicWorkload("prefixes", Prefixes, lambda W: {"N": W.N}, Prefixes),
    PublicWorkload("ranges", Ranges, lambda W: {"N": W.N}, Ranges),
    PublicWorkload(
        "marginal tables",
        MarginalTables,
        lambda W: {"columns": list(W.levels), "k": W.k},
        MarginalTables,
    ),
)


def workload_document(workload: Workload) -> dict[str, Any] | None:
    """Name and parameters of a workload of the table; None for any other."""
    for row in PUBLIC_WORKLOADS:
        if type(workload) is row.kind:
            return {"name": row.name, **row.parameters(workload)}
    return None


def workload_subject(workload: Workload) -> str:
    """What tells a workload from others: its name and parameters, or else its identity."""
    public = workload_document(workload)
    return f"{workload!r} at {id(workload)}" if public is None else str(public)


def listing_document(
    workload: Workload, elements: np.ndarray[Any, Any], answers: FloatArray
) -> dict[str, Any]:
    """Workload and elements as a certificate lists them: the reverse of `listed_workload`.

    A public workload by its name with the `elements` (E, ...), any other by their `answers` (E, k).
    """
    public = workload_document(workload)
    return {"answers": answers} if public is None else {"workload": public, "elements": elements}


def listed_workload(document: Mapping[str, Any]) -> tuple[Workload, np.ndarray[Any, Any]]:
    """Workload and elements of a listed packing, from its part of a certificate file.

    Where the file lists answers (E, k), the elements are 0..E-1 of an `Explicit` workload.

    Raises
    ------
    ValueError
        For a workload that is not of the table.
    """
    if "answers" in document:
        answers = np.asarray(document["answers"], dtype=np.float64)
        return Explicit(answers.T), np.arange(len(answers))
    parameters = dict(document["workload"])
    name = parameters.pop("name")
    for row in PUBLIC_WORKLOADS:
        if row.name == name:
            return row.build(**parameters), np.asarray(document["elements"])
    known = ", ".join(row.name for row in PUBLIC_WORKLOADS)
    raise ValueError(f"workload must be one of {known}, got {name!r}")
