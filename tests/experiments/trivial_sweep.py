"""A sweep of many trivial cells, run by `tests.experiments.sweep_program`.

It imports little of the engine, so that processes hash its code in no time. A configuration that
names a file in `deadly_without` kills its process, unless this file exists.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.engine.cells import Row, Sweep


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
