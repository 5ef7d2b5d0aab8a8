"""The sparse vector technique: AboveThreshold, Sparse and NumericSparse as interactive objects.

Each is asked queries of a declared sensitivity, one after the other and adaptively, and says for
each whether it is above a public threshold. It pays only for the queries found above, and halts
after `cutoff` of them. The run itself is in `stream`, the noise scales are in `scales`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from geomdp.mechanisms.interactive.scales import (
    Scales,
    above_threshold,
    kept,
    numeric,
    numeric_printed,
    redrawn,
)
from geomdp.mechanisms.interactive.stream import SparseVectorStream
from geomdp.privacy import ApproxDP, PureDP


@dataclass(eq=False, repr=False, kw_only=True)
class AboveThreshold(SparseVectorStream):
    """Find the first query above a threshold (Dwork-Roth, Algorithm 1; SV-AT).

    Adds Lap(2D/eps) to the threshold and Lap(4D/eps) to each query (2D/eps if `monotone`); halts
    at the first query found above.

    Privacy: eps-DP for any adaptive sequence of queries of sensitivity D. Without a seed this holds
    as computed: comparisons are decided exactly for the true answers as given, and values rounded
    correctly. The mechanism cannot be copied, pickled or used in a forked process.

    Parameters
    ----------
    threshold : float
        The public threshold, in the units of the queries.
    privacy : PureDP
        The guarantee for the whole run; epsilon is from 1e-12 to 1e12.
    sensitivity : float
        Bound D on how far one query moves between neighbours, in the units of the queries.
    monotone : bool
        Declares that all queries move in the same direction between neighbours, as counting
        queries do under add/remove; halves the noise on queries. Refused under replace-one, where
        replacing a record can raise one counting query and lower another.
    adjacency : Adjacency
        The neighbour relation `sensitivity` refers to.
    records : object, optional
        The records; without them the mechanism is asked true answers.
    rng : Generator, int or None
        None for operating-system entropy; anything else voids the privacy claim.
    ledger : Ledger, optional
        Pays for the whole run when the mechanism is built, before any record is looked at.

    Raises
    ------
    ValueError
        For parameters out of range, and for `monotone` under replace-one.
    BudgetExhausted
        If the ledger cannot pay.
    """

    cutoff: int = field(init=False, default=1)
    privacy: PureDP

    def _calibrate(self) -> Scales:
        if not isinstance(self.privacy, PureDP):
            raise ValueError(f"privacy must be PureDP for AboveThreshold, got {self.privacy}")
        return above_threshold(self.privacy.epsilon, monotone=self.monotone)


@dataclass(eq=False, repr=False, kw_only=True)
class Sparse(SparseVectorStream):
    """Find up to `cutoff` queries above a threshold (SV-SP, SV-LSL).

    Under pure DP the threshold noise is drawn once (Lyu-Su-Li, Algorithm 1), unless
    ``redraw=True`` asks for Dwork-Roth's Algorithm 2, which draws it anew after each query found
    above and needs more noise; under approximate DP it is always redrawn.

    Parameters are those of `AboveThreshold`, and `cutoff`: the mechanism halts after this number c
    of queries found above. `privacy` is PureDP or ApproxDP.

    Privacy: eps-DP, or (eps, delta)-DP by advanced composition (eps <= 1), for any adaptive
    sequence of queries of sensitivity D, in real arithmetic.
    """

    redraw: bool = False

    def _calibrate(self) -> Scales:
        if isinstance(self.privacy, PureDP) and not self.redraw:
            return kept(self.privacy, self.cutoff, monotone=self.monotone)
        return redrawn(self.privacy, self.cutoff, monotone=self.monotone)


@dataclass(eq=False, repr=False, kw_only=True)
class NumericSparse(SparseVectorStream):
    """Find up to `cutoff` queries above a threshold and release their values (SV-NUM).

    Dwork-Roth's Algorithm 3 with 8/9 of epsilon on the comparisons and 1/9 on the values. The
    printed split for delta > 0 misses its printed accuracy (DISC-11); `PrintedNumericSparse` is
    that one.

    Parameters are those of `AboveThreshold`, and `cutoff`: the mechanism halts after this number c
    of queries found above. `privacy` is PureDP or ApproxDP.

    Privacy: eps-DP, or (eps, delta)-DP by advanced composition (8 eps / 9 <= 1), for any adaptive
    sequence of queries of sensitivity D, in real arithmetic.
    """

    def _calibrate(self) -> Scales:
        return numeric(self.privacy, self.cutoff, monotone=self.monotone)


@dataclass(eq=False, repr=False, kw_only=True)
class PrintedNumericSparse(SparseVectorStream):
    """NumericSparse with the split printed for delta > 0, kept to show where it fails (DISC-11).

    As private as `NumericSparse`, but for few queries the noise on its values exceeds the
    accuracy stated for it (`bounds.upper.numeric_sparse_printed`). Parameters are
    those of `NumericSparse` without `monotone`; `privacy` must be ApproxDP.

    Privacy: (eps, delta)-DP by advanced composition (eps <= 1), for any adaptive sequence of
    queries of sensitivity D, in real arithmetic.
    """

    privacy: ApproxDP
    monotone: bool = field(init=False, default=False)

    def _calibrate(self) -> Scales:
        if not isinstance(self.privacy, ApproxDP):
            raise ValueError(
                f"privacy must be ApproxDP for PrintedNumericSparse, got {self.privacy}"
            )
        return numeric_printed(self.privacy, self.cutoff)
