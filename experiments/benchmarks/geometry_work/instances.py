"""Instances of the geometry benchmark, and functions that time operations on them."""

import enum
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

import experiments.engine.tools as ex

T = TypeVar("T")

GEOMDP = "geomdp"
#: Number of chains of the hit-and-run walk whose chords are timed. The chords of all chains are
#: computed together, as in the samplers.
CHAINS = 64
#: Number of chains of a walk in a polytope with listed facets. All chains make each step together.
LOCKSTEP = 256
#: Number of points that are projected to the same body in `Work.MANY`.
TARGETS = 100
#: Largest number of directions in one dense product of the peer in `Work.WIDTH`.
DIRECTIONS = 16


class Work(enum.StrEnum):
    """The operation that is timed."""

    CHORD = "exact chord"
    DRAW = "effective K-norm draw"
    BOX = "effective sample, box"
    POLYTOPE = "effective sample, random polytope"
    STRETCHED = "effective sample, stretched polytope"
    SPECTRAPLEX = "uniform draw, spectraplex"
    SPECTRAPLEX_DIFFERENCE = "uniform draw, difference of the spectraplex"
    PROJECTION = "projection"
    FULL_SUPPORT = "projection, about m support vertices"
    MANY = "projection, one of 100 targets"
    LARGE = "projection, large"
    MEMBERSHIP = "membership with separator"
    WIDTH = "Gaussian width of 2-way marginals"


class Vertices(enum.StrEnum):
    """How the vertices of a body are drawn; NONE for a body that is not given by vertices."""

    GAUSSIAN = "Gaussian"
    MARGINALS = "0/1 marginals"
    NONE = "-"


@dataclass(frozen=True)
class Config:
    """One line of the benchmark: a problem, and how often each method solves it."""

    work: Work  # What is timed
    vertices: Vertices  # Kind of vertices
    #: Dimension m of the points; for matrices their order, for `Work.WIDTH` the number of
    #: attributes.
    dimension: int
    count: int  # Number of vertices or facets N; 0 where it does not apply
    operations: int  # Number of operations that geomdp performs
    peer_operations: int  # Number of operations of each peer; 0 leaves the peers out


def draw_vertices(config: Config, rng: np.random.Generator) -> ex.FloatArray:
    """N points in R^m as rows: Gaussian, or 0/1 answers of elements to m 2-way marginal queries.

    The queries are m pairs of attributes. The number of attributes is the smallest with m pairs.
    N elements are drawn from a pool of N / 2 elements, or of m + 1 if this is more. If the pool has
    N / 2 elements, most answer vectors occur more than once.
    """
    count, dimension = config.count, config.dimension
    if config.vertices is Vertices.GAUSSIAN:
        return rng.standard_normal((count, dimension))
    attributes = math.isqrt(2 * dimension) + 1
    while math.comb(attributes, 2) < dimension:
        attributes += 1
    pool = rng.integers(2, size=(max(count // 2, dimension + 1), attributes))
    elements = pool[rng.integers(len(pool), size=count)].astype(float)
    first, second = np.triu_indices(attributes, 1)
    return elements[:, first[:dimension]] * elements[:, second[:dimension]]


def timed(operation: Callable[[], T]) -> tuple[T, float]:
    """The result of `operation`, and the processor seconds that the call took."""
    start = time.process_time()
    result = operation()
    return result, time.process_time() - start


def line(
    method: str, seconds: Sequence[float], disagreement: float = 0.0, allowed: float = 0.0
) -> ex.Row:
    """One method's row: median seconds per operation, and how far its answer is from geomdp's.

    For geomdp itself, `disagreement` is a number computed from the certificate of the answer. If
    the certificate holds, this number is at most `allowed`.
    """
    return {
        "method": method,
        "seconds": float(np.median(seconds)),
        "slowest": float(np.max(seconds)),
        "repetitions": len(seconds),
        "disagreement": float(disagreement),
        "allowed": float(allowed),
    }
