"""Published statements and their corrections: what the figure of corrections measures.

Each measurement is one instance that meets all assumptions of a statement. DISC numbers are those
of the formula sheet.
"""

import enum
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared import smooth_problems as problems
from experiments.shared.composition_rules import exact_epsilon
from experiments.shared.known_shares import KnownShares
from geomdp.bounds import upper
from geomdp.mechanisms.interactive import sparse_vector
from geomdp.mechanisms.interactive.iterative import CORRECTED
from geomdp.mechanisms.interactive.online import solve_accuracy
from geomdp.mechanisms.interactive.updates import Median, MedianHypothesis
from geomdp.mechanisms.printed import PRINTED_STOPPING, printed_shortcut_step, printed_smooth_scale
from geomdp.noise.scalar import ScalarNoise
from geomdp.workloads import DenseQuery
from geomdp.workloads.smooth import SmoothQueries, Truncation, approximate_many


class Statement(enum.StrEnum):
    """Published statements, one panel each."""

    ITERATIVE = "iterative construction"
    NUMERIC = "NumericSparse"
    MEDIAN = "median rule"
    SMOOTH_NOISE = "smooth queries: noise"
    SMOOTH_ERROR = "smooth queries: error"
    COMPOSITION = "composition"
    ONLINE = "online weights"
    FLAT = "flat projected queries"


class Version(ex.Curve):
    """Which form of a statement is measured."""

    PRINTED = "printed", "C3", "D", ex.HOLLOW
    CORRECTED = "corrected", "C0", "o"


@dataclass(frozen=True)
class Measured:
    """One instance that meets all assumptions of a statement."""

    measured: float  # The quantity that the statement bounds
    promised: float  # The bound that the statement gives for this quantity
    #: If `measured` is the probability of an event that was also simulated, the share of simulated
    #: runs with this event; otherwise None.
    drawn: float | None = None


# Two statements that do not follow as printed. Theorem 2.10 of Blum and Roth is printed for every
# delta below 1, but it is false for delta near 1 (DISC-5). Their Corollary 4.7 follows from Lemma
# 4.6 for logarithms of base 2, not of base e (DISC-4).

#: Number of steps that are composed, large enough for a nearly normal total loss.
STEPS = 1000
#: Sparsity m of the queries, number T of rows of the projection, and number k of queries.
SPARSITY, ROWS, QUERIES = 16, 1024, 100


def composed(version: Version, odds: float, *_: object) -> Measured:
    """Exact epsilon of `STEPS` steps of Theorem 2.10 at delta = odds / (1 + odds); 1 is promised.

    The steps are randomised responses, which the theorem allows. The corrected statement holds for
    delta at most 1/2.
    """
    delta = odds / (1 + odds)
    if version is Version.PRINTED:
        return Measured(exact_epsilon(printed_shortcut_step(1.0, delta, STEPS), STEPS, delta), 1.0)
    step = gd.privacy.shortcut_step_epsilon(gd.ApproxDP(1.0, delta), STEPS)
    return Measured(exact_epsilon(step, STEPS, delta), 1.0)


def lemma(failures: float) -> float:
    """Least bound X^(1/r) 2 (m r / T)^(1/2) of Lemma 4.6 over even r, with X = `failures`."""
    logs = math.log(failures)
    # Over real r the least bound is at r = 2 ln X, so the best even r is next to this value.
    near = 2 * max(1, math.floor(logs))
    return min(
        math.exp(logs / r) * 2 * math.sqrt(SPARSITY * r / ROWS) for r in (near, near + 2, near + 4)
    )


def flat(version: Version, failures: float, *_: object) -> Measured:
    """Bounds on entries of projected queries by Lemma 4.6 and by Corollary 4.7.

    `failures` is k T / (2 beta), where k is `QUERIES`, T is `ROWS`, and each bound holds with
    probability 1 - beta.
    """
    if version is Version.PRINTED:
        return Measured(lemma(failures), 4 * math.sqrt(SPARSITY * math.log(failures) / ROWS))
    beta = QUERIES * ROWS / (2 * failures)
    stated = upper.coefficient_bound(sparsity=SPARSITY, rows=ROWS, queries=QUERIES, beta=beta)
    return Measured(lemma(failures), stated)


# The update bound of the median rule, for nets with the printed or a finer mesh (DISC-20).

#: The two queries: the share of the first of two elements, and the share of the second.
SHARES = (DenseQuery(np.array([1.0, 0.0])), DenseQuery(np.array([0.0, 1.0])))
#: For a fine net, about this many data sets are tried; for a coarse net, fewer.
TRUTHS = 64


