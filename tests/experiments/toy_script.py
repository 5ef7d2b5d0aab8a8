"""A toy script that computes squares of n, so that tests can run the engine up to a figure."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from rich.table import Table

from experiments.engine.cells import Row, Sweep
from experiments.engine.claims import Claim, below, each_case


@dataclass(frozen=True)
class Config:
    n: int


QUICK = Sweep(tuple(Config(n) for n in (1, 2, 3)), trials=2, seed=0)
FULL = Sweep(tuple(Config(n) for n in range(1, 11)), trials=2, seed=0)

#: Tests add values of n at which cells fail, or at which the user interrupts the sweep.
BROKEN: set[int] = set()
INTERRUPTED: set[int] = set()
#: Limit of the second claim.
LARGEST = 50


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    if config.n in BROKEN:
        raise RuntimeError(f"n = {config.n} broke")
    if config.n in INTERRUPTED:
        raise KeyboardInterrupt
    return [{"square": config.n**2, "noise": rng.random()}]


def plot(table: pd.DataFrame) -> Figure:
    figure = Figure(figsize=(3, 2))
    figure.subplots().plot(table.n, table.square, "o")
    return figure


def claims(table: pd.DataFrame) -> list[Claim]:
    largest = int(table.square.max())
    right = each_case((table.square == table.n**2).all())
    return [
        Claim("squares", right, "equal", "n^2", "TOY-1"),
        Claim("small", below(largest, LARGEST), str(largest), f"< {LARGEST}", "TOY-2"),
    ]


def report(table: pd.DataFrame) -> Table:
    shown = Table("n", "square")
    for row in table[table.trial == 0].itertuples():
        shown.add_row(str(row.n), str(row.square))
    return shown
