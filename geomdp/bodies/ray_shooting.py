"""Where rays leave a symmetric polytope given by its vertices, and through which facet.

The body is conv(+-v_i) or K - K for K = conv(v_i). A ray p + t u leaves conv(+-v_i) through the
facet that solves

    minimise t(z) = (1 - <z, p>) / <z, u>   over z with |<z, v_i>| <= 1 for all i and <z, u> > 0,

a linear-fractional programme over the polar body whose vertices z are the facets of conv(+-v_i). It
is solved by the simplex method on facets: keep m signed vertices b_1..b_m with <z, b_k> = 1 and the
inverse of the matrix they form; the coordinates of the point p + t u in them are
lambda = B^-T p + t B^-T u. If all are >= 0 the ray leaves here; otherwise drop one that is negative
and slide z along the edge on which the others stay tight until another vertex becomes tight. One
pivot costs one product of all N vertices with a vector, O(N m), and one rank-one update, O(m^2).

* The vertex to drop is the one with the steepest edge, exactly: the inverse is kept in full, so the
  edge lengths are its row norms.
* 0/1-type vertices lie on common facets by the thousand, and then pivots do not move z. Each bound
  1 is therefore lowered by its own random amount below `PERTURBATION` (public, fixed seed), which
  makes ties rare; the facet found is recomputed with the true bounds and scaled to hold every
  vertex, so it is valid whatever happened before, and exact if the ties were exact.
* The ratio test is that of Harris (1973): among the vertices that become tight within a tolerance
  far below the perturbation, the one with the largest pivot enters. The inverse is recomputed every
  `REFACTOR` pivots.
* Every ray starts at the facet, among those found before in the call, that cuts it shortest.

K - K is twice the section of conv(+-(v_i, s)) with last coordinate 0, so N vertices do for its up
to N^2.

References
----------
Formula-sheet ids X-RAY, JL-DEF. Harris (1973), "Pivot selection methods of the Devex LP code".
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp._validation import batch, finite_array
from geomdp.bodies.facet_pivots import PIVOT, shoot

#: Largest amount by which a bound 1 is lowered to break ties; bounds the relative error of an exit.
PERTURBATION = 1e-8
#: Public seed of the tie-breaking amounts and of the first facet.
SEED = 20220808


@dataclass(frozen=True)
class Exits:
    """Where a batch of rays leaves a body with 0 inside, one row per ray.

    Parameters
    ----------
    times : (b,) array
        The largest t with p + t u in the body, to a relative error of `PERTURBATION`, never below
        the true one by more than rounding.
    normals : (b, m) array
        Facet normals z scaled to h(z) = 1: the body lies in {x : |<z, x>| <= 1} and the ray leaves
        it at `times`.
    pivots : (b,) array
        Simplex pivots used.
    converged : (b,) array
        False where the pivot limit stopped the search; then `normals` is still a valid slab and
        `times` an upper bound.
    """

    times: FloatArray
    normals: FloatArray
    pivots: IntArray
    converged: BoolArray


@dataclass(frozen=True)
class RayShooter:
    """Exact ray shooting in conv(+-v_i) or K - K by warm simplex pivots on facets (X-RAY).

    Build one with `symmetric_hull` or `difference`. It holds a first facet, found once.

    Parameters
    ----------
    columns : (N, R) array
        The vertices v_i that span R^R; for a difference body the lifted (v_i, s).
    section : bool
        Whether the body is twice the section {last coordinate = 0} rather than the hull itself.
    """

    columns: FloatArray
    section: bool
    _bounds: FloatArray = field(init=False, repr=False)
    _basis: IntArray = field(init=False, repr=False)
    _signs: FloatArray = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng(SEED)
        # Between half and all of the largest amount: no bound stays at 1 and ties stay apart.
        bounds = 1 - PERTURBATION * rng.uniform(0.5, 1.0, len(self.columns))
        basis, signs = _first_facet(self.columns, bounds, rng)
        object.__setattr__(self, "_bounds", bounds)
        object.__setattr__(self, "_basis", basis)
        object.__setattr__(self, "_signs", signs)

    @classmethod
    def symmetric_hull(cls, vertices: FloatArray) -> RayShooter:
        """For conv(+-v_i), the rows v_i of (N, m) spanning R^m; ``ValueError`` if they do not."""
        return cls(finite_array(vertices, "vertices", ndim=2), section=False)

    @classmethod
    def difference(cls, vertices: FloatArray) -> RayShooter:
        """For K - K, K = conv of the rows of (N, m), of full dimension; ``ValueError`` if not."""
        vertices = finite_array(vertices, "vertices", ndim=2)
        centred = vertices - vertices.mean(axis=0)
        # The lift is as long as the vertices are on average, for the condition of the bases.
        lift = np.sqrt((centred**2).sum(axis=1).mean() / max(1, centred.shape[1]))
        if lift == 0:
            raise ValueError(f"vertices must have a hull of full dimension {vertices.shape[1]}")
        return cls(np.column_stack([centred, np.full(len(centred), lift)]), section=True)

    @property
    def dimension(self) -> int:
        """Dimension m of the body."""
        return int(self.columns.shape[1]) - int(self.section)

    def exits(self, points: FloatArray, directions: FloatArray) -> Exits:
        """Where the rays p + t u, t >= 0, leave the body.

        Parameters
        ----------
        points : (b, m) array
            Points p of the body (a relative 1e-9 outside is allowed for rounding).
        directions : (b, m) array
            Directions u, none of them 0.

        Returns
        -------
        Exits
            Times, facet normals and pivot counts.

        Raises
        ------
        ValueError
            For wrong shapes, NaN, infinity or a zero direction.
        """
        points = batch(points, self.dimension, "points")
        directions = batch(directions, self.dimension, "directions")
        if points.shape != directions.shape:
            raise ValueError(f"directions must have shape {points.shape}, got {directions.shape}")
        if not np.abs(directions).max(axis=1, initial=0.0).all():
            raise ValueError("directions must not be 0")
        if self.section:
            zeros = np.zeros((len(points), 1))
            points = np.hstack([points / 2, zeros])
            directions = np.hstack([directions / 2, zeros])
        normals, pivots, converged = shoot(
            self.columns, self._bounds, self._basis, self._signs, points, directions
        )
        reach = np.einsum("bm,bm->b", normals, directions)
        left = np.maximum(0.0, 1 - np.einsum("bm,bm->b", normals, points))
        if self.section:
            normals = normals[:, :-1] / 2
        return Exits(left / reach, np.ascontiguousarray(normals), pivots, converged)

    def facets(self, points: FloatArray) -> Exits:
        """Exits of the rays from 0 through `points` (b, m), none of them 0: gauge = 1 / times."""
        points = batch(points, self.dimension, "points")
        return self.exits(np.zeros_like(points), points)


def _first_facet(
    columns: FloatArray, bounds: FloatArray, rng: np.random.Generator
) -> tuple[IntArray, FloatArray]:
    """A vertex of the polar {z : |<z, v_i>| <= b_i}: from z = 0, walk to a new bound R times."""
    size = columns.shape[1]
    scale = float(np.linalg.norm(columns, axis=1).max(initial=0.0))
    normal: FloatArray = np.zeros(size)
    tight: FloatArray = np.zeros((size, 0))
    basis, signs = np.zeros(size, dtype=np.int64), np.zeros(size)
    for k in range(size):
        step = np.asarray(rng.standard_normal(size))
        for _ in range(2):  # once more than exact arithmetic needs
            step -= tight @ (tight.T @ step)
        step /= float(np.linalg.norm(step))
        slope, value = columns @ step, columns @ normal
        if np.abs(slope).max(initial=0.0) <= PIVOT * scale:
            raise ValueError(f"vertices must span {size} dimensions, they span {k}")
        usable = np.abs(slope) > PIVOT * scale
        times = np.full(len(columns), np.inf)
        times[usable] = (bounds[usable] - np.sign(slope[usable]) * value[usable]) / np.abs(
            slope[usable]
        )
        entering = int(np.argmin(times))
        normal += times[entering] * step
        basis[k], signs[k] = entering, np.sign(slope[entering])
        tight = np.linalg.qr(columns[basis[: k + 1]].T)[0]
    return basis, signs
