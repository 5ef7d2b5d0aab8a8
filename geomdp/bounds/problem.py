"""The problem of a lower bound: how private and how accurate a mechanism must be.

A measure of error is a norm of answer differences, and determines the separation that a packing
needs. Let Y be the norm of A(X) - Q(X) for a mechanism A of error at most alpha, and c the
*separation factor*. By Markov's inequality, Y < c alpha / 2 with a probability of at least q, which
depends on c. Balls of radius c alpha / 2 around answers that are c alpha apart are disjoint. So for
M data sets at most r changes apart, group privacy gives 1 >= q + (M - 1) q e^(-epsilon r). There is
no such mechanism if this is false, which means

    epsilon r < ln(M - 1) + ln(q / (1 - q))                                          (JL-L6).

A larger c raises the odds q / (1 - q), but the packing needs more separation.
"""

from __future__ import annotations

import abc
import enum
import math
from dataclasses import dataclass
from typing import ClassVar, cast

import numpy as np

from geomdp._numerics.linalg import bracket
from geomdp._typing import FloatArray
from geomdp._validation import listed, positive, probability, real_number, require_type, whole
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Privacy, PureDP
from geomdp.privacy.definitions import check_range, checked_adjacency, printed, printed_down

#: Smaller whole numbers are printed with all their digits. Every one of them is a float64.
ALL_DIGITS = 10**15


class Side(enum.Enum):
    """Which side of the sample complexity a bound is on.

    Examples
    --------
    >>> import geomdp as gd
    >>> bound = gd.bounds.marginal_bound(16, 1, epsilon=1.0, alpha=0.05)
    >>> bound.side is gd.bounds.Side.LOWER
    True
    """

    #: No private mechanism reaches error alpha with as many records as the bound, or with fewer.
    LOWER = "lower"
    #: Some private mechanism reaches error alpha with as many records as the bound, rounded up.
    UPPER = "upper"


@dataclass(frozen=True)
class Bound:
    """A bound on the sample complexity sc of a workload for a privacy guarantee and error alpha.

    sc is the least number n such that some mechanism with this guarantee, a private mechanism, has
    error at most alpha on every data set of n records (JL-DEF).

    Parameters
    ----------
    value : float
        A number of records v, at least 0.

        * ``Side.LOWER``: sc > v: no private mechanism has error at most alpha at any n <= v. v must
          be finite; 0 excludes nothing.
        * ``Side.UPPER``: sc <= ceil(v): some private mechanism has error at most alpha at
          n = ceil(v). Infinity claims nothing.
    side : Side
        Whether `value` is a lower or an upper bound.
    statement : str
        What is proved, in one sentence, with the error, the neighbour relation and the guarantee.
    assumptions : tuple of str
        Everything else that the proof assumes. Empty for an unconditional bound.
    certificate : object or None
        An object with the proof, which can be checked again; None if there is no such object.

    Examples
    --------
    >>> import geomdp as gd
    >>> bound = gd.bounds.Bound(12.5, gd.bounds.Side.LOWER, "no 1-DP mechanism has error 0.1")
    >>> bound, bound.records
    (Bound(sc > 12, 0 assumptions), 12.0)
    """

    value: float
    side: Side
    statement: str
    assumptions: tuple[str, ...] = ()
    certificate: object | None = None

    def __post_init__(self) -> None:
        require_type(self.side, Side, "side")
        if isinstance(cast("object", self.assumptions), str):
            raise ValueError(
                f"assumptions must be a tuple of sentences, got the text {self.assumptions!r}"
            )
        value = real_number(self.value)
        if not value >= 0 or (self.side is Side.LOWER and math.isinf(value)):
            limit = " and finite" if self.side is Side.LOWER else ""
            raise ValueError(
                f"value of the {self.side.value} bound must be at least 0{limit}, "
                f"got {self.value!r}"
            )
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "assumptions", listed(self.assumptions, "assumptions"))

    @property
    def records(self) -> float:
        """The bound as a whole number: floor(value) for a lower bound, ceil(value) for an upper."""
        if math.isinf(self.value):
            return self.value
        return float(math.floor(self.value) if self.side is Side.LOWER else math.ceil(self.value))

    @property
    def records_text(self) -> str:
        """`records` as text, rounded to the true side: to six significant digits from 10^15 on."""
        if self.records < ALL_DIGITS:
            return f"{self.records:.0f}"
        rounded = printed_down if self.side is Side.LOWER else printed
        return rounded(self.records)

    def __repr__(self) -> str:
        return f"Bound({str(self).partition(': ')[0]}, {len(self.assumptions)} assumptions)"

    def __str__(self) -> str:
        return (
            f"sc {'>' if self.side is Side.LOWER else '<='} {self.records_text}: {self.statement}"
        )


