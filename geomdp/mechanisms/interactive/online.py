"""Online release: answer k adaptive queries from a hypothesis that an update rule improves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, Generic

from geomdp._numerics.linalg import smallest_accuracy
from geomdp._numerics.randomness import NotCopied
from geomdp._typing import RandomState
from geomdp._validation import probability, require_type, whole
from geomdp.bounds.upper.theorems import numeric_sparse
from geomdp.mechanisms.interactive.sparse_vector import Answer, NumericSparse
from geomdp.mechanisms.interactive.updates import (
    Hypothesis,
    Query,
    Rounds,
    UpdateRule,
    checked_alpha,
    checked_step,
    follow,
    is_bounded,
    rounds_within,
)
from geomdp.privacy import Adjacency, ApproxDP, PureDP
from geomdp.privacy.definitions import check_privacy, check_range, checked_adjacency
from geomdp.privacy.ledger import BudgetExhausted, Ledger


def solve_accuracy(
    rule: UpdateRule[Any],
    *,
    privacy: PureDP | ApproxDP,
    n: int,
    queries: int,
    beta: float,
    epsilon_0: float | None = None,
) -> float:
    """The smallest alpha0 of `OnlineConstruction` (BR-OIC); ``ValueError`` if there is none."""

    def enough(alpha: float) -> bool:
        if not is_bounded(rule, alpha):
            return False
        rounds = allowed_rounds(rule, alpha, privacy, epsilon_0)
        noise = noise_limit(rounds, queries, beta)
        return rounds.complete and alpha >= noise / n

    alpha = smallest_accuracy(enough)
    if alpha is None:
        raise ValueError(
            f"alpha must be given, because n must be larger for a proved accuracy of {queries} "
            f"queries at {privacy}, got {n}"
        )
    return alpha


def allowed_rounds(
    rule: UpdateRule[Any], alpha: float, privacy: PureDP | ApproxDP, epsilon_0: float | None
) -> Rounds:
    """The updates that `privacy` pays for; they share it if their budget `epsilon_0` is None."""
    check_privacy(privacy, PureDP, ApproxDP)
    spending = None if epsilon_0 is None else partial(composed_sparse, privacy, epsilon_0)
    return rounds_within(rule.bound(alpha), privacy, spending)


def composed_sparse(budget: PureDP | ApproxDP, epsilon_0: float, updates: int) -> PureDP | ApproxDP:
    """Guarantee of NumericSparse with c updates of epsilon_0 each (SV-NUM)."""
    match budget:
        case PureDP():
            return PureDP(updates * epsilon_0)
        case ApproxDP(delta=delta):
            return ApproxDP(epsilon_0 * math.sqrt(8 * updates * math.log(2 / delta)), delta)


def noise_limit(rounds: Rounds, queries: int, beta: float) -> float:
    """NumericSparse's accuracy with probability 1 - beta, with two comparisons for each query."""
    return numeric_sparse(rounds.spent, cutoff=rounds.updates, queries=2 * queries, beta=beta)


