"""Families of noise for Chebyshev moments, calibrated to a guarantee.

Moments are summed in float64. Numerical errors raise the sensitivity of the sums by at most a
public `slack`. All noise here is calibrated to the sensitivity of the exact sums plus the slack.
There are m = t^d - 1 moments, for t degrees in each of d variables.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import positive
from geomdp.mechanisms.base import pure_only
from geomdp.noise.exact.points import Computable
from geomdp.noise.exact.vectors import scaled_gaussians, scaled_laplaces
from geomdp.privacy import Adjacency, Exact, Privacy, PureDP
from geomdp.privacy.definitions import checked_adjacency, gaussian_scale, laplace_scale
from geomdp.privacy.guarantees import SamplerStatus
from geomdp.workloads.smooth.smooth_queries import SmoothQueries


class CalibratedNoise(abc.ABC):
    """Independent noise on the sums of the m moments."""

    #: Standard deviations (m,), in units of sums.
    deviations: FloatArray
    #: How close the distribution of `sample` is to the distribution in the proof.
    sampler: SamplerStatus

    @abc.abstractmethod
    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Independent draws (size, m)."""

    @abc.abstractmethod
    def larger(self, share: float) -> Self:
        """The same noise times 1 + `share`."""

    @abc.abstractmethod
    def computable(self) -> Computable:
        """The noise as a function of uniform numbers, for correctly rounded draws."""


class ScaledLaplace(CalibratedNoise):
    """Laplace noise with scales b = `scales` (m,), in units of sums; the variances are 2 b^2."""

    sampler: SamplerStatus = Exact()

    def __init__(self, scales: FloatArray) -> None:
        self.scales, self.deviations = scales, math.sqrt(2) * scales

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.laplace(0.0, self.scales, (size, len(self.scales)))

    def larger(self, share: float) -> Self:
        return type(self)(self.scales * (1 + share))

    def computable(self) -> Computable:
        return scaled_laplaces(self.scales)


class ScaledGaussian(CalibratedNoise):
    """Gaussian noise with the standard deviations `deviations` (m,), in units of sums."""

    sampler: SamplerStatus = Exact()

    def __init__(self, deviations: FloatArray) -> None:
        self.deviations = deviations

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.normal(0.0, self.deviations, (size, len(self.deviations)))

    def larger(self, share: float) -> Self:
        return type(self)(self.deviations * (1 + share))

    def computable(self) -> Computable:
        return scaled_gaussians(self.deviations)


class MomentNoise(abc.ABC):
    """A family of noise for `SmoothSummary`."""

    @abc.abstractmethod
    def calibrate(
        self,
        workload: SmoothQueries,
        privacy: Privacy,
        adjacency: Adjacency,
        slack: FloatArray | float = 0.0,
    ) -> CalibratedNoise:
        """The noise that gives `privacy`."""


class MomentLaplace(MomentNoise):
    """Laplace noise with scales proportional to a shape s (m,), which the subclass defines."""

    @abc.abstractmethod
    def shape(self, workload: SmoothQueries) -> FloatArray:
        """The shape s, an array of m numbers above 0."""

    @abc.abstractmethod
    def sensitivity(self, workload: SmoothQueries, adjacency: Adjacency) -> float:
        """Largest total over j of |change of moment j| / s_j between neighbours, for exact sums."""

    def calibrate(
        self,
        workload: SmoothQueries,
        privacy: Privacy,
        adjacency: Adjacency,
        slack: FloatArray | float = 0.0,
    ) -> ScaledLaplace:
        """Laplace noise with the scales s_j (sensitivity + sum_i slack_i / s_i) / epsilon."""
        pure, shape = pure_only(privacy, type(self).__name__), self.shape(workload)
        more = float((slack / shape).sum())
        return ScaledLaplace(
            shape * laplace_scale(self.sensitivity(workload, adjacency) + more, pure)
        )


@dataclass(frozen=True)
class UniformLaplace(MomentLaplace):
    """Laplace noise of one scale on all moments, as in Wang et al. 2013, but at the correct scale.

    Let S(t, d) = t^(d-1) S(t, 1) be the l1 diameter of the moments. The scale on sums is
    b = S(t, d) / epsilon under replace-one, and b = (t^d - 1) / epsilon under add/remove. The
    paper's scale t^d / epsilon is too small under replace-one for t >= 3: S / t^d is 1.042 at t = 3
    and increases to 1.217 as t grows (DISC-15).

    Examples
    --------
    >>> import geomdp as gd
    >>> summary = gd.SmoothSummary(
    ...     1, n=10_000, smoothness=2, privacy=gd.PureDP(1.0), degree=4,
    ...     noise=gd.mechanisms.UniformLaplace(),
    ... )
    >>> summary.noise_std.round(5)
    array([0.     , 0.00061, 0.00061, 0.00061])
    """

    def shape(self, workload: SmoothQueries) -> FloatArray:
        return np.ones(workload.n_queries)

    def sensitivity(self, workload: SmoothQueries, adjacency: Adjacency) -> float:
        """The l1 diameter (replace-one) or the l1 radius (add/remove) of the moments."""
        replace_one = checked_adjacency(adjacency) is Adjacency.REPLACE_ONE
        return workload.l1_diameter() if replace_one else workload.l1_radius()


