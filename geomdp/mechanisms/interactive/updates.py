"""Update rules: how a public hypothesis follows noisy answers, and how many updates it may take."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np

from geomdp._numerics.linalg import least_whole
from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp._validation import finite_array, positive, real_number, whole
from geomdp.privacy import ApproxDP, PureDP
from geomdp.privacy.definitions import check_range
from geomdp.workloads.base import DenseQuery, LinearQuery, SparseQuery

#: Smallest accuracy alpha that may be asked for, where bounds of all rules are within float64.
LEAST_ALPHA = 1e-100

Query = TypeVar("Query", bound=LinearQuery, contravariant=True)
#: A function that maps a number of updates to the budget that a run of these updates spends.
Spending = Callable[[int], PureDP | ApproxDP]


class UnfollowedAnswerError(ValueError):
    """No hypothesis agrees with a noisy answer, so the bound does not hold; nothing was changed."""


class Hypothesis(Protocol[Query]):
    """A public estimate of the data that answers queries and is updated by noisy answers."""

    def evaluate(self, query: Query) -> float:
        """The hypothesis' answer to `query`."""

    def update(self, query: Query, answer: float) -> None:
        """Move the hypothesis' answer to `query` towards the noisy `answer`."""


@runtime_checkable
class UpdateRule(Protocol[Query]):
    """Starts hypotheses for a target accuracy and bounds the number of updates they need (BR-IDC).

    Let D be the data and D_t the hypothesis before update t. Let every update get a query Q_t with
    |Q_t(D) - Q_t(D_t)| >= alpha and an answer that differs from Q_t(D) by less than alpha. Then
    after at most B(alpha) updates, no query Q with |Q(D) - Q(D_t)| >= alpha is left.
    """

    def bound(self, alpha: float) -> float:
        """B(alpha), a bound on the number of updates at accuracy `alpha`; can be infinite."""

    def start(self, alpha: float) -> Hypothesis[Query]:
        """The initial hypothesis for accuracy `alpha`."""


def follow(hypothesis: Hypothesis[Query], query: Query, answer: float) -> bool:
    """Update `hypothesis`; False if its rule cannot follow the answer, which is paid for."""
    try:
        hypothesis.update(query, answer)
    except UnfollowedAnswerError:
        return False
    return True


