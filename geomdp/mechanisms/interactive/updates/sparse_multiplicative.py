"""Sparse multiplicative weights, for an infinite universe of hashable elements (BR-SMW).

The hypothesis is a distribution on s slots. A slot can hold one element of the universe. An element
gets a slot at the first update by a query with this element in the support. All free slots have the
same weight, so only assigned slots are stored. A query of sparsity m (with m elements in its
support) takes time O(m). Some updates also sum the weights of all assigned slots. Memory is
proportional to the number of assigned slots. Time and memory do not depend on the size of the
universe.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from geomdp._numerics.bisection import least_whole
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import positive, whole
from geomdp.workloads.single_queries.single_query import SparseQuery

#: Number of updates after which the sum of the weights is computed anew. The rounding errors of
#: more updates cannot add up in the sum.
RENORMALISE_EVERY = 1024


@dataclass(frozen=True)
class SparseMultiplicativeWeights:
    """Sparse multiplicative weights for queries of sparsity at most m.

    The number s of slots is the smallest whole number with s / (ln s + 1) >= 4 m / alpha^2. Under
    the conditions of `geomdp.mechanisms.interactive.updates.base`, there are at most
    B(alpha) = 4 (ln s + 1) / alpha^2 updates. Because s >= m B(alpha), there are enough slots for
    all these updates (Blum-Roth, Definition 3.4, Algorithm 1, Theorem 3.5; BR-SMW, DISC-9).

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
        """The number of slots s for accuracy `alpha`."""
        target = 4 * self.sparsity / positive(alpha, "alpha") ** 2
        # s / (ln s + 1) increases for s >= 1: bracket by doubling, then bisect.
        high = 1
        while high / (math.log(high) + 1) < target:
            high *= 2
        return least_whole(lambda s: s / (math.log(s) + 1) >= target, high // 2, high)

    def bound(self, alpha: float) -> float:
        """The largest number of updates, B(alpha) = 4 (ln s + 1) / alpha^2."""
        return 4 * (math.log(self.slots(alpha)) + 1) / positive(alpha, "alpha") ** 2

    def start(self, alpha: float) -> SlotHypothesis:
        """The uniform distribution on the slots, with learning rate alpha / 2."""
        return SlotHypothesis(self.slots(alpha), self.sparsity, positive(alpha, "alpha") / 2)


class SlotHypothesis:
    """A distribution on `slots` slots. Elements get slots in the order of their first updates.

    A free slot has weight 1 before normalisation. The weights of assigned slots are stored as
    logarithms, to avoid overflow and underflow. `rate` is the learning rate eta.

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
        self._slot_of: dict[Hashable, int] = {}
        self._logs = np.zeros(64)
        self._offset = 0.0  # the sum of all weights is total * exp(offset)
        self._total = float(slots)
        self._updates = 0
        # The support that was looked up last, with its slots. An update usually follows an
        # evaluation of the same query, and then uses these slots.
        self._looked_up: tuple[tuple[Hashable, ...], IntArray] = ((), np.empty(0, dtype=np.int64))

    def __repr__(self) -> str:
        return f"SlotHypothesis({self.assigned} of {self._slots} slots assigned)"

    @property
    def slots(self) -> int:
        """Number of slots s."""
        return self._slots

    @property
    def assigned(self) -> int:
        """Number of slots that have an element."""
        return len(self._slot_of)

    def weight(self, element: Hashable) -> float:
        """Probability of `element` under the distribution.

        An element without a slot has the probability of one free slot, or 0 if no slot is free.
        """
        return float(self._weights(self._find((element,)))[0])

    def evaluate(self, query: SparseQuery) -> float:
        """Mean of `query` under the distribution.

        Raises
        ------
        ValueError
            If the query is not as sparse as declared.
        """
        self._check(query)
        return float(query.values @ self._weights(self._find(query.support)))

    def update(self, query: SparseQuery, answer: float) -> None:
        """Assign slots to the elements of the query, then multiply their weights.

        Let Q be the query. If `answer` is below the answer of the hypothesis, the weight of element
        x is multiplied by exp(-eta Q(x)). If not, the factor is exp(eta Q(x)).

        Raises
        ------
        ValueError
            If the query is not as sparse as declared.
        RuntimeError
            If the query needs more new slots than are free. In a hypothesis that the rule started,
            this cannot happen in the first B(alpha) updates.
        """
        self._check(query)
        slots = self._find(query.support)
        sign = -1 if answer < float(query.values @ self._weights(slots)) else 1
        slots = self._assign(query.support, slots)
        before = self._logs[slots]
        after = before + sign * self._rate * query.values
        self._logs[slots] = after
        self._updates += 1
        self._total += float((np.exp(after - self._offset) - np.exp(before - self._offset)).sum())
        # Sum all weights anew from time to time because of rounding errors. Also sum them anew if
        # the total is far from the value at the start.
        drifted = not 1e-3 < self._total / self._slots < 1e3
        if drifted or self._updates % RENORMALISE_EVERY == 0:
            self._renormalise()

    def _check(self, query: SparseQuery) -> None:
        if query.sparsity > self._sparsity:
            raise ValueError(
                f"query must have sparsity at most {self._sparsity}, got {query.sparsity}"
            )

    def _find(self, support: tuple[Hashable, ...]) -> IntArray:
        known, slots = self._looked_up
        if known is not support:
            found = map(self._slot_of.get, support, itertools.repeat(-1))
            slots = np.fromiter(found, dtype=np.int64, count=len(support))
            self._looked_up = support, slots
        return slots

    def _weights(self, slots: IntArray) -> FloatArray:
        free = slots < 0
        logs = self._logs[slots]
        logs[free] = 0.0
        weights = np.exp(logs - self._offset) / self._total
        if self.assigned == self._slots:  # no slot is free, so other elements have weight 0
            weights[free] = 0.0
        return np.asarray(weights)

    def _assign(self, support: tuple[Hashable, ...], slots: IntArray) -> IntArray:
        fresh = np.flatnonzero(slots < 0)
        if len(fresh) == 0:
            return slots
        if self.assigned + len(fresh) > self._slots:
            raise RuntimeError(
                f"the {self._slots} slots are used up: there were more updates than B(alpha)"
            )
        while self.assigned + len(fresh) > len(self._logs):
            self._logs = np.concatenate([self._logs, np.zeros(len(self._logs))])
        start, stop = self.assigned, self.assigned + len(fresh)
        # A support lists each element once, so the elements without a slot are distinct.
        self._slot_of.update(
            zip([support[i] for i in fresh.tolist()], range(start, stop), strict=True)
        )
        slots = slots.copy()
        slots[fresh] = np.arange(start, stop)
        self._looked_up = support, slots
        return slots

    def _renormalise(self) -> None:
        logs = self._logs[: self.assigned]
        free = self._slots - self.assigned
        top = max(float(logs.max(initial=-math.inf)), 0.0 if free else -math.inf)
        total = float(np.exp(logs - top).sum()) + free * math.exp(-top)
        # The total starts again at the number of slots, far from overflow and underflow.
        self._offset = top + math.log(total / self._slots)
        self._total = float(self._slots)
