"""Nearest points of one body to many targets, directly or through a linear map, certified."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import batch, finite_array, positive, vector
from geomdp.bodies.base import Body
from geomdp.bodies.oracles import MissingOracle
from geomdp.bodies.polytopes.nearest.point_sets import OracleColumns, VertexColumns
from geomdp.geometry.results import Projection

if TYPE_CHECKING:
    from geomdp.bodies.polytopes.nearest.column_generation import Found

#: A body no larger than this share of its points' coordinates, the rounding of their mean, is a
#: single point.
POINT_SIZE = 4 * np.finfo(np.float64).eps


class Projector:
    """Nearest points of one body to many targets: argmin over y in K of ||A y - target||_2.

    Work that does not depend on the target (images of the vertices, centre, scale) is done once.
    The route is the body's closed form where it has one and A is the identity; else column
    generation with a fully corrective active set (Wolfe's minimum-norm point) over the body's list
    of vertices, or over its extreme points found on demand.

    Parameters
    ----------
    body : Body
        K in R^m.
    matrix : (d, m) array, optional
        A; by default the identity.

    Raises
    ------
    MissingOracle
        If K has neither a closed form, nor a list of vertices, nor `extreme_point`.
    """

    def __init__(self, body: Body, matrix: npt.ArrayLike | None = None) -> None:
        self._body = body
        self._matrix = None if matrix is None else finite_array(matrix, "matrix", ndim=2)
        if self._matrix is not None and self._matrix.shape[1] != body.dimension:
            raise ValueError(
                f"matrix must have shape (d, {body.dimension}), got {self._matrix.shape}"
            )
        self._vertices: VertexColumns | None = None
        self._closed = self._matrix is None and body.implements(Body.project)
        if self._closed:
            return
        if body.implements(Body.vertex_list):
            self._vertices = VertexColumns(body.vertex_list(), self._matrix)
        elif not body.implements(Body.extreme_point):
            raise MissingOracle(body, "projection", "project or extreme_point")

    def nearest(
        self, target: npt.ArrayLike, *, tol: float = 1e-8, warm_start: Projection | None = None
    ) -> Projection:
        """Point y of K with A y nearest to `target` (d,).

        Parameters
        ----------
        target : (d,) array
            Where to project from.
        tol : float
            Converged when gap <= tol * scale^2; see `project`.
        warm_start : Projection, optional
            A result of the same body for another target; a start only, never part of the answer.

        Returns
        -------
        Projection
            With gap max over x in K of <target - A y, A x - A y>, so that A y is within sqrt(gap)
            of the true nearest image.
        """
        width = self._body.dimension if self._matrix is None else len(self._matrix)
        target = vector(target, width, "target")
        tol = positive(tol, "tol")
        if self._closed:
            return self._closed_form(target, tol)
        if self._vertices is not None:
            return self._by_vertices(self._vertices, target, tol, warm_start)
        return self._by_oracle(target, tol, warm_start)

    def nearest_many(self, targets: npt.ArrayLike, *, tol: float = 1e-8) -> list[Projection]:
        """Points y of K with A y nearest to each row of `targets` (b, d), as `nearest` gives them.

        Over listed vertices all searches proceed together and price the vertices by one matrix
        product, which costs a fraction of separate projections. Else one after the other; over
        extreme points found on demand, each starts from the active set of the last.

        Parameters
        ----------
        targets : (b, d) array
            Where to project from.
        tol : float
            As for `nearest`.

        Returns
        -------
        list of Projection
            One per row.
        """
        width = self._body.dimension if self._matrix is None else len(self._matrix)
        targets = batch(targets, width, "targets")
        tol = positive(tol, "tol")
        columns = self._vertices
        if columns is not None and len(targets) and not _is_point(columns):
            from geomdp.bodies.polytopes.nearest.column_generation import (
                search_many,  # compiled: costs import time
            )

            every = search_many(columns, targets, tol)
            ends = [_End.of(columns, t, found) for t, found in zip(targets, every, strict=True)]
            best = columns.price_many(np.stack([end.residual for end in ends]), 1)
            return [
                self._listed(columns, target, tol, found, end, keys)
                for target, found, end, keys in zip(targets, every, ends, best, strict=True)
            ]
        found_so_far: list[Projection] = []
        for target in targets:
            last = found_so_far[-1] if found_so_far and not self._closed else None
            found_so_far.append(self.nearest(target, tol=tol, warm_start=last))
        return found_so_far

    def _closed_form(self, target: FloatArray, tol: float) -> Projection:
        point = self._body.project(target[None])[0]
        residual = target - point
        if not residual.any():
            return Projection(target.copy(), 0.0, 0, True)
        # The point is in K, so the maximum is not below 0 but for rounding.
        gap = max(float(self._body.support(residual[None])[0] - residual @ point), 0.0)
        return Projection(point, gap, 0, bool(gap <= tol * self._body.radius() ** 2))

    def _by_vertices(
        self, columns: VertexColumns, target: FloatArray, tol: float, warm_start: Projection | None
    ) -> Projection:
        keys, weights = np.array([columns.start(target)]), np.ones(1)
        if warm_start is not None:
            keys, weights = self._warm(warm_start, len(columns))
        found = _search(columns, target, tol, keys, weights)
        end = _End.of(columns, target, found)
        return self._listed(columns, target, tol, found, end, columns.price(end.residual, 1))

    def _listed(
        self,
        columns: VertexColumns,
        target: FloatArray,
        tol: float,
        found: Found,
        end: _End,
        best: IntArray,
    ) -> Projection:
        """The result of a search over listed vertices."""
        point, gap, converged = self._certify(columns, target, tol, found, end, best)
        shares = dict(zip(found.keys.tolist(), found.weights.tolist(), strict=True))
        return Projection(point, gap, found.rounds, converged, shares)

    def _by_oracle(
        self, target: FloatArray, tol: float, warm_start: Projection | None
    ) -> Projection:
        seeds = None
        if warm_start is not None:
            if warm_start.atoms is None:
                raise ValueError("warm_start must carry atoms for a body without listed vertices")
            seeds = batch(warm_start.atoms, self._body.dimension, "warm_start.atoms")
        columns = OracleColumns(self._body, self._matrix, seeds)
        keys, weights = np.array([columns.start(target)]), np.ones(1)
        if warm_start is not None and seeds is not None:
            keys, weights = self._warm(warm_start, len(seeds))
        found = _search(columns, target, tol, keys, weights)
        end = _End.of(columns, target, found)
        best = columns.price(end.residual, 1)
        point, gap, converged = self._certify(columns, target, tol, found, end, best)
        atoms = columns.originals(found.keys)
        shares = dict(enumerate(found.weights.tolist()))
        return Projection(point, gap, columns.calls, converged, shares, atoms)

    def _certify(
        self,
        columns: VertexColumns | OracleColumns,
        target: FloatArray,
        tol: float,
        found: Found,
        end: _End,
        best: IntArray,
    ) -> tuple[FloatArray, float, bool]:
        """The point found, its gap computed afresh, and whether that is within tolerance.

        `best` are keys of the points furthest along the residual.
        """
        if found.reached and self._matrix is None:
            return target.copy(), 0.0, True
        if _is_point(columns):
            return end.point, float(np.linalg.norm(end.residual)) * 2 * columns.scale, True
        gap = max(float(((columns.offsets(best) - end.offset) @ end.residual).max()), 0.0)
        return end.point, gap, bool(gap <= tol * columns.scale**2)

    @staticmethod
    def _warm(warm_start: Projection, count: int) -> tuple[IntArray, FloatArray]:
        """Keys and weights of an earlier result, checked against `count` known points."""
        if not warm_start.weights:
            raise ValueError("warm_start must carry weights, got a projection in closed form")
        keys = np.fromiter(warm_start.weights.keys(), dtype=np.int64)
        weights = np.fromiter(warm_start.weights.values(), dtype=np.float64)
        if keys.min() < 0 or keys.max() >= count:
            raise ValueError(f"warm_start must have vertex indices in 0..{count - 1}, got {keys}")
        if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.sum() > 0):
            raise ValueError("warm_start must have non-negative weights with a positive sum")
        return keys, weights


@dataclass(frozen=True)
class _End:
    """Where a search ended, from its weights alone: y, A y less the centre, and target - A y."""

    point: FloatArray
    offset: FloatArray
    residual: FloatArray

    @classmethod
    def of(cls, columns: VertexColumns | OracleColumns, target: FloatArray, found: Found) -> _End:
        """From the weights of `found`."""
        offset = found.weights @ columns.offsets(found.keys)
        point = found.weights @ columns.originals(found.keys)
        return cls(point, offset, target - columns.centre - offset)


def _is_point(columns: VertexColumns | OracleColumns) -> bool:
    """Whether the image of the body is a single point to rounding."""
    return bool(columns.scale <= POINT_SIZE * np.abs(columns.centre).max())


def _search(
    columns: VertexColumns | OracleColumns,
    target: FloatArray,
    tol: float,
    keys: IntArray,
    weights: FloatArray,
) -> Found:
    """The search, unless there is nothing to search."""
    from geomdp.bodies.polytopes.nearest.column_generation import (  # compiled: costs import time
        Found,
        search,
    )

    if _is_point(columns):
        distance = float(np.abs(target - columns.centre).max())
        reached = bool(distance <= POINT_SIZE * np.abs(columns.centre).max())
        return Found(keys[:1], np.ones(1), reached, rounds=0)
    return search(columns, target, tol, keys, weights)
