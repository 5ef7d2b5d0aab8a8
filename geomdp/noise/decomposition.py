"""The Hardt-Talwar decomposition: subspaces that separate short axes of a body from long axes."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.linalg import RANK_TOLERANCE, is_diagonal
from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp._validation import require_type
from geomdp.bodies.base import Body
from geomdp.bodies.operand import checked_body
from geomdp.bodies.operations.linear_image import LinearImage
from geomdp.bodies.operations.scaled import Scaled
from geomdp.bodies.shadows import shadow
from geomdp.geometry.outer_slabs.refinement import refine_slabs
from geomdp.geometry.sampling.samplers import ChainSampler, ExactSampler, UniformSampler
from geomdp.noise.knorm import MOMENT_DRAWS
from geomdp.noise.levels import Level, NoiseBody, Stage

#: A matrix M is treated as an isometry if all entries of M^T M - I have moduli of at most this
#: number. For float64 matrices with orthonormal columns, these entries are a few 1e-16 times the
#: number of rows.
ISOMETRY_TOLERANCE = 1e-12


class Variant(enum.Enum):
    """Which K-norm noise a level adds in its subspace V.

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


def decompose(body: Body, variant: Variant, *, exact: bool) -> tuple[Stage, ...]:
    """The stages of the Hardt-Talwar recursion on a symmetric body K (JL-L18).

    The first W is the span of K. The covariance of the uniform distribution on the shadow
    (orthogonal projection) of K on W has D principal axes. The D - floor(D / 2) axes of least
    variance span V, and the others the next W, until W has dimension 1. All V are orthogonal. A
    body of dimension r has at most floor(log2 r) + 1 stages.

    Unless `exact` is set, shadows without an exact sampler are sampled by Markov chains. A shadow
    with neither `chord` nor `gauge` is first enclosed in an intersection of slabs (X-OUT).
    ``ValueError`` if K is not known to be symmetric, or is the single point 0, or if `exact` is set
    and K lacks an exact sampler or an exact second moment.

    Parameters
    ----------
    body : Body
        K in R^m, symmetric, possibly lower-dimensional.
    variant : Variant
        Which noise the levels add in their subspaces.
    exact : bool
        Whether to end the recursion before a shadow that has no exact sampler or second moment.

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
    #: K-norm noise on all of W.
    stop: Level
    #: Principal axes (D, D) of the shadow on W as rows, by decreasing variance; None if D = 1.
    axes: FloatArray | None
    #: The same axes (D, r) in coordinates of the span of K, which has dimension r.
    rows: FloatArray


def _steps(frame: FloatArray, core: Body, exact: bool) -> Iterator[_Step]:
    """The subspaces W. If `exact` is set, stop before the first W without exact noise."""
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
        # Use the shadow of K itself. The shadow of the slabs around K would be larger.
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
    """An isometry (m, r), and the full-dimensional body in R^r that it maps to `body`."""
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
        # `LinearImage` keeps every method, because the map is one-to-one on the affine hull of the
        # body.
        return frame, image if exact else LinearImage(frame.T, body)
    return frame, shadow(body, frame.T)


def _prepared(body: Body, exact: bool) -> NoiseBody | None:
    """`body`, or slabs around it, with sampler and moment; None if `exact` excludes it."""
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


def _turned(axes: FloatArray, rows: FloatArray) -> FloatArray:
    """The product of orthonormal `axes` (D, D) and `rows` (D, r), cheap for a permutation."""
    places = axes.argmax(axis=1)
    is_permutation = np.count_nonzero(axes) == len(axes) and bool(axes.max(axis=1).min() == 1)
    return rows[places] if is_permutation else axes @ rows


def principal_axes(moment: FloatArray) -> FloatArray:
    """Orthonormal eigenvectors of a psd matrix (D, D) as rows, by decreasing eigenvalue.

    Uncorrelated blocks are decomposed separately, so no axis mixes factors of a product.
    """
    if is_diagonal(moment):
        permutation = np.zeros_like(moment)
        order = np.argsort(-np.diag(moment), kind="stable")
        permutation[np.arange(len(moment)), order] = 1.0
        return permutation
    from scipy.sparse.csgraph import connected_components  # slow import

    deviations = np.sqrt(np.diag(moment))
    linked = np.abs(moment) > RANK_TOLERANCE * np.outer(deviations, deviations)
    # The matrix is sparse, because SciPy searches a dense matrix for masked and infinite entries.
    count, labels = connected_components(sp.csr_array(linked.astype(np.float64)), directed=False)
    values, axes = np.diag(moment).copy(), np.eye(len(moment))
    sizes = np.bincount(labels, minlength=count)
    for label in np.flatnonzero(sizes > 1):
        mine = np.flatnonzero(labels == label)
        values[mine], vectors = np.linalg.eigh(moment[np.ix_(mine, mine)])
        axes[np.ix_(mine, mine)] = vectors.T
    return np.asarray(axes[np.argsort(-values, kind="stable")])
