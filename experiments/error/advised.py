"""Advised mechanisms against what users have: predicted errors before any record is read.

Papers: Nikolov 2022 (arXiv 2208.07410), Lemmas 13 and 14; formula sheet JL-L13, JL-L13b, JL-L14.

Claim: for every workload and every number of records the advisor chooses the mechanism with the
least predicted error, or its projection, which never errs more; only shrinkage that would gain less
than 1% is left out. The
figure shows its predicted error over that of the best peer, which is independent Laplace noise or
the matrix mechanism; dots are measured. The choice depends on the number of records: with few
records projected or shrunk noise errs least, with many the noise by itself. Releases on uniform
records, at two numbers of records, err at most as predicted; the noise before projection or
shrinkage errs exactly as predicted.

All noise has an exact sampler. Run time on one core: quick 4 s, full 55 s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import geomdp as gd
from experiments.engine.cells import Row, Sweep
from experiments.engine.checks import (
    agrees_with_prediction,
    predicted_columns,
    stays_below_prediction,
)
from experiments.engine.claims import Claim
from experiments.engine.drawing import BAND_LEVEL, shared_legend
from experiments.engine.statistics import MeanSquare, pooled_by
from experiments.shared.workloads import Line, line_workload
from geomdp.advice.comparison.order import try_for_every_n
from geomdp.advice.comparison.ranking import WORTHWHILE, rank
from geomdp.advice.setting import Setting
from geomdp.mechanisms.additive_noise.base import additive_within

PRIVACY = gd.PureDP(1.0)
#: Begins the columns about the noise before projection or shrinkage.
NOISE = "noise_"
#: What users have without this library.
PEERS = ("Laplace", "Matrix")
#: Numbers of records at which releases are measured.
MEASURED = (200, 5000)
#: Numbers of records at which errors are predicted, from 100 to 10^6.
NS = sorted({*MEASURED, *(int(n) for n in np.geomspace(100, 10**6, 33).round())})
#: Workloads, in the order of the panels.
LINES = (
    Line.BINARY,
    Line.FIVE_COLUMNS,
    Line.THREE_WAY,
    Line.HUNDRED,
    Line.PREFIXES,
    Line.RANGES,
    Line.SIGNS,
    Line.MOMENTS,
)


@dataclass(frozen=True)
class Config:
    """One curve of the figure."""

    line: Line  # Workload
    draws: int  # Releases of the advised mechanism with 200 and with 5000 records; 0 for none


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """The choice at every n, and releases on uniform records; the geometry is computed once."""
    Q = line_workload(config.line)
    setting = Setting(Q, NS[0], PRIVACY, gd.Adjacency.REPLACE_ONE, exact_only=True)
    trials = try_for_every_n(setting).built
    rows: list[Row] = []
    for n in NS:
        built = []
        for trial in trials:
            mechanism = trial.mechanism.with_n(n)
            built.append(replace(trial, mechanism=mechanism, prediction=mechanism.predicted_rmse))
        best, predicted = rank(built)[0], {t.name: t.prediction.value for t in built}
        rows.append(
            {
                "n": n,
                "mechanism": best.name,
                "least": min(predicted.values()),
                "peer": min(value for name, value in predicted.items() if name in PEERS),
                **predicted_columns(best.prediction),
                **measured(best.mechanism, config.draws if n in MEASURED else 0, rng),
                **noise_columns(best.mechanism, config.draws if n in MEASURED else 0, rng),
            }
        )
    return rows


def unprefixed(column: str) -> str:
    """The name of a column about the noise, without what marks it."""
    return column.removeprefix(NOISE)


def measured(mechanism: gd.mechanisms.Mechanism, releases: int, rng: np.random.Generator) -> Row:
    """Mean squared error of releases on one set of uniform records; no count without any."""
    if not releases:
        return {"mean_square": 0.0, "mean_square_stderr": 0.0, "releases": 0}
    Q = mechanism.workload
    records = Q.universe.sample(mechanism.n, rng)
    truth = Q.answers(records)
    errors = [mechanism.release(records, rng=rng).answers - truth for _ in range(releases)]
    return MeanSquare.of([float(np.mean(error**2)) for error in errors]).columns()


def noise_columns(
    mechanism: gd.mechanisms.Mechanism, releases: int, rng: np.random.Generator
) -> Row:
    """The same of the additive noise that the advised mechanism processes, or is."""
    noise = additive_within(mechanism)
    if noise is None:
        found: Row = {
            "predicted": 0.0,
            "predicted_stderr": 0.0,
            "prediction": "",
            **measured(mechanism, 0, rng),
        }
    else:
        found = predicted_columns(noise.predicted_rmse) | measured(noise, releases, rng)
    return {f"{NOISE}{name}": value for name, value in found.items()}


def claims(table: pd.DataFrame) -> list[Claim]:
    """The choice against all predictions, those of peers, and what releases measure."""
    # Projecting never errs more than the noise that it follows, whatever the bound on its error is.
    noise_alone = table[f"{NOISE}predicted"].replace(0.0, np.inf)
    excess = float((np.minimum(table.predicted, noise_alone) / table.least).max())
    ratio = float((table.predicted / table.peer).max())
    found = table[table.releases > 0]
    exact = found.prediction == "exact"
    noise = found[["line", "n"]].join(found.filter(regex=f"^{NOISE}").rename(columns=unprefixed))
    noise = noise[(noise.releases > 0) & (noise.prediction == "exact")]
    return [
        Claim(
            "the advised mechanism has the least prediction",
            excess <= 1 + WORTHWHILE,
            f"its noise is at most {excess - 1:.2%} above it, on {len(table)} points",
            "1%, the least gain that is worth a step after the noise",
            "JL-L13, JL-L14",
        ),
        Claim(
            "no peer is predicted to err less",
            ratio <= 1,
            f"{ratio:.3f} of the best peer at most, {(table.predicted / table.peer).min():.2g} "
            "at least",
            "at most 1",
            "GEN-3, JL-L14",
        ),
        agrees_with_prediction(
            "exact predictions of the noise are met", "JL-L14", noise, ("line", "n")
        ),
        stays_below_prediction(
            "upper bounds are never exceeded", "JL-L13, JL-L13b", found[~exact], ("line", "n")
        ),
    ]


CHOSEN, RELEASED = "choice, predicted", "choice, measured"
PEER, CHANGE = "best peer, predicted", "another choice"


def plot(table: pd.DataFrame) -> Figure:
    """One panel a workload: the ratio to the best peer, named by what is advised."""
    lines = [line for line in LINES if line in set(table.line)]
    rows = (len(lines) + 1) // 2
    figure = Figure(figsize=(7.2, 1.9 * rows + 0.8))
    panels = figure.subplots(rows, 2, sharex=True, sharey=True, squeeze=False)
    for letter, axes, line in zip("abcdefgh", panels.flat, lines, strict=False):
        _panel(axes, table[table.line == line].sort_values("n"))
        axes.set_title(f"({letter}) {line}", fontsize=9)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_ylim(0.015, 12)
    for axes in panels[:, 0]:
        axes.set_ylabel("error / best peer")
    for axes in panels[-1]:
        axes.set_xlabel("number of records $n$")
    columns = {"errors": [CHOSEN, RELEASED], "beside them": [PEER, CHANGE]}
    shared_legend(figure, panels.flat, columns)
    return figure


def _panel(axes: Axes, table: pd.DataFrame) -> None:
    """One workload; the name of each choice stands at the first n where it is chosen."""
    axes.axhline(1, color="black", linewidth=0.8, label=PEER)
    axes.plot(table.n, table.predicted / table.peer, color="C0", label=CHOSEN)
    runs = [list(run) for _, run in groupby(range(len(table)), table.mechanism.iloc.__getitem__)]
    for position, run in enumerate(runs):
        first = table.n.iloc[run[0]]
        if position:
            axes.axvline(first, color="0.5", linewidth=0.8, linestyle=":", label=CHANGE)
        name = table.mechanism.iloc[run[0]].replace("(exact=True)", "")
        height = 6.0 / 2.0 ** (position % 3)
        text = axes.text(first * 1.1, height, name, fontsize=6.5, va="center")
        text.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 0.8})
    found = table[table.releases > 0]
    means = [mean for _, mean in pooled_by(found, ["n"]).items()]
    bands = np.array([mean.root_interval(BAND_LEVEL) for mean in means]).reshape(-1, 2)
    roots = np.array([mean.root for mean in means])
    peers = found.peer.to_numpy()
    reach = np.maximum(np.abs(bands.T - roots), 0) / peers
    axes.errorbar(found.n, roots / peers, yerr=reach, fmt="o", color="C1", ms=4, label=RELEASED)


def grid(lines: tuple[Line, ...], releases: int) -> tuple[Config, ...]:
    """All lines; the one whose noise takes seconds a draw has predictions only."""
    return tuple(Config(line, 0 if line is Line.HUNDRED else releases) for line in lines)


QUICK = Sweep(grid((Line.PREFIXES, Line.MOMENTS), 20), trials=1, seed=0)
FULL = Sweep(grid(LINES, 20), trials=1, seed=0)
