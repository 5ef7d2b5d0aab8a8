"""Error against n for every mechanism that applies, with errors that no mechanism can reach.

Papers: Nikolov 2022 (arXiv 2208.07410), Lemmas 6, 7 and 13 to 16, Theorem 21; Hardt and Talwar
2010; formula sheet JL-L6, JL-L13, JL-L14, JL-L15, JL-L16, JL-T21, JL-ELL, X-CONE, X-LKJ.

Claims, for all 2-way tables of six binary columns, for prefix sums and for a histogram: every
mechanism that applies under pure DP and has an exact sampler errs as it predicts before it sees
data, or at most as predicted where the prediction is a bound. The error of additive noise is
proportional to 1/n. No prediction is below the error that lower bounds, such as packings, exclude
for all mechanisms of the same guarantee. Which mechanism is best depends on the workload and on n.

Mechanisms with a heuristic sampler are left out. Data are uniform.

Run time on one core: quick 6 s, full 2 minutes.
"""

import enum
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared import workloads as shared
from experiments.shared.workloads import Kind
from geomdp.advice import Quantity, error_table

EPSILON = 1.0
#: Number of releases for each measured point of an error table.
RELEASES = 20
#: Number of records from which data sets are drawn.
POPULATION = 10_000


class Problem(enum.StrEnum):
    """Workloads, one panel each."""

    TABLES = "2-way tables"
    PREFIXES = "prefix sums"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class Config:
    """One workload, over a range of n."""

    problem: Problem  # Workload
    #: Number of binary columns of the tables. Prefix sums and histograms are over 2^columns
    #: elements.
    columns: int
    #: Range of n.
    smallest: int
    largest: int
    points: int  # How many values of n, evenly spread in log n


def workload(config: Config) -> gd.workloads.Workload:
    """The workload of a configuration."""
    if config.problem is Problem.TABLES:
        return gd.workloads.MarginalTables([2] * config.columns, 2)
    kind = Kind.PREFIXES if config.problem is Problem.PREFIXES else Kind.HISTOGRAM
    return shared.workload(kind, 2**config.columns)


