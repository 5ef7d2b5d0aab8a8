"""Kill the trivial sweep again and again, and say what each attempt left behind.

Usage: python -m tests.experiments.forked_kills STORE KILLS SEED; prints one JSON object per kill,
from (configuration hash, trial) to the seconds stored for the cell. Forks, which a test process
with its threads must not, and saves importing NumPy anew for every kill.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from experiments.engine.run import run_sweep
from experiments.engine.store import Store
from tests.experiments import trivial_sweep


def run_and_kill(path: Path, after: int, delay: float) -> None:
    """Run the sweep in a child and kill it `delay` seconds after its `after`-th outcome."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        with Store(path, trivial_sweep.code()) as store:
            run_sweep(
                trivial_sweep.compute,
                trivial_sweep.SWEEP,
                store,
                observe=lambda outcome: os.write(theirs, b"."),
            )
        os._exit(0)
    os.close(theirs)
    for _ in range(after):
        assert os.read(ours, 1), "the sweep ended before it could be killed"
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    os.close(ours)
    assert os.WIFSIGNALED(status), "the sweep ended before it was killed"


def main(path: Path, kills: int, seed: int) -> None:
    """Kill after 0 to 9 outcomes (some 115 of 200 on average over 20 kills) and up to 5 ms."""
    chance, cells = random.Random(seed), trivial_sweep.SWEEP.cells()
    for _ in range(kills):
        run_and_kill(path, after=chance.randrange(10), delay=chance.uniform(0, 0.005))
        with Store(path, trivial_sweep.code()) as store:
            stored = {
                f"{outcome.cell.configuration_hash} {outcome.cell.trial}": outcome.seconds
                for outcome in store.outcomes(cells)
            }
        print(json.dumps(stored), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
