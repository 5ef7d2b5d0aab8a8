"""Filters: factors that multiply the Chebyshev coefficients of a query, and error bounds."""

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
    """Factors that multiply Chebyshev coefficients of degrees < t in each of d variables.

    In the methods, `size` is t and `dimension` is d.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> smooth = gd.workloads.smooth
    >>> for kind in (smooth.Truncation(), smooth.Jackson(2)):
    ...     print(np.round(kind.weights(5, 1), 4))
    [1. 1. 1. 1. 1.]
    [1.   1.4  0.9  0.15 0.  ]
    """

    @abstractmethod
    def weights(self, size: int, dimension: int) -> FloatArray:
        """The factors, an array of shape (t,) * d."""

    def error_bound(self, bounds: FloatArray, size: int, nodes: int, dimension: int) -> float:
        """Bound on the largest error of the filtered polynomial; infinite if no bound is known.

        Entry j of `bounds` (J + 1,) bounds all derivatives of order j of the query; `nodes` is the
        number N of Chebyshev nodes in each variable.
        """
        del bounds, size, nodes, dimension
        return math.inf


@dataclass(frozen=True)
class Truncation(Filter):
    """Factors that are all 1, usually the most accurate without noise for very smooth queries.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.workloads.smooth.Truncation().weights(3, 2)
    array([[1., 1., 1.],
           [1., 1., 1.],
           [1., 1., 1.]])
    """

    def weights(self, size: int, dimension: int) -> FloatArray:
        return np.ones((size,) * dimension)


@dataclass(frozen=True)
class Jackson(Filter):
    """The approximation operator of Wang et al., as a filter.

    The factor for degrees m_1, ..., m_d is prod_i lambda_{m_i}, where `jackson_multiplier` gives
    lambda_0, ..., lambda_{t-1}.

    If all derivatives up to order K are at most B, the error is O(t^-K), without the logarithmic
    factors of truncation, and the coefficients are at most 2^((K + 1) d) B. For the degrees t that
    noise allows, truncation is usually far more accurate.

    Parameters
    ----------
    smoothness : int
        Order K of the operator, from 1 to 30.

    References
    ----------
    Wang, Fan, Zhang and Wang 2013, Theorem 3.2; formula sheet SM-JK.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> np.round(gd.workloads.smooth.Jackson(2).weights(5, 1), 4)
    array([1.  , 1.4 , 0.9 , 0.15, 0.  ])
    """

    smoothness: int

    def __post_init__(self) -> None:
        smoothness = whole(self.smoothness, "smoothness", maximum=MAX_SMOOTHNESS)
        object.__setattr__(self, "smoothness", smoothness)

    def weights(self, size: int, dimension: int) -> FloatArray:
        multiplier = jackson_multiplier(self.smoothness, size)
        return reduce(np.multiply.outer, [multiplier] * dimension)

    def error_bound(self, bounds: FloatArray, size: int, nodes: int, dimension: int) -> float:
        """Bound on the largest error; infinite if `bounds` do not include order K.

        In one angle, the error is at most 2 mu_K sup|g^(K)| (`kernel_moment`), and the norm at most
        2^(K + 1) - 1; `tensor_bound` combines them. The error of the interpolant at `nodes` nodes,
        times the norm in d variables, is added.
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
    """Factors v_m / (v_m + s_m^2) that shrink noisy moments towards 0.

    If the moment M_m has noise of standard deviation s_m and E M_m^2 = v_m, the factor
    w = v_m / (v_m + s_m^2) minimises the mean squared error of w (M_m + noise). The v_m come from a
    model: n records are drawn from a random density, whose m-th moment has root mean square c_m
    ||m||^-a for m != 0. Here ||m|| is the maximum norm, and c_m^2 = 2^-(number of nonzero m_i) is
    the mean of prod_i T_{m_i}(x_i)^2 under the Chebyshev measure. Then v_0 = 1, and for m != 0

        v_m = c_m^2 ((1 - 1/n) ||m||^-2a + 1/n).

    a = 0 assumes a density that is not smooth. The coefficients are then a least-squares fit to the
    query under the Chebyshev measure, with a penalty for the noise.

    Parameters
    ----------
    noise_std : (t,) * d array
        s_m >= 0: standard deviations of the noise on the moments, which are means over records.
    n : int
        Public number of records.
    decay : float
        a >= 0, the assumed smoothness of the density; 0 for arbitrary data.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> noise = np.full(5, 0.1)
    >>> shrinkage = gd.workloads.smooth.Shrinkage(noise, n=1000)
    >>> np.round(shrinkage.weights(5, 1), 4)
    array([0.9901, 0.9804, 0.9804, 0.9804, 0.9804])
    """

    noise_std: FloatArray = field(repr=False)
    n: int
    decay: float = 0.0

    def __post_init__(self) -> None:
        deviations = finite_array(self.noise_std, "noise_std", np.ndim(self.noise_std))
        if deviations.ndim == 0 or (deviations < 0).any():
            found = f"{deviations.min():g}" if deviations.ndim else "a single number"
            raise ValueError(f"noise_std must be an array of numbers at least 0, got {found}")
        object.__setattr__(self, "noise_std", deviations)
        object.__setattr__(self, "n", whole(self.n, "n"))
        if not 0 <= real_number(self.decay) < math.inf:
            raise ValueError(f"decay must be a finite number, at least 0, got {self.decay!r}")

    def weights(self, size: int, dimension: int) -> FloatArray:
        """``ValueError`` if `noise_std` has another shape than (t,) * d."""
        if self.noise_std.shape != (size,) * dimension:
            raise ValueError(
                f"noise_std must have shape {(size,) * dimension}, got {self.noise_std.shape}"
            )
        degrees = np.indices(self.noise_std.shape)
        spread = 0.5 ** np.count_nonzero(degrees, axis=0)
        norms = np.maximum(degrees.max(axis=0), 1).astype(np.float64)
        expected = spread * ((1 - 1 / self.n) * norms ** (-2 * self.decay) + 1 / self.n)
        return np.asarray(expected / (expected + self.noise_std**2))
