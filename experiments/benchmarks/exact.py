"""Time of a release with correctly rounded noise, beside its float64 simulation and OpenDP.

Formula sheet X-GRID. An unseeded release draws its noise from bits of the operating system and
rounds it correctly, which keeps the privacy proof valid on a computer. A seeded release draws its
noise in float64. Both count the same 5000 records of binary columns and answer all tables of two
columns at epsilon = 1, or rho = 1/2 for Gaussian noise. OpenDP is given the same vector of counts
and adds scalar Laplace noise to each count. Answers of OpenDP are attacked in the way in which the
script `imperfect_noise` attacks ours. `Covariance` gets 5000 records in the unit ball, with the
same number of columns.

Claims: every release without a seed (exact) is correctly rounded. With noise on a grid, every
answer of OpenDP to a count of 0 could also come from a count of 1. Times are medians of processor
time. They are drawn, and no claim depends on them.
Run time on one core: quick 15 s, full 3 minutes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.benchmarks.geometry_work.instances import timed
from experiments.engine.script import Needs

NEEDS = Needs(("opendp",), extra="bench")
TIMED = "releases with exact and with float64 noise, and noise of OpenDP"
CLOCK = ("exact_ms", "seeded_ms", "peer_ms")
RECORDS, EPSILON = 5000, 1.0
#: The grid of measurements leaves out some mechanisms from or above this number of columns.
MANY_COLUMNS = 100
#: Number of scalar answers of OpenDP that are attacked. The noise on these answers is a multiple of
#: 2^-PEER_GRID.
ATTACKED, PEER_GRID = 100_000, 30


class Kind(ex.Curve):
    """Mechanisms, in the order of the legend."""

    LAPLACE = "Laplace", "C1", "o"
    CONE = "Cone", "C0", "D"
    MATRIX = "Matrix", "C2", "v"
    GAUSSIAN = "Gaussian", "C5", "s"
    COVARIANCE = "Covariance", "C4", "p"


@dataclass(frozen=True)
class Config:
    """One mechanism at one size."""

    kind: Kind  # The mechanism
    columns: int  # Number of columns: real ones for the covariance, binary ones for the others
    releases: int  # Releases behind each median


def mechanism_of(kind: Kind, columns: int) -> gd.mechanisms.Mechanism | gd.mechanisms.Covariance:
    """The mechanism at epsilon = 1, the Gaussian one at rho = epsilon^2 / 2."""
    if kind is Kind.COVARIANCE:
        moments = gd.workloads.SecondMoment(columns)
        return gd.mechanisms.Covariance(moments, n=RECORDS, privacy=gd.PureDP(EPSILON))
    workload = gd.workloads.MarginalTables([2] * columns, 2)
    if kind is Kind.GAUSSIAN:
        return gd.mechanisms.Gaussian(workload, n=RECORDS, privacy=gd.ZCDP(EPSILON**2 / 2))
    kinds = {
        Kind.LAPLACE: gd.mechanisms.Laplace,
        Kind.CONE: gd.mechanisms.Cone,
        Kind.MATRIX: gd.mechanisms.Matrix,
    }
    return kinds[kind](workload, n=RECORDS, privacy=gd.PureDP(EPSILON))


def milliseconds(action: Callable[[], object], times: int) -> float:
    """Median processor time of `action`, after one call that is not counted."""
    action()
    return 1000 * float(np.median([timed(action)[1] for _ in range(times)]))


def peer(sums: ex.FloatArray, scale: float) -> Callable[[], object]:
    """A function that adds OpenDP's Laplace noise to `sums` at each call."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
    measurement = dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=scale)
    values = sums.tolist()
    return lambda: measurement(values)


def out_of_reach(scale: float) -> int:
    """How many of OpenDP's 10^5 noisy answers to a count of 0 cannot come from a count of 1."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=ATTACKED)
    measurement = dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=scale, k=-PEER_GRID)
    steps = (np.array(measurement([0.0] * ATTACKED)) - 1) * 2.0**PEER_GRID
    return int((steps != np.rint(steps)).sum())


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Time exact and seeded releases, and OpenDP for Laplace noise."""
    mechanism = mechanism_of(config.kind, config.columns)
    workload = mechanism.workload
    records = workload.universe.sample(RECORDS, rng)
    mechanism.set_up()
    row: ex.Row = {
        "exact_ms": milliseconds(lambda: mechanism.release(records), config.releases),
        "seeded_ms": milliseconds(lambda: mechanism.release(records, rng=rng), config.releases),
        "peer_ms": None,
        "peer_out_of_reach": None,
        "grid": mechanism.grid,
    }
    if config.kind is Kind.LAPLACE:
        scale = workload.l1_diameter() / EPSILON
        sums = workload.totals(records).sums
        row["peer_ms"] = milliseconds(peer(sums, scale), config.releases)
        row["peer_out_of_reach"] = out_of_reach(scale)
    return row


def claims(table: pd.DataFrame) -> ex.Claims:
    outside = table.peer_out_of_reach.dropna()
    name = "every release without a seed was correctly rounded"
    measured = f"grids 2^-{int(table.grid.min())} to 2^-{int(table.grid.max())}"
    theory = "a grid for every mechanism"
    yield ex.Claim(name, ex.each_case((table.grid >= 0).all()), measured, theory, "X-GRID")
    yield ex.Claim(
        "with noise on a grid, every answer of OpenDP to a count of 0 could come from a count of 1",
        ex.each_case((outside == 0).all() and len(outside) > 0),
        f"{int(outside.sum())} of {len(outside) * ATTACKED} could not",
        "0",
        "X-GRID",
    )


LOOKS = Kind.looks()
PEER = "OpenDP"


def plot(table: pd.DataFrame) -> ex.Figure:
    xlabel = "columns"
    heights = ["time per release (ms)", "exact over seeded"]
    figure, (spent, times) = ex.panels((7.2, 3.6), ["time", "time over float64"], xlabel, heights)
    for kind, look in LOOKS.items():
        mine = table[table.kind == kind].sort_values("columns")
        ex.draw_points(spent, mine["columns"], mine.exact_ms, look, kind)
        ex.draw_points(times, mine["columns"], mine.exact_ms / mine.seeded_ms, look, kind)
    peers = table[table.kind == Kind.LAPLACE].sort_values("columns")
    hollow = ex.Look(ex.GREY, "^", filled=False)
    ex.draw_points(spent, peers["columns"], peers.peer_ms, hollow, PEER)
    ex.log_axes(spent)
    ex.log_axes(times, "x")
    times.set_ylim(bottom=0)
    for axes in (spent, times):
        ex.label_curves(axes)
    result = "Correct rounding costs a factor of at most three, except for covariances"
    settings = "All 2-way tables of binary columns, 5,000 records. OpenDP: Laplace noise alone."
    return ex.headline(figure, result, settings)


def grid(columns: tuple[int, ...], releases: int) -> tuple[Config, ...]:
    """All mechanisms at all sizes.

    Gaussian noise is timed only below 100 columns. From 100 columns on, the orthonormal basis that
    it needs for the span of the answers is too large. Covariances are timed up to 100 columns.
    """
    return tuple(
        Config(kind, count, releases)
        for count in columns
        for kind in Kind
        if (count < MANY_COLUMNS or kind is not Kind.GAUSSIAN)
        and (count <= MANY_COLUMNS or kind is not Kind.COVARIANCE)
    )


QUICK = ex.Sweep(grid((10, 30), 9))
FULL = ex.Sweep((*grid((10, 30, 100), 25), *grid((300,), 5)))
