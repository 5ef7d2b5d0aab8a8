"""Iterative construction: one release of a hypothesis that is accurate on a whole query class."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from geomdp._numerics.linalg import smallest_accuracy
from geomdp._numerics.randomness import Turn
from geomdp._typing import FloatArray, IntArray, RandomState
from geomdp._validation import listed, plural, positive, probability, require_type, whole
from geomdp.mechanisms.base import release_once
from geomdp.mechanisms.interactive.sparse_vector import ROUNDED_UP, Answer
from geomdp.mechanisms.interactive.updates import (
    Hypothesis,
    Rounds,
    UpdateRule,
    WeightedHypothesis,
    checked_alpha,
    checked_step,
    follow,
    is_bounded,
    rounds_within,
)
from geomdp.noise.scalar import ExactNoise, GeneratorNoise, ScalarNoise
from geomdp.privacy import Adjacency, ApproxDP, Exact, Guarantee, PureDP, advanced_composition
from geomdp.privacy.definitions import check_privacy, check_range, checked_adjacency
from geomdp.privacy.ledger import Ledger
from geomdp.workloads.base import DenseQuery, LinearQuery
from geomdp.workloads.universes import FiniteUniverse

AnyQuery = TypeVar("AnyQuery", bound=LinearQuery)

#: Largest number of bits of `AllParities`: 2^24 scores are 128 MB.
MAX_BITS = 24

# Classes of queries, and the choice of a query on which data and hypothesis differ much.


@dataclass(frozen=True)
class ExactTruths:
    """The means `totals` / `n` of k queries, as exact rational numbers."""

    totals: FloatArray | Sequence[Fraction]
    n: int

    def __len__(self) -> int:
        return len(self.totals)

    def __getitem__(self, index: int) -> Fraction:
        return Fraction(self.totals[index]) / self.n

    def near(self) -> FloatArray:
        """The true answers in float64 (k,), each with a relative error of at most 2^-51."""
        return np.array(self.totals, dtype=np.float64) / self.n


class Distinguisher(abc.ABC, Generic[AnyQuery]):
    """A finite class C of queries with values in [0, 1], so a mean changes by at most 1/n."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """The number of queries, |C|."""

    @abc.abstractmethod
    def query(self, index: int) -> AnyQuery:
        """The query with the number `index`, from 0 to |C| - 1."""

    @abc.abstractmethod
    def truths(self, records: Any, n: int) -> FloatArray:
        """The sum of each query over `records`, divided by `n`: (|C|,)."""

    @abc.abstractmethod
    def exact_truths(self, records: Any, n: int) -> ExactTruths:
        """The values of `truths` as exact rational numbers."""

    @abc.abstractmethod
    def estimates(self, hypothesis: Any) -> FloatArray:
        """The hypothesis' answer to each query: (|C|,)."""

    def loss(self, epsilon: float, gamma: float, n: int) -> float:
        """The bound 2 ln(|C| / gamma) / (n eps) on the largest gap minus the chosen gap (IC-DIST).

        It holds with probability at least 1 - `gamma`.
        """
        log = math.log(self.size / positive(gamma, "gamma"))
        return 2 * log / (n * positive(epsilon, "epsilon"))

    def choose(
        self, truths: Any, hypothesis: Any, *, epsilon: float, n: int, noise: ScalarNoise
    ) -> int:
        """Choose a query with a nearly largest gap |Q(D) - Q(H)| by the exponential mechanism.

        The choice is eps-DP: in real arithmetic for floats `truths` (|C|,), and on the computer for
        exact `truths` and noise.
        """
        estimates, scale = self.estimates(hypothesis), 2 / (n * epsilon) * ROUNDED_UP
        if not isinstance(noise, ExactNoise):
            return noise.noisy_argmax(np.abs(truths - estimates), scale)
        near = truths.near()
        # `near` has a relative error of at most 2^-51, and the difference is rounded once.
        errors = 2.0**-50 * (np.abs(near) + np.abs(estimates))

        def gap(index: int) -> Fraction:
            return Fraction(abs(truths[index] - Fraction(float(estimates[index]))))

        return noise.exact_argmax(np.abs(near - estimates), errors, gap, scale)


