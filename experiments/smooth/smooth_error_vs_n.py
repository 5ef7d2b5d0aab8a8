"""Smooth queries: worst error over kernel mixtures against the number of records and epsilon.

Paper: Wang, Fan, Zhang and Wang 2013, "Efficient algorithm for privately releasing smooth queries",
Theorem 3.1; formula sheet SM-A1, SM-A2, SM-JK, SM-T3.1, SM-X1, DISC-15, DISC-17.

Queries: mixtures of three Gaussian kernels in d variables, whose derivatives up to order K are at
most 1 (C^K_1). Bandwidths lie between 0.001 (0.01 for d = 2, 0.05 for d = 3) and 1. Records: n rows
at ten random places, drawn anew for each release. The mechanism reads all n rows, up to 10^7 for
d = 1. The figure shows the largest error over the queries.

The paper's summary has uniform Laplace noise at the corrected scale of DISC-15, and degrees below t
= n^(1/(2d+K)) in each variable. Claims, for d = 1 and 2: with truncated series the error of this
summary falls at least as fast as n^(-K/(2d+K)), and up to n = 10^4 it is below the error with the
paper's Jackson operator. At n = 10^4 the error is smaller still with weighted noise, if t is chosen
by the predicted error. With weighted noise, the error falls at least as fast as n^(-min(1, K/(1.5
d))), which is a hypothesis. For d = 3 the degrees are too small for a fit. For every d, every
single answer is within the error stated with it, which is a proved bound on the approximation error
plus 30.9 standard deviations of the noise.

The last row shows the error against epsilon, for d = 1 and n = 10^4. The t of the paper does not
depend on epsilon, so the largest noise in an answer falls as 1 / epsilon, while the error of the
approximation stays. The error with weighted noise depends on n epsilon alone.

Run time on one core: quick 8 s, full 2 minutes.
"""

import math
from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
from experiments.shared import smooth_problems
from experiments.smooth import smooth_releases
from experiments.smooth.smooth_releases import Config, Method, Panel, mechanism, worst_errors

#: Number of records of the curves.
RECORDS = 10**4
#: Largest half width of the interval of the slope. Slopes of -1/2, 0 and -2 are far outside.
REACH = 0.1


