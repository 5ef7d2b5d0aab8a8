"""Bayes risk of a private count: how well a mechanism can estimate t in {0, ..., T}.

`geomdp.bounds.checker.lines` proves the bounds. Under pure privacy, the best prior pi and
allowances nu are the dual variables of a linear program for the minimax estimate, which
`best_prior` solves for T up to 40; no bound can be larger than its optimum. For larger T, smooth
priors are almost as good, with nu_t = lambda pi_t. For p = 2 and q = e^-epsilon, lambda tends to 2
q / (1 - q)^2 as T grows: the variance of discrete Laplace noise, which is then optimal. Source:
Ghosh-Roughgarden-Sundararajan 2009 and Gupte-Sundararajan 2010 for the linear program;
Boyd-Vandenberghe 2004, section 5, for duality. Le Cam 1973 and Yu 1997 for pairs of data sets; Van
Trees 1968 and Bobrovsky-Zakai 1975 for differences. Dwork-Roth 2014, Theorem 2.2, Vadhan 2017,
Lemma 2.2, Bun-Steinke 2016, Proposition 1.9, and GEN-2 for group privacy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import scipy

from geomdp._numerics.linalg import bracket
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import positive, whole
from geomdp.privacy import ZCDP, ApproxDP, Privacy, PureDP


@dataclass(frozen=True, eq=False)
class Line:
    """A proved lower bound on the Bayes risk of a private estimate of t in {0, ..., T}.

    Parameters
    ----------
    steps : int
        Number of steps T.
    risk : float
        A lower bound on the mean of |y - t|^p for every private estimate y, rounded down; p is 1
        or 2.
    document : dict
        The proof as written to a certificate file.

    Examples
    --------
    >>> import geomdp as gd
    >>> line = gd.bounds.private_line(1, 1.0, moment=2)
    >>> line
    Line(steps=1, risk=0.196592)
    >>> line.prior.round(3)
    array([0.5, 0.5])
    """

    steps: int
    risk: float
    document: dict[str, Any]

    def __post_init__(self) -> None:
        for value in self.document.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    def __repr__(self) -> str:
        return f"Line(steps={self.steps}, risk={self.risk:.6g})"

    @property
    def prior(self) -> FloatArray:
        """The prior (T + 1,) of a proof by allowances."""
        return np.asarray(self.document["prior"])


# The best bound for each guarantee.

#: Under (epsilon, delta)-DP, numbers of copies are chosen for the loss epsilon plus this number
#: times delta. A small share more is allowed, so that a negligible delta does not change them.
DELTA_SHARE, NEGLIGIBLE = 8.0, 1e-3


@dataclass(frozen=True)
class Accuracy:
    """The guarantee and the measure of error; replacing a record takes `changes` changes."""

    privacy: Privacy
    changes: int
    moment: int
    largest: bool

    @property
    def loss(self) -> float:
        """The privacy loss of one replaced record, epsilon or sqrt(2 rho), to choose step sizes."""
        match self.privacy:
            case PureDP(epsilon=epsilon) | ApproxDP(epsilon=epsilon):
                return epsilon * self.changes
            case ZCDP(rho=rho):
                return math.sqrt(2 * rho) * self.changes

    def copies(self, step: float) -> int:
        """The number of copies for a step with about the privacy loss `step`."""
        if isinstance(self.privacy, ApproxDP):
            ratio = DELTA_SHARE * self.privacy.delta / self.privacy.epsilon
            step *= min(1.0, (1 + NEGLIGIBLE) / (1 + ratio))
        return max(1, math.floor(step / self.loss))

    def risk(self, steps: int, copies: int) -> Line:
        """The best bound for `steps` steps, each of which replaces `copies` records."""
        privacy, changes, moment = self.privacy, self.changes * copies, self.moment
        if isinstance(privacy, PureDP):
            return private_line(steps, privacy.epsilon * changes, moment)
        found = [paired_line(steps, privacy, changes, moment)]
        if isinstance(privacy, ApproxDP):
            found.append(approximate_line(steps, privacy, changes, moment))
        elif moment == 2 and 2 * privacy.rho * changes**2 <= MOST_DIVERGENCE:
            found.append(smooth_line(steps, privacy.rho * changes**2))
        return max(found, key=lambda line: line.risk)


# Pure privacy: a prior and allowances.

#: Smooth priors that are tried: `sine_weights`, as pairs (power, a).
PRIORS = ((0.0, 1.0), (0.5, 2.0), (1.0, 2.0), (1.5, 2.0), (2.0, 4.0))
#: Distance between points y for squared errors, smaller for large epsilon.
SPACING = 0.02
#: Largest epsilon T, as e^(epsilon T) must not overflow, and largest epsilon of a step.
MOST_EPSILON, MOST_STEP = 64.0, 12.0
#: Relative margins for the O(T) rounding errors of a risk, for T up to 1000 more than 40 times
#: T 2^-52, and for those of a sum of T + 1 allowances.
RISK_MARGIN, SUM_MARGIN = 1e-11, 1e-14


@lru_cache(maxsize=1024)
def private_line(steps: int, epsilon: float, moment: int) -> Line:
    """The largest lower bound that is found on the Bayes risk for T = `steps`.

    Data sets with t and t + 1 records of the first of two kinds are neighbours, so output densities
    satisfy e^-epsilon <= f_{t+1} / f_t <= e^epsilon. The mean of |y - t|^p is at least
    nu_0 + ... + nu_T if sum_t f_t (pi_t |y - t|^p - nu_t) >= 0 for all these f > 0 and y in [0, T],
    where pi is a prior and the nu_t are called allowances.

    Up to 40 steps, if the solver of a linear program succeeds, the bound for `moment` 1 is the
    error of the best mechanism up to rounding; for `moment` 2 it is slightly smaller. For more
    steps, smooth priors and the best prior for 40 steps are tried. Cost: a linear program with
    O(T^2) unknowns (half a second for T = 40).

    Parameters
    ----------
    steps : int
        Number of steps T, at least 1.
    epsilon : float
        Privacy of one step, above 0 and at most 12, with epsilon T at most 64.
    moment : int
        p: 1 for the mean absolute error, 2 for the mean squared error.

    Examples
    --------
    Every 1-DP estimate of a count from 0 to 24 has at least this mean squared error for some count.
    The variance of discrete Laplace noise, which needs no bound on the count, is 1.841.

    >>> import geomdp as gd
    >>> round(gd.bounds.private_line(24, 1.0, moment=2).risk, 3)
    1.69
    """
    whole(steps, "steps")
    whole(moment, "moment", maximum=2)
    if not (positive(epsilon, "epsilon") <= MOST_STEP and epsilon * steps <= MOST_EPSILON):
        raise ValueError(
            f"epsilon must be at most 12, and at most 64 for all steps together, got {epsilon!r} "
            f"for each of {steps} steps"
        )
    spacing = 1.0 if moment == 1 else SPACING * min(1.0, 8 * math.exp(-epsilon / 2))
    found = []
    if steps > LONGEST:
        # Prior 0 and allowance 0 at all further t.
        line, rest = private_line(LONGEST, epsilon, moment), (0, steps - LONGEST)
        longer = {name: np.pad(line.document[name], rest) for name in ("prior", "allowances")}
        found.append(Line(steps, line.risk, line.document | longer))
    elif (optimal := best_prior(steps, epsilon, moment)) is not None:
        found.append(_corrected(*optimal, epsilon, moment, spacing))
    for power, inset in PRIORS:
        weights = sine_weights(steps + 1, power, inset)
        prior = weights / weights.sum()
        # The largest lambda, rounded down, for which lambda `prior` are allowances.
        ratio = _least_ratio(prior[:, None] * _losses(steps, moment, spacing), prior, epsilon)
        risk = ratio * (1 - RISK_MARGIN) if ratio > 0 else ratio
        found.append(_line(prior, risk * prior, spacing))
    return max(found, key=lambda line: line.risk)


def sine_weights(count: int, power: float, inset: float) -> FloatArray:
    """sin(pi (t + a) / (count - 1 + 2 a))^power for t < `count` and a = `inset`."""
    angles = np.pi * (np.arange(count) + inset) / (count - 1 + 2 * inset)
    return np.asarray(np.sin(angles) ** power)


def _corrected(
    prior: FloatArray, allowances: FloatArray, epsilon: float, moment: int, spacing: float
) -> Line:
    """The line whose allowances are raised or lowered as much as the condition permits."""
    gains = prior[:, None] * _losses(len(prior) - 1, moment, spacing) - allowances[:, None]
    # The prior alone can be 0 at some t, and could not repair the condition there.
    weights = (prior + 1 / len(prior)) / 2
    terms = gains + 2 * np.abs(allowances)[:, None]
    most = float((np.abs(terms).max(axis=1) / weights).max())
    change = _least_ratio(gains, weights, epsilon) - RISK_MARGIN * most
    return _line(prior, allowances + change * weights, spacing)


def _line(prior: FloatArray, allowances: FloatArray, spacing: float) -> Line:
    """The line with the sum of the `allowances`, rounded down, as risk."""
    most = SUM_MARGIN * float(np.abs(allowances).sum())
    risk = math.fsum(allowances) - most
    document = {"spacing": spacing, "risk": risk, "prior": prior, "allowances": allowances}
    return Line(len(prior) - 1, risk, document)


def _losses(steps: int, moment: int, spacing: float) -> FloatArray:
    """|y - t|^p for each t (a row) and each point y (a column), minus h^2 / 4 for p = 2."""
    points = spacing * np.arange(math.ceil(steps / spacing) + 1)
    # For p = 1, |y - t| is linear between neighbouring points, so nothing needs to be subtracted.
    slack = spacing**2 / 4 if moment == 2 else 0.0
    return np.asarray(np.abs(points - np.arange(steps + 1)[:, None]) ** moment - slack)


def _least_ratio(gains: FloatArray, weights: FloatArray, epsilon: float) -> float:
    """The least (sum f_t gains_t) / (sum f_t weights_t) over f and over columns (points y)."""
    shrink = math.exp(-epsilon)
    # Dinkelbach's method: find the best f for the current ratio, and take the ratio of this f. The
    # `weights` have the sum 1 and no entry below 0.
    least, previous = float(gains.sum(axis=0).min()), math.inf
    while least < previous:
        previous = least
        above, total = np.zeros(gains.shape[1]), np.zeros(gains.shape[1])
        for t in range(len(weights) - 1, -1, -1):
            ratio = np.where(above > previous * total, shrink, 1 / shrink)
            above = gains[t] + ratio * above
            total = weights[t] + ratio * total
        least = float((above / total).min())
    return previous


# The best prior for a private estimate of t in {0, ..., T}, from a linear program. The sum of the
# allowances nu is maximised over pi, nu and V with V_0(y) >= 0 and
#
#     V_t(y) <= pi_t |y - t|^p - nu_t + e^(+-epsilon) V_{t+1}(y),   with both signs.
#
# As t -> T - t changes nothing, t and T - t share their unknowns, and points y up to T / 2 are
# enough. The solution is no proof: `private_line` corrects it.

#: Largest number of steps T for which the program is solved, in about half a second. Below `FEW`
#: steps the simplex method is faster, from it on interior points.
LONGEST, FEW = 40, 16
#: For p = 2, the spacing of the points y in [0, T / 2] gives about `CELLS` pairs (y, t), and is at
#: most `COARSEST`. A program then takes at most a second.
CELLS, COARSEST = 1500, 0.5


def best_prior(steps: int, epsilon: float, moment: int) -> tuple[FloatArray, FloatArray] | None:
    """The prior and the allowances (T + 1,) of the best bound; None if the solver fails."""
    points = _points(steps, moment)
    count, half = steps + 1, steps // 2 + 1
    pair = np.minimum(np.arange(count), steps - np.arange(count))
    members = np.bincount(pair)
    # The unknowns are the prior (half), the allowances (half), and V (points, T + 1).
    unknowns = 2 * half + len(points) * count
    costs = np.zeros(unknowns)
    costs[half : 2 * half] = -members
    total = np.zeros((1, unknowns))
    total[0, :half] = members
    lower = np.full(unknowns, -np.inf)
    lower[:half] = 0
    lower[2 * half :: count] = 0
    rows = _requirements(np.abs(points[:, None] - np.arange(count)) ** moment, pair, epsilon)
    zeros, bounds = np.zeros(rows.shape[0]), [(least, None) for least in lower.tolist()]
    solved = scipy.optimize.linprog(
        costs, rows, zeros, total, [1.0], bounds, "highs-ds" if steps < FEW else "highs-ipm"
    )
    if not solved.success or solved.x is None:
        return None
    prior = np.maximum(solved.x[:half][pair], 0.0)
    return prior / prior.sum(), solved.x[half : 2 * half][pair]


def _points(steps: int, moment: int) -> FloatArray:
    """Points y from 0 to T / 2, or to the first point beyond T / 2."""
    if moment == 1:
        return np.arange(math.ceil(steps / 2) + 1, dtype=np.float64)
    spacing = min(COARSEST, steps / 2 * (steps + 1) / CELLS)
    return np.asarray(spacing * np.arange(math.ceil(steps / 2 / spacing) + 1))


def _requirements(losses: FloatArray, pair: IntArray, epsilon: float) -> Any:
    """Sparse matrix A with A x <= 0 for the unknowns x, from |y - t|^p (points, T + 1)."""
    # `pair` (T + 1,) holds min(t, T - t): the index of the unknowns that t and T - t share.
    points, count = losses.shape
    shared = np.tile(np.eye(int(pair.max()) + 1)[pair], (points, 1))
    known = np.hstack([-losses.reshape(-1, 1) * shared, shared])
    sides = []
    for factor in (math.exp(-epsilon), math.exp(epsilon)):
        step = np.eye(count) - factor * np.eye(count, k=1)
        values = scipy.sparse.kron(scipy.sparse.eye_array(points), scipy.sparse.csr_array(step))
        sides.append(scipy.sparse.hstack([scipy.sparse.csr_array(known), values]))
    return scipy.sparse.vstack(sides, format="csr")


# (epsilon, delta)-DP: delta K is the price of the slack variables of the program of `best_prior`.

#: Relative margin for the rounding errors of delta K; that of the checker is 5e-12.
PRICE_MARGIN = 1e-11


@lru_cache(maxsize=1024)
def approximate_line(steps: int, privacy: ApproxDP, changes: int, moment: int) -> Line:
    """The bound of `private_line` minus delta K, for its prior and allowances; it can be below 0.

    K is that of `geomdp.bounds.checker.lines`. For b = `changes` per step, group privacy (GEN-2)
    gives epsilon' = b epsilon and delta' = delta (e^epsilon' - 1) / (e^epsilon - 1).
    """
    epsilon = changes * privacy.epsilon
    line = private_line(steps, epsilon, moment)
    delta = privacy.delta * math.expm1(epsilon) / math.expm1(privacy.epsilon)
    risk = line.risk - delta * _price(line, epsilon, moment) * (1 + PRICE_MARGIN)
    return Line(steps, risk, line.document | {"argument": "allowances", "risk": risk})


def _price(line: Line, epsilon: float, moment: int) -> float:
    """The number K of `approximate_line`, for the given line."""
    steps, h = line.steps, line.document["spacing"]
    prior, allowances = line.prior.tolist(), line.document["allowances"].tolist()
    points = np.minimum(h * np.arange(math.ceil(steps / h) + 1), steps)
    slack = h**2 / 4 if moment == 2 else 0.0
    values, at_ends, total = np.zeros(len(points)), np.zeros(2), 0.0
    for t in range(steps, 0, -1):
        gains = prior[t] * (np.abs(points - t) ** moment - slack) - allowances[t]
        values = gains + np.minimum(math.exp(-epsilon) * values, math.exp(epsilon) * values)
        distances = np.array([t, steps - t], dtype=float)
        at_ends = at_ends + prior[t] * distances**moment - allowances[t]
        total += math.exp(-epsilon) * max(0.0, float(at_ends.max()))
        total += max(0.0, -float(values.min()))
    return total


# Any guarantee: pairs of data sets (the argument "pairs" of the checker).

#: Relative margin for the rounding errors of a sum of up to 500 terms.
PAIRED_MARGIN = 1e-12
#: Largest number of steps of a line, for which `PAIRED_MARGIN` and `SMOOTH_MARGIN` are enough.
MOST_STEPS = 1000


@lru_cache(maxsize=4096)
def paired_line(steps: int, privacy: Privacy, changes: int, moment: int) -> Line:
    """The bound from pairs of data sets, under the uniform prior; one step takes b = `changes`.

    It is the sum over j from 0 to (T - 1) / 2 of (T - 2 j) / (T + 1) w_j overlap((2 j + 1) b),
    where w_j = 1 for p = 1 and 2 j + 1/2 for p = 2. For T = 1 it is Le Cam's bound.
    """
    assert steps <= MOST_STEPS
    total = 0.0
    for j in range((steps + 1) // 2):
        common = overlap(privacy, (2 * j + 1) * changes)
        if common == 0:
            break  # the bound on the overlap is also 0 for data sets that are farther apart
        weight = 1.0 if moment == 1 else 2 * j + 0.5
        total += (steps - 2 * j) / (steps + 1) * weight * common
    risk = total * (1 - PAIRED_MARGIN)
    return Line(steps, risk, {"argument": "pairs", "steps": steps, "risk": risk})


# How much the outputs of a private mechanism on two data sets must overlap:
# `geomdp.bounds.checker.reading` defines the overlap and proves the bounds.

#: Relative margin for the rounding errors of an overlap, which for delta > 0 can be a small
#: difference of two larger numbers. That of the checker is 2e-13.
OVERLAP_MARGIN = 1e-12
#: The bound 1 - tanh(x) is at most 2 e^(-2 x). It is set to 0 if 2 x is at least this number.
MOST_LOSS = 600.0


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
    least = divergence * (1 + OVERLAP_MARGIN)
    return bracket(lambda loss: loss * math.tanh(loss / 2) >= least, 0.0, divergence + 1)[1]


# zCDP: differences (the argument "differences" of the checker). For large T, slowly varying c and
# small b^2 rho, the bound is close to the variance 1 / (2 rho) of Gaussian noise.

#: Profiles c that are tried: `sine_weights`, as pairs (power, a).
PROFILES = ((0.0, 1.0), (0.25, 1.0), (0.5, 1.0), (0.75, 1.0), (1.0, 2.0))
#: Relative margin for the rounding errors of the two sums.
SMOOTH_MARGIN = 1e-12
#: Largest 2 b^2 rho. For larger values the bound is tiny, and e^(2 b^2 rho) could overflow.
MOST_DIVERGENCE = 64.0


@lru_cache(maxsize=4096)
def smooth_line(steps: int, rho: float) -> Line:
    """The largest bound on the mean squared error over a few profiles c_0, ..., c_{T-1}.

    With kappa = e^(2 b^2 rho) - 1 and c_{-1} = c_T = 0, the bound is the square of the sum of c_t
    divided by the sum over t = 0, ..., T of ((c_t - c_{t-1})^2 + kappa c_{t-1}^2)^(1/2). The
    argument `rho` is b^2 rho, the loss of one step.
    """
    assert steps <= MOST_STEPS
    assert 2 * rho <= MOST_DIVERGENCE
    kappa, found = math.expm1(2 * rho), []
    for power, inset in PROFILES:
        weights = sine_weights(steps, power, inset)
        before, after = np.append(0.0, weights), np.append(weights, 0.0)
        roots = np.sqrt((after - before) ** 2 + kappa * before**2)
        risk = float((weights.sum() / roots.sum()) ** 2) * (1 - SMOOTH_MARGIN)
        document = {"argument": "differences", "weights": weights, "risk": risk}
        found.append(Line(steps, risk, document))
    return max(found, key=lambda line: line.risk)
