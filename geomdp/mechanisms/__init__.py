"""Private mechanisms: each constructor states and makes one privacy claim."""

from geomdp.mechanisms.additive import AdditiveMechanism
from geomdp.mechanisms.ball import Ball
from geomdp.mechanisms.base import Mechanism, Prediction, PredictionKind, Release
from geomdp.mechanisms.ellipsoid import Ellipsoid
from geomdp.mechanisms.gaussian import Gaussian
from geomdp.mechanisms.jl import JL
from geomdp.mechanisms.laplace import Laplace
from geomdp.mechanisms.priors import FixedDataset, Prior, UniformPrior, predict_on_prior
from geomdp.mechanisms.projected import Projected

__all__ = [
    "JL",
    "AdditiveMechanism",
    "Ball",
    "Ellipsoid",
    "FixedDataset",
    "Gaussian",
    "Laplace",
    "Mechanism",
    "Prediction",
    "PredictionKind",
    "Prior",
    "Projected",
    "Release",
    "UniformPrior",
    "predict_on_prior",
]
