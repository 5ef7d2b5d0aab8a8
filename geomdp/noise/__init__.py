"""Noise distributions on sums of answer vectors: Laplace, Gaussian and K-norm."""

from geomdp.noise.base import Noise
from geomdp.noise.gaussian import GaussianNoise
from geomdp.noise.knorm import KNormNoise
from geomdp.noise.laplace import LaplaceNoise

__all__ = ["GaussianNoise", "KNormNoise", "LaplaceNoise", "Noise"]
