"""All conjunctions on d - k of d bits: the interactive route and the projection.

Paper: Blum-Roth 2011, "Fast private data release algorithms for sparse queries", Corollaries 3.11
and 4.12; formula sheet BR-CONJ, BR-OIC, BR-PROJ.

Claim: a conjunction on d - k literals is 2^k-sparse, so all of them are answered without listing
the 2^d elements. The interactive route runs sparse multiplicative weights with NumericSparse. Its
errors are within its stated accuracy 3 alpha0, which falls as n^(-1/2) up to logarithms. The errors
of one summary of a projection are within the bound of Theorem 4.9, which falls as 1 / n. This holds
with far fewer rows than the paper's if the distortion of these rows is below the bound. Guarantees
are judged where they are below 1. The mean squared errors of the projection agree with the exact
expectation for queries of 2^k elements. Its answers are unbiased over noise and keys; they would be
biased if an answer left out one element of its query. Where both routes are run, the projection
errs less. True answers are counted from the literals, not from the elements of the sparse queries.

Run time on one core: quick 3 s, full 2 minutes.
"""

import math
from dataclasses import dataclass
from functools import cache
from itertools import combinations, product

import numpy as np
import pandas as pd
import scipy.stats

import experiments.engine.tools as ex
import geomdp as gd
from geomdp.bounds.upper.theorems import paper_accuracy
from geomdp.workloads import SparseQuery, conjunctions

PRIVACY = gd.ApproxDP(1.0, 1e-6)
BETA = 0.05
#: Each bit of a record is 1 with this probability.
ONES = 0.9


class Route(ex.Curve):
    """The two ways to answer the conjunctions, one for each corollary."""

    ONLINE = "interactive: sparse weights", "C2", "D"
    PROJECTION = "projection", "C0", "o"


@dataclass(frozen=True)
class Config:
    route: Route
    #: Number of bits, and number of bits that a conjunction leaves free.
    d: int
    k: int
    n: int  # Number of records
    rows: int  # Rows T of the projection; 0 for the interactive route
    runs: int  # Independent runs in one cell


@cache
@cache
def met(d: int, k: int) -> np.ndarray:
    """Whether a conjunction (row) holds for an element (column), computed from literals alone."""
    elements = np.arange(1 << d)
    literals = [(1 << d) - 1 - sum(1 << i for i in free) for free in combinations(range(d), k)]
    return np.array([elements & bits == bits for bits in literals])


@cache
def shares(d: int) -> np.ndarray:
    """Probability of each of the 2^d elements."""
    ones = np.array([sum(bits) for bits in product((0, 1), repeat=d)])
    return np.asarray(ONES**ones * (1 - ONES) ** (d - ones))


def errors_online(config: Config, truths: list[float], rng: np.random.Generator) -> list[float]:
    """Errors of the answers of one interactive run, which is asked all queries in order."""
    asked = conjunctions(config.d, config.k)
    online = build_online(config, rng)
    answers = [online.ask_truth(query, truth) for query, truth in zip(asked, truths, strict=True)]
    return [float(a.value or 0.0) - truth for a, truth in zip(answers, truths, strict=True)]


def build_online(
    config: Config, rng: np.random.Generator | None
) -> gd.OnlineConstruction[SparseQuery]:
    """The interactive mechanism."""
    return gd.OnlineConstruction(
        gd.SparseMultiplicativeWeights(2**config.k),
        n=config.n, queries=math.comb(config.d, config.k), privacy=PRIVACY, beta=BETA,
        adjacency=gd.Adjacency.ADD_REMOVE, rng=rng,
    )  # fmt: skip


def errors_projection(
    config: Config, counts: np.ndarray, truths: list[float], rng: np.random.Generator
) -> tuple[list[float], float, float]:
    """Errors of one summary, their expected mean square, and the standard deviation of their mean.

    The summary has a new key. Expectations are over noise and keys, and are exact. Let u be the
    counts of the elements, and Q a weight for each element. The estimate of <Q, u> / n has the
    variance sigma^2 |Q|^2 / n^2 from the noise, plus
    (|Q|^2 |u|^2 + <Q, u>^2 - 2 sum of Q_i^2 u_i^2) / (T n^2) from the projection. The expected mean
    square is the mean of this variance over the queries, which have m = 2^k elements of weight 1.
    The mean of all errors is the error of the query whose weights are the mean over all queries.
    """
    asked = conjunctions(config.d, config.k)
    project = gd.SparseProject(
        n=config.n, sparsity=2**config.k, queries=len(asked), privacy=PRIVACY, rows=config.rows,
        beta=BETA, adjacency=gd.Adjacency.ADD_REMOVE, rng=rng,
    )  # fmt: skip
    summary = project.release(np.repeat(np.arange(len(counts)), counts), rng=rng)
    errors = [summary.answer(q).value - truth for q, truth in zip(asked, truths, strict=True)]
    m, of_query = 2**config.k, met(config.d, config.k)
    changes = m * counts @ counts + (of_query @ counts) ** 2 - 2 * of_query @ counts**2
    exact = project.sigma**2 * m + float(changes.mean()) / config.rows
    mean = of_query.mean(axis=0)
    square = mean @ mean
    change = (
        square * (counts @ counts) + (mean @ counts) ** 2 - 2 * (mean * counts) @ (mean * counts)
    )
    deviation = math.sqrt(project.sigma**2 * square + float(change) / config.rows)
    return errors, exact / config.n**2, deviation / config.n


