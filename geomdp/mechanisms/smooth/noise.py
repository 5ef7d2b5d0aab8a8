"""Families of noise for Chebyshev moments, calibrated to a guarantee.

The sensitivity of the computed sums is at most that of the exact moments plus a public `slack`,
which bounds numerical errors. All noise here is calibrated to this total.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp._validation import positive
from geomdp.bodies import Scaled, VPolytope, difference_body
from geomdp.bodies.operations.scaled import symmetric_hull
from geomdp.geometry.outer_slabs.refinement import refine_slabs
from geomdp.mechanisms.additive_noise.knorm import slab_budget
from geomdp.mechanisms.smooth.calibrated import (
    CalibratedNoise,
    ScaledBody,
    ScaledGaussian,
    ScaledLaplace,
)
from geomdp.noise import KNormNoise
from geomdp.privacy import Adjacency, Privacy, PureDP
from geomdp.privacy.calibration import gaussian_scale, laplace_scale
from geomdp.workloads.smooth.moment_diameters import grid_factor
from geomdp.workloads.smooth.smooth_queries import SmoothQueries

#: Largest number of moments for noise shaped like the moment body; refining its slabs then takes
#: seconds.
MAX_BODY_MOMENTS = 64
#: Most points of the grid whose hull approximates the moment body, and most intervals per degree.
MAX_BODY_POINTS, BODY_INTERVALS = 2048, 16


class MomentNoise(abc.ABC):
    """A family of noise for `SmoothSummary`."""

    #: Largest table size t^d that the default degree rule tries.
    largest_table: ClassVar[int] = 1 << 12

    @abc.abstractmethod
    def calibrate(
        self,
        workload: SmoothQueries,
        privacy: Privacy,
        adjacency: Adjacency,
        slack: FloatArray | float = 0.0,
    ) -> CalibratedNoise:
        """The noise that gives `privacy`.

        Parameters
        ----------
        workload : SmoothQueries
            The moments.
        privacy : PureDP, ApproxDP or ZCDP
            Guarantee wanted.
        adjacency : Adjacency
            Neighbour relation.
        slack : (t^d - 1,) array or float
            How much more than the exact one each computed sum may move between neighbours.

        Raises
        ------
        ValueError
            If this noise cannot give such a guarantee.
        """


@dataclass(frozen=True)
class UniformLaplace(MomentNoise):
    """The same Laplace noise on every moment, as in the paper but at the correct scale.

    On sums b = S(t, d) / epsilon under replace-one, where S(t, d) = t^(d-1) S(t, 1) is the l1
    diameter of the moments, and b = (t^d - 1) / epsilon under add/remove. The paper's t^d / epsilon
    is too small under replace-one for t >= 3: S / t^d rises from 1.042 at t = 3 to 1.217 (DISC-15).
    """

    def calibrate(
        self,
        workload: SmoothQueries,
        privacy: Privacy,
        adjacency: Adjacency,
        slack: FloatArray | float = 0.0,
    ) -> ScaledLaplace:
        """Laplace noise with scale sensitivity / epsilon."""
        pure = _pure(privacy, self)
        replace_one = adjacency is Adjacency.REPLACE_ONE
        sensitivity = workload.l1_diameter() if replace_one else workload.l1_radius()
        more = float(_each(slack, workload).sum())
        scale = laplace_scale(sensitivity + more, pure)
        return ScaledLaplace(np.full(workload.n_queries, scale))


@dataclass(frozen=True)
class WeightedLaplace(MomentNoise):
    """Laplace noise that grows with the degree of the moment, as smooth queries use it less.

    On sums b_m = c ||m||^(2 K / 3), where ||m|| is the largest degree in m. A query with K bounded
    derivatives has coefficients a_m near ||m||^-K. Among all scales with the same sum of 1 / b_m
    these minimise the sum of a_m^2 b_m^2 (SM-X1).

    Privacy: with w_m = 1 / b_m, the log-density of the noise changes between neighbours by at most
    sum_m w_m |difference_m|. Under replace-one that is at most

        max over x, x' of sum_m w_m |Q_m(x) - Q_m(x')| = max over x of sum_m w_m (1 - Q_m(x)),

    the weighted l1 diameter (`SmoothQueries.weighted_l1_diameter` proves the equality). Under
    add/remove it is at most sum_m w_m. The constant c makes this bound equal to epsilon. The
    formula sheet's c = 2 / epsilon sum_m ||m||^(-2 K / 3), which bounds every difference by 2, is
    larger.

    Parameters
    ----------
    smoothness : float
        K > 0, the number of bounded derivatives.
    """

    smoothness: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "smoothness", positive(self.smoothness, "smoothness"))

    def calibrate(
        self,
        workload: SmoothQueries,
        privacy: Privacy,
        adjacency: Adjacency,
        slack: FloatArray | float = 0.0,
    ) -> ScaledLaplace:
        """Laplace noise with scales proportional to ||m||^(2 K / 3)."""
        pure = _pure(privacy, self)
        shape = workload.orders() ** (2 * self.smoothness / 3)
        weights = 1 / shape
        replace_one = adjacency is Adjacency.REPLACE_ONE
        sensitivity = (
            workload.weighted_l1_diameter(weights) if replace_one else float(weights.sum())
        )
        more = float(weights @ _each(slack, workload))
        return ScaledLaplace(shape * laplace_scale(sensitivity + more, pure))


@dataclass(frozen=True)
class UniformGaussian(MomentNoise):
    """The same Gaussian noise on every moment, for zCDP and approximate differential privacy.

    Calibrated to the l2 diameter of the moments under replace-one, near (2 t^d)^(1/2), and to
    their l2 radius (t^d - 1)^(1/2) under add/remove.
    """

    def calibrate(
        self,
        workload: SmoothQueries,
        privacy: Privacy,
        adjacency: Adjacency,
        slack: FloatArray | float = 0.0,
    ) -> ScaledGaussian:
        """Gaussian noise with the least standard deviation for the sensitivity."""
        if isinstance(privacy, PureDP):
            raise ValueError(f"privacy must be ZCDP or ApproxDP for UniformGaussian, got {privacy}")
        replace_one = adjacency is Adjacency.REPLACE_ONE
        sensitivity = workload.l2_diameter() if replace_one else workload.l2_radius()
        more = float(np.linalg.norm(_each(slack, workload)))
        scale = gaussian_scale(sensitivity + more, privacy)
        return ScaledGaussian(np.full(workload.n_queries, scale))


@dataclass(frozen=True)
class MomentBodyNoise(MomentNoise):
    """K-norm noise shaped like the differences of moment vectors, for at most 64 moments.

    Take the hull of the moments at a grid of N + 1 Chebyshev points in each variable, scaled by
    1 / cos(pi (t - 1) / (2 N))^d. Its differences contain those of the moments of all records: the
    range of a polynomial of degree < t on the cube, seen from the middle of its range on the grid,
    is larger by at most that factor (Ehlich and Zeller 1964). K-norm noise of an outer slab body of
    these differences (X-OUT) is drawn by hit-and-run and therefore `heuristic`: epsilon is a
    target.
    """

    largest_table: ClassVar[int] = MAX_BODY_MOMENTS + 1

    def calibrate(
        self,
        workload: SmoothQueries,
        privacy: Privacy,
        adjacency: Adjacency,
        slack: FloatArray | float = 0.0,
    ) -> ScaledBody:
        """K-norm noise of the refined outer slab body; seconds."""
        pure = _pure(privacy, self)
        m, d, degree = workload.n_queries, workload.d, workload.degree - 1
        if m > MAX_BODY_MOMENTS:
            raise ValueError(f"MomentBodyNoise takes at most {MAX_BODY_MOMENTS} moments, got {m}")
        intervals = min(BODY_INTERVALS * degree, int(MAX_BODY_POINTS ** (1 / d)) - 1)
        if intervals < 2 * degree:
            raise ValueError(
                f"MomentBodyNoise takes fewer than {d} variables of degree {degree + 1}"
            )
        axis = np.cos(np.pi * np.arange(intervals + 1) / intervals)
        grid = np.stack(np.meshgrid(*[axis] * d, indexing="ij"), axis=-1).reshape(-1, d)
        hull = VPolytope(workload.evaluate(grid))
        replace_one = adjacency is Adjacency.REPLACE_ONE
        body = difference_body(hull) if replace_one else symmetric_hull(hull)
        # The support function of K - K at z is the range on the grid of a polynomial of mean 0
        # with coefficients z. A range is at least twice the root mean square under the Chebyshev
        # measure, which the grid's quadrature gives exactly for degrees below 2 N. This is at least
        # 2^(-d/2) |z|_2 >= 2^(-d/2) m^(-1/2) |z|_1. So the cube of half-width `slack` lies in
        # slack m^(1/2) 2^(d/2) / 2 times K - K, and in twice that times the hull of K and -K.
        room = float(np.max(slack)) * math.sqrt(m * 2.0**d) / (2 if replace_one else 1)
        outer = Scaled(body, grid_factor(degree, intervals) ** d + room)
        refined = refine_slabs(outer, slabs=slab_budget(m), rng=PUBLIC_SEED)
        return ScaledBody(
            KNormNoise(refined.body, pure.epsilon, refined.sampler, refined.second_moment)
        )


def _each(slack: FloatArray | float, workload: SmoothQueries) -> FloatArray:
    """Slack of each moment (t^d - 1,)."""
    return np.broadcast_to(np.asarray(slack, dtype=np.float64), (workload.n_queries,))


def _pure(privacy: Privacy, noise: MomentNoise) -> PureDP:
    """`privacy`, or ``ValueError`` if it is not pure differential privacy."""
    if not isinstance(privacy, PureDP):
        raise ValueError(f"privacy must be PureDP for {type(noise).__name__}, got {privacy}")
    return privacy
