"""Smooth queries f with closed-form bounds on the derivatives D^k f of order |k| = sum_i k_i."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.special

from geomdp._typing import FloatArray
from geomdp._validation import finite_array, positive, vector
from geomdp.workloads.smooth.derivative_bounds import (
    falling_factorials,
    gaussian_derivative,
    largest_product,
    logistic_derivative,
    powers,
)
from geomdp.workloads.smooth.queries import SmoothQuery


class ClosedForm(SmoothQuery):
    """A smooth query given by numbers and arrays. It can be written to a file.

    Examples
    --------
    >>> import geomdp as gd
    >>> query = gd.workloads.smooth.Logistic([3.0, 0.0], bias=-0.5)
    >>> query.dimension
    2
    >>> query.to_dict()
    {'kind': 'Logistic', 'weights': [3.0, 0.0], 'bias': -0.5}
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dimension} variables)"

    @property
    def dimension(self) -> int:
        """Number of variables d: the length of the last axis of the first parameter."""
        return int(getattr(self, parameter_names(type(self))[0]).shape[-1])

    def to_dict(self) -> dict[str, Any]:
        """The parameters as JSON values, and the name of the class under ``"kind"``."""
        values = {name: getattr(self, name) for name in parameter_names(type(self))}
        plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}
        return {"kind": type(self).__name__, **plain}

    def _store(self, **arrays: FloatArray) -> None:
        for name, array in arrays.items():
            array = array.copy()
            array.setflags(write=False)
            object.__setattr__(self, name, array)


def parameter_names(kind: type[Any]) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def _not_empty(values: npt.ArrayLike, name: str, ndim: int) -> FloatArray:
    array = finite_array(values, name, ndim)
    if 0 in array.shape:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    return array


@dataclass(frozen=True, eq=False, repr=False)
class GaussianMixture(ClosedForm):
    """Gaussian kernels f(x) = sum_j w_j exp(-||x - c_j||^2 / (2 h^2)).

    |D^k f| <= sum_j |w_j| h^-|k| prod_i s_{k_i} with s_r = max |(d/du)^r exp(-u^2 / 2)|.

    Parameters
    ----------
    centres : (c, d) array
        Centres c_j. They can lie outside the cube [-1, 1]^d of the records.
    weights : (c,) array
        Weights w_j, of any sign.
    bandwidth : float
        Bandwidth h from 1e-150 to 1e150, in the units of the cube.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> query = gd.workloads.smooth.GaussianMixture([[0.2, -0.5]], [1.0], bandwidth=0.4)
    >>> np.round(query([[0.2, -0.5], [0.6, -0.5]]), 4)
    array([1.    , 0.6065])
    >>> round(query.derivative_bound(1), 4)
    1.5163
    """

    centres: FloatArray
    weights: FloatArray
    bandwidth: float

    def __post_init__(self) -> None:
        centres = _not_empty(self.centres, "centres", 2)
        self._store(centres=centres, weights=vector(self.weights, len(centres), "weights"))
        bandwidth = positive(self.bandwidth, "bandwidth")
        if not 1e-150 <= bandwidth <= 1e150:  # its square must fit in float64
            raise ValueError(f"bandwidth must be from 1e-150 to 1e150, got {bandwidth}")
        object.__setattr__(self, "bandwidth", bandwidth)

    def _values(self, points: FloatArray) -> FloatArray:
        # Compute ||x - c||^2 by a product of matrices. Subtracting the mean of the centres first
        # reduces cancellation.
        middle = self.centres.mean(axis=0)
        near, far = points - middle, self.centres - middle
        squares = (near**2).sum(axis=1)[:, None] - 2 * near @ far.T + (far**2).sum(axis=1)
        kernels = np.exp(-np.maximum(squares, 0.0) / (2 * self.bandwidth**2))
        return np.asarray(kernels @ self.weights)

    def _order_bounds(self, order: int) -> FloatArray:
        kernel = np.array([gaussian_derivative(j) for j in range(order + 1)])
        scales = kernel * powers(1 / self.bandwidth, order)
        product = largest_product(np.repeat(scales[:, None], self.dimension, axis=1))
        return np.asarray(np.abs(self.weights).sum() * product)


@dataclass(frozen=True, eq=False, repr=False)
class Polynomial(ClosedForm):
    """A polynomial f(x) = sum_j a_j prod_i x_i^{e_ji}.

    Let b_j be the maximum of prod_i e_ji (e_ji - 1) ... (e_ji - k_i + 1) over all k with |k| = K.
    Then |D^k f| <= sum_j |a_j| b_j on the cube [-1, 1]^d for all these k.

    Parameters
    ----------
    exponents : (c, d) array
        Exponents e_ji of each monomial j: whole numbers, at least 0.
    coefficients : (c,) array
        Coefficients a_j.

    Examples
    --------
    The mean of x1^2 x2 over records:

    >>> import geomdp as gd
    >>> query = gd.workloads.smooth.Polynomial([[2, 1]], [1.0])
    >>> query([[0.5, 1.0], [1.0, -1.0]])
    array([ 0.25, -1.  ])
    """

    exponents: FloatArray
    coefficients: FloatArray

    def __post_init__(self) -> None:
        exponents = _not_empty(self.exponents, "exponents", 2)
        if (exponents < 0).any() or (exponents != np.floor(exponents)).any():
            raise ValueError(f"exponents must be whole numbers, at least 0, got {exponents}")
        coefficients = vector(self.coefficients, len(exponents), "coefficients")
        self._store(exponents=exponents, coefficients=coefficients)

    def _values(self, points: FloatArray) -> FloatArray:
        total = np.zeros(len(points))
        for exponents, coefficient in zip(self.exponents, self.coefficients, strict=True):
            total += coefficient * np.prod(points**exponents, axis=1)
        return total

    def _order_bounds(self, order: int) -> FloatArray:
        factors = falling_factorials(self.exponents.T, order)
        return np.asarray(largest_product(factors) @ np.abs(self.coefficients))


