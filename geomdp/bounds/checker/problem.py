"""The privacy guarantee and the measure of error of a certificate, and the result of a check."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from geomdp.bounds.checker.reading import CertificateRejected, Part, require, rounded_down

# The privacy guarantee.

#: Relative error allowed in the numbers from which `Guarantee.overlap` is computed. It is above the
#: rounding errors of float64, and below 1e-12, the `OVERLAP_MARGIN` of `geomdp.bounds.count_risks`.
ROUNDING = 2e-13
#: Bounds are computed only for privacy losses below this number. e^loss overflows at about 709.
MOST_LOSS = 600.0


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-DP, pure if delta is 0, or rho-zCDP; unused parameters are 0.

    It bounds how far outputs on two data sets differ. Let two data sets be r changes apart, and let
    P and Q be the distributions of the output on them. Their overlap is 1 - TV, where TV = max_S
    P(S) - Q(S) is the total variation. It is at most the sum of the two error probabilities of a
    test that guesses the data set from the output.

    * (epsilon, delta)-DP: TV <= tanh(r epsilon / 2) (1 + 2 delta / (e^epsilon - 1)). Proof: group
      privacy gives epsilon' = r epsilon and delta' = delta (e^epsilon' - 1) / (e^epsilon - 1). Add
      P(S) <= e^epsilon' Q(S) + delta' and 1 - Q(S) <= e^epsilon' (1 - P(S)) + delta', and solve for
      P(S) - Q(S).
    * rho-zCDP: TV <= tanh(x), where x > 0 solves 2 x tanh(x) = r^2 rho. Proof: by group privacy,
      both Kullback-Leibler divergences are at most r^2 rho. Let p = P(S), q = Q(S) and d = p - q.
      By data processing, d ln(p (1 - q) / (q (1 - p))) <= 2 r^2 rho. For fixed d, the left side is
      least at p + q = 1. With d = tanh(x) it is then 4 x tanh(x). The Renyi divergence of order 2
      gives a chi-square divergence of at most e^(2 r^2 rho) - 1.
    """

    epsilon: float
    delta: float
    rho: float

    @property
    def is_pure(self) -> bool:
        return self.rho == 0 and self.delta == 0

    def __str__(self) -> str:
        """The guarantee in words, rounded down: a mechanism with it also has the exact one."""
        if self.rho > 0:
            return f"{rounded_down(self.rho)}-zCDP"
        if self.delta > 0:
            return f"({rounded_down(self.epsilon)}, {rounded_down(self.delta)})-DP"
        return f"{rounded_down(self.epsilon)}-DP"

    def overlap(self, changes: int) -> float:
        """A lower bound, at least 0, on the overlap of outputs on data sets `changes` apart."""
        half = self.epsilon * changes / 2
        if self.rho > 0:
            half = _half_loss(self.rho * changes**2)
        if 2 * half >= MOST_LOSS:
            return 0.0
        # 1 - tanh(h) = e^-h / cosh(h).
        shared = math.exp(-half) / math.cosh(half) * (1 - ROUNDING)
        if self.delta > 0:
            shared -= 2 * self.delta * math.tanh(half) / math.expm1(self.epsilon) * (1 + ROUNDING)
        return max(0.0, shared)

    def of_group(self, changes: int) -> tuple[float, float]:
        """epsilon and delta for data sets `changes` apart, by group privacy; not for zCDP."""
        epsilon = self.epsilon * changes
        require(epsilon < MOST_LOSS, "one step of a line loses too much privacy")
        return epsilon, self.delta * math.expm1(epsilon) / math.expm1(self.epsilon)

    def chi_square(self, changes: int) -> float:
        """Largest chi-square divergence, under zCDP, of outputs on data sets `changes` apart."""
        require(self.rho > 0, "the chi-square divergence is bounded under zCDP only")
        require(2 * self.rho * changes**2 < MOST_LOSS, "one step of a line loses too much privacy")
        return math.expm1(2 * self.rho * changes**2)


