"""Smooth queries: functions on the cube with bounds on the derivatives D^k f of order sum_i k_i."""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.special

from geomdp._typing import FloatArray
from geomdp._validation import batch, finite_array, positive, vector, whole

#: A function that takes an array of points (n, d) and returns one value for each point: (n,).
Function = Callable[[FloatArray], npt.NDArray[Any]]

#: Errors that a function of one point typically raises for an array of points.
_NOT_VECTORISED = (TypeError, ValueError, IndexError, AttributeError)


class SmoothQuery(ABC):
    """A function f on [-1, 1]^d with bounds on its derivatives; its mean is the answer.

    f is in the class C^K_B if |D^k f| <= B on the cube for all k with |k| = k_1 + ... + k_d <= K.
    """

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of variables d."""

    @abstractmethod
    def _values(self, points: FloatArray) -> FloatArray:
        """Values (n,) at checked points (n, d)."""

    @abstractmethod
    def _order_bounds(self, order: int) -> FloatArray:
        """Compute the bounds for `order_bounds`; an overflow can give infinity or NaN."""

    def order_bounds(self, order: int) -> FloatArray:
        """Bounds (order + 1,) on |D^k f| for |k| = 0, ..., `order` <= 60; infinite if unknown."""
        order = whole(order, "order", minimum=0, maximum=MAX_ORDER)
        with np.errstate(over="ignore", invalid="ignore"):
            bounds = self._order_bounds(order)
        # 0 times infinity gives NaN. In this case, no finite bound was computed.
        return np.where(np.isnan(bounds), np.inf, bounds)

    def __call__(self, points: npt.ArrayLike) -> FloatArray:
        """Values (n,) at points (n, d)."""
        return self._values(batch(points, self.dimension, "points"))

    def derivative_bound(self, smoothness: int) -> float:
        """A bound B for which f is in C^K_B with K = `smoothness` <= 60; inf if unknown."""
        return float(self.order_bounds(whole(smoothness, "smoothness", minimum=0)).max())


@dataclass(frozen=True)
class StatedSmoothness(SmoothQuery):
    """A user's function with a stated bound B on its derivatives up to order K.

    Parameters
    ----------
    function : callable
        The function f, which takes points (n, d) and returns values (n,).
    d : int
        Number of variables.
    smoothness : int
        Largest order K of the bounded derivatives, from 1 to 60.
    bound : float
        The bound B of `SmoothQuery`, which is not checked: a wrong one makes error bounds wrong.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> query = gd.workloads.smooth.StatedSmoothness(
    ...     lambda points: np.sin(points[:, 0]), d=1, smoothness=4, bound=1.0
    ... )
    >>> query.derivative_bound(4), query.derivative_bound(5)
    (1.0, inf)
    """

    function: Function
    d: int
    smoothness: int
    bound: float

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ValueError(f"function must be callable, got {type(self.function).__name__}")
        object.__setattr__(self, "d", whole(self.d, "d"))
        smoothness = whole(self.smoothness, "smoothness", maximum=MAX_ORDER)
        object.__setattr__(self, "smoothness", smoothness)
        object.__setattr__(self, "bound", positive(self.bound, "bound"))

    @property
    def dimension(self) -> int:
        return self.d

    def _values(self, points: FloatArray) -> FloatArray:
        return values_of(self.function, points)

    def _order_bounds(self, order: int) -> FloatArray:
        return np.where(np.arange(order + 1) <= self.smoothness, self.bound, np.inf)


def values_of(function: Function, points: FloatArray) -> FloatArray:
    """Values (n,) of a query at points (n, d) of the cube; ``ValueError`` for a faulty function."""
    values = function(points) if isinstance(function, SmoothQuery) else _called(function, points)
    if not np.isfinite(values).all():
        first = int(np.flatnonzero(~np.isfinite(values))[0])
        raise ValueError(
            f"query must be finite on the cube, got {values[first]} at {points[first].tolist()}"
        )
    return values.astype(np.float64)


def _called(function: Function, points: FloatArray) -> npt.NDArray[Any]:
    """The real numbers (n,) that a user's function returns at `points`; else ``ValueError``."""
    try:
        returned = function(points)
    except _NOT_VECTORISED as error:
        raise ValueError(
            f"query must take an array of points (n, d) and return values (n,); given shape "
            f"{points.shape} it raised {type(error).__name__}: {error}"
        ) from error
    values = np.asarray(returned)
    if values.shape != (len(points),):
        raise ValueError(
            f"query must return values ({len(points)},) for points {points.shape}, "
            f"got shape {values.shape}"
        )
    if values.dtype.kind not in "biuf":
        raise ValueError(f"query must return real numbers, got {values.dtype}")
    return values


# Queries whose bounds have a closed form.


