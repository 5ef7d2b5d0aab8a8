"""Sparse projection: error against n, sparsity and rows, with Gaussian and with Laplace noise.

Paper: Blum-Roth 2011, "Fast private data release algorithms for sparse queries", Algorithm 2,
Lemma 4.6, Theorem 4.9; formula sheet BR-PROJ, BR-JL, X-GF.

Claim: the error of an answer to a query Q has two parts, the noise and the projection error. The
summary has T rows, and the noise on each row has standard deviation sigma. Over keys and noise, the
first part has the root mean square sigma ||Q|| / n. The root mean square of the second part is at
most sqrt(2 / T) ||Q||. Both mean squares are known exactly, and the measured errors agree with
them. With T = (eps n)^2 rows the error falls as 1 / n, and it grows as the square root of the
sparsity. Gaussian noise on the whole summary is smaller than Laplace noise on its rows. From about
2400 m^(1/2) records on, where m is the sparsity, the bound of Theorem 4.9 is below 1 and therefore
informative. The errors then stay below the bound with far fewer rows than in the paper. For k
queries, failure probability beta and the paper's T, the bound is about
sqrt(48 ln(4k/beta) log2(2kT/beta)) standard deviations of an answer's noise. This factor is 163 or
more here, because the proof bounds every coefficient of a projected query by the largest
(Corollary 4.7). A factor of about 3 would suffice.
Every release here draws a new key, so that errors are averages over keys.

Run time on one core: quick 3 s, full 3 minutes.
"""

import enum
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from geomdp.bounds.upper.theorems import paper_accuracy
from geomdp.mechanisms.sparse_summary import HashedSigns
from geomdp.workloads import SparseQuery

PRIVACY = gd.ApproxDP(1.0, 1e-6)
BETA = 0.05
#: Number of queries asked of each summary, and number of elements that can occur in records.
QUERIES, ATOMS = 20, 64
#: Order of independence of the signs where only their distortion is measured.
INDEPENDENCE = 64
#: Number of rows where Theorem 4.9 is checked. The noise of an answer does not depend on it.
STATED_ROWS = 1 << 14
#: Largest number of rows used here.
MOST_ROWS = 1 << 16


class Panel(enum.StrEnum):
    """The parameter that varies along a panel."""

    RECORDS = "records"
    SPARSITY = "sparsity"
    ROWS = "rows"
    #: The numbers of records are so large that the bound of Theorem 4.9 is below 1. This panel is
    #: not drawn.
    THEOREM = "Theorem 4.9"


class Noise(ex.Curve):
    """Noise of the summary; none where only the projection is measured."""

    GAUSSIAN = "Gaussian noise", "C0", "o"
    LAPLACE = "Laplace noise", "C1", "s"
    NONE = "projection alone", "C2", "v", ex.HOLLOW


@dataclass(frozen=True)
class Config:
    """One measured point. All panels except `Panel.THEOREM` are drawn."""

    panel: Panel  # Panel of the point
    noise: Noise  # Noise of the summary
    n: int  # Number of records
    sparsity: int  # Sparsity of the queries
    rows: int  # Number of rows T
    releases_per_trial: int  # Independent keys and releases in one cell


def balanced_rows(n: int) -> int:
    """T = n^2, rounded up to a power of two, at most 2^16.

    Below 2^16, noise and distortion both fall as 1 / n.
    """
    return min(1 << math.ceil(2 * math.log2(n)), MOST_ROWS)


def measured_distortion(
    signs: HashedSigns, *, sparsity: int, trials: int, rng: np.random.Generator
) -> ex.FloatArray:
    """Relative errors |<Ax, Ay> - <x, y>| / (||x|| ||y||) on synthetic vectors: (trials,)."""
    shared = (sparsity + 1) // 2
    errors = np.empty(trials)
    for trial in range(trials):
        # With 64 rows there are 2^64 columns. Draw from the first half, because the numbers of
        # these columns fit int64.
        elements = rng.integers(min(signs.elements, 1 << 63), size=2 * sparsity - shared)
        first, second = np.zeros((2, len(elements)))
        first[:sparsity] = rng.random(sparsity)
        second[len(elements) - sparsity :] = rng.random(sparsity)
        image = signs.project(elements, first) @ signs.project(elements, second)
        size = np.linalg.norm(first) * np.linalg.norm(second)
        errors[trial] = abs(image - first @ second) / size
    return errors


