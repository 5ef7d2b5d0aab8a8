"""Projection under zCDP: Gaussian noise and the sensitivity polytope, without a random map.

Papers: Nikolov, Talwar and Zhang 2016; Nikolov 2022 (arXiv 2208.07410), Lemma 13 in its dual form.
Formula sheet JL-GAUSS, JL-L13b.

Claim: k queries with answers in [-1, 1] over N elements are asked of n records. Gaussian noise of
scale sigma = Delta_2 / sqrt(2 rho) is rho-zCDP, where Delta_2 is the l2 sensitivity of the mean
answers. Its root mean squared error per query is exactly sigma sqrt(r / k), where r is the
dimension of the affine hull of all answers. The point of the sensitivity polytope K nearest to the
noisy answers errs at most sqrt(sigma w(K) / k), where w(K) is the Gaussian width of K. This bound
is at most (2 sqrt(ln N / rho) / n)^(1/2). Where records are few, projection therefore turns the
rate 1 / n into 1 / sqrt(n), and the error grows with the universe as (ln N)^(1/4). No map to fewer
dimensions is needed, unlike in the theorem for pure privacy. The records are copies of one element,
or uniform on the universe.

Run time on one core: quick 2 s, full 1 minute.
"""

import enum
import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared import workloads as shared
from experiments.shared.workloads import Kind
from geomdp.bounds.upper.theorems import gaussian_projection

QUERIES = 200
RHO = 0.5
#: Number of elements of the universe in panel (a), and number of records in panel (b).
SIZE, RECORDS = 1000, 20
#: Up to this many records are called few. With so few records, projection lowers the error.
FEW = 200


class Family(ex.Curve):
    """Mechanism and data, in the order of the legend."""

    GAUSSIAN = "Gaussian noise", ex.GREY, "s"
    ONE = "projected, one element", "C2", "^", ex.HOLLOW
    UNIFORM = "projected, uniform data", "C0", "o"


PROJECTED = (Family.ONE, Family.UNIFORM)


class Panel(enum.StrEnum):
    """The quantity on the x axis of a panel."""

    RECORDS = "records"
    UNIVERSE = "universe"


@dataclass(frozen=True)
class Config:
    panel: Panel  # Panel that shows the point
    family: Family  # Mechanism and data
    n: int  # Number of records
    size: int  # Size N of the universe
    releases_per_trial: int  # Independent releases in one trial


@cache
def workload(size: int) -> gd.workloads.Workload:
    """`QUERIES` random sign queries on `size` elements."""
    return shared.workload(Kind.SIGNS, QUERIES, size)