class ClosedForm(SmoothQuery):
    """A smooth query given by numbers and arrays. It can be written to a file."""

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
        Centres c_j, anywhere in R^d.
    weights : (c,) array
        Weights w_j, of any sign.
    bandwidth : float
        Bandwidth h from 1e-150 to 1e150, in the units of the cube.

    Examples
    --------
    >>> import geomdp as gd
    >>> query = gd.workloads.smooth.GaussianMixture([[0.2, -0.5]], [1.0], bandwidth=0.4)
    >>> query([[0.2, -0.5], [0.6, -0.5]]).round(4)
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
        # The largest |(d/du)^j u^e| on [-1, 1] is e (e - 1) ... (e - j + 1).
        steps = self.exponents.T - np.arange(order)[:, None, None]
        ones = np.ones((1, *self.exponents.T.shape))
        factors = np.concatenate([ones, np.cumprod(np.maximum(steps, 0), axis=0)])
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
    >>> import geomdp as gd
    >>> query = gd.workloads.smooth.Logistic([3.0, 0.0], bias=-0.5)
    >>> query([[0.0, 1.0], [1.0, 0.0]]).round(4)
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

    |D^k f| <= sum_j |a_j| (max_i |w_ji|)^|k|.

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
    >>> query([[0.0, 0.5], [1.0, 0.5]])
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
        Ends l_i < u_i of the sides, anywhere in R^d.
    width : float
        Width h > 0 of the edges, in the units of the cube.

    Examples
    --------
    >>> import geomdp as gd
    >>> query = gd.workloads.smooth.SoftRange(low=[-0.5], high=[0.5], width=0.05)
    >>> query([[0.0], [0.5], [1.0]]).round(3)
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


# Queries read from descriptions in files.


#: The kinds of query that can be read from a file, by name.
KINDS: dict[str, type[ClosedForm]] = {
    kind.__name__: kind for kind in (GaussianMixture, Polynomial, Logistic, Waves, SoftRange)
}


def query_from_dict(description: object) -> ClosedForm:
    """The query that `ClosedForm.to_dict` describes; ``ValueError`` for any other object."""
    if not isinstance(description, dict):
        raise ValueError(f"a query must be a dict, got {type(description).__name__}")
    kind = description.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    parameters = {name: value for name, value in description.items() if name != "kind"}
    known = parameter_names(KINDS[kind])
    if parameters.keys() != set(known):
        raise ValueError(
            f"{kind} must have the parameters {', '.join(known)}, "
            f"got {', '.join(map(str, parameters)) or 'none'}"
        )
    return KINDS[kind](**parameters)


# Bounds on the derivatives of the univariate functions in these queries.


#: Highest order of derivatives with bounds: higher ones do not improve noisy answers, and the
#: square of 60! is within float64.
MAX_ORDER = 60


@cache
def gaussian_derivative(order: int) -> float:
    """Largest |(d/du)^j exp(-u^2 / 2)| for j = `order`, at a zero of the Hermite He_{j+1}."""
    nodes, _ = scipy.special.roots_hermitenorm(order + 1)
    # The recurrence computes He_k(u) exp(-u^2 / 2) / sqrt(k!), because this does not overflow.
    before, now = np.zeros_like(nodes), np.exp(-(nodes**2) / 2)
    for k in range(order):
        before, now = now, (nodes * now - math.sqrt(k) * before) / math.sqrt(k + 1)
    return float(np.abs(now).max()) * math.sqrt(math.factorial(order))


@cache
def logistic_derivative(order: int) -> float:
    """A bound on |(d/du)^j [1 / (1 + exp(-u))]| for j = `order`; the supremum if j is 0 or odd.

    The Fourier transform of the first derivative is pi w / sinh(pi w) > 0, so the bound is
    int_0^inf w^j / sinh(pi w) dw = 2 (1 - 2^-s) Gamma(s) zeta(s) / pi^s with s = j + 1.
    """
    if order == 0:
        return 1.0
    s = order + 1
    log_gamma = math.lgamma(s) - s * math.log(math.pi)
    return 2 * (1 - 0.5**s) * float(scipy.special.zeta(s)) * math.exp(log_gamma)


def powers(base: float | FloatArray, order: int) -> FloatArray:
    """Powers 0..`order` of numbers >= 0; the exponent is the first axis."""
    base = np.asarray(base, dtype=np.float64)
    return np.asarray(base ** np.arange(order + 1).reshape(-1, *[1] * base.ndim))


def largest_product(factors: FloatArray) -> FloatArray:
    """Entry j is the largest prod_i factors[k_i, i] with k_1 + ... + k_d = j (product rule)."""
    best = factors[:, 0]
    for i in range(1, factors.shape[1]):
        best = np.stack([(best[: j + 1] * factors[j::-1, i]).max(axis=0) for j in range(len(best))])
    return np.asarray(best)
