"""A sweep of many trivial cells, run as a program so that a test can kill it.

Usage: python -m tests.experiments.trivial_sweep STORE [WORKERS]; prints the process ids of its
workers and the trial of each outcome once it is stored. Configurations can be made to take their
process down: they kill it unless the file they name exists.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.engine.cells import Row, Sweep
from experiments.engine.processes import Processes
from experiments.engine.provenance import Code
from experiments.engine.run import in_process, run_sweep
from experiments.engine.store import Store


@dataclass(frozen=True)
class Config:
    n: int
    seconds: float = 0.0
    deadly_without: str = ""


SWEEP = Sweep(tuple(Config(n) for n in range(50)), trials=4, seed=7)


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    time.sleep(config.seconds)
    if config.deadly_without and not Path(config.deadly_without).exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return [{"draw": i, "value": config.n + rng.random()} for i in range(3)]


def code() -> Code:
    """The hashes that worker processes find themselves."""
    from tests.experiments import trivial_sweep

    return Code.of(trivial_sweep)


def main(path: Path, workers: int) -> None:
    """Run the sweep under the module's importable name, as workers must know it."""
    from tests.experiments import trivial_sweep as module

    with Store(path, code()) as store, Processes(workers) if workers else nullcontext() as pool:

        def tell(outcome: object) -> None:
            print(*(() if pool is None else pool.identifiers), flush=True)

        run_sweep(module.compute, module.SWEEP, store, pool or in_process, tell)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
