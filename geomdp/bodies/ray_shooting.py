"""Where rays leave a polytope given by its vertices, and through which facet (X-RAY, JL-DEF).

`RayShooter` shoots rays; `VertexGauge` derives gauges, facets and chords of bodies from it.

The body in R^m is conv(v_i) with 0 inside, conv(+-v_i), or K - K for K = conv(v_i). The normal z of
the facet through which a ray p + t u leaves conv(+-v_i) solves

    minimise t(z) = (1 - <z, p>) / <z, u>   over z with |<z, v_i>| <= 1 for all i and <z, u> > 0.

For conv(v_i) the bounds are one-sided: <z, v_i> <= 1. The simplex method on facets keeps m signed
vertices b_1..b_m with <z, b_k> = 1, and the inverse of the matrix B with these rows. At t = t(z)
the ray meets the hyperplane of the facet, in the point with coordinates lambda = B^-T p + t B^-T u
in the b_k. If all are >= 0, z is the normal wanted. If not, a pivot drops a vertex with a negative
coordinate, and moves z along an edge of the polar body until another vertex becomes tight: its
product with z meets its bound. A pivot costs O(N m) for N vertices, and O(m^2) for the inverse.

* The vertices are mapped to coordinates in which their second moment is the identity, so that a
  stretched body is as easy as a round one.
* The vertex with the steepest edge is dropped. The edges are parallel to the columns of B^-1.
* To make ties rare, each bound 1 is lowered by a random amount of at most `PERTURBATION` (public,
  fixed seed). At the end, z is recomputed with the true bounds. While a vertex lies outside by more
  than a relative 1e-9, vertices are exchanged. Then z is scaled so that no vertex is outside.
* Among vertices that become tight within a tolerance far below the perturbation, the vertex with
  the largest pivot enters: Harris (1973), "Pivot selection methods of the Devex LP code".
* Every ray starts from the facet, among those found last in the same call, that it meets first; a
  failed one goes to HiGHS.

K - K is twice the section of conv(+-(v_i, 1)) where the last coordinate is 0. So N vertices
represent K - K, although K - K can have almost N^2 vertices.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp.bodies.base import MEMBERSHIP_TOLERANCE, Body, Facets, off_span
from geomdp.bodies.linear_programs import ConicProgram, SolverError

#: Largest amount by which a bound 1 is lowered to break ties.
PERTURBATION = 1e-8


@dataclass(frozen=True)
class Exits:
    """Times and normals z where rays leave a body in {x : <z, x> <= 1}; NaN if all methods fail."""

    #: (b,): the largest t with p + t u in the body; too low by rounding errors at most, and too
    #: high, for rays from 0, by at most a relative 1e-9 and rounding errors.
    times: FloatArray
    normals: FloatArray  # (b, m): normals of the facets through which the rays leave
    converged: BoolArray  # (b,): whether the exit was found


class RayShooter:
    """Exact ray shooting in a polytope by simplex pivots on its facets (X-RAY)."""

    def __init__(
        self, columns: FloatArray, whitening: FloatArray, *, two_sided: bool, section: bool
    ) -> None:
        #: (N, R): the vertices v_i in whitened coordinates x @ whitening, R = m; for a difference
        #: body the vectors (v_i, 1), R = m + 1.
        self.columns = columns
        self.whitening = whitening  # (m, m)
        self.two_sided = two_sided  # whether the body is the hull of v_i and -v_i, not of v_i
        self.section = section  # whether the body is twice the section {last coordinate = 0}
        rng = np.random.default_rng(PUBLIC_SEED)
        # Every bound is lowered by at least half of the largest amount, so that none stays at 1.
        self._bounds = 1 - PERTURBATION * rng.uniform(0.5, 1.0, len(columns))
        self._basis, self._signs = first_facet(columns, self._bounds, two_sided, rng)

    @classmethod
    def hull(cls, vertices: FloatArray) -> RayShooter:
        """A shooter for the hull of the rows (N, m), which must have 0 in the interior."""
        columns, whitening = whitened(distinct(vertices, up_to_sign=False))
        return cls(columns, whitening, two_sided=False, section=False)

    @classmethod
    def symmetric_hull(cls, vertices: FloatArray) -> RayShooter:
        """A shooter for the hull of the rows (N, m) and their negatives; ``ValueError`` if flat."""
        columns, whitening = whitened(distinct(vertices, up_to_sign=True))
        return cls(columns, whitening, two_sided=True, section=False)

    @classmethod
    def difference(cls, vertices: FloatArray) -> RayShooter:
        """A shooter for K - K, K the hull of the rows (N, m); ``ValueError`` if K is flat."""
        vertices = distinct(vertices, up_to_sign=False)
        columns, whitening = whitened(vertices - vertices.mean(axis=0))
        lifted = np.column_stack([columns, np.ones(len(columns))])
        return cls(lifted, whitening, two_sided=True, section=True)

    def exits(self, points: FloatArray, directions: FloatArray) -> Exits:
        """Where rays p + t u, t >= 0, leave; u != 0 and p inside (up to 1e-9) are not checked."""
        from geomdp.bodies.compiled import shoot  # numba is slow to import

        starts, ways = self._lifted(points), self._lifted(directions)
        normals, converged = shoot(
            self.columns, self._bounds, self.two_sided, self._basis, self._signs, starts, ways
        )
        for ray in np.flatnonzero(~converged):
            normal = self._by_linear_program(starts[ray], ways[ray])
            if normal is not None:
                normals[ray], converged[ray] = normal, True
        normals[~converged] = np.nan
        if self.section:
            normals = normals[:, :-1] / 2
        normals = normals @ self.whitening.T
        reach = np.einsum("bm,bm->b", normals, directions)
        left = np.maximum(0.0, 1 - np.einsum("bm,bm->b", normals, points))
        return Exits(left / reach, normals, converged)

    def _by_linear_program(self, point: FloatArray, direction: FloatArray) -> FloatArray | None:
        """The facet normal (R,), by the dual of max {t : p + t u = sum w_i c_i, sum w = 1}."""
        columns = np.vstack([self.columns, -self.columns]) if self.two_sided else self.columns
        sums = np.append(np.ones(len(columns)), 0.0)
        rows = np.vstack([np.column_stack([columns.T, -direction]), sums])
        program = ConicProgram(rows, np.append(np.zeros(len(columns)), -1.0))
        try:
            times, duals = program.solve(np.append(point, 1.0)[None])
        except SolverError:
            return None
        normal = duals[0, :-1]
        height = float((columns @ normal).max())
        if not np.isfinite(times[0]) or height <= 0 or normal @ direction <= 0:
            return None
        return normal / height

    def _lifted(self, vectors: FloatArray) -> FloatArray:
        """The `vectors` (b, m) in the coordinates of the rows of `columns`, as an array (b, R)."""
        vectors = vectors @ self.whitening
        if self.section:
            vectors = np.column_stack([vectors / 2, np.zeros(len(vectors))])
        return np.ascontiguousarray(vectors)


# Preparation of ray shooting: distinct vertices, whitened coordinates and a first facet.

#: `first_facet` ignores vertices whose products with z change by less than this share of the
#: largest change, because division by such a small change would magnify rounding errors.
SMALLEST_CHANGE = 1e-7
#: Bound on rounding errors of singular values, of changes of products in `first_facet`, and of the
#: vertices' mean, relative to the largest numbers.
DEGENERATE = 1e-13


def distinct(vertices: FloatArray, *, up_to_sign: bool) -> FloatArray:
    """The distinct rows of `vertices` (N, m), in order; x and -x count as equal if `up_to_sign`."""
    keys = vertices @ np.random.default_rng(PUBLIC_SEED).standard_normal(vertices.shape[1])
    signs = np.where(keys < 0, -1.0, 1.0) if up_to_sign else np.ones(len(keys))
    order = np.argsort(signs * keys, kind="stable")
    ordered = signs[order, None] * vertices[order]
    first = np.append(True, (ordered[1:] != ordered[:-1]).any(axis=1))
    return np.asarray(vertices[np.sort(order[first])])


def whitened(vertices: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rows mapped to second moment I, and the map (m, m); ``ValueError`` if they span less."""
    count, dimension = vertices.shape
    # The triangular factor has the same singular values and right singular vectors.
    factor = np.linalg.qr(vertices, mode="r") if count > dimension else vertices
    _, singular, rows = np.linalg.svd(factor, full_matrices=False)
    rank = int(np.count_nonzero(singular > DEGENERATE * singular.max(initial=0.0)))
    if rank < dimension or rank == 0:
        raise ValueError(f"vertices must span {dimension} dimensions (at least 1), got {rank}")
    whitening = rows.T * (np.sqrt(count) / singular)
    return np.ascontiguousarray(vertices @ whitening), whitening


