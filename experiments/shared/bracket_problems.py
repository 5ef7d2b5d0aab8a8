"""The questions of the table of brackets: eight workloads in two sizes, three kinds of error."""

from __future__ import annotations

import enum
from collections.abc import Callable

import geomdp as gd

wl = gd.workloads


class Queries(enum.StrEnum):
    """Workloads, from the top of the figure."""

    HISTOGRAM = "histogram"
    PREFIXES = "prefixes"
    RANGES = "ranges"
    MARGINALS_1 = "1-way marginals"
    MARGINALS_2 = "2-way marginals"
    PARITIES = "2-way parities"
    SIGNS = "random signs"
    MOMENTS = "second moments"


class Size(enum.StrEnum):
    """How large the workloads are."""

    SMALL = "small"
    STANDARD = "standard"


class Error(enum.StrEnum):
    """How the error is measured."""

    MEAN_L2 = "mean l2"
    RMS = "root mean square"
    WORST = "worst case"


BUILDERS: dict[Size, dict[Queries, Callable[[], wl.Workload]]] = {
    Size.SMALL: {
        Queries.HISTOGRAM: lambda: wl.Histogram(16),
        Queries.PREFIXES: lambda: wl.Prefixes(16),
        Queries.RANGES: lambda: wl.Ranges(6),
        Queries.MARGINALS_1: lambda: wl.Marginals(6, 1),
        Queries.MARGINALS_2: lambda: wl.Marginals(5, 2),
        Queries.PARITIES: lambda: wl.Parities(5, 2),
        Queries.SIGNS: lambda: wl.RandomSigns(10, 40, rng=0),
        Queries.MOMENTS: lambda: wl.SecondMoment(2),
    },
    Size.STANDARD: {
        Queries.HISTOGRAM: lambda: wl.Histogram(64),
        Queries.PREFIXES: lambda: wl.Prefixes(64),
        Queries.RANGES: lambda: wl.Ranges(16),
        Queries.MARGINALS_1: lambda: wl.Marginals(9, 1),
        Queries.MARGINALS_2: lambda: wl.Marginals(8, 2),
        Queries.PARITIES: lambda: wl.Parities(8, 2),
        Queries.SIGNS: lambda: wl.RandomSigns(30, 300, rng=0),
        Queries.MOMENTS: lambda: wl.SecondMoment(4),
    },
}
METRICS: dict[Error, gd.bounds.Metric] = {
    Error.MEAN_L2: gd.bounds.MeanL2(),
    Error.RMS: gd.bounds.RMS(),
    Error.WORST: gd.bounds.WorstCase(),
}
