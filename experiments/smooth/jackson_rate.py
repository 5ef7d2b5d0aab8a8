"""The degree from which the error of the paper's Jackson operator falls as the theorems state.

Paper: Wang, Fan, Zhang and Wang 2013, "Efficient algorithm for privately releasing smooth queries",
Theorems 3.1 and 3.2; formula sheet SM-T3.1, SM-T3.2, SM-JK.

Queries: products over d variables of sign(x - 0.3)^(K-1) |x - 0.3|^K / K!, whose derivative of
order K jumps at 0.3. These queries are therefore only as smooth as the theorems require. All
records lie where the polynomial errs most. The summary has t = n^(1/(2d+K)) degrees in each
variable, and uniform Laplace noise.

Claims: with t' = t / r, r = ceil((K+3)/2), the error of the operator tends to a constant times
t'^(-K). The constant comes from the limit of the operator's kernel, (sin(s/2) / (s/2))^(2r). Let
psi be the leading term of the query at its kink, as a function of the angle u from the kink. Let
I(u) be the integral over s of the kernel times sum_k (-1)^(k+1) C(K+1, k) (psi(u + k s) - psi(u)).
The constant is the sup over u of |I(u)|, divided by the integral of the kernel. The operator
multiplies coefficients by factors. These tend to the factors of the limit kernel, which are at most
1.2, 1.5 and 2 for K = 1, 2 and 4. Coefficients therefore stay bounded (Theorem 3.2). Hence
the error of an answer falls as n^(-K/(2d+K)) (Theorem 3.1). The error is within 8% of the limit
from t' = 16 K^2 on. For one variable and K = 1, 2 and 4, such a t' needs 3 x 10^4, 10^9 and 10^18
records. For t <= r the operator answers with the mean of the query over uniform angles. At K = 4
the error falls at most half as fast as stated, up to n = 2 x 10^7. Truncated series err less at
every n.

No noise is sampled: root mean squares over the noise are exact. Run time on one core: quick 1 s,
full 10 s.
"""

import enum
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.smooth.kinks import KINK, half_power, kernel_factor, largest, limit, query
from geomdp.bounds.upper import smooth_accuracy
from geomdp.workloads.smooth import Filter, Jackson, SmoothQueries, Truncation, approximate

PRIVACY = gd.PureDP(1.0)
#: Angles from the kink at which errors are sought, in units of 1 / t'.
NEAR = np.linspace(-8, 8, 641)
#: For d = 2, values of the second variable at which errors are sought. The query is largest in size
#: at -1.
ELSEWHERE = (-1.0, -0.6, 0.9)


class Operator(enum.StrEnum):
    """Filters, in the order of the legend."""

    JACKSON = "Jackson operator (paper)"
    TRUNCATED = "truncated series"


@dataclass(frozen=True)
class Config:
    d: int  # Number of variables
    smoothness: int  # K
    operator: Operator  # Filter of the coefficients
    degree: int  # t; the number of records is t^(2d+K)


def worst_points(config: Config) -> ex.FloatArray:
    """Points, one in each row, whose first variable is near the kink."""
    terms = max(1.0, config.degree / half_power(config.smoothness))
    near = np.cos(math.acos(KINK) + NEAR / terms)
    if config.d == 1:
        return np.asarray(near[:, None])
    return np.concatenate([np.column_stack([near, np.full_like(near, x)]) for x in ELSEWHERE])


def compute(config: Config, _: np.random.Generator) -> ex.Row:
    """Error of the operator, standard deviation of the noise, and the largest coefficient."""
    d, K = config.d, config.smoothness
    n = config.degree ** (2 * d + K)
    t = gd.mechanisms.TheoremDegree().choose(d=d, n=n, smoothness=K, noise_at=no_noise)
    chosen: Filter = Jackson(K) if config.operator is Operator.JACKSON else Truncation()
    asked = query(d, K)
    found, points = approximate(asked, t, d, chosen), worst_points(config)
    workload = SmoothQueries(d, t)
    noise = gd.mechanisms.UniformLaplace().calibrate(workload, PRIVACY, gd.Adjacency.REPLACE_ONE)
    # The moment of degree 0 is the public constant 1.
    deviations = np.concatenate([[0.0], noise.deviations / n]).reshape((t,) * d)
    return {
        "n": float(n),
        "chosen_degree": t,
        "error": max(float(np.abs(found(points) - asked(points)).max()), found.approximation_error),
        "noise": found.noise_std(deviations),
        "coefficient": float(np.abs(found.values).max()),
        "factor": float(np.abs(chosen.weights(t, 1)).max()),
    }


def no_noise(workload: SmoothQueries) -> ex.FloatArray:
    """Never called: the degree of the theorem does not depend on the noise."""
    raise NotImplementedError(repr(workload))


