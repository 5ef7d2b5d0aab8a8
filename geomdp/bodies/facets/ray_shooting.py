"""Where rays leave a polytope given by its vertices, and through which facet (X-RAY, JL-DEF).

The body in R^m is conv(v_i) with 0 inside, conv(+-v_i), or K - K for K = conv(v_i). The normal z of
the facet through which a ray p + t u leaves conv(+-v_i) solves

    minimise t(z) = (1 - <z, p>) / <z, u>   over z with |<z, v_i>| <= 1 for all i and <z, u> > 0.

This is a linear-fractional program over the polar body, whose vertices are the facet normals. For
conv(v_i) the bounds are one-sided: <z, v_i> <= 1. The simplex method on facets keeps m signed
vertices b_1..b_m with <z, b_k> = 1, and the inverse of the matrix B with these rows. At t = t(z)
the ray meets the hyperplane of the facet, in the point with coordinates lambda = B^-T p + t B^-T u
in the b_k. If all are >= 0, z is the normal wanted. If not, a pivot drops a vertex with a negative
coordinate, and moves z along the edge of the polar body on which <z, b_k> = 1 for all other b_k,
until another vertex becomes tight: its product with z meets its bound. A pivot costs a product of
all N vertices with a vector, O(N m), and a rank-one update of the inverse, O(m^2).

* The vertices are first mapped to coordinates in which their second moment is the identity. A
  stretched body is then as easy as a round body.
* The vertex with the steepest edge is dropped. The edges are parallel to the columns of B^-1.
* Thousands of 0/1 vertices may lie on one facet. Then pivots do not move z. To make ties rare, each
  bound 1 is lowered by a random amount of at most `PERTURBATION` (public, fixed seed). At the end,
  z is recomputed with the true bounds. While a vertex lies outside the halfspace of z by more than
  a relative 1e-9, the dual simplex method exchanges vertices. Then z is scaled so that its
  halfspace contains every vertex, and therefore the body.
* Among vertices that become tight within a tolerance far below the perturbation, the vertex with
  the largest pivot enters: Harris (1973), "Pivot selection methods of the Devex LP code".
* Every ray starts from the facet, among those found last in the same call, that it meets first. If
  its pivots fail, it is tried again from the first facet, with larger pivots and a more frequently
  recomputed inverse. If this fails too, HiGHS solves the linear program of the ray.

K - K is twice the section of conv(+-(v_i, 1)) where the last coordinate is 0. So N vertices
represent K - K, although K - K can have almost N^2 vertices.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE
from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp.bodies.facets.first_facet import DEGENERATE, distinct, first_facet, whitened
from geomdp.bodies.linear_programs import ConicProgram, SolverError

#: Largest amount by which a bound 1 is lowered to break ties.
PERTURBATION = 1e-8


@dataclass(frozen=True)
class Exits:
    """Times and normals z where rays leave a body in {x : <z, x> <= 1}; NaN if all methods fail."""

    #: (b,): the largest t with p + t u in the body. The computed t is below the true t by rounding
    #: errors at most. For rays from 0, it is above the true t by at most a relative 1e-9 and
    #: rounding errors.
    times: FloatArray
    normals: FloatArray  # (b, m): normals of the facets through which the rays leave
    pivots: IntArray  # (b,): simplex pivots used
    converged: BoolArray  # (b,): whether the exit was found


@dataclass(frozen=True)
class RayShooter:
    """Exact ray shooting in a polytope by simplex pivots on its facets (X-RAY)."""

    #: (N, R): the rows are the vertices v_i in whitened coordinates, R = m; for a difference body
    #: the rows are the vectors (v_i, 1), R = m + 1.
    columns: FloatArray
    whitening: FloatArray  # (m, m): whitened coordinates of x are x @ whitening
    #: Products of the rows of `columns` with a facet normal lie in [-lower, 1]. `lower` is 1 for
    #: hulls of these rows and their negatives, and infinity for conv(v_i).
    lower: float
    #: True if the body is twice the section {last coordinate = 0} of the hull; else it is the hull.
    section: bool
    _bounds: FloatArray = field(init=False, repr=False)
    _basis: IntArray = field(init=False, repr=False)
    _signs: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(PUBLIC_SEED)
        # Every bound is lowered by at least half of the largest amount, so that none stays at 1.
        bounds = 1 - PERTURBATION * rng.uniform(0.5, 1.0, len(self.columns))
        basis, signs = first_facet(self.columns, bounds, self.lower, rng)
        object.__setattr__(self, "_bounds", bounds)
        object.__setattr__(self, "_basis", basis)
        object.__setattr__(self, "_signs", signs)

    @classmethod
    def hull(cls, vertices: FloatArray) -> RayShooter:
        """A shooter for the hull of the rows (N, m); ``ValueError`` if 0 is not in its interior."""
        columns, whitening = whitened(distinct(vertices, up_to_sign=False))
        centre = columns.mean(axis=0)
        if np.linalg.norm(centre) > DEGENERATE:
            # The mean is inside. The ray from the mean to 0 reaches 0 at t = 1, so 0 is inside if
            # the ray leaves the hull later.
            about_centre = cls(*whitened(columns - centre), lower=np.inf, section=False)
            leaves = about_centre.exits(np.zeros((1, len(centre))), -centre[None]).times[0]
            if leaves <= 1 + RANK_TOLERANCE:
                raise ValueError(
                    "vertices must surround 0: the ray from their mean, which reaches 0 at t = 1, "
                    f"leaves their hull at t = {leaves:g}"
                )
        return cls(columns, whitening, lower=np.inf, section=False)

    @classmethod
    def symmetric_hull(cls, vertices: FloatArray) -> RayShooter:
        """A shooter for the hull of the rows (N, m) and their negatives; ``ValueError`` if flat."""
        columns, whitening = whitened(distinct(vertices, up_to_sign=True))
        return cls(columns, whitening, lower=1.0, section=False)

    @classmethod
    def difference(cls, vertices: FloatArray) -> RayShooter:
        """A shooter for K - K, K the hull of the rows (N, m); ``ValueError`` if K is flat."""
        vertices = distinct(vertices, up_to_sign=False)
        columns, whitening = whitened(vertices - vertices.mean(axis=0))
        lifted = np.column_stack([columns, np.ones(len(columns))])
        return cls(lifted, whitening, lower=1.0, section=True)

    def exits(self, points: FloatArray, directions: FloatArray) -> Exits:
        """Where rays p + t u, t >= 0, leave; u != 0 and p inside (up to 1e-9) are not checked."""
        from geomdp.bodies.facets.pivots import shoot  # numba is slow to import

        starts, ways = self._lifted(points), self._lifted(directions)
        normals, pivots, converged = shoot(
            self.columns, self._bounds, self.lower == 1, self._basis, self._signs, starts, ways
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
        return Exits(left / reach, normals, pivots, converged)

    def _by_linear_program(self, point: FloatArray, direction: FloatArray) -> FloatArray | None:
        """The facet normal (R,) by HiGHS, or None: the dual solution of max {t : p + t u = sum w_i
        c_i, sum w = 1, w, t >= 0} is a positive multiple of (z, -1).
        """
        columns = self.columns if self.lower > 1 else np.vstack([self.columns, -self.columns])
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
