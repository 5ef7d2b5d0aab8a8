"""Exact privacy losses of discrete laws, and those of short runs of sparse vector."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from geomdp._numerics.bisection import largest_at_most
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import finite_array, positive, require_type, whole
from geomdp.audit.scores import Learner, Outputs, Score
from geomdp.privacy import ZCDP, ApproxDP, Privacy, PureDP
from geomdp.privacy.definitions import check_privacy

# Privacy loss distributions of two discrete laws, from their exact probabilities

#: A zCDP claim is tested at these orders of the Renyi divergence D_order. From each to the next,
#: order - 1 grows by a tenth. (order - 1) D_order is convex in the order, so a claim that holds at
#: two successive orders is exceeded by less than 1 percent between them.
ORDERS = 1 + np.geomspace(1e-3, 1e3, 145)
#: An excess up to this size may be a rounding error; for pure DP and zCDP, times the claimed
#: epsilon or rho if that is above 1. Probabilities are sums of a few thousand products of a few
#: dozen factors, so they contain at most 2^17 rounding errors of 2^-53 each.
SLACK = 2.0**-36


@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """The distribution of the privacy loss L = ln(p(Y) / q(Y)), where Y is drawn from p."""

    losses: FloatArray = field(repr=False)
    masses: FloatArray = field(repr=False)
    impossible: float

    @classmethod
    def of_laws(cls, first: npt.ArrayLike, second: npt.ArrayLike) -> PrivacyLoss:
        """The privacy loss of two laws p and q (k,) on the same k outcomes.

        ``ValueError`` if they differ in size, have negative entries, or a sum that is not 1 up to
        rounding.
        """
        p, q = (finite_array(law, "law", ndim=1) for law in (first, second))
        if p.shape != q.shape:
            raise ValueError(f"laws must be of equal size, got {len(p)} and {len(q)} outcomes")
        for law in (p, q):
            if (law < 0).any() or abs(law.sum() - 1) > 1e-9:
                raise ValueError(f"laws must be nonnegative with sum 1, got sum {law.sum():.12g}")
        both = (p > 0) & (q > 0)
        return cls(np.log(p[both]) - np.log(q[both]), p[both], float(p[q == 0].sum()))

    def delta(self, epsilon: float) -> float:
        """The least delta with p(S) <= e^epsilon q(S) + delta for every S (GEN-2)."""
        gains = -np.expm1(np.minimum(epsilon - self.losses, 0.0))
        return float(self.masses @ gains) + self.impossible

    def epsilon(self, delta: float = 0.0) -> float:
        """The least epsilon >= 0 with p(S) <= e^epsilon q(S) + delta for every S; inf if none."""
        if self.impossible > delta:
            return math.inf
        largest = max(float(self.losses.max(initial=0.0)), 0.0)
        if delta == 0 or largest == 0 or self.delta(0.0) <= delta:
            return largest if delta == 0 else 0.0
        below = largest_at_most(lambda x: self.delta(-x), delta, -largest, 0.0)
        return -below

    def renyi(self, order: float) -> float:
        """The Renyi divergence D_order(p || q), order above 1; may be infinite."""
        return float(self._renyi(np.array([order]))[0])

    def _renyi(self, orders: FloatArray) -> FloatArray:
        if self.impossible > 0:
            return np.full(len(orders), math.inf)
        exponents = (orders - 1)[:, None] * self.losses
        top = exponents.max(axis=1)
        totals = np.exp(exponents - top[:, None]) @ self.masses
        return np.asarray((top + np.log(totals)) / (orders - 1))

    def excess(self, claim: Privacy) -> float:
        """The excess of (p, q) over the claim.

        It is the least epsilon minus the claimed epsilon for pure DP, and the least delta minus the
        claimed delta for approximate DP. For zCDP, it is the largest D_order / order over `ORDERS`,
        minus rho. If the claim holds for this ordered pair, it is at most 0 up to rounding.
        ``ValueError`` if `claim` is not `PureDP`, `ApproxDP` or `ZCDP`.
        """
        check_privacy(claim, name="claim")
        match claim:
            case PureDP(epsilon=epsilon):
                return self.epsilon() - epsilon
            case ApproxDP(epsilon=epsilon, delta=delta):
                return self.delta(epsilon) - delta
            case ZCDP(rho=rho):
                return float((self._renyi(ORDERS) / ORDERS).max()) - rho

    def refutes(self, claim: Privacy) -> bool:
        """Whether (p, q) exceeds the claim by more than rounding errors; (q, p) is not tested."""
        excess = self.excess(claim)
        match claim:
            case PureDP(epsilon=scale) | ZCDP(rho=scale):
                return excess > SLACK * max(scale, 1.0)
            case ApproxDP():
                return excess > SLACK


# Exact laws of the transcripts of short runs of sparse vector

#: Entries of a transcript: a query was found below the threshold, found above it, or not asked.
BELOW, ABOVE, UNASKED = 0, 1, -1
#: Largest number of queries of a stream. It is small, because the number of transcripts can
#: double with every query.
MOST_QUERIES = 12
#: The probability of a transcript is an integral over the threshold noise t. It covers 0 and every
#: difference (true answer minus threshold), and this many scales of t to the left and to the right.
#: Farther out, the integrand is an exponential times at most 12 factors between 1/2 and 1. The
#: exponential falls at least as fast as the density of t, so the part that is left out is at most
#: 2^12 e^-45 = 1.2e-16 of the probability.
REACH = 45.0
#: Number of nodes of the Gauss-Legendre rule on each interval. An interval is at most 4 c long for
#: the smaller noise scale c, and the integrand on it is a sum of exponentials e^(a t) with |a| c at
#: most `MOST_QUERIES` + 1, which the rule integrates with a relative error of about 1e-16.
NODES = 32


@runtime_checkable
class NoiseScales(Protocol):
    """The noise of a sparse vector mechanism, for queries of sensitivity 1."""

    @property
    def threshold(self) -> float:
        """Laplace scale of the noise on the threshold."""

    @property
    def query(self) -> float:
        """Laplace scale of the fresh noise on each query."""

    @property
    def redraw(self) -> bool:
        """Whether the threshold noise is drawn anew after each query found above the threshold."""


@dataclass(frozen=True, eq=False)
class SparseVectorLaw:
    """The exact law of the transcript of a sparse vector run.

    Query i has the true answer x_i. It is found above the threshold T if x_i + Lap(query scale) >=
    T + Lap(threshold scale). The run halts once `cutoff` queries were found above. For each of the
    k queries, the transcript states one outcome: found above, found below, or not asked.
    ``ValueError`` if a parameter is out of range.

    Parameters
    ----------
    truths : (k,) array
        The differences x_i - T, at most 12 of them.
    scales : NoiseScales
        The noise.
    cutoff : int
        The run halts once this many queries were found above the threshold.

    Examples
    --------
    The answers to two queries are 1 below and 1 above the threshold. In a transcript, 0 means found
    below, 1 means found above, and -1 means not asked:

    >>> import geomdp as gd
    >>> scales = gd.AboveThreshold(threshold=0.0, privacy=gd.PureDP(1.0)).scales
    >>> law = gd.audit.SparseVectorLaw([-1.0, 1.0], scales, cutoff=1)
    >>> law.transcripts
    array([[ 0,  0],
           [ 0,  1],
           [ 1, -1]])
    >>> law.probabilities.round(3)
    array([0.282, 0.3  , 0.418])
    """

    truths: FloatArray = field(repr=False)
    scales: NoiseScales
    cutoff: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "truths", finite_array(self.truths, "truths", ndim=1))
        whole(len(self.truths), "number of queries", maximum=MOST_QUERIES)
        whole(self.cutoff, "cutoff")
        require_type(self.scales, NoiseScales, "scales")
        positive(self.scales.threshold, "threshold scale")
        positive(self.scales.query, "query scale")

    @cached_property
    def transcripts(self) -> IntArray:
        """Every possible transcript (p, k), with entries `BELOW`, `ABOVE` and `UNASKED`."""
        return np.array(list(_transcripts(len(self.truths), self.cutoff)), dtype=np.int64)

    @cached_property
    def probabilities(self) -> FloatArray:
        """Probability (p,) of each transcript, with a relative error near machine precision."""
        weights, below, above = self._conditional()
        found = np.empty(len(self.transcripts))
        for row, transcript in enumerate(self.transcripts):
            total, segment = 1.0, weights
            for i, entry in enumerate(transcript):
                if entry == UNASKED:
                    break
                segment = segment * (above[i] if entry == ABOVE else below[i])
                if entry == ABOVE and self.scales.redraw:
                    total, segment = total * float(segment.sum()), weights
            found[row] = total * float(segment.sum())
        return found

    def _conditional(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Weights (nodes,) of the integral over the noise; outcome probabilities (k, nodes)."""
        first, second = self.scales.threshold, self.scales.query
        kinks = np.concatenate([[0.0], self.truths])
        reach = REACH * first
        ends = np.unique([kinks.min() - reach, *kinks, kinks.max() + reach])
        step = 4 * min(first, second)
        cuts = np.concatenate(
            [
                np.linspace(low, high, math.ceil((high - low) / step), endpoint=False)
                for low, high in itertools.pairwise(ends)
            ]
            + [ends[-1:]]
        )
        nodes, weights = np.polynomial.legendre.leggauss(NODES)
        middles, halves = (cuts[1:] + cuts[:-1]) / 2, (cuts[1:] - cuts[:-1]) / 2
        t = (middles[:, None] + halves[:, None] * nodes).ravel()
        density = np.exp(-np.abs(t) / first) / (2 * first)
        weights = (halves[:, None] * weights).ravel() * density
        away = (t - self.truths[:, None]) / second
        tail = np.exp(-np.abs(away)) / 2
        below = np.where(away < 0, tail, 1 - tail)
        above = np.where(away < 0, 1 - tail, tail)
        return weights, below, above