def guaranteed(config: Config) -> float:
    """Bound on the errors of all answers; it should hold with probability at least 1 - beta.

    For the projection, the bound is proved for Laplace noise and the number of rows in the paper.
    """
    if config.route is Route.ONLINE:
        return build_online(config, None).accuracy
    return paper_accuracy(
        PRIVACY, n=config.n, sparsity=2**config.k, queries=math.comb(config.d, config.k), beta=BETA
    )


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean square of the runs' largest errors, the guarantee, and deviations from exact moments."""
    largest, off, shift = np.empty(config.runs), np.zeros(config.runs), np.zeros(config.runs)
    for i in range(config.runs):
        counts = rng.multinomial(config.n, shares(config.d))
        truths = (met(config.d, config.k) @ counts / config.n).tolist()
        if config.route is Route.ONLINE:
            errors = errors_online(config, truths, rng)
        else:
            errors, exact, deviation = errors_projection(config, counts, truths, rng)
            off[i] = np.mean(np.square(errors)) / exact - 1
            shift[i] = np.mean(errors) / deviation
        largest[i] = np.abs(errors).max()
    bound = guaranteed(config)
    return {
        **ex.MeanSquare.of(largest**2).columns(),
        "within": int(np.count_nonzero(largest <= bound)),
        "guaranteed": bound,
        "off": off.mean(),
        "off_stderr": off.std(ddof=1) / math.sqrt(config.runs),
        "shift": shift.sum(),
    }


def claims(table: pd.DataFrame) -> ex.Claims:
    means = {
        route: ex.pooled_by(table[table.route == route], ["d", "k", "n"]) for route in Route
    }  # fmt: skip
    shared = means[Route.ONLINE].keys() & means[Route.PROJECTION].keys()
    yield from (holds(route, table[table.route == route]) for route in Route)
    yield exactly(table[table.route == Route.PROJECTION])
    yield is_unbiased(table[table.route == Route.PROJECTION])
    yield falls(
        table[table.route == Route.ONLINE], Route.ONLINE, -0.55, -0.4, "BR-CONJ, Corollary 3.11"
    )
    yield falls(table[table.route == Route.PROJECTION], Route.PROJECTION, -1.05, -0.9, "BR-PROJ")
    yield ex.is_below(
        "the projection errs less than the interactive route at the same n",
        "BR-CONJ",
        {key: means[Route.PROJECTION][key] for key in shared},
        {key: means[Route.ONLINE][key] for key in shared},
    )


def holds(route: Route, table: pd.DataFrame) -> ex.Claim:
    """Binomial tests of the guarantee of a route, at every point with a guarantee below 1."""
    table = table[table.guaranteed < 1]
    points = table.groupby(["d", "k", "n"]).agg(within=("within", "sum"), runs=("runs", "sum"))
    tails = scipy.stats.binom.cdf(points.within, points.runs, 1 - BETA)
    return ex.Claim(
        f"{route}: wherever the guarantee is below 1, all conjunctions are answered within it",
        ex.not_rare(tails, ex.LEVEL / len(points)),
        f"{points.within.sum()} of {points.runs.sum()} runs, {len(points)} points",
        f"probability at least {1 - BETA} at each",
        "BR-CONJ, BR-OIC" if route is Route.ONLINE else "BR-CONJ, BR-T4.9",
    )


