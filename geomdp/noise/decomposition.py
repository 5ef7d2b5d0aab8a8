"""The Hardt-Talwar decomposition: orthogonal subspaces in which a body has comparable widths.

The shadow of a body K on a subspace is the orthogonal projection of K.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.linalg import RANK_TOLERANCE
from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp._validation import require_type
from geomdp.bodies.base import Body
from geomdp.bodies.operand import checked_body
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

    Examples
    --------
    >>> import geomdp as gd
    >>> [variant.value for variant in gd.noise.Variant]
    ['projected', 'intrinsic']
    """

    #: Draw K-norm noise of the shadow of K on W, and project it on V (variant A, as published).
    PROJECTED = "projected"
    #: Draw K-norm noise of the shadow of K on V itself (variant B).
    INTRINSIC = "intrinsic"


@dataclass(frozen=True, eq=False)
class NoiseBody:
    """A symmetric full-dimensional body in R^D, with a sampler of uniform points U of it.

    Examples
    --------
    >>> import geomdp as gd
    >>> K = gd.bodies.Box.centred([1.0, 2.0, 3.0])
    >>> (first, *_) = gd.noise.decompose(K, gd.noise.Variant.INTRINSIC, exact=True)
    >>> source = first.stop.source  # the body of K-norm noise on all of R^3
    >>> source.body.dimension, source.moment.diagonal().round(3).tolist()
    (3, [0.333, 1.333, 3.0])
    """

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
    """Noise in one subspace V of R^m: K-norm noise in R^D, mapped onto V.

    Examples
    --------
    >>> import geomdp as gd
    >>> K = gd.bodies.Box.centred([1.0, 2.0, 3.0])
    >>> (first, *_) = gd.noise.decompose(K, gd.noise.Variant.INTRINSIC, exact=True)
    >>> first.split.dimension  # the two axes of least width
    2
    >>> first.split.basis.T.tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    >>> first.split.energy  # E ||Z||^2 at epsilon = 1: 3 * 4 * (1 + 4) / 3
    Estimate(20, exact)
    """

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
            if self.dimension == D:
                return Estimate.exact(factor * float(np.trace(moment)))
            if _is_diagonal(moment):
                kept = (self.keep**2).sum(axis=0) @ np.diag(moment)
            else:
                kept = np.vdot(self.keep @ moment, self.keep)
            return Estimate.exact(factor * float(kept))
        return mean_estimate(factor * ((draws @ self.keep.T) ** 2).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Stage:
    """One step of the recursion: the two ways to go on with the remaining subspace W.

    Examples
    --------
    >>> import geomdp as gd
    >>> K = gd.bodies.Box.centred([1.0, 2.0, 3.0])
    >>> stages = gd.noise.decompose(K, gd.noise.Variant.INTRINSIC, exact=True)
    >>> [(stage.stop.dimension, stage.split and stage.split.dimension) for stage in stages]
    [(3, 2), (1, None)]
    """

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
    chords and for the gauge is first enclosed in a slab body (X-OUT).

    Parameters
    ----------
    body : Body
        K in R^m, symmetric, possibly lower-dimensional.
    variant : Variant
        Which noise the levels add in their subspaces.
    exact : bool
        Whether to end the recursion before a stage that has no exact sampler or moment.

    Returns
    -------
    tuple of Stage
        One stage for each subspace W. `best_stop` chooses levels for `RecursiveNoise` from them.

    Raises
    ------
    ValueError
        If K is not known to be symmetric, if K is the single point 0, or if `exact` is set and K
        lacks an exact sampler or an exact second moment.

    References
    ----------
    Hardt-Talwar 2010, section 7; Nikolov 2022, Lemma 18; formula sheet JL-L18.

    Examples
    --------
    A box with two long and two short axes. The short axes are split off first:

    >>> import geomdp as gd
    >>> K = gd.bodies.Box.centred([1.0, 1.0, 30.0, 30.0])
    >>> stages = gd.noise.decompose(K, gd.noise.Variant.INTRINSIC, exact=True)
    >>> [stage.stop.dimension for stage in stages]
    [4, 2, 1]
    >>> [level.dimension for level in gd.noise.best_stop(stages)]
    [2, 2]
    """
    return decompose_each(body, [variant], exact=exact)[0]


def decompose_each(
    body: Body, variants: Sequence[Variant], *, exact: bool
) -> list[tuple[Stage, ...]]:
    """`decompose` for several variants, which share the subspaces W and the noise on them."""
    if not checked_body(body).symmetric:
        raise ValueError(f"body must be symmetric, got {body!r}")
    for variant in variants:
        require_type(variant, Variant, "variant")
    if body.effective_dimension == 0:
        raise ValueError(f"body must have dimension at least 1, got {body!r}")
    frame, core = _framed(body)
    steps = list(_steps(frame, core, exact))
    if not steps:
        raise ValueError(f"body must have an exact sampler, got {body!r}")
    return [tuple(_stages(steps, core, variant, exact)) for variant in variants]


@dataclass(frozen=True, eq=False)
class _Step:
    """One subspace W of the recursion, which is the same for all variants."""

    #: K-norm noise on all of W.
    stop: Level
    #: Principal axes (D, D) of the shadow on W as rows, largest first; None if D = 1.
    axes: FloatArray | None
    #: The same axes (D, r) in coordinates of the frame.
    rows: FloatArray


def _steps(frame: FloatArray, core: Body, exact: bool) -> Iterator[_Step]:
    """The subspaces W, up to the first one without noise that `exact` allows."""
    rows = np.eye(core.dimension)
    source = _prepared(core, exact)
    while source is not None:
        stop = Level(source, frame, rows, np.eye(len(rows)))
        if len(rows) == 1:
            yield _Step(stop, None, rows)
            return
        axes = principal_axes(source.moment)
        # At the first stage `rows` is the identity, so the product with it is skipped.
        axes_of_core = axes if len(rows) == core.dimension else _turned(axes, rows)
        yield _Step(stop, axes, axes_of_core)
        rows = axes_of_core[: len(rows) // 2]
        # Use the shadow of K itself. The shadow of a slab body around K would be larger.
        source = _prepared(shadow(core, rows), exact)


def _stages(steps: list[_Step], core: Body, variant: Variant, exact: bool) -> Iterator[Stage]:
    for step in steps[:-1]:
        assert step.axes is not None
        half = len(step.rows) // 2
        released_rows, keep = step.rows[half:], step.axes[half:]
        source_of_v: NoiseBody | None = step.stop.source
        if variant is Variant.INTRINSIC:
            source_of_v, keep = _prepared(shadow(core, released_rows), exact), np.eye(len(keep))
        if source_of_v is None:
            yield Stage(step.stop, None)
            return
        yield Stage(step.stop, Level(source_of_v, step.stop.frame, released_rows, keep))
    yield Stage(steps[-1].stop, None)


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


def _is_diagonal(moment: FloatArray) -> bool:
    return bool(np.count_nonzero(moment) == np.count_nonzero(np.diag(moment)))


def _turned(axes: FloatArray, rows: FloatArray) -> FloatArray:
    """The product of orthonormal `axes` (D, D) and `rows` (D, m).

    For uncorrelated coordinates the axes are a permutation, and no product is needed.
    """
    places = axes.argmax(axis=1)
    is_permutation = np.count_nonzero(axes) == len(axes) and bool(axes.max(axis=1).min() == 1)
    return rows[places] if is_permutation else axes @ rows


def principal_axes(moment: FloatArray) -> FloatArray:
    """Orthonormal eigenvectors of a psd matrix (D, D) as rows, by decreasing eigenvalue.

    Blocks of coordinates that are uncorrelated with all others are decomposed separately. So axes
    of equal variance never mix two factors of a product, and shadows of products keep closed forms.
    """
    if _is_diagonal(moment):
        permutation = np.zeros_like(moment)
        order = np.argsort(-np.diag(moment), kind="stable")
        permutation[np.arange(len(moment)), order] = 1.0
        return permutation
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
