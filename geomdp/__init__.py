"""Convex optimisation and geometry in differential privacy.

A workload of statistical queries becomes a convex body, its sensitivity polytope; the geometry of
that body gives private mechanisms, their predicted errors, and bounds on what is possible.

The subpackages `workloads`, `bodies`, `geometry`, `noise`, `mechanisms`, `privacy`, `bounds`,
`advice`, `audit` and `data` hold everything; the names below are those used most.
"""

from geomdp import (
    advice,
    audit,
    bodies,
    bounds,
    data,
    geometry,
    mechanisms,
    noise,
    plotting,
    privacy,
    workloads,
)
from geomdp._version import __version__
from geomdp.advice import advise, sample_complexity_bracket
from geomdp.bodies import MissingOracle, difference_body, sensitivity_polytope
from geomdp.geometry import gaussian_width, jl_map, project, sample_uniform, volume
from geomdp.mechanisms import (
    AboveThreshold,
    IterativeConstruction,
    NumericSparse,
    OnlineConstruction,
    SmoothSummary,
    Sparse,
    SparseMultiplicativeWeights,
    SparseProject,
)
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, BudgetExhausted, Ledger, PureDP

__all__ = [
    "ZCDP",
    "AboveThreshold",
    "Adjacency",
    "ApproxDP",
    "BudgetExhausted",
    "IterativeConstruction",
    "Ledger",
    "MissingOracle",
    "NumericSparse",
    "OnlineConstruction",
    "PureDP",
    "SmoothSummary",
    "Sparse",
    "SparseMultiplicativeWeights",
    "SparseProject",
    "__version__",
    "advice",
    "advise",
    "audit",
    "bodies",
    "bounds",
    "data",
    "difference_body",
    "gaussian_width",
    "geometry",
    "jl_map",
    "mechanisms",
    "noise",
    "plotting",
    "privacy",
    "project",
    "sample_complexity_bracket",
    "sample_uniform",
    "sensitivity_polytope",
    "volume",
    "workloads",
]
