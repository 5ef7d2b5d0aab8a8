"""Clipping records to the unit ball, one by one, where the caller asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from geomdp._typing import FloatArray
from geomdp.workloads.base import CHUNK_ROWS
from geomdp.workloads.universe.records import Records, chunk_arrays


def clipped_to_ball(records: Records | Iterable[Records], d: int) -> Iterator[FloatArray]:
    """Chunks of records with those of norm above 1 scaled to norm 1, in order, read lazily.

    Each record is mapped by itself, so neighbouring data sets stay neighbours (GEN-2). Numbers
    that are not finite stay so; the universe refuses them.

    Parameters
    ----------
    records : array, DataFrame, or iterable of chunks of one
        Rows of d reals.
    d : int
        Dimension.

    Yields
    ------
    (b, d) array
        Rows of Euclidean norm at most 1.
    """
    for chunk in chunk_arrays(records, (d,), None, CHUNK_ROWS):
        reals = np.asarray(chunk, dtype=np.float64)
        if not np.isfinite(reals).all():
            yield reals
            continue
        # Entries scaled to at most 1 first: squares of entries above 1e154 would overflow.
        largest = np.maximum(np.abs(reals).max(axis=1, keepdims=True, initial=0.0), 1.0)
        scaled = reals / largest
        norms = np.linalg.norm(scaled, axis=1, keepdims=True)
        yield np.asarray(scaled / np.maximum(norms, 1 / largest))
