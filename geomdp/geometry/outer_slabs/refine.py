"""Outer slab bodies: K-norm noise from a support function alone (X-OUT).

For any directions z_1..z_F that span the space of a symmetric body K, the slab body
{y : |<z_j, y>| <= h_K(z_j)} holds K, so its K-norm noise is as private as that of K; only E ||U||^2
is larger. Slabs are added where they cut off most of the volume: lockstep chains run in the present
slab body, a source finds directions in which points of its boundary are outside K, and the
directions that together cut off most states of the chains are added.
"""

from __future__ import annotations

import numpy as np

from geomdp._linalg import RANK_TOLERANCE
from geomdp._typing import FloatArray, RandomState
from geomdp._validation import batch, positive, real_number, whole
from geomdp.bodies import Body
from geomdp.geometry.outer_slabs.refinement import Refinery, SlabRefinement
from geomdp.geometry.outer_slabs.separation import DirectionSource, direction_source
from geomdp.workloads.structure.symmetries import RandomSymmetry

#: Default budget. Measured on 2-way tables of 10 binary columns (dimension 55): the error falls by
#: 32% from the first 55 slabs to 1100 and by another 6% to 2000, at twice the time.
SLABS_PER_DIMENSION = 20


def refine_slabs(
    body: Body,
    *,
    slabs: int | None = None,
    directions: FloatArray | None = None,
    source: DirectionSource | None = None,
    symmetry: RandomSymmetry | None = None,
    exchanges: int = 0,
    tolerance: float = 0.002,
    accuracy: float = 0.0,
    rng: RandomState = None,
) -> SlabRefinement:
    """Outer slab body of a symmetric body, refined until E ||U||^2 stops falling (X-OUT).

    {y in span : |<z_j, y>| <= (1 + 1e-9 + accuracy) h(z_j), j = 1..F} with h the support function
    of `body`. Any upper bound on the support function of K gives a larger, still valid body: pass
    a relaxation as `body`. Lower-dimensional bodies are handled in the coordinates of their span.
    Nothing here may look at records. `certify_slabs` checks the result, `save_slabs` keeps it.

    Parameters
    ----------
    body : Body
        Symmetric K in R^m with `support`; with `facets`, `project` or `extreme_point` the cuts are
        better.
    slabs : int, optional
        Budget: largest number of slabs F, at least the number of `directions`; by default
        `SLABS_PER_DIMENSION` times the dimension of K and at least that of `directions`.
    directions : (k, m) array, optional
        Directions to start from, such as the bases of a workload's blocks; completed, where they
        do not span the span of K, by an orthonormal basis of the rest. They are kept.
    source : DirectionSource, optional
        Where new directions come from; by default the best that `body` offers.
    symmetry : callable, optional
        Images (b, m) of directions (b, m) under a random orthogonal map that carries K onto itself;
        see `workloads.random_symmetry`. Each direction found then stands for its whole orbit. A
        map that is no symmetry wastes time but makes no slab invalid.
    exchanges : int
        Rounds after the budget is spent in which the slabs least often approached make room for
        better ones, as many as are found, or come back: the budget stays spent.
    tolerance : float
        Stop when the mean of E ||U||^2 over `WINDOW` rounds is not below this share less than 1 of
        that over the `WINDOW` rounds before.
    accuracy : float
        Relative error of the support function of `body`, at least 0: 0 for closed forms, linear
        programs and certified upper bounds, 1e-6 for a `CvxBody`.
    rng : Generator, int or None
        Source of all randomness; use a public seed.

    Returns
    -------
    SlabRefinement
        Slabs, prepared sampler, E ||U||^2 with its standard error, and history.

    Raises
    ------
    ValueError
        If `body` is not known to be symmetric or is a single point; for a direction on which it
        has no extent; for numbers out of range.
    MissingOracle
        If `body` has no support function.

    Notes
    -----
    Cost per round, of which there are about F / r: 2 r points for the source (r / 5 with a
    symmetry), support functions of what it finds, and `CHAINS` * (`SETTLING` + `SNAPSHOTS`) sweeps
    of coordinate hit-and-run of O(F r) each.
    """
    if not body.symmetric:
        raise ValueError(f"body must be symmetric, got {body!r}")
    basis = body.affine_hull().basis
    if basis.shape[1] == 0:
        raise ValueError(f"body must have dimension at least 1, got {body!r}")
    rng = np.random.default_rng(rng)
    tolerance = positive(tolerance, "tolerance")
    exchanges = whole(exchanges, "exchanges", minimum=0)
    given = np.zeros((0, body.dimension)) if directions is None else directions
    start = _completed(batch(given, body.dimension, "directions") @ basis)
    if slabs is None:
        slabs = max(SLABS_PER_DIMENSION * basis.shape[1], len(start))
    slabs = whole(slabs, "slabs", minimum=len(start))
    if not 0 <= real_number(accuracy) < 1:
        raise ValueError(f"accuracy must be at least 0 and below 1, got {accuracy!r}")
    refinery = Refinery(body, basis, source or direction_source(body), symmetry, rng, accuracy)
    refinery.begin(start)
    refinery.run(slabs, exchanges, tolerance)
    return refinery.finish()


def _completed(directions: FloatArray) -> FloatArray:
    """Directions (k, r) with an orthonormal basis of the complement of their span appended."""
    if len(directions) == 0:
        return np.eye(directions.shape[1])
    _, singular, rows = np.linalg.svd(directions)
    rank = int(np.count_nonzero(singular > RANK_TOLERANCE * singular[0]))
    return np.vstack([directions, rows[rank:]])
