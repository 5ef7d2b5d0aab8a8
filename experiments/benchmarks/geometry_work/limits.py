"""Lower limits on the time of geometric operations, from a pass over the data or a product.

Any method that looks at N vertices of dimension m once reads N m numbers from memory. To price all
vertices for a batch of points means to compute the inner product of each vertex with one vector per
point. Any method that does this computes one matrix product. The width of the polytope of 2-way
marginals of d attributes is computed without a list of vertices. For this width, any method that
looks at all elements compares 2^d numbers. All limits are measured with NumPy, in the same run as
the times that are compared with them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments.benchmarks.geometry_work.instances import (
    CHAINS,
    LOCKSTEP,
    TARGETS,
    Array,
    Config,
    Work,
    timed,
)

#: A limit is the time of one operation (a product or a search for a maximum): the median over
#: REPETITIONS repetitions. A repetition does the operation at least once, and at most MOST_PRODUCTS
#: times, because even a small operation takes the time of a call of NumPy. Between these limits, a
#: repetition takes about OPERATIONS multiplications or comparisons (about 5 ms).
REPETITIONS, OPERATIONS, MOST_PRODUCTS = 3, 2 * 10**7, 1000
#: If a matrix has more entries than this number, only some of its rows, with this many entries in
#: all, are timed, and the time is scaled up. These entries take 80 MB, more than most caches hold.
MOST_ENTRIES = 10**7


@dataclass(frozen=True)
class Limit:
    """A lower limit on the time of one operation."""

    name: str  # The work that is done in this time
    seconds: float


def limit_of(config: Config, rng: np.random.Generator) -> Limit:
    """The limit on the time of the operation that a line of the benchmark measures."""
    return LIMITS[config.work](config, rng)


def seconds_of_product(rows: int, inner: int, batch: int, rng: np.random.Generator) -> float:
    """Processor seconds for one of the `batch` columns of a matrix product.

    The factors are a `rows` x `inner` matrix and an `inner` x `batch` matrix.
    """
    kept = min(rows, max(1, MOST_ENTRIES // inner))
    left, right = rng.standard_normal((kept, inner)), rng.standard_normal((inner, batch))
    return timed_product(left, right) / batch * rows / kept


def timed_product(left: Array, right: Array) -> float:
    """Median processor seconds of a product that is written to memory allocated before."""
    result = left @ right
    times = min(max(1, OPERATIONS // (result.size * left.shape[-1])), MOST_PRODUCTS)

    def repeat() -> None:
        for _ in range(times):
            np.matmul(left, right, out=result)

    return float(np.median([timed(repeat)[1] for _ in range(REPETITIONS)])) / times


def vertices_with_batch(batch: int) -> Callable[[Config, np.random.Generator], Limit]:
    """Limit of pricing all vertices for a batch of points, in seconds per point."""

    def limit(config: Config, rng: np.random.Generator) -> Limit:
        seconds = seconds_of_product(config.count, config.dimension, batch, rng)
        return Limit(f"one product of the vertices with {batch} points, per point", seconds)

    return limit


def one_pass(config: Config, rng: np.random.Generator) -> Limit:
    """Limit of reading all vertices once, for one product with a vector."""
    seconds = seconds_of_product(config.count, config.dimension, 1, rng)
    return Limit("one pass over the vertices", seconds)


def facets_with_batch(config: Config, rng: np.random.Generator) -> Limit:
    """Limit of computing the slacks of all facets for `LOCKSTEP` chains, in seconds per point."""
    facets = config.count or 2 * config.dimension
    seconds = seconds_of_product(facets, config.dimension, LOCKSTEP, rng)
    return Limit(f"one product of the facets with {LOCKSTEP} points, per point", seconds)


def square(config: Config, rng: np.random.Generator) -> Limit:
    """Limit of multiplying a d x (d + 1) matrix by its transpose, which gives a Wishart matrix."""
    d = config.dimension
    batch = rng.standard_normal((LOCKSTEP, d, d + 1))
    seconds = timed_product(batch, batch.transpose(0, 2, 1)) / LOCKSTEP
    return Limit("one product of a matrix with its transpose", seconds)


#: `one_look_at_elements` searches blocks of this many numbers. A block (512 kB) stays in the cache.
BLOCK = 1 << 16


def one_look_at_elements(config: Config, rng: np.random.Generator) -> Limit:
    """Limit of finding the largest of 2^d numbers, block by block, in seconds per direction.

    A method that compares the answers of all elements takes longer, because it must first compute
    these answers.
    """
    elements = 2**config.dimension
    block = rng.standard_normal(min(elements, BLOCK))
    times = min(max(1, OPERATIONS // len(block)), MOST_PRODUCTS)

    def repeat() -> None:
        for _ in range(times):
            block.max()

    seconds = float(np.median([timed(repeat)[1] for _ in range(REPETITIONS)])) / times
    return Limit("one pass over the 2^d elements per direction", seconds * elements / len(block))


LIMITS: dict[Work, Callable[[Config, np.random.Generator], Limit]] = {
    Work.CHORD: vertices_with_batch(CHAINS),
    Work.DRAW: vertices_with_batch(CHAINS),
    Work.BOX: facets_with_batch,
    Work.POLYTOPE: facets_with_batch,
    Work.STRETCHED: facets_with_batch,
    Work.SPECTRAPLEX: square,
    Work.SPECTRAPLEX_DIFFERENCE: square,
    Work.PROJECTION: one_pass,
    Work.FULL_SUPPORT: one_pass,
    Work.MANY: vertices_with_batch(TARGETS),
    Work.LARGE: one_pass,
    Work.MEMBERSHIP: one_pass,
    Work.WIDTH: one_look_at_elements,
}
