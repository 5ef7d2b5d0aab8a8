"""Coarsened workloads: every answer vector replaced by the nearest of a few centres."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import batch
from geomdp.workloads.base import Workload
from geomdp.workloads.closed_forms.enumeration import explicit_answers
from geomdp.workloads.explicit import Explicit, ListedAnswers
from geomdp.workloads.universe.base import Universe
from geomdp.workloads.universe.records import Records

#: Elements compared with all centres at a time.
BLOCK_ELEMENTS = 1024


class Coarsened(ListedAnswers):
    """The workload x -> the centre nearest to Q(x), in Euclidean norm, the first among ties.

    Parameters
    ----------
    workload : Workload
        Q, with m queries on a finite universe of N elements with N m <= 2^26.
    centres : (s, m) array
        Points of the answer space; finite; copied.

    Attributes
    ----------
    centres : (s, m) array
        The centres that are nearest to some Q(x).
    distance : float
        max over x of ||Q(x) - its centre||_2; it also bounds the error of mean answers.

    Notes
    -----
    The centre of every element is found once, and records are looked up by their element number.
    Searching the centre of each record anew would let rounding make it depend on the other records
    of its chunk.
    """

    def __init__(self, workload: Workload, centres: npt.ArrayLike) -> None:
        if not isinstance(workload, Workload):
            raise ValueError(f"workload must be a Workload, got {type(workload).__name__}")
        self.workload = workload
        places = batch(centres, workload.n_queries, "centres")
        if len(places) == 0:
            raise ValueError("centres must have at least one row, got none")
        nearest, distances = _nearest(explicit_answers(workload), places)
        used, first, assignment = np.unique(nearest, return_index=True, return_inverse=True)
        # Centres are ordered by their first element, so that ties go to the lowest element number.
        order = np.argsort(first)
        self.centres = places[used[order]]
        self._assignment = np.argsort(order)[assignment]
        self.centres.setflags(write=False)
        self.distance = float(distances.max())

    def _summary(self) -> str:
        return f"{self.workload!r}, {len(self.centres)} centres"

    @property
    def universe(self) -> Universe:
        """The universe of the inner workload."""
        return self.workload.universe

    @cached_property
    def explicit(self) -> Explicit:
        """The centres as columns."""
        return Explicit(self.centres.T)

    def evaluate(self, records: Records) -> FloatArray:
        """Centres (n, m) of the records."""
        return np.asarray(self.centres[self._assignment[self.universe.numbers(records)]])


def _nearest(points: FloatArray, centres: FloatArray) -> tuple[IntArray, FloatArray]:
    """Number of the nearest centre of each row of `points` (N, m), and its distance."""
    from scipy.spatial.distance import cdist

    nearest, least = np.empty(len(points), dtype=np.int64), np.empty(len(points))
    for start in range(0, len(points), BLOCK_ELEMENTS):
        rows = slice(start, start + BLOCK_ELEMENTS)
        distances = cdist(points[rows], centres)
        nearest[rows], least[rows] = distances.argmin(axis=1), distances.min(axis=1)
    return nearest, least
