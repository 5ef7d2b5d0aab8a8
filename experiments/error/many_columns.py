"""Tables of many columns under zCDP: Gaussian noise on residuals, for up to a hundred columns.

Paper: Xiao, He, Zhang and Kifer 2023 (ResidualPlanner); formula sheet X-RES, GEN-2.

Claim: the queries are all k-way tables of d binary columns. Measured errors agree with predictions.
Under add/remove the predicted error is ResidualPlanner's closed form. Under replace-one the
variances are optimised for the true sensitivity. The error then never exceeds the closed form
scaled to this sensitivity: it is up to 9% less for three-way tables, and equal for one-way
tables. For k = 2 and 3, equal noise on all answers (`Gaussian`) errs more from k + 2 columns on.
`Gaussian` cannot be set up for the 2-way or 3-way tables of a hundred columns.

With residual noise, all 3-way tables of 100 columns are set up and released in at most 8 GiB, for
binary columns and for columns of 2 to 6 levels. The noise is correctly rounded and uses randomness
of the operating system. Time and memory are measured in a separate process. A release holds all
answers. A table with labels is made only when a user asks for it.

Run time on one core: quick 2 s, full 3 minutes.
"""

import enum
import json
import math
import subprocess
import sys
import time
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.benchmarks.peaks import peak_mib

#: Number of records of one release, and its zCDP parameter rho.
N, RHO = 1000, 0.5
#: Largest relative difference allowed between the error of optimised noise and a known optimum.
SOLVED = 1e-6
#: GiB of memory allowed for the set-up and one release.
MEMORY = 8.0
CLOCK = ("setup_seconds", "release_seconds")


class Neighbours(enum.StrEnum):
    """The neighbour relation, in the order of the legend."""

    REPLACE_ONE = "replace-one"
    ADD_REMOVE = "add/remove"


class Levels(enum.StrEnum):
    """Numbers of levels of the columns. After the last number, the list starts again."""

    BINARY = "2"
    MIXED = "2, 3, 4, 5, 6"