@cache
def mechanism(projected: bool, n: int, size: int) -> gd.mechanisms.Mechanism:
    """Gaussian noise, projected or not, at budget RHO."""
    inner = gd.mechanisms.Gaussian(workload(size), n=n, privacy=gd.ZCDP(RHO))
    return gd.mechanisms.Projected(inner) if projected else inner


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean squared error per query over the releases of one trial, with prediction and bound."""
    M = mechanism(config.family in PROJECTED, config.n, config.size)
    elements = 1 if config.family is Family.ONE else config.size
    squares = []
    for _ in range(config.releases_per_trial):
        records = rng.choice(rng.choice(config.size, elements, replace=False), config.n)
        answers = M.release(records, rng=rng).answers
        squares.append(float(np.mean((answers - M.workload.answers(records)) ** 2)))
    return {
        **ex.MeanSquare.of(squares).columns(),
        **ex.predicted_columns(M.predicted_rmse),
        # The bound (2 sqrt(ln N / rho) / n)^(1/2) of JL-GAUSS on the error after projection.
        "closed": math.sqrt(gaussian_projection(config.size, rho=RHO, alpha=1.0) / config.n),
    }


POINT = ("panel", "family", "n", "size")


def claims(table: pd.DataFrame) -> ex.Claims:
    projected = table[table.family.isin(PROJECTED)]
    records = table[table.panel == Panel.RECORDS]
    few = records[records.n <= FEW]
    universe = table[table.panel == Panel.UNIVERSE].assign(logs=lambda rows: np.log(rows["size"]))
    pooled = {family: ex.pooled_by(few[few.family == family], ["n"]) for family in Family}
    gaussian = table[table.family == Family.GAUSSIAN]
    name = "Gaussian noise has the predicted error"
    yield ex.agrees_with_prediction(name, "JL-GAUSS", gaussian, POINT)
    name = "the error after projection stays below sqrt(sigma w / k)"
    yield ex.stays_below_prediction(name, "JL-L13b", projected, POINT)
    yield closed(projected)
    name = "with few uniform records, the error after projection falls nearly as n^(-1/2)"
    slopes = ex.slopes_by(few[few.family == Family.UNIFORM], ["family"], "n")
    yield ex.slopes_lie_within(name, "JL-GAUSS", slopes, -0.6, -0.45)
    name = "on uniform records, the error after projection grows as (ln N)^(1/4)"
    slopes = ex.slopes_by(universe[universe.family == Family.UNIFORM], ["family"], "logs")
    yield ex.slopes_are(name, "JL-GAUSS", slopes, 0.25, 0.2)
    name = "with few uniform records, projection lowers the error"
    yield ex.is_below(name, "JL-GAUSS", pooled[Family.UNIFORM], pooled[Family.GAUSSIAN])


def closed(projected: pd.DataFrame) -> ex.Claim:
    """Claim that predictions and upper ends of measured intervals are at most the closed bound."""
    means = ex.pooled_by(projected, POINT)
    bound = projected.groupby([*POINT]).closed.first()
    shares = {
        key: (mean.value + ex.quantile(ex.LEVEL / len(means), mean.count) * mean.stderr)
        / bound[key] ** 2
        for key, mean in means.items()
    }
    predicted = (projected.predicted / projected.closed).max()
    return ex.Claim(
        "measured and predicted errors after projection stay below (2 sqrt(ln N / rho) / n)^(1/2)",
        ex.at_most([math.sqrt(max(shares.values())), float(predicted)], 1),
        f"{len(means)} points, upper ends of measured errors at most "
        f"{math.sqrt(max(shares.values())):.3f} of it, predictions at most {predicted:.3f}",
        "at most 1",
        "JL-GAUSS",
    )


LOOKS = Family.looks()
EXACT = "exact"
DUAL = "bound by the width"
CLOSED = r"bound by $\ln N$"


def plot(table: pd.DataFrame) -> ex.Figure:
    titles = [f"{QUERIES} sign queries, $N={SIZE}$", f"$n={RECORDS}$"]
    labels = ["number of records $n$", "elements $N$"]
    ylabel = "error per query (RMSE)"
    figure, panels = ex.panels((7.2, 4.2), titles, labels, ylabel, sharey=True)
    for axes, panel, column in zip(panels, Panel, ("n", "size"), strict=True):
        draw(axes, table[table.panel == panel], column)
    ex.label_curves(panels[1], [*LOOKS, DUAL, CLOSED])
    return ex.headline(
        figure,
        r"At few records, projection turns a 1/n error into one of 1/$\mathbf{\sqrt{n}}$",
        r"zCDP. Black: predicted before any data. Records: copies of one element, or uniform.",
    )


def draw(axes: ex.Axes, rows: pd.DataFrame, column: str) -> None:
    """All curves of one panel with their bounds."""
    for family, look in LOOKS.items():
        mine = rows[rows.family == family]
        ex.draw_measured(
            axes, ex.pooled_along(mine, column), look, family, joined=family in PROJECTED
        )
    curves = (
        (Family.GAUSSIAN, "predicted", EXACT, (4, 2)),
        (Family.UNIFORM, "predicted", DUAL, (4, 1, 1, 1)),
        (Family.UNIFORM, "closed", CLOSED, (1, 2)),
    )
    for family, name, label, dashes in curves:
        theory = rows[rows.family == family].groupby(column)[name].first()
        ex.draw_theory(axes, theory.index, theory, "black", label, dashes)
    ex.log_axes(axes)


NS, SIZES = (20, 35, 60, 110, 200, 600, 2000, 6000, 20_000), tuple(2**k for k in range(6, 13))
QUICK = ex.Sweep(
    (
        *ex.product(Config, Panel.RECORDS, Family, (20, 200, 2000), SIZE, 30),
        *ex.product(Config, Panel.UNIVERSE, Family, RECORDS, (64, 1024), 60),
    )
)
FULL = ex.Sweep(
    (
        *ex.product(Config, Panel.RECORDS, Family, NS, SIZE, 100),
        *ex.product(Config, Panel.UNIVERSE, Family, RECORDS, SIZES, 100),
    ),
    trials=2,
)