#: The rate is claimed for t' >= 16 K^2, up to a relative deviation of 0.08. The deviation has two
#: causes: the smooth part of a query adds a share of order 1 / t', and computing coefficients from
#: 2 t nodes changes the error by a few percent.
BEGIN, NEAR_LIMIT = 16, 0.08
#: Largest relative deviation of the largest factor from its limit. The factor is measured at whole
#: degrees only.
NEAR_FACTOR = 0.02
#: Largest deviation of a fitted exponent of n.
EXPONENT = 0.02
#: Largest K here, and number of records up to which its rate is shown not to hold.
LAST, MANY = 4, 2e7
#: Largest relative change of the error where the operator answers with the mean. The change comes
#: from computing the mean at 2 t nodes.
MEAN = 0.05


def claims(table: pd.DataFrame) -> ex.Claims:
    table = table.assign(
        terms=table.degree / table.smoothness.map(half_power),
        rms=np.hypot(table.error, table.noise),
    )
    jackson = table[table.operator == Operator.JACKSON]
    late = jackson[jackson.terms >= BEGIN * jackson.smoothness**2]
    yield tends(late)
    yield stays_bounded(jackson[jackson.terms >= BEGIN])
    yield falls(late)
    rows = jackson[jackson.terms <= 1]
    by_curve = rows.groupby(["d", "smoothness"]).error
    spread = by_curve.max() / by_curve.min() - 1
    last = rows.n.max()
    name = "Jackson operator: for t <= r the error does not fall with n"
    verdict = ex.at_most(spread, MEAN) & ex.each_case((by_curve.count() > 1).any())
    measured = f"changes by {spread.max():.1%} at most, up to n = {last:,.0f}"
    theory = f"within {MEAN:.0%}, as answers are means over uniform angles"
    yield ex.Claim(name, verdict, measured, theory, "SM-T3.1, SM-JK")
    yield falls_late(jackson[(jackson.smoothness == LAST) & (jackson.n <= MANY)])
    wide = table.pivot(index=["d", "smoothness", "degree"], columns="operator", values="rms")
    ratio = wide[Operator.TRUNCATED] / wide[Operator.JACKSON]
    name = "truncated series err less than the Jackson operator at every n"
    measured = (
        f"{len(ratio)} points, {ratio.min():.3f} to {ratio.max():.3f} times the operator's error"
    )
    yield ex.Claim(name, ex.below(ratio, 1), measured, "below 1", "SM-JK")


def tends(rows: pd.DataFrame) -> ex.Claim:
    """The error times t'^K is within `NEAR_LIMIT` of the limit that the kernel gives."""
    limits = [limit(d, K) for d, K in zip(rows.d, rows.smoothness, strict=True)]
    ratio = rows.error * rows.terms**rows.smoothness / limits
    off = float((ratio - 1).abs().max())
    name = (
        f"Jackson operator: from t' = {BEGIN} K^2 on, the error is near its limit, which is of "
        "order t'^(-K)"
    )
    measured = f"{len(rows)} points, {ratio.min():.3f} to {ratio.max():.3f} times the limit"
    theory = f"1, within {NEAR_LIMIT}"
    return ex.Claim(name, ex.at_most(off, NEAR_LIMIT), measured, theory, "SM-T3.2, SM-JK")


def stays_bounded(rows: pd.DataFrame) -> ex.Claim:
    """The largest factor is within `NEAR_FACTOR` of its limit; no coefficient exceeds its bound."""
    ratio = rows.factor / rows.smoothness.map(kernel_factor)
    off = float((ratio - 1).abs().max())
    bounds = [
        2 ** ((K + 1) * d) * largest(K) ** d for d, K in zip(rows.d, rows.smoothness, strict=True)
    ]
    share = float((rows.coefficient / bounds).max())
    by_order = rows.groupby("smoothness").factor.last()
    return ex.Claim(
        f"Jackson operator: from t' = {BEGIN} on, the largest factor of a coefficient is near its "
        "limit, and coefficients are bounded",
        ex.Verdict(off <= NEAR_FACTOR and share <= 1, off / NEAR_FACTOR),
        ", ".join(f"K={K}: factor {factor:.3f}" for K, factor in by_order.items())
        + f"; off by {off:.1%} or less; coefficients at most {share:.3f} times 2^((K+1)d) max|f|",
        f"factors within {NEAR_FACTOR:.0%} of the limit; coefficients at most 1 times this bound",
        "SM-T3.2",
    )


def falls(rows: pd.DataFrame) -> ex.Claim:
    """The fitted exponent of n in an answer's error is within `EXPONENT` of the stated exponent."""
    slopes, off = [], []
    for (d, K), mine in rows.groupby(["d", "smoothness"]):
        stated = [
            smooth_accuracy(d, K, n=round(n), epsilon=PRIVACY.epsilon, constant=1.0) for n in mine.n
        ]
        logs = np.log(mine.n)
        measured, expected = (
            float(np.polyfit(logs, np.log(values), 1)[0]) for values in (mine.rms, stated)
        )
        slopes.append(f"d={d}, K={K}: {measured:.3f} (stated {expected:.3f})")
        off.append(abs(measured - expected))
    name = f"Jackson operator: from t' = {BEGIN} K^2 on, the error falls as n^(-K/(2d+K))"
    words = "exponents of n: " + "; ".join(slopes)
    theory = f"within {EXPONENT} of the stated exponent"
    return ex.Claim(name, ex.at_most(max(off), EXPONENT), words, theory, "SM-T3.1")


