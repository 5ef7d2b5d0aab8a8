"""Private mechanisms: each constructor states and makes one privacy claim."""

from geomdp.mechanisms.additive import AdditiveMechanism
from geomdp.mechanisms.ball import Ball
from geomdp.mechanisms.base import Mechanism, Prediction, PredictionKind, Release
from geomdp.mechanisms.coarse import Coarse
from geomdp.mechanisms.cone import Cone
from geomdp.mechanisms.covariance import Covariance
from geomdp.mechanisms.distinguishers import AllParities, EnumeratedQueries
from geomdp.mechanisms.elements import DigestedElements, IntegerElements
from geomdp.mechanisms.ellipsoid import Ellipsoid
from geomdp.mechanisms.fitted import Fitted
from geomdp.mechanisms.gaussian import Gaussian
from geomdp.mechanisms.hierarchical import Hierarchical
from geomdp.mechanisms.iterative import IterativeConstruction, IterativeRelease
from geomdp.mechanisms.jl import JL, AutoDimension
from geomdp.mechanisms.knorm import KNorm
from geomdp.mechanisms.laplace import Laplace
from geomdp.mechanisms.matrix import Matrix
from geomdp.mechanisms.moment_projection import MomentProjection
from geomdp.mechanisms.online import OnlineConstruction
from geomdp.mechanisms.pair_marginals import PairMarginals
from geomdp.mechanisms.priors import FixedDataset, Prior, UniformPrior, predict_on_prior
from geomdp.mechanisms.projected import Projected
from geomdp.mechanisms.recursive import Recursive
from geomdp.mechanisms.second_moment import SecondMoment
from geomdp.mechanisms.shrunk import Shrunk
from geomdp.mechanisms.smooth import SmoothSummary
from geomdp.mechanisms.smooth_degree import DegreeRule, LeastPredictedError, TheoremDegree
from geomdp.mechanisms.smooth_noise import (
    MomentBodyNoise,
    MomentNoise,
    UniformGaussian,
    UniformLaplace,
    WeightedLaplace,
)
from geomdp.mechanisms.smooth_release import SmoothAnswer, SmoothRelease
from geomdp.mechanisms.sparse_project import GaussianRows, LaplaceRows, SparseProject
from geomdp.mechanisms.sparse_summary import SparseSummary
from geomdp.mechanisms.sparse_vector import (
    AboveThreshold,
    NumericSparse,
    PrintedNumericSparse,
    Sparse,
)
from geomdp.mechanisms.spectral import Spectral
from geomdp.mechanisms.tight_cone import TightCone
from geomdp.mechanisms.transcript import Answer, Transcript
from geomdp.mechanisms.updates import (
    Median,
    MultiplicativeWeights,
    Perceptron,
    SparseMultiplicativeWeights,
)

__all__ = [
    "JL",
    "AboveThreshold",
    "AdditiveMechanism",
    "AllParities",
    "Answer",
    "AutoDimension",
    "Ball",
    "Coarse",
    "Cone",
    "Covariance",
    "DegreeRule",
    "DigestedElements",
    "Ellipsoid",
    "EnumeratedQueries",
    "Fitted",
    "FixedDataset",
    "Gaussian",
    "GaussianRows",
    "Hierarchical",
    "IntegerElements",
    "IterativeConstruction",
    "IterativeRelease",
    "KNorm",
    "Laplace",
    "LaplaceRows",
    "LeastPredictedError",
    "Matrix",
    "Mechanism",
    "Median",
    "MomentBodyNoise",
    "MomentNoise",
    "MomentProjection",
    "MultiplicativeWeights",
    "NumericSparse",
    "OnlineConstruction",
    "PairMarginals",
    "Perceptron",
    "Prediction",
    "PredictionKind",
    "PrintedNumericSparse",
    "Prior",
    "Projected",
    "Recursive",
    "Release",
    "SecondMoment",
    "Shrunk",
    "SmoothAnswer",
    "SmoothRelease",
    "SmoothSummary",
    "Sparse",
    "SparseMultiplicativeWeights",
    "SparseProject",
    "SparseSummary",
    "Spectral",
    "TheoremDegree",
    "TightCone",
    "Transcript",
    "UniformGaussian",
    "UniformLaplace",
    "UniformPrior",
    "WeightedLaplace",
    "predict_on_prior",
]
