"""Accuracy of pure-DP answers to all 2-way tables of ten binary columns, mechanism by mechanism.

Problem: 180 cells, n = 5000 records, epsilon = 1, replace-one neighbours for every mechanism. The
answer to a cell is its share of the records. Errors are root mean squares over the cells, with
standard errors over independent releases. Before projection the errors do not depend on the data.
Projection moves the noisy answers to the nearest point of the convex hull of the answers of single
records. The errors after projection are measured on subsamples of the RAND health insurance sample
and on uniform data.

Claims (formula sheet X-OUT, X-LKJ, JL-L13b, JL-L14, JL-L15): every measured error before projection
agrees with its prediction, and errors after projection stay below their bounds. Projection lowers
the error of Laplace noise. Before projection, exact K-norm noise errs less than Laplace noise.

Two errors before projection are known in closed form without the library. K-norm noise of the box
[-2, 2]^55 in the parity basis has the error (3/16 * 56 * 57 * 4/3)^(1/2) / 5000 = 0.00565. Noise of
the cone over the elliptope has the error (3/16 * 2128)^(1/2) / 5000 = 0.00399. The outer slab body
is an intersection of slabs that contains all differences of neighbours. A Markov chain samples it,
so its noise is heuristic, and no privacy is claimed for it.

Run time on one core: quick 9 s, full 3 minutes.
"""

import enum
import math
import time
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared.records import Data, Queries, draw_records, workload
from geomdp.geometry.outer_slabs import refine_slabs
from geomdp.workloads.structure import random_symmetry

RECORDS = 5000
PRIVACY = gd.PureDP(1.0)
WORKLOAD = workload(Queries.MARGINALS)
CLOCK = ("setup_seconds", "release_seconds")


class Family(enum.StrEnum):
    """Mechanisms, in the order of the figure."""

    CONE = "cone over the elliptope"
    SLABS = "K-norm, outer slab body"
    BOX = "K-norm, exact"
    ELLIPSOID = "ellipsoid"
    BALL = "ball"
    LAPLACE = "Laplace"


class Stage(ex.Curve):
    """Whether the error is measured before or after projection, and on which data."""

    BEFORE = "before projection", "C0", "o"
    REAL = "projected, real sample", "C2", "D", ex.HOLLOW
    UNIFORM = "projected, uniform data", "C4", "s", ex.HOLLOW


DATA = {Stage.BEFORE: Data.UNIFORM, Stage.REAL: Data.REAL, Stage.UNIFORM: Data.UNIFORM}


@dataclass(frozen=True)
class Config:
    family: Family
    releases_per_trial: int  # Independent releases in one trial
    slabs: int | None = None  # Number of slabs of the outer body; None for the other mechanisms


#: Seed of the slabs, which are public and the same in every trial.
SLAB_SEED = 0


def slab_body(slabs: int | None) -> gd.bodies.Body:
    """Outer slab body of the differences of neighbours, found with the symmetries of the tables."""
    refinement = refine_slabs(
        gd.bodies.neighbour_body(WORKLOAD, gd.Adjacency.REPLACE_ONE),
        slabs=slabs,
        directions=np.hstack([block.basis for block in WORKLOAD.blocks()]).T,
        symmetry=random_symmetry(WORKLOAD),
        rng=SLAB_SEED,
    )
    return refinement.body


def build(config: Config) -> gd.mechanisms.AdditiveMechanism:
    """The mechanism of a configuration. Some mechanisms do their set-up at their first use."""
    match config.family:
        case Family.CONE:
            return gd.mechanisms.Cone(WORKLOAD, n=RECORDS, privacy=PRIVACY)
        case Family.SLABS:
            body = slab_body(config.slabs)
            return gd.mechanisms.KNorm(WORKLOAD, n=RECORDS, privacy=PRIVACY, body=body)
        case Family.BOX:
            return gd.mechanisms.KNorm(WORKLOAD, n=RECORDS, privacy=PRIVACY, exact=True)
        case Family.ELLIPSOID:
            return gd.mechanisms.Ellipsoid(WORKLOAD, n=RECORDS, privacy=PRIVACY)
        case Family.BALL:
            return gd.mechanisms.Ball(WORKLOAD, n=RECORDS, privacy=PRIVACY)
        case Family.LAPLACE:
            return gd.mechanisms.Laplace(WORKLOAD, n=RECORDS, privacy=PRIVACY)


def compute(config: Config, rng: np.random.Generator) -> ex.Rows:
    """Errors before and after projection, with seconds of set-up and of one release."""
    start = time.perf_counter()
    inner = build(config)
    inner.release(draw_records(Queries.MARGINALS, Data.UNIFORM, RECORDS, rng), rng=rng)
    setup = time.perf_counter() - start
    projected = gd.mechanisms.Projected(inner)
    for stage, data in DATA.items():
        mechanism = inner if stage is Stage.BEFORE else projected
        squares, seconds = np.empty(config.releases_per_trial), 0.0
        for i in range(config.releases_per_trial):
            records = draw_records(Queries.MARGINALS, data, RECORDS, rng)
            truth = WORKLOAD.answers(records)
            start = time.perf_counter()
            answers = mechanism.release(records, rng=rng).answers
            seconds += time.perf_counter() - start
            squares[i] = np.mean((answers - truth) ** 2)
        yield {
            "stage": stage,
            **ex.MeanSquare.of(squares).columns(),
            **ex.predicted_columns(mechanism.predicted_rmse),
            "sampler": type(inner.guarantee.sampler).__name__.lower(),
            "setup_seconds": setup,
            "release_seconds": seconds / config.releases_per_trial,
        }


