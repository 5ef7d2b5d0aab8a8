"""Speed of the geometry core: chords, samples, projections and widths beside named peers.

Every line of the benchmark solves the same instances with geomdp and, unless they are too large,
with peers, in one process, and compares the answers. The peers are linear programs for chords
(scipy's linprog, and HiGHS models that start from their last basis), quadprog on the dual form and
CVXPY with SCS for projections, hopsy for walks, hit-and-run for spectral draws, and a dense product
for widths (formula sheet X-RAY, X-MNP, X-LOCK, X-SPX). Vertices are Gaussian, or 0/1 answers to
marginal queries with ties and duplicates.

Claims: geomdp's certificates hold (the gauge is 1 at the ends of chords, projections have a
relative gap of at most 1e-12, every vertex is on one side of a separator), and every peer agrees.
For hit-and-run on spectral bodies only the time is measured. Speed is not claimed. It has goals,
which may be missed. Times are medians of processor seconds of one core. Most ratios to peers are
compared with goals, and all times of geomdp with physical limits that are measured in the same run.
For a single projection the limit is one pass over the vertices, for chords and samples one matrix
product per batch. For the width of 2-way marginals of d attributes, whose vertices are never
listed, the limit is one pass over the 2^d elements. The time of 4,096 directions at d = 24 is
extrapolated from 512 directions.

Run time on one core: quick 9 s, full 16 minutes.
"""

from __future__ import annotations

import os
import platform

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.table import Table

from experiments.benchmarks.geometry_work.goals import BOTH, KEYS, goals_of, ratios
from experiments.benchmarks.geometry_work.instances import GEOMDP, Config, Vertices, Work
from experiments.benchmarks.geometry_work.limits import limit_of
from experiments.engine import margins
from experiments.engine.cells import Row, Sweep
from experiments.engine.claims import Claim
from experiments.engine.drawing import Look, draw_points, shared_legend
from experiments.engine.goals import Goal
from experiments.engine.provenance import versions
from experiments.engine.script import Needs

TIMED = "chords, samples, projections and widths, and their peers"
CLOCK = ("seconds", "slowest", "limit_seconds")
NEEDS = Needs(("hopsy", "quadprog"), extra="bench")


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """Seconds per operation of every method, with certificates, disagreements and the limit."""
    # This import is local because the module imports the peers, which are not needed to draw a
    # stored table.
    from experiments.benchmarks.geometry_work.timers import TIMERS

    limit = limit_of(config, np.random.default_rng(0))
    columns = {"limit": limit.name, "limit_seconds": limit.seconds}
    return [{**row, **columns} for row in TIMERS[config.work](config, rng)]


def claims(table: pd.DataFrame) -> list[Claim]:
    """Certificates of geomdp and agreement of the peers, by kind of work."""
    found = []
    for own, name in (
        (True, "the certificates of our results hold"),
        (False, "the peers' results agree with ours"),
    ):
        for work, rows in table[(table.method == GEOMDP) == own].groupby("work", sort=False):
            shares = rows.disagreement - rows.allowed
            worst = rows.loc[shares.idxmax()]
            found.append(
                Claim(
                    f"{work}: {name}",
                    bool((rows.disagreement <= rows.allowed).all()),
                    f"{worst.disagreement:.2g} ({worst.method}, m = {worst.dimension})",
                    f"at most {worst.allowed:.2g}",
                    "X-RAY, X-MNP, X-LOCK, X-SPX",
                    used=margins.within_allowance(rows.disagreement, rows.allowed),
                )
            )
    return found


def goals(table: pd.DataFrame) -> list[Goal]:
    """Ratios to peers, rates and seconds, with the limits; only the full preset has goals."""
    return goals_of(table)


def report(table: pd.DataFrame) -> Table:
    """Every method's time, with ratios and goals, machine and versions."""
    software = ", ".join(f"{name} {version}" for name, version in versions().items())
    shown = Table(
        "work",
        "vertices",
        "(m, N)",
        "method",
        title=f"{platform.machine()}, {os.cpu_count()} cores; {software}",
    )
    for heading in ("seconds", "slowest", "over the limit", "ratio", "goal", "difference"):
        shown.add_column(heading, justify="right")
    compared = ratios(table)
    for _, row in table.iterrows():
        ratio = compared.ratio.get(row.name)
        goal = compared.goal.get(row.name)
        shown.add_row(
            row.work,
            row.vertices,
            f"({row.dimension}, {row['count'] or '-'})",
            row.method,
            f"{row.seconds:.3g}",
            f"{row.slowest:.3g}",
            f"{row.seconds / row.limit_seconds:,.3g}",
            "" if ratio is None else f"{ratio:,.3g}",
            "" if goal is None or np.isnan(goal) else f"{goal:,.3g}",
            f"{row.disagreement:.1e}",
        )
    return shown


#: Label of the goals in the legend.
AIMED_AT = "aimed at"


