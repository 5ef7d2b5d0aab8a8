"""Iterative construction: one release of a hypothesis that is accurate on a whole query class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol

from geomdp._numerics.bisection import smallest_accuracy
from geomdp._typing import FloatArray, RandomState
from geomdp._validation import positive, probability, whole
from geomdp.mechanisms.interactive.distinguishers import AnyQuery, Distinguisher
from geomdp.mechanisms.interactive.exact_truths import ExactTruths
from geomdp.mechanisms.interactive.scales import ROUNDED_UP
from geomdp.mechanisms.interactive.stopping import CORRECTED, StoppingDesign
from geomdp.mechanisms.interactive.transcript import Answer
from geomdp.mechanisms.interactive.updates.base import Hypothesis, UpdateRule
from geomdp.mechanisms.privacy_range import check_range
from geomdp.mechanisms.protocol import release_once
from geomdp.noise.scalar import ExactNoise, GeneratorNoise, ScalarNoise
from geomdp.privacy import Adjacency, ApproxDP, Exact, Guarantee, PureDP
from geomdp.privacy.definitions import checked_adjacency
from geomdp.privacy.ledger import Ledger

#: Rounding allowed when true answers are compared with the range of queries with values in [0, 1].
ROUNDING = 1e-9


def step_epsilon(privacy: PureDP | ApproxDP, updates: int) -> float:
    """Epsilon of each of the 2 B private steps of B `updates` (IC-T4).

    It is eps / (2B) for pure DP and eps / (4 sqrt(B ln(1/delta))) for approximate DP.

    Raises
    ------
    ValueError
        If advanced composition of 2 B such steps does not stay within (eps, delta) (GEN-2a).
    """
    updates = whole(updates, "updates")
    match privacy:
        case PureDP(epsilon=epsilon):
            return epsilon / (2 * updates)
        case ApproxDP(epsilon=epsilon, delta=delta):
            step = epsilon / (4 * math.sqrt(updates * math.log(1 / delta)))
            total = epsilon / 2 + 2 * updates * step * math.expm1(step)
            if total * ROUNDED_UP > epsilon:
                raise ValueError(
                    f"epsilon must be below about 4 ln(1/delta) for advanced composition, "
                    f"got {epsilon} with delta {delta}"
                )
            return step


@dataclass(frozen=True)
class IterativeRelease(Generic[AnyQuery]):
    """The outcome of one run: a public hypothesis with its accuracy and privacy claims.

    Parameters
    ----------
    hypothesis : Hypothesis
        Answers any query of the class; using it is post-processing.
    accuracy : float
        Error that no query of the class exceeds, with probability 1 - beta.
    guarantee : Guarantee
        The privacy record.
    exchanges : tuple of (query, Answer)
        The queries chosen and their noisy answers, in order; the last has ``above=False`` if the
        test stopped the run there.
    """

    hypothesis: Hypothesis[AnyQuery]
    accuracy: float
    guarantee: Guarantee
    exchanges: tuple[tuple[AnyQuery, Answer], ...]

    def __repr__(self) -> str:
        return (
            f"IterativeRelease(accuracy {self.accuracy:.3g} after {len(self.exchanges)} queries; "
            f"{self.guarantee})"
        )


class IterativeConstruction(Generic[AnyQuery]):
    """Build a hypothesis accurate to alpha on every query of a class (IC-ALG).

    One round lets a private distinguisher pick a query with a large gap and releases its answer
    with Laplace noise. If the noisy gap is below 3 alpha / 4 the run ends; otherwise the hypothesis
    is updated. There are at most floor(B(alpha/2)) rounds.

    alpha is the smallest that satisfies ln(2B/beta) / (eps0 n) <= alpha / 8 and
    2 ln(2B |C| / beta) / (eps0 n) <= alpha / 8 (Theorem 5 with corrected constants; DISC-13).

    Privacy: 2 B steps of eps0-DP each: eps-DP, or (eps, delta)-DP by advanced composition (IC-T4).
    Without a seed this holds as computed.

    Parameters
    ----------
    rule : UpdateRule
        Update rule for the class.
    distinguisher : Distinguisher
        The class of queries.
    n : int
        Number of records; under add/remove the declared public normaliser.
    privacy : PureDP or ApproxDP
        The guarantee of one release; epsilon is from 1e-12 to 1e12.
    beta : float
        Failure probability of the accuracy statement, 0 < beta < 1.
    design : StoppingDesign
        Shares of alpha; `PRINTED` reproduces the paper's, whose guarantee is 3 alpha / 2.
    adjacency : Adjacency
        The neighbour relation.

    Raises
    ------
    ValueError
        For parameters out of range, and if n is too small for any alpha up to 1.
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
    ) -> None:
        if not isinstance(privacy, PureDP | ApproxDP):
            raise ValueError(f"privacy must be PureDP or ApproxDP, got {privacy}")
        check_range(privacy)
        self.rule = rule
        self.distinguisher = distinguisher
        self.n = whole(n, "n")
        self.privacy = privacy
        self.beta = probability(beta, "beta")
        self.design = design
        self.adjacency = checked_adjacency(adjacency)
        self.alpha = self._solve_accuracy()
        self.updates_allowed = self._updates(self.alpha)
        self.step_epsilon = step_epsilon(privacy, self.updates_allowed)

    def __repr__(self) -> str:
        return (
            f"IterativeConstruction({self.rule!r}, {self.distinguisher.size} queries, n={self.n}, "
            f"{self.privacy}, {self.adjacency.value}: accuracy {self.accuracy:.3g})"
        )

    @property
    def accuracy(self) -> float:
        """Error that no query of the class exceeds, with probability 1 - beta."""
        return self.design.guaranteed * self.alpha

    @property
    def answer_scale(self) -> float:
        """Scale of the Laplace noise on an answer, 1 / (eps0 n) rounded up."""
        return 1 / (self.step_epsilon * self.n) * ROUNDED_UP

    def _updates(self, alpha: float) -> int:
        return max(1, math.floor(self.rule.bound(alpha / 2)))

    def _enough(self, alpha: float) -> bool:
        updates = self._updates(alpha)
        epsilon = step_epsilon(self.privacy, updates)
        gamma = positive(self.beta / (2 * updates), "beta / (2 updates)")
        noise = math.log(1 / gamma) / (epsilon * self.n)
        loss = self.distinguisher.loss(epsilon, gamma, self.n)
        return noise <= self.design.noise * alpha and loss <= self.design.loss * alpha

    def _solve_accuracy(self) -> float:
        alpha = smallest_accuracy(self._enough)
        if alpha is None:
            raise ValueError(
                f"n must be larger for {self.distinguisher.size} queries at "
                f"{self.privacy}, got {self.n}"
            )
        return alpha

    def release(
        self,
        records: Sequence[Any],
        rng: RandomState = None,
        *,
        ledger: Ledger | None = None,
    ) -> IterativeRelease[AnyQuery]:
        """Run the construction on `records`, as the class of queries takes them.

        As in `Mechanism.release`; ``ValueError`` before any payment for records that the queries
        cannot take. Without a seed, true answers are exact rational numbers, and noise is compared
        and rounded exactly (X-GRID).
        """
        noise = ExactNoise() if rng is None else GeneratorNoise(rng)
        guarantee = Guarantee(
            self.privacy, self.adjacency, Exact(), noise.arithmetic, seeded=rng is not None
        )

        def answers() -> _Answers:
            if isinstance(noise, ExactNoise):
                exact = self.distinguisher.exact_truths(records, self.n)
                self._check_range(exact.near(), len(records))
                return _ExactAnswers(self, exact, noise)
            truths = self.distinguisher.truths(records, self.n)
            self._check_range(truths, len(records))
            return _SeededAnswers(self, truths, noise)

        def draw(start: Hypothesis[AnyQuery], private: _Answers) -> IterativeRelease[AnyQuery]:
            exchanges = self._construct(start, private)
            return IterativeRelease(start, self.accuracy, guarantee, tuple(exchanges))

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
        """``ValueError`` for true answers (|C|,) that values in [0, 1] on `count` records rule out.

        The noise is calibrated to such values; others can move by more between neighbours.
        """
        most = count / self.n + ROUNDING
        if not ((truths >= -ROUNDING) & (truths <= most)).all():  # also refuses NaN
            raise ValueError("queries must have values in [0, 1] on every record")

    def _construct(
        self, hypothesis: Hypothesis[AnyQuery], private: _Answers
    ) -> list[tuple[AnyQuery, Answer]]:
        """Update `hypothesis` on the query answered worst until the test stops; the exchanges."""
        exchanges: list[tuple[AnyQuery, Answer]] = []
        for _ in range(self.updates_allowed):
            index = private.choose(hypothesis)
            query = self.distinguisher.query(index)
            value = private.value(index)
            wrong = abs(value - hypothesis.evaluate(query)) >= self.design.level * self.alpha
            exchanges.append((query, Answer(wrong, value)))
            if not wrong:
                break
            hypothesis.update(query, value)
        return exchanges


