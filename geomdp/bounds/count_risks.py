"""The largest known lower bound on the Bayes risk of a private count, for each guarantee.

`bayes_risk` has the bounds from a prior and allowances. Those from pairs of data sets, for any
guarantee, and from differences, for zCDP, are here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from geomdp._validation import positive, whole
from geomdp.bounds.bayes_risk import approximate_line, private_line
from geomdp.privacy import ZCDP, ApproxDP, Privacy, PureDP
from geomdp.privacy.definitions import check_privacy

#: A bound is proved by data sets along a line; one step on the line replaces several copies of a
#: record. Under (epsilon, delta)-DP, the number of copies is chosen once for the loss epsilon, and
#: once for the loss epsilon plus this number times delta. If epsilon is small and delta is several
#: times epsilon, the first choice proves nothing. For epsilon from 0.01 to 1 and delta from
#: epsilon / 100 to 10 epsilon, the better of the two choices gives at least 0.96 of the bound for
#: the best number of copies.
DELTA_SHARE = 8.0
#: The second number of copies is raised by this share before it is rounded down. So a delta that
#: is tiny beside epsilon does not change the number.
NEGLIGIBLE = 1e-3


class LineRisk(Protocol):
    """A proved lower bound on the Bayes risk of a private estimate of t in {0, ..., T}."""

    @property
    def steps(self) -> int:
        """Number of steps T."""

    @property
    def risk(self) -> float:
        """A lower bound on the mean of |y - t|^p for the estimate y, rounded down; p is 1 or 2."""

    def document(self) -> dict[str, Any]:
        """The proof as written to a certificate file."""


@dataclass(frozen=True)
class Accuracy:
    """The guarantee and the measure of error; replacing a record takes `changes` changes."""

    privacy: Privacy
    changes: int
    moment: int
    largest: bool

    @property
    def loss(self) -> float:
        """The privacy loss of one replaced record, as the function `loss` measures it."""
        return loss(self.privacy) * self.changes

    def copies(self, step: float) -> set[int]:
        """Numbers of copies to try for a step with about the privacy loss `step`."""
        most = max(1, math.floor(step / self.loss))
        if not isinstance(self.privacy, ApproxDP):
            return {most}
        both = self.loss + DELTA_SHARE * self.privacy.delta * self.changes
        return {most, min(most, max(1, math.floor(step / both * (1 + NEGLIGIBLE))))}

    def risk(self, steps: int, copies: int) -> LineRisk:
        """The best bound for `steps` steps, each of which replaces `copies` records."""
        return known_risk(steps, self.privacy, self.changes * copies, self.moment)


def loss(privacy: Privacy) -> float:
    """The privacy loss of one change: epsilon, or sqrt(2 rho). It is used to choose step sizes."""
    match privacy:
        case PureDP(epsilon=epsilon) | ApproxDP(epsilon=epsilon):
            return epsilon
        case ZCDP(rho=rho):
            return math.sqrt(2 * rho)


def known_risk(steps: int, privacy: Privacy, changes: int, moment: int) -> LineRisk:
    """The largest bound for `steps` steps of `changes` changes each; p is `moment`."""
    if isinstance(privacy, PureDP):
        return private_line(steps, privacy.epsilon * changes, moment)
    found: list[LineRisk] = [paired_line(steps, privacy, changes, moment)]
    if isinstance(privacy, ApproxDP):
        found.append(approximate_line(steps, privacy, changes, moment))
    elif moment == 2 and 2 * privacy.rho * changes**2 <= MOST_DIVERGENCE:
        found.append(smooth_line(steps, privacy.rho * changes**2))
    return max(found, key=lambda line: line.risk)


# Bayes risk of a private count under any guarantee, from pairs of data sets.
#
# `geomdp.bounds.checker.lines` proves the bound (the argument "pairs"). For T = 1 it is Le Cam's:
# overlap / 2 for p = 1, and overlap / 4 for p = 2. With exact overlaps, the sum is close to the
# error of Gaussian noise much larger than a step, for large T.
#
# Sources: Le Cam 1973 and Yu 1997 for two points; the sum over pairs is derived here.

#: Relative margin for the rounding errors of a sum of up to 500 terms.
PAIRED_MARGIN = 1e-12
#: Largest number of steps of a line.
MOST_PAIRED_STEPS = 1000


@dataclass(frozen=True)
class PairedLine:
    """A proved lower bound on the Bayes risk of a private estimate of t in {0, ..., T}.

    Parameters
    ----------
    steps : int
        Number of steps T.
    risk : float
        A lower bound on the mean of |y - t|^p under the uniform prior, rounded down.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bounds.paired_line(1, gd.PureDP(1.0), 1, moment=1)
    PairedLine(steps=1, risk=0.268941)
    """

    steps: int
    risk: float

    def __repr__(self) -> str:
        return f"PairedLine(steps={self.steps}, risk={self.risk:.6g})"

    def document(self) -> dict[str, Any]:
        return {"argument": "pairs", "steps": self.steps, "risk": self.risk}


@lru_cache(maxsize=4096)
def paired_line(steps: int, privacy: Privacy, changes: int, moment: int) -> PairedLine:
    """A lower bound on the Bayes risk of a private count under the uniform prior.

    It is the sum over j from 0 to (T - 1) / 2 of (T - 2 j) / (T + 1) w_j overlap((2 j + 1) b),
    where w_j = 1 for p = 1 and 2 j + 1/2 for p = 2. The overlap is the least 1 - TV of outputs on
    data sets that are (2 j + 1) b changes apart, for the total variation TV.

    Parameters
    ----------
    steps : int
        Number of steps T, from 1 to 1000.
    privacy : PureDP, ApproxDP or ZCDP
        The guarantee of the mechanism. For `PureDP`, the bound of `private_line` is mostly better.
    changes : int
        Number b of changes, each to a neighbouring data set, that one step takes; at least 1.
    moment : int
        p: 1 for the mean absolute error, 2 for the mean squared error.

    Examples
    --------
    Every 0.5-zCDP estimate of a count from 0 to 40 has at least this mean absolute error for some
    count. Gaussian noise has the error 0.798:

    >>> import geomdp as gd
    >>> round(gd.bounds.paired_line(40, gd.ZCDP(0.5), 1, moment=1).risk, 3)
    0.527
    """
    whole(steps, "steps", maximum=MOST_PAIRED_STEPS)
    whole(changes, "changes")
    whole(moment, "moment", maximum=2)
    check_privacy(privacy)
    total = 0.0
    for j in range((steps + 1) // 2):
        common = overlap(privacy, (2 * j + 1) * changes)
        if common == 0:
            break  # the bound on the overlap is also 0 for data sets that are farther apart
        weight = 1.0 if moment == 1 else 2 * j + 0.5
        total += (steps - 2 * j) / (steps + 1) * weight * common
    return PairedLine(steps, total * (1 - PAIRED_MARGIN))


# How much the outputs of a private mechanism on two data sets must overlap.
#
# `geomdp.bounds.checker.problem` defines the overlap and proves the bounds. That for zCDP is never
# weaker than Pinsker's inequality (2 TV^2 <= r^2 rho) or the inequality of Bretagnolle and Huber
# (TV^2 <= 1 - e^(-r^2 rho)).
#
# Sources: Dwork-Roth 2014, Theorem 2.2; Vadhan 2017, Lemma 2.2; Bun-Steinke 2016, Proposition 1.9;
# formula sheet GEN-2.

#: Relative margin for the rounding errors of an overlap, far above 2^-52 times a few operations.
#: The checker of certificates computes each overlap again, with a margin of 2e-13. The overlap that
#: it finds must not be smaller than the overlap here. So the margin here is much larger. If
#: delta > 0, the overlap can be a small difference of two larger numbers, and small errors of these
#: numbers are then large relative to the overlap.
OVERLAP_MARGIN = 1e-12
#: The bound 1 - tanh(x) is at most 2 e^(-2 x). It is set to 0 if 2 x is at least this number.
MOST_LOSS = 600.0
#: Number of bisections. The two ends are then neighbouring float64 numbers, unless both are below
#: 2^-46.
BISECTIONS = 100


def overlap(privacy: Privacy, changes: int) -> float:
    """A lower bound, rounded down and at least 0, on the overlap of outputs `changes` apart."""
    match privacy:
        case PureDP(epsilon=epsilon):
            return _from_loss(changes * epsilon)
        case ApproxDP(epsilon=epsilon, delta=delta):
            loss = changes * epsilon
            common = _from_loss(loss)
            if common == 0:
                return 0.0
            lost = math.tanh(loss / 2) * 2 * delta / math.expm1(epsilon)
            return max(0.0, common - lost * (1 + OVERLAP_MARGIN))
        case ZCDP(rho=rho):
            return _from_loss(_loss_of_binary_answers(changes**2 * rho))


def _from_loss(loss: float) -> float:
    """1 - tanh(loss / 2), rounded down."""
    return 2 / (math.exp(loss) + 1) * (1 - OVERLAP_MARGIN) if loss < MOST_LOSS else 0.0


def _loss_of_binary_answers(divergence: float) -> float:
    """The number 2 x with 2 x tanh(x) = `divergence`, rounded up; at most `divergence` + 1."""
    low, high = 0.0, divergence + 1
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if middle * math.tanh(middle / 2) < divergence * (1 + OVERLAP_MARGIN):
            low = middle
        else:
            high = middle
    return high


# A lower bound on the Bayes risk of a private count under zCDP, close to that of Gaussian noise.
#
# `geomdp.bounds.checker.lines` proves the bound (the argument "differences"). For large T and
# slowly varying c, it tends to 1 / kappa: b^2 / kappa in units of one change. For small b^2 rho,
# that is close to 1 / (2 rho), the variance of Gaussian noise, which is then the best for one
# query.
#
# Sources: Van Trees 1968 and Bobrovsky-Zakai 1975 for the inequality; Bun-Steinke 2016, Proposition
# 1.9, for group privacy; formula sheet GEN-2.

#: Profiles c that are tried: powers of sin(pi (t + a) / (T - 1 + 2 a)), as pairs (power, a). Flat
#: profiles are best for small T.
PROFILES = ((0.0, 1.0), (0.25, 1.0), (0.5, 1.0), (0.75, 1.0), (1.0, 2.0))
#: Relative margin for the rounding errors of the two sums.
SMOOTH_MARGIN = 1e-12
#: Largest number of steps of a line.
MOST_SMOOTH_STEPS = 1000
#: Largest 2 b^2 rho. For larger values the bound is tiny, and e^(2 b^2 rho) could overflow.
MOST_DIVERGENCE = 64.0


@dataclass(frozen=True)
class SmoothLine:
    """A proved lower bound on the mean squared error of a zCDP estimate of t in {0, ..., T}.

    Parameters
    ----------
    weights : tuple of float
        c_0, ..., c_{T-1}, above 0.
    risk : float
        The bound, rounded down.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bounds.smooth_line(2, 0.5)
    SmoothLine(steps=2, risk=0.255134)
    """

    weights: tuple[float, ...]
    risk: float

    def __repr__(self) -> str:
        return f"SmoothLine(steps={self.steps}, risk={self.risk:.6g})"

    @property
    def steps(self) -> int:
        return len(self.weights)

    def document(self) -> dict[str, Any]:
        return {"argument": "differences", "weights": np.array(self.weights), "risk": self.risk}


@lru_cache(maxsize=4096)
def smooth_line(steps: int, rho: float) -> SmoothLine:
    """The largest bound on the mean squared error over a few profiles c_0, ..., c_{T-1}.

    With kappa = e^(2 b^2 rho) - 1 and c_{-1} = c_T = 0, the bound is the square of the sum of c_t
    divided by the sum over t = 0, ..., T of ((c_t - c_{t-1})^2 + kappa c_{t-1}^2)^(1/2).

    Parameters
    ----------
    steps : int
        Number of steps T, from 1 to 1000.
    rho : float
        b^2 rho: the concentrated privacy loss of one step, above 0 and at most 32.

    Examples
    --------
    For sensitivity 1, Gaussian noise under 0.005-zCDP has the variance 100:

    >>> import geomdp as gd
    >>> round(gd.bounds.smooth_line(400, 0.005).risk, 1)
    97.4
    """
    whole(steps, "steps", maximum=MOST_SMOOTH_STEPS)
    if not 2 * positive(rho, "rho") <= MOST_DIVERGENCE:
        raise ValueError(f"rho must be at most {MOST_DIVERGENCE / 2:g}, got {rho!r}")
    kappa, found = math.expm1(2 * rho), []
    for power, inset in PROFILES:
        angles = np.pi * (np.arange(steps) + inset) / (steps - 1 + 2 * inset)
        weights = np.sin(angles) ** power
        before, after = np.append(0.0, weights), np.append(weights, 0.0)
        roots = np.sqrt((after - before) ** 2 + kappa * before**2)
        risk = float((weights.sum() / roots.sum()) ** 2) * (1 - SMOOTH_MARGIN)
        found.append(SmoothLine(tuple(weights.tolist()), risk))
    return max(found, key=lambda line: line.risk)
