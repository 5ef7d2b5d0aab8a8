"""Choose which families (lists of measurements) to combine, and split a budget over them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from geomdp._typing import FloatArray, IntArray
from geomdp.mechanisms.strategies.weights import Split, SplitError

#: Share of the budget that an added family gets at the start of the descent over all shares.
FIRST_SHARE = 0.25
#: The search ends if an added family lowers the error by less than `LEAST_GAIN` (relative), or
#: after `MAX_COMBINED` added families.
LEAST_GAIN, MAX_COMBINED = 1e-3, 6


def combined_split(
    costs: FloatArray,
    overlap: sp.csr_array,
    families: Sequence[IntArray],
    known: Sequence[FloatArray],
) -> Split:
    """Shares for the measurements of a few `families`; one family is chosen after the other.

    It solves the problem of `best_split` if there are so many measurements that a descent over all
    ends far from the optimum. Before tiny shares are set to 0, the error is at most that of every
    split in `known` (s,), and at most that of equal shares for any single family that measures all.
    """
    error = SplitError.of(costs, overlap)
    even = np.zeros((overlap.shape[0], len(families)))
    for place, family in enumerate(families):
        even[family, place] = 1 / len(family)
    alone = even[:, error.complete(even)]
    starts = [*known, error.lowest(alone)] if alone.size else known
    ends = np.column_stack([_extended(error, even, start) for start in starts])
    return error.finished(ends[:, error(ends).argmin()])


def _extended(error: SplitError, families: FloatArray, shares: FloatArray) -> FloatArray:
    """The split `shares` (s,), after some columns of `families` (s, f) were added one by one."""
    for _ in range(MAX_COMBINED if families.size else 0):
        starts = (1 - FIRST_SHARE) * shares[:, None] + FIRST_SHARE * families
        added = error.lowest(starts)
        before, after = error(np.column_stack([shares, added]))
        if after < before:
            shares = added
        if after > before * (1 - LEAST_GAIN):
            break
    return shares