class OnlineConstruction(NotCopied, Generic[Query]):
    """Answer k adaptive linear queries from a hypothesis that is updated only when it is wrong.

    Let D be the data, H the hypothesis and alpha0 the target accuracy `alpha`. For each query f,
    NumericSparse compares f(D) - f(H) and f(H) - f(D) with the threshold 2 alpha0. If one
    difference is found above the threshold, a noisy value of this difference gives the answer, and
    H is updated. If not, the answer is f(H). After c = max(1, floor(B(alpha0))) updates, where B is
    the bound of the rule, all answers come from H without access to the data (Dwork-Roth, Algorithm
    11, with corrected constants; BR-OIC).

    By default alpha0 is the smallest number, to a relative precision of 1e-12, with

        alpha0 >= 9 c (ln 2k + ln(4c/beta)) / (eps n),

    where sqrt(8 c ln(2/delta)) replaces the factor c for approximate DP. Then, with probability
    1 - beta, every answer has an error of at most 3 alpha0. For fewer records than the theorem
    needs, state `alpha`, `epsilon_0` or both; then `accuracy` is None.

    Privacy: eps-DP, or (eps, delta)-DP with 8 eps / 9 <= 1, that of a single NumericSparse with
    queries of sensitivity 1/n. If `epsilon_0` is stated, eps is c epsilon_0 for pure DP, and
    epsilon_0 sqrt(8 c ln(2/delta)) for approximate DP, and c is lowered, if necessary, to keep it
    at most that of `privacy`. Without a seed it also holds on the computer: answers of `ask` and
    comparisons are exact (X-GRID).

    ``ValueError`` for parameters out of range, for a number of records other than n under
    replace-one, if `privacy` does not pay for one update of `epsilon_0`, or if n is too small for
    any accuracy; ``BudgetExhausted`` if the ledger cannot pay.

    Parameters
    ----------
    rule : UpdateRule
        Update rule for the class of queries.
    n : int
        Number of records; under add/remove, a public number by which sums are divided.
    queries : int
        Number k of queries that may be asked.
    privacy : PureDP or ApproxDP
        The guarantee, or its upper limit if `epsilon_0` is stated; epsilon is from 1e-12 to 1e12.
    beta : float
        Failure probability of the accuracy statement, 0 < beta < 1.
    records : object, optional
        The records on which `ask` evaluates queries. Without them, `ask_truth` takes true answers.
    adjacency, rng, ledger : Adjacency, Generator or int, Ledger
        As for `AboveThreshold`.
    alpha : float, optional
        alpha0, above 0 and at most 1.
    epsilon_0 : float, optional
        Budget of an update, with 1/9 for the value. By default, all updates share `privacy`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> mechanism = gd.OnlineConstruction(
    ...     gd.mechanisms.MultiplicativeWeights(3), n=100_000, queries=10, privacy=gd.PureDP(1.0),
    ...     records=np.array([0] * 70_000 + [1] * 30_000), rng=0,
    ... )
    >>> round(mechanism.accuracy, 3)
    0.509
    >>> answer = mechanism.ask(gd.workloads.DenseQuery([1.0, 0.0, 0.0]))
    >>> answer.above, round(answer.value, 2)
    (True, 0.65)
    """

    def __init__(
        self,
        rule: UpdateRule[Query],
        *,
        n: int,
        queries: int,
        privacy: PureDP | ApproxDP,
        beta: float = 0.05,
        records: Sequence[Any] | None = None,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        rng: RandomState = None,
        ledger: Ledger | None = None,
        alpha: float | None = None,
        epsilon_0: float | None = None,
    ) -> None:
        check_range(privacy)
        require_type(rule, UpdateRule, "rule")
        self.n = whole(n, "n")
        self.queries = whole(queries, "queries")
        self.beta = probability(beta, "beta")
        step = None if epsilon_0 is None else checked_step(epsilon_0)
        replace_one = checked_adjacency(adjacency) is Adjacency.REPLACE_ONE
        if records is not None and replace_one and len(records) != self.n:
            raise ValueError(f"records must number n = {self.n}, got {len(records)}")
        self.rule = rule
        if alpha is None:
            self.alpha = solve_accuracy(
                rule, privacy=privacy, n=self.n, queries=self.queries, beta=beta, epsilon_0=step
            )
        else:
            self.alpha = checked_alpha(alpha)
        self._rounds = allowed_rounds(rule, self.alpha, privacy, step)
        self._exchanges: list[tuple[Query, Answer]] = []
        self._records = records
        self._tally: Any = None
        self._followed = True  # whether the rule could follow all answers
        self._hypothesis = rule.start(self.alpha)
        self._comparisons = NumericSparse(
            2 * self.alpha,
            cutoff=self.updates_allowed,
            privacy=self._rounds.spent,
            sensitivity=1 / self.n,
            adjacency=adjacency,
            rng=rng,
        )
        self.guarantee = self._comparisons.guarantee
        if ledger is not None:
            require_type(ledger, Ledger, "ledger")
            ledger.spend(self.guarantee, type(self).__name__)

    def __repr__(self) -> str:
        return (
            f"OnlineConstruction({self.rule!r}, n={self.n}, {self.guarantee.privacy}, "
            f"{self.guarantee.adjacency.value}: {len(self._exchanges)} of {self.queries} queries "
            f"asked, {self.updates} of at most {self.updates_allowed} updates)"
        )

    @property
    def updates_allowed(self) -> int:
        """Largest number c of updates."""
        return self._rounds.updates

    @property
    def accuracy(self) -> float | None:
        """3 alpha0: with probability 1 - beta, no answer has a larger error.

        None if the theorem does not cover the stated `alpha` and `epsilon_0`, or if no hypothesis
        of the rule agrees with an answer; under add/remove also once the updates are used up,
        because the number of records need not be n. For `Median`, its declared `fineness` is
        assumed to be true.
        """
        if self.guarantee.adjacency is Adjacency.ADD_REMOVE and self.halted:
            return None
        noise = noise_limit(self._rounds, self.queries, self.beta)
        enough = self._followed and self._rounds.complete and self.alpha >= noise / self.n
        return 3 * self.alpha if enough else None

    @property
    def hypothesis(self) -> Hypothesis[Query]:
        """The current public hypothesis; its accuracy is stated for the asked queries only."""
        return self._hypothesis

    @property
    def updates(self) -> int:
        """Number of updates made so far."""
        return self._comparisons.found

    @property
    def halted(self) -> bool:
        """Whether all updates are used up. All further answers then come from the hypothesis."""
        return self._comparisons.halted

    @property
    def exhausted(self) -> bool:
        """Whether all k queries have been asked. The `hypothesis` can still be evaluated."""
        return len(self._exchanges) >= self.queries

    def ask(self, query: Query) -> Answer:
        """Answer one query on the records; if H was updated from the data, `above` is True.

        ``BudgetExhausted`` after k queries. ``ValueError`` if the mechanism holds no records, the
        rule does not support the query, or the true answer shows values outside [0, 1]; nothing is
        spent.
        """
        if self._records is None:
            raise ValueError("the mechanism holds no records: use ask_truth")
        return self._ask(query, lambda: self._true_answer(query))

    def ask_truth(self, query: Query, truth: float | Fraction) -> Answer:
        """Answer one query from a given true answer `truth`, for teaching and audits.

        The privacy claim assumes that `truth` changes by at most 1/n between neighbours; only a
        `Fraction` is exact. Errors are those of `ask`. ``ValueError`` also if `truth` is negative,
        not finite, or above 1 under replace-one, or if the mechanism holds records.
        """
        if self._records is not None:
            raise ValueError("the mechanism holds records: use ask")
        if not self._possible(truth):
            raise ValueError(f"truth must lie in [0, {self._largest_truth:g}], got {truth!r}")
        return self._ask(query, lambda: Fraction(truth))

    def _ask(self, query: Query, true_answer: Callable[[], Fraction]) -> Answer:
        """Answer one query. `true_answer` is called only if there are updates left."""
        with self._alone():
            self._require_queries()
            estimate = self._hypothesis.evaluate(query)
            if self.halted:
                return self._record(query, Answer(False, estimate))
            truth = true_answer()
            self._require_queries()  # the query is code of the caller
            for sign in (1, -1):
                found = self._comparisons.ask(sign * (truth - Fraction(estimate)))
                if found.value is not None:
                    value = estimate + sign * found.value
                    answer = self._record(query, Answer(True, value))
                    self._followed &= follow(self._hypothesis, query, value)
                    return answer
            return self._record(query, Answer(False, estimate))

    def _require_queries(self) -> None:
        if self.exhausted:
            raise BudgetExhausted(
                f"all {self.queries} queries have been asked; the public `hypothesis` still "
                "answers any query"
            )

    def _true_answer(self, query: Query) -> Fraction:
        """The exact mean of the query; ``ValueError`` if it shows values outside [0, 1]."""
        if self._tally is None:
            self._tally = query.tally(self._records)
        truth = query.exact_total(self._tally) / self.n
        if not self._possible(truth):
            raise ValueError(
                "a query must have values in [0, 1] on every record, but its true answer shows "
                "a value outside [0, 1]"
            )
        return truth

    @property
    def _largest_truth(self) -> float:
        """Largest true answer of a query. Under add/remove there may be more than n records."""
        return 1.0 if self.guarantee.adjacency is Adjacency.REPLACE_ONE else math.inf

    def _possible(self, truth: float | Fraction) -> bool:
        return 0 <= truth <= self._largest_truth and math.isfinite(truth)

    def _record(self, query: Query, answer: Answer) -> Answer:
        self._exchanges.append((query, answer))
        return answer

    @property
    def exchanges(self) -> list[tuple[Query, Answer]]:
        """The queries that were asked, with the answers, in order. Both are public."""
        return list(self._exchanges)

    @property
    def transcript(self) -> tuple[Answer, ...]:
        """The answers given so far, in order."""
        return tuple(answer for _, answer in self._exchanges)
