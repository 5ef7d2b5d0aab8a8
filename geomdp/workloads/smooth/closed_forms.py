"""Smooth queries with derivatives bounded in closed form."""

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
    """A smooth query, a frozen dataclass of numbers and arrays, that can be written to a file.

    The last axis of its first parameter runs over the d variables.
    """

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.dimension} variables)"

    @property
    def dimension(self) -> int:
        """Number of variables d."""
        return int(getattr(self, _parameters(type(self))[0]).shape[-1])

    def to_dict(self) -> dict[str, Any]:
        """The name of the class under ``"kind"`` and the parameters, as JSON values."""
        values = {name: getattr(self, name) for name in _parameters(type(self))}
        plain = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}
        return {"kind": type(self).__name__, **plain}

    def _store(self, **arrays: FloatArray) -> None:
        """Keep read-only copies of parameters."""
        for name, array in arrays.items():
            array = array.copy()
            array.setflags(write=False)
            object.__setattr__(self, name, array)


def _parameters(kind: type[Any]) -> list[str]:
    return [field.name for field in dataclasses.fields(kind)]


def _not_empty(values: npt.ArrayLike, name: str, ndim: int) -> FloatArray:
    """A finite array of which no axis is empty."""
    array = finite_array(values, name, ndim)
    if 0 in array.shape:
        raise ValueError(f"{name} must not be empty, got shape {array.shape}")
    return array


@dataclass(frozen=True, eq=False, repr=False)
class GaussianMixture(ClosedForm):
    """Gaussian kernels f(x) = sum_j w_j exp(-||x - c_j||^2 / (2 h^2)).

    |D^k f| <= sum_j |w_j| h^-|k| prod_i s_{k_i} with s_j the largest j-th derivative of
    exp(-u^2 / 2).

    Parameters
    ----------
    centres : (c, d) array
        c_j; they may lie outside the cube.
    weights : (c,) array
        w_j, of any sign.
    bandwidth : float
        h > 0, in the units of the cube.
    """

    centres: FloatArray
    weights: FloatArray
    bandwidth: float

    def __post_init__(self) -> None:
        centres = _not_empty(self.centres, "centres", 2)
        self._store(centres=centres, weights=vector(self.weights, len(centres), "weights"))
        object.__setattr__(self, "bandwidth", positive(self.bandwidth, "bandwidth"))

    def _values(self, points: FloatArray) -> FloatArray:
        # ||x - c||^2 as a product of matrices, about the centres' mean against cancellation.
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

    |D^k f| <= sum_j |a_j| max over |k| of prod_i e_ji (e_ji - 1) ... (e_ji - k_i + 1).

    Parameters
    ----------
    exponents : (c, d) array
        e_j, whole numbers, at least 0.
    coefficients : (c,) array
        a_j.
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

    |D^k f| <= (max_i |w_i|)^|k| s_|k| with s_j a bound on the j-th derivative of the logistic
    function.

    Parameters
    ----------
    weights : (d,) array
        w.
    bias : float
        b.
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
    """Plane waves f(x) = sum_j a_j cos(<w_j, x> + p_j): characteristic functions, random features.

    |D^k f| <= sum_j |a_j| (max_i |w_ji|)^|k|.

    Parameters
    ----------
    frequencies : (c, d) array
        w_j, in radians per unit length.
    amplitudes, phases : (c,) array
        a_j, and p_j in radians.
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

    s is the logistic function, so the answer is nearly the share of records in the box of sides
    [l_i, u_i] once h is small. A factor and its derivatives are at most 1 and 2 s_j / h^j.

    Parameters
    ----------
    low, high : (d,) array
        l_i < u_i; sides may end outside the cube.
    width : float
        h > 0, the width of the edges in the units of the cube.
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


#: The kinds of query that a file may hold, by name.
KINDS: dict[str, type[ClosedForm]] = {
    kind.__name__: kind for kind in (GaussianMixture, Polynomial, Logistic, Waves, SoftRange)
}


def query_from_dict(description: object) -> ClosedForm:
    """The query that `ClosedForm.to_dict` described, as read from JSON.

    Raises ``ValueError`` for anything else, naming the kinds or parameters there are.
    """
    if not isinstance(description, dict):
        raise ValueError(f"a query must be an object, got {type(description).__name__}")
    kind = description.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    parameters = {name: value for name, value in description.items() if name != "kind"}
    known = _parameters(KINDS[kind])
    if parameters.keys() != set(known):
        raise ValueError(
            f"{kind} must have the parameters {', '.join(known)}, "
            f"got {', '.join(map(str, parameters)) or 'none'}"
        )
    return KINDS[kind](**parameters)