# Measures of error.


@dataclass(frozen=True)
class Metric(abc.ABC):
    """How the error of a mechanism is measured.

    Let Y be the norm of the error. If E Y^p <= alpha^p for the `moment` p, then Y < c alpha / 2
    with probability at least 1 - (2 / c)^p. The odds of this probability are (c / 2)^p - 1.

    Parameters
    ----------
    separation : float
        Factor c, above 2: the answers of a packing are at least c alpha apart. The default gives
        odds of 1.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> differences = np.array([[0.3, 0.4], [0.0, 0.2]])
    >>> for metric in (gd.bounds.MeanL2(), gd.bounds.WorstCase()):
    ...     print(metric.name, np.round(metric.norm(differences), 4))
    mean l2 error per query [0.3536 0.1414]
    worst-case error over the queries [0.4 0.2]
    """

    separation: float

    #: The error in words.
    name: ClassVar[str]
    #: The number p: a mechanism of error alpha has E Y^p <= alpha^p.
    moment: ClassVar[int]

    def __post_init__(self) -> None:
        number = real_number(self.separation)
        if not (math.isfinite(number) and number > 2):
            raise ValueError(f"separation must be a finite number above 2, got {self.separation!r}")

    @property
    def log_odds(self) -> float:
        """ln((c / 2)^p - 1), the logarithm of the odds; for the default c, rounded to at most 0."""
        half = self.separation / 2
        # x^2 - 1 = (x - 1) (x + 1): near x = 1, the difference of x^2 and 1 would lose digits.
        odds = (half - 1) * (half + 1) if self.moment == 2 else half - 1
        return math.log(odds) if abs(odds - 1) > 1e-12 else min(0.0, math.log(odds))

    @abc.abstractmethod
    def norm(self, differences: FloatArray) -> FloatArray:
        """Norms of the rows of `differences` (b, k), scaled so that errors are per query."""


class _Euclidean(Metric):
    """A metric with the Euclidean norm divided by sqrt(k)."""

    def norm(self, differences: FloatArray) -> FloatArray:
        squares: FloatArray = np.einsum("ij,ij->i", differences, differences)
        return np.asarray(np.sqrt(squares / differences.shape[1]))


@dataclass(frozen=True)
class MeanL2(_Euclidean):
    """Error max over X of E ||A(X) - Q(X)||_2 / sqrt(k). JL-DEF writes err^2; 2 stands for l2.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bounds.MeanL2().log_odds, round(gd.bounds.MeanL2(separation=6.0).log_odds, 4)
    (0.0, 0.6931)
    """

    separation: float = 4.0

    name = "mean l2 error per query"
    moment = 1


@dataclass(frozen=True)
class RMS(_Euclidean):
    """Error max over X of (E ||A(X) - Q(X)||_2^2 / k)^(1/2): root mean square, JL-DEF.

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.bounds.Problem(0.1, 0.02, gd.bounds.RMS()))
    0.1-DP (replace-one) and root mean squared error per query at most 0.02
    """

    separation: float = 2 * math.sqrt(2)

    name = "root mean squared error per query"
    moment = 2


