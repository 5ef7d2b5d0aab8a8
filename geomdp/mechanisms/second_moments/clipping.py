"""Clipping records to the unit ball, one by one, where the caller asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from geomdp._typing import FloatArray
from geomdp.workloads.base import CHUNK_ROWS
from geomdp.workloads.universe.records import Records, chunk_arrays

#: Half a unit in the last place of 1: the largest relative error of one float64 operation.
UNIT = 2.0**-53


def clipped_to_ball(records: Records | Iterable[Records], d: int) -> Iterator[FloatArray]:
    """Chunks of records with those of norm above 1 scaled into the unit ball, in order, lazily.

    Each record is mapped by itself, so neighbouring data sets stay neighbours (GEN-2). Numbers
    that are not finite stay as they are; the universe refuses them.

    Chunks (b, d) have rows of Euclidean norm at most 1, in exact arithmetic. Rows within
    (d + 8) 2^-53 of norm 1 are scaled too, as their computed norm does not tell on which side of 1
    they are.
    """
    # A computed norm is off by a factor within 1 +- (d / 2 + 1) UNIT; the scaling below adds at
    # most five roundings. This margin is above the sum of both.
    margin = (d + 8) * UNIT
    for chunk in chunk_arrays(records, (d,), None, CHUNK_ROWS):
        reals = np.asarray(chunk, dtype=np.float64)
        if not np.isfinite(reals).all():
            yield reals
            continue
        # Entries scaled to at most 1 first: squares of entries above 1e154 would overflow.
        largest = np.maximum(np.abs(reals).max(axis=1, keepdims=True, initial=0.0), 1.0)
        scaled = reals / largest
        norms = np.linalg.norm(scaled, axis=1, keepdims=True)
        outside = norms > (1 - margin) / largest
        yield np.asarray(scaled / np.where(outside, norms * (1 + margin), 1.0))
