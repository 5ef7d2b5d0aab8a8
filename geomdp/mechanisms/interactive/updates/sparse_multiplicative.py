"""Sparse multiplicative weights, for an infinite universe of hashable elements (BR-SMW)."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from geomdp._numerics.bisection import least_whole
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import positive, whole
from geomdp.mechanisms.interactive.updates.finite_universe import LEAST_ALPHA
from geomdp.workloads.single_queries import SparseQuery

#: Number of updates after which the sum of the weights is computed anew. The rounding errors of
#: more updates cannot add up in the sum.
RENORMALISE_EVERY = 1024
#: Place of the weight that all free slots share. It must be 0, because `_assign` counts the places
#: that are not 0.
FREE = 0


@dataclass(frozen=True)
class SparseMultiplicativeWeights:
    """Sparse multiplicative weights for queries of sparsity at most m.

    At accuracy alpha, the number s of slots is the smallest whole number with
    s / (ln s + 1) >= 4 m / alpha^2. Under the conditions of `UpdateRule`, there are at most
    B(alpha) = 4 (ln s + 1) / alpha^2 updates. Because s >= m B(alpha), there are enough slots for
    all these updates (Blum-Roth, Definition 3.4, Algorithm 1, Theorem 3.5; BR-SMW, DISC-9). A query
    takes time O(m); some updates also sum all assigned weights. Memory is proportional to their
    number.

    Parameters
    ----------
    sparsity : int
        Largest sparsity m of a query.

    Examples
    --------
    >>> import geomdp as gd
    >>> rule = gd.SparseMultiplicativeWeights(sparsity=1)
    >>> rule.slots(0.5), round(rule.bound(0.5), 1)
    (88, 87.6)
    >>> hypothesis = rule.start(0.5)
    >>> hypothesis.update(gd.workloads.SparseQuery(["apple"], [1.0]), answer=0.7)
    >>> hypothesis
    SlotHypothesis(1 of 88 slots assigned)
    """

    sparsity: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "sparsity", whole(self.sparsity, "sparsity"))

    def slots(self, alpha: float) -> int:
        """The number of slots s for accuracy `alpha`; ``ValueError`` for `alpha` below 1e-100."""
        alpha = positive(alpha, "alpha")
        if alpha < LEAST_ALPHA:
            raise ValueError(f"alpha must be at least {LEAST_ALPHA:g}, got {alpha!r}")
        target = 4 * self.sparsity / alpha / alpha
        # s / (ln s + 1) increases for s >= 1: bracket by doubling, then bisect.
        high = 1
        while high / (math.log(high) + 1) < target:
            high *= 2
        return least_whole(lambda s: s / (math.log(s) + 1) >= target, high // 2, high)

    def bound(self, alpha: float) -> float:
        """The largest number of updates, B(alpha) = 4 (ln s + 1) / alpha^2."""
        return 4 * (math.log(self.slots(alpha)) + 1) / alpha / alpha

    def start(self, alpha: float) -> SlotHypothesis:
        """The uniform distribution on the slots, with learning rate alpha / 2."""
        return SlotHypothesis(self.slots(alpha), self.sparsity, alpha / 2)


class SlotHypothesis:
    """A distribution on `slots` slots, which elements get in the order of their first updates.

    All free slots have the same weight. `rate` is the learning rate eta.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.interactive.updates import SlotHypothesis
    >>> hypothesis = SlotHypothesis(slots=4, sparsity=1, rate=0.5)
    >>> query = gd.workloads.SparseQuery(["apple"], [1.0])
    >>> hypothesis.evaluate(query)
    0.25
    >>> hypothesis.update(query, answer=0.7)
    >>> round(hypothesis.evaluate(query), 3), hypothesis.assigned
    (0.355, 1)
    """

    def __init__(self, slots: int, sparsity: int, rate: float) -> None:
        self._slots = slots
        self._sparsity = sparsity
        self._rate = rate
        self._place_of: dict[Hashable, int] = {}
        # Logarithms of weights. Place FREE holds the weight of every free slot, and the places
        # after it hold the weights of assigned slots.
        self._logs = np.zeros(64)
        self._total = float(slots)  # the sum of the weights of all slots
        self._updates = 0
        self._looked_up: tuple[tuple[Hashable, ...], IntArray, FloatArray] | None = None

    def __repr__(self) -> str:
        return f"SlotHypothesis({self.assigned} of {self._slots} slots assigned)"

    @property
    def slots(self) -> int:
        """Number of slots s."""
        return self._slots

    @property
    def assigned(self) -> int:
        """Number of slots that have an element."""
        return len(self._place_of)

    def weight(self, element: Hashable) -> float:
        """Probability of `element`, or of one free slot for a new element (0 if none is free)."""
        return float(self._find((element,))[1][0]) / self._total

    def evaluate(self, query: SparseQuery) -> float:
        """Mean of `query`; ``ValueError`` if its support has more than `sparsity` elements."""
        self._check(query)
        return float(query.values.dot(self._find(query.support)[1])) / self._total

    def update(self, query: SparseQuery, answer: float) -> None:
        """Assign slots to the elements of the query, then multiply their weights.

        If `answer` is below the answer of the hypothesis, the weight of element x is multiplied by
        exp(-eta Q(x)), else by exp(eta Q(x)). ``ValueError`` if the support of the query Q has more
        than `sparsity` elements. ``RuntimeError`` if it needs more new slots than are free; in a
        hypothesis that the rule started, this cannot happen in the first B(alpha) updates.
        """
        self._check(query)
        places, weights = self._find(query.support)
        below = answer < float(query.values.dot(weights)) / self._total
        self._looked_up = None  # this method changes the weights
        places = self._assign(query.support, places)
        change = query.values * (-self._rate if below else self._rate)
        self._logs[places] += change  # a support lists each element once
        self._updates += 1
        self._total += float(weights.dot(np.expm1(change)))
        # Sum all weights anew from time to time because of rounding errors. Also sum them anew if
        # the total is far from the value at the start.
        drifted = not 1e-3 < self._total / self._slots < 1e3
        if drifted or self._updates % RENORMALISE_EVERY == 0:
            self._renormalise()

    def _check(self, query: SparseQuery) -> None:
        if len(query.support) > self._sparsity:
            raise ValueError(
                f"query must have sparsity at most {self._sparsity}, got {query.sparsity}"
            )

    def _find(self, support: tuple[Hashable, ...]) -> tuple[IntArray, FloatArray]:
        """Places of `support` in the table of logarithms, and weights; the last result is kept."""
        last = self._looked_up
        if last is not None and last[0] is support:
            return last[1], last[2]
        found = map(self._place_of.get, support, itertools.repeat(FREE))
        places = np.fromiter(found, dtype=np.int64, count=len(support))
        weights = np.exp(self._logs[places])
        self._looked_up = support, places, weights
        return places, weights

    def _assign(self, support: tuple[Hashable, ...], places: IntArray) -> IntArray:
        """Places of the elements of `support`, after each has a slot."""
        if np.count_nonzero(places) == len(places):
            return places
        fresh = np.flatnonzero(places == FREE)
        start = self.assigned + 1
        stop = start + len(fresh)
        if stop - 1 > self._slots:
            raise RuntimeError(
                f"the {self._slots} slots are used up: there were more updates than B(alpha)"
            )
        while stop > len(self._logs):
            self._logs = np.concatenate([self._logs, np.zeros(len(self._logs))])
        # A support lists each element once, so the elements without a slot are distinct.
        self._place_of.update(
            zip([support[i] for i in fresh.tolist()], range(start, stop), strict=True)
        )
        self._logs[start:stop] = self._logs[FREE]
        if self.assigned == self._slots:  # no slot is free, so other elements have weight 0
            self._logs[FREE] = -math.inf
        places = places.copy()
        places[fresh] = np.arange(start, stop)
        return places

    def _renormalise(self) -> None:
        logs = self._logs[: self.assigned + 1]
        top = float(logs.max())
        weights = np.exp(logs - top)
        weights[FREE] *= self._slots - self.assigned
        # The total starts again at the number of slots, far from overflow and underflow.
        logs -= top + math.log(float(weights.sum()) / self._slots)
        self._total = float(self._slots)