def first_facet(
    columns: FloatArray, bounds: FloatArray, two_sided: bool, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """Rows (R,) of `columns` (N, R), with signs, whose bounds are tight at a polar vertex."""
    size = columns.shape[1]
    scale = float(np.linalg.norm(columns, axis=1).max())
    normal: FloatArray = np.zeros(size)
    tight = np.empty((size, size))  # rows: an orthonormal basis of the vertices so far
    basis, signs = np.zeros(size, dtype=np.int64), np.zeros(size)
    for k in range(size):
        step = _across(tight[:k], np.asarray(rng.standard_normal(size)))
        slope, value = columns @ step, columns @ normal
        rising = np.abs(slope) if two_sided else slope
        usable = rising > SMALLEST_CHANGE * rising.max()
        if rising.max() <= DEGENERATE * scale:
            raise ValueError(f"vertices must surround 0 in {size} dimensions")
        times = np.full(len(columns), np.inf)
        gaps = bounds[usable] - np.sign(slope[usable]) * value[usable]
        times[usable] = gaps / np.abs(slope[usable])
        entering = int(np.argmin(times))
        normal += times[entering] * step
        basis[k], signs[k] = entering, np.sign(slope[entering])
        tight[k] = _across(tight[:k], columns[entering])
    return basis, signs


def independent_points(body: Body) -> FloatArray:
    """Affinely independent extreme points (r + 1, m); ``ValueError`` if there are fewer."""
    hull, rng = body.affine_hull(), np.random.default_rng(PUBLIC_SEED)
    size = hull.dimension
    found = np.empty((size + 1, body.dimension))
    found[0] = body.extreme_point(np.ones((1, body.dimension)))[0]
    spanned = np.empty((size, size))  # rows: an orthonormal basis of the differences so far
    for k in range(size):
        direction = hull.basis @ _across(spanned[:k], rng.standard_normal(size))
        ends = body.extreme_point(np.stack([direction, -direction]))
        heights = np.abs((ends - found[0]) @ direction)
        if heights.max() <= MEMBERSHIP_TOLERANCE * float(np.abs(ends).max()):
            raise ValueError(
                f"body must have dimension {size}, like the affine hull that it declares, but its "
                f"extreme points span {k} dimensions"
            )
        found[k + 1] = ends[np.argmax(heights)]
        spanned[k] = _across(spanned[:k], (found[k + 1] - found[0]) @ hull.basis)
    return found


def _across(rows: FloatArray, vector: FloatArray) -> FloatArray:
    """The unit vector (r,) of the part of `vector` orthogonal to the orthonormal `rows` (k, r)."""
    for _ in range(2):  # the second pass removes the rounding errors of the first
        vector = vector - (rows @ vector) @ rows
    return np.asarray(vector / np.linalg.norm(vector))


# Gauges, facets and chords, in coordinates of the span of the polytope.


class VertexGauge:
    """Gauge, facets and chords of a polytope about 0, in the span of orthonormal `basis` (m, r)."""

    def __init__(self, basis: FloatArray, build: Callable[[], RayShooter]) -> None:
        self._basis = basis
        self._shooter = build() if basis.shape[1] else None

    def _exits(self, points: FloatArray, directions: FloatArray) -> Exits:
        assert self._shooter is not None, "a single point has no directions"
        found = self._shooter.exits(points, directions)
        if not found.converged.all():
            raise SolverError("ray shooting failed: neither pivots nor HiGHS found the facet")
        return found

    def solve(self, coordinates: FloatArray) -> Facets:
        """Gauges (b,) and normals (b, r) at points with `coordinates` (b, r); both are 0 at 0."""
        gauges, normals = np.zeros(len(coordinates)), np.zeros(coordinates.shape)
        away = coordinates.any(axis=1)
        if away.any():
            found = self._exits(np.zeros_like(coordinates[away]), coordinates[away])
            gauges[away], normals[away] = 1 / found.times, found.normals
        return Facets(gauges, normals)

    def facets(self, points: FloatArray, scale: float) -> Facets:
        """Gauges (b,) and normals (b, m); off the span, inf and the orthogonal component."""
        coordinates = points @ self._basis
        found = self.solve(coordinates)
        outside = off_span(points, self._basis, scale)
        residuals = points - coordinates @ self._basis.T
        normals = np.where(outside[:, None], residuals, found.normals @ self._basis.T)
        return Facets(np.where(outside, np.inf, found.gauges), normals)

    def span_chord(
        self, points: FloatArray, directions: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        along = ~off_span(directions, self._basis)
        low, high = np.zeros(len(points)), np.zeros(len(points))
        if along.any():
            starts, ways = points[along] @ self._basis, directions[along] @ self._basis
            # In one batch, later rays can start from the facets of earlier rays.
            both = self._exits(np.vstack([starts, starts]), np.vstack([-ways, ways]))
            backward, high[along] = np.split(both.times, 2)
            low[along] = -backward
        return low, high
