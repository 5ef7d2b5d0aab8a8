"""A sweep of many trivial cells, run as a program so that a test can kill it.

Usage: python -m tests.experiments.trivial_sweep STORE; prints one line per stored outcome.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.engine.cells import Row, Sweep
from experiments.engine.provenance import Code
from experiments.engine.run import run_sweep
from experiments.engine.store import Store

CODE = Code(script="trivial", library="none")


@dataclass(frozen=True)
class Config:
    n: int


SWEEP = Sweep(tuple(Config(n) for n in range(60)), trials=5, seed=7)


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    return [{"draw": i, "value": config.n + rng.random()} for i in range(3)]


def main() -> None:
    with Store(Path(sys.argv[1]), CODE) as store:
        run_sweep(
            compute, SWEEP, store, observe=lambda outcome: print(outcome.cell.trial, flush=True)
        )


if __name__ == "__main__":
    main()