class EnumeratedQueries(Distinguisher[AnyQuery]):
    """A class C of queries given as a list, dense or sparse. A choice takes O(|C|) evaluations.

    Parameters
    ----------
    queries : sequence of queries
        At least one, all sparse or all dense with equally many values; otherwise ``ValueError``.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> queries = gd.mechanisms.EnumeratedQueries(
    ...     [gd.workloads.DenseQuery([1.0, 0.0, 0.0]), gd.workloads.DenseQuery([1.0, 1.0, 0.0])]
    ... )
    >>> queries.truths(np.array([0, 1, 1, 2]), 4)
    array([0.25, 0.75])
    """

    def __init__(self, queries: Sequence[AnyQuery]) -> None:
        queries = listed(queries, "queries")
        if len(queries) == 0:
            raise ValueError("queries must hold at least 1 query, got 0")
        for position, query in enumerate(queries):
            require_type(query, LinearQuery, "every query")
            if _kind(query) != _kind(queries[0]):
                raise ValueError(
                    "queries must all be sparse, or all be dense with the same number of values: "
                    f"query {position} differs from query 0"
                )
        self._queries = queries

    def __repr__(self) -> str:
        return f"EnumeratedQueries({self.size} of type {type(self._queries[0]).__name__})"

    @property
    def size(self) -> int:
        return len(self._queries)

    def query(self, index: int) -> AnyQuery:
        return self._queries[index]

    def truths(self, records: Any, n: int) -> FloatArray:
        tally = self._queries[0].tally(records)
        return np.array([query.total(tally) for query in self._queries]) / n

    def exact_truths(self, records: Any, n: int) -> ExactTruths:
        tally = self._queries[0].tally(records)
        return ExactTruths([query.exact_total(tally) for query in self._queries], n)

    def estimates(self, hypothesis: Hypothesis[AnyQuery]) -> FloatArray:
        return np.array([hypothesis.evaluate(query) for query in self._queries])


def _kind(query: LinearQuery) -> tuple[type, int | None]:
    """Type and number of values of a query. Queries of the same kind can use the same tally."""
    return type(query), len(query.values) if isinstance(query, DenseQuery) else None


class AllParities(Distinguisher[DenseQuery]):
    """All 2^d parities x -> (1 + (-1)^<S, x>) / 2 on {0, 1}^d, by fast Walsh-Hadamard transforms.

    Elements x and sets S are whole numbers below 2^d, whose bits are the coordinates. A choice
    takes O(d 2^d) time. The hypothesis must come from `MultiplicativeWeights`.

    Parameters
    ----------
    d : int
        Number of bits, at most 24.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> parities = gd.mechanisms.AllParities(2)
    >>> parities.query(0b11).values
    array([1., 0., 0., 1.])
    >>> parities.truths(np.array([0b00, 0b01, 0b11, 0b11]), 4)
    array([1.  , 0.25, 0.5 , 0.75])
    """

    def __init__(self, d: int) -> None:
        self._d = whole(d, "d", maximum=MAX_BITS)

    def __repr__(self) -> str:
        return f"AllParities({self._d})"

    @property
    def size(self) -> int:
        return 1 << self._d

    def query(self, index: int) -> DenseQuery:
        """The parity of the set S. The places of the 1 bits of `index` are the elements of S."""
        common = np.arange(self.size) & whole(index, "index", minimum=0, maximum=self.size - 1)
        return DenseQuery((np.bitwise_count(common) % 2 == 0).astype(np.float64))

    def truths(self, records: IntArray, n: int) -> FloatArray:
        counts = self._counts(records)
        return self._means(counts / n, counts.sum() / n)

    def exact_truths(self, records: IntArray, n: int) -> ExactTruths:
        counts = self._counts(records)
        # Sums and differences of counts are whole numbers, which are exact in float64.
        return ExactTruths(self._means(counts, counts.sum()), n)

    def _counts(self, records: IntArray) -> FloatArray:
        codes = FiniteUniverse(self.size).validate(records)
        return np.bincount(codes, minlength=self.size).astype(np.float64)

    def estimates(self, hypothesis: WeightedHypothesis) -> FloatArray:
        return self._means(hypothesis.distribution, 1.0)

    def _means(self, weights: FloatArray, total: float) -> FloatArray:
        from geomdp._numerics.compilation import walsh_hadamard  # compiled: slow import

        signed = weights[None].copy()
        walsh_hadamard(signed)
        return np.asarray((total + signed[0]) / 2)


