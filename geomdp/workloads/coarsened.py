"""Coarsened workloads: each answer vector is replaced by the nearest of a few centres."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import batch, require_type
from geomdp.workloads.base import Workload
from geomdp.workloads.closed_forms.enumeration import explicit_answers
from geomdp.workloads.explicit import Explicit, ListedAnswers
from geomdp.workloads.universe.base import Universe
from geomdp.workloads.universe.records import Records

#: Number of elements that are compared with all centres at a time.
BLOCK_ELEMENTS = 1024


class Coarsened(ListedAnswers):
    """The workload that maps x to the centre nearest to Q(x), in Euclidean norm.

    If several centres are nearest to Q(x), x is mapped to the first of them. The centre of every
    element is computed once, because rounding could make centres that are computed for a chunk of
    records depend on the other records of the chunk.

    Parameters
    ----------
    workload : Workload
        Q, with m queries on a finite universe of N elements with N m <= 2^26.
    centres : (s, m) array
        Points of the answer space, with finite entries. The array is copied.

    Attributes
    ----------
    centres : (r, m) array, r <= s
        The given centres to which some x is mapped, in the order of the first such x.
    distance : float
        The largest Euclidean distance from Q(x) to its centre. For every data set, it bounds the
        distance of the mean answers of this workload from those of Q.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> inner = gd.workloads.Prefixes(3)
    >>> workload = gd.workloads.Coarsened(inner, np.array([[1.0, 1.0, 1.0], [0.0, 0.5, 1.0]]))
    >>> workload.evaluate(np.array([0, 1, 2]))
    array([[1. , 1. , 1. ],
           [0. , 0.5, 1. ],
           [0. , 0.5, 1. ]])
    >>> workload.distance
    0.5
    """

    def __init__(self, workload: Workload, centres: npt.ArrayLike) -> None:
        require_type(workload, Workload, "workload")
        self.workload = workload
        places = batch(centres, workload.n_queries, "centres")
        if len(places) == 0:
            raise ValueError("centres must have at least one row, got none")
        nearest, distances = _nearest(explicit_answers(workload), places)
        used, first, assignment = np.unique(nearest, return_index=True, return_inverse=True)
        # Order the centres by the lowest element number that is mapped to each centre. In a tie,
        # `extreme_answers` takes the first centre, so the lowest element number wins.
        order = np.argsort(first)
        self.centres = places[used[order]]
        self._assignment = np.argsort(order)[assignment]
        self.centres.setflags(write=False)
        self.distance = float(distances.max())

    def _summary(self) -> str:
        return f"{self.workload!r}, {len(self.centres)} centres"

    @property
    def universe(self) -> Universe:
        return self.workload.universe

    @cached_property
    def explicit(self) -> Explicit:
        return Explicit(self.centres.T)

    def evaluate(self, records: Records) -> FloatArray:
        return np.asarray(self.centres[self._assignment[self.universe.numbers(records)]])


def _nearest(points: FloatArray, centres: FloatArray) -> tuple[IntArray, FloatArray]:
    """The number (N,) and the distance (N,) of the centre nearest to each row of `points`."""
    from scipy.spatial.distance import cdist

    nearest, least = np.empty(len(points), dtype=np.int64), np.empty(len(points))
    for start in range(0, len(points), BLOCK_ELEMENTS):
        rows = slice(start, start + BLOCK_ELEMENTS)
        distances = cdist(points[rows], centres)
        nearest[rows], least[rows] = distances.argmin(axis=1), distances.min(axis=1)
    return nearest, least
