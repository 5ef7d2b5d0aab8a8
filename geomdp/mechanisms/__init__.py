"""Private mechanisms: each constructor states and makes one privacy claim."""

from geomdp.mechanisms.additive import AdditiveMechanism
from geomdp.mechanisms.ball import Ball
from geomdp.mechanisms.base import Mechanism, Prediction, PredictionKind, Release
from geomdp.mechanisms.cone import Cone
from geomdp.mechanisms.ellipsoid import Ellipsoid
from geomdp.mechanisms.gaussian import Gaussian
from geomdp.mechanisms.iterative import IterativeConstruction
from geomdp.mechanisms.jl import JL
from geomdp.mechanisms.knorm import KNorm
from geomdp.mechanisms.laplace import Laplace
from geomdp.mechanisms.online import OnlineConstruction
from geomdp.mechanisms.priors import FixedDataset, Prior, UniformPrior, predict_on_prior
from geomdp.mechanisms.projected import Projected
from geomdp.mechanisms.sparse_project import SparseProject
from geomdp.mechanisms.sparse_vector import AboveThreshold, NumericSparse, Sparse
from geomdp.mechanisms.updates import SparseMultiplicativeWeights

__all__ = [
    "JL",
    "AboveThreshold",
    "AdditiveMechanism",
    "Ball",
    "Cone",
    "Ellipsoid",
    "FixedDataset",
    "Gaussian",
    "IterativeConstruction",
    "KNorm",
    "Laplace",
    "Mechanism",
    "NumericSparse",
    "OnlineConstruction",
    "Prediction",
    "PredictionKind",
    "Prior",
    "Projected",
    "Release",
    "Sparse",
    "SparseMultiplicativeWeights",
    "SparseProject",
    "UniformPrior",
    "predict_on_prior",
]
