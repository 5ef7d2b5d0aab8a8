"""Problems that several scripts share: workloads, and records placed in various ways."""

from __future__ import annotations

import enum
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

import geomdp as gd

#: The ten columns of the RAND health insurance sample, two levels each. The cuts are public: any
#: visits to a doctor, any coinsurance, any incentive, any expenditure limit, physical limitation,
#: ten or more on the index of chronic diseases.
RAND_SCHEMA = gd.data.Schema(
    (
        gd.data.NumericColumn("mdvis", (0, 1, 100)),
        gd.data.NumericColumn("lncoins", (0, 2, 4.62)),
        gd.data.BooleanColumn("idp"),
        gd.data.NumericColumn("lpi", (0, 1, 8)),
        gd.data.NumericColumn("fmde", (0, 1, 9)),
        gd.data.NumericColumn("physlm", (0, 0.5, 1)),
        gd.data.NumericColumn("disea", (0, 10, 60)),
        gd.data.BooleanColumn("hlthg"),
        gd.data.BooleanColumn("hlthf"),
        gd.data.BooleanColumn("hlthp"),
    )
)
#: Elements of a mix: the second of three positions between a vertex and the centre.
MIXED = 10


class Queries(enum.StrEnum):
    """Workloads: 180 cells over 1024 elements, and 200 sign queries over 1000."""

    MARGINALS = "2-way marginals"
    SIGNS = "random signs"


class Data(enum.StrEnum):
    """Where the records come from, or where in the sensitivity polytope their answers lie."""

    REAL = "real sample"
    UNIFORM = "uniform data"
    VERTEX = "one element"
    MIX = "mix of ten elements"
    CENTRE = "all elements equally"


@cache
def workload(queries: Queries) -> gd.workloads.Workload:
    """The workload; which random signs is part of the problem, so their seed is fixed."""
    builders: dict[Queries, Callable[[], gd.workloads.Workload]] = {
        Queries.MARGINALS: lambda: gd.workloads.MarginalTables(RAND_SCHEMA.levels, k=2),
        Queries.SIGNS: lambda: gd.workloads.RandomSigns(200, 1000, rng=0),
    }
    return builders[queries]()


@cache
def dimension(queries: Queries) -> int:
    """Dimension of the space in which answers move: 55 and 200."""
    return int(workload(queries).affine_hull().dimension)


@cache
def real_sample() -> npt.NDArray[Any]:
    """All 20190 records of the real sample, encoded for the marginals: (20190, 10)."""
    frame = gd.data.rand_health_insurance().frame
    return np.concatenate([*gd.data.encode(frame, RAND_SCHEMA, RAND_SCHEMA.universe())])


def draw_records(
    queries: Queries, data: Data, n: int, rng: np.random.Generator
) -> npt.NDArray[Any]:
    """Records of one release (n, ...), drawn anew each time; the real sample without replacement.

    `VERTEX`, `MIX` and `CENTRE` use 1, 10 and all elements, chosen at random and as often as each
    other up to one.
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