def errors_and_noise(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean squares of the worst error over the family, and of the largest noise in an answer."""
    M, matrix = mechanism(config), smooth_problems.stacked(smooth_releases.coefficients(config))
    family = smooth_problems.kernel_family(config.d, config.smoothness, config.queries)
    places = smooth_problems.random_places(config.d, config.draws, rng)
    truths = smooth_problems.true_answers(family, places, config.n)
    errors, noise = np.empty(truths.shape), np.empty(truths.shape)
    for i, here in enumerate(places):
        answers = (
            matrix @ M.release(smooth_problems.records_at(here, config.n), rng=rng).moments.ravel()
        )
        errors[i] = answers - truths[i]
        noise[i] = answers - matrix @ exact_moments(here, M.degree, config.n)
    worst = ex.MeanSquare.of(np.abs(noise).max(axis=1) ** 2)
    return {
        **ex.MeanSquare.of(np.abs(errors).max(axis=1) ** 2).columns(),
        "noise_mean_square": worst.value,
        "noise_stderr": worst.stderr,
        "chosen_degree": M.degree,
    }


def exact_moments(places: ex.FloatArray, degree: int, n: int) -> ex.FloatArray:
    """Means (t,) of cos(m arccos x) for m < t = `degree`, over n records x at `places` (10, 1)."""
    angles = np.arccos(places[:, 0])
    return np.asarray(smooth_problems.shares(n) @ np.cos(angles[:, None] * np.arange(degree)))


def falls(table: pd.DataFrame) -> ex.Claim:
    """Two-sided: the log-log slope of the noise in epsilon is -1, because t stays the same."""
    noise = table.assign(mean_square=table.noise_mean_square, mean_square_stderr=table.noise_stderr)
    name = "uniform noise: the largest noise in an answer falls as 1 / epsilon"
    return ex.slopes_are(
        name, "SM-T3.1, DISC-17", ex.slopes_by(noise, ["smoothness"], "epsilon"), -1.0, REACH
    )


def depends_on_product(table: pd.DataFrame) -> ex.Claim:
    """Two-sided: mean squares at equal n epsilon differ by no more than chance explains."""
    table = table[table.method == Method.WEIGHTED]
    table = table.assign(product=(table.n * table.epsilon).round())
    pairs = [
        [*ex.pooled_by(rows, ["n"]).values()]
        for _, rows in table.groupby(["smoothness", "product"])
        if rows.n.nunique() == 2
    ]
    scores = [
        abs(first.value - second.value) / math.hypot(first.stderr, second.stderr)
        for first, second in pairs
    ]
    ratios = [first.root / second.root for first, second in pairs]
    reach = ex.quantile(
        ex.LEVEL / (2 * len(pairs)), min(mean.count for pair in pairs for mean in pair)
    )
    name = "weighted noise: the error depends on n epsilon alone"
    measured = (
        f"{len(pairs)} pairs, ratios {min(ratios):.3f} to {max(ratios):.3f}, furthest off by "
        f"{max(scores):.1f} standard errors"
    )
    theory = f"ratio 1, within {reach:.1f} standard errors"
    return ex.Claim(name, ex.at_most(scores, reach), measured, theory, "SM-X1")


def grid_of_epsilons(
    epsilons: tuple[float, ...], orders: tuple[int, ...], queries: int, draws: int
) -> tuple[Config, ...]:
    """Uniform and weighted noise with truncation; weighted noise also at n / 10 and 10 epsilon."""
    return tuple(
        Config(1, K, method, n, queries, draws, epsilon, Panel.EPSILON)
        for K in orders
        for method, n, scale in (
            (Method.TRUNCATED, RECORDS, 1.0),
            (Method.WEIGHTED, RECORDS, 1.0),
            (Method.WEIGHTED, RECORDS // 10, 10.0),
        )
        for epsilon in (each * scale for each in epsilons)
    )


#: Largest n with enough releases for comparing methods.
COMPARED = 10**4


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean square of the worst error over the queries, the degree, and one further number."""
    if config.panel is Panel.EPSILON:
        return errors_and_noise(config, rng)
    return worst_errors(config, rng)


THEORY: Mapping[Method, Callable[[int, int], float]] = {
    Method.TRUNCATED: smooth_releases.accuracy,
    Method.WEIGHTED: smooth_releases.accuracy_of_weighted,
}


def fitted(table: pd.DataFrame) -> dict[tuple[Method, int, int], ex.Slope]:
    """Fitted slopes by method, d and K, where there are enough degrees for a fit."""
    return ex.slopes_by(table[table.d <= 2], ["method", "d", "smoothness"], "n")


def claims(table: pd.DataFrame) -> ex.Claims:
    against_epsilon = table[table.panel == Panel.EPSILON]
    table = table[table.panel == Panel.RECORDS]
    slopes, compared = fitted(table), table[table.n <= COMPARED]
    points = {
        method: ex.pooled_by(compared[compared.method == method], ["d", "smoothness", "n"])
        for method in Method
    }
    last = {
        method: {
            (d, K, n): mean
            for (d, K, n), mean in found.items()
            if d <= 2 and n == compared[compared.d == d].n.max()
        }
        for method, found in points.items()
    }
    statement = (
        "uniform noise and truncated series: the error falls at least as fast as n^(-K/(2d+K))"
    )
    yield at_least_as_steep(statement, "SM-T3.1", slopes, Method.TRUNCATED)
    statement = "weighted noise: the error falls at least as fast as n^(-min(1, K/(1.5d)))"
    yield at_least_as_steep(statement, "SM-X1, hypothesis", slopes, Method.WEIGHTED)
    yield ex.is_below(
        "from the same summary, for d <= 2, truncated series err less than the Jackson operator",
        "SM-JK",
        {key: mean for key, mean in points[Method.TRUNCATED].items() if key[0] <= 2},
        {key: mean for key, mean in points[Method.PAPER].items() if key[0] <= 2},
    )
    name = (
        f"for d <= 2 and the largest n up to {COMPARED}, weighted noise errs less than "
        "uniform noise"
    )
    yield ex.is_below(name, "SM-X1", last[Method.WEIGHTED], last[Method.TRUNCATED])
    share = float(table.largest_share.max())
    name = "every answer is within the error stated with it"
    measured = (
        f"errors are at most {share:.2f} times the stated error: approximation bound + "
        f"{smooth_releases.SPREAD:.1f} standard deviations of the noise"
    )
    yield ex.Claim(name, ex.at_most(share, 1), measured, "at most 1", "SM-A2")
    yield falls(against_epsilon[against_epsilon.method == Method.TRUNCATED])
    yield depends_on_product(against_epsilon)


def at_least_as_steep(
    name: str, id: str, slopes: Mapping[tuple[Method, int, int], ex.Slope], method: Method
) -> ex.Claim:
    """Every fitted slope is at most -(exponent of theory), up to what chance explains."""
    found = {key[1:]: slope for key, slope in slopes.items() if key[0] == method}
    exponents = {key: THEORY[method](*key) for key in found}
    passed = all(slope.low <= -exponents[key] for key, slope in found.items())
    pairs = "; ".join(
        f"d={d}, K={K}: {-slope.value:.2f} (theory {exponents[d, K]:.2f})"
        for (d, K), slope in found.items()
    )
    verdict = ex.Verdict(
        passed, ex.share([exponents[key] / -slope.low for key, slope in found.items()], 1)
    )
    stated_as = "fitted exponents not below theory by more than chance explains"
    return ex.Claim(name, verdict, pairs, stated_as, id)


LOOKS = {
    Method.PAPER: ex.Look(ex.GREY, "^", filled=False),
    Method.TRUNCATED: ex.Look("C2", "o"),
    Method.WEIGHTED: ex.Look("C0", "s"),
}
NAMES = {
    Method.PAPER: "uniform noise,\nJackson (paper)",
    Method.TRUNCATED: "uniform noise,\ntruncated",
    Method.WEIGHTED: "weighted noise,\ntruncated",
}
#: Smoothness K and number of variables d in the figure.
DRAWN = (2, 1)


def plot(table: pd.DataFrame) -> ex.Figure:
    figure = ex.Figure(figsize=(7.2, 4.2))
    axes, (K, d) = figure.subplots(), DRAWN
    table = table[(table.panel == Panel.RECORDS) & (table.smoothness == K) & (table.d == d)]
    slopes, parts = fitted(table), []
    for method, words in ((Method.TRUNCATED, "uniform"), (Method.WEIGHTED, "weighted")):
        draw_rate(axes, table[table.method == method], method)
        if (slope := slopes.get((method, d, K))) is not None:
            parts.append(f"{words} {-slope.value:.2f} ({THEORY[method](d, K):.2f})")
    for method, look in LOOKS.items():
        rows = table[table.method == method]
        if not rows.empty:
            ex.draw_measured(axes, ex.pooled_along(rows, "n"), look, NAMES[method])
    ex.log_axes(axes)
    axes.set(xlabel="number of records $n$", ylabel="worst error of an answer (RMS)")
    ex.label_curves(axes)
    result = "Smooth queries: truncated series with weighted noise err least"
    settings = f"$K={K}$, $d={d}$. Dashed: rates of theory. Exponents (theory): {', '.join(parts)}."
    return ex.headline(figure, result, settings)


def draw_rate(axes: ex.Axes, table: pd.DataFrame, method: Method) -> None:
    """Draw the rate of a method from its first point."""
    if table.empty:
        return
    means = ex.pooled_along(table, "n")
    n = np.array([min(means), max(means)], dtype=float)
    exponent = THEORY[method](int(table.d.iloc[0]), int(table.smoothness.iloc[0]))
    line = means[min(means)].root * (n / n[0]) ** -exponent
    ex.draw_theory(axes, n, line, LOOKS[method].colour, "_")


def grid(
    sizes: Mapping[int, tuple[int, ...]],
    orders: tuple[int, ...],
    queries: int,
    draws: Callable[[int], int],
) -> tuple[Config, ...]:
    """All methods and orders K, at the numbers of records that `sizes` lists for each d."""
    return tuple(
        Config(d, K, method, n, queries, draws(n), 1.0, Panel.RECORDS)
        for d, numbers in sizes.items()
        for K in orders
        for method in Method
        for n in numbers
    )


QUICK = ex.Sweep(
    grid(
        {1: (10**3, 10**4), 2: (10**3, 10**4), 3: (500,)},
        orders=(1, 2),
        queries=20,
        draws=lambda n: 160 if n >= 10**3 else 40,
    )
    + grid_of_epsilons((0.01, 3.0), orders=(1, 2), queries=10, draws=250)
)
FULL = ex.Sweep(
    grid(
        {
            1: (10**3, 10**4, 10**5, 10**6, 10**7),
            2: (10**3, 10**4, 10**5, 10**6),
            3: (10**3, 10**4, 10**5, 10**6),
        },
        orders=(1, 2, 4),
        queries=200,
        draws=lambda n: 400 if n <= COMPARED else 60 if n == 10**5 else 24,
    )
    + grid_of_epsilons(
        (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0), orders=(1, 2, 4), queries=200, draws=200
    )
)
