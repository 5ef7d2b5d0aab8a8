"""Noise on sums of Chebyshev moments at a given scale: Laplace, Gaussian and K-norm."""

from __future__ import annotations

import abc
import math

import numpy as np

from geomdp._typing import FloatArray
from geomdp.geometry.results import Estimate
from geomdp.noise import KNormNoise
from geomdp.privacy import Exact, SamplerStatus


class CalibratedNoise(abc.ABC):
    """Noise on the sums of the m = t^d - 1 moments; independent and exact unless overridden."""

    #: Standard deviations (m,), in units of sums.
    deviations: FloatArray

    @property
    def sampler(self) -> SamplerStatus:
        """Status of the sampler."""
        return Exact()

    @property
    def covariance(self) -> FloatArray | None:
        """Covariance (m, m); None for independent coordinates."""
        return None

    def second_moment(self) -> Estimate:
        """E ||Z||_2^2."""
        return Estimate.exact(float(self.deviations @ self.deviations))

    @abc.abstractmethod
    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Independent draws (size, m)."""


class ScaledLaplace(CalibratedNoise):
    """Independent Laplace noise of `scales` b (m,), in units of sums; the variances are 2 b^2."""

    def __init__(self, scales: FloatArray) -> None:
        self.scales, self.deviations = scales, math.sqrt(2) * scales

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Independent draws (size, m)."""
        return rng.laplace(0.0, self.scales, (size, len(self.scales)))


class ScaledGaussian(CalibratedNoise):
    """Independent Gaussian noise of standard `deviations` (m,), in units of sums."""

    def __init__(self, deviations: FloatArray) -> None:
        self.deviations = deviations

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Independent draws (size, m)."""
        return rng.normal(0.0, self.deviations, (size, len(self.deviations)))


class ScaledBody(CalibratedNoise):
    """K-norm `noise` on sums; moments are estimated from public draws without a closed form."""

    def __init__(self, noise: KNormNoise) -> None:
        self.noise, self._covariance = noise, noise.covariance()
        self.deviations = np.sqrt(np.diag(self._covariance))

    @property
    def covariance(self) -> FloatArray:
        """Covariance (m, m)."""
        return self._covariance

    def second_moment(self) -> Estimate:
        """E ||Z||_2^2, with a standard error if it is estimated."""
        return self.noise.second_moment()

    @property
    def sampler(self) -> SamplerStatus:
        """That of the K-norm noise."""
        return self.noise.sampler

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draws (size, m), each the end of a Markov chain of its own."""
        return self.noise.sample(rng, size)