@dataclass(frozen=True)
class WeightedLaplace(MomentLaplace):
    """Laplace noise that grows with the degree, because smooth queries weigh high degrees less.

    In this class m is the vector of the d degrees of a moment Q_m. ||m|| is the largest degree. The
    scale on sums is b_m = c ||m||^(2 K / 3). A query with K bounded derivatives has coefficients
    a_m of about ||m||^-K. For these a_m, the scales b_m minimise the sum of a_m^2 b_m^2 among all
    scales with the same sum of 1 / b_m (SM-X1).

    Privacy: let w_m = 1 / b_m. The log-density of the noise changes between neighbours by at most
    the sum of w_m times the change of the sum of Q_m. Under replace-one this is at most

        max over x, x' of sum_m w_m |Q_m(x) - Q_m(x')| = max over x of sum_m w_m (1 - Q_m(x)),

    the weighted l1 diameter (`workloads.smooth.smooth_queries` proves the equality). Under
    add/remove it is at most sum_m w_m. The constant c makes this bound equal to epsilon. The
    formula sheet has c = (2 / epsilon) sum_m ||m||^(-2 K / 3). That c is larger, because the sheet
    bounds every change by 2.

    Parameters
    ----------
    smoothness : float
        K > 0, the number of bounded derivatives.

    Examples
    --------
    >>> import geomdp as gd
    >>> summary = gd.SmoothSummary(
    ...     1, n=10_000, smoothness=2, privacy=gd.PureDP(1.0), degree=4,
    ...     noise=gd.mechanisms.WeightedLaplace(2.0),
    ... )
    >>> summary.noise_std.round(5)
    array([0.     , 0.00035, 0.00088, 0.00151])
    """

    smoothness: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "smoothness", positive(self.smoothness, "smoothness"))

    def shape(self, workload: SmoothQueries) -> FloatArray:
        """||m||^(2 K / 3); ``ValueError`` if it is above 1e60 for the largest degree."""
        with np.errstate(over="ignore"):
            shape = workload.orders() ** (2 * self.smoothness / 3)
        if shape.max() > 1e60:  # up to this limit, squares of scales are in the range of float64
            raise ValueError(
                f"smoothness must be smaller for degree {workload.degree}, got {self.smoothness:g}"
            )
        return shape

    def sensitivity(self, workload: SmoothQueries, adjacency: Adjacency) -> float:
        """The l1 diameter weighted by 1 / s (replace-one), or the sum of the 1 / s (add/remove)."""
        weights = 1 / self.shape(workload)
        if checked_adjacency(adjacency) is Adjacency.REPLACE_ONE:
            return workload.weighted_l1_diameter(weights)
        return float(weights.sum())


@dataclass(frozen=True)
class UniformGaussian(MomentNoise):
    """Gaussian noise of one scale on all moments, for zCDP and approximate differential privacy.

    It is calibrated to the l2 diameter of the moments under replace-one, about (2 t^d)^(1/2), and
    to their l2 radius under add/remove, (t^d - 1)^(1/2).

    Examples
    --------
    >>> import geomdp as gd
    >>> summary = gd.SmoothSummary(
    ...     1, n=10_000, smoothness=2, privacy=gd.ZCDP(0.5), degree=4,
    ...     noise=gd.mechanisms.UniformGaussian(),
    ... )
    >>> summary.noise_std.round(5)
    array([0.     , 0.00028, 0.00028, 0.00028])
    """

    def calibrate(
        self,
        workload: SmoothQueries,
        privacy: Privacy,
        adjacency: Adjacency,
        slack: FloatArray | float = 0.0,
    ) -> ScaledGaussian:
        if isinstance(privacy, PureDP):
            raise ValueError(f"privacy must be ZCDP or ApproxDP for UniformGaussian, got {privacy}")
        replace_one = checked_adjacency(adjacency) is Adjacency.REPLACE_ONE
        sensitivity = workload.l2_diameter() if replace_one else workload.l2_radius()
        more = float(np.linalg.norm(np.broadcast_to(slack, workload.n_queries)))
        scale = gaussian_scale(sensitivity + more, privacy)
        return ScaledGaussian(np.full(workload.n_queries, scale))
