"""Filters: multipliers on the Chebyshev coefficients of a query, with bounds on their error."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import reduce

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import finite_array, real_number, whole
from geomdp.workloads.smooth.approximation_bounds import (
    angular_bounds,
    tensor_bound,
    truncation_bound,
)
from geomdp.workloads.smooth.jackson import MAX_SMOOTHNESS, jackson_multiplier, kernel_moment


class Filter(ABC):
    """A multiplier on the Chebyshev coefficients of degree < t in each variable."""

    @abstractmethod
    def weights(self, size: int, dimension: int) -> FloatArray:
        """The factors, of shape (t,) * d."""

    def error_bound(self, bounds: FloatArray, size: int, nodes: int, dimension: int) -> float:
        """Bound on the maximal error of the filtered polynomial; infinite where none is known.

        From bounds (J + 1,) on all derivatives of order 0..J, for t degrees from N Chebyshev nodes
        in each of d variables.
        """
        del bounds, size, nodes, dimension
        return math.inf


@dataclass(frozen=True)
class Truncation(Filter):
    """All factors 1: the truncated Chebyshev series, most accurate for very smooth queries."""

    def weights(self, size: int, dimension: int) -> FloatArray:
        """Ones."""
        return np.ones((size,) * dimension)


@dataclass(frozen=True)
class Jackson(Filter):
    """The paper's operator: factors prod_i lambda_{m_i} of `jackson_multiplier`.

    Its error is O(t^-K) for all of C^K_B, without the logarithms of truncation, and its
    coefficients are at most 2^((K + 1) d) B; at the degrees that noise allows, truncation is
    usually far more accurate.

    Parameters
    ----------
    smoothness : int
        K, from 1 to 30.

    References
    ----------
    Wang, Fan, Zhang and Wang 2013, Theorem 3.2; formula sheet SM-JK.
    """

    smoothness: int

    def __post_init__(self) -> None:
        smoothness = whole(self.smoothness, "smoothness", maximum=MAX_SMOOTHNESS)
        object.__setattr__(self, "smoothness", smoothness)

    def weights(self, size: int, dimension: int) -> FloatArray:
        """Products of the univariate factors."""
        multiplier = jackson_multiplier(self.smoothness, size)
        return reduce(np.multiply.outer, [multiplier] * dimension)

    def error_bound(self, bounds: FloatArray, size: int, nodes: int, dimension: int) -> float:
        """2 mu_K sup|g^(K)| for each variable, plus the error of aliasing from degrees >= N.

        The univariate operator has norm at most 2^(K+1) - 1. It is applied to the interpolant at
        N nodes instead of the function; the error of the interpolant is the aliasing.
        """
        if len(bounds) <= self.smoothness:
            return math.inf
        norm = 2.0 ** (self.smoothness + 1) - 1
        moment = kernel_moment(self.smoothness, size)
        error = 2 * moment * float(angular_bounds(bounds)[self.smoothness])
        aliasing = truncation_bound(bounds, nodes, nodes, dimension)
        return tensor_bound(error, norm, dimension) + norm**dimension * aliasing


@dataclass(frozen=True, eq=False)
class Shrinkage(Filter):
    """Factors v_m / (v_m + s_m^2): shrink noisy moments towards 0 by their expected size.

    The factor w minimises the mean squared error of w (M_m + noise) as an estimate of the moment
    M_m when E M_m^2 = v_m. For n records drawn from a random density whose m-th Chebyshev moment
    has root mean square c_m ||m||^-a, c_m^2 = 2^-(number of nonzero m_i) = E T_m^2 of a random
    record,

        v_m = c_m^2 ((1 - 1/n) ||m||^-2a + 1/n),

    with the maximum norm ||m||. With a = 0 no smoothness of the density is supposed; the
    coefficients are then the least-squares fit to the query under the Chebyshev measure, penalised
    by the noise.

    Parameters
    ----------
    noise_std : (t,) * d array
        s_m >= 0, standard deviations of the noise on the moments (means).
    n : int
        Number of records, public.
    decay : float
        a >= 0, the smoothness of the density: 0 for arbitrary data.
    """

    noise_std: FloatArray = field(repr=False)
    n: int
    decay: float = 0.0

    def __post_init__(self) -> None:
        deviations = finite_array(self.noise_std, "noise_std", np.ndim(self.noise_std))
        if deviations.ndim == 0 or (deviations < 0).any():
            raise ValueError("noise_std must be an array of numbers at least 0")
        object.__setattr__(self, "noise_std", deviations)
        object.__setattr__(self, "n", whole(self.n, "n"))
        if not 0 <= real_number(self.decay) < math.inf:
            raise ValueError(f"decay must be a finite number, at least 0, got {self.decay!r}")

    def weights(self, size: int, dimension: int) -> FloatArray:
        """The factors; ``ValueError`` unless the noise has the shape (t,) * d."""
        if self.noise_std.shape != (size,) * dimension:
            raise ValueError(
                f"noise_std must have shape {(size,) * dimension}, got {self.noise_std.shape}"
            )
        degrees = np.indices(self.noise_std.shape)
        spread = 0.5 ** np.count_nonzero(degrees, axis=0)
        norms = np.maximum(degrees.max(axis=0), 1).astype(np.float64)
        expected = spread * ((1 - 1 / self.n) * norms ** (-2 * self.decay) + 1 / self.n)
        return np.asarray(expected / (expected + self.noise_std**2))
