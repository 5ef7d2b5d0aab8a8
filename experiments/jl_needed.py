"""Does pure DP need the Johnson-Lindenstrauss step, or does projecting K-norm noise suffice?

Paper: Nikolov 2022 (arXiv 2208.07410), Algorithm 1 and Theorem 21; formula sheet JL-A1, JL-T21,
JL-L13b. The error bound of the theorem needs the map: noise of K_Q itself may be much wider in some
directions than a Gaussian of the same energy. Whether that ever costs more than the map does is
left open there.

Measured: random signs, 2-way marginals and 3-way parities, with more and more queries and elements,
n a quarter of the effective dimension, so that projection matters; K-norm noise of the best body
with an exact sampler, projected on K_Q, without the map and with the map whose predicted error is
least. Data: one element, ten elements, all elements, and the worst found by a local search from
these that exchanges elements while the error grows, under common noise. The data found are measured
again with fresh noise, so that the search does not select lucky draws.

Claim: on the worst data found, at no size tried does projection alone err more than with the map,
beyond chance; the ratio of both errors is stated for each size with its interval. This is seen for
these families and sizes and this noise; it proves nothing about others, nor about a trend.

Run time on one core: quick 6 s, full 4 minutes.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter

import geomdp as gd
from experiments.engine.cells import Row, Sweep
from experiments.engine.checks import predicted_columns, stays_below_prediction
from experiments.engine.claims import Claim
from experiments.engine.drawing import Look, draw_measured, shared_legend
from experiments.engine.statistics import LEVEL, MeanSquare, pooled_by, quantile

PRIVACY = gd.PureDP(1.0)
#: Effective dimension over n: the projection regime.
REGIME = 4
#: Seed of the public map, and of the signs, which are part of the problem.
MAP_SEED, SIGNS_SEED = 0, 0


class Family(enum.StrEnum):
    """Workloads, one panel each."""

    SIGNS = "random signs"
    MARGINALS = "2-way marginals"
    PARITIES = "3-way parities"


class Method(enum.StrEnum):
    """With and without the map."""

    PROJECTED = "projection alone"
    JL = "with the map"


class Start(enum.StrEnum):
    """Where a search starts: how many elements share the records."""

    ONE = "one element"
    TEN = "ten elements"
    ALL = "all elements"


DISTINCT = {Start.ONE: 1, Start.TEN: 10}


@dataclass(frozen=True)
class Config:
    """One family at one size.

    Parameters
    ----------
    family : Family
        Workload.
    size : int
        Number of queries of random signs, on four times as many elements; number of attributes.
    method : Method
        With or without the map.
    start : Start
        Where the search starts.
    exchanges : int
        Exchanges tried.
    releases_per_trial : int
        Releases of the data found.
    """

    family: Family
    size: int
    method: Method
    start: Start
    exchanges: int
    releases_per_trial: int


@cache
def workload(family: Family, size: int) -> gd.workloads.Workload:
    """The queries."""
    builders: dict[Family, Callable[[], gd.workloads.Workload]] = {
        Family.SIGNS: lambda: gd.workloads.RandomSigns(size, 4 * size, rng=SIGNS_SEED),
        Family.MARGINALS: lambda: gd.workloads.Marginals(size, 2),
        Family.PARITIES: lambda: gd.workloads.Parities(size, 3),
    }
    return builders[family]()


def records_of(family: Family, size: int) -> int:
    """A quarter of the effective dimension, at least 4."""
    return max(4, workload(family, size).affine_hull().dimension // REGIME)


@cache
def built(family: Family, size: int, method: Method) -> gd.mechanisms.Mechanism:
    """K-norm noise with an exact sampler, projected or behind the map with the best prediction."""
    Q, n = workload(family, size), records_of(family, size)
    noisy = gd.mechanisms.KNorm(Q, n=n, privacy=PRIVACY, exact=True)
    if method is Method.PROJECTED:
        return gd.mechanisms.Projected(noisy)
    return gd.mechanisms.JL(noisy, gd.mechanisms.AutoDimension(), rng=MAP_SEED)


#: Releases that judge an exchange, all with the same noise.
JUDGES = 8


def squared_errors(
    M: gd.mechanisms.Mechanism, records: npt.NDArray[Any], rngs: list[np.random.Generator]
) -> npt.NDArray[np.float64]:
    """Mean squared errors (b,) of one release for each generator."""
    truth = M.workload.answers(records)
    errors = [M.release(records, rng=rng).answers - truth for rng in rngs]
    return np.asarray([np.mean(error**2) for error in errors])


def judged(M: gd.mechanisms.Mechanism, records: npt.NDArray[Any]) -> float:
    """Mean squared error under noise that is common to all data."""
    rngs = [np.random.default_rng(seed) for seed in range(JUDGES)]
    return float(squared_errors(M, records, rngs).mean())


def start_at(config: Config, n: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """Records (n, ...) that use few elements equally often, or all of them at random."""
    universe = workload(config.family, config.size).universe
    if config.start is Start.ALL:
        return np.asarray(universe.sample(n, rng))
    chosen = np.asarray(universe.sample(DISTINCT[config.start], rng))
    return np.resize(chosen, (n, *chosen.shape[1:]))


def search(
    config: Config, M: gd.mechanisms.Mechanism, rng: np.random.Generator
) -> npt.NDArray[Any]:
    """Worst records found: each exchange gives a share of them one new element."""
    records = start_at(config, M.n, rng)
    worst = judged(M, records)
    for _ in range(config.exchanges):
        moved = rng.random(M.n) < rng.choice([1 / M.n, 0.25, 0.5])
        trial = records.copy()
        trial[moved] = np.asarray(M.workload.universe.sample(1, rng))[0]
        error = judged(M, trial)
        if error > worst:
            worst, records = error, trial
    return records


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """Error on the worst data found from one start."""
    M = built(config.family, config.size, config.method)
    records = search(config, M, rng)
    squares = squared_errors(M, records, rng.spawn(config.releases_per_trial))
    rows = M.matrix.shape[0] if isinstance(M, gd.mechanisms.JL) else 0
    return [
        {
            **MeanSquare.of(squares).columns(),
            **predicted_columns(M.predicted_rmse),
            "n": M.n,
            "m": M.workload.n_queries,
            "map_rows": rows,
            "distinct": len(np.unique(records, axis=0)),
        }
    ]


def worst_found(table: pd.DataFrame) -> dict[tuple[str, int, str], MeanSquare]:
    """The largest error over the starts."""
    worst: dict[tuple[str, int, str], MeanSquare] = {}
    keys = ["family", "size", "method", "start"]
    for (family, size, method, _), mean in pooled_by(table, keys).items():
        known = worst.get((family, size, method))
        if known is None or mean.value > known.value:
            worst[family, size, method] = mean
    return worst


def claims(table: pd.DataFrame) -> list[Claim]:
    """Bounds, the two against each other, and how their ratio moves with the size."""
    families = [family for family in Family if family in set(table.family)]
    return [
        stays_below_prediction(
            "projection alone stays below its bound on all data found",
            "JL-L13b",
            table[table.method == Method.PROJECTED],
            ["family", "size", "start"],
        ),
        *(not_worse(family, table, len(families)) for family in families),
    ]


def not_worse(family: Family, table: pd.DataFrame, families: int) -> Claim:
    """On the worst data found projection alone errs at most as much as with the map."""
    worst = worst_found(table[table.family == family])
    sizes = sorted({size for _, size, _ in worst})
    words, passed = [], True
    for size in sizes:
        alone, mapped = (worst[family, size, method] for method in Method)
        ratio = alone.root / mapped.root
        spread = np.hypot(alone.stderr / alone.value, mapped.stderr / mapped.value) / 2
        reach = quantile(LEVEL / (families * len(sizes)), min(alone.count, mapped.count)) * spread
        passed &= bool(np.log(ratio) <= reach)
        words.append(
            f"{size}: {ratio:.3f} [{ratio * np.exp(-reach):.3f}, {ratio * np.exp(reach):.3f}]"
        )
    return Claim(
        f"{family}: on the worst data found projection alone errs no more than with the map",
        passed,
        "ratio at size " + "; ".join(words),
        "at most 1 within the interval",
        "JL-T21",
    )


LOOKS = {Method.PROJECTED: Look("C0", "o"), Method.JL: Look("C1", "s", filled=False)}


def plot(table: pd.DataFrame) -> Figure:
    """Error on the worst data found against the number of queries."""
    figure = Figure(figsize=(7.2, 4.0))
    panels = figure.subplots(1, len(Family), sharey=True)
    worst = worst_found(table)
    queries = {(row.family, row.size): row.m for row in table.itertuples()}
    for axes, family, letter in zip(panels, Family, "abc", strict=True):
        for method, look in LOOKS.items():
            found = {
                queries[name, size]: mean
                for (name, size, by), mean in worst.items()
                if name == family and by == method
            }
            draw_measured(axes, [*found], [*found.values()], look, method)
        axes.set_title(f"({letter}) {family}")
        axes.set_xlabel("number of queries $m$")
        axes.set_xscale("log")
        axes.set_xticks(sorted({m for (name, _), m in queries.items() if name == family}))
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
    panels[0].set_ylabel("RMSE on the worst data found")
    shared_legend(figure, panels, {"measured": [*LOOKS]})
    return figure


def grid(sizes: dict[Family, tuple[int, ...]], exchanges: int, releases: int) -> tuple[Config, ...]:
    """Both methods from every start, at every size."""
    return tuple(
        Config(family, size, method, start, exchanges, releases)
        for family, mine in sizes.items()
        for size in mine
        for method in Method
        for start in Start
    )


QUICK = Sweep(
    grid({Family.SIGNS: (20, 40), Family.MARGINALS: (5,), Family.PARITIES: (5,)}, 3, 100),
    trials=1,
    seed=0,
)
FULL = Sweep(
    grid(
        {
            Family.SIGNS: (25, 50, 100),
            Family.MARGINALS: (5, 7, 9),
            Family.PARITIES: (5, 6, 7),
        },
        16,
        200,
    ),
    trials=1,
    seed=0,
)