@dataclass(frozen=True)
class Config:
    """One point of the figure, or one timed release."""

    neighbours: Neighbours  # Relation for which the noise is private
    columns: int  # Number d of columns
    width: int  # Number k of columns in each table
    draws: int  # Number of releases whose error is measured; 0 to time one release instead
    levels: Levels = Levels.BINARY  # `MIXED` only if a release is timed


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Measured and predicted errors and two closed forms; for 0 draws, times and memory."""
    if not config.draws:
        return timed(config)
    d, k = config.columns, config.width
    M = gd.mechanisms.ResidualGaussian(
        gd.workloads.MarginalTables([2] * d, k),
        n=N,
        privacy=gd.ZCDP(RHO),
        adjacency=gd.Adjacency(config.neighbours.value),
    )
    return {
        **ex.release_columns(M, rng.integers(0, 2, (N, d)), config.draws, rng),
        "closed_form": closed_form(d, k, config.neighbours) / N,
        "isotropic": isotropic(d, k, config.neighbours) / N,
    }


def timed(config: Config) -> ex.Row:
    """Seconds of set-up and of one unseeded release, and peak memory, in a separate process."""
    command = [sys.executable, "-m", "experiments.error.many_columns"]
    command += [config.neighbours, config.levels, str(config.columns), str(config.width)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed: {done.stderr}")
    found: ex.Row = json.loads(done.stdout)
    return found


def time_here(neighbours: str, levels: str, columns: int, width: int) -> ex.Row:
    """Seconds of set-up and of one release, and peak memory, measured in this process."""
    cycle = [int(level) for level in levels.split(", ")]
    sizes = [cycle[i % len(cycle)] for i in range(columns)]
    start = time.perf_counter()
    M = gd.mechanisms.ResidualGaussian(
        gd.workloads.MarginalTables(sizes, width),
        n=N,
        privacy=gd.ZCDP(RHO),
        adjacency=gd.Adjacency(neighbours),
    )
    predicted = ex.predicted_columns(M.predicted_rmse)
    set_up = time.perf_counter() - start
    records = np.random.default_rng(0).integers(0, sizes, (N, columns))
    start = time.perf_counter()
    release = M.release(records)
    return {
        **predicted,
        "answers": len(release.answers),
        "setup_seconds": set_up,
        "release_seconds": time.perf_counter() - start,
        "peak_gib": peak_mib() / 1024,
        "noise": str(release.guarantee),
    }


def closed_form(d: int, k: int, neighbours: Neighbours) -> float:
    """Error in counts with ResidualPlanner's noise variances, at the true sensitivity (X-RES).

    For a set of j columns, let p_j = 2^-j be the squared length of one record's residual, and v_j
    the variance that unit noise on this residual adds to all answers together. The precisions of
    the noise are proportional to sqrt(v_j / p_j). Take two records that differ in t columns, and a
    set A of columns. If the records differ in an odd number of columns of A, their residuals on A
    are at the squared distance 4 * 2^-|A|. If that number is even, the residuals are equal.
    """
    orders = range(k + 1)
    v = [math.comb(d - j, k - j) * 2.0**k * 2.0**-j * 4.0 ** (j - k) for j in orders]
    precisions = [math.sqrt(v[j] * 2.0**j) for j in orders]
    sets = [math.comb(d, j) for j in orders]
    cost = math.fsum(sets[j] * precisions[j] * 2.0**-j for j in orders)
    least = 0
    if neighbours is Neighbours.REPLACE_ONE:
        least = 1  # n is public, so the residual of the empty set of columns needs no noise
        cost = max(
            math.fsum(odd(d, t, j) * precisions[j] * 4 * 2.0**-j for j in orders)
            for t in range(d + 1)
        )
    energy = math.fsum(sets[j] * v[j] / precisions[j] for j in orders if j >= least)
    return math.sqrt(cost * energy / (2 * RHO) / (math.comb(d, k) * 2**k))


def odd(d: int, t: int, j: int) -> int:
    """Number of j-subsets of the d columns that contain an odd number of t given columns."""
    return sum(math.comb(t, e) * math.comb(d - t, j - e) for e in range(1, j + 1, 2))


def isotropic(d: int, k: int, neighbours: Neighbours) -> float:
    """Error in counts of equal noise in all directions in which answers differ."""
    replace_one = neighbours is Neighbours.REPLACE_ONE
    dimension = sum(math.comb(d, j) for j in range(1 if replace_one else 0, k + 1))
    tables = math.comb(d, k)
    squared = 2 * tables if replace_one else tables
    return math.sqrt(squared / (2 * RHO) * dimension / (tables * 2**k))


def claims(table: pd.DataFrame) -> ex.Claims:
    timings = table[table.draws == 0]
    table = table[table.draws > 0]
    added = table[table.neighbours == Neighbours.ADD_REMOVE]
    replaced = table[table.neighbours == Neighbours.REPLACE_ONE]
    off = float((added.predicted / added.closed_form - 1).abs().max())
    shares = replaced.predicted / replaced.closed_form
    three = shares[(replaced.width == 3) & (replaced["columns"] >= 10)]
    wide = table[(table.width > 1) & (table["columns"] >= table.width + 2)]
    behind = float((wide.isotropic / wide.predicted).min())
    equal = float((shares[replaced.width == 1] - 1).abs().max())
    name = "under add/remove, the error is that of ResidualPlanner's closed form"
    measured = f"relative difference {off:.1g} at most, over {len(added)} points"
    yield ex.Claim(name, ex.at_most(off, 1e-9), measured, "at most 1e-9", "X-RES")
    yield ex.Claim(
        "under replace-one, the error is at most the closed form at the true sensitivity",
        ex.at_most([shares.max(), three.min() / 0.93], 1 + 1e-9),
        f"at most {shares.max():.4f} of it; the least share for three-way tables is "
        f"{three.min():.3f}",
        "at most 1; the least share at most 0.93",
        "X-RES",
    )
    name = "for one-way tables under replace-one, the error equals that of the closed form"
    measured = f"off by {equal:.1g} at most, over {(replaced.width == 1).sum()} points"
    theory = f"at most {SOLVED:g}; squared errors are optimal up to 1e-7"
    yield ex.Claim(name, ex.at_most(equal, SOLVED), measured, theory, "X-RES")
    name = "releases have the predicted error"
    yield ex.agrees_with_prediction(name, "X-RES, GEN-2", table, ("neighbours", "width", "columns"))
    name = "for k = 2 and 3 and at least k + 2 columns, equal noise errs more than residual noise"
    measured = f"at least {behind:.3f} times the error of residual noise"
    yield ex.Claim(name, ex.above(behind, 1.01), measured, "above 1.01", "JL-GAUSS")
    yield from (is_practical(row) for _, row in timings.iterrows())


def is_practical(row: pd.Series) -> ex.Claim:
    """Claim that a set-up and a correctly rounded release keep within the memory allowed."""
    used = row.peak_gib / MEMORY
    return ex.Claim(
        f"{row['columns']} columns of {row.levels} levels, k = {row.width}, {row.neighbours}: "
        "set-up and a correctly rounded release keep within the memory allowed",
        ex.at_most(used, 1) & ex.each_case("correctly rounded" in row.noise),
        f"{row.peak_gib:.2g} GiB for {row.answers:,.0f} answers",
        f"at most {MEMORY:g} GiB",
        "X-RES, X-GRID",
    )


LOOKS = {1: ex.Look("C0", "o"), 2: ex.Look("C2", "s"), 3: ex.Look("C4", "^")}


def plot(table: pd.DataFrame) -> ex.Figure:
    table = table[table.draws > 0]
    figure = ex.Figure(figsize=(7.2, 3.6))
    panels = figure.subplots(1, 2, sharey=True)
    for axes, neighbours in zip(panels, Neighbours, strict=True):
        for width, look in LOOKS.items():
            mine = table[(table.neighbours == neighbours) & (table.width == width)]
            known = mine.groupby("columns")[["predicted", "isotropic"]].first() * N
            ex.draw_theory(axes, known.index, known.predicted, "black", "_")
            ex.draw_theory(axes, known.index, known.isotropic, ex.GREY, "_", (1, 2))
            means = {d: mean.over(1 / N) for d, mean in ex.pooled_along(mine, "columns").items()}
            ex.draw_measured(axes, means, look, f"all {width}-way tables", joined=False)
        ex.log_axes(axes)
        axes.set(xlabel="binary columns $d$", title=neighbours)
    panels[0].set_ylabel("error per cell in counts")
    ex.label_curves(panels[-1])
    return ex.headline(
        figure,
        "A hundred columns: the error of a cell grows slower than with equal noise",
        rf"zCDP, $\rho={RHO}$. Dashed: predicted before data; dotted: equal noise on all answers.",
    )


def grid(points: tuple[int, ...], cells: int) -> tuple[Config, ...]:
    """All relations, widths and numbers of columns. Cases with more answers get fewer releases."""
    return tuple(
        Config(neighbours, d, k, max(5, min(400, cells // (math.comb(d, k) * 2**k))))
        for neighbours in Neighbours
        for k in LOOKS
        for d in points
        if d >= k
    )


def large(*levels: Levels) -> tuple[Config, ...]:
    """All 3-way tables of 100 columns, to be timed."""
    return ex.product(Config, Neighbours, 100, 3, 0, levels)


QUICK = ex.Sweep((*grid((3, 12, 24), 5000), large(Levels.BINARY)[0]))
FULL = ex.Sweep((*grid((3, 4, 6, 8, 12, 16, 24, 36, 50, 70, 100), 2_000_000), *large(*Levels)))

if __name__ == "__main__":
    relation, cycle, *sizes = sys.argv[1:]
    print(json.dumps(time_here(relation, cycle, *map(int, sizes))))
