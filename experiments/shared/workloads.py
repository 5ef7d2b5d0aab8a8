"""Workloads that scripts share: families with sizes, and the lines of the accuracy tables."""

import enum
from collections.abc import Callable, Mapping
from functools import cache

import geomdp as gd
from experiments.shared.rand_sample import SCHEMA

#: The signs are a part of the problem, so all scripts draw them with one public seed.
SIGNS_SEED = 0


class Kind(enum.StrEnum):
    """Families of workloads, with the names that the tables of the scripts store."""

    HISTOGRAM = "histogram"
    PREFIXES = "prefixes"
    RANGES = "ranges"
    MARGINALS_1 = "1-way marginals"
    MARGINALS_2 = "2-way marginals"
    MARGINALS_3 = "3-way marginals"
    PARITIES_1 = "1-way parities"
    PARITIES_2 = "2-way parities"
    PARITIES_3 = "3-way parities"
    PARITIES_4 = "4-way parities"
    SIGNS = "random signs"
    MEANS = "means in a ball"
    MOMENTS = "second moments"


def random_signs(queries: int, elements: int) -> gd.workloads.RandomSigns:
    """Random sign queries; for the same sizes they are the same in every script."""
    return gd.workloads.RandomSigns(queries, elements, rng=SIGNS_SEED)


#: How to build each family from its sizes. Histograms, prefixes and ranges take the size of the
#: universe. Random signs take the numbers of queries and of elements. All others take the number
#: of attributes or the dimension of a record.
FAMILIES: Mapping[Kind, Callable[..., gd.workloads.Workload]] = {
    Kind.HISTOGRAM: gd.workloads.Histogram,
    Kind.PREFIXES: gd.workloads.Prefixes,
    Kind.RANGES: gd.workloads.Ranges,
    Kind.MARGINALS_1: lambda d: gd.workloads.Marginals(d, 1),
    Kind.MARGINALS_2: lambda d: gd.workloads.Marginals(d, 2),
    Kind.MARGINALS_3: lambda d: gd.workloads.Marginals(d, 3),
    Kind.PARITIES_1: lambda d: gd.workloads.Parities(d, 1),
    Kind.PARITIES_2: lambda d: gd.workloads.Parities(d, 2),
    Kind.PARITIES_3: lambda d: gd.workloads.Parities(d, 3),
    Kind.PARITIES_4: lambda d: gd.workloads.Parities(d, 4),
    Kind.SIGNS: random_signs,
    Kind.MEANS: gd.workloads.Means,
    Kind.MOMENTS: gd.workloads.SecondMoment,
}


@cache
def workload(kind: Kind, *sizes: int) -> gd.workloads.Workload:
    """The workload of a family at its sizes; see `FAMILIES`."""
    return FAMILIES[kind](*sizes)


class Line(enum.StrEnum):
    """Workloads of fixed size, one line each in the tables that compare mechanisms."""

    BINARY = "2-way, 10 binary columns"
    FIVE_COLUMNS = "2-way, columns of 2 to 4 levels"
    CATEGORICAL = "2-way, 8 columns of 2 to 6 levels"
    THREE_WAY = "3-way, 8 binary columns"
    TWELVE = "3-way, 12 binary columns"
    SIXTEEN = "3-way, 16 binary columns"
    TWENTY = "3-way, 20 binary columns"
    FOUR_WAY = "4-way, 16 binary columns"
    HUNDRED = "2-way, 100 binary columns"
    FEW_COLUMNS = "2-way, 30 binary columns"
    PREFIXES = "prefix sums, N = 256"
    RANGES = "ranges, N = 64"
    SIGNS = "random signs, m = 200, N = 1000"
    MOMENTS = "second moments, d = 10"
    ONE_COUNT = "one counting query"


LINES: Mapping[Line, Callable[[], gd.workloads.Workload]] = {
    Line.BINARY: lambda: gd.workloads.MarginalTables(SCHEMA.levels, 2),
    Line.FIVE_COLUMNS: lambda: gd.workloads.MarginalTables([2, 3, 4, 2, 3], 2),
    Line.CATEGORICAL: lambda: gd.workloads.MarginalTables([2, 3, 4, 5, 6, 2, 3, 4], 2),
    Line.THREE_WAY: lambda: gd.workloads.MarginalTables([2] * 8, 3),
    Line.TWELVE: lambda: gd.workloads.MarginalTables([2] * 12, 3),
    Line.SIXTEEN: lambda: gd.workloads.MarginalTables([2] * 16, 3),
    Line.TWENTY: lambda: gd.workloads.MarginalTables([2] * 20, 3),
    Line.FOUR_WAY: lambda: gd.workloads.MarginalTables([2] * 16, 4),
    Line.HUNDRED: lambda: gd.workloads.MarginalTables([2] * 100, 2),
    Line.FEW_COLUMNS: lambda: gd.workloads.MarginalTables([2] * 30, 2),
    Line.PREFIXES: lambda: workload(Kind.PREFIXES, 256),
    Line.RANGES: lambda: workload(Kind.RANGES, 64),
    Line.SIGNS: lambda: workload(Kind.SIGNS, 200, 1000),
    Line.MOMENTS: lambda: workload(Kind.MOMENTS, 10),
    Line.ONE_COUNT: lambda: gd.workloads.Explicit([[0.0, 1.0]]),
}


@cache
def line_workload(line: Line) -> gd.workloads.Workload:
    """The workload of a line."""
    return LINES[line]()