@dataclass(frozen=True, eq=False, repr=False)
class Logistic(ClosedForm):
    """A logistic score f(x) = 1 / (1 + exp(-<w, x> - b)).

    |D^k f| <= (max_i |w_i|)^|k| s_|k|, where s_j bounds the j-th derivative of the logistic
    function.

    Parameters
    ----------
    weights : (d,) array
        Weights w.
    bias : float
        Bias b.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> query = gd.workloads.smooth.Logistic([3.0, 0.0], bias=-0.5)
    >>> np.round(query([[0.0, 1.0], [1.0, 0.0]]), 4)
    array([0.3775, 0.9241])
    """

    weights: FloatArray
    bias: float

    def __post_init__(self) -> None:
        self._store(weights=_not_empty(self.weights, "weights", 1))
        object.__setattr__(self, "bias", float(vector([self.bias], 1, "bias")[0]))

    def _values(self, points: FloatArray) -> FloatArray:
        return np.asarray(scipy.special.expit(points @ self.weights + self.bias))

    def _order_bounds(self, order: int) -> FloatArray:
        steps = np.array([logistic_derivative(j) for j in range(order + 1)])
        return steps * powers(np.abs(self.weights).max(), order)


@dataclass(frozen=True, eq=False, repr=False)
class Waves(ClosedForm):
    """Plane waves f(x) = sum_j a_j cos(<w_j, x> + p_j).

    Means of waves are characteristic functions. |D^k f| <= sum_j |a_j| (max_i |w_ji|)^|k|.

    Parameters
    ----------
    frequencies : (c, d) array
        Frequencies w_j, in radians per unit length.
    amplitudes, phases : (c,) array
        Amplitudes a_j, and phases p_j in radians.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> query = gd.workloads.smooth.Waves([[np.pi, 0.0]], [1.0], [0.0])
    >>> np.round(query([[0.0, 0.5], [1.0, 0.5]]), 4)
    array([ 1., -1.])
    """

    frequencies: FloatArray
    amplitudes: FloatArray
    phases: FloatArray

    def __post_init__(self) -> None:
        frequencies = _not_empty(self.frequencies, "frequencies", 2)
        amplitudes = vector(self.amplitudes, len(frequencies), "amplitudes")
        phases = vector(self.phases, len(frequencies), "phases")
        self._store(frequencies=frequencies, amplitudes=amplitudes, phases=phases)

    def _values(self, points: FloatArray) -> FloatArray:
        return np.asarray(np.cos(points @ self.frequencies.T + self.phases) @ self.amplitudes)

    def _order_bounds(self, order: int) -> FloatArray:
        fastest = np.abs(self.frequencies).max(axis=1)
        return np.asarray(powers(fastest, order) @ np.abs(self.amplitudes))


@dataclass(frozen=True, eq=False, repr=False)
class SoftRange(ClosedForm):
    """A range with soft edges, f(x) = prod_i (s((x_i - l_i) / h) - s((x_i - u_i) / h)).

    s is the logistic function. For small h the answer is nearly the share of records in the box
    with sides [l_i, u_i]. The j-th derivative of a factor is at most 2 s_j / h^j, where s_j bounds
    that of s.

    Parameters
    ----------
    low, high : (d,) array
        Ends l_i < u_i of the sides. They can lie outside the cube [-1, 1]^d of the records.
    width : float
        Width h > 0 of the edges, in the units of the cube.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> query = gd.workloads.smooth.SoftRange(low=[-0.5], high=[0.5], width=0.05)
    >>> np.round(query([[0.0], [0.5], [1.0]]), 3)
    array([1. , 0.5, 0. ])
    """

    low: FloatArray
    high: FloatArray
    width: float

    def __post_init__(self) -> None:
        low = _not_empty(self.low, "low", 1)
        high = vector(self.high, len(low), "high")
        if (low >= high).any():
            raise ValueError(f"low must be below high, got {low} and {high}")
        self._store(low=low, high=high)
        object.__setattr__(self, "width", positive(self.width, "width"))

    def _values(self, points: FloatArray) -> FloatArray:
        rise = scipy.special.expit((points - self.low) / self.width)
        fall = scipy.special.expit((points - self.high) / self.width)
        return np.asarray(np.prod(rise - fall, axis=1))

    def _order_bounds(self, order: int) -> FloatArray:
        edges = [1.0, *(2 * logistic_derivative(j) for j in range(1, order + 1))]
        factors = np.array(edges) * powers(1 / self.width, order)
        return largest_product(np.repeat(factors[:, None], self.dimension, axis=1))
