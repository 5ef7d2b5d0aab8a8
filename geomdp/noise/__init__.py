"""Noise distributions on sums of answer vectors."""

from geomdp.noise.base import Noise
from geomdp.noise.cone import ConeNoise
from geomdp.noise.gaussian import GaussianNoise
from geomdp.noise.knorm import KNormNoise
from geomdp.noise.laplace import LaplaceNoise
from geomdp.noise.mapped import MappedNoise, Part
from geomdp.noise.paired import PairedNoise
from geomdp.noise.recursive import RecursiveNoise

__all__ = [
    "ConeNoise",
    "GaussianNoise",
    "KNormNoise",
    "LaplaceNoise",
    "MappedNoise",
    "Noise",
    "PairedNoise",
    "Part",
    "RecursiveNoise",
]
