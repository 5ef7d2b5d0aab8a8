"""The Hardt-Talwar decomposition: orthogonal subspaces in which a body has comparable widths.

The shadow of a body K on a subspace is the orthogonal projection of K.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.linalg import RANK_TOLERANCE
from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.bodies.base import Body
from geomdp.bodies.operations.linear_image import LinearImage
from geomdp.bodies.operations.scaled import Scaled
from geomdp.bodies.shadows import shadow
from geomdp.geometry.outer_slabs.refinement import refine_slabs
from geomdp.geometry.results import Estimate
from geomdp.geometry.sampling.samplers import ChainSampler, ExactSampler, UniformSampler
from geomdp.noise.estimates import mean_estimate
from geomdp.noise.knorm import MOMENT_DRAWS

#: A matrix M counts as an isometry if no entry of M^T M - I has a larger modulus than this number.
#: For float64 matrices with orthonormal columns, these entries are a few 1e-16 times the number of
#: rows.
ISOMETRY_TOLERANCE = 1e-12


class Variant(enum.Enum):
    """Which K-norm noise a level adds in its subspace V.

    W is the subspace that remains at this stage of `decompose`. V is spanned by the principal axes
    of least variance of the shadow of K on W.
    """

    #: Draw K-norm noise of the shadow of K on W, and project it on V (variant A, as published).
    PROJECTED = "projected"
    #: Draw K-norm noise of the shadow of K on V itself (variant B).
    INTRINSIC = "intrinsic"


@dataclass(frozen=True, eq=False)
class NoiseBody:
    """A symmetric full-dimensional body in R^D, with a sampler of uniform points U of it."""

    body: Body
    sampler: UniformSampler
    #: E U U^T (D, D), exact or estimated from `draws`.
    moment: FloatArray
    #: Public draws (n, D) from which the moment is estimated; None if it is exact.
    draws: FloatArray | None

    def __repr__(self) -> str:
        return f"NoiseBody({self.body!r})"


@dataclass(frozen=True, eq=False)
class Level:
    """Noise in one subspace V of R^m: K-norm noise in R^D, mapped onto V."""

    #: The K-norm body in R^D.
    source: NoiseBody
    #: Orthonormal columns (m, r) that span the decomposed body.
    frame: FloatArray
    #: Orthonormal rows (d, r) that span V, in coordinates of `frame`.
    rows: FloatArray
    #: Orthonormal rows (d, D) that map coordinates of the body to coordinates of V.
    keep: FloatArray

    def __repr__(self) -> str:
        return f"Level(dimension={self.dimension}, {self.source!r})"

    @cached_property
    def basis(self) -> FloatArray:
        """Orthonormal columns (m, d) that span V."""
        return np.asarray(self.frame @ self.rows.T)

    @property
    def dimension(self) -> int:
        """Dimension d of V."""
        return len(self.rows)

    @cached_property
    def energy(self) -> Estimate:
        """A = (D + 1)(D + 2) E ||keep U||_2^2: E ||Z||_2^2 of the level at epsilon = 1 (JL-L14)."""
        D = self.source.body.dimension
        factor = (D + 1) * (D + 2)
        draws = self.source.draws
        if draws is None:
            # A square orthogonal `keep` does not change the trace.
            moment = self.source.moment
            moment = moment if self.dimension == D else self.keep @ moment @ self.keep.T
            return Estimate.exact(factor * float(np.trace(moment)))
        return mean_estimate(factor * ((draws @ self.keep.T) ** 2).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Stage:
    """One step of the recursion: the two ways to go on with the remaining subspace W."""

    #: K-norm noise on all of W, which ends the recursion.
    stop: Level
    #: Noise on V, after which the recursion goes on with the rest of W; None at the last stage.
    split: Level | None


def decompose(body: Body, variant: Variant, *, exact: bool) -> tuple[Stage, ...]:
    """The stages of the Hardt-Talwar recursion on a symmetric body K (JL-L18).

    The first subspace W is the span of K. At each stage W has dimension D, and the covariance of
    the uniform distribution on the shadow of K on W has D principal axes. The D - floor(D / 2) axes
    of least variance span V, and the others span the next W. The recursion ends when W has
    dimension 1. A body of dimension r has at most floor(log2 r) + 1 stages.

    Shadows without an exact sampler are sampled by Markov chains. A shadow without oracles for
    chords and for the gauge is first enclosed in a slab body (X-OUT). With `exact`, the recursion
    ends before a stage that has no exact sampler or moment.

    Raises
    ------
    ValueError
        If K is not known to be symmetric, if K is the single point 0, or if `exact` is set and K
        lacks an exact sampler or an exact second moment.
    """
    if not body.symmetric:
        raise ValueError(f"body must be symmetric, got {body!r}")
    if body.effective_dimension == 0:
        raise ValueError(f"body must have dimension at least 1, got {body!r}")
    return tuple(_stages(body, variant, exact))


def _stages(body: Body, variant: Variant, exact: bool) -> Iterator[Stage]:
    frame, core = _framed(body)
    rows = np.eye(core.dimension)
    source = _prepared(core, exact)
    if source is None:
        raise ValueError(f"body must have an exact sampler, got {body!r}")
    while True:
        stop = Level(source, frame, rows, np.eye(len(rows)))
        if len(rows) == 1:
            yield Stage(stop, None)
            return
        axes = principal_axes(source.moment)
        half = len(rows) // 2
        # At the first stage `rows` is the identity, so the product with it is skipped.
        axes_of_core = axes if len(rows) == core.dimension else axes @ rows
        kept_rows, released_rows = axes_of_core[:half], axes_of_core[half:]
        source_of_v: NoiseBody | None = source
        keep = axes[half:]
        if variant is Variant.INTRINSIC:
            source_of_v, keep = _prepared(shadow(core, released_rows), exact), np.eye(len(keep))
        # Use the shadow of K itself. The shadow of a slab body around K would be larger.
        following = _prepared(shadow(core, kept_rows), exact) if source_of_v is not None else None
        if source_of_v is None or following is None:
            yield Stage(stop, None)
            return
        yield Stage(stop, Level(source_of_v, frame, released_rows, keep))
        rows, source = kept_rows, following


def _framed(body: Body) -> tuple[FloatArray, Body]:
    """An isometry (m, r) and a full-dimensional body in R^r whose image under it is `body`."""
    if isinstance(body, Scaled):
        frame, core = _framed(body.body)
        return frame, Scaled(core, body.factor)
    if isinstance(body, LinearImage):
        gram = body.matrix.T @ body.matrix
        isometry = bool(np.abs(gram - np.eye(len(gram))).max() <= ISOMETRY_TOLERANCE)
        if isometry and body.body.effective_dimension == body.body.dimension:
            return body.matrix, body.body
    if body.effective_dimension == body.dimension:
        return np.eye(body.dimension), body
    frame = body.affine_hull().basis
    if body.implements(Body.sample_uniform) and body.implements(Body.second_moment):
        image = shadow(body, frame.T)
        exact = image.implements(Body.sample_uniform) and image.implements(Body.second_moment)
        # The map is one-to-one on the affine hull of the body, so `LinearImage` keeps every oracle.
        return frame, image if exact else LinearImage(frame.T, body)
    return frame, shadow(body, frame.T)


def _prepared(body: Body, exact: bool) -> NoiseBody | None:
    """A full-dimensional body with its sampler.

    None if `exact` is set and the body has no exact sampler or second moment.
    """
    if body.implements(Body.sample_uniform) and body.implements(Body.second_moment):
        return NoiseBody(body, ExactSampler(body), body.second_moment(), None)
    if exact:
        return None
    sampler: UniformSampler
    if body.implements(Body.sample_uniform):
        sampler = ExactSampler(body)
    elif body.implements(Body.chord) or body.implements(Body.gauge):
        sampler = ChainSampler(body)
    else:
        sampler = refine_slabs(body, rng=PUBLIC_SEED).sampler
    draws = sampler.draw(np.random.default_rng(PUBLIC_SEED), MOMENT_DRAWS)
    return NoiseBody(sampler.body, sampler, draws.T @ draws / len(draws), draws)


def principal_axes(moment: FloatArray) -> FloatArray:
    """Orthonormal eigenvectors of a psd matrix (D, D) as rows, by decreasing eigenvalue.

    Blocks of coordinates that are uncorrelated with all others are decomposed separately. So axes
    of equal variance never mix two factors of a product, and shadows of products keep closed forms.
    """
    from scipy.sparse.csgraph import connected_components  # slow import

    deviations = np.sqrt(np.diag(moment))
    linked = np.abs(moment) > RANK_TOLERANCE * np.outer(deviations, deviations)
    # SciPy would search a dense matrix for masked and infinite entries first.
    count, labels = connected_components(sp.csr_array(linked.astype(np.float64)), directed=False)
    values, axes = np.diag(moment).copy(), np.eye(len(moment))
    sizes = np.bincount(labels, minlength=count)
    for label in np.flatnonzero(sizes > 1):
        mine = np.flatnonzero(labels == label)
        values[mine], vectors = np.linalg.eigh(moment[np.ix_(mine, mine)])
        axes[np.ix_(mine, mine)] = vectors.T
    return np.asarray(axes[np.argsort(-values, kind="stable")])
