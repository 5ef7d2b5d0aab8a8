"""Predicted errors of the matrix mechanism and of simpler strategies, for data with many columns.

The workload is all k-way tables of d columns, at epsilon = 1 under replace-one. Errors are
predicted, and nothing is released. `Matrix` measures tables of several sets of columns, with
optimised weights. Each simpler strategy adds Laplace noise to other measurements. The first
measures the table of all columns (identity). The second measures the table of each block of a
covering design: every set of k columns lies in a block, and all blocks get equal shares of the
budget. The third measures all tables of at most k columns; tables with the same number of columns
get the same share, and the shares are optimised. The fourth exists for tables of one or two binary
columns: it measures products of signs with the best weights.

Claim (formula sheet JL-SPLIT, GEN-3): for 16, 20 and 24 binary columns with k from 1 to 4, and for
mixed levels with k = 4, `Matrix` is never predicted to err more than the best simpler strategy. The
library searches for the covering designs, whose blocks have at most 2^20 cells.

Run time on one core: quick 1 s, full 2 minutes.
"""

from __future__ import annotations

import enum
import itertools
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.optimize import minimize

import experiments.engine.tools as ex
import geomdp as gd
from experiments.benchmarks.accuracy_work.predictions import joint_table_error
from experiments.shared.accuracy_lines import PRIVACY
from geomdp.mechanisms.strategies.design import covering_designs
from geomdp.mechanisms.strategies.tables import Interactions, WeightedSigns

#: Variance of Laplace noise on each cell of a table that gets the whole budget, epsilon = 1. A
#: record that is replaced moves two cells by 1, so the scale is 2.
VARIANCE = 8.0
#: Largest number of cells in the table of a block.
MOST_CELLS = 1 << 20
#: Largest relative difference, due to rounding, between predictions that are mathematically equal.
ROUNDING = 1e-9


class Levels(enum.StrEnum):
    """Numbers of levels of the columns, repeated until every column has one."""

    BINARY = "2"
    PAIRS = "2, 3"
    SIX = "2, 3, 4, 5, 2, 3"
    BLOCKS = "2, 2, 2, 4, 4, 4, 3, 3, 3, 2, 2, 2"


@dataclass(frozen=True)
class Config:
    """All k-way tables of some columns."""

    levels: Levels  # Levels of the columns
    columns: int  # Number d of columns
    width: int  # Number k of columns of a table


def compute(config: Config, _: np.random.Generator) -> ex.Row:
    """Predicted errors in counts."""
    cycle = [int(level) for level in config.levels.split(", ")]
    sizes = [cycle[i % len(cycle)] for i in range(config.columns)]
    Q = gd.workloads.MarginalTables(sizes, config.width)
    error = gd.mechanisms.Matrix(Q, n=1, privacy=PRIVACY).predicted_rmse.value
    simple = Simple.of(Q)
    known = {
        "identity": joint_table_error(Q),
        "covering": simple.covering(),
        "orders": simple.orders(),
        "signs": signs_error(Q),
    }
    # Strategies that do not exist for a workload have no number in its row.
    finite = {name: value for name, value in known.items() if math.isfinite(value)}
    return {"matrix": error, **finite}


def signs_error(workload: gd.workloads.MarginalTables) -> float:
    """Error in counts of weighted products of signs; infinite if the strategy does not exist."""
    if workload.k > 2 or set(workload.levels) != {2}:
        return math.inf
    strategy = WeightedSigns()
    M = gd.mechanisms.Matrix(workload, n=1, privacy=PRIVACY, strategy=strategy)
    return M.predicted_rmse.value