#: Errors before projection in closed form; see the docstring of this file.
CLOSED_FORMS = {
    # There are r = 55 parities. The noise of a parity has variance (r + 1) (r + 2) h^2 / 3 with the
    # box of half-width h = 2, and variance 8 (r + 1) (r + 2) / 12 with the cone. A cell of a table
    # is the signed mean of 4 parities, one of which is constant and needs no noise.
    Family.BOX: math.sqrt(3 / 16 * 56 * 57 * 4 / 3) / RECORDS,
    Family.CONE: math.sqrt(3 / 16 * 8 * 56 * 57 / 12) / RECORDS,
}
EXACT = [family for family in Family if family is not Family.SLABS]


def claims(table: pd.DataFrame) -> ex.Claims:
    before, after = table[table.stage == Stage.BEFORE], table[table.stage != Stage.BEFORE]
    means = ex.pooled_by(before, ["family"])
    projected = ex.pooled_by(after[after.family == Family.LAPLACE], ["stage"])
    name = "before projection, mechanisms with an exact sampler have the predicted error"
    yield ex.agrees_with_prediction(
        name, "JL-L14, JL-L15, JL-ELL, X-LKJ", before[before.family.isin(EXACT)], ["family"]
    )
    yield ex.agrees_with_prediction(
        "before projection, noise of the outer slab body has the error that other draws of its "
        "Markov chain predict",
        "X-OUT",
        before[before.family == Family.SLABS],
        ["family"],
    )
    yield from (
        closed_form(family, value, means[family,]) for family, value in CLOSED_FORMS.items()
    )
    name = "errors after projection stay below their bounds"
    yield ex.stays_below_prediction(name, "JL-L13b", after, ["family", "stage"])
    name = "projection lowers the error of Laplace noise"
    yield ex.is_below(name, "JL-L13b", projected, dict.fromkeys(projected, means[Family.LAPLACE,]))
    name = "before projection, exact K-norm noise errs less than Laplace noise"
    yield ex.is_below(name, "JL-L14", {(): means[Family.BOX,]}, {(): means[Family.LAPLACE,]})


def closed_form(family: Family, value: float, measured: ex.MeanSquare) -> ex.Claim:
    """The measured error equals a number that is known without the library."""
    score = ex.deviation(measured, value)
    allowed = ex.quantile(ex.LEVEL / 2, measured.count)
    name = f"{family}: the error agrees with its closed form"
    verdict = ex.at_most(abs(score), allowed)
    words = f"{measured.root:.5f} +- {measured.root_stderr:.5f} ({score:+.1f} standard errors)"
    theory = f"{value:.5f}"
    return ex.Claim(name, verdict, words, theory, "X-LKJ" if family is Family.CONE else "X-OUT")


LOOKS = Stage.looks()
#: Vertical distance between the intervals of one mechanism; mechanisms are 1 apart.
DODGE = 0.22
#: Errors labelled on the axis, in thousandths.
TICKS = (4, 5, 6, 8, 10, 15, 20, 25)


def plot(table: pd.DataFrame) -> ex.Figure:
    figure = ex.Figure(figsize=(7.2, 4.2))
    axes = figure.subplots()
    predicted = table[table.stage == Stage.BEFORE].groupby("family").predicted.first()
    families = [str(family) for family in predicted.sort_values(ascending=False).index]
    heights = np.arange(len(families))
    means = ex.pooled_by(table, ["stage", "family"])
    for line, (stage, look) in enumerate(LOOKS.items()):
        found = [means[stage, family] for family in families]
        roots = 1e3 * np.array([mean.root for mean in found])
        bands = 1e3 * np.array([mean.root_interval(ex.BAND_LEVEL) for mean in found])
        places = heights + DODGE * (1 - line)
        ex.draw_intervals(axes, roots, bands, places, look, "_")
        ex.note(axes, (roots[0], places[0]), stage, look.colour, (-9, 0), "right")
    known = 1e3 * predicted[families].to_numpy()
    axes.plot(known, heights + DODGE, "|", color="black", markersize=13)
    heuristic = set(table[table.sampler == "heuristic"].family)
    axes.set_yticks(
        heights,
        [f"{family}\n(heuristic)" if family in heuristic else family for family in families],
    )
    axes.set_xscale("log")
    axes.set_xticks(TICKS, [str(tick) for tick in TICKS])
    axes.minorticks_off()
    axes.set_xlabel("error per cell (RMSE of means, thousandths)")
    result = "Noise shaped like the body errs six times less than Laplace noise"
    settings = "All 2-way tables of ten binary columns, $n=5000$, 1-DP. Black bars: predicted."
    return ex.headline(figure, result, settings)


def sweep(releases: int, trials: int, slabs: int) -> ex.Sweep[Config]:
    """All mechanisms, with `slabs` slabs for the outer body."""
    return ex.Sweep(
        tuple(
            Config(family, releases, slabs if family is Family.SLABS else None) for family in Family
        ),
        trials,
    )


QUICK = sweep(releases=40, trials=1, slabs=60)
FULL = sweep(releases=1000, trials=1, slabs=2200)
