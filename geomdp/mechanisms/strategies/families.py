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
    """Shares for the measurements of a few families; one family is chosen after the other.

    This is the problem of `best_split`: s measurements determine u quantities. Here s is so large
    that a descent over all measurements ends far from the optimum. The search starts from every
    known split, and from the best of the families that measure all quantities by themselves. The
    family that lowers the error most is added, and the shares of all measurements are computed
    anew. At most six families are added. The search ends earlier if no family lowers the error by
    more than 0.1%.

    Parameters
    ----------
    costs : (u,) array
        The weights c of `best_split`, non-negative and not all 0.
    overlap : (s, u) sparse array
        The matrix g of `best_split`, non-negative. Every column has an entry above 0.
    families : sequence of (f,) array of int
        The numbers of the measurements of each family, in increasing order.
    known : sequence of (s,) array
        Splits that are known already: shares with sum 1 that measure all quantities. If no family
        measures all quantities, at least one known split is needed.

    Returns
    -------
    Split
        Before tiny shares are set to 0, the error is at most the error of every split in `known`,
        and at most the error of equal shares for any single family that measures all quantities.
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
    """The split `shares` (s,), after some columns of `families` (s, f) were added one by one.

    Each column is a split with equal shares for the measurements of one family.
    """
    for _ in range(MAX_COMBINED if families.size else 0):
        starts = (1 - FIRST_SHARE) * shares[:, None] + FIRST_SHARE * families
        added = error.lowest(starts)
        before, after = error(np.column_stack([shares, added]))
        if after < before:
            shares = added
        if after > before * (1 - LEAST_GAIN):
            break
    return shares
