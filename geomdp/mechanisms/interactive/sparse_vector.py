"""The sparse vector technique: AboveThreshold, Sparse and NumericSparse as interactive objects.

A mechanism is asked queries of a declared sensitivity, which can depend on earlier answers, and
says whether each is above a public threshold. The privacy loss does not grow with the number of
queries found below the threshold.
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

    For queries of sensitivity D, the mechanism adds Lap(2 D / eps) to the threshold and
    Lap(4 D / eps) to each query (Lap(2 D / eps) if `monotone`). It halts at the first query found
    above.

    Privacy: eps-DP for any adaptive sequence of queries of sensitivity D. Without a seed this also
    holds on the computer, because comparisons are exact for the given true answers, and values that
    `NumericSparse` releases are correctly rounded. It cannot be copied, pickled or used in a forked
    process, which would use the same noise again.

    Parameters
    ----------
    threshold : float
        The public threshold, in the units of the queries.
    privacy : PureDP
        The guarantee for the whole run; epsilon is from 1e-12 to 1e12.
    sensitivity : float
        Bound D on the change of a query between neighbours, in its units; from 1e-100 to 1e100.
    monotone : bool
        Whether all queries change in the same direction between neighbours, as counting queries do
        under add/remove. Not allowed under replace-one, where one can rise and another fall.
    adjacency : Adjacency
        The neighbour relation for which `sensitivity` is stated.
    records : object, optional
        The records on which queries are evaluated. Without them, `ask` takes true answers.
    rng : Generator, int or None
        None uses the operating system's entropy. A seed or generator voids the privacy claim.
    ledger : Ledger, optional
        Pays for the whole run when the mechanism is built, before any record is read.

    Raises
    ------
    ValueError
        For parameters of a wrong type or out of range, and for `monotone` under replace-one.
    BudgetExhausted
        If the ledger has too little budget left.

    Examples
    --------
    A simulation, since a seed voids privacy:

    >>> import geomdp as gd
    >>> mechanism = gd.AboveThreshold(threshold=100.0, privacy=gd.PureDP(1.0), rng=0)
    >>> [mechanism.ask(count).above for count in (10.0, 20.0, 200.0)]
    [False, False, True]
    >>> mechanism.halted
    True

    With records, the mechanism evaluates the queries itself:

    >>> records = list(range(1000))
    >>> mechanism = gd.AboveThreshold(threshold=100.0, privacy=gd.PureDP(1.0), records=records)
    >>> mechanism.ask(lambda records: sum(age >= 500 for age in records)).above
    True
    >>> mechanism
    AboveThreshold(threshold=100, 1-DP, replace-one: 1 asked, 1 of at most 1 found above)
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

    The mechanism halts after `cutoff` queries found above. Under pure DP the threshold noise is
    drawn once (Lyu-Su-Li, Algorithm 1). ``redraw=True`` chooses Dwork-Roth's Algorithm 2 instead,
    which draws it again after each query found above, and needs more noise. Approximate DP always
    uses Algorithm 2. For other parameters see `AboveThreshold`.

    Privacy: eps-DP, or (eps, delta)-DP by advanced composition (eps <= 1), in real arithmetic.
    Queries are as in `AboveThreshold`.

    Examples
    --------
    >>> import geomdp as gd
    >>> mechanism = gd.Sparse(threshold=100.0, cutoff=2, privacy=gd.PureDP(1.0), rng=0)
    >>> [answer.above for answer in mechanism.ask_many([10.0, 200.0, 20.0, 300.0, 30.0])]
    [False, True, False, True]
    >>> mechanism.halted
    True
    """

    redraw: bool = False

    def _calibrate(self) -> Scales:
        if isinstance(self.privacy, PureDP) and not self.redraw:
            return kept(self.privacy, self.cutoff, monotone=self.monotone)
        return redrawn(self.privacy, self.cutoff, monotone=self.monotone)


@dataclass(eq=False, repr=False, kw_only=True)
class NumericSparse(SparseVectorStream):
    """Find up to `cutoff` queries above a threshold and release their values (SV-NUM).

    This is Dwork-Roth's Algorithm 3 with 8/9 of epsilon for comparisons and 1/9 for values. With
    the split that Dwork-Roth prints for delta > 0 (`PrintedNumericSparse`), the printed accuracy
    does not hold for few queries (DISC-11). The mechanism halts after `cutoff` queries found above.
    For other parameters see `AboveThreshold`.

    Privacy: eps-DP, or (eps, delta)-DP by advanced composition (8 eps / 9 <= 1), in real
    arithmetic, for the queries of `AboveThreshold`.

    Examples
    --------
    >>> import geomdp as gd
    >>> mechanism = gd.NumericSparse(threshold=100.0, cutoff=2, privacy=gd.PureDP(1.0), rng=0)
    >>> for answer in mechanism.ask_many([10.0, 400.0, 20.0]):
    ...     print(answer.above, None if answer.value is None else round(answer.value, 1))
    False None
    True 431.4
    False None
    """

    def _calibrate(self) -> Scales:
        return numeric(self.privacy, self.cutoff, monotone=self.monotone)


@dataclass(eq=False, repr=False, kw_only=True)
class PrintedNumericSparse(SparseVectorStream):
    """NumericSparse with the split printed in Dwork-Roth for delta > 0 (DISC-11).

    This mechanism is as private as `NumericSparse`. For few queries, the noise on values exceeds
    the printed accuracy (`bounds.upper.numeric_sparse_printed`) with a probability above the stated
    beta. Parameters are as in `NumericSparse`, without `monotone`; `privacy` is an ApproxDP.

    Privacy: (eps, delta)-DP by advanced composition (eps <= 1), in real arithmetic.

    Examples
    --------
    >>> import geomdp as gd
    >>> privacy = gd.ApproxDP(1.0, 1e-6)
    >>> printed = gd.mechanisms.PrintedNumericSparse(threshold=0.0, cutoff=2, privacy=privacy)
    >>> corrected = gd.NumericSparse(threshold=0.0, cutoff=2, privacy=privacy)
    >>> round(printed.scales.answer, 1), round(corrected.scales.answer, 1)
    (360.0, 137.1)
    """

    privacy: ApproxDP
    monotone: bool = field(init=False, default=False)

    def _calibrate(self) -> Scales:
        if not isinstance(self.privacy, ApproxDP):
            raise ValueError(
                f"privacy must be ApproxDP for PrintedNumericSparse, got {self.privacy}"
            )
        return numeric_printed(self.privacy, self.cutoff)
