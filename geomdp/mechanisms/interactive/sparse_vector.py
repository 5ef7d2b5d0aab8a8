"""The sparse vector technique: AboveThreshold, Sparse and NumericSparse as interactive objects.

Each is asked queries of a declared sensitivity, one after the other and adaptively, and says for
each whether it is above a public threshold. It pays only for the queries found above, and halts
after `cutoff` of them.
"""

from __future__ import annotations

from geomdp._typing import RandomState
from geomdp.mechanisms.interactive import scales as sparse_vector_scales
from geomdp.mechanisms.interactive.stream import _SparseVectorStream
from geomdp.privacy import Adjacency, ApproxDP, PureDP
from geomdp.privacy.ledger import Ledger


class AboveThreshold(_SparseVectorStream):
    """Find the first query above a threshold (Dwork-Roth, Algorithm 1; SV-AT).

    Lap(2D/eps) on the threshold, Lap(4D/eps) on each query (2D/eps if `monotone`); halts at the
    first query found above.

    Privacy: eps-DP for any adaptive sequence of queries of sensitivity D, in real arithmetic.

    Parameters
    ----------
    threshold : float
        The public threshold, in the units of the queries.
    privacy : PureDP
        The guarantee for the whole run.
    sensitivity : float
        Bound D on how far one query moves between neighbours, in the units of the queries.
    monotone : bool
        Declares that all queries move in the same direction between neighbours.
    adjacency : Adjacency
        The neighbour relation `sensitivity` refers to.
    records : object, optional
        The records; without them the mechanism is asked true answers.
    rng : Generator, int or None
        None for operating-system entropy; anything else voids the privacy claim.
    secure : bool
        Draw all noise by OpenDP (extra `secure`).
    ledger : Ledger, optional
        Pays for the whole run when the mechanism is built, before any record is looked at.

    Raises
    ------
    ValueError
        For parameters out of range.
    BudgetExhausted
        If the ledger cannot pay.
    """

    def __init__(
        self,
        threshold: float,
        *,
        privacy: PureDP,
        sensitivity: float = 1.0,
        monotone: bool = False,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        records: object | None = None,
        rng: RandomState = None,
        secure: bool = False,
        ledger: Ledger | None = None,
    ) -> None:
        if not isinstance(privacy, PureDP):
            raise ValueError(f"privacy must be PureDP for AboveThreshold, got {privacy}")
        super().__init__(
            threshold,
            cutoff=1,
            scales=sparse_vector_scales.above_threshold(privacy.epsilon, monotone=monotone),
            privacy=privacy,
            sensitivity=sensitivity,
            adjacency=adjacency,
            records=records,
            rng=rng,
            secure=secure,
            ledger=ledger,
        )


class Sparse(_SparseVectorStream):
    """Find up to `cutoff` queries above a threshold (SV-SP, SV-LSL).

    Under pure DP the threshold noise is drawn once (Lyu-Su-Li, Algorithm 1), unless
    ``redraw=True`` asks for Dwork-Roth's Algorithm 2, which draws it anew after each query found
    above and needs more noise; under approximate DP it is always redrawn.

    Privacy: eps-DP, or (eps, delta)-DP by advanced composition (eps <= 1), for any adaptive
    sequence of queries of sensitivity D, in real arithmetic.

    Parameters
    ----------
    threshold : float
        The public threshold, in the units of the queries.
    cutoff : int
        Number c of queries found above after which the mechanism halts.
    privacy : PureDP or ApproxDP
        The guarantee for the whole run.
    sensitivity : float
        Bound D on how far one query moves between neighbours, in the units of the queries.
    monotone : bool
        Declares that all queries move in the same direction between neighbours.
    redraw : bool
        Draw the threshold noise anew after each query found above.
    adjacency : Adjacency
        The neighbour relation `sensitivity` refers to.
    records : object, optional
        The records; without them the mechanism is asked true answers.
    rng : Generator, int or None
        None for operating-system entropy; anything else voids the privacy claim.
    secure : bool
        Draw all noise by OpenDP (extra `secure`).
    ledger : Ledger, optional
        Pays for the whole run when the mechanism is built, before any record is looked at.

    Raises
    ------
    ValueError
        For parameters out of range.
    BudgetExhausted
        If the ledger cannot pay.
    """

    def __init__(
        self,
        threshold: float,
        *,
        cutoff: int,
        privacy: PureDP | ApproxDP,
        sensitivity: float = 1.0,
        monotone: bool = False,
        redraw: bool = False,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        records: object | None = None,
        rng: RandomState = None,
        secure: bool = False,
        ledger: Ledger | None = None,
    ) -> None:
        _require_epsilon(privacy)
        if isinstance(privacy, PureDP) and not redraw:
            scales = sparse_vector_scales.kept(privacy, cutoff, monotone=monotone)
        else:
            scales = sparse_vector_scales.redrawn(privacy, cutoff, monotone=monotone)
        super().__init__(
            threshold,
            cutoff=cutoff,
            scales=scales,
            privacy=privacy,
            sensitivity=sensitivity,
            adjacency=adjacency,
            records=records,
            rng=rng,
            secure=secure,
            ledger=ledger,
        )


