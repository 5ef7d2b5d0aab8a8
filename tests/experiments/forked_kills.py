"""Kill the trivial sweep several times, and print which cells are stored after each kill.

Usage: ``python -m tests.experiments.forked_kills STORE KILLS SEED``. Each kill prints one JSON
object, with the key "configuration hash trial" and the stored seconds for each stored cell. The
sweeps run in forks, so NumPy is imported only once. A test process has threads and must not fork,
so this is a separate program.
"""

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
from tests.experiments.sweep_program import CODE


def run_and_kill(path: Path, after: int, delay: float) -> None:
    """Run the sweep in a child, and kill the child `delay` seconds after `after` outcomes."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        with Store(path, CODE) as store:
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
    """Kill each run up to 5 ms after 0 to 9 outcomes, so 20 runs store about 115 of 200 cells."""
    chance, cells = random.Random(seed), trivial_sweep.SWEEP.cells()
    for _ in range(kills):
        run_and_kill(path, after=chance.randrange(10), delay=chance.uniform(0, 0.005))
        with Store(path, CODE) as store:
            stored = {
                f"{outcome.cell.configuration_hash} {outcome.cell.trial}": outcome.seconds
                for outcome in store.outcomes(cells)
            }
        print(json.dumps(stored), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