@dataclass(frozen=True)
class Simple:
    """Errors of simple strategies for all k-way tables, in counts at epsilon = 1.

    Let U be a subset of the columns S. The interaction of U is the part of the table of U that no
    smaller table determines. Noise of variance v on the cells of the table of S gives an estimate
    of this interaction. The variance of the estimate is v times the number of cells of S in each
    cell of U. Estimates from several tables are averaged with weights proportional to their
    precisions.
    """

    workload: gd.workloads.MarginalTables
    masks: np.ndarray[tuple[int], np.dtype[np.int64]]  # The sets U as bits, without the empty one
    #: For each U, the squared error (summed over the queries) if the estimate of its interaction
    #: has variance 1.
    costs: np.ndarray[tuple[int], np.dtype[np.float64]]

    @classmethod
    def of(cls, workload: gd.workloads.MarginalTables) -> Simple:
        """All interactions of a workload except the empty one, which is the number of records."""
        found = Interactions(workload)
        masks = np.array([_bits(U) for U in found.sets[1:]])
        return cls(workload, masks, found.costs[1:])

    def precisions(self, tables: list[tuple[int, ...]]) -> np.ndarray:
        """Precision of every interaction, if each of `tables` gets the whole budget."""
        levels, total = self.workload.levels, np.zeros(len(self.masks))
        inside = np.array([math.prod(self._levels(int(U))) for U in self.masks], dtype=float)
        for S in tables:
            held = (self.masks & ~_bits(S)) == 0
            total[held] += inside[held] / (VARIANCE * math.prod(levels[i] for i in S))
        return total

    def covering(self) -> float:
        """The least error of a covering design with equal shares; infinite if none is found."""
        Q = self.workload
        designs = covering_designs(Q.levels, Q.k, MOST_CELLS)
        squares = [
            float((self.costs / self.precisions(list(blocks))).sum()) * len(blocks) ** 2
            for blocks in designs
        ]
        return math.sqrt(min(squares, default=math.inf) / Q.n_queries)

    def orders(self) -> float:
        """The least error of tables of 1 to k columns, with one share per number of columns."""
        Q = self.workload
        every = [list(itertools.combinations(range(len(Q.levels)), j)) for j in range(1, Q.k + 1)]
        counts = np.array([len(tables) for tables in every])
        found = np.array([self.precisions(tables) for tables in every])

        def square(logs: np.ndarray) -> float:
            shares = np.exp(logs - logs.max())
            total = float((counts * shares).sum())
            return float((self.costs / (shares**2 @ found)).sum()) * total**2

        starts = [np.where(np.arange(Q.k) == Q.k - 1, 0.0, low) for low in (-9.0, -2.0, 0.0)]
        ends = [minimize(square, start, method="Nelder-Mead").fun for start in starts]
        return math.sqrt(min(ends) / Q.n_queries)

    def _levels(self, mask: int) -> list[int]:
        return [n for i, n in enumerate(self.workload.levels) if mask >> i & 1]


def _bits(columns: tuple[int, ...]) -> int:
    return sum(1 << i for i in columns)


SIMPLE = {
    "identity": "table of all columns",
    "covering": "covering design",
    "orders": "all tables of at most $k$ columns",
    "signs": "products of signs",
}


def claims(table: pd.DataFrame) -> ex.Claims:
    shares = table.matrix / table[[*SIMPLE]].min(axis=1)
    worst, best = table.loc[shares.idxmax()], table.loc[shares.idxmin()]
    name = "the matrix mechanism never has a larger predicted error than a simpler strategy"
    measured = (
        f"{len(table)} workloads, from {shares.min():.3f} ({_name(best)}) to "
        f"{shares.max():.4f} ({_name(worst)}) times the error of the best simpler one"
    )
    verdict = ex.Verdict((shares <= 1 + ROUNDING).all(), shares.max())
    yield ex.Claim(name, verdict, measured, "at most 1", "JL-SPLIT, GEN-3")


def _name(row: pd.Series) -> str:
    return f"d = {row['columns']}, k = {row.width}, {row.levels} levels"


LOOKS = {
    "identity": ex.Look("0.3", "s"),
    "covering": ex.Look(ex.GREY, "^"),
    "orders": ex.Look("0.3", "D", filled=False),
    "signs": ex.Look(ex.GREY, "v", filled=False),
}


def plot(table: pd.DataFrame) -> ex.Figure:
    figure = ex.Figure(figsize=(7.2, 1.6 + 0.27 * len(table)))
    axes = figure.subplots()
    heights = np.arange(len(table))
    for column, look in LOOKS.items():
        ratio = (table[column] / table.matrix).to_numpy()
        shown = np.isfinite(ratio)
        axes.plot(
            ratio[shown],
            heights[shown],
            look.marker,
            color=look.colour,
            fillstyle="full" if look.filled else "none",
            label=SIMPLE[column],
        )
    axes.axvline(1, color="C0", lw=1.4)
    ex.note(axes, (1, -0.6), "matrix mechanism", "C0", (3, 1), "left")
    names = [
        f"{'binary' if row.levels == '2' else 'mixed'}, $d={row.columns}$, $k={row.width}$"
        for row in table.itertuples()
    ]
    axes.set_yticks(heights, names)
    axes.set(ylim=(len(table) - 0.5, -1.5))
    ex.log_axes(axes, "x")
    axes.set_xlabel("predicted error over that of the matrix mechanism (RMSE)")
    return ex.headline(
        figure,
        "The matrix mechanism is never predicted to err more than simpler strategies",
        "All $k$-way tables of $d$ columns, 1-DP. Squares: table of all columns. Triangles:\n"
        "covering design. Diamonds: all tables of at most $k$ columns. Open: products of signs.",
    )


MIXED = ((Levels.PAIRS, 10), (Levels.SIX, 6), (Levels.BLOCKS, 12))
QUICK = ex.Sweep((*ex.product(Config, Levels.BINARY, (8, 16), 2), Config(Levels.SIX, 6, 4)))
FULL = ex.Sweep(
    (
        *ex.product(Config, Levels.BINARY, (16, 20, 24), (1, 2, 3, 4)),
        *(Config(levels, d, 4) for levels, d in MIXED),
    )
)