@dataclass(frozen=True)
class MultiplicativeWeights:
    """Multiplicative weights on {0, ..., M - 1}: at most 4 ln M / alpha^2 updates.

    At the start KL(data || hypothesis) is at most ln M. An update lowers it by at least
    alpha^2 / 4, if the hypothesis errs on the query by at least alpha, and the noisy answer by less
    (Dwork-Roth, Algorithm 5 and Theorem 4.10; BR-MW). Evaluations and updates take time O(M).

    Parameters
    ----------
    size : int
        Universe size M, at least 2.

    Examples
    --------
    >>> import geomdp as gd
    >>> rule = gd.mechanisms.MultiplicativeWeights(3)
    >>> round(rule.bound(0.2), 1)
    109.9
    >>> hypothesis = rule.start(0.2)
    >>> hypothesis.update(gd.workloads.DenseQuery([1.0, 0.0, 0.0]), answer=0.7)
    >>> hypothesis.distribution.round(3)
    array([0.356, 0.322, 0.322])
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(self.size, "size", minimum=2))

    def bound(self, alpha: float) -> float:
        alpha = positive(alpha, "alpha")
        # All rules divide by alpha twice, because its square can be beyond the range of float64.
        return 4 * math.log(self.size) / alpha / alpha

    def start(self, alpha: float) -> WeightedHypothesis:
        """The uniform distribution, with learning rate alpha / 2."""
        return WeightedHypothesis(self.size, positive(alpha, "alpha") / 2)


class WeightedHypothesis:
    """A distribution on {0, ..., `size` - 1}, first uniform. `rate` is the learning rate eta."""

    def __init__(self, size: int, rate: float) -> None:
        self._logs = np.zeros(size)
        self._rate = rate
        self._distribution: FloatArray = np.full(size, 1 / size)

    def __repr__(self) -> str:
        return f"WeightedHypothesis(a distribution on {len(self._logs)} elements)"

    @property
    def distribution(self) -> FloatArray:
        return self._distribution.copy()

    def evaluate(self, query: DenseQuery) -> float:
        return float(query.values @ self._distribution)

    def update(self, query: DenseQuery, answer: float) -> None:
        """Multiply the weight of each x by exp(-eta Q(x)), or exp(eta Q(x)) to raise the answer."""
        sign = -1 if answer < self.evaluate(query) else 1
        self._logs += sign * self._rate * query.values
        self._logs -= self._logs.max()
        weights = np.exp(self._logs)
        self._distribution = weights / weights.sum()


@dataclass(frozen=True)
class Perceptron:
    """The Frieze-Kannan perceptron on {0, ..., M - 1}: at most B(alpha) = M / alpha^2 updates.

    The hypothesis is a vector x in R^M, which starts at 0. For a query Q, an update subtracts
    (alpha / M) Q from x if <Q, x> is above the noisy answer, else adds it. If <Q, x> errs by at
    least alpha, and the noisy answer by less than alpha, this lowers ||data - x||_2^2, which starts
    at most at 1, by at least alpha^2 / M (Dwork-Roth, Algorithm 10 and Theorem 5.11; BR-FK).

    Parameters
    ----------
    size : int
        Universe size M.

    Examples
    --------
    >>> import geomdp as gd
    >>> rule = gd.mechanisms.Perceptron(2)
    >>> round(rule.bound(0.5), 1)
    8.0
    >>> hypothesis = rule.start(0.5)
    >>> hypothesis.update(gd.workloads.DenseQuery([1.0, 0.0]), answer=0.7)
    >>> hypothesis.vector
    array([0.25, 0.  ])
    """

    size: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", whole(self.size, "size"))

    def bound(self, alpha: float) -> float:
        alpha = positive(alpha, "alpha")
        return self.size / alpha / alpha

    def start(self, alpha: float) -> LinearHypothesis:
        return LinearHypothesis(self.size, positive(alpha, "alpha") / self.size)


class LinearHypothesis:
    """A real vector (`size`,). An update adds or subtracts `step` times the values of its query."""

    def __init__(self, size: int, step: float) -> None:
        self._vector = np.zeros(size)
        self._step = step

    def __repr__(self) -> str:
        return f"LinearHypothesis(a vector of {len(self._vector)} elements)"

    @property
    def vector(self) -> FloatArray:
        return self._vector.copy()

    def evaluate(self, query: DenseQuery) -> float:
        return float(query.values @ self._vector)

    def update(self, query: DenseQuery, answer: float) -> None:
        sign = -1 if self.evaluate(query) > answer else 1
        self._vector += sign * self._step * query.values


#: Largest number of entries of a net: 2^26 float64 are 512 MB.
MAX_NET_ENTRIES = 1 << 26


def net_fineness(size: int, records: int, n_queries: int) -> float:
    """Fineness of `net(size, records)` for q = `n_queries` queries with values in [0, 1].

    For every data set, some row of the net answers all q queries with errors of at most the
    fineness. With M = `size` and l = `records`, it is the smaller of sqrt(ln(2 q) / (2 l)), by
    Hoeffding's inequality for l records drawn from the data set, and, for any q, of
    floor(M / 2) ceil(M / 2) / (M l), the largest total variation distance from the nearest row.

    Examples
    --------
    >>> from geomdp.mechanisms.interactive.updates import net_fineness
    >>> net_fineness(size=2, records=4, n_queries=10)
    0.125
    """
    size, records = whole(size, "size"), whole(records, "records")
    n_queries = whole(n_queries, "n_queries")
    drawn = math.sqrt(math.log(2 * n_queries) / (2 * records))
    rounded = (size // 2) * (size - size // 2) / (size * records)
    return min(drawn, rounded)


def net_size(n_queries: int, alpha: float) -> int:
    """Number l of records per candidate that makes `net` an alpha-net for q queries (BR-MED).

    l = ceil(ln(2 q) / (2 alpha^2)) + 1 with q = `n_queries`: for every data set, some row of `net`
    answers all q queries with values in [0, 1] with errors of at most alpha.

    Examples
    --------
    >>> from geomdp.mechanisms.interactive.updates import net_size
    >>> net_size(n_queries=10, alpha=0.5)
    7
    """
    n_queries, alpha = whole(n_queries, "n_queries"), positive(alpha, "alpha")
    return math.ceil(math.log(2 * n_queries) / (2 * alpha**2)) + 1


def net(size: int, records: int) -> FloatArray:
    """All distributions of `records` records on {0, ..., size - 1}: (C(M + l - 1, l), M).

    M is `size` and l is `records`. ``ValueError`` for more than 2^26 entries.

    Examples
    --------
    >>> from geomdp.mechanisms.interactive.updates import net
    >>> net(size=2, records=2)
    array([[1. , 0. ],
           [0.5, 0.5],
           [0. , 1. ]])
    """
    size, records = whole(size, "size"), whole(records, "records")
    count = math.comb(size + records - 1, records)
    if count * size > MAX_NET_ENTRIES:
        raise ValueError(f"a net of {count} candidates on {size} elements has over 2^26 entries")
    candidates = np.zeros((count, size))
    for row, members in enumerate(combinations_with_replacement(range(size), records)):
        np.add.at(candidates[row], list(members), 1 / records)
    return candidates


@dataclass(frozen=True, eq=False)
class Median:
    """The update rule of the median mechanism: at most B(alpha) = log2 |net| updates.

    The hypothesis answers with the median of the answers of candidates, the net. An update keeps
    only those on the side of the noisy answer, at most half (Dwork-Roth, Algorithm 9 and Theorem
    5.8; BR-MED). The bound holds if `fineness` is strictly below alpha. Otherwise, the candidate
    nearest to the data can have the median answer and be deleted (DISC-20). ``ValueError`` for no
    candidates, a row that is no distribution up to 1e-9, or `fineness` below 0 or infinite.

    Parameters
    ----------
    candidates : (K, M) array
        Distributions on {0, ..., M - 1}, one in each row.
    fineness : float
        For every data set, some candidate answers all queries of the class with errors of at most
        this number. The caller vouches for it, or takes `net_fineness`. Accuracy depends on it, but
        not privacy.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.interactive.updates import net
    >>> rule = gd.mechanisms.Median(net(size=2, records=4), fineness=1 / 8)
    >>> hypothesis = rule.start(0.5)
    >>> hypothesis.update(gd.workloads.DenseQuery([1.0, 0.0]), answer=0.9)
    >>> hypothesis
    MedianHypothesis(2 of 5 candidates left)
    """

    candidates: FloatArray
    fineness: float

    def __post_init__(self) -> None:
        candidates = finite_array(self.candidates, "candidates", ndim=2)
        with np.errstate(over="ignore"):
            wrong = (candidates < 0).any(axis=1) | (np.abs(candidates.sum(axis=1) - 1) > 1e-9)
        if len(candidates) == 0 or wrong.any():
            got = f"row {np.argmax(wrong)}: {candidates[wrong][0]}" if wrong.any() else "no row"
            raise ValueError(f"rows of candidates must be at least 0 and sum to 1, got {got}")
        object.__setattr__(self, "candidates", candidates)
        fineness = real_number(self.fineness)
        if not 0 <= fineness < math.inf:
            raise ValueError(f"fineness must be a finite number of at least 0, got {fineness}")
        object.__setattr__(self, "fineness", fineness)

    def __repr__(self) -> str:
        count, size = self.candidates.shape
        return f"Median({count} candidates on {size} elements, fineness {self.fineness:g})"

    def bound(self, alpha: float) -> float:
        """B(alpha) = log2 |net|; infinity if `fineness` is not below alpha."""
        positive(alpha, "alpha")
        return math.log2(len(self.candidates)) if self.fineness < alpha else math.inf

    def start(self, alpha: float) -> MedianHypothesis:
        positive(alpha, "alpha")
        return MedianHypothesis(self.candidates)


class MedianHypothesis:
    """The rows of `candidates` (K, M) left; it answers with the lower median of their answers."""

    def __init__(self, candidates: FloatArray) -> None:
        self._candidates = candidates
        self._alive: BoolArray = np.ones(len(candidates), dtype=bool)

    def __repr__(self) -> str:
        return f"MedianHypothesis({self.remaining} of {len(self._candidates)} candidates left)"

    @property
    def remaining(self) -> int:
        return int(self._alive.sum())

    def evaluate(self, query: DenseQuery) -> float:
        answers = self._candidates[self._alive] @ query.values
        middle = (len(answers) - 1) // 2
        return float(np.partition(answers, middle)[middle])

    def update(self, query: DenseQuery, answer: float) -> None:
        median = self.evaluate(query)
        # An answer at the median keeps the candidates above it.
        answers = self._candidates @ query.values
        keep = answers < median if answer < median else answers > median
        if not (self._alive & keep).any():
            raise UnfollowedAnswerError(
                "no candidate is left: the net must be strictly finer than alpha, and noise smaller"
            )
        self._alive &= keep


#: Number of updates after which rounding errors of the sum of the weights are removed.
RENORMALISE_EVERY = 1024
#: Place of the weight that all free slots share.
FREE = 0


@dataclass(frozen=True)
class SparseMultiplicativeWeights:
    """Sparse multiplicative weights for queries of sparsity at most m.

    At accuracy alpha, the number s of slots is the smallest whole number with
    s / (ln s + 1) >= 4 m / alpha^2. Under the conditions of `UpdateRule`, there are at most
    B(alpha) = 4 (ln s + 1) / alpha^2 updates, for which s >= m B(alpha) slots suffice (Blum-Roth,
    Definition 3.4, Algorithm 1, Theorem 3.5; BR-SMW, DISC-9). A query takes time O(m); some updates
    also sum all assigned weights, to whose number memory is proportional.

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
        return 4 * (math.log(self.slots(alpha)) + 1) / alpha / alpha

    def start(self, alpha: float) -> SlotHypothesis:
        """The uniform distribution on the slots, with learning rate alpha / 2."""
        return SlotHypothesis(self.slots(alpha), self.sparsity, alpha / 2)


