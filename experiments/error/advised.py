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

import math
import re
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
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
    Line.BINARY, Line.FIVE_COLUMNS, Line.THREE_WAY, Line.HUNDRED, Line.PREFIXES, Line.RANGES,
    Line.SIGNS, Line.MOMENTS,
)  # fmt: skip


@dataclass(frozen=True)
class Config:
    """One workload of the figure."""

    line: Line  # Workload
    draws: int  # Releases at each n in `MEASURED`; 0 for none


def compute(config: Config, rng: np.random.Generator) -> ex.Rows:
    """The advised mechanism at every n, with its prediction; at `MEASURED` also releases."""
    Q = line_workload(config.line)
    setting = Setting(Q, NS[0], PRIVACY, gd.Adjacency.REPLACE_ONE, exact_only=True)
    trials = try_for_every_n(setting).built
    for n in NS:
        built = []
        for trial in trials:
            mechanism = trial.mechanism.with_n(n)
            built.append(replace(trial, mechanism=mechanism, prediction=mechanism.predicted_rmse))
        best, predicted = rank(built)[0], {t.name: t.prediction.value for t in built}
        yield {
            "n": n,
            "mechanism": best.name,
            "least": min(predicted.values()),
            "peer": min(value for name, value in predicted.items() if name in PEERS),
            **ex.predicted_columns(best.prediction),
            **measured(best.mechanism, config.draws if n in MEASURED else 0, rng),
            **noise_columns(best.mechanism, config.draws if n in MEASURED else 0, rng),
        }


def measured(mechanism: gd.mechanisms.Mechanism, releases: int, rng: np.random.Generator) -> ex.Row:
    """Mean squared error of releases on one set of uniform records; zeros without releases."""
    if not releases:
        return {"mean_square": 0.0, "mean_square_stderr": 0.0, "releases": 0}
    Q = mechanism.workload
    records = Q.universe.sample(mechanism.n, rng)
    truth = Q.answers(records)
    errors = [mechanism.release(records, rng=rng).answers - truth for _ in range(releases)]
    return ex.MeanSquare.of([float(np.mean(error**2)) for error in errors]).columns()


def noise_columns(
    mechanism: gd.mechanisms.Mechanism, releases: int, rng: np.random.Generator
) -> ex.Row:
    """Prediction and measurement for the additive noise of a mechanism; zeros if it has none."""
    noise = additive_within(mechanism)
    if noise is None:
        found: ex.Row = {
            "predicted": 0.0,
            "predicted_stderr": 0.0,
            "prediction": "",
            **measured(mechanism, 0, rng),
        }
    else:
        found = ex.predicted_columns(noise.predicted_rmse) | measured(noise, releases, rng)
    return {f"{NOISE}{name}": value for name, value in found.items()}


def claims(table: pd.DataFrame) -> ex.Claims:
    # A projection never errs more than the noise before it, even if the bound on its error is
    # larger.
    noise_alone = table[f"{NOISE}predicted"].replace(0.0, np.inf)
    excess = float((np.minimum(table.predicted, noise_alone) / table.least).max())
    ratio = float((table.predicted / table.peer).max())
    found = table[table.releases > 0]
    exact = found.prediction == "exact"
    of_noise = found.filter(regex=f"^{NOISE}").rename(columns=lambda name: name.removeprefix(NOISE))
    noise = found[["line", "n"]].join(of_noise)
    noise = noise[(noise.releases > 0) & (noise.prediction == "exact")]
    yield ex.Claim(
        "the predicted error of the advised mechanism is at most 1% above the least one",
        ex.Verdict(excess <= 1 + WORTHWHILE, ex.share(max(excess - 1, 0.0), WORTHWHILE)),
        f"the advised one is at most {excess - 1:.2%} above the least prediction, at "
        f"{len(table)} points",
        "at most 1%, the least gain that is worth a step after the noise",
        "JL-L13, JL-L14",
    )
    name = "no peer has a smaller predicted error than the advised mechanism"
    words = (
        f"{(table.predicted / table.peer).min():.2g} to {ratio:.3f} times the error of the "
        "best peer"
    )
    yield ex.Claim(name, ex.at_most(ratio, 1), words, "at most 1", "GEN-3, JL-L14")
    name = "measured errors of additive noise agree with exact predictions"
    yield ex.agrees_with_prediction(name, "JL-L14", noise, ("line", "n"))
    name = "measured errors do not exceed predicted upper bounds beyond chance"
    yield ex.stays_below_prediction(name, "JL-L13, JL-L13b", found[~exact], ("line", "n"))


