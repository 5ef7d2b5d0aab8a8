"""Universes and workloads of linear queries on them."""

from geomdp.workloads.base import Block, Totals, Workload, WorkloadSizeError
from geomdp.workloads.boolean import Marginals, Parities
from geomdp.workloads.box_second_moment import BoxSecondMoment
from geomdp.workloads.coarsened import Coarsened
from geomdp.workloads.enumeration import explicit_answers
from geomdp.workloads.explicit import Explicit, RandomSigns
from geomdp.workloads.finite import Histogram, Prefixes, Ranges
from geomdp.workloads.linear import LinearMap
from geomdp.workloads.means import Means
from geomdp.workloads.open_universe import OpenUniverse
from geomdp.workloads.second_moment import SecondMoment
from geomdp.workloads.single_query import DenseQuery, SparseQuery, conjunction, conjunctions
from geomdp.workloads.smooth import SmoothQueries
from geomdp.workloads.sparse_queries import SparseQueries
from geomdp.workloads.symmetries import random_symmetry
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
    "BoxSecondMoment",
    "CategoricalProduct",
    "Coarsened",
    "DenseQuery",
    "Explicit",
    "FiniteUniverse",
    "Histogram",
    "LinearMap",
    "MarginalTables",
    "Marginals",
    "Means",
    "OpenUniverse",
    "Parities",
    "Prefixes",
    "RandomSigns",
    "Ranges",
    "Records",
    "SecondMoment",
    "SmoothQueries",
    "SparseQueries",
    "SparseQuery",
    "SymmetricCube",
    "Totals",
    "UnitBall",
    "Universe",
    "Workload",
    "WorkloadSizeError",
    "conjunction",
    "conjunctions",
    "explicit_answers",
    "random_symmetry",
]