class _Answers(Protocol):
    """The two private steps of a round; each call is one step of eps0-DP."""

    def choose(self, hypothesis: Hypothesis[Any]) -> int:
        """Number of a query that the hypothesis answers badly."""

    def value(self, index: int) -> float:
        """Noisy answer to query number `index`."""


@dataclass(frozen=True)
class _SeededAnswers(Generic[AnyQuery]):
    """The steps simulated in float64."""

    run: IterativeConstruction[AnyQuery]
    truths: FloatArray
    noise: ScalarNoise

    def choose(self, hypothesis: Hypothesis[AnyQuery]) -> int:
        """See `_Answers`."""
        run = self.run
        return run.distinguisher.choose(
            self.truths, hypothesis, epsilon=run.step_epsilon, n=run.n, noise=self.noise
        )

    def value(self, index: int) -> float:
        """See `_Answers`."""
        return self.noise.laplace(float(self.truths[index]), self.run.answer_scale)


@dataclass(frozen=True)
class _ExactAnswers(Generic[AnyQuery]):
    """The steps decided and rounded exactly, for true answers that are rational numbers."""

    run: IterativeConstruction[AnyQuery]
    truths: ExactTruths
    noise: ExactNoise

    def choose(self, hypothesis: Hypothesis[AnyQuery]) -> int:
        """See `_Answers`."""
        return self.run.distinguisher.choose_exactly(
            self.truths, hypothesis, epsilon=self.run.step_epsilon, noise=self.noise
        )

    def value(self, index: int) -> float:
        """See `_Answers`."""
        return self.noise.laplace(self.truths[index], self.run.answer_scale)
