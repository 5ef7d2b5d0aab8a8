"""Noise on sums of Chebyshev moments with its scale known: Laplace, Gaussian and K-norm."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp.geometry.results import Estimate
from geomdp.noise import KNormNoise
from geomdp.privacy import Exact, SamplerStatus


class CalibratedNoise(abc.ABC):
    """Noise on the sums of the t^d - 1 moments, of a known scale.

    Parameters
    ----------
    deviations : (m,) array
        Standard deviations, in units of sums.
    """

    deviations: FloatArray

    @property
    def sampler(self) -> SamplerStatus:
        """Exact, unless said otherwise."""
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


@dataclass(frozen=True, eq=False)
class ScaledLaplace(CalibratedNoise):
    """Independent Laplace noise.

    Parameters
    ----------
    scales : (m,) array
        Scales b_m, in units of sums; the variance is 2 b_m^2.
    """

    scales: FloatArray

    @property
    def deviations(self) -> FloatArray:  # type: ignore[override]
        """Standard deviations sqrt(2) b_m."""
        return math.sqrt(2) * self.scales

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Independent draws (size, m)."""
        return rng.laplace(0.0, self.scales, (size, len(self.scales)))


@dataclass(frozen=True, eq=False)
class ScaledGaussian(CalibratedNoise):
    """Independent Gaussian noise.

    Parameters
    ----------
    deviations : (m,) array
        Standard deviations, in units of sums.
    """

    deviations: FloatArray

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Independent draws (size, m)."""
        return rng.normal(0.0, self.deviations, (size, len(self.deviations)))


@dataclass(frozen=True, eq=False)
class ScaledBody(CalibratedNoise):
    """K-norm noise.

    Parameters
    ----------
    noise : KNormNoise
        On sums.
    """

    noise: KNormNoise

    @property
    def deviations(self) -> FloatArray:  # type: ignore[override]
        """Standard deviations, estimated from public draws unless the body has a closed form."""
        return np.sqrt(np.diag(self.noise.covariance()))

    @property
    def covariance(self) -> FloatArray:
        """Covariance (m, m), estimated from public draws unless the body has a closed form."""
        return self.noise.covariance()

    def second_moment(self) -> Estimate:
        """That of the K-norm noise, with a standard error unless the body has a closed form."""
        return self.noise.second_moment()

    @property
    def sampler(self) -> SamplerStatus:
        """That of the K-norm noise."""
        return self.noise.sampler

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draws (size, m), each the end of a Markov chain of its own."""
        return self.noise.sample(rng, size)
