"""Sets of 1, 2, 3, 4, 6, ... orthogonal lines for a workload, and sets for some of its queries.

For the largest error over the queries, lines for fewer queries can prove more.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray
from geomdp.bounds.certificates.workloads import bounded_answers
from geomdp.bounds.lines.frames import coordinates, widest_frame
from geomdp.bounds.lines.orthogonal_lines import OrthogonalLines
from geomdp.bounds.packings.separated import elements_or_sample
from geomdp.workloads import Workload

#: Largest number of elements used, and largest number of their answers in memory: 2^23 float64
#: numbers take 64 MB. Two elements are used even if they have more answers.
MAX_ELEMENTS, MAX_ANSWERS = 1 << 11, 1 << 23
#: Ratio of the sizes of successive sets of lines. The sizes 1, 2, 3, 4, 6, 8, ... are rounded
#: powers of this ratio.
FRAME_RATIO = math.sqrt(2)
#: Largest number of queries in a chosen set. The sets have 1, 2, 4, ..., 64 queries. For E
#: elements, the order by pivoting uses at most `MAX_ORDERED` / E queries, evenly spaced.
MOST_QUERIES, MAX_ORDERED = 64, 1 << 20
#: Smaller differences of answers give no lines. `check_certificate` rejects numbers below 1e-100.
LEAST_ANSWER = 1e-100


@lru_cache(maxsize=8)
def lines_for_all_queries(workload: Workload) -> tuple[OrthogonalLines, ...]:
    """Sets of 1, 2, 3, 4, 6, 8, ... orthogonal lines, up to the rank of the centred answers."""
    elements, centred = _answers(workload)
    points = coordinates(centred)
    rank = points.shape[1]
    sizes = [round(FRAME_RATIO**i) for i in range(64) if FRAME_RATIO**i < rank]
    return tuple(
        _lines(workload, elements, points, size, None) for size in sorted({*sizes, rank} - {0})
    )


@lru_cache(maxsize=8)
def lines_for_some_queries(workload: Workload) -> tuple[OrthogonalLines, ...]:
    """One set of lines, as large as possible, for each chosen subset of queries that has lines."""
    elements, centred = _answers(workload)
    found = []
    for queries in _query_sets(centred):
        points = coordinates(centred[:, queries])
        if points.shape[1]:
            found.append(_lines(workload, elements, points, points.shape[1], queries))
    return tuple(found)


def _answers(workload: Workload) -> tuple[npt.NDArray[Any], FloatArray]:
    """The elements, and their centred answers (E, k) in units of the largest entry: no overflow."""
    most = max(2, min(MAX_ELEMENTS, MAX_ANSWERS // workload.n_queries))
    elements = elements_or_sample(workload, most, PUBLIC_SEED)
    answers = bounded_answers(workload, elements)
    centred = answers - answers.mean(axis=0)
    largest = float(np.abs(centred).max())
    return elements, centred / largest if largest > LEAST_ANSWER else np.zeros_like(centred)


def _lines(
    workload: Workload,
    elements: npt.NDArray[Any],
    points: FloatArray,
    size: int,
    queries: IntArray | None,
) -> OrthogonalLines:
    """`size` orthogonal lines between `points` (E, r), coordinates of the elements' answers."""
    pairs, lengths = widest_frame(points, size)
    used, rows = np.unique(pairs, return_inverse=True)
    chosen = elements[used]
    return OrthogonalLines(workload, chosen, rows.reshape(pairs.shape), lengths, queries)


def _query_sets(centred: FloatArray) -> list[IntArray]:
    """Different sets of fewer than k queries, in increasing order, from answers (E, k)."""
    k = centred.shape[1]
    considered = np.unique(np.linspace(0, k - 1, min(k, MAX_ORDERED // len(centred))).astype(int))
    _, order = scipy.linalg.qr(centred[:, considered], mode="r", pivoting=True)
    widest = int(np.ptp(centred, axis=0).argmax())
    sets = {(widest,)}
    for count in (1 << i for i in range(MOST_QUERIES.bit_length())):
        if count < k:
            sets.add(tuple(sorted(considered[order[:count]].tolist())))
            sets.add(tuple(np.linspace(0, k - 1, count).round().astype(int).tolist()))
    return [np.array(queries) for queries in sorted(sets) if len(queries) < k]
