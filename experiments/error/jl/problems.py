"""Workloads, mechanisms and worst-case data, to compare projection with and without a JL map."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import geomdp as gd
from experiments.shared import workloads as shared
from experiments.shared.workloads import Kind

PRIVACY = gd.PureDP(1.0)
#: Seed of the public map.
MAP_SEED = 0


class Family(enum.StrEnum):
    """Workloads, one panel each: three as they are, five stretched on purpose."""

    SIGNS = "signs"
    MARGINALS = "marginals"
    PARITIES = "parities"
    REPEATED = "repeated query"
    DECAYING = "decaying rows"
    LONG = "long query"
    GLUED = "glued blocks"
    NEEDLE = "needle"


class Noise(enum.StrEnum):
    """Noise with an exact sampler, added to the answers or to their images under a map."""

    KNORM = "K-norm"
    RECURSIVE = "recursive"


class Route(enum.StrEnum):
    """Projection alone, or a map before the noise, with one of three numbers of rows."""

    ALONE = "projection alone"
    THEOREM = "map of the theorem"
    QUARTER = "map of a quarter of its rows"
    AUTO = "map with the best prediction"


@cache
def workload(family: Family, size: int) -> gd.workloads.Workload:
    """The workload: `size` queries, or all 2-way marginals or 3-way parities of `size` attributes.

    Random signs have m = `size` queries (rows) on 4 m elements. Four families are stretched random
    signs. Repeated query: half of all rows are copies of the first. Decaying rows: row i is divided
    by i^(1/2). Long query: all rows but the first are divided by m^(1/2), so that the sum of their
    squared lengths is about the squared length of the first. Glued blocks: all rows but the first
    eighth are divided by m^(1/2), so that the body is long in m / 8 directions and short in the
    others. The needle is a ball of radius m^(-1/2) whose first semi-axis is stretched to length 1.
    """
    builders: dict[Family, Callable[[], gd.workloads.Workload]] = {
        Family.SIGNS: lambda: shared.workload(Kind.SIGNS, size, 4 * size),
        Family.MARGINALS: lambda: shared.workload(Kind.MARGINALS_2, size),
        Family.PARITIES: lambda: shared.workload(Kind.PARITIES_3, size),
        Family.REPEATED: lambda: repeated(size),
        Family.DECAYING: lambda: scaled_signs(1 / np.sqrt(np.arange(1, size + 1))),
        Family.LONG: lambda: scaled_signs(long_rows(size, 1)),
        Family.GLUED: lambda: scaled_signs(long_rows(size, size // 8)),
        Family.NEEDLE: lambda: gd.workloads.LinearMap(
            shared.workload(Kind.MEANS, size), np.diag(long_rows(size, 1))
        ),
    }
    return builders[family]()


def long_rows(m: int, count: int) -> npt.NDArray[np.float64]:
    """1 for the first `count` of m rows, m^(-1/2) for the others."""
    return np.where(np.arange(m) < count, 1.0, m**-0.5)


def scaled_signs(scales: npt.NDArray[np.float64]) -> gd.workloads.Workload:
    """Random signs, with row i multiplied by ``scales[i]``."""
    m = len(scales)
    matrix = shared.random_signs(m, 4 * m).matrix
    return gd.workloads.Explicit(scales[:, None] * matrix)


def repeated(m: int) -> gd.workloads.Workload:
    """Random signs; half of the m rows are copies of the first row."""
    matrix = shared.random_signs(m - m // 2, 4 * m).matrix
    return gd.workloads.Explicit(np.vstack([matrix, np.repeat(matrix[:1], m // 2, axis=0)]))


def elements(family: Family, size: int, count: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """`count` random elements; for the needle, each is one of its ends with probability 1/2."""
    if family is not Family.NEEDLE:
        return np.asarray(workload(family, size).universe.sample(count, rng))
    points = rng.standard_normal((count, size))
    points[rng.random(count) < 0.5, 1:] = 0
    # Rounding must not carry points out of the unit ball.
    return np.asarray(points / (np.linalg.norm(points, axis=1, keepdims=True) * (1 + 1e-12)))


def effective(family: Family, size: int) -> int:
    """Dimension of the affine hull of all answer vectors."""
    return int(workload(family, size).affine_hull().dimension)


@cache
def levels(family: Family, size: int) -> int:
    """Number of levels of recursive noise; with one level it is K-norm noise."""
    return len(gd.mechanisms.Recursive(workload(family, size), n=1, privacy=PRIVACY).noise.levels)


def noisy(family: Family, size: int, noise: Noise, n: int) -> gd.mechanisms.AdditiveMechanism:
    """Additive mechanism on n records."""
    Q = workload(family, size)
    if noise is Noise.KNORM:
        return gd.mechanisms.KNorm(Q, n=n, privacy=PRIVACY, exact=True)
    return gd.mechanisms.Recursive(Q, n=n, privacy=PRIVACY)


@cache
def built(family: Family, size: int, noise: Noise, route: Route, n: int) -> gd.mechanisms.Mechanism:
    """The mechanism of a route: noise, then projection, with or without a map before the noise.

    The theorem's map has ceil(epsilon n) rows. This number minimises the bound only up to
    constants, so two other numbers are tried: a quarter of it, and the number with the least
    predicted error. The theorem's number and its quarter are capped below the effective dimension.
    """
    inner = noisy(family, size, noise, n)
    if route is Route.ALONE:
        return gd.mechanisms.Projected(inner)
    if route is Route.AUTO:
        return gd.mechanisms.JL(inner, gd.mechanisms.AutoDimension(), rng=MAP_SEED)
    rows = PRIVACY.epsilon * n / (4 if route is Route.QUARTER else 1)
    below = effective(family, size) - 1
    return gd.mechanisms.JL(inner, min(math.ceil(rows), below), rng=MAP_SEED)


def squared_errors(
    M: gd.mechanisms.Mechanism, records: npt.NDArray[Any], rngs: list[np.random.Generator]
) -> npt.NDArray[np.float64]:
    """Mean squared error per query of one release for each generator."""
    truth = M.workload.answers(records)
    errors = [M.release(records, rng=rng).answers - truth for rng in rngs]
    return np.asarray([np.mean(error**2) for error in errors])


@dataclass(frozen=True)
class Judgement:
    """Error and mean of releases of one data set, with noise draws common to all data sets."""

    error: float  # Mean squared error per query
    answers: npt.NDArray[np.float64]  # Mean of the released answers (m,)


#: Number of releases that judge an exchange of `Search`. All exchanges are judged with the same
#: draws of noise.
JUDGES = 8
#: Seeds of the noise that judges exchanges, and of the noise that compares searches.
DURING, AFTER = range(JUDGES), range(JUDGES, 3 * JUDGES)
#: Number of elements among which a directed exchange chooses.
POOL = 64


def judged(M: gd.mechanisms.Mechanism, records: npt.NDArray[Any], seeds: range) -> Judgement:
    """Mean squared error and mean answers, with one release for each of the `seeds`."""
    answers = [M.release(records, rng=np.random.default_rng(seed)).answers for seed in seeds]
    off = np.asarray(answers) - M.workload.answers(records)
    return Judgement(float(np.mean(off**2)), np.mean(answers, axis=0))


@dataclass(frozen=True)
class Search:
    """A local search for the worst data, run `restarts` times; the worst result counts.

    An exchange replaces a share of the records by one new element, and is kept if this raises the
    error under common noise. Random and directed exchanges take turns. A random exchange draws the
    new element at random. A directed exchange takes, among 64 elements, the element whose answers
    are furthest from the mean of the releases. If the releases did not change, data at this element
    would have the largest error.
    """

    family: Family  # Workload
    size: int  # Size of the workload
    M: gd.mechanisms.Mechanism  # The mechanism that is attacked
    exchanges: int  # Number of exchanges tried from the worst start
    #: Independent searches. Their results are compared by noise that none of them has used.
    restarts: int

    def worst(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        """The n records with the largest error that the searches found."""
        found = [self._once(child) for child in rng.spawn(self.restarts)]
        return max(found, key=lambda records: judged(self.M, records, AFTER).error)

    def _once(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        records = max(self._starts(rng), key=lambda start: judged(self.M, start, DURING).error)
        worst = judged(self.M, records, DURING)
        for step in range(self.exchanges):
            moved = rng.random(self.M.n) < rng.choice([1 / self.M.n, 0.25, 0.5, 1.0])
            trial = records.copy()
            trial[moved] = self._element(worst if step % 2 else None, rng)
            found = judged(self.M, trial, DURING)
            if found.error > worst.error:
                worst, records = found, trial
        return records

    def _starts(self, rng: np.random.Generator) -> list[npt.NDArray[Any]]:
        n = self.M.n
        drawn = [elements(self.family, self.size, min(n, count), rng) for count in (1, 10, n)]
        return [np.resize(some, (n, *some.shape[1:])) for some in drawn]

    def _element(self, released: Judgement | None, rng: np.random.Generator) -> npt.NDArray[Any]:
        """A random element, or the element of a pool with answers furthest from the releases."""
        pool = elements(self.family, self.size, 1 if released is None else POOL, rng)
        if released is None:
            return np.asarray(pool[0])
        # For a release Y and the answers q of an element, E ||Y - q||^2 is ||q||^2 - 2 <E Y, q>
        # plus a constant.
        answers = self.M.workload.evaluate(pool)
        distance = (answers**2).sum(axis=1) - 2 * answers @ released.answers
        return np.asarray(pool[distance.argmax()])