#: The step after the noise, by the first word of a mechanism's name, and the colours of the bars.
AFTER = {"Shrunk": "shrunk", "Projected": "projected", "": "noise alone"}
COLOURS = {"shrunk": "#8CC6EE", "projected": "#8FCFB4", "noise alone": "#D4D4D4"}
FEW, MANY = "predicted, 100 records", "predicted, $10^6$ records"
RELEASES = {200: "measured, 200 records", 5000: "measured, 5000 records"}
LOOKS = {
    FEW: ex.Look("C0", "o", filled=False),
    MANY: ex.Look("C0", "o"),
    RELEASES[200]: ex.Look("C4", "D", filled=False),
    RELEASES[5000]: ex.Look("C4", "D"),
}


def plot(table: pd.DataFrame) -> ex.Figure:
    lines = [line for line in LINES if line in set(table.line)]
    titles = ["what is advised", "how much less it errs"]
    labels = ["number of records $n$", "error over best peer's"]
    figure, (choices, errors) = ex.panels(
        (7.2, 2.6 + 0.42 * len(lines)), titles, labels, sharey=True, width_ratios=(1.3, 1)
    )
    for height, line in enumerate(lines):
        mine = table[table.line == line].sort_values("n")
        draw_choices(choices, mine, height)
        draw_errors(errors, mine, height)
    choices.set_yticks(range(len(lines)), [line.replace(", ", ",\n", 1) for line in lines])
    choices.set(ylim=(len(lines) - 0.5, -0.5), xscale="log")
    choices.grid(visible=False)
    errors.axvline(1, color="black", lw=0.8)
    errors.set_xscale("log")
    errors.set_xticks(*ex.ticks(0.02, 0.05, 0.1, 0.2, 0.5, 1))
    errors.minorticks_off()
    columns = {"(a) after the noise": [*COLOURS], "(b) error of the choice": [*LOOKS]}
    ex.shared_legend(figure, columns)
    result = "The advised mechanism never errs more than the best peer, and often less"
    return ex.headline(figure, result, "1-DP. Peers: Laplace noise and the matrix mechanism.")


def draw_choices(axes: ex.Axes, table: pd.DataFrame, height: int) -> None:
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
            math.sqrt(first * last),
            height,
            parts[run[0]][-1],
            ha="center",
            va="center",
            size=ex.SMALL,
        )
        axes.plot([first, first], [height - 0.31, height + 0.31], color="black", lw=0.8)


def draw_errors(axes: ex.Axes, table: pd.DataFrame, height: int) -> None:
    """Draw errors over the best peer's: predicted at the least and the largest n, and measured."""
    ratio = table.predicted / table.peer
    axes.plot([ratio.iloc[0], ratio.iloc[-1]], [height - 0.15] * 2, color="C0", lw=1)
    for label, place in ((FEW, 0), (MANY, -1)):
        ex.draw_points(axes, [ratio.iloc[place]], [height - 0.15], LOOKS[label], label, line="none")
    found = table[table.releases > 0].set_index("n")
    for (n,), mean in ex.pooled_by(table[table.releases > 0], ["n"]).items():
        relative, label = mean.over(float(found.peer[n])), RELEASES[int(str(n))]
        interval = relative.root_interval(ex.BAND_LEVEL)
        ex.draw_intervals(axes, relative.root, interval, height + 0.17, LOOKS[label], label)


def grid(lines: tuple[Line, ...], releases: int) -> tuple[Config, ...]:
    """One point for each line. `Line.HUNDRED` has no releases, because a release takes seconds."""
    return tuple(Config(line, 0 if line is Line.HUNDRED else releases) for line in lines)


QUICK = ex.Sweep(grid((Line.PREFIXES, Line.MOMENTS), 20))
FULL = ex.Sweep(grid(LINES, 20))