# The mechanism.


@dataclass(frozen=True)
class IterativeRelease(Generic[AnyQuery]):
    """The result of one run: a hypothesis with its error bound, and the privacy guarantee."""

    hypothesis: Hypothesis[AnyQuery]
    accuracy: float | None
    guarantee: Guarantee
    exchanges: tuple[tuple[AnyQuery, Answer], ...]

    def __repr__(self) -> str:
        return (
            f"IterativeRelease({_in_words(self.accuracy)} after "
            f"{plural(len(self.exchanges), 'query')}; {self.guarantee})"
        )


def _in_words(accuracy: float | None) -> str:
    return "no stated accuracy" if accuracy is None else f"accuracy {accuracy:.3g}"


@dataclass(frozen=True)
class StoppingDesign:
    """Shares of the target accuracy alpha for noise, distinguisher and stopping test (IC-T5).

    With probability 1 - beta, in all rounds the noise in the answer v to the chosen query Q is at
    most noise * alpha, and the hypothesis H errs on any query by at most loss * alpha more than on
    Q. If |v - Q(H)| < level * alpha, the run stops, and H errs by at most (level + noise + loss)
    alpha. Else H errs by at least (level - noise) alpha on Q, and an update needs alpha / 2.
    """

    noise: float
    loss: float
    level: float

    def __post_init__(self) -> None:
        for name in ("noise", "loss", "level"):
            positive(getattr(self, name), name)
        if self.level - self.noise < 0.5:
            raise ValueError(
                f"level - noise must be at least 1/2 for a valid update, got {self.level} - "
                f"{self.noise}"
            )

    @property
    def guaranteed(self) -> float:
        """Bound on the error of every query after a stop, in units of alpha; at least 1."""
        return max(1.0, self.level + self.noise + self.loss)


#: With noise and loss alpha / 8 and level 3 alpha / 4, a stop guarantees an error of at most alpha
#: (IC-T5 with corrected constants).
CORRECTED = StoppingDesign(noise=1 / 8, loss=1 / 8, level=3 / 4)


def step_epsilon(privacy: PureDP | ApproxDP, updates: int) -> float:
    """Epsilon of each of 2 B private steps (IC-T4); ``ValueError`` if they cost more by GEN-2a."""
    match privacy:
        case PureDP(epsilon=epsilon):
            return epsilon / (2 * updates)
        case ApproxDP(epsilon=epsilon, delta=delta):
            step = epsilon / (4 * math.sqrt(updates * math.log(1 / delta)))
            # For steps above 709, e^step is beyond float64. e^709 is too large already.
            total = epsilon / 2 + 2 * updates * step * math.expm1(min(step, 709.0))
            if total * ROUNDED_UP > epsilon:
                raise ValueError(
                    "epsilon must be below about 4 ln(1/delta) for advanced composition, got "
                    f"{privacy}"
                )
            return step


def composed_pairs(budget: PureDP | ApproxDP, epsilon_0: float, updates: int) -> PureDP | ApproxDP:
    """Cost of 2 B epsilon_0-DP steps, for B = `updates`: the least of GEN-2 and GEN-2a at delta."""
    steps = 2 * updates
    match budget:
        case PureDP():
            return PureDP(steps * epsilon_0)
        case ApproxDP(delta=delta):
            if epsilon_0 > 1:  # advanced composition costs over 1.7 times this sum
                return ApproxDP(steps * epsilon_0, delta)
            advanced = advanced_composition(PureDP(epsilon_0), steps, delta)
            return ApproxDP(min(steps * epsilon_0, advanced.epsilon), delta)


