"""The protocol of noise distributions: the methods that every noise has."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from geomdp._typing import FloatArray
from geomdp.geometry.projection import Estimate
from geomdp.privacy import Approximate, Exact, Heuristic
from geomdp.privacy.guarantees import SamplerStatus


@runtime_checkable
class Noise(Protocol):
    """A mean-zero distribution on R^m, added to the sum (not the mean) of answer vectors.

    Noise on sums does not depend on the number n of records; a mechanism divides the noisy sums by
    n at release. Constructors raise ``ValueError`` for arguments outside the ranges that they
    state.

    `log_density` exists, too, in `LaplaceNoise`, `GaussianNoise`, `KNormNoise` and
    `RecursiveNoise`; it raises an error without a closed form.

    Examples
    --------
    >>> import geomdp as gd
    >>> isinstance(gd.noise.LaplaceNoise(dimension=2, scale=1.0), gd.noise.Noise)
    True
    """

    @property
    def dimension(self) -> int:
        """Dimension m of the answer space."""

    @property
    def sampler(self) -> SamplerStatus:
        """How exactly draws follow the distribution: `Exact`, `Approximate` or `Heuristic`."""

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Independent draws (size, m)."""

    def covariance(self) -> FloatArray:
        """Covariance matrix (m, m), exact or estimated."""

    def variances(self) -> FloatArray:
        """Variance of each coordinate (m,): the diagonal of `covariance`, without the matrix."""

    def second_moment(self) -> Estimate:
        """E ||Z||_2^2, the trace of the covariance, exact (stderr 0) or estimated."""


@runtime_checkable
class KnownSizes(Noise, Protocol):
    """A noise with closed forms or bounds for E |Z_i| and E ||Z||_2: draws miss rare values."""

    def mean_sizes(self) -> FloatArray:
        """E |Z_i| for each coordinate i, or upper bounds on these means: (m,)."""

    def mean_length(self) -> float:
        """An upper bound on E ||Z||_2."""


def checked_noise(noise: object) -> Noise:
    if not isinstance(noise, Noise):
        raise ValueError(f"noise must be a Noise, got {type(noise).__name__}")
    return noise


def combined_status(statuses: Sequence[SamplerStatus]) -> SamplerStatus:
    """`Heuristic` if one is, `Exact` if all are, else `Approximate` with the sum of tv (SAM-1)."""
    doubts = dict.fromkeys(s.reason for s in statuses if isinstance(s, Heuristic))
    if doubts:
        return Heuristic("; ".join(doubts))
    proved = [status for status in statuses if isinstance(status, Approximate)]
    if proved:
        sources = dict.fromkeys(status.source for status in proved)
        return Approximate(sum(status.tv for status in proved), "; ".join(sources))
    return Exact()


# Estimates of E ||Z||_2^2 from independent public draws


def mean_estimate(numbers: FloatArray) -> Estimate:
    """Mean of independent `numbers` (n,) with standard error and an asymptotic 95% interval."""
    value, stderr = float(numbers.mean()), float(numbers.std(ddof=1)) / math.sqrt(len(numbers))
    # 1.96: the two-sided 95% quantile of the normal distribution.
    return Estimate(value, stderr, (value - 1.96 * stderr, value + 1.96 * stderr), len(numbers))


def scaled(estimate: Estimate, factor: float, offset: float = 0.0) -> Estimate:
    """The estimate of factor * x + offset from an estimate of x; `factor` is at least 0."""
    value, low, high = (factor * x + offset for x in (estimate.value, *estimate.interval))
    return Estimate(value, factor * estimate.stderr, (low, high), estimate.samples)