def plot(table: pd.DataFrame) -> Figure:
    """How many times faster geomdp is than the best method of each peer, and the goals."""
    compared = ratios(table)
    compared["peer"] = compared.method.str.split(",").str[0].str.split(" ").str[0]
    compared["line"] = [
        f"{row.work} ({row.dimension}, {row['count'] or '-'}): {row.peer}".replace(", -)", ")")
        for _, row in compared.iterrows()
    ]
    best = compared.loc[compared.groupby([*KEYS, "peer"], sort=False).ratio.idxmin()]
    lines = list(dict.fromkeys(best.line))
    figure = Figure(figsize=(7.2, 1.6 + 0.19 * len(lines)))
    axes = figure.subplots()
    for kind, look in LOOKS.items():
        rows = best[best.vertices == kind]
        if not rows.empty:
            heights = [len(lines) - lines.index(name) for name in rows.line]
            draw_points(axes, rows.ratio, heights, look, LABELS[kind], line="none")
    aimed = best.dropna(subset="goal")
    heights = [len(lines) - lines.index(name) for name in aimed.line]
    axes.plot(aimed.goal, heights, "|", color="black", markersize=11, label=AIMED_AT)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(lines), 0, -1), lines, fontsize=6)
    axes.grid(axis="y", linewidth=0.4)
    axes.set(xscale="log", xlabel="time of the peer over that of geomdp")
    figure.suptitle("Speed of the geometry core beside its peers, one core")
    kinds = [LABELS[kind] for kind in Vertices if (best.vertices == kind).any()]
    shared_legend(figure, [axes], {"measured": kinds, "goal": [AIMED_AT]})
    return figure


LOOKS = {
    Vertices.GAUSSIAN: Look("C0", "o"),
    Vertices.MARGINALS: Look("C1", "s", filled=False),
    Vertices.NONE: Look("C2", "D", filled=False),
}
LABELS = {
    Vertices.GAUSSIAN: "Gaussian vertices",
    Vertices.MARGINALS: "0/1 marginals with duplicates",
    Vertices.NONE: "no vertices",
}


def both(work: Work, dimension: int, count: int, operations: int, peers: int) -> list[Config]:
    """Two lines: one with Gaussian vertices and one with 0/1 marginals."""
    return [Config(work, kind, dimension, count, operations, peers) for kind in BOTH]


def alone(work: Work, dimension: int, count: int, operations: int, peers: int) -> Config:
    """A line of the benchmark on a body that is not given by vertices."""
    return Config(work, Vertices.NONE, dimension, count, operations, peers)


QUICK = Sweep(
    (
        *both(Work.CHORD, 6, 60, 3, 2),
        Config(Work.DRAW, Vertices.GAUSSIAN, 4, 30, 256, 2),
        alone(Work.BOX, 8, 0, 50, 300),
        alone(Work.POLYTOPE, 5, 30, 50, 300),
        alone(Work.STRETCHED, 5, 30, 50, 300),
        alone(Work.SPECTRAPLEX, 3, 0, 1000, 16),
        *both(Work.PROJECTION, 20, 200, 3, 1),
        *both(Work.FULL_SUPPORT, 20, 200, 2, 1),
        *both(Work.MANY, 20, 200, 1, 5),
        *both(Work.MEMBERSHIP, 10, 100, 4, 4),
        alone(Work.WIDTH, 8, 0, 64, 32),
    ),
    trials=1,
    seed=0,
)
FULL = Sweep(
    (
        *both(Work.CHORD, 10, 200, 100, 50),
        *both(Work.CHORD, 20, 1000, 20, 30),
        *both(Work.CHORD, 50, 2000, 4, 10),
        Config(Work.DRAW, Vertices.GAUSSIAN, 20, 1000, 2048, 30),
        alone(Work.BOX, 50, 0, 200, 5000),
        alone(Work.POLYTOPE, 20, 200, 200, 5000),
        alone(Work.STRETCHED, 20, 200, 200, 5000),
        alone(Work.SPECTRAPLEX, 10, 0, 10000, 32),
        alone(Work.SPECTRAPLEX, 20, 0, 5000, 16),
        alone(Work.SPECTRAPLEX, 50, 0, 1000, 8),
        alone(Work.SPECTRAPLEX_DIFFERENCE, 30, 0, 200, 8),
        *both(Work.PROJECTION, 50, 1000, 20, 5),
        *both(Work.PROJECTION, 200, 5000, 10, 3),
        *both(Work.PROJECTION, 500, 20000, 5, 1),
        *both(Work.FULL_SUPPORT, 200, 5000, 5, 3),
        *both(Work.MANY, 200, 5000, 1, 20),
        *both(Work.MEMBERSHIP, 200, 5000, 12, 4),
        Config(Work.LARGE, Vertices.GAUSSIAN, 500, 100_000, 3, 0),
        Config(Work.LARGE, Vertices.GAUSSIAN, 100, 1_000_000, 3, 0),
        alone(Work.WIDTH, 16, 0, 4096, 256),
        alone(Work.WIDTH, 20, 0, 4096, 0),
        alone(Work.WIDTH, 24, 0, 512, 0),
    ),
    trials=1,
    seed=0,
)