@dataclass(frozen=True)
class WorstCase(Metric):
    """Error max over X of E ||A(X) - Q(X)||_inf, written err^inf in JL-DEF.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bounds.WorstCase().name
    'worst-case error over the queries'
    """

    separation: float = 4.0

    name = "worst-case error over the queries"
    moment = 1

    def norm(self, differences: FloatArray) -> FloatArray:
        return np.asarray(np.abs(differences).max(axis=1))


#: The default metric: `MeanL2` with the separation factor 4 of JL-L6.
MEAN_L2 = MeanL2()

# The problem.

#: Replacing one record takes this many changes. Each change leads to a neighbouring data set.
CHANGES = {Adjacency.REPLACE_ONE: 1, Adjacency.ADD_REMOVE: 2}


class SideConditionError(ValueError):
    """A proof of a lower bound does not apply to a problem; the message names the failed condition.

    Examples
    --------
    >>> import geomdp as gd
    >>> try:
    ...     gd.bounds.marginal_bound(16, 1, epsilon=1.0, alpha=0.5)
    ... except gd.bounds.SideConditionError as reason:
    ...     print(reason)
    separation must be at least 4 alpha = 2, got 0.25
    """


@dataclass(frozen=True)
class Problem:
    """The privacy and accuracy that a mechanism for a workload must have.

    Parameters
    ----------
    epsilon : float or None
        A number above 0: the mechanism must be epsilon-DP. None if `privacy` is given and is not
        pure.
    alpha : float
        Largest error allowed, in units of one answer; above 0.
    metric : MeanL2, RMS or WorstCase
        How the error is measured.
    adjacency : Adjacency
        Neighbour relation. Under add/remove, answers are divided by a public number n. The
        mechanism need be accurate only on data sets of exactly n records.
    privacy : PureDP, ApproxDP, ZCDP or None
        The guarantee that the mechanism must give. None means `epsilon`-DP; a contradiction to
        `epsilon` raises ``ValueError``.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.Problem(1.0, 0.1, gd.bounds.RMS()).required_separation, 4)
    0.2828
    >>> print(gd.bounds.Problem(None, 0.1, privacy=gd.ZCDP(0.5)))
    0.5-zCDP (replace-one) and mean l2 error per query at most 0.1
    """

    epsilon: float | None
    alpha: float
    metric: Metric = MEAN_L2
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    privacy: Privacy | None = None

    def __post_init__(self) -> None:
        epsilon, privacy = self.epsilon, self.privacy
        if privacy is None:
            # If neither argument is given, epsilon is None. `PureDP` refuses this value.
            privacy = PureDP(epsilon)  # type: ignore[arg-type]
        check_range(privacy, "a lower bound")
        own = privacy.epsilon if isinstance(privacy, PureDP) else None
        # Copies with `dataclasses.replace` pass both the epsilon and the privacy of the original.
        if self.privacy is not None and epsilon not in (None, own):
            raise ValueError(f"give either epsilon or privacy, got {epsilon!r} and {privacy!r}")
        object.__setattr__(self, "privacy", privacy)
        object.__setattr__(self, "epsilon", own)
        object.__setattr__(self, "alpha", positive(self.alpha, "alpha"))
        if not isinstance(self.metric, Metric):
            raise ValueError(f"metric must be MeanL2, RMS or WorstCase, got {self.metric!r}")
        checked_adjacency(self.adjacency)

    @property
    def guarantee(self) -> Privacy:
        """The guarantee that the mechanism must give."""
        assert self.privacy is not None  # set by `__post_init__`
        return self.privacy

    @property
    def pure_epsilon(self) -> float:
        """The epsilon of pure privacy; `SideConditionError` for every other guarantee."""
        if self.epsilon is None:
            raise SideConditionError(
                f"the proof needs pure differential privacy, got {self.guarantee}"
            )
        return self.epsilon

    @property
    def changes(self) -> int:
        """Number of changes, each to a neighbouring data set, that together replace one record."""
        return CHANGES[self.adjacency]

    @property
    def required_separation(self) -> float:
        """Least distance c alpha between answers in a packing, with the factor c of the metric."""
        return self.metric.separation * self.alpha

    def __str__(self) -> str:
        # Round down: a lower bound for some privacy and alpha also holds for stronger privacy and a
        # smaller alpha. It need not hold for weaker privacy or a larger alpha.
        alpha = printed_down(self.alpha)
        guarantee = f"{_words(self.guarantee)} ({self.adjacency.value})"
        return f"{guarantee} and {self.metric.name} at most {alpha}"


