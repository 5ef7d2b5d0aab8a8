"""Physical limits on the time of an operation, measured in the same run, and goals against them."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import experiments.engine.tools as ex
from experiments.benchmarks.geometry_work.instances import timed

#: From this share of a limit on, a line of a benchmark is done, whatever its ratio to a peer.
DONE = 0.5
#: A limit is the time of one operation: the median over REPETITIONS repetitions. A repetition does
#: the operation at least once, and at most MOST_PRODUCTS times, because even a small operation
#: takes the time of a call of NumPy. Between these limits, a repetition takes about OPERATIONS
#: multiplications or comparisons (about 5 ms).
REPETITIONS, OPERATIONS, MOST_PRODUCTS = 3, 2 * 10**7, 1000
#: If a matrix has more entries than this number, only some of its rows, with this many entries in
#: all, are timed, and the time is scaled up. These entries take 80 MB, more than most caches hold.
MOST_ENTRIES = 10**7
#: Numbers of a block that stays in the cache: 512 kB.
BLOCK = 1 << 16


@dataclass(frozen=True)
class Limit:
    """A lower limit on the time of one operation."""

    name: str  # The work that is done in this time
    seconds: float


def seconds_of(work: Callable[[], object], operations: int) -> float:
    """Median processor seconds of `work`, which does `operations` multiplications or the like."""
    times = min(max(1, OPERATIONS // operations), MOST_PRODUCTS)

    def repeat() -> None:
        for _ in range(times):
            work()

    return float(np.median([timed(repeat)[1] for _ in range(REPETITIONS)])) / times


def seconds_of_product(rows: int, inner: int, batch: int, rng: np.random.Generator) -> float:
    """Processor seconds for one of the `batch` columns of a matrix product."""
    kept = min(rows, max(1, MOST_ENTRIES // inner))
    left, right = rng.standard_normal((kept, inner)), rng.standard_normal((inner, batch))
    return timed_product(left, right) / batch * rows / kept


def timed_product(left: ex.FloatArray, right: ex.FloatArray) -> float:
    """Median processor seconds of a product that is written to memory allocated before."""
    result = left @ right
    return seconds_of(lambda: np.matmul(left, right, out=result), result.size * left.shape[-1])


def seconds_of_numbers(draw: Callable[..., object]) -> float:
    """Processor seconds of one random number, drawn into memory that stays in the cache."""
    block = np.empty(BLOCK)
    return seconds_of(lambda: draw(out=block), BLOCK) / BLOCK


def seconds_of_additions(count: int, rng: np.random.Generator) -> float:
    """Processor seconds of `count` additions, to sums and from a block that stay in the cache."""
    block = rng.standard_normal((max(1, BLOCK // count), count))
    ones = np.ones(len(block))
    return seconds_of(lambda: ones @ block, block.size) / len(block)


def rebased(ratio: ex.Goal, share: float, limit: str) -> ex.Goal:
    """The goal `ratio` if it is reached; otherwise the share of the limit, with the goal `DONE`."""
    if ratio.reached:
        words = f"{share:.2g} of the limit{' (done)' if share >= DONE else ''}: {limit}"
        return ex.Goal(ratio.name, ratio.measured, ratio.goal, ratio.aim, ratio.reason, words)
    name = f"{ratio.name}; the share of the limit"
    words = f"{ratio.measured:,.3g} ({ratio.aim} {ratio.goal:,.6g} was aimed at); limit: {limit}"
    return ex.Goal(name, share, DONE, ex.Aim.AT_LEAST, ratio.reason, words)