def guarantee_of(document: Part) -> Guarantee:
    """The guarantee that the file states, as "epsilon" or as "privacy" with a definition."""
    if "privacy" not in document.values:
        epsilon = document.number("epsilon")
        require(epsilon > 0, "epsilon is not above 0")
        return Guarantee(epsilon, 0.0, 0.0)
    require("epsilon" not in document.values, "the file states both epsilon and privacy")
    stated = document.part("privacy")
    definition = stated.word("definition")
    if definition == "ZCDP":
        require(set(stated.values) == {"definition", "rho"}, "zCDP has the parameter rho only")
        rho = stated.number("rho")
        require(rho > 0, "rho is not above 0")
        return Guarantee(0.0, 0.0, rho)
    if definition == "ApproxDP":
        names = {"definition", "epsilon", "delta"}
        require(set(stated.values) == names, "(epsilon, delta)-DP has these two parameters only")
        epsilon, delta = stated.number("epsilon"), stated.number("delta")
        require(epsilon > 0, "epsilon is not above 0")
        require(0 < delta < 0.5, "delta is not above 0 and below 1/2")
        return Guarantee(epsilon, delta, 0.0)
    raise CertificateRejected(f"the definition of privacy {definition!r} is unknown")


def _half_loss(divergence: float) -> float:
    """A number x with 2 x tanh(x) >= `divergence`: Newton's result, increased until this holds."""
    x = math.sqrt(divergence) if divergence < 1 else divergence / 2 + 0.5
    for _ in range(100):
        tanh = math.tanh(x)
        slope = 2 * tanh + 2 * x * (1 - tanh**2)
        x = max(x - (2 * x * tanh - divergence) / slope, x / 2)
    while 2 * x * math.tanh(x) < divergence * (1 + ROUNDING / 8):
        x *= 1 + ROUNDING / 8
    return x


# The three measures of error, under the names that certificate files use.

Norm = Callable[[npt.NDArray[np.float64]], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class Measure:
    """A norm of the errors of k queries, rows of (b, k), whose p-th moment is at most alpha^p."""

    norm: Norm
    #: p: 1 for a mean, 2 for a root mean square.
    moment: int
    largest: bool

    def log_odds(self, factor: float) -> float:
        """ln(q / (1 - q)) for q = 1 - (2 / c)^moment, where c = `factor` is above 2."""
        # By Markov's inequality, the norm of the errors of a mechanism of error alpha is below c
        # alpha / 2, half of the distance between answers, with probability at least q.
        # x^2 - 1 = (x - 1) (x + 1): near x = 1, the difference of x^2 and 1 would lose digits.
        half = factor / 2
        return math.log((half - 1) * (half + 1) if self.moment == 2 else half - 1)


def _mean_square_root(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(np.sqrt((rows**2).mean(axis=1)))


def _largest(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.asarray(np.maximum(rows.max(axis=1), -rows.min(axis=1)))


MEASURES = {
    "mean l2 error per query": Measure(_mean_square_root, 1, largest=False),
    "root mean squared error per query": Measure(_mean_square_root, 2, largest=False),
    "worst-case error over the queries": Measure(_largest, 1, largest=True),
}

# The result of checking one rung. A rung is one step of a certificate.


@dataclass(frozen=True, kw_only=True)
class Verified:
    """The checked proof of one rung: its workload, what was verified, and what is still assumed."""

    #: A key that identifies the workload; `queries` are the workload in words.
    subject: tuple[object, ...]
    queries: str
    verified: tuple[str, ...]
    conditions: tuple[str, ...] = ()
    #: Upper bound on the probability, over public draws, that a condition does not hold.
    failure: float = 0.0


@dataclass(frozen=True, kw_only=True)
class VerifiedPacking(Verified):
    """The result of checking a packing."""

    #: ln M, where M is the number of data sets.
    log_count: float
    #: Number of records s of each data set.
    size: int
    #: Number of replaced records that suffices to turn any of the data sets into any other.
    distance: int
    #: Least distance between the answers of two data sets, as the check computes it.
    separation: float
    #: Bound on the rounding error of `separation`.
    slack: float
