"""Which families of measurements to combine, and how to split a budget over them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._typing import FloatArray, IntArray
from geomdp.cache import recalled
from geomdp.mechanisms.strategies.weights import Split, SplitError, finished

#: Share of the budget that a family gets at the start of the descent that adds it to others.
FIRST_SHARE = 0.25
#: The search ends once adding a family lowers the error by less than this relative amount, or after
#: this number of added families.
LEAST_GAIN, MAX_COMBINED = 1e-3, 6
#: Iterations of the short descents that compare families, number of descents that are continued,
#: and their largest number of further iterations. A descent converges in some tens of iterations.
FIRST_ITERATIONS, KEPT_DESCENTS, MAX_ITERATIONS = 8, 3, 200


@dataclass(frozen=True, eq=False)
class Combination:
    """Some of the measurements, with a share of the budget above 0 for each of them.

    Parameters
    ----------
    members : (c,) array of int
        Increasing numbers of the measurements.
    shares : (c,) array
        Above 0, with sum 1.
    log_error : float
        Logarithm of the error that `best_split` minimises.
    """

    members: IntArray
    shares: FloatArray
    log_error: float

    def with_family(self, family: IntArray) -> tuple[IntArray, FloatArray]:
        """Add the measurements of a family; return all, with the shares that start a descent."""
        members = np.union1d(self.members, family)
        shares = np.zeros(len(members))
        shares[np.searchsorted(members, self.members)] = self.shares * (1 - FIRST_SHARE)
        shares[np.searchsorted(members, family)] += FIRST_SHARE / len(family)
        return members, shares


def combined_split(
    costs: FloatArray,
    overlap: sp.csr_array,
    families: Sequence[IntArray],
    known: Sequence[Combination],
) -> Split:
    """Shares for the measurements of a few families, which are chosen one after the other.

    The problem is that of `best_split`: s measurements determine u quantities. Here s is so large
    that a descent over all measurements ends far from the optimum. Every family that measures all
    quantities is tried alone. Then the family that lowers the error most is added, and the shares
    of all measurements are computed anew. This is repeated up to six times, until no family lowers
    the error by more than 0.1%.

    Parameters
    ----------
    costs : (u,) array
        The weights c of `best_split`, non-negative and not all 0.
    overlap : (s, u) sparse array
        The matrix g of `best_split`, non-negative. Every column has an entry above 0.
    families : sequence of (f,) array of int
        Increasing numbers of the measurements of each family.
    known : sequence of Combination
        Combinations that were found in other ways. At least one is needed if no family measures all
        quantities.

    Returns
    -------
    Split
        Its error is at most the error of every combination in `known`. It is also at most the error
        of equal shares for any one family that measures all quantities.
    """
    error = SplitError.of(costs, overlap)

    def shares() -> FloatArray:
        best = _combined(error, families, known)
        found = np.zeros(overlap.shape[0])
        found[best.members] = best.shares
        return found

    inputs: list[npt.NDArray[np.generic]] = [costs, overlap.indptr, overlap.indices, overlap.data]
    inputs += [*families, *(c.members for c in known), *(c.shares for c in known)]
    found = recalled("combined-split", tuple(inputs), (overlap.shape[0],), shares, least=0.0)
    return finished(error, found)


def _combined(
    error: SplitError, families: Sequence[IntArray], known: Sequence[Combination]
) -> Combination:
    """The best combination found by adding one family after the other."""
    alone = [(family, np.full(len(family), 1 / len(family))) for family in families]
    complete = [start for start in alone if error.restricted(start[0]).complete]
    best = min([*known, *_descents(error, complete)], key=lambda found: found.log_error)
    for _ in range(MAX_COMBINED):
        starts = [best.with_family(family) for family in families]
        found = min(_descents(error, starts), key=lambda found: found.log_error, default=best)
        if found.log_error > best.log_error - LEAST_GAIN:
            return min(found, best, key=lambda found: found.log_error)
        best = found
    return best


def _descents(
    error: SplitError, starts: Sequence[tuple[IntArray, FloatArray]]
) -> Iterator[Combination]:
    """Run short descents from all starts, continue the best of them, and yield their ends."""
    ends = [_descend(error, *start, FIRST_ITERATIONS) for start in starts]
    for end in sorted(ends, key=lambda end: end.log_error)[:KEPT_DESCENTS]:
        yield _descend(error, end.members, end.shares, MAX_ITERATIONS)


def _descend(
    error: SplitError, members: IntArray, shares: FloatArray, iterations: int
) -> Combination:
    logs, value = error.restricted(members).descend(np.log(shares), iterations)
    shares = np.exp(logs - logs.max())
    # Drop measurements whose shares are now almost 0, but only if the others still measure every
    # quantity.
    kept = shares >= 1e-7
    if not error.restricted(members[kept]).complete:
        kept[:] = True
    shares = shares[kept] / shares[kept].sum()
    return Combination(members[kept], shares, value)
