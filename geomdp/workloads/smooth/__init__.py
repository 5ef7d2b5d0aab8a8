"""Smooth queries on the cube: Chebyshev moments, and how queries are answered from them."""

from geomdp.workloads.smooth.closed_forms import (
    GaussianMixture,
    Logistic,
    Polynomial,
    SoftRange,
    Waves,
    query_from_dict,
)
from geomdp.workloads.smooth.evaluation import Coefficients, approximate, approximate_many
from geomdp.workloads.smooth.filters import Filter, Jackson, Shrinkage, Truncation
from geomdp.workloads.smooth.grids import Grid, TensorGrid
from geomdp.workloads.smooth.jackson import jackson_multiplier
from geomdp.workloads.smooth.moment_sums import MomentTransform
from geomdp.workloads.smooth.moments import moment_transform
from geomdp.workloads.smooth.queries import ClosedForm, SmoothQuery, StatedSmoothness
from geomdp.workloads.smooth.smooth_queries import SmoothQueries
from geomdp.workloads.smooth.sparse_grids import SparseGrid

__all__ = [
    "ClosedForm",
    "Coefficients",
    "Filter",
    "GaussianMixture",
    "Grid",
    "Jackson",
    "Logistic",
    "MomentTransform",
    "Polynomial",
    "Shrinkage",
    "SmoothQueries",
    "SmoothQuery",
    "SoftRange",
    "SparseGrid",
    "StatedSmoothness",
    "TensorGrid",
    "Truncation",
    "Waves",
    "approximate",
    "approximate_many",
    "jackson_multiplier",
    "moment_transform",
    "query_from_dict",
]