def exactly(table: pd.DataFrame) -> ex.Claim:
    """A two-sided test that mean squared errors of the projection equal their exact means."""
    shares = [
        ex.MeanSquare.pooled(
            [ex.MeanSquare(1 + row.off, row.off_stderr, row.runs) for row in rows.itertuples()]
        )
        for _, rows in table.groupby(["d", "k", "n"])
    ]
    scores = np.array([abs(share.value - 1) / share.stderr for share in shares])
    reach = ex.quantile(ex.LEVEL / (2 * len(shares)), min(share.count for share in shares))
    return ex.Claim(
        "projection: squared errors are on average those predicted for 2^k-sparse queries",
        ex.at_most(scores, reach),
        f"{len(shares)} points, off by {max(abs(share.value - 1) for share in shares):.1%} or "
        f"less, at most {scores.max():.1f} standard errors; one standard error is "
        f"{min(s.stderr for s in shares):.1%} to {max(s.stderr for s in shares):.1%}",
        "sigma^2 2^k / n^2 plus the variance of the projection, within "
        f"{reach:.1f} standard errors",
        "BR-CONJ, BR-PROJ",
    )


def is_unbiased(table: pd.DataFrame) -> ex.Claim:
    """A two-sided test that errors are 0 on average, in units of their exact standard deviation."""
    points = table.groupby(["d", "k", "n"]).agg(shift=("shift", "sum"), runs=("runs", "sum"))
    scores = (points["shift"] / np.sqrt(points.runs)).abs()
    reach = float(scipy.stats.norm.isf(ex.LEVEL / (2 * len(points))))
    name = "projection: errors of all conjunctions are 0 on average"
    measured = f"{len(points)} points, off by {scores.max():.1f} standard errors or less"
    theory = f"0, within {reach:.1f} standard errors that are computed from noise and keys"
    return ex.Claim(name, ex.at_most(scores, reach), measured, theory, "BR-CONJ, BR-PROJ")


def falls(table: pd.DataFrame, route: Route, low: float, high: float, id: str) -> ex.Claim:
    """The log-log slope of the guarantee in n is in [low, high] for every (d, k)."""
    slopes = [
        float(np.polyfit(np.log(rows.n), np.log(rows.guaranteed), 1)[0])
        for _, rows in table[table.route == route].groupby(["d", "k"])
    ]
    name = f"{route}: the guarantee falls as a power of n between {low} and {high}"
    measured = ", ".join(f"{slope:.3f}" for slope in slopes)
    return ex.Claim(name, ex.between(slopes, low, high), measured, f"in [{low}, {high}]", id)


LOOKS = Route.looks()


def plot(table: pd.DataFrame) -> ex.Figure:
    cases = sorted({(int(d), int(k)) for d, k in zip(table.d, table.k, strict=True)})
    titles = [f"$d={d}$, $k={k}$: {math.comb(d, k)} conjunctions" for d, k in cases]
    error = "largest error of all answers"
    figure, panels = ex.panels((7.2, 3.7), titles, "number of records $n$", error, sharey=True)
    for axes, (d, k) in zip(panels, cases, strict=True):
        for route, look in LOOKS.items():
            rows = table[(table.d == d) & (table.k == k) & (table.route == route)]
            bound = rows.groupby("n").guaranteed.first()
            ex.draw_theory(axes, bound.index, bound, look.colour, "_")
            ex.draw_measured(axes, ex.pooled_along(rows, "n"), look, route.partition(":")[0])
        ex.log_axes(axes)
    ex.label_curves(panels[-1])
    result = "Conjunctions: with few records the projection errs less, and only it can run"
    settings = r"Approximate DP. Dashed: guarantees, Theorem 4.9 and $3\alpha_0$."
    return ex.headline(figure, result, settings)


def grid(
    cases: tuple[tuple[int, int], ...],
    few: tuple[int, ...],
    many: tuple[int, ...],
    rows: int,
    runs: dict[Route, int],
) -> tuple[Config, ...]:
    """The projection for n in `few` and for `many[0]`, the interactive route for n in `many`."""
    summaries, online = runs[Route.PROJECTION], runs[Route.ONLINE]
    return tuple(
        config
        for d, k in cases
        for config in (
            *ex.product(Config, Route.PROJECTION, d, k, (*few, many[0]), rows, summaries),
            *ex.product(Config, Route.ONLINE, d, k, many, 0, online),
        )
    )


QUICK = ex.Sweep(
    grid(
        ((8, 2),),
        few=(100, 1000),
        many=(10**5, 10**6, 10**7),
        rows=1 << 13,
        runs={Route.ONLINE: 6, Route.PROJECTION: 20},
    )
)
FULL = ex.Sweep(
    grid(
        ((10, 2), (10, 4)),
        few=(100, 300, 1000, 3000, 10_000, 30_000),
        many=(10**5, 10**6, 10**7, 10**8, 10**9),
        rows=1 << 16,
        runs={Route.ONLINE: 10, Route.PROJECTION: 20},
    ),
    trials=2,
)