@dataclass(frozen=True)
class Errors:
    """Errors of the releases of one cell."""

    squares: np.ndarray  # Mean squared error of each release
    exact: np.ndarray  # Expectation of each square over keys and noise, given the records
    distortion: np.ndarray  # The part of `exact` that is due to the projection
    within: int  # Number of releases with all errors at most the bound of Theorem 4.9
    sigma: float  # Standard deviation of the noise on a row


def exact_square(queries: list[SparseQuery], records: np.ndarray, config: Config) -> float:
    """Mean over the queries of the projection's squared error, in expectation over keys.

    Let u be the counts and Q a 0/1 query of m elements. If any four signs are independent, the
    expectation is (m |u|^2 + <Q, u>^2 - 2 sum of u_i^2 over Q) / (T n^2).
    """
    counts = np.bincount(records, minlength=ATOMS).astype(float)
    changes = []
    for query in queries:
        met = counts[[element for element in query.support if element < ATOMS]]
        changes.append(query.sparsity * counts @ counts + met.sum() ** 2 - 2 * met @ met)
    return float(np.mean(changes)) / (config.rows * config.n**2)


def releases(config: Config, rng: np.random.Generator) -> Errors:
    """Errors of `releases_per_trial` releases, each with a new key and new records."""
    noise = {
        Noise.GAUSSIAN: gd.mechanisms.GaussianRows(),
        Noise.LAPLACE: gd.mechanisms.LaplaceRows(),
    }[config.noise]
    n, m = config.n, config.sparsity
    bound = paper_accuracy(PRIVACY, n=n, sparsity=m, queries=QUERIES, beta=BETA)
    squares, distortion = np.empty((2, config.releases_per_trial))
    within, sigma = 0, 0.0
    for i in range(config.releases_per_trial):
        # Half of a query's elements, but at most `ATOMS`, are elements that can occur in records.
        records = rng.integers(ATOMS, size=n)
        queries = [
            SparseQuery.counting(
                [
                    *rng.choice(ATOMS, min((m + 1) // 2, ATOMS), replace=False).tolist(),
                    *range(ATOMS + 1000 * q, ATOMS + 1000 * q + m - min((m + 1) // 2, ATOMS)),
                ]
            )
            for q in range(QUERIES)
        ]
        project = gd.SparseProject(
            n=n, sparsity=m, queries=QUERIES, privacy=PRIVACY, rows=config.rows, beta=BETA,
            noise=noise, adjacency=gd.Adjacency.ADD_REMOVE, rng=rng,
        )  # fmt: skip
        sigma = project.sigma
        summary = project.release(records, rng=rng)
        tally = queries[0].tally(records)
        errors = np.array([summary.answer(q).value - q.total(tally) / n for q in queries])
        squares[i] = np.mean(errors**2)
        distortion[i] = exact_square(queries, records, config)
        within += bool(np.abs(errors).max() <= bound)
    return Errors(squares, distortion + sigma**2 * m / n**2, distortion, within, sigma)


def implied_noise(config: Config) -> float:
    """Mean square of an answer's noise that Theorem 4.9 implies.

    The bound of the theorem is sqrt(m) / n, for the projection, plus
    sqrt(48 ln(4k/beta) log2(2kT/beta)) standard deviations of an answer's noise. The variance of
    this noise is sigma^2 m / n^2 = 16 m ln(1/delta) / (eps n)^2.
    """
    n, m = config.n, config.sparsity
    bound = paper_accuracy(PRIVACY, n=n, sparsity=m, queries=QUERIES, beta=BETA)
    # The T of the paper's proof.
    rows = 4 * 64**2 * math.log(4 * QUERIES / BETA) * ((m + n**2) / (2 * math.sqrt(m))) ** 2
    logs = math.log(4 * QUERIES / BETA) * math.log2(2 * QUERIES * rows / BETA)
    return (bound - math.sqrt(m) / n) ** 2 / (48 * logs)


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean squared error over one trial's releases, its bound, and its offset from exact means."""
    if config.panel is Panel.ROWS:
        errors = [
            measured_distortion(
                HashedSigns.draw(config.rows, INDEPENDENCE, rng),
                sparsity=config.sparsity, trials=1, rng=rng,
            )
            for _ in range(config.releases_per_trial)
        ]  # fmt: skip
        squares, within, off = np.concatenate(errors) ** 2, 0, {}
        predicted = math.sqrt(2 / config.rows)
    else:
        found = releases(config, rng)
        squares, within = found.squares, found.within
        noise = found.sigma**2 * config.sparsity / config.n**2
        predicted = math.sqrt(noise + 2 * config.sparsity / config.rows)
        gaps = (squares - found.exact) / found.exact.mean()
        off = {"off": gaps.mean(), "off_stderr": gaps.std(ddof=1) / math.sqrt(len(gaps))}
        if config.panel is Panel.THEOREM:
            implied = found.distortion + implied_noise(config)
            beside = (squares - implied) / implied.mean()
            off |= {
                "beside": beside.mean(),
                "beside_stderr": beside.std(ddof=1) / math.sqrt(len(beside)),
                "stated": paper_accuracy(
                    PRIVACY, n=config.n, sparsity=config.sparsity, queries=QUERIES, beta=BETA
                ),
            }
    return {
        **ex.MeanSquare.of(squares).columns(),
        "predicted": predicted,
        "predicted_stderr": 0.0,
        "prediction": "upper_bound",
        "within": within,
        **off,
    }


POINT = ("panel", "noise", "n", "sparsity", "rows")


def claims(table: pd.DataFrame) -> list[ex.Claim]:
    panels = {panel: table[table.panel == panel] for panel in Panel}
    records = panels[Panel.RECORDS]
    balanced = records[records.rows == records.n**2]
    means = {
        noise: ex.pooled_by(records[records.noise == noise], ["n"])
        for noise in (Noise.GAUSSIAN, Noise.LAPLACE)
    }
    return [
        ex.slopes_are("with T = n^2 rows, the error falls as 1/n", "BR-PROJ",
                   ex.slopes_by(balanced, ["noise"], "n"), -1.0, 0.25),
        ex.slopes_are("the error grows as m^(1/2) with the sparsity m", "BR-PROJ",
                   ex.slopes_by(panels[Panel.SPARSITY], ["noise"], "sparsity"), 0.5, 0.25),
        ex.slopes_are("the distortion falls as T^(-1/2) with the rows T", "BR-JL",
                   ex.slopes_by(panels[Panel.ROWS], ["noise"], "rows"), -0.5, 0.15),
        ex.stays_below_prediction("squared errors stay below the sum of the terms of noise and of "
                               "distortion", "BR-PROJ",
                               table, POINT),
        exactly(table[table.panel != Panel.ROWS]),
        ex.is_below("Gaussian noise errs less than Laplace noise", "BR-PROJ",
                 means[Noise.GAUSSIAN], means[Noise.LAPLACE]),
        theorem(panels[Panel.THEOREM]),
    ]  # fmt: skip


def exactly(table: pd.DataFrame) -> ex.Claim:
    """Mean squared errors are neither above nor below their exact means by more than chance."""
    worst, reach = scores_of(table, "off")
    name = "squared errors are on average sigma^2 m / n^2 plus the variance of the projection"
    measured = (
        f"{len(table)} points, off by {table.off.abs().max():.1%} or less, {worst:.1f} "
        "standard errors"
    )
    theory = f"within {reach:.1f} standard errors"
    return ex.Claim(name, ex.at_most(worst, reach), measured, theory, "BR-PROJ, BR-JL")


def scores_of(table: pd.DataFrame, column: str) -> tuple[float, float]:
    """The largest deviation in standard errors, and how large it may be by chance."""
    scores = (table[column] / table[f"{column}_stderr"]).abs()
    return float(scores.max()), ex.quantile(ex.LEVEL / (2 * len(table)), int(table.releases.min()))


def theorem(table: pd.DataFrame) -> ex.Claim:
    """The noise of answers has the size that Theorem 4.9 implies, where its bound is below 1."""
    worst, reach = scores_of(table, "beside")
    kept = (table.within == table.releases).all()
    return ex.Claim(
        "the noise of answers has the size that Theorem 4.9 implies, and all errors stay within "
        "its bound",
        ex.Verdict(kept and (table.stated < 1).all() and worst <= reach, worst / reach),
        f"k = {QUERIES}: {len(table)} points with bounds {table.stated.min():.2f} to "
        f"{table.stated.max():.2f}, squared errors off by {table.beside.abs().max():.1%} or less, "
        f"{worst:.1f} standard errors; {table.within.sum()} of {table.releases.sum()} releases "
        "within the bound",
        f"(bound - m^(1/2)/n) / sqrt(48 ln(4k/beta) log2(2kT/beta)), within {reach:.1f} standard "
        "errors; all releases, because a smaller bound would suffice",
        "BR-T4.9, BR-PROJ",
    )


LOOKS = Noise.looks()
PAPER = "Theorem 4.9"


def plot(table: pd.DataFrame) -> ex.Figure:
    records = table[(table.panel == Panel.RECORDS) & (table.noise == Noise.LAPLACE)]
    m = int(records.sparsity.iloc[0])
    fixed = table[table.panel == Panel.SPARSITY].n.iloc[0]
    titles = [f"$m={m}$", f"$n={fixed}$", "no noise"]
    labels = ["number of records $n$", "sparsity $m$", "rows $T$"]
    heights = ["error per query (RMSE of means)", "", "relative distortion"]
    figure, panels = ex.panels((7.2, 3.9), titles, labels, heights)
    columns = {Panel.RECORDS: "n", Panel.SPARSITY: "sparsity", Panel.ROWS: "rows"}
    for axes, (name, column) in zip(panels, columns.items(), strict=True):
        rows = table[table.panel == name]
        for noise in rows.noise.unique():
            curve(axes, rows[rows.noise == noise], column, Noise(noise))
        ex.log_axes(axes)
    n = np.array(sorted(records.n.unique()))
    paper = [paper_accuracy(PRIVACY, n=int(x), sparsity=m, queries=QUERIES, beta=BETA) for x in n]
    ex.draw_theory(panels[0], n, paper, ex.GREY, PAPER)
    low, high = panels[0].get_ylim()
    panels[1].set_ylim(low, high)
    ex.note(panels[0], (float(n[1]), paper[1]), PAPER, offset=(6, 6), align="left")
    ex.label_curves(panels[1], [Noise.GAUSSIAN, Noise.LAPLACE])
    result = "Gaussian noise beats Laplace noise in a sparse projection, as predicted"
    settings = "Approximate DP. Dashed: predictions; grey: the bound for all queries at once."
    return ex.headline(figure, result, settings)


def curve(axes: ex.Axes, table: pd.DataFrame, column: str, noise: Noise) -> None:
    """Measured errors with their bound."""
    bound = table.groupby(column).predicted.first()
    ex.draw_theory(axes, bound.index, bound, LOOKS[noise].colour, "_")
    ex.draw_measured(axes, ex.pooled_along(table, column), LOOKS[noise], noise)


def grid(
    ns: tuple[int, ...],
    sparsities: tuple[int, ...],
    rows: tuple[int, ...],
    releases: int,
    stated: int,
) -> tuple[Config, ...]:
    """The points of the three panels, and of the check of Theorem 4.9 with `stated` releases."""
    noises = (Noise.GAUSSIAN, Noise.LAPLACE)
    return (
        *(Config(Panel.RECORDS, noise, n, 10, balanced_rows(n), releases)
          for noise in noises for n in ns),
        *ex.product(Config, Panel.SPARSITY, noises, 64, sparsities, balanced_rows(64), releases),
        *ex.product(Config, Panel.ROWS, Noise.NONE, 1, 16, rows, 10 * releases),
        *(Config(Panel.THEOREM, Noise.LAPLACE, n, m, STATED_ROWS, stated)
          for n, m in ((10_000, 1), (10_000, 4), (40_000, 16))),
    )  # fmt: skip


QUICK = ex.Sweep(grid((16, 64), (1, 16), (64, 1024), 24, 10))
FULL = ex.Sweep(
    grid(
        (16, 32, 64, 128, 256, 1024, 4096),
        (1, 4, 16, 64, 256),
        (64, 256, 1024, 4096, 16384, 65536),
        50,
        50,
    ),
    trials=4,
)