class NumericSparse(_SparseVectorStream):
    """Find up to `cutoff` queries above a threshold and release their values (SV-NUM).

    Dwork-Roth's Algorithm 3 with 8/9 of epsilon on the comparisons and 1/9 on the values. The
    printed split for delta > 0 misses its printed accuracy (DISC-11); `PrintedNumericSparse` is
    that one.

    Privacy: eps-DP, or (eps, delta)-DP by advanced composition (8 eps / 9 <= 1), for any adaptive
    sequence of queries of sensitivity D, in real arithmetic.

    Parameters
    ----------
    threshold : float
        The public threshold, in the units of the queries.
    cutoff : int
        Number c of queries found above after which the mechanism halts.
    privacy : PureDP or ApproxDP
        The guarantee for the whole run.
    sensitivity : float
        Bound D on how far one query moves between neighbours, in the units of the queries.
    monotone : bool
        Declares that all queries move in the same direction between neighbours.
    adjacency : Adjacency
        The neighbour relation `sensitivity` refers to.
    records : object, optional
        The records; without them the mechanism is asked true answers.
    rng : Generator, int or None
        None for operating-system entropy; anything else voids the privacy claim.
    secure : bool
        Draw all noise by OpenDP (extra `secure`).
    ledger : Ledger, optional
        Pays for the whole run when the mechanism is built, before any record is looked at.

    Raises
    ------
    ValueError
        For parameters out of range.
    BudgetExhausted
        If the ledger cannot pay.
    """

    def __init__(
        self,
        threshold: float,
        *,
        cutoff: int,
        privacy: PureDP | ApproxDP,
        sensitivity: float = 1.0,
        monotone: bool = False,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        records: object | None = None,
        rng: RandomState = None,
        secure: bool = False,
        ledger: Ledger | None = None,
    ) -> None:
        _require_epsilon(privacy)
        super().__init__(
            threshold,
            cutoff=cutoff,
            scales=sparse_vector_scales.numeric(privacy, cutoff, monotone=monotone),
            privacy=privacy,
            sensitivity=sensitivity,
            adjacency=adjacency,
            records=records,
            rng=rng,
            secure=secure,
            ledger=ledger,
        )


class PrintedNumericSparse(_SparseVectorStream):
    """NumericSparse with the split printed for delta > 0, kept to show where it fails (DISC-11).

    As private as `NumericSparse`, but for few queries the noise on its values exceeds the
    accuracy stated for it (`bounds.sparse_vector_accuracy.numeric_sparse_printed`).

    Privacy: (eps, delta)-DP by advanced composition (eps <= 1), for any adaptive sequence of
    queries of sensitivity D, in real arithmetic.

    Parameters
    ----------
    threshold : float
        The public threshold, in the units of the queries.
    cutoff : int
        Number c of queries found above after which the mechanism halts.
    privacy : ApproxDP
        The guarantee for the whole run.
    sensitivity : float
        Bound D on how far one query moves between neighbours, in the units of the queries.
    adjacency : Adjacency
        The neighbour relation `sensitivity` refers to.
    records : object, optional
        The records; without them the mechanism is asked true answers.
    rng : Generator, int or None
        None for operating-system entropy; anything else voids the privacy claim.

    Raises
    ------
    ValueError
        For parameters out of range.
    """

    def __init__(
        self,
        threshold: float,
        *,
        cutoff: int,
        privacy: ApproxDP,
        sensitivity: float = 1.0,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        records: object | None = None,
        rng: RandomState = None,
    ) -> None:
        if not isinstance(privacy, ApproxDP):
            raise ValueError(f"privacy must be ApproxDP for PrintedNumericSparse, got {privacy}")
        super().__init__(
            threshold,
            cutoff=cutoff,
            scales=sparse_vector_scales.numeric_printed(privacy, cutoff),
            privacy=privacy,
            sensitivity=sensitivity,
            adjacency=adjacency,
            records=records,
            rng=rng,
            secure=False,
            ledger=None,
        )


def _require_epsilon(privacy: object) -> None:
    if not isinstance(privacy, PureDP | ApproxDP):
        raise ValueError(f"privacy must be PureDP or ApproxDP, got {privacy}")
