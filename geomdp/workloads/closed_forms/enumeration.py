"""The answers of all elements of a small finite universe."""

from __future__ import annotations

import numpy as np

from geomdp._typing import FloatArray
from geomdp.workloads.base import CHUNK_ROWS, MAX_ENTRIES, Workload, WorkloadSizeError


def explicit_answers(workload: Workload) -> FloatArray:
    """Answer vectors (N, m) of all N elements of a finite universe, in the order of the universe.

    `WorkloadSizeError` for an infinite universe, or if N m > 2^26.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.workloads.explicit_answers(gd.workloads.Marginals(2, 1))
    array([[0., 0.],
           [0., 1.],
           [1., 0.],
           [1., 1.]])
    """
    size, m = workload.universe.size, workload.n_queries
    if size is None or size * m > MAX_ENTRIES:
        raise WorkloadSizeError(
            f"workload must have at most 2^26 answers over all elements, got {workload!r} "
            f"with {m} queries on {'infinitely many' if size is None else size} elements"
        )
    answers = np.empty((size, m))
    for start in range(0, size, CHUNK_ROWS):
        stop = min(start + CHUNK_ROWS, size)
        answers[start:stop] = workload.evaluate(workload.universe.elements(start, stop))
    return answers
