"""Sets of 1, 2, 3, 4, 6, ... orthogonal lines for a workload, and sets for some of its queries.

A subset of the universe is enough for a proof. Large universes are sampled with a public seed.

For the largest error over the queries, lines for fewer queries can prove more (see
`geomdp.bounds.lines.orthogonal_lines`). Two kinds of sets of 1, 2, 4, 8, ... queries are tried. A
set of the first kind holds the first queries of an order. In this order, each query is as far as
possible from the span of the queries before it (QR with pivoting). The queries in a set of the
second kind are evenly spaced. The query whose answers have the widest range is also tried alone.
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
    """One set of lines, as large as possible, for each chosen proper subset of the queries.

    A subset on which all elements used have the same answers has no lines and is left out.
    """
    elements, centred = _answers(workload)
    found = []
    for queries in _query_sets(centred):
        points = coordinates(centred[:, queries])
        if points.shape[1]:
            found.append(_lines(workload, elements, points, points.shape[1], queries))
    return tuple(found)


def _answers(workload: Workload) -> tuple[npt.NDArray[Any], FloatArray]:
    """The elements used, and their answers (E, k) minus the mean, in units of the largest entry.

    The best pairs of elements do not depend on the unit. The search for them multiplies up to four
    answers, which would overflow or underflow for answers of 1e80 or 1e-80.
    """
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
    """Different sets of fewer than k queries, each in increasing order.

    `centred` (E, k) has the answers of the elements minus their mean.
    """
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
