"""Hardt-Talwar noise: K-norm noise on orthogonal subspaces that share one epsilon."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.linalg import RANK_TOLERANCE, is_diagonal
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp._validation import batch, listed, positive, require_type
from geomdp.bodies.base import Body, checked_body, off_span
from geomdp.bodies.products import LinearImage
from geomdp.bodies.sensitivity import shadow
from geomdp.bodies.symmetrised import Scaled
from geomdp.geometry.outer_slabs import refine_slabs
from geomdp.geometry.projection import Estimate
from geomdp.geometry.sampling.samplers import ChainSampler, ExactSampler, UniformSampler
from geomdp.noise.base import combined_status, mean_estimate
from geomdp.noise.knorm import MOMENT_DRAWS, KNormNoise, sum_of_balls
from geomdp.noise.points import composed, linear_map
from geomdp.noise.rounding import Numbers, exact_numbers
from geomdp.privacy.guarantees import SamplerStatus

# The subspaces and the noise in each


@dataclass(frozen=True, eq=False)
class NoiseBody:
    """A symmetric full-dimensional body in R^D, with a sampler of uniform points U in the body."""

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
    #: Orthonormal rows (d, r) that span V, written in the basis `frame`.
    rows: FloatArray
    #: Orthonormal rows (d, D): the matrix that maps points of R^D to coordinates of V.
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
        """E ||Z||_2^2 at epsilon = 1, which is (D + 1)(D + 2) E ||keep U||_2^2 (JL-L14)."""
        D = self.source.body.dimension
        factor = (D + 1) * (D + 2)
        draws, moment = self.source.draws, self.source.moment
        if draws is not None:
            return mean_estimate(factor * ((draws @ self.keep.T) ** 2).sum(axis=1))
        if self.dimension == D:  # a square orthogonal `keep` does not change the trace
            kept = np.trace(moment)
        elif is_diagonal(moment):
            kept = (self.keep**2).sum(axis=0) @ np.diag(moment)
        else:
            kept = np.vdot(self.keep @ moment, self.keep)
        return Estimate.exact(factor * float(kept))


@dataclass(frozen=True, eq=False)
class Stage:
    """K-norm noise on all of the subspace W that remains (`stop`), or on a part of it (`split`)."""

    stop: Level
    split: Level | None


class RecursiveNoise:
    """Z = sum over i of B_i P_i Z_i, Z_i with density proportional to exp(-epsilon_i ||z||_{K_i}).

    The columns of B_i are an orthonormal basis of the subspace V_i, and the V_i are orthogonal to
    each other. P_i maps the space of the body K_i onto coordinates of V_i.

    Suppose that sums of neighbours differ by vectors of a body K, that the V_i together span the
    span of K, and that each K_i contains the projection of K on its space. Then K-norm noise of K_i
    makes the projection of the sums epsilon_i-DP, and the component of the sums plus Z in V_i is
    computed from it alone. By composition, the sums plus Z are (sum of epsilon_i)-DP.

    The epsilon_i are proportional to A_i^(1/3), where A_i is E ||B_i P_i Z_i||_2^2 at
    epsilon_i = 1. This minimises E ||Z||_2^2 (JL-SPLIT).

    Parameters
    ----------
    levels : sequence of Level
        At least one `Level`: K-norm noise in one of the subspaces.
    epsilon : float
        Total privacy loss, finite and above 0.
    body : Body, optional
        The body K in R^m that was split into the levels.

    References
    ----------
    Hardt-Talwar 2010, section 7; Bhaskara et al. 2012; Nikolov 2022, Lemmas 16, 18 and 19;
    formula sheet JL-L18, JL-SPLIT, SAM-1.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> K = gd.bodies.Ellipsoid(np.diag([1.0, 1.0, 30.0, 30.0]))
    >>> levels = gd.noise.best_stop(
    ...     gd.noise.decompose(K, gd.noise.Variant.INTRINSIC, exact=True)
    ... )
    >>> noise = gd.noise.RecursiveNoise(levels, epsilon=1.0)
    >>> noise, noise.split.round(3).tolist()
    (RecursiveNoise(dimensions (2, 2), epsilon=1), [0.094, 0.906])
    """

    def __init__(self, levels: Sequence[Level], epsilon: float, body: Body | None = None) -> None:
        levels = listed(levels, "levels")
        for level in levels:
            if not isinstance(level, Level):
                raise ValueError(f"levels must be a sequence of Level, got {type(level).__name__}")
        if not levels or len({len(level.basis) for level in levels}) != 1:
            raise ValueError(
                f"levels must be a list of at least 1 level, all in the same R^m, got {levels!r}"
            )
        self.levels = levels
        self.epsilon = positive(epsilon, "epsilon")
        self._body = body

    def __repr__(self) -> str:
        dimensions = ", ".join(str(level.dimension) for level in self.levels)
        return f"RecursiveNoise(dimensions ({dimensions}), epsilon={self.epsilon:g})"

    @property
    def dimension(self) -> int:
        return len(self.levels[0].basis)

    @cached_property
    def split(self) -> FloatArray:
        """The epsilon_i = epsilon A_i^(1/3) / sum over j of A_j^(1/3), one per level (JL-SPLIT)."""
        shares = np.cbrt([level.energy.value for level in self.levels])
        return np.asarray(self.epsilon * shares / shares.sum())

    @cached_property
    def parts(self) -> tuple[KNormNoise, ...]:
        """The K-norm noise of each level, in the coordinates of its body."""
        return tuple(
            KNormNoise(level.source.body, float(share), level.source.sampler)
            for level, share in zip(self.levels, self.split, strict=True)
        )

    @cached_property
    def undivided(self) -> KNormNoise | None:
        """The noise as K-norm noise of K, if K is known, with one level and an exact sampler."""
        if self._body is None or len(self.levels) > 1:
            return None
        exact = isinstance(self.levels[0].source.sampler, ExactSampler)
        if not (exact and self._body.implements(Body.sample_uniform)):
            return None
        return KNormNoise(self._body, self.epsilon, ExactSampler(self._body))

    @cached_property
    def basis(self) -> FloatArray:
        """Orthonormal columns (m, r) that span the sum of all V_i."""
        return np.hstack([level.basis for level in self.levels])

    @property
    def sampler(self) -> SamplerStatus:
        return combined_status([part.sampler for part in self.parts])

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        coordinates = [
            part.sample(rng, size) @ level.keep.T
            for part, level in zip(self.parts, self.levels, strict=True)
        ]
        return np.asarray(np.hstack(coordinates) @ self.basis.T)

    def covariance(self) -> FloatArray:
        """The sum over the levels, because their noise is independent."""
        total = np.zeros((self.dimension, self.dimension))
        for level, share in zip(self.levels, self.split, strict=True):
            D = level.source.body.dimension
            onto = level.basis @ level.keep
            total += (D + 1) * (D + 2) / share**2 * (onto @ level.source.moment @ onto.T)
        return total

    def variances(self) -> FloatArray:
        return np.diag(self.covariance()).copy()

    def second_moment(self) -> Estimate:
        """sum of A_i / epsilon_i^2 = (sum of A_i^(1/3))^3 / epsilon^2 (JL-SPLIT)."""
        # Estimated A_i can be correlated, as all come from one public stream. So standard errors,
        # for an upper bound, and the ends of intervals are added.
        energies = [level.energy for level in self.levels]
        numbers = np.array([[each.value, each.stderr, *each.interval] for each in energies])
        value, stderr, low, high = (numbers / self.split[:, None] ** 2).sum(axis=0).tolist()
        return Estimate(value, stderr, (low, high), max(each.samples for each in energies))

    def log_density(self, points: FloatArray) -> FloatArray:
        """The sum over the levels; -inf outside of the sum of all V_i.

        ``ValueError`` if a level projects K-norm noise: its density has no closed form.
        """
        points = batch(points, self.dimension, "points")
        parts = [part.log_density(points @ onto) for part, onto in self._intrinsic()]
        return np.where(off_span(points, self.basis), -np.inf, np.sum(parts, axis=0))

    def log_density_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        """log f(z) - log f(z - s), (b,), for rows of `points` and `shifts` (b, m).

        Both must lie in the sum of all V_i (not checked); ``ValueError`` as in `log_density`.
        """
        points = batch(points, self.dimension, "points")
        shifts = batch(shifts, self.dimension, "shifts")
        levels = self._intrinsic()
        ratios = [part.log_density_ratio(points @ onto, shifts @ onto) for part, onto in levels]
        return np.asarray(np.sum(ratios, axis=0))

    def _intrinsic(self) -> list[tuple[KNormNoise, FloatArray]]:
        """K-norm noise and span (m, D) of each level; ``ValueError`` as in `log_density`."""
        if any(level.keep.shape[0] < level.keep.shape[1] for level in self.levels):
            raise ValueError("levels must not project K-norm noise: no density in closed form")
        return [
            (part, level.basis @ level.keep)
            for part, level in zip(self.parts, self.levels, strict=True)
        ]


@exact_numbers.register
def _exact_recursive(noise: RecursiveNoise) -> Numbers:
    parts = [
        (composed(linear_map(level.keep), exact_numbers(part).balls), linear_map(level.basis))
        for part, level in zip(noise.parts, noise.levels, strict=True)
    ]
    return Numbers(partial(sum_of_balls, parts))


def best_stop(stages: Sequence[Stage]) -> tuple[Level, ...]:
    """The levels with the least energy, E ||Z||_2^2, over all stages at which one can stop.

    A stop gives the splits of the earlier stages, and K-norm noise on the subspace that remains; at
    the first stage this is plain K-norm noise.

    Examples
    --------
    >>> import geomdp as gd
    >>> K = gd.bodies.Box.centred([1.0, 1.0, 30.0, 30.0])
    >>> stages = gd.noise.decompose(K, gd.noise.Variant.INTRINSIC, exact=True)
    >>> [level.dimension for level in gd.noise.best_stop(stages)]
    [2, 2]
    """
    return min(stopped(stages), key=energy_of)


def stopped(stages: Sequence[Stage]) -> list[tuple[Level, ...]]:
    choices: list[tuple[Level, ...]] = []
    before: tuple[Level, ...] = ()
    for stage in stages:
        choices.append((*before, stage.stop))
        if stage.split is not None:
            before = (*before, stage.split)
    return choices


def energy_of(levels: Sequence[Level]) -> float:
    """E ||Z||_2^2 at epsilon = 1 under the best split of epsilon: (sum of A_i^(1/3))^3."""
    return float(np.cbrt([level.energy.value for level in levels]).sum() ** 3)


# The decomposition of a body

#: A matrix M is an isometry if no entry of M^T M - I has a modulus above this number; rounding
#: gives a few 1e-16 times the number of rows.
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

    Unless `exact` is set, shadows without an exact sampler are sampled by Markov chains; one with
    neither `chord` nor `gauge` is first enclosed in an intersection of slabs (X-OUT).

    Parameters
    ----------
    body : Body
        K in R^m, symmetric, possibly lower-dimensional.
    variant : Variant
        Which noise the levels add in their subspaces.
    exact : bool
        Whether to end the recursion before a shadow that has no exact sampler or second moment.

    Raises
    ------
    ValueError
        If K is not symmetric, or is the single point 0, or if `exact` is set and K lacks an exact
        sampler or second moment.

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


#: K-norm noise on all of W; the principal axes (D, D) of the shadow on W as rows, by decreasing
#: variance; and these axes (D, r) in coordinates of the span of K, which has dimension r.
_Step = tuple[Level, FloatArray, FloatArray]


def _steps(frame: FloatArray, core: Body, exact: bool) -> Iterator[_Step]:
    """The subspaces W. If `exact` is set, stop before the first W without exact noise."""
    rows = np.eye(core.dimension)
    source = _prepared(core, exact)
    while source is not None:
        axes = principal_axes(source.moment)
        # At the first stage `rows` is the identity, so the product with it is skipped.
        axes_of_core = axes if len(rows) == core.dimension else _turned(axes, rows)
        yield Level(source, frame, rows, np.eye(len(rows))), axes, axes_of_core
        if len(rows) == 1:
            return
        rows = axes_of_core[: len(rows) // 2]
        # Use the shadow of K itself. The shadow of the slabs around K would be larger.
        source = _prepared(shadow(core, rows), exact)


def _stages(steps: list[_Step], core: Body, variant: Variant, exact: bool) -> Iterator[Stage]:
    for stop, axes, rows in steps[:-1]:
        half = len(rows) // 2
        source: NoiseBody | None = stop.source
        keep = axes[half:]
        if variant is Variant.INTRINSIC:
            source, keep = _prepared(shadow(core, rows[half:]), exact), np.eye(len(keep))
        if source is None:
            yield Stage(stop, None)
            return
        yield Stage(stop, Level(source, stop.frame, rows[half:], keep))
    yield Stage(steps[-1][0], None)


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
        # `LinearImage` keeps every method, as the map is one-to-one on the affine hull.
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
        return np.eye(len(moment))[np.argsort(-np.diag(moment), kind="stable")]
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