def compute(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """The error table of one workload: predicted, excluded and measured errors."""
    Q = workload(config)
    ns = np.geomspace(config.smallest, config.largest, config.points).round().astype(int)
    table = error_table(
        Q,
        ns=[int(n) for n in ns],
        privacy=gd.PureDP(EPSILON),
        exact_only=True,
        records=Q.universe.sample(POPULATION, rng),
        rng=rng,
    )
    return [{str(key): value for key, value in row.items()} for row in table.to_dict("records")]


def ball_error(queries: int, dimension: int, diameter: float, epsilon: float) -> float:
    """n times the error Delta (r (r + 1) / k)^(1/2) / (epsilon n) per query (JL-L15).

    There are k = `queries` whose answers have the affine dimension r and the l2 diameter Delta.
    """
    return diameter * math.sqrt(dimension * (dimension + 1) / queries) / epsilon


def balls_in_closed_form(products: list[tuple[float, float]]) -> ex.Claim:
    """Claim that the numbers of each pair are equal: n times a predicted error, and the formula."""
    off = max((abs(found / stated - 1) for found, stated in products), default=math.inf)
    name = "the predicted error of ball noise is Delta (r (r + 1) / k)^(1/2) / (epsilon n)"
    measured = f"{len(products)} predictions, off by {off:.1e} at most"
    return ex.Claim(name, ex.at_most(off, 1e-9), measured, "equal", "JL-L15")


def measured_beside_predicted(table: pd.DataFrame) -> pd.DataFrame:
    """Measured points with the prediction for the same mechanism, workload, n and trial."""
    keys = ["problem", "curve", "n", "trial"]
    predicted = table[table.quantity == Quantity.PREDICTED]
    measured = table[table.quantity == Quantity.MEASURED]
    return measured.merge(predicted, on=keys, suffixes=("", "_predicted"))


def pooled(both: pd.DataFrame) -> pd.DataFrame:
    """Measured mean square divided by the predicted one, averaged over n and trials of a curve."""
    share = (both.rmse / both.rmse_predicted) ** 2
    spread = 2 * both.rmse * np.hypot(both.stderr, both.stderr_predicted) / both.rmse_predicted**2
    groups = [both.problem, both.curve]
    counts = share.groupby(groups).count()
    return pd.DataFrame(
        {
            "share": share.groupby(groups).mean(),
            "stderr": np.sqrt((spread**2).groupby(groups).sum()) / counts,
        }
    )


def claims(table: pd.DataFrame) -> ex.Claims:
    both = measured_beside_predicted(table)
    exact, bound = both[both.kind_predicted == "exact"], both[both.kind_predicted == "upper_bound"]
    shares = pooled(exact)
    off = (shares.share - 1) / shares.stderr
    # Squared errors of correlated noise are skewed. The t quantile for the few releases of
    # one point is larger than the quantile for the means over many points. The difference leaves
    # room for the skewness.
    reach = ex.quantile(ex.LEVEL / (2 * len(shares)), RELEASES)
    below = pooled(bound)
    yield ex.Claim(
        "mechanisms with an exact prediction have the predicted error",
        ex.at_most(off.abs(), reach),
        f"{len(shares)} curves, mean squares over all n off by at most {off.abs().max():.1f} "
        "standard errors",
        f"within {reach:.1f} standard errors",
        "JL-L14, JL-L15, JL-L16, X-CONE",
    )
    yield ex.Claim(
        "mechanisms whose prediction is an upper bound err no more than this bound",
        ex.at_most(below.share, 1 + reach * below.stderr),
        f"{len(below)} curves, mean square at most {below.share.max():.3f} times the squared bound",
        "at most 1",
        "JL-L13b",
    )
    yield balls(table)
    yield nothing_excluded(table)
    yield slopes(table)
    yield winners(table)


def balls(table: pd.DataFrame) -> ex.Claim:
    """Claim that predictions of ball noise equal a closed form computed without the library."""
    rows = table[(table.quantity == Quantity.PREDICTED) & (table.curve == "Ball")]
    found = []
    for row in rows.itertuples():
        size, pairs = 2**row.columns, row.columns * (row.columns - 1) // 2
        # Number of queries, dimension, and largest distance between the answers of two records.
        shape = {
            Problem.TABLES: (4 * pairs, row.columns + pairs, math.sqrt(2 * pairs)),
            Problem.PREFIXES: (size, size - 1, math.sqrt(size - 1)),
            Problem.HISTOGRAM: (size, size - 1, math.sqrt(2)),
        }[Problem(row.problem)]
        found.append((row.n * row.rmse, ball_error(*shape, EPSILON)))
    return balls_in_closed_form(found)


def nothing_excluded(table: pd.DataFrame) -> ex.Claim:
    """At every n the least proved error is at least the largest excluded one."""
    proved = table[
        (table.quantity == Quantity.PREDICTED) & table.kind.isin(["exact", "upper_bound"])
    ]
    least = proved.groupby(["problem", "n"]).rmse.min()
    excluded = table[table.quantity == Quantity.EXCLUDED].groupby(["problem", "n"]).rmse.max()
    common = pd.concat([least, excluded], axis=1, keys=["best", "excluded"]).dropna()
    ratio = common.best / common.excluded
    name = "no predicted error is below the error that lower bounds exclude for every mechanism"
    measured = (
        f"{len(ratio)} points, least predicted error over excluded error {ratio.min():.1f} to "
        f"{ratio.max():.1f}"
    )
    return ex.Claim(name, ex.at_least(ratio, 1), measured, "at least 1", "JL-L6, JL-L7")


def slopes(table: pd.DataFrame) -> ex.Claim:
    """Additive noise has exact predictions, for which n times the error is constant."""
    exact = table[(table.quantity == Quantity.PREDICTED) & (table.kind == "exact")]
    products = (exact.n * exact.rmse).groupby([exact.problem, exact.curve])
    worst = float((products.max() / products.min()).max() - 1)
    name = "the predicted error of additive noise falls as 1/n"
    measured = f"{products.ngroups} curves, n times the error varies by a share of {worst:.1e}"
    return ex.Claim(name, ex.at_most(worst, 1e-9), measured, "constant", "JL-L14")


def winners(table: pd.DataFrame) -> ex.Claim:
    """The mechanism with the least predicted error is not the same for all workloads and n."""
    predicted = table[table.quantity == Quantity.PREDICTED]
    best = predicted.loc[predicted.groupby(["problem", "n"]).rmse.idxmin()]
    names = {
        str(problem): list(dict.fromkeys(rows.sort_values("n").curve))
        for problem, rows in best.groupby("problem")
    }
    return ex.Claim(
        "the mechanism with the least predicted error is not the same for all workloads and n",
        ex.each_case(len({name for found in names.values() for name in found}) > 1),
        "; ".join(f"{problem}: {', '.join(found)}" for problem, found in names.items()),
        "more than one",
        "advisor",
    )


def relative(table: pd.DataFrame) -> pd.DataFrame:
    """Errors of one workload over the least error predicted for additive noise at the same n."""
    exact = table[(table.quantity == Quantity.PREDICTED) & (table.kind == "exact")]
    # The error of additive noise is proportional to 1/n, so n times this error serves every n.
    return table.assign(ratio=table.n * table.rmse / (exact.n * exact.rmse).min())


ALONE, AFTER = ex.Look("C0", "o"), ex.Look("C2", "D", filled=False)
LAPLACE = ex.Look("C1", "o")


def plot(table: pd.DataFrame) -> ex.Figure:
    xlabel = "error over that of the best"
    figure, panels = ex.panels((7.2, 4.2), Problem, [xlabel] * len(Problem), sharey=True)
    every = table[(table.quantity == Quantity.PREDICTED) & (table.kind == "exact")]
    names = sorted(set(every.noise), key=lambda name: (name == "Laplace", name))
    for axes, problem in zip(panels, Problem, strict=True):
        draw_mechanisms(axes, relative(table[table.problem == problem]), names)
    panels[0].set_yticks(range(len(names)), [name.split("(")[0] for name in names])
    panels[0].set_ylim(len(names) - 0.5, -0.5)
    return ex.headline(
        figure,
        "Which mechanism is best depends on the queries",
        "1-DP, 64 elements. Filled: additive noise, any $n$. Open: projected or shrunk, with the\n"
        "fewest records. Grey: impossible for every mechanism with the most records, proved.",
    )


def draw_mechanisms(axes: ex.Axes, table: pd.DataFrame, names: list[str]) -> None:
    """Draw a row for each noise: its error alone, and after the best processing at the least n."""
    predicted = table[table.quantity == Quantity.PREDICTED]
    exact = predicted[predicted.kind == "exact"].groupby("noise").ratio.first()
    fewest = predicted[(predicted.n == predicted.n.min()) & (predicted.kind == "upper_bound")]
    least = fewest[fewest.noise.isin(names)].groupby("noise").ratio.min()
    # The two marks of a row are shifted apart, so that equal errors are both seen.
    for look, ratios, shift in ((ALONE, exact, -0.15), (AFTER, least, 0.15)):
        rows = [names.index(str(name)) + shift for name in ratios.index]
        ex.draw_points(axes, ratios, rows, look, "_", line="none")
    ex.draw_points(axes, exact["Laplace"], names.index("Laplace") - 0.15, LAPLACE, "Laplace")
    excluded = table[table.quantity == Quantity.EXCLUDED]
    limit = excluded[excluded.n == excluded.n.max()].ratio.max()
    axes.axvspan(0.01, limit, color=ex.IMPOSSIBLE, lw=0, zorder=0)
    axes.axvline(1, color=ex.GREY, lw=0.8, zorder=0)
    axes.set(xscale="log", xlim=(0.2, 20))
    axes.set_xticks(*ex.ticks(0.5, 1, 2, 5, 10))
    axes.minorticks_off()


QUICK = ex.Sweep(ex.product(Config, Problem, 3, 10, 10_000, 2))
FULL = ex.Sweep(ex.product(Config, Problem, 6, 30, 100_000, 15), trials=5)
