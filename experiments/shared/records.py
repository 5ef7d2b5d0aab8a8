"""Two workloads with records that are real, uniform, or copies of one, ten or all elements."""

import enum
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import geomdp as gd
from experiments.shared.rand_sample import real_sample
from experiments.shared.workloads import Line, line_workload

#: Number of elements in `Data.MIX`. The mean of their answers lies between a vertex and the centre
#: of the sensitivity polytope.
MIXED = 10


class Queries(enum.StrEnum):
    """Workloads: 180 cells over 1024 elements, and 200 sign queries over 1000."""

    MARGINALS = "2-way marginals"
    SIGNS = "random signs"


class Data(enum.StrEnum):
    """Where records come from, or where in the sensitivity polytope their mean answers lie."""

    REAL = "real sample"
    UNIFORM = "uniform data"
    VERTEX = "one element"
    MIX = "mix of ten elements"
    CENTRE = "all elements equally"


def workload(queries: Queries) -> gd.workloads.Workload:
    """The workload, one of the lines of the accuracy tables."""
    return line_workload(Line.BINARY if queries is Queries.MARGINALS else Line.SIGNS)


@cache
def dimension(queries: Queries) -> int:
    """Dimension of the space in which answers move: 55 and 200."""
    return int(workload(queries).affine_hull().dimension)


def draw_records(
    queries: Queries, data: Data, n: int, rng: np.random.Generator
) -> npt.NDArray[Any]:
    """The n records of one release, drawn anew each time; real records without replacement.

    `VERTEX`, `MIX` and `CENTRE` use 1, 10 and all elements, chosen at random. The numbers of
    records at two of these elements differ by at most one.
    """
    universe = workload(queries).universe
    if data is Data.REAL:
        sample = real_sample()
        return sample[rng.choice(len(sample), n, replace=False)]
    if data is Data.UNIFORM:
        return np.asarray(universe.sample(n, rng))
    elements = universe.elements(0, universe.size)
    distinct = {Data.VERTEX: 1, Data.MIX: MIXED, Data.CENTRE: len(elements)}[data]
    chosen = rng.choice(elements, distinct, replace=False)
    return np.resize(chosen, (n, *elements.shape[1:]))
