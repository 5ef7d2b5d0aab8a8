"""Strategies: what to measure so that a workload's answers follow with little error."""

from geomdp.mechanisms.strategies.choice import (
    best_design,
    hierarchical_strategies,
    laplace_strategies,
)
from geomdp.mechanisms.strategies.design import (
    CellNoise,
    Design,
    LaplaceCells,
    SimplexCells,
    Strategy,
)
from geomdp.mechanisms.strategies.listed import Haar, Tree
from geomdp.mechanisms.strategies.p_identity import PIdentity
from geomdp.mechanisms.strategies.soft_bins import SoftBins
from geomdp.mechanisms.strategies.tables import WeightedMarginals, WeightedSigns

__all__ = [
    "CellNoise",
    "Design",
    "Haar",
    "LaplaceCells",
    "PIdentity",
    "SimplexCells",
    "SoftBins",
    "Strategy",
    "Tree",
    "WeightedMarginals",
    "WeightedSigns",
    "best_design",
    "hierarchical_strategies",
    "laplace_strategies",
]
