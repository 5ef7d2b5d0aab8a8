"""Clip each record to the unit ball, if the caller asks for clipping."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from geomdp._typing import FloatArray
from geomdp.workloads.base import CHUNK_ROWS
from geomdp.workloads.universe.records import Records, chunk_arrays

#: Half a unit in the last place of 1: the largest relative error of one float64 operation.
UNIT = 2.0**-53


def clipped_to_ball(records: Records | Iterable[Records], d: int) -> Iterator[FloatArray]:
    """Yield chunks (b, d) of the records, with records of norm above 1 scaled into the unit ball.

    The exact norm of every finite row yielded is at most 1: rows with a norm within (d + 8) 2^-53
    of 1 are scaled too, because of rounding errors. The universe later refuses NaN and infinity.
    """
    # A computed norm has a relative error of at most (d / 2 + 1) UNIT, and the scaling below adds
    # at most five roundings. The margin is above the sum of both.
    margin = (d + 8) * UNIT
    for chunk in chunk_arrays(records, (d,), None, CHUNK_ROWS):
        reals = np.asarray(chunk, dtype=np.float64)
        if not np.isfinite(reals).all():
            yield reals
            continue
        # First scale all entries to at most 1, because squares of entries above 1e154 overflow.
        largest = np.maximum(np.abs(reals).max(axis=1, keepdims=True, initial=0.0), 1.0)
        scaled = reals / largest
        norms = np.linalg.norm(scaled, axis=1, keepdims=True)
        outside = norms > (1 - margin) / largest
        yield np.asarray(scaled / np.where(outside, norms * (1 + margin), 1.0))