#: Rounding error that is allowed when the range of true answers is checked.
ROUNDING = 1e-9


class IterativeConstruction(Generic[AnyQuery]):
    """Build a hypothesis that is accurate to alpha on every query of a class C (IC-ALG).

    Let B be the bound of the update rule at the accuracy alpha / 2, rounded down. There are at most
    B rounds of two private steps: a distinguisher picks a query on which the data and the
    hypothesis differ much, and the true answer is released with Laplace noise. If the noisy answer
    differs from that of the hypothesis by less than 3 alpha / 4 (with the default `design`), the
    run ends. If not, it updates the hypothesis.

    By default, eps0 = eps / (2 B) is the budget of one step for eps-DP, and eps0 = eps / (4
    sqrt(B ln(1/delta))) for (eps, delta)-DP. alpha is the smallest number that satisfies two
    conditions (Theorem 5 with corrected constants; DISC-13):

        ln(2 B / beta) / (eps0 n) <= alpha / 8,    2 ln(2 B |C| / beta) / (eps0 n) <= alpha / 8.

    For fewer records than the theorem needs, state `alpha`, `epsilon_0` or both. If the theorem
    does not cover the run, `accuracy` is None.

    Privacy: the 2 B steps of eps0-DP are together eps-DP, or (eps, delta)-DP by advanced
    composition (IC-T4). If `epsilon_0` is stated, the guarantee is the composition of 2 B steps of
    epsilon_0-DP (GEN-2, GEN-2a), and B is lowered, if necessary, to keep it at most `privacy`.
    `spent` is this guarantee, and `updates_allowed` is B. Without a seed the guarantee also holds
    on the computer: noise is compared and rounded exactly (X-GRID).

    ``ValueError`` for parameters out of range or of another type, a `privacy` that does not pay for
    one round at `epsilon_0`, or an n so small that no alpha up to 1 satisfies the conditions.

    Parameters
    ----------
    rule, distinguisher : UpdateRule, Distinguisher
        The update rule for the class of queries, and the class.
    n, privacy : int, PureDP or ApproxDP
        As for `OnlineConstruction`.
    beta : float
        Largest probability that some query has an error above `accuracy`, 0 < beta < 1.
    design : StoppingDesign
        Shares of alpha for the sources of error. Those of the paper,
        `mechanisms.printed.PRINTED_STOPPING`, guarantee only an error of 3 alpha / 2.
    adjacency, alpha, epsilon_0 : Adjacency, float, float
        Neighbour relation; the target accuracy, above 0 and at most 1; and the budget of each
        private step. By default all rounds share `privacy`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> mechanism = gd.IterativeConstruction(
    ...     gd.mechanisms.MultiplicativeWeights(4), gd.mechanisms.AllParities(2), n=100_000,
    ...     privacy=gd.PureDP(1.0),
    ... )
    >>> round(mechanism.accuracy, 3)
    0.413
    >>> release = mechanism.release(np.zeros(100_000, dtype=int), rng=0)  # the seed voids privacy
    >>> release.hypothesis.distribution.round(2)
    array([0.55, 0.16, 0.14, 0.14])
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
        check_privacy(privacy, PureDP, ApproxDP)
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
        solved = smallest_accuracy(self._enough) if alpha is None else checked_alpha(alpha)
        if solved is None:
            raise ValueError(
                f"n must be larger for {distinguisher.size} queries at "
                f"{privacy}, got {self.n}; give alpha for a run whose accuracy is not proved"
            )
        self.alpha = solved
        rounds = self._rounds(self.alpha)
        self.updates_allowed, self.spent = rounds.updates, rounds.spent
        self.step_epsilon = self._step(rounds)
        check_range(PureDP(self.step_epsilon))
        self._turn = Turn()

    def __repr__(self) -> str:
        return (
            f"IterativeConstruction({self.rule!r}, {self.distinguisher.size} queries, n={self.n}, "
            f"{self.spent}, {self.adjacency.value}: {_in_words(self.accuracy)})"
        )

    @property
    def accuracy(self) -> float | None:
        """Bound on the error of every query of the class, with probability at least 1 - beta.

        None if the theorem does not cover the stated `alpha` and `epsilon_0`. For `Median`, its
        declared `fineness` is assumed to be true. Under add/remove it is None, because the number
        of records need not be n; the release states an accuracy if the stopping test ended the run.
        """
        return self._tested if self.adjacency is Adjacency.REPLACE_ONE else None

    @property
    def _tested(self) -> float | None:
        """The bound after a stopping test, for any number of records."""
        return self.design.guaranteed * self.alpha if self._enough(self.alpha) else None

    @property
    def answer_scale(self) -> float:
        """Scale of the Laplace noise on an answer, 1 / (eps0 n) rounded up."""
        return 1 / (self.step_epsilon * self.n) * ROUNDED_UP

    def _rounds(self, alpha: float) -> Rounds:
        stated = self._stated_step
        spending = None if stated is None else partial(composed_pairs, self.privacy, stated)
        return rounds_within(self.rule.bound(alpha / 2), self.privacy, spending)

    def _step(self, rounds: Rounds) -> float:
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

    def release(
        self, records: Sequence[Any], rng: RandomState = None, *, ledger: Ledger | None = None
    ) -> IterativeRelease[AnyQuery]:
        """Run the construction on `records`, given in the form that the queries of the class take.

        For the rest see `Mechanism.release`. Other threads wait until a release ends, and a query
        that starts another release gets a ``RuntimeError``.
        """
        noise = ExactNoise() if rng is None else GeneratorNoise(rng)
        guarantee = Guarantee(
            self.spent, self.adjacency, Exact(), noise.arithmetic, seeded=rng is not None
        )

        def read() -> tuple[int, Any]:
            """True answers: exact rational numbers, or an array in a simulation."""
            of = self.distinguisher
            truths: Any = (of.exact_truths if rng is None else of.truths)(records, self.n)
            near, most = truths.near() if rng is None else truths, len(records) / self.n + ROUNDING
            # The noise does not cover other values. Comparisons with NaN are false.
            if not ((near >= -ROUNDING) & (near <= most)).all():
                raise ValueError("queries must have values in [0, 1] on every record")
            return len(records), truths

        def draw(hypothesis: Hypothesis[AnyQuery], truths: Any) -> IterativeRelease[AnyQuery]:
            exchanges, followed = self._construct(hypothesis, truths, noise)
            if self.adjacency is Adjacency.ADD_REMOVE:
                followed = not exchanges[-1][1].above
            accuracy = self._tested if followed else None
            return IterativeRelease(hypothesis, accuracy, guarantee, tuple(exchanges))

        def set_up() -> Hypothesis[AnyQuery]:
            return self.rule.start(self.alpha / 2)

        with self._turn.take(type(self).__name__):
            return release_once(self, guarantee, ledger, set_up=set_up, read=read, draw=draw)

    def _construct(
        self, hypothesis: Hypothesis[AnyQuery], truths: Any, noise: ScalarNoise
    ) -> tuple[list[tuple[AnyQuery, Answer]], bool]:
        """Update `hypothesis` until the run ends; also whether it could follow all answers."""
        exchanges: list[tuple[AnyQuery, Answer]] = []
        for _ in range(self.updates_allowed):
            index = self.distinguisher.choose(
                truths, hypothesis, epsilon=self.step_epsilon, n=self.n, noise=noise
            )
            query = self.distinguisher.query(index)
            value = noise.laplace(truths[index], self.answer_scale)
            wrong = abs(value - hypothesis.evaluate(query)) >= self.design.level * self.alpha
            exchanges.append((query, Answer(wrong, value)))
            if not wrong:
                break
            if not follow(hypothesis, query, value):
                return exchanges, False
        return exchanges, True