def _words(privacy: Privacy) -> str:
    match privacy:
        case PureDP(epsilon=epsilon):
            return f"{printed_down(epsilon)}-DP"
        case ApproxDP(epsilon=epsilon, delta=delta):
            return f"({printed_down(epsilon)}, {printed_down(delta)})-DP"
        case ZCDP(rho=rho):
            return f"{printed_down(rho)}-zCDP"


# The least budget of answers that are accurate with a stated probability.
#
# Let D_1, ..., D_M be data sets of n records. One becomes another by at most k changes, and the
# answers of any two differ by more than 2 h. Assume that a mechanism states, for each data set, a
# region of half-width h that contains the true answers with probability at least c. The event E_j
# that the region contains the answers of D_j has probability at least c on D_j. The events exclude
# each other, so on D_1 the least likely of E_2, ..., E_M has a probability of at most
# q = (1 - c) / (M - 1). Group privacy (GEN-2) compares its probabilities on two data sets:
#
#     epsilon-DP:          c <= e^(k epsilon) q
#     (epsilon, delta)-DP: c <= e^(k epsilon) q + delta (e^(k epsilon) - 1) / (e^epsilon - 1)
#     rho-zCDP:            kl(c, q) <= k^2 rho,
#
# where kl is the Kullback-Leibler divergence of coins with the heads probabilities c > q. A smaller
# epsilon or rho is impossible. The regions may depend on the records in any way.

#: Relative margin by which a budget is rounded down, far above the errors of a few logarithms.
MARGIN = 1e-9


@dataclass(frozen=True)
class ConfidentAnswers:
    """Data sets whose regions exclude each other: a proof that a budget is too small.

    Parameters
    ----------
    data_sets : int
        M, at least 2: number of data sets, any two of which have answers more than 2 h apart.
    changes : int
        k, at least 1: number of changes that lead from one of them to another.
    confidence : float
        c: probability of the region of half-width h, above 1/2 and below 1.

    References
    ----------
    The packing argument of JL-L6, with the probability in place of Markov's inequality.

    Examples
    --------
    A count that is within 10 with probability 0.95 distinguishes counts that are 21 apart:

    >>> import geomdp as gd
    >>> proof = gd.bounds.ConfidentAnswers(data_sets=2, changes=21, confidence=0.95)
    >>> round(proof.least_budget(gd.PureDP(1.0)), 4)  # ln(19) / 21
    0.1402
    """

    data_sets: int
    changes: int
    confidence: float = 0.95

    def __post_init__(self) -> None:
        whole(self.data_sets, "data_sets", minimum=2)
        whole(self.changes, "changes")
        if probability(self.confidence, "confidence") <= 0.5:
            raise ValueError(f"confidence must be above 1/2, got {self.confidence!r}")

    def least_budget(self, privacy: Privacy) -> float:
        """The epsilon (rho for zCDP) below which no mechanism has such regions; 0 if none.

        Of `privacy`, only the definition and a delta matter.
        """
        c, k = self.confidence, self.changes
        q = (1 - c) / (self.data_sets - 1)
        odds = math.log(c) - math.log(q)
        match privacy:
            case PureDP():
                return odds / k * (1 - MARGIN)
            case ZCDP():
                divergence = c * odds + (1 - c) * (math.log1p(-c) - math.log1p(-q))
                return divergence / k / k * (1 - MARGIN)
            case ApproxDP(delta=delta):

                def enough(epsilon: float) -> bool:
                    group = math.expm1(k * epsilon) / math.expm1(epsilon)
                    return c <= math.exp(k * epsilon) * q + delta * group

                return bracket(enough, 0.0, odds / k)[0] * (1 - MARGIN)
