"""Run the trivial sweep as a program, so that a test can kill it.

Usage: ``python -m tests.experiments.sweep_program STORE WORKERS``. The program prints one line at
the start and one line per stored outcome. A line holds the ids of the program's own worker
processes at that time.
"""

import signal
import sys
from pathlib import Path

from experiments.engine.processes import Processes
from experiments.engine.provenance import Code
from experiments.engine.run import run_sweep
from experiments.engine.store import Store
from tests.experiments import trivial_sweep

#: The hashes that worker processes compute for the sweep.
CODE = Code.of(trivial_sweep)


def main(path: Path, workers: int) -> None:
    with Store(path, CODE) as store, Processes(workers) as processes:

        def tell(outcome: object) -> None:
            print(*processes.identifiers, flush=True)

        tell(None)
        run_sweep(trivial_sweep.compute, trivial_sweep.SWEEP, store, processes, tell)


if __name__ == "__main__":
    # A shell that starts tests in the background makes its children ignore Ctrl-C. Undo this.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(Path(sys.argv[1]), int(sys.argv[2]))