def falls_late(rows: pd.DataFrame) -> ex.Claim:
    """Up to `MANY` records, the fitted exponent of n is at most half the stated exponent."""
    slopes = {
        d: float(np.polyfit(np.log(mine.n), np.log(mine.rms), 1)[0])
        for d, mine in rows.groupby("d")
    }
    shares = {d: -slope * (2 * d + LAST) / LAST for d, slope in slopes.items()}
    name = (
        f"Jackson operator, K = {LAST}: up to n = {MANY:.0e}, the error falls at most half as "
        "fast as n^(-K/(2d+K))"
    )
    measured = "; ".join(f"d={d}: exponent {slope:.3f}" for d, slope in slopes.items())
    theory = "at most half of K / (2 d + K) in size"
    return ex.Claim(name, ex.at_most(max(shares.values()), 0.5), measured, theory, "SM-T3.1")


COLOURS = {1: "C5", 2: "C0", LAST: "C2"}
#: Number of records at which the figure ends.
END = 1e10
MARKERS = {Operator.JACKSON: ("^", True), Operator.TRUNCATED: ("o", False)}
RATE = r"limit, $\propto n^{-K/(2d+K)}$"


def plot(table: pd.DataFrame) -> ex.Figure:
    dimensions = sorted(table.d.unique())
    titles = [f"$d={d}$" for d in dimensions]
    xlabel = "number of records $n$"
    ylabel = "error (RMS) over the limit"
    figure, panels = ex.panels((7.2, 4.4), titles, xlabel, ylabel, sharex=True, sharey=True)
    terms = table.degree / table.smoothness.map(half_power)
    limits = [limit(d, K) for d, K in zip(table.d, table.smoothness, strict=True)]
    rms = np.hypot(table.error, table.noise)
    table = table.assign(ratio=rms * terms**table.smoothness / limits)
    table = table[(terms >= 1) & (table.n <= END)]
    for axes, d in zip(panels, dimensions, strict=True):
        mine = table[table.d == d].sort_values("n")
        for (K, operator), rows in mine.groupby(["smoothness", "operator"]):
            marker, filled = MARKERS[operator]
            ex.draw_points(axes, rows.n, rows.ratio, ex.Look(COLOURS[K], marker, filled), "_")
        ex.draw_theory(axes, np.array([mine.n.min(), mine.n.max()]), np.ones(2), "black", RATE)
        for K, colour in COLOURS.items():
            axes.plot([], [], color=colour, label=f"$K={K}$")
        for operator, (marker, filled) in MARKERS.items():
            ex.draw_points(axes, [], [], ex.Look("0.3", marker, filled), operator)
        ex.log_axes(axes)
    smoothness = [f"$K={K}$" for K in COLOURS]
    columns = {"operator": [*Operator], "smoothness": smoothness, "theory": [RATE]}
    ex.shared_legend(figure, columns)
    return ex.headline(
        figure,
        "Truncated series err far less than the paper's Jackson operator",
        "Queries as smooth as the theorem requires, no smoother. Error over the operator's limit.",
    )


def grid(terms: dict[tuple[int, int], tuple[int, ...]]) -> tuple[Config, ...]:
    """Both operators at t = 2 and at t = r t', for all t' that `terms` lists for (d, K)."""
    return tuple(
        Config(d, K, operator, degree)
        for (d, K), numbers in terms.items()
        for operator in Operator
        for degree in sorted({2, *(half_power(K) * number for number in numbers)})
    )


QUICK = ex.Sweep(
    grid(
        {
            (1, 1): (1, 4, 16, 64),
            (1, 2): (1, 4, 16, 64, 256),
            (1, 4): (1, 4, 16, 64, 256, 512),
            (2, 1): (1, 4, 16, 64),
            (2, 2): (1, 4, 16),
            (2, 4): (1, 4, 16),
        }
    )
)
EARLY = (1, 2, 3, 4, 6, 8, 12, 16, 24)
FULL = ex.Sweep(
    grid(
        {
            (1, 1): (*EARLY, 32, 48, 64, 96, 128),
            (1, 2): (*EARLY, 32, 48, 64, 96, 128, 192, 256),
            (1, 4): (*EARLY, 32, 48, 64, 96, 128, 192, 256, 384, 512),
            (2, 1): (*EARLY, 32, 48, 64, 96),
            (2, 2): (*EARLY, 32, 48, 64, 96, 128),
            (2, 4): EARLY,
        }
    )
)
