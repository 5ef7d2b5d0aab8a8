"""Advised mechanisms against Laplace noise and the matrix mechanism: predicted errors.

Papers: Nikolov 2022 (arXiv 2208.07410), Lemmas 13 and 14; formula sheet JL-L13, JL-L13b, JL-L14.

Claim: for every workload and every number of records, the advisor chooses the mechanism with the
least predicted error, or the projection of this mechanism, which never errs more. There is one
exception: shrinkage that would gain less than 1% is left out. The figure shows the chosen
mechanism, and its error divided by the error of the best peer. The peers are independent Laplace
noise and the matrix mechanism. The choice depends on the number of records: with 100 records the
noise of all workloads but one is shrunk, and with many records it is projected, or left alone for
100 binary columns. Releases on uniform records, at two numbers of records, err at most as much as
predicted; the noise before projection or shrinkage errs exactly as much as predicted.

All noise has an exact sampler. Run time on one core: quick 4 s, full 55 s.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import geomdp as gd
from experiments.engine import margins
from experiments.engine.cells import Row, Sweep
from experiments.engine.checks import (
    agrees_with_prediction,
    predicted_columns,
    stays_below_prediction,
)
from experiments.engine.claims import Claim
from experiments.engine.drawing import BAND_LEVEL, Look, draw_intervals, draw_points, shared_legend
from experiments.engine.statistics import MeanSquare, pooled_by
from experiments.shared.workloads import Line, line_workload
from geomdp.advice.comparison import WORTHWHILE, rank, try_for_every_n
from geomdp.advice.setting import Setting
from geomdp.mechanisms.additive_noise.base import additive_within

PRIVACY = gd.PureDP(1.0)
#: Prefix of the columns about the noise before projection or shrinkage.
NOISE = "noise_"
#: Names of the mechanisms that users have without this library.
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
    """One workload of the figure."""

    line: Line  # Workload
    draws: int  # Releases at each n in `MEASURED`; 0 for none


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """The advised mechanism at every n, with its prediction; at `MEASURED` also releases."""
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
    """The name of a column about the noise, without the prefix `NOISE`."""
    return column.removeprefix(NOISE)


def measured(mechanism: gd.mechanisms.Mechanism, releases: int, rng: np.random.Generator) -> Row:
    """Mean squared error of releases on one set of uniform records; zeros without releases."""
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
    """Prediction and measurement for the additive noise of a mechanism; zeros if it has none."""
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
    """Compare the choice with all predictions and with peers. Compare predictions with releases."""
    # A projection never errs more than the noise before it, even if the bound on its error is
    # larger.
    noise_alone = table[f"{NOISE}predicted"].replace(0.0, np.inf)
    excess = float((np.minimum(table.predicted, noise_alone) / table.least).max())
    ratio = float((table.predicted / table.peer).max())
    found = table[table.releases > 0]
    exact = found.prediction == "exact"
    noise = found[["line", "n"]].join(found.filter(regex=f"^{NOISE}").rename(columns=unprefixed))
    noise = noise[(noise.releases > 0) & (noise.prediction == "exact")]
    return [
        Claim(
            "the predicted error of the advised mechanism is at most 1% above the least one",
            excess <= 1 + WORTHWHILE,
            f"the advised one is at most {excess - 1:.2%} above the least prediction, at "
            f"{len(table)} points",
            "at most 1%, the least gain that is worth a step after the noise",
            "JL-L13, JL-L14",
            used=margins.share(max(excess - 1, 0.0), WORTHWHILE),
        ),
        Claim(
            "no peer has a smaller predicted error than the advised mechanism",
            ratio <= 1,
            f"{(table.predicted / table.peer).min():.2g} to {ratio:.3f} times the error of the "
            "best peer",
            "at most 1",
            "GEN-3, JL-L14",
            used=ratio,
        ),
        agrees_with_prediction(
            "measured errors of additive noise agree with exact predictions",
            "JL-L14",
            noise,
            ("line", "n"),
        ),
        stays_below_prediction(
            "measured errors do not exceed predicted upper bounds beyond chance",
            "JL-L13, JL-L13b",
            found[~exact],
            ("line", "n"),
        ),
    ]


#: The step after the noise, by the first word of a mechanism's name, and the colours of the bars.
AFTER = {"Shrunk": "shrunk", "Projected": "projected", "": "noise alone"}
COLOURS = {"shrunk": "#56B4E9", "projected": "#E69F00", "noise alone": "#CFCFCF"}
FEW, MANY = "predicted, 100 records", "predicted, $10^6$ records"
RELEASES = {200: "measured, 200 records", 5000: "measured, 5000 records"}
LOOKS = {
    FEW: Look("C0", "o", filled=False),
    MANY: Look("C0", "o"),
    RELEASES[200]: Look("C3", "D", filled=False),
    RELEASES[5000]: Look("C3", "D"),
}


def plot(table: pd.DataFrame) -> Figure:
    """Draw, by workload, what is advised for each n and its error relative to the best peer."""
    lines = [line for line in LINES if line in set(table.line)]
    figure = Figure(figsize=(7.2, 2.0 + 0.42 * len(lines)))
    choices, errors = figure.subplots(1, 2, sharey=True, width_ratios=(1.3, 1))
    for height, line in enumerate(lines):
        mine = table[table.line == line].sort_values("n")
        draw_choices(choices, mine, height)
        draw_errors(errors, mine, height)
    choices.set_yticks(range(len(lines)), [line.replace(", ", ",\n", 1) for line in lines], size=8)
    choices.set(ylim=(len(lines) - 0.5, -0.5), xscale="log")
    choices.grid(visible=False)
    choices.set(xlabel="number of records $n$", title="(a) what is advised")
    errors.axvline(1, color="black", lw=0.8)
    errors.set_xscale("log")
    errors.set_xticks([0.02, 0.05, 0.1, 0.2, 0.5, 1], ["0.02", "0.05", "0.1", "0.2", "0.5", "1"])
    errors.minorticks_off()
    errors.set(xlabel="error over best peer's", title="(b) how much less it errs")
    columns = {"(a) after the noise": [*COLOURS], "(b) error of the choice": [*LOOKS]}
    shared_legend(figure, (choices, errors), columns)
    return figure


def draw_choices(axes: Axes, table: pd.DataFrame, height: int) -> None:
    """Draw a bar over n that names the noises; its colours show the step after the noise."""
    for label, colour in COLOURS.items():
        axes.fill_between([], [], [], color=colour, label=label)
    numbers = table.n.to_numpy(float)
    ends = np.append(numbers[1:], numbers[-1] * 1.3)
    parts = [re.sub(r"\(exact=True\)|\)", "", name).split("(") for name in table.mechanism]
    for start, end, part in zip(numbers, ends, parts, strict=True):
        after = AFTER[part[0] if len(part) > 1 else ""]
        axes.barh(height, end - start, left=start, height=0.62, color=COLOURS[after], lw=0)
    runs = [list(run) for _, run in groupby(range(len(parts)), lambda i: parts[i][-1])]
    for run in runs:
        first, last = numbers[run[0]], ends[run[-1]]
        axes.text(
            math.sqrt(first * last), height, parts[run[0]][-1], ha="center", va="center", size=8
        )
        axes.plot([first, first], [height - 0.31, height + 0.31], color="black", lw=0.8)


def draw_errors(axes: Axes, table: pd.DataFrame, height: int) -> None:
    """Draw errors over the best peer's: predicted at the least and the largest n, and measured."""
    ratio = table.predicted / table.peer
    axes.plot([ratio.iloc[0], ratio.iloc[-1]], [height - 0.15] * 2, color="C0", lw=1)
    for label, place in ((FEW, 0), (MANY, -1)):
        draw_points(axes, [ratio.iloc[place]], [height - 0.15], LOOKS[label], label, line="none")
    found = table[table.releases > 0].set_index("n")
    for (n,), mean in pooled_by(table[table.releases > 0], ["n"]).items():
        relative, label = mean.over(float(found.peer[n])), RELEASES[int(str(n))]
        interval = relative.root_interval(BAND_LEVEL)
        draw_intervals(axes, relative.root, interval, height + 0.17, LOOKS[label], label)


def grid(lines: tuple[Line, ...], releases: int) -> tuple[Config, ...]:
    """One point for each line. `Line.HUNDRED` has no releases, because a release takes seconds."""
    return tuple(Config(line, 0 if line is Line.HUNDRED else releases) for line in lines)


QUICK = Sweep(grid((Line.PREFIXES, Line.MOMENTS), 20))
FULL = Sweep(grid(LINES, 20))
