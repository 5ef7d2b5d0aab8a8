"""Smooth queries: functions on the cube with bounded derivatives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray
from geomdp._validation import batch, positive, whole
from geomdp.workloads.smooth.derivative_bounds import MAX_ORDER

#: A function that takes an array of points (n, d) and returns one value for each point: (n,).
Function = Callable[[FloatArray], npt.NDArray[Any]]

#: Errors that a function of one point typically raises for an array of points.
_NOT_VECTORISED = (TypeError, ValueError, IndexError, AttributeError)


class SmoothQuery(ABC):
    """A function f on [-1, 1]^d with bounds on its derivatives.

    The answer is the mean of f over the records. f is in the class C^K_B if |D^k f| <= B on the
    cube for all k with |k| = k_1 + ... + k_d <= K. For K <= 60, a query is in C^K_B with
    B = `derivative_bound(K)` if this B is finite.

    Examples
    --------
    >>> import geomdp as gd
    >>> query = gd.workloads.smooth.Waves([[1.0]], [1.0], [0.0])
    >>> query.dimension
    1
    >>> query.order_bounds(2)
    array([1., 1., 1.])
    >>> query.derivative_bound(2)
    1.0
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
        """Bounds on |D^k f| over the cube for |k| = 0, 1, ..., `order` <= 60: (order + 1,).

        A bound that is unknown or overflows float64 is infinite.
        """
        order = whole(order, "order", minimum=0, maximum=MAX_ORDER)
        with np.errstate(over="ignore", invalid="ignore"):
            bounds = self._order_bounds(order)
        # 0 times infinity gives NaN. In this case, no finite bound was computed.
        return np.where(np.isnan(bounds), np.inf, bounds)

    def __call__(self, points: npt.ArrayLike) -> FloatArray:
        """Values (n,) at points (n, d)."""
        return self._values(batch(points, self.dimension, "points"))

    def derivative_bound(self, smoothness: int) -> float:
        """A bound B such that the query is in C^K_B for K = `smoothness` <= 60; inf if unknown."""
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
