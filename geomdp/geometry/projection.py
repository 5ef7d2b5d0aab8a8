"""Projections on a convex body with a duality gap, and the results of geometric algorithms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import batch, finite_array, positive, vector
from geomdp.bodies.base import Body, MissingOracle, checked_body
from geomdp.bodies.point_sets import OracleColumns, VertexColumns
from geomdp.bodies.vpolytope import VPolytope

if TYPE_CHECKING:
    from geomdp.bodies.column_generation import Found


@dataclass(frozen=True)
class Estimate:
    """A number that is known exactly (stderr 0, samples 0) or estimated from `samples` draws.

    Parameters
    ----------
    value, stderr : float
        The number or its estimate, and its standard error.
    interval : tuple of float
        (low, high), with the level and the validity that the function states.
    samples : int
        Number of draws.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.gaussian_width(gd.bodies.Box.centred([1.0, 2.0]))
    Estimate(2.39365, exact)
    >>> triangle = gd.bodies.VPolytope([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> found = gd.gaussian_width(triangle, rng=0, samples=1000)
    >>> found.interval[0] < found.value < found.interval[1]
    True
    """

    value: float
    stderr: float
    interval: tuple[float, float]
    samples: int

    @classmethod
    def exact(cls, value: float) -> Estimate:
        """A number known in closed form."""
        return cls(value, 0.0, (value, value), 0)

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        if self.samples == 0:
            return f"Estimate({self.value:.6g}, exact)"
        low, high = self.interval
        return (
            f"Estimate({self.value:.6g} +- {self.stderr:.2g}, in [{low:.6g}, {high:.6g}]; "
            f"{self.samples} samples)"
        )


@dataclass(frozen=True)
class Projection:
    """The point of a body K nearest to a target y, with a bound `gap` on the squared error.

    Parameters
    ----------
    point : (m,) array
        The point found; it lies in the body.
    gap : float
        Frank-Wolfe duality gap max over x in K of <y - point, x - point>, recomputed at the end.
        The true nearest point p* satisfies ||point - p*||^2 <= gap.
    iterations : int
        Rounds of the search over listed vertices, else calls of `extreme_point`; 0 if closed form.
    converged : bool
        Whether the gap is within the requested tolerance.
    weights, atoms : dict of int to float, (k, m) array
        Weights of the convex combination that gives `point`, by row number of the extreme points
        `atoms` or, if that is None, by number of a listed vertex; both None for a closed form.

    Examples
    --------
    >>> import geomdp as gd
    >>> triangle = gd.bodies.VPolytope([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> found = gd.project(triangle, [1.0, 1.0])
    >>> {number: round(weight, 6) for number, weight in found.weights.items()}
    {1: 0.5, 2: 0.5}
    """

    point: FloatArray
    gap: float
    iterations: int
    converged: bool
    weights: dict[int, float] | None = None
    atoms: FloatArray | None = None

    def __repr__(self) -> str:
        used = "" if self.weights is None else f", extreme points: {len(self.weights)}"
        state = "" if self.converged else ", not converged"
        return (
            f"Projection(dimension: {len(self.point)}{used}, gap: {self.gap:.2g}, "
            f"iterations: {self.iterations}{state})"
        )


#: A body counts as a single point if its scale (see `project`) is at most this share of the largest
#: coordinate of its centre, whose rounding error is of this size.
POINT_SIZE = 4 * np.finfo(np.float64).eps
#: In `ConeProjector`, two vectors are orthogonal if their cosine is at most this. The cosine of a
#: target with noise of length s and the nearest point then adds at most 1e-12 to s.
ORTHOGONAL = 1e-12
#: `ConeProjector` doubles or halves the scale of a body at most this number of times.
MAX_DOUBLINGS = 60


def project(
    body: Body, target: npt.ArrayLike, tol: float = 1e-8, warm_start: Projection | None = None
) -> Projection:
    """Nearest point of a body to a target: argmin over y in K of ||y - target||_2.

    The result is the point y with its Frank-Wolfe gap (see `Projection`). A target found to be in K
    is the result, with gap 0. If a search makes no more progress, `converged` is False.

    Parameters
    ----------
    body, target : Body, (m,) array
        K in R^m, with `project`, a list of vertices, or `extreme_point`; the point to be projected.
    tol : float
        Relative tolerance: the search has converged when gap <= tol * scale^2. The scale is the
        largest distance of a listed vertex from the mean of the vertices, or of an extreme point
        computed from the midpoint of two extreme points in opposite random directions (at most the
        diameter). With a closed form, it is `body.radius()`.
    warm_start : Projection, optional
        An earlier projection on the same body. The search starts from the vertices of its result.

    Raises
    ------
    MissingOracle
        If K lacks all of these: `project`, a list of vertices, and `extreme_point`.
    ValueError
        For a target of the wrong shape or not finite, or tol <= 0. If K has no closed form, also
        for a `warm_start` without weights, or with weights that do not fit the points of the body.

    Notes
    -----
    In an exchange of Wolfe (1976), one point of K enters the active set whose hull contains y, and
    others may leave it. At the end k <= m + 1 points have positive weight. Cost with N listed
    vertices: 3 to 7 products of the (N, m) vertices with a vector, or up to about 50 if k is near
    m, and about 2 k to 4 k exchanges of O(m k) each. Without a list, an exchange costs about one
    extreme point (X-MNP).

    Examples
    --------
    >>> import geomdp as gd
    >>> triangle = gd.bodies.VPolytope([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> found = gd.project(triangle, [1.0, 1.0])
    >>> found.point.round(6).tolist(), found.converged
    ([0.5, 0.5], True)
    """
    return Projector(body).nearest(target, tol=tol, warm_start=warm_start)


class Projector:
    """Nearest points of one body to many targets: argmin over y in K of ||A y - target||_2.

    Without a matrix, a closed-form projection is used if K has one. If not, column generation finds
    the nearest point, with an active set of points (Wolfe's minimum-norm point) from the list of
    vertices of K, whose images, centre and scale are computed once, or from extreme points. Source:
    Wolfe (1976); Nikolov (2022), Algorithm 1; JL-A1, X-MNP.

    Parameters
    ----------
    body, matrix : Body, (d, m) array
        K in R^m, and A; by default the identity.

    Raises
    ------
    MissingOracle
        If K has neither vertices nor extreme points, nor a closed form that can be used.
    ValueError
        If the matrix does not have m columns or is not finite.

    Examples
    --------
    >>> import geomdp as gd
    >>> triangle = gd.bodies.VPolytope([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> projector = gd.geometry.Projector(triangle)
    >>> found = projector.nearest_many([[1.0, 1.0], [-1.0, 0.5], [0.2, 0.2]])
    >>> [projection.point.round(6).tolist() for projection in found]
    [[0.5, 0.5], [0.0, 0.5], [0.2, 0.2]]
    """

    def __init__(self, body: Body, matrix: npt.ArrayLike | None = None) -> None:
        self._body = checked_body(body)
        self._matrix = None if matrix is None else finite_array(matrix, "matrix", ndim=2)
        if self._matrix is not None and self._matrix.shape[1] != body.dimension:
            raise ValueError(f"matrix must have {body.dimension} columns, got {self._matrix.shape}")
        self._closed = self._matrix is None and body.implements(Body.project)
        if not (
            self._closed or body.implements(Body.vertex_list) or body.implements(Body.extreme_point)
        ):
            raise MissingOracle(body, "projection", "project or extreme_point")

    @property
    def dimension(self) -> int:
        """The dimension m of the space of K."""
        return self._body.dimension

    @property
    def _width(self) -> int:
        """The dimension d of the space of A K."""
        return self._body.dimension if self._matrix is None else len(self._matrix)

    @cached_property
    def _vertices(self) -> VertexColumns | None:
        """The listed vertices, prepared by compiled code; None if the search does not use them."""
        if self._closed or not self._body.implements(Body.vertex_list):
            return None
        if self._matrix is None and isinstance(self._body, VPolytope):
            return _listed(self._body)
        return VertexColumns(self._body.vertex_list(), self._matrix)

    def prepare(self) -> None:
        """Prepare listed vertices before a release spends any budget; errors of `vertex_list`."""
        _ = self._vertices

    def nearest(
        self, target: npt.ArrayLike, *, tol: float = 1e-8, warm_start: Projection | None = None
    ) -> Projection:
        """Point y of K with A y nearest to `target` (d,), as in `project` with the scale of A K.

        The `point` is y, not A y, and `gap` is max over x in K of <target - A y, A x - A y>: an
        exact solution y* satisfies ||A y - A y*||^2 <= gap. If A is not injective, other points of
        K can have the same image. A `warm_start` from another target saves time.
        """
        target = vector(target, self._width, "target")
        tol = positive(tol, "tol")
        if self._closed:
            return self._closed_form(target, tol)
        if self._vertices is not None:
            return self._searched(self._vertices, len(self._vertices), target, tol, warm_start)
        seeds = None
        if warm_start is not None:
            if warm_start.atoms is None:
                raise ValueError("warm_start must have atoms if no vertices are listed, got None")
            seeds = batch(warm_start.atoms, self._body.dimension, "warm_start.atoms")
        columns = OracleColumns(self._body, self._matrix, seeds)
        return self._searched(columns, 0 if seeds is None else len(seeds), target, tol, warm_start)

    def nearest_many(self, targets: npt.ArrayLike, *, tol: float = 1e-8) -> list[Projection]:
        """Points y of K with A y nearest to each row of `targets` (b, d), as `nearest` gives them.

        With listed vertices, all searches share one matrix product per round, which is faster. With
        extreme points, a search starts from the points of the previous result.
        """
        targets = batch(targets, self._width, "targets")
        tol = positive(tol, "tol")
        columns = self._vertices
        if columns is not None and len(targets) and not _is_point(columns):
            from geomdp.bodies import column_generation  # compiled: costs import time

            every = column_generation.search_many(columns, targets, tol)
            pairs = zip(targets, every, strict=True)
            return [self._result(columns, target, tol, found) for target, found in pairs]
        results: list[Projection] = []
        for target in targets:
            last = results[-1] if results and not self._closed else None
            results.append(self.nearest(target, tol=tol, warm_start=last))
        return results

    def image(self, point: FloatArray) -> FloatArray:
        """A y (d,) of a point y (m,)."""
        return point if self._matrix is None else np.asarray(self._matrix @ point)

    def support(self, direction: FloatArray) -> float:
        """The largest <direction, A x> over x in K, for a direction (d,)."""
        pulled = direction if self._matrix is None else direction @ self._matrix
        return float(self._body.support(pulled[None])[0])

    def _closed_form(self, target: FloatArray, tol: float) -> Projection:
        point = self._body.project(target[None])[0]
        residual = target - point
        if not residual.any():
            return Projection(target.copy(), 0.0, 0, True)
        # The point is in K, so the gap is below 0 only by rounding.
        gap = max(float(self._body.support(residual[None])[0] - residual @ point), 0.0)
        return Projection(point, gap, 0, bool(gap <= tol * self._body.radius() ** 2))

    def _searched(
        self,
        columns: VertexColumns | OracleColumns,
        known: int,
        target: FloatArray,
        tol: float,
        warm_start: Projection | None,
    ) -> Projection:
        """One search from `columns`, the first `known` of which have the keys 0..known - 1."""
        from geomdp.bodies import column_generation  # compiled: costs import time

        start = None if warm_start is None else self._warm(warm_start, known)
        if _is_point(columns):
            distance = float(np.abs(target - columns.centre).max())
            reached = bool(distance <= POINT_SIZE * np.abs(columns.centre).max())
            key = np.zeros(1, dtype=np.int64)
            found = column_generation.Found(key, np.ones(1), key, reached, rounds=0)
        else:
            found = column_generation.search(columns, target, tol, start)
        return self._result(columns, target, tol, found)

    def _result(
        self, columns: VertexColumns | OracleColumns, target: FloatArray, tol: float, found: Found
    ) -> Projection:
        """The point found, with its gap computed from the weights."""
        point, gap, converged = found.weights @ columns.originals(found.keys), 0.0, True
        offset = found.weights @ columns.offsets(found.keys)
        residual = target - columns.centre - offset
        if found.reached and self._matrix is None:
            point = target.copy()
        elif _is_point(columns):
            gap = float(np.linalg.norm(residual)) * 2 * columns.scale
        else:
            # One of the points `found.priced` attains the maximum in the gap, up to rounding.
            gap = max(float(((columns.offsets(found.priced) - offset) @ residual).max()), 0.0)
            converged = bool(gap <= tol * columns.scale**2)
        weights = found.weights.tolist()
        if isinstance(columns, VertexColumns):
            shares = dict(zip(found.keys.tolist(), weights, strict=True))
            return Projection(point, gap, found.rounds, converged, shares)
        atoms = columns.originals(found.keys)
        return Projection(point, gap, columns.calls, converged, dict(enumerate(weights)), atoms)

    @staticmethod
    def _warm(warm_start: Projection, count: int) -> tuple[IntArray, FloatArray]:
        """Keys and weights of an earlier result. The keys must be below `count`."""
        if not warm_start.weights:
            raise ValueError("warm_start must have weights, got None from a closed form")
        keys = np.fromiter(warm_start.weights.keys(), dtype=np.int64)
        weights = np.fromiter(warm_start.weights.values(), dtype=np.float64)
        if keys.min() < 0 or keys.max() >= count:
            raise ValueError(f"warm_start must have vertex indices in 0..{count - 1}, got {keys}")
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
            raise ValueError("warm_start must have non-negative weights with a positive sum")
        return keys, weights


class ConeProjector:
    """Nearest points of the cone {t x : t >= 0, x in K}: argmin over y of ||A y - target||_2.

    For the point x(t) of K nearest to target / t, the squared distance of t x(t) is convex in t
    with derivative -2 <target - t A x(t), A x(t)>. Cost: 5 to 15 projections on K, each from the
    last.
    """

    def __init__(self, projector: Projector) -> None:
        self._projector = projector

    def prepare(self) -> None:
        self._projector.prepare()

    def nearest(
        self, target: FloatArray, *, tol: float = 1e-8, warm_start: Projection | None = None
    ) -> Projection:
        """The point y of the cone with A y nearest to `target` (d,), as `Projector.nearest`.

        Weights and atoms are those of the point of K. `gap` is the maximum over x in K of
        <target - A y, A x>, or 0 if it is negative: ||A y - A z||^2 <= ||target - A z||^2 + 2 s gap
        for each z in s K.
        """
        square, farthest = float(target @ target), self._projector.support(target)
        if farthest <= 0:
            return Projection(np.zeros(self._projector.dimension), 0.0, 0, True)
        found, calls = warm_start, 0

        def slope(scale: float) -> float:
            nonlocal found, calls
            found = self._projector.nearest(target / scale, tol=tol / scale, warm_start=found)
            calls += found.iterations
            image = self._projector.image(found.point)
            value = float((target - scale * image) @ image)
            size = math.sqrt(square) * float(np.linalg.norm(image))
            return 0.0 if abs(value) <= ORTHOGONAL * size else value

        # For this t, target / t is no longer than the farthest point of A K in its direction.
        scale = _root(slope, start=square / farthest)
        slope(scale)  # the root need not be the last scale that was tried
        assert found is not None
        image = self._projector.image(found.point)
        scale = max(float(target @ image / (image @ image)), 0.0) if image.any() else 0.0
        gap = max(self._projector.support(target - scale * image), 0.0)
        return replace(found, point=scale * found.point, gap=gap, iterations=calls)


def _root(slope: Callable[[float], float], start: float) -> float:
    """A root t > 0 of a function that never rises, and is above 0 near t = 0."""
    from scipy.optimize import brentq  # a slow import

    end, rising = start, slope(start) > 0
    for _ in range(MAX_DOUBLINGS):
        last, end = end, 2 * end if rising else end / 2
        if (slope(end) > 0) != rising:
            break
    else:
        return end
    low, high = sorted((last, end))
    return float(brentq(slope, low, high, xtol=low * 1e-14, rtol=1e-14))


@lru_cache(maxsize=2)
def _listed(body: Body) -> VertexColumns:
    """The vertices of a `VPolytope`, prepared once for all projectors on this polytope."""
    return VertexColumns(body.vertex_list())


def _is_point(columns: VertexColumns | OracleColumns) -> bool:
    """Whether the image of the body is a single point up to rounding."""
    return bool(columns.scale <= POINT_SIZE * np.abs(columns.centre).max())
