"""Where rays leave a polytope given by its vertices, and through which facet.

The body in R^m is conv(v_i) with 0 inside, conv(+-v_i), or K - K for K = conv(v_i). A ray p + t u
leaves conv(+-v_i) through the facet whose normal z solves

    minimise t(z) = (1 - <z, p>) / <z, u>   over z with |<z, v_i>| <= 1 for all i and <z, u> > 0,

a linear-fractional program over the polar body. The vertices z of the polar body are the normals of
the facets. For conv(v_i) the bounds are one-sided: <z, v_i> <= 1. The program is solved by the
simplex method on facets. It keeps m signed vertices b_1..b_m with <z, b_k> = 1, and the inverse of
the matrix B that they form. The coordinates of p + t u in these vertices are
lambda = B^-T p + t B^-T u. If all of them are >= 0, z is the facet normal wanted. Otherwise a
pivot drops a vertex whose coordinate is negative. It moves z along the edge of the polar body on
which <z, b_k> = 1 for the other b_k, until another vertex becomes tight (its product with z meets
its bound). A pivot costs one product of all N vertices with a vector, O(N m), and one rank-one
update of the inverse, O(m^2).

* The vertices are first brought to unit second moment, so that stretched bodies are no harder than
  round ones.
* The vertex to drop is the one with the steepest edge. Edge lengths are the norms of the rows of
  the inverse, so the steepest edge is found exactly, not approximately.
* Thousands of 0/1 vertices may lie on one facet, and then pivots do not move z. Each bound 1 is
  therefore lowered by a random amount below `PERTURBATION` (public, fixed seed), which makes ties
  rare. The facet found is recomputed with the true bounds and scaled so that its halfspace contains
  every vertex. The result is always a valid bound on the body, and an exact facet if the vertices
  that tie lie exactly on one facet.
* The ratio test is that of Harris (1973): of the vertices that become tight within a tolerance far
  below the perturbation, the one with the largest pivot enters. The inverse is recomputed every
  `REFACTOR` pivots.
* The facets found last in the same call are kept. Every ray starts from the kept facet that it
  meets first. If the pivots of a ray fail, they are tried again from the first facet, with larger
  pivots and a more frequently recomputed inverse. If they fail again, HiGHS solves the linear
  program of the ray.

K - K is twice the section of conv(+-(v_i, 1)) where the last coordinate is 0. So N vertices
represent K - K, although K - K can have almost N^2 vertices.

References
----------
Formula-sheet ids X-RAY, JL-DEF. Harris (1973), "Pivot selection methods of the Devex LP code".
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE
from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp.bodies.facets.first_facet import DEGENERATE, distinct, first_facet, whitened
from geomdp.bodies.linear_programs import ConicProgram, SolverError

#: Largest amount by which a bound 1 is lowered to break ties. The relative error of an exit time is
#: at most this amount.
PERTURBATION = 1e-8


@dataclass(frozen=True)
class Exits:
    """The times and facets at which a batch of b rays leaves a body with 0 inside.

    The body lies in {x : <z, x> <= 1} for each normal z, and touches this halfspace: its support
    function is h(z) = 1. If neither pivots nor HiGHS found an exit, its time and normal are NaN.
    """

    #: (b,): the largest t with p + t u in the body. It is below the true value by at most rounding,
    #: and above it by at most a share `PERTURBATION`.
    times: FloatArray
    normals: FloatArray  # (b, m): normals of the facets through which the rays leave
    pivots: IntArray  # (b,): simplex pivots used
    converged: BoolArray  # (b,): whether the exit was found


@dataclass(frozen=True)
class RayShooter:
    """Exact ray shooting in a polytope by simplex pivots on its facets (X-RAY).

    Build one with `hull`, `symmetric_hull` or `difference`, which also find a first facet.
    """

    #: (N, R): the vertices v_i in whitened coordinates, R = m; for a difference body the vectors
    #: (v_i, 1), R = m + 1.
    columns: FloatArray
    whitening: FloatArray  # (m, m): whitened coordinates of x are x @ whitening
    #: Products of the columns with a facet normal lie in [-lower, 1]. `lower` is 1 for hulls of the
    #: columns and their negatives, and infinity for conv(v_i).
    lower: float
    #: True if the body is twice the section {last coordinate = 0} of the hull; False for the hull.
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
        """For conv(v_i), v_i the rows of (N, m); ``ValueError`` unless 0 is in its interior."""
        columns, whitening = whitened(distinct(vertices, up_to_sign=False))
        centre = columns.mean(axis=0)
        if np.linalg.norm(centre) > DEGENERATE:
            # The mean is inside. The ray from the mean to 0 reaches 0 at t = 1, so 0 is inside if
            # the ray leaves the hull later than that.
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
        """For conv(+-v_i), v_i the rows of (N, m); ``ValueError`` unless they span R^m."""
        columns, whitening = whitened(distinct(vertices, up_to_sign=True))
        return cls(columns, whitening, lower=1.0, section=False)

    @classmethod
    def difference(cls, vertices: FloatArray) -> RayShooter:
        """For K - K, K the hull of the rows of (N, m); ``ValueError`` unless K fills R^m."""
        vertices = distinct(vertices, up_to_sign=False)
        columns, whitening = whitened(vertices - vertices.mean(axis=0))
        lifted = np.column_stack([columns, np.ones(len(columns))])
        return cls(lifted, whitening, lower=1.0, section=True)

    def exits(self, points: FloatArray, directions: FloatArray) -> Exits:
        """Where the rays p + t u, t >= 0, leave the body, for rows p and u != 0 of (b, m) arrays.

        Points can be outside the body by a relative 1e-9, because of rounding. Arguments are not
        checked.
        """
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
        """The facet normal (R,) by HiGHS, for a ray whose pivots failed; None if HiGHS fails too.

        The linear program is max {t : point + t direction = sum w_i c_i, sum w_i = 1, w, t >= 0}
        over the columns c_i, and their negatives if `lower` is 1. Its dual solution is a positive
        multiple of (z, -1) for the facet normal z.
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
        """Vectors (b, m) in the coordinates of the columns."""
        vectors = vectors @ self.whitening
        if self.section:
            vectors = np.column_stack([vectors / 2, np.zeros(len(vectors))])
        return np.ascontiguousarray(vectors)
