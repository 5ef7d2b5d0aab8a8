"""Iterative construction: one release of a hypothesis that is accurate on a whole query class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Generic

from geomdp._numerics.bisection import smallest_accuracy
from geomdp._numerics.single_use import Turn
from geomdp._typing import FloatArray, RandomState
from geomdp._validation import positive, probability, require_type, whole
from geomdp.mechanisms.interactive.distinguishers import AnyQuery, Distinguisher
from geomdp.mechanisms.interactive.iterative_answers import Answers, ExactAnswers, SeededAnswers
from geomdp.mechanisms.interactive.iterative_release import IterativeRelease, accuracy_in_words
from geomdp.mechanisms.interactive.rounds import (
    Rounds,
    checked_alpha,
    checked_step,
    composed_pairs,
    is_bounded,
    rounds_within,
    step_epsilon,
)
from geomdp.mechanisms.interactive.scales import ROUNDED_UP
from geomdp.mechanisms.interactive.stopping import CORRECTED, StoppingDesign
from geomdp.mechanisms.interactive.transcript import Answer
from geomdp.mechanisms.interactive.updates.base import Hypothesis, UpdateRule, follow
from geomdp.mechanisms.protocol import release_once
from geomdp.noise.scalar import ExactNoise, GeneratorNoise
from geomdp.privacy import Adjacency, ApproxDP, Exact, Guarantee, PureDP
from geomdp.privacy.definitions import checked_adjacency
from geomdp.privacy.ledger import Ledger
from geomdp.privacy.parameter_range import check_range

#: Rounding error that is allowed when the range of true answers is checked.
ROUNDING = 1e-9


class IterativeConstruction(Generic[AnyQuery]):
    """Build a hypothesis that is accurate to alpha on every query of a class C (IC-ALG).

    In each round a private distinguisher picks a query on which the data and the hypothesis differ
    much. The true answer to this query is released with Laplace noise. If the noisy answer differs
    from the answer of the hypothesis by less than 3 alpha / 4 (with the default `design`), the run
    ends. If not, the noisy answer updates the hypothesis. Let B be the bound of the update rule on
    its number of updates at the accuracy alpha / 2, rounded down. There are at most B rounds. A
    round has two private steps: the choice of the query, and the noisy answer.

    By default, `step_epsilon` gives the budget eps0 of one step. Let |C| be the number of queries.
    By default, alpha is the smallest number that satisfies two conditions (Theorem 5 with corrected
    constants; DISC-13):

        ln(2 B / beta) / (eps0 n) <= alpha / 8,    2 ln(2 B |C| / beta) / (eps0 n) <= alpha / 8.

    The theorem needs many records. For fewer records, state `alpha`, `epsilon_0` or both. If the
    theorem does not cover the run, `accuracy` is None.

    Privacy: a run has at most 2 B steps of eps0-DP each. Together they are eps-DP, or
    (eps, delta)-DP by advanced composition (IC-T4). If `epsilon_0` is stated, the guarantee is the
    composition of 2 B steps of epsilon_0-DP (GEN-2, GEN-2a). B is then lowered, if necessary, to
    keep this guarantee at most `privacy`. Without a seed the guarantee also holds on the computer,
    because noise is compared and rounded exactly (X-GRID).

    Parameters
    ----------
    rule : UpdateRule
        Update rule for the class.
    distinguisher : Distinguisher
        The class of queries.
    n : int
        Number of records. Under add/remove, a declared public number by which sums are divided.
    privacy : PureDP or ApproxDP
        The guarantee of one release; epsilon is from 1e-12 to 1e12. If `epsilon_0` is stated, the
        guarantee is `spent`, and `privacy` is an upper limit on it.
    beta : float
        Largest probability that some query has an error above `accuracy`, 0 < beta < 1.
    design : StoppingDesign
        Shares of alpha for the noise, the error of the distinguisher and the threshold at which a
        run ends. The shares of the paper, `mechanisms.printed.PRINTED_STOPPING`, guarantee only an
        error of 3 alpha / 2.
    adjacency : Adjacency
        The neighbour relation.
    alpha : float, optional
        The target accuracy, above 0 and at most 1. It determines B and the stopping test. By
        default the smallest alpha that the theorem allows.
    epsilon_0 : float, optional
        Budget of each private step. By default all rounds share `privacy`.

    Attributes
    ----------
    spent : PureDP or ApproxDP
        The guarantee of one release.
    updates_allowed : int
        Largest number of rounds.

    Raises
    ------
    ValueError
        For parameters out of range or of another type. If `privacy` does not pay for the two steps
        of one round at `epsilon_0` each. If `alpha` is not given and n is so small that no alpha up
        to 1 satisfies the conditions.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> mechanism = gd.IterativeConstruction(
    ...     gd.mechanisms.MultiplicativeWeights(4),
    ...     gd.mechanisms.AllParities(2),
    ...     n=100_000,
    ...     privacy=gd.PureDP(1.0),
    ... )
    >>> round(mechanism.accuracy, 3)
    0.413
    >>> records = np.zeros(100_000, dtype=int)
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release.hypothesis.distribution.round(2)
    array([0.55, 0.16, 0.14, 0.14])

    The theorem does not cover 500 records. A run of ten rounds is still 1-DP, but no accuracy is
    proved in advance:

    >>> few = gd.IterativeConstruction(
    ...     gd.mechanisms.MultiplicativeWeights(16),
    ...     gd.mechanisms.AllParities(4),
    ...     n=500,
    ...     privacy=gd.PureDP(1.0),
    ...     alpha=0.2,
    ...     epsilon_0=0.05,
    ... )
    >>> few.updates_allowed, few.spent, few.accuracy
    (10, PureDP(epsilon=1.0), None)
    """

    def __init__(
        self,
        rule: UpdateRule[AnyQuery],
        distinguisher: Distinguisher[AnyQuery],
        *,
        n: int,
        privacy: PureDP | ApproxDP,
        beta: float = 0.05,
        design: StoppingDesign = CORRECTED,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        alpha: float | None = None,
        epsilon_0: float | None = None,
    ) -> None:
        if not isinstance(privacy, PureDP | ApproxDP):
            raise ValueError(f"privacy must be PureDP or ApproxDP, got {privacy}")
        check_range(privacy)
        require_type(rule, UpdateRule, "rule")
        require_type(distinguisher, Distinguisher, "distinguisher")
        require_type(design, StoppingDesign, "design")
        self.rule = rule
        self.distinguisher = distinguisher
        self.n = whole(n, "n")
        self.privacy = privacy
        self.beta = probability(beta, "beta")
        self.design = design
        self.adjacency = checked_adjacency(adjacency)
        self._stated_step = None if epsilon_0 is None else checked_step(epsilon_0)
        self.alpha = self._solve_accuracy() if alpha is None else checked_alpha(alpha)
        rounds = self._rounds(self.alpha)
        self.updates_allowed, self.spent = rounds.updates, rounds.spent
        self.step_epsilon = self._step(rounds)
        check_range(PureDP(self.step_epsilon))
        self._turn = Turn()

    def __repr__(self) -> str:
        return (
            f"IterativeConstruction({self.rule!r}, {self.distinguisher.size} queries, n={self.n}, "
            f"{self.spent}, {self.adjacency.value}: {accuracy_in_words(self.accuracy)})"
        )

    @property
    def accuracy(self) -> float | None:
        """Bound on the error of every query of the class, with probability at least 1 - beta.

        The result is None if the conditions of the theorem do not hold for the stated `alpha` and
        `epsilon_0`. The theorem assumes that the bound of the rule is valid. For the rule `Median`,
        this means that its declared `fineness` is true. Under add/remove the result is None, too:
        hypotheses have the answers of n records, and the number of records can be another. The
        release then states an accuracy if the run ended by its stopping test.
        """
        return self._tested if self.adjacency is Adjacency.REPLACE_ONE else None

    @property
    def _tested(self) -> float | None:
        """The bound of `accuracy` after a stopping test, which holds for any number of records."""
        return self.design.guaranteed * self.alpha if self._enough(self.alpha) else None

    @property
    def answer_scale(self) -> float:
        """Scale of the Laplace noise on an answer, 1 / (eps0 n) rounded up."""
        return 1 / (self.step_epsilon * self.n) * ROUNDED_UP

    def _rounds(self, alpha: float) -> Rounds:
        """The rounds of a run with the target accuracy `alpha`."""
        stated = self._stated_step
        spending = None if stated is None else partial(composed_pairs, self.privacy, stated)
        return rounds_within(self.rule.bound(alpha / 2), self.privacy, spending)

    def _step(self, rounds: Rounds) -> float:
        """eps0, the budget of each private step."""
        if self._stated_step is None:
            return step_epsilon(self.privacy, rounds.updates)
        return self._stated_step

    def _enough(self, alpha: float) -> bool:
        """Whether the theorem proves the accuracy `design.guaranteed` * `alpha`."""
        if not is_bounded(self.rule, alpha / 2):
            return False
        rounds = self._rounds(alpha)
        updates, epsilon = rounds.updates, self._step(rounds)
        gamma = positive(self.beta / (2 * updates), "beta / (2 updates)")
        noise = math.log(1 / gamma) / (epsilon * self.n)
        loss = self.distinguisher.loss(epsilon, gamma, self.n)
        within = noise <= self.design.noise * alpha and loss <= self.design.loss * alpha
        return rounds.complete and within

    def _solve_accuracy(self) -> float:
        alpha = smallest_accuracy(self._enough)
        if alpha is None:
            raise ValueError(
                f"n must be larger for {self.distinguisher.size} queries at "
                f"{self.privacy}, got {self.n}; give alpha for a run whose accuracy is not proved"
            )
        return alpha

    def release(
        self,
        records: Sequence[Any],
        rng: RandomState = None,
        *,
        ledger: Ledger | None = None,
    ) -> IterativeRelease[AnyQuery]:
        """Run the construction on `records`, given in the form that the queries of the class take.

        For the other parameters see `Mechanism.release`. If queries cannot be evaluated on the
        records, ``ValueError`` is raised before the ledger pays. Without a seed, true answers are
        exact rational numbers, and all comparisons and roundings of noise are exact (X-GRID).
        Other threads wait until a release ends. ``RuntimeError`` if a query starts another one.
        """
        noise = ExactNoise() if rng is None else GeneratorNoise(rng)
        guarantee = Guarantee(
            self.spent, self.adjacency, Exact(), noise.arithmetic, seeded=rng is not None
        )

        def answers() -> Answers:
            if isinstance(noise, ExactNoise):
                exact = self.distinguisher.exact_truths(records, self.n)
                self._check_range(exact.near(), len(records))
                return ExactAnswers(self, exact, noise)
            truths = self.distinguisher.truths(records, self.n)
            self._check_range(truths, len(records))
            return SeededAnswers(self, truths, noise)

        def draw(start: Hypothesis[AnyQuery], private: Answers) -> IterativeRelease[AnyQuery]:
            exchanges, followed = self._construct(start, private)
            if self.adjacency is Adjacency.ADD_REMOVE:
                followed = not exchanges[-1][1].above
            accuracy = self._tested if followed else None
            return IterativeRelease(start, accuracy, guarantee, tuple(exchanges))

        with self._turn.take(type(self).__name__):
            return release_once(
                type(self).__name__,
                self.n,
                guarantee,
                ledger,
                set_up=lambda: self.rule.start(self.alpha / 2),
                read=lambda: (len(records), answers()),
                draw=draw,
            )

    def _check_range(self, truths: FloatArray, count: int) -> None:
        """Raise ``ValueError`` for true answers (|C|,) outside [0, `count` / n].

        If queries have values in [0, 1], true answers lie in this range. The noise is calibrated to
        such queries. Answers to other queries can change by more than 1/n between neighbours.
        """
        most = count / self.n + ROUNDING
        # The comparisons are false for NaN, so NaN raises the error, too.
        if not ((truths >= -ROUNDING) & (truths <= most)).all():
            raise ValueError("queries must have values in [0, 1] on every record")

    def _construct(
        self, hypothesis: Hypothesis[AnyQuery], private: Answers
    ) -> tuple[list[tuple[AnyQuery, Answer]], bool]:
        """Update `hypothesis`, query by query, until the stopping test holds or no round is left.

        Returns the queries with their answers, and whether the rule could follow all answers. The
        rule cannot follow an answer if no hypothesis of the rule agrees with the answer. The run
        then ends.
        """
        exchanges: list[tuple[AnyQuery, Answer]] = []
        for _ in range(self.updates_allowed):
            index = private.choose(hypothesis)
            query = self.distinguisher.query(index)
            value = private.value(index)
            wrong = abs(value - hypothesis.evaluate(query)) >= self.design.level * self.alpha
            exchanges.append((query, Answer(wrong, value)))
            if not wrong:
                break
            if not follow(hypothesis, query, value):
                return exchanges, False
        return exchanges, True
