"""Outer slab bodies: K-norm noise from a support function alone (X-OUT).

For any directions z_1..z_F that span the space of a symmetric body K, the slab body
{y : |<z_j, y>| <= h_K(z_j)} holds K, so its K-norm noise is as private as that of K; only E ||U||^2
is larger. Slabs are added in rounds (`search`). Chains run in the present slab body. For points of
its boundary, directions are found in which they lie outside of K (`separation`). Those directions
become slabs that together cut off most states of the chains.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomdp._numerics.linalg import significant
from geomdp._typing import FloatArray, RandomState
from geomdp._validation import batch, real_number, whole
from geomdp.bodies import Body, LinearImage, SlabBody
from geomdp.geometry.outer_slabs.search import CHAINS, RefinementRound, SlabSearch
from geomdp.geometry.results import Estimate
from geomdp.geometry.sampling.chains import chain_mean, run_chains
from geomdp.geometry.sampling.samplers import ChainSampler
from geomdp.workloads.structure.symmetries import RandomSymmetry

#: Default budget. Measured on 2-way tables of 10 binary columns (dimension 55): the error falls by
#: 32% from the first 55 slabs to 1100 and by another 6% to 2000, at twice the time.
SLABS_PER_DIMENSION = 20
#: Draws per chain behind the final estimate of E ||U||^2. Successive values of ||U||^2 are nearly
#: independent after one sweep.
MOMENT_DRAWS = 32


@dataclass(frozen=True)
class SlabRefinement:
    """An outer slab body, how to sample it, and how it was found.

    Parameters
    ----------
    slabs : SlabBody
        In the coordinates of the span, R^r. Half-widths are (1 + 1e-9 + accuracy) h_K(z).
    basis : (m, r) array
        Orthonormal basis of the span: y in `slabs` stands for basis @ y.
    sampler : ChainSampler
        Prepared for `body`.
    second_moment : Estimate
        E ||U||_2^2 for U uniform on the slab body, from independent chains.
    history : tuple of RefinementRound
        All rounds, in order.
    """

    slabs: SlabBody
    basis: FloatArray
    sampler: ChainSampler
    second_moment: Estimate
    history: tuple[RefinementRound, ...]

    def __repr__(self) -> str:
        shape = f"{len(self.slabs.widths)} slabs in dimension {self.slabs.dimension}"
        return f"SlabRefinement({shape}; E||U||^2: {self.second_moment})"

    @property
    def body(self) -> Body:
        """The slab body in R^m."""
        return self.sampler.body


def refine_slabs(
    body: Body,
    *,
    slabs: int | None = None,
    directions: FloatArray | None = None,
    symmetry: RandomSymmetry | None = None,
    accuracy: float = 0.0,
    rng: RandomState = None,
) -> SlabRefinement:
    """Outer slab body of a symmetric body, refined until E ||U||^2 stops falling (X-OUT).

    {y in span : |<z_j, y>| <= (1 + 1e-9 + accuracy) h(z_j), j = 1..F} with h the support function
    of `body`. Any upper bound on the support function of K gives a larger, still valid body: pass
    a relaxation as `body`. Lower-dimensional bodies are handled in the coordinates of their span.
    Nothing here may look at records.

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
        do not span the span of K, by an orthonormal basis of the rest.
    symmetry : callable, optional
        Images (b, m) of directions (b, m) under a random orthogonal map that carries K onto itself;
        see `workloads.random_symmetry`. Each direction found then stands for its whole orbit. A
        map that is no symmetry wastes time but makes no slab invalid.
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
        If `body` is not known to be symmetric or is a single point; for a direction along which it
        has no width; for numbers out of range.
    MissingOracle
        If `body` has no support function.

    Notes
    -----
    There are about F / r rounds, or fewer: they stop when E ||U||^2 has fallen by less than 0.2%
    over the last 10. Each round looks for directions that separate 2 r points (r / 5 with a
    symmetry) from K, takes one support value for every direction found, and makes 3072 sweeps of
    coordinate hit-and-run at O(F r) each.
    """
    if not body.symmetric:
        raise ValueError(f"body must be symmetric, got {body!r}")
    basis = body.affine_hull().basis
    if basis.shape[1] == 0:
        raise ValueError(f"body must have dimension at least 1, got {body!r}")
    rng = np.random.default_rng(rng)
    given = np.zeros((0, body.dimension)) if directions is None else directions
    start = _completed(batch(given, body.dimension, "directions") @ basis)
    if slabs is None:
        slabs = max(SLABS_PER_DIMENSION * basis.shape[1], len(start))
    slabs = whole(slabs, "slabs", minimum=len(start))
    if not 0 <= real_number(accuracy) < 1:
        raise ValueError(f"accuracy must be at least 0 and below 1, got {accuracy!r}")
    search = SlabSearch(body, basis, start, symmetry, rng, accuracy)
    search.run(slabs)
    return _measured(search, basis, rng)


def _measured(search: SlabSearch, basis: FloatArray, rng: np.random.Generator) -> SlabRefinement:
    """The slabs found, with a prepared sampler and E ||U||^2 from chains started afresh."""
    slabs = search.slab_body()
    fills_space = np.array_equal(basis, np.eye(len(basis)))
    sampler = ChainSampler(slabs if fills_space else LinearImage(basis, slabs), rng=rng)
    walk = sampler.walk
    starts = walk.starts(CHAINS, rng)
    run = run_chains(
        walk.kernel, walk.body, starts, rng, draws=MOMENT_DRAWS, burn_in=sampler.burn_in
    )
    moment = chain_mean((walk.embed(run.draws) ** 2).sum(axis=2))
    return SlabRefinement(slabs, basis, sampler, moment, tuple(search.history))


def _completed(directions: FloatArray) -> FloatArray:
    """Directions (k, r) followed by an orthonormal basis of the complement of their span."""
    if len(directions) == 0:
        return np.eye(directions.shape[1])
    _, singular, rows = np.linalg.svd(directions)
    return np.vstack([directions, rows[significant(singular).sum() :]])
