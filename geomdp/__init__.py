"""Convex optimisation and geometry in differential privacy.

A workload of statistical queries becomes a convex body, its sensitivity polytope; the geometry of
that body gives private mechanisms, their predicted errors, and bounds on what is possible.

The subpackages `workloads`, `bodies`, `geometry`, `noise`, `mechanisms`, `privacy`, `bounds`,
`advice`, `audit` and `data` hold everything; the names below are those used most.
"""

from geomdp import advice, audit, bodies, data, geometry, mechanisms, noise, privacy, workloads
from geomdp._version import __version__
from geomdp.bodies import MissingOracle, difference_body, sensitivity_polytope
from geomdp.geometry.jl import jl_map
from geomdp.geometry.projection import project
from geomdp.geometry.sampling import sample_uniform
from geomdp.geometry.volume import volume
from geomdp.geometry.width import gaussian_width
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, BudgetExhausted, Ledger, PureDP

__all__ = [
    "ZCDP",
    "Adjacency",
    "ApproxDP",
    "BudgetExhausted",
    "Ledger",
    "MissingOracle",
    "PureDP",
    "__version__",
    "advice",
    "audit",
    "bodies",
    "data",
    "difference_body",
    "gaussian_width",
    "geometry",
    "jl_map",
    "mechanisms",
    "noise",
    "privacy",
    "project",
    "sample_uniform",
    "sensitivity_polytope",
    "volume",
    "workloads",
]