class SlotHypothesis:
    """A distribution on `slots` slots, which elements get at their first updates; `rate` is eta."""

    def __init__(self, slots: int, sparsity: int, rate: float) -> None:
        self.slots = slots
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
        return f"SlotHypothesis({self.assigned} of {self.slots} slots assigned)"

    @property
    def assigned(self) -> int:
        return len(self._place_of)

    def weight(self, element: Hashable) -> float:
        return float(self._find((element,))[1][0]) / self._total

    def evaluate(self, query: SparseQuery) -> float:
        self._check(query)
        return float(query.values.dot(self._find(query.support)[1])) / self._total

    def update(self, query: SparseQuery, answer: float) -> None:
        """Multiply the weights of the query's elements as `WeightedHypothesis` does.

        ``RuntimeError`` if too few slots are free, which a hypothesis that the rule started does
        not reach in the first B(alpha) updates.
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
        drifted = not 1e-3 < self._total / self.slots < 1e3
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
        fresh = np.flatnonzero(places == FREE)
        if len(fresh) == 0:
            return places
        start = self.assigned + 1
        stop = start + len(fresh)
        if stop - 1 > self.slots:
            raise RuntimeError(
                f"the {self.slots} slots are used up: there were more updates than B(alpha)"
            )
        while stop > len(self._logs):
            self._logs = np.concatenate([self._logs, np.zeros(len(self._logs))])
        self._place_of.update(
            zip([support[i] for i in fresh.tolist()], range(start, stop), strict=True)
        )
        self._logs[start:stop] = self._logs[FREE]
        if self.assigned == self.slots:  # no slot is free, so other elements have weight 0
            self._logs[FREE] = -math.inf
        places = places.copy()
        places[fresh] = np.arange(start, stop)
        return places

    def _renormalise(self) -> None:
        logs = self._logs[: self.assigned + 1]
        top = float(logs.max())
        weights = np.exp(logs - top)
        weights[FREE] *= self.slots - self.assigned
        # The total starts again at the number of slots, far from overflow and underflow.
        logs -= top + math.log(float(weights.sum()) / self.slots)
        self._total = float(self.slots)


# How many updates a run may take, and what they spend.

#: Largest bound of a rule for which a run is planned: no stated budget of a step pays for it.
MOST_UPDATES = 2.0**200


class Rounds(NamedTuple):
    """The largest number of `updates`, the budget `spent`, and whether the bound is reached."""

    updates: int
    spent: PureDP | ApproxDP
    complete: bool


def rounds_within(
    bound: float, budget: PureDP | ApproxDP, spending: Spending | None = None
) -> Rounds:
    """The rounds for a rule of at most floor(`bound`) updates; ``ValueError`` if there are none."""
    if not bound <= MOST_UPDATES:
        raise ValueError(f"alpha must be larger: at this alpha the rule can need {bound:g} updates")
    wanted = max(1, math.floor(bound))
    if spending is None:
        return Rounds(wanted, budget, complete=True)
    if spending(1).epsilon > budget.epsilon:
        raise ValueError(
            f"epsilon_0 must be smaller: one update would spend {spending(1)}, more than {budget}"
        )
    if spending(wanted).epsilon <= budget.epsilon:
        return Rounds(wanted, spending(wanted), complete=True)
    paid = least_whole(lambda count: spending(count).epsilon > budget.epsilon, 1, wanted) - 1
    return Rounds(paid, spending(paid), complete=False)


def is_bounded(rule: UpdateRule[Any], alpha: float) -> bool:
    """Whether a run can be planned for the bound of `rule` at the accuracy `alpha`."""
    return rule.bound(alpha) <= MOST_UPDATES


def checked_alpha(alpha: float) -> float:
    """The accuracy `alpha` as a float; ``ValueError`` unless it is from `LEAST_ALPHA` to 1."""
    number = real_number(alpha)
    if not LEAST_ALPHA <= number <= 1:
        raise ValueError(f"alpha must be from {LEAST_ALPHA:g} to 1, got {alpha!r}")
    return number


def checked_step(epsilon_0: float) -> float:
    """The budget `epsilon_0` as a float; ``ValueError`` unless `check_range` takes it."""
    number = positive(epsilon_0, "epsilon_0")
    check_range(PureDP(number))
    return number