def candidates(mesh: float) -> ex.FloatArray:
    """A net on two elements: every distribution is within `mesh` of it, and some are no closer."""
    first = np.arange(mesh, 1, 2 * mesh)
    return np.column_stack([first, 1 - first])


def forced(version: Version, finest: float, *_: object) -> Measured:
    """Most updates that a greedy adversary forces at alpha = 1 / `finest`; the bound is log2 |net|.

    `finest` is a power of two, so that all shares are exact in float64. The net of the printed
    version has mesh alpha, and the net of the corrected version has mesh alpha / 2.
    """
    alpha = 1 / finest
    mesh = alpha if version is Version.PRINTED else alpha / 2
    rule = Median(candidates(mesh), fineness=mesh)
    truths = np.arange(0, 1 + alpha / 4, alpha / 4)
    tried = truths[:: max(1, len(truths) // TRUTHS)]
    most = max(updates(rule, alpha, float(truth)) for truth in {*tried, 0.5})
    # The printed statement allows mesh alpha. The library's bound needs a mesh below its argument.
    above = math.nextafter(alpha, 1)
    return Measured(most, math.floor(rule.bound(above)))


def updates(rule: Median, alpha: float, truth: float) -> int:
    """Length of an update sequence for data with share `truth` of the first element.

    Each update is legal: the hypothesis is off by alpha or more, and the answer is exact. If both
    queries are legal, the adversary asks the one after which more candidates are left. The sequence
    ends when no query is legal, or with the update that deletes the last candidate.
    """
    left, count = rule.candidates, 0
    while True:
        kept = []
        for query in SHARES:
            hypothesis = MedianHypothesis(left)
            answer = float(query.values @ [truth, 1 - truth])
            median = hypothesis.evaluate(query)
            if abs(answer - median) >= alpha:
                values = left @ query.values
                kept.append(left[values < median if answer < median else values > median])
        if not kept:
            return count
        count += 1
        left = max(kept, key=len)
        if not len(left):
            return count


# Noise on the values that NumericSparse releases, against the accuracies of Theorem 3.28 of Dwork
# and Roth (DISC-11) and of their Theorem 4.14 (DISC-21). The proof of Theorem 4.14 needs all
# released values to be within alpha0 of the truth with probability 1 - beta.


def chance_of_a_large_value(deviation: float, scale: float, count: int) -> float:
    """Chance that at least one of `count` independent Laplace noises exceeds `deviation` in size.

    The noises have scale `scale`, and `deviation` is above 0. The probability is
    1 - (1 - e^(-deviation / scale))^count. Small values are computed without cancellation.
    """
    relative = deviation / scale
    # ln(1 - e^-x). For small x, 1 - e^-x is small, and for large x, it is near 1.
    log_small = (
        math.log(-math.expm1(-relative)) if relative < 0.5 else math.log1p(-math.exp(-relative))
    )
    return -math.expm1(count * log_small)


#: The failure probability, also of the iterative construction below; NumericSparse: its guarantee
#: and the number of values released.
BETA, APPROX, CUTOFF = 0.05, gd.ApproxDP(1.0, 1e-6), 10
#: The true answers exceed the threshold by this many times the stated accuracy, so that all are
#: reported.
FAR = 100.0

#: The privacy of multiplicative weights, online and iterative. Online: numbers of elements and of
#: queries, and the accuracy alpha0. The union bounds have little slack for such small numbers. At
#: this alpha0 at most three updates are needed.
PURE, ELEMENTS, ASKED, ALPHA = gd.PureDP(1.0), 2, 3, 0.96
#: The factor that is printed in Theorem 4.14. Its proof gives 9 * 4 = 36 instead; see `updated`.
PRINTED_FACTOR = 32


def released(version: Version, queries: float, runs: int, rng: np.random.Generator) -> Measured:
    """Probability that at least one released value errs by more than alpha, and its bound beta."""
    k = round(queries)
    stated, build = (
        (upper.numeric_sparse_printed, gd.mechanisms.PrintedNumericSparse)
        if version is Version.PRINTED
        else (upper.numeric_sparse, gd.NumericSparse)
    )
    alpha = stated(APPROX, cutoff=CUTOFF, queries=k, beta=BETA)
    truths = np.full(CUTOFF, FAR * alpha)
    mechanisms = [build(0.0, cutoff=CUTOFF, privacy=APPROX, rng=child) for child in rng.spawn(runs)]
    failures = sum(
        any(abs(float(answer.value) - FAR * alpha) > alpha for answer in M.ask_many(truths))
        for M in mechanisms
    )
    scale = mechanisms[0].scales.answer
    exact = chance_of_a_large_value(alpha, scale, CUTOFF)
    return Measured(exact, BETA, drawn=failures / runs)


def updated(version: Version, beta: float, *_: object) -> Measured:
    """Probability that at least one value of an update errs by more than alpha0, and its bound.

    n is as small as the stated alpha0 allows: 32 (printed) or 36 (corrected) times
    ln |X| (ln k + ln(8 c / beta)) / (alpha0^3 eps). There are |X| elements, k queries and at most
    c = 4 ln |X| / alpha0^2 updates. For the corrected version, this n then determines alpha0.
    """
    rule = gd.mechanisms.MultiplicativeWeights(ELEMENTS)
    updates = rule.bound(ALPHA)
    logs = math.log(2 * ASKED) + math.log(4 * updates / beta)
    factor = PRINTED_FACTOR / 4 if version is Version.PRINTED else 9
    n = math.ceil(factor * updates * logs / (ALPHA * PURE.epsilon))
    alpha = (
        ALPHA
        if version is Version.PRINTED
        else solve_accuracy(rule, privacy=PURE, n=n, queries=ASKED, beta=beta)
    )
    count = math.floor(rule.bound(alpha))
    scale = sparse_vector.numeric(PURE, count, monotone=False).answer
    assert scale is not None
    return Measured(chance_of_a_large_value(alpha, scale / n, count), beta)


# Theorem 3.1 of Wang, Fan, Zhang and Wang 2013. For d variables and degree t, its printed scale of
# the noise is t^d / (n epsilon). The formula sheet corrects this scale for replace-one (DISC-15),
# and the rate of the error at large epsilon (DISC-17).

#: For degree t, the two records in which neighbours differ are sought among the cosines of
#: `ANGLES` t + 1 angles.
ANGLES = 8
#: Numbers of bounded derivatives, of records and of queries, for the error in one variable.
SMOOTHNESS, SIZE, FAMILY = 1, 1000, 40


def loss(version: Version, degree: float, *_: object) -> Measured:
    """Largest privacy loss over neighbours on a grid in [-1, 1], and the promised epsilon = 1.

    For Laplace noise of scale b_m on moment m, the largest loss over all outputs is the sum over m
    of |difference_m| / b_m. The constant moment is released exactly.
    """
    t = round(degree)
    workload = SmoothQueries(1, t)
    points = np.cos(np.linspace(0, np.pi, ANGLES * t + 1))[:, None]
    moments = workload.evaluate(points)
    if version is Version.PRINTED:
        scales = np.full(t - 1, printed_smooth_scale(1, t, n=1, epsilon=1.0))
    else:
        noise = gd.mechanisms.UniformLaplace()
        scales = noise.calibrate(workload, gd.PureDP(1.0), gd.Adjacency.REPLACE_ONE).scales
    return Measured(largest_distance(moments / scales), 1.0)


def largest_distance(points: ex.FloatArray) -> float:
    """Largest l1 distance between two rows of `points` (n, m)."""
    return max(float(np.abs(points[i:] - points[i]).sum(axis=1).max()) for i in range(len(points)))


def error(version: Version, epsilon: float, runs: int, rng: np.random.Generator) -> Measured:
    """Root mean square of the worst error over a family of queries, and the rate of Theorem 3.1."""
    summary = gd.SmoothSummary(
        1,
        n=SIZE,
        smoothness=SMOOTHNESS,
        privacy=gd.PureDP(epsilon),
        degree=gd.mechanisms.TheoremDegree(),
        noise=gd.mechanisms.UniformLaplace(),
    )
    family = problems.kernel_family(1, SMOOTHNESS, FAMILY)
    matrix = problems.stacked(approximate_many(family, summary.degree, 1, Truncation()))
    places = problems.random_places(1, runs, rng)
    truths = problems.true_answers(family, places, SIZE)
    worst = [
        np.abs(
            matrix @ summary.release(problems.records_at(here, SIZE), rng=rng).moments.ravel()
            - truth
        ).max()
        for here, truth in zip(places, truths, strict=True)
    ]
    if version is Version.PRINTED:
        rate = upper.smooth_accuracy(1, SMOOTHNESS, n=SIZE, epsilon=1.0, constant=1.0) / epsilon
    else:
        rate = upper.smooth_accuracy(1, SMOOTHNESS, n=SIZE, epsilon=epsilon, constant=1.0)
    return Measured(float(np.sqrt(np.mean(np.square(worst)))), rate)


# Theorem 5 of Roth's lecture, with nearly the worst distinguisher that it allows (DISC-13). The
# theorem on the iterative construction is stated for every private distinguisher that, with high
# probability, chooses a query whose gap is at most F(epsilon) below the largest gap. The gap of a
# query is the error of the hypothesis on this query. The distinguisher here meets this condition,
# but chooses a query with a gap that is nearly as small as F(epsilon) permits.

BITS = 3
#: Number of records, so large that the noise is negligible and cannot be the cause of a failure.
RECORDS = 10**15
#: Largest error of the uniform start, bit mask of the parity with this error, and bit mask of a
#: parity with a smaller error.
START, STRONG, WEAK = 0.25, 1, 2
#: The score of a query falls with the distance between its gap and the target (see
#: `LazyDistinguisher`). Above the target it falls at this multiple of the rate below the target.
TILT = 0.05
DESIGNS = {Version.PRINTED: PRINTED_STOPPING, Version.CORRECTED: CORRECTED}


class LazyDistinguisher(KnownShares):
    """Chooses a query whose gap is about `slack` below the largest gap.

    The gap of a query is the distance between its true answer and the hypothesis' answer. The score
    of a query is -(target - gap) for a gap below target = largest gap - `slack`, and
    -TILT (gap - target) for a gap above. The score changes by at most 2 / n between neighbours, as
    the query's gap and the largest gap change by at most 1 / n each. The exponential mechanism with
    scale 4 / (n eps) is therefore eps-DP. The query with the largest gap scores -TILT `slack`. Let
    |C| be the number of queries. Hence with probability at least 1 - gamma the gap chosen is at
    most F(eps) = (1 + TILT) slack + 4 ln(|C| / gamma) / (n eps) below the largest gap (IC-DIST).
    """

    def __init__(self, shares: ex.FloatArray, slack: float) -> None:
        super().__init__(shares)
        self.slack = slack

    def loss(self, epsilon: float, gamma: float, n: int) -> float:
        """F(eps): with probability 1 - `gamma`, the chosen gap is this close to the largest."""
        return (1 + TILT) * self.slack + 4 * math.log(self.size / gamma) / (n * epsilon)

    def choose(
        self, truths: ex.FloatArray, hypothesis: Any, *, epsilon: float, n: int, noise: ScalarNoise
    ) -> int:
        """The exponential mechanism for the score above; returns the index of a query."""
        gaps = np.abs(truths - self.estimates(hypothesis))
        above = gaps - (gaps.max() - self.slack)
        scores = np.minimum(above, 0) - TILT * np.maximum(above, 0)
        return noise.noisy_argmax(scores, 4 / (n * epsilon))


def two_parities(weaker: float) -> ex.FloatArray:
    """Shares of 2^BITS elements that differ from uniform shares in the means of two parities.

    These two means are 1/2 + `START` and 1/2 + `weaker`. All other parities have the same means as
    under uniform shares.
    """
    elements = np.arange(1 << BITS)
    signs = [1 - 2.0 * (np.bitwise_count(elements & S) % 2) for S in (STRONG, WEAK)]
    # A coefficient a of a sign moves the mean of its parity (1 + sign) / 2 by a / 2.
    return np.asarray((1 + 2 * START * signs[0] + 2 * weaker * signs[1]) / len(elements))


def construction(version: Version, ratio: float) -> gd.IterativeConstruction[Any]:
    """The construction with alpha = START / `ratio`."""
    design = DESIGNS[version]
    slack = design.loss * START / (ratio * (1 + TILT))
    return gd.IterativeConstruction(
        gd.mechanisms.MultiplicativeWeights(1 << BITS),
        LazyDistinguisher(two_parities(START - slack), slack),
        n=RECORDS,
        privacy=PURE,
        beta=BETA,
        design=design,
    )


def stopped(version: Version, ratio: float, runs: int, rng: np.random.Generator) -> Measured:
    """Largest error on all parities, and the alpha promised."""
    built = construction(version, ratio)
    truths = built.distinguisher.truths(None, RECORDS)
    errors = [
        float(np.abs(built.distinguisher.estimates(release.hypothesis) - truths).max())
        for release in (built.release(range(RECORDS), rng=child) for child in rng.spawn(runs))
    ]
    return Measured(min(errors) if version is Version.PRINTED else max(errors), built.alpha)
