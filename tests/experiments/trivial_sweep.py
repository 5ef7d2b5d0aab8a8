"""A sweep of many trivial cells, run as a program so that a test can kill it.

Usage: ``python -m tests.experiments.trivial_sweep STORE WORKERS``. WORKERS is a number of processes
or the address of a Dask scheduler. The program prints one line at the start and one line per stored
outcome. A line holds the ids of the program's own worker processes at that time. A configuration
that names a file in `deadly_without` kills its process, unless this file exists.
"""

import os
import signal
import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.engine.cells import Row, Sweep
from experiments.engine.processes import Processes
from experiments.engine.provenance import Code
from experiments.engine.run import Executor, run_sweep
from experiments.engine.store import Store


@dataclass(frozen=True)
class Config:
    n: int
    seconds: float = 0.0
    deadly_without: str = ""


#: Each cell takes 2 ms, because a shorter sweep could end before the last of twenty kills.
SWEEP = Sweep(tuple(Config(n, seconds=0.002) for n in range(50)), trials=4, seed=7)


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    time.sleep(config.seconds)
    if config.deadly_without and not Path(config.deadly_without).exists():
        os.kill(os.getpid(), signal.SIGKILL)
    return [{"draw": i, "value": config.n + rng.random()} for i in range(3)]


def code() -> Code:
    """The hashes that worker processes compute for this module."""
    from tests.experiments import trivial_sweep

    return Code.of(trivial_sweep)


def main(path: Path, workers: str) -> None:
    """Run the sweep with `compute` from the importable module, which workers can find by name."""
    from tests.experiments import trivial_sweep as module

    with ExitStack() as stack:
        store = stack.enter_context(Store(path, code()))
        executor: Executor
        if workers.isdigit():
            executor = stack.enter_context(Processes(int(workers)))
        else:
            from experiments.engine.cluster import DaskCluster  # slow to import

            executor = DaskCluster(workers)

        def tell(outcome: object) -> None:
            print(*getattr(executor, "identifiers", ()), flush=True)

        tell(None)
        run_sweep(module.compute, module.SWEEP, store, executor, tell)


if __name__ == "__main__":
    # A shell that starts tests in the background makes its children ignore Ctrl-C. Undo this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(Path(sys.argv[1]), sys.argv[2])