def _transcripts(queries: int, cutoff: int) -> Iterator[tuple[int, ...]]:
    if queries == 0 or cutoff == 0:
        yield (UNASKED,) * queries
        return
    for entry in (BELOW, ABOVE):
        for rest in _transcripts(queries - 1, cutoff - (entry == ABOVE)):
            yield (entry, *rest)


def law_learner(first: SparseVectorLaw, second: SparseVectorLaw) -> Learner:
    """A learner that needs no training: its score is the log-ratio of two laws of transcripts.

    It scores transcripts (trials, k), and gives 0 to those that are impossible under the laws.
    ``ValueError`` unless both are a `SparseVectorLaw` with the same possible transcripts.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> scales = gd.AboveThreshold(threshold=0.0, privacy=gd.PureDP(1.0)).scales
    >>> laws = [gd.audit.SparseVectorLaw([truth], scales, cutoff=1) for truth in (0.0, 1.0)]
    >>> learner = gd.audit.law_learner(*laws)
    >>> score = learner.learn(np.array([[0]]), np.array([[1]]))
    >>> score(np.array([[0], [1]])).round(3)
    array([ 0.179, -0.152])
    """
    require_type(first, SparseVectorLaw, "first")
    require_type(second, SparseVectorLaw, "second")
    if not np.array_equal(first.transcripts, second.transcripts):
        raise ValueError(
            "first and second must have the same number of queries and the same cutoff, got laws "
            f"of {len(first.transcripts)} and {len(second.transcripts)} transcripts"
        )
    ratios = np.zeros(3 ** len(first.truths))
    ratios[_codes(first.transcripts)] = np.log(first.probabilities / second.probabilities)
    score: Score = lambda outputs: ratios[_codes(outputs)]  # noqa: E731
    return Learner("log ratio of the exact probabilities of the transcript", lambda _a, _b: score)


def _codes(transcripts: Outputs) -> IntArray:
    return np.asarray((transcripts.astype(np.int64) + 1) @ 3 ** np.arange(transcripts.shape[1]))
