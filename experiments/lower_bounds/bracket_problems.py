"""The problems of `bracket_table`: eight workloads in two sizes, three errors, three guarantees."""

from __future__ import annotations

import enum

import geomdp as gd
from experiments.shared.workloads import Kind


class Size(enum.StrEnum):
    """How large the workloads are."""

    SMALL = "small"
    STANDARD = "standard"


class Error(enum.StrEnum):
    """How the error is measured."""

    MEAN_L2 = "mean l2"
    RMS = "root mean square"
    WORST = "worst case"


class Guarantee(enum.StrEnum):
    """Which guarantee a mechanism must give; the parameters follow from one epsilon."""

    PURE = "pure"
    CONCENTRATED = "zero-concentrated"
    APPROXIMATE = "approximate"

    def privacy(self, epsilon: float) -> gd.privacy.Privacy:
        """epsilon-DP, or a weaker guarantee: (epsilon^2 / 2)-zCDP or (epsilon, 1e-6)-DP."""
        match self:
            case Guarantee.PURE:
                return gd.PureDP(epsilon)
            case Guarantee.CONCENTRATED:
                return gd.ZCDP(epsilon**2 / 2)
            case Guarantee.APPROXIMATE:
                return gd.ApproxDP(epsilon, DELTA)


#: delta of the approximate guarantee.
DELTA = 1e-6
#: Sizes of the workloads. The figure lists the workloads in this order, from top to bottom.
SIZES: dict[Size, dict[Kind, tuple[int, ...]]] = {
    Size.SMALL: {
        Kind.HISTOGRAM: (16,),
        Kind.PREFIXES: (16,),
        Kind.RANGES: (6,),
        Kind.MARGINALS_1: (6,),
        Kind.MARGINALS_2: (5,),
        Kind.PARITIES_2: (5,),
        Kind.SIGNS: (10, 40),
        Kind.MOMENTS: (2,),
    },
    Size.STANDARD: {
        Kind.HISTOGRAM: (64,),
        Kind.PREFIXES: (64,),
        Kind.RANGES: (16,),
        Kind.MARGINALS_1: (9,),
        Kind.MARGINALS_2: (8,),
        Kind.PARITIES_2: (8,),
        Kind.SIGNS: (30, 300),
        Kind.MOMENTS: (4,),
    },
}
QUERIES = tuple(SIZES[Size.STANDARD])
METRICS: dict[Error, gd.bounds.Metric] = {
    Error.MEAN_L2: gd.bounds.MeanL2(),
    Error.RMS: gd.bounds.RMS(),
    Error.WORST: gd.bounds.WorstCase(),
}
