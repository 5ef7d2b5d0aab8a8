"""Universes and workloads of linear queries on them."""

from geomdp.workloads.base import Block, Totals, Workload
from geomdp.workloads.boolean import Marginals, Parities
from geomdp.workloads.enumeration import explicit_answers
from geomdp.workloads.explicit import Explicit, RandomSigns
from geomdp.workloads.finite import Histogram, Prefixes, Ranges
from geomdp.workloads.linear import LinearMap
from geomdp.workloads.second_moment import SecondMoment
from geomdp.workloads.tables import MarginalTables
from geomdp.workloads.universes import (
    BooleanCube,
    CategoricalProduct,
    FiniteUniverse,
    Records,
    SymmetricCube,
    UnitBall,
    Universe,
)

__all__ = [
    "Block",
    "BooleanCube",
    "CategoricalProduct",
    "Explicit",
    "FiniteUniverse",
    "Histogram",
    "LinearMap",
    "MarginalTables",
    "Marginals",
    "Parities",
    "Prefixes",
    "RandomSigns",
    "Ranges",
    "Records",
    "SecondMoment",
    "SymmetricCube",
    "Totals",
    "UnitBall",
    "Universe",
    "Workload",
    "explicit_answers",
]
