"""The K-norm mechanism: noise shaped like the body of differences of neighbours.

The recursive mechanism adds such noise level by level, for bodies with long and short axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial
from typing import Self

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray, IntArray
from geomdp.bodies import (
    Ball,
    Body,
    Box,
    CrossPolytope,
    Ellipsoid,
    LinearImage,
    LpBall,
    Product,
    Scaled,
    SimplexDifference,
    SymmetrisedBox,
    TriangulatedPolytope,
    neighbour_body,
)
from geomdp.bodies.noise_bodies import check_contains_neighbours, exact_noise_bodies
from geomdp.geometry.outer_slabs import refine_slabs
from geomdp.geometry.sampling.samplers import ChainSampler, ExactSampler, UniformSampler
from geomdp.mechanisms.additive_noise.base import PureMechanism
from geomdp.mechanisms.additive_noise.real_answers import (
    SLACK,
    CertifiedRows,
    ScaledAnswers,
    Units,
    can_be_checked,
    independent_rows,
    lifted,
    longest_difference,
    proved_bound,
    pulled_back,
)
from geomdp.mechanisms.base import answer_hull
from geomdp.noise import KNormNoise, Noise
from geomdp.noise.exact import RoundedNoise
from geomdp.noise.exact.release import Rounded
from geomdp.noise.recursive import RecursiveNoise, Variant, best_stop, decompose_each, energy_of
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import Workload
from geomdp.workloads.structure import random_symmetry

# Proofs that a body found in float64 contains all differences of whole-number answers.

#: Let s be the larger of 1 and the radius of a triangulated body. If a coordinate of a vertex is
#: farther than this number times s from a whole number, the body is not certified. The limit is
#: above 0 because the library makes such bodies larger by the factor 1 + 1e-9.
NEARLY_WHOLE = 1e-8


def holds_as_given(body: Body) -> bool:
    """Whether `body` is known to have whole-number parameters, which float64 holds exactly."""
    match body:
        case Box():
            return _whole(body.lower) and _whole(body.upper)
        case SymmetrisedBox():
            return _whole(body.upper)
        case CrossPolytope():
            return _whole(np.array(body.r))
        case LinearImage():
            return _whole(body.matrix) and holds_as_given(body.body)
        case Product():
            return all(map(holds_as_given, body.bodies))
        case _:
            return isinstance(body, SimplexDifference)


def certified_body(
    workload: Workload,
    body: Body,
    adjacency: Adjacency,
    noise_of: Callable[[Body], Noise],
) -> CertifiedRows | None:
    """K-norm noise of a body in R^r proved to contain all differences of r answers; else None."""
    if not can_be_checked(workload):
        return None
    basis = body.affine_hull().basis
    places = independent_rows(basis)
    points = np.unique(workload.evaluate(workload.universe.elements())[:, places], axis=0)
    fitting = _fitting(body, places, points, adjacency)
    if fitting is None:
        return None
    found, slack = fitting
    return lifted(workload, basis, places, adjacency, noise_of(found), slack)


def _fitting(
    body: Body, places: IntArray, points: FloatArray, adjacency: Adjacency
) -> tuple[Body, float] | None:
    """A body in R^r proved to hold all differences of `points` (N, r), and its slack; or None."""
    if isinstance(body, TriangulatedPolytope):
        whole = _whole_image(body, places, points, adjacency)
        return None if whole is None else (whole, 0.0)
    matrix, core = framed(body)
    root = matrix[places] * (1 + SLACK)
    square = root.shape[0] == root.shape[1]
    if not square or not core_holds(root, core, points, adjacency):
        return None
    return LinearImage(root, core), SLACK


def _whole_image(
    body: TriangulatedPolytope, places: IntArray, points: FloatArray, adjacency: Adjacency
) -> TriangulatedPolytope | None:
    """The projection to `places` with rounded vertices; None if not proved to hold differences."""
    vertices = body.vertices[:, places]
    rounded = np.rint(vertices)
    if np.abs(vertices - rounded).max() > NEARLY_WHOLE * max(1.0, body.radius()):
        return None
    image = TriangulatedPolytope(np.unique(rounded, axis=0))
    cones = image.whole_cones
    if cones is None:
        return None
    heights, offsets = cones.heights(points)
    if adjacency is Adjacency.REPLACE_ONE:
        widths = heights.max(axis=0) - heights.min(axis=0)
    else:
        # Check each point p and -p, because the inequalities need not come in opposite pairs.
        widths = np.abs(heights).max(axis=0)
    return image if (widths <= offsets).all() else None


def framed(body: Body) -> tuple[FloatArray, Body]:
    """A matrix (m, k), and a body in R^k that the matrix maps onto `body`."""
    match body:
        case Scaled():
            matrix, core = framed(body.body)
            return matrix * body.factor, core
        case LinearImage():
            matrix, core = framed(body.body)
            return body.matrix @ matrix, core
        case Ellipsoid():
            return body.root, Ball(body.root.shape[1], 1.0)
        case _:
            return np.eye(body.dimension), body


def core_holds(root: FloatArray, core: Body, points: FloatArray, adjacency: Adjacency) -> bool:
    """Whether `root` times `core` is proved to hold all p - q (under add/remove, all p and -p)."""
    pulled = pulled_back(root, points, adjacency)
    if pulled is None:
        return False
    images, error = pulled
    return bool(_gauge_bound(core, images, error, adjacency) <= 1)


def _gauge_bound(body: Body, images: FloatArray, error: float, adjacency: Adjacency) -> float:
    """A proved bound on gauges of all differences of rows, known up to `error`; may be infinite."""
    from scipy.spatial.distance import cdist  # slow import

    dimension = images.shape[1]
    match body:
        case Box():
            if not (body.lower == -body.upper).all() or not (body.upper > 0).all():
                return np.inf
            scaled, inner = images / body.upper, float(body.upper.min())
            longest = longest_difference(scaled, adjacency, partial(cdist, metric="chebyshev"))
        case Ball():
            longest, inner = longest_difference(images, adjacency) / body.r, body.r
        case CrossPolytope():
            longest = longest_difference(images, adjacency, partial(cdist, metric="cityblock"))
            longest, inner = longest / body.r, body.r / np.sqrt(dimension)
        case LpBall():
            metric = partial(cdist, metric="minkowski", p=body.p)
            longest = longest_difference(images, adjacency, metric) / body.r
            inner = body.r * min(1.0, dimension ** (0.5 - 1 / body.p))
        case Product():
            return _product_bound(body, images, error, adjacency)
        case _:
            return np.inf
    # The body contains a ball of radius `inner`, so an error e changes a gauge by <= e / inner.
    # The factors 1.001 and 1 + 1e-10 cover the rounding errors of powers and quotients.
    return proved_bound(longest, 1.001 * error / inner, dimension) * (1 + 1e-10)


def _product_bound(body: Product, images: FloatArray, error: float, adjacency: Adjacency) -> float:
    """The largest bound of a factor, because a product's gauge is the largest gauge of a factor."""
    start, bound = 0, 0.0
    for factor in body.bodies:
        stop = start + factor.dimension
        bound = max(bound, _gauge_bound(factor, images[:, start:stop], error, adjacency))
        start = stop
    return bound


def _whole(values: FloatArray) -> bool:
    return bool((values == np.rint(values)).all())


# The mechanisms.

#: Largest number of slabs of an outer body per dimension, and largest value of slabs^2 x dimension.
#: The time of a refinement is proportional to slabs^2 x dimension. Together these limits allow 1100
#: slabs in dimension 55, 1031 in dimension 94 and 816 in dimension 150. Two slabs per dimension are
#: allowed in any case.
SLABS_PER_DIMENSION, SLAB_WORK = 20, 100_000_000


class KNorm(PureMechanism):
    """K-norm noise of a symmetric body that contains all differences of neighbours.

    M(X) = (sum of Q(x) + Z) / n. Z has density proportional to exp(-epsilon ||z||_K) on the span of
    K. K is the first of these that applies:

    * `body`, if it is given. The constructor checks that this body contains the differences.
    * If `exact`, the body in `exact_noise_bodies(workload, adjacency)` with the least E||Z||^2.
    * The neighbour body, if it has an exact sampler. It is K_Q - K_Q for the sensitivity polytope
      K_Q under replace-one, and the convex hull of K_Q and -K_Q under add/remove.
    * A refined outer slab body: an intersection of slabs around the neighbour body (X-OUT), sampled
      by hit-and-run. It has at most 20 slabs per dimension, and fewer above dimension 62.
      Refinement takes seconds in dimension 50 and minutes above dimension 100.

    Notation and parameters are those of `AdditiveMechanism`; `privacy` is a `PureDP`. `body` is a
    symmetric body in R^m in units of sums (not divided by n). `exact` requires an exact sampler. A
    `body` that is not proved to contain all differences raises ``ValueError``. With `exact`, so
    does a `body` without an exact sampler; the message lists bodies with exact samplers.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic, if Z has the stated distribution. A shift by a
    difference v of sums of neighbours changes the log-density of Z by at most
    epsilon ||v||_K <= epsilon. With a Markov chain (`guarantee.sampler` is `Heuristic`), no bound
    on the distance of Z from this distribution is proved. Then epsilon is a target, and no
    guarantee is claimed (SAM-3). K, its slabs and all estimates do not depend on the records.

    Error: ((r + 1)(r + 2) E||U||^2 / m)^(1/2) / (epsilon n) per query, up to a factor of 1 + 1e-6,
    unless releases round answers. Here U is uniform on K and r is the dimension of K. If E||U||^2
    has no closed form, it is estimated, and has a standard error. The set-up runs on first use.

    References
    ----------
    Hardt-Talwar 2010; Nikolov 2022, Lemma 14; formula sheet JL-KN, JL-L14, X-OUT, SAM-1 to SAM-6.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> mechanism = gd.mechanisms.KNorm(workload, n=100, privacy=gd.PureDP(1.0), exact=True)
    >>> print(mechanism.predicted_rmse)
    rmse 0.01826
    >>> laplace = gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0))
    >>> print(laplace.predicted_rmse)
    rmse 0.02828
    >>> records = np.array([0] * 50 + [1] * 30 + [2] * 20)
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release.answers.round(3)
    array([0.489, 0.325, 0.186])
    """

    _span: AffineHull

    def __init__(
        self,
        workload: Workload,
        *,
        n: int,
        privacy: PureDP,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        body: Body | None = None,
        exact: bool = False,
    ) -> None:
        super().__init__(workload, n=n, privacy=privacy, adjacency=adjacency)
        self._given = None if body is None else holding_neighbours(body, workload, adjacency)
        self._exact = exact
        if body is not None and exact and not body.implements(Body.sample_uniform):
            names = ", ".join(named.name for named in exact_noise_bodies(workload, adjacency))
            raise ValueError(f"body must have an exact sampler; {names} have one; got {body!r}")

    def _prepare(self) -> None:
        self._span = answer_hull(self.workload, self.adjacency)

    @cached_property
    def noise(self) -> KNormNoise:
        if self._given is not None:
            return self._noise_of(self._given)
        if self._exact:
            candidates = exact_noise_bodies(self.workload, self.adjacency)
            noises = [self._noise_of(named.body) for named in candidates]
            return min(noises, key=lambda noise: noise.second_moment().value)
        body = neighbour_body(self.workload, self.adjacency)
        if body.implements(Body.sample_uniform):
            return self._noise_of(body)
        refined = refine_slabs(
            body,
            slabs=slab_budget(self._span.dimension),
            directions=self._span.basis.T,
            symmetry=random_symmetry(self.workload),
            rng=PUBLIC_SEED,
        )
        return KNormNoise(
            refined.body, self.privacy.epsilon, refined.sampler, refined.second_moment
        )

    def _noise_of(self, body: Body) -> KNormNoise:
        sampler: UniformSampler
        sampler = ExactSampler(body) if body.implements(Body.sample_uniform) else ChainSampler(body)
        return KNormNoise(body, self.privacy.epsilon, sampler)

    def _proved_as_computed(self) -> bool:
        # `holds_as_given` accepts bodies with whole-number parameters, because these are exact in
        # float64.
        return self._given is None and holds_as_given(self.noise.body)

    @cached_property
    def _rows(self) -> CertifiedRows | None:
        noise = self.noise
        if self._proved_as_computed() or not isinstance(noise.uniform, ExactSampler):
            return None
        return certified_body(self.workload, noise.body, self.adjacency, self._noise_of)

    def _in_units(self, units: Units) -> ScaledAnswers | None:
        if not isinstance(self.noise.uniform, ExactSampler):
            return None
        if self._given is None:
            body = neighbour_body(units.workload, self.adjacency)
            if isinstance(body, SimplexDifference):
                return units.with_noise(self._noise_of(body))
        scaled = Scaled(self.noise.body, units.factor)
        rows = certified_body(units.workload, scaled, self.adjacency, self._noise_of)
        return units.with_rows(rows)

    @cached_property
    def _hull(self) -> AffineHull:
        # The noise fills the span of the body, which can be larger than the span of the answers.
        return AffineHull(self._span.offset, self.noise.body.affine_hull().basis)

    def with_workload(self, workload: Workload) -> Self:
        """As for every mechanism; ``ValueError`` if a `body` was given, as it need not fit."""
        if self._given is not None:
            raise ValueError("a mechanism built with a `body` cannot be built for another workload")
        return type(self)(
            workload,
            n=self.n,
            privacy=self.privacy,
            adjacency=self.adjacency,
            exact=self._exact,
        )


def holding_neighbours(body: Body, workload: Workload, adjacency: Adjacency) -> Body:
    """`body`, made larger by a share of at most 2e-8 for rounding; ``ValueError`` if too small."""
    factor = check_contains_neighbours(body, workload, adjacency)
    return body if factor == 1 else Scaled(body, factor)


def slab_budget(dimension: int) -> int:
    """Number of slabs in `dimension` r: min(20 r, (1e8 / r)^(1/2)), at least 2 r."""
    affordable = math.isqrt(SLAB_WORK // dimension)
    return max(2 * dimension, min(SLABS_PER_DIMENSION * dimension, affordable))


class Recursive(PureMechanism):
    """Hardt-Talwar noise of a symmetric body that contains all differences of neighbours.

    M(X) = (sum of Q(x) + Z) / n. A recursion splits the span of the body K into orthogonal
    subspaces V_i, by the covariance of uniform points of K. Z is the sum over these levels of
    K-norm noise of a shadow K_i (an orthogonal projection of K), projected on V_i. The number of
    levels, and the split of the budget among them, minimise the error. If all axes of K have
    similar lengths, there is one level, and Z is K-norm noise of K.

    Notation and parameters are those of `AdditiveMechanism`; `privacy` is a `PureDP`. If `body` is
    given, a symmetric body in R^m in units of sums (not divided by n), it is K. It is scaled up by
    a factor of at most 1 + 2e-8 if rounding alone puts some differences outside. If a shadow of
    `body` has no exact sampler, a Markov chain draws from it, and the sampler is heuristic. By
    default, K is the body in `exact_noise_bodies(workload, adjacency)` with the least E||Z||^2,
    split only into shadows with exact samplers. The error is then at most that of `KNorm` with
    `exact`. `variant` is the kind of noise that a level adds in its subspace; by default the
    `Variant` with less error. ``ValueError`` for a `body` that is not proved to contain all
    differences, or a `variant` that is not a `Variant`.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic, if the noise of all levels has its stated distribution.
    A difference of sums of neighbours lies in K, so its shadow lies in the public shadow K_i. The
    shadow of the sum plus K-norm noise of K_i with epsilon_i is therefore epsilon_i-DP. The
    epsilon_i add up to epsilon, so all levels together are epsilon-DP. Projecting the levels on the
    V_i and adding them up is post-processing. With a Markov chain in any level (`guarantee.sampler`
    is `Heuristic`) no guarantee is claimed (SAM-3).

    Error: exactly ((sum of A_i^(1/3))^3 / m)^(1/2) / (epsilon n) per query, where A_i is the
    E ||Z||^2 of level i alone at epsilon_i = 1. If the second moment of a level has no closed form,
    A_i is estimated, and the prediction has a standard error.

    The set-up runs on first use: one eigenvalue decomposition per level, O(m^3), with exact
    samplers, and seconds to minutes with Markov chains.

    References
    ----------
    Hardt-Talwar 2010, section 7; Nikolov 2022, Lemmas 16, 18 and 19; formula sheet JL-L18,
    JL-SPLIT, JL-L16, JL-L19, SAM-1 to SAM-6.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Explicit([[0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 0.01, 0.01]])
    >>> mechanism = gd.mechanisms.Recursive(workload, n=1000, privacy=gd.PureDP(1.0))
    >>> len(mechanism.noise.levels)
    2
    >>> round(mechanism.predicted_rmse.value, 4)
    0.0011
    """

    _span: AffineHull
    #: The body that was split into levels, in R^m.
    _chosen: Body

    def __init__(
        self,
        workload: Workload,
        *,
        n: int,
        privacy: PureDP,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        body: Body | None = None,
        variant: Variant | None = None,
    ) -> None:
        super().__init__(workload, n=n, privacy=privacy, adjacency=adjacency)
        if variant is not None and not isinstance(variant, Variant):
            raise ValueError(f"variant must be one of {list(Variant)} or None, got {variant!r}")
        self._variant = variant
        self._given = None if body is None else holding_neighbours(body, workload, adjacency)

    def _prepare(self) -> None:
        self._span = answer_hull(self.workload, self.adjacency)

    @cached_property
    def noise(self) -> RecursiveNoise:
        exact = self._given is None
        if self._given is None:
            bodies = [named.body for named in exact_noise_bodies(self.workload, self.adjacency)]
        else:
            bodies = [self._given]
        variants = list(Variant) if self._variant is None else [self._variant]
        # With one level, all variants give the same noise; `min` then keeps the first variant.
        choices = [
            (best_stop(stages), body)
            for body in bodies
            for stages in decompose_each(body, variants, exact=exact)
        ]
        levels, self._chosen = min(choices, key=lambda choice: energy_of(choice[0]))
        return RecursiveNoise(levels, self.privacy.epsilon)

    @cached_property
    def _undivided(self) -> KNormNoise | None:
        """The noise as K-norm noise in R^m, if there is one level with an exact sampler."""
        noise = self.noise
        if len(noise.levels) > 1 or not isinstance(noise.levels[0].source.sampler, ExactSampler):
            return None
        if not self._chosen.implements(Body.sample_uniform):
            return None
        return self._noise_of(self._chosen)

    def _noise_of(self, body: Body) -> KNormNoise:
        return KNormNoise(body, self.privacy.epsilon, ExactSampler(body))

    def _proved_as_computed(self) -> bool:
        noise = self._undivided
        return noise is not None and self._given is None and holds_as_given(noise.body)

    @cached_property
    def _rows(self) -> CertifiedRows | None:
        noise = self._undivided
        if noise is None or self._proved_as_computed():
            return None
        return certified_body(self.workload, noise.body, self.adjacency, self._noise_of)

    @cached_property
    def _rounded(self) -> Rounded | None:
        noise = self._undivided
        if self.grid is None or noise is None or self._rows is not None:
            return super()._rounded
        return RoundedNoise(noise, self.grid)

    @cached_property
    def _hull(self) -> AffineHull:
        # The noise fills the span of the body, which can be larger than the span of the answers.
        return AffineHull(self._span.offset, self.noise.basis)

    def with_workload(self, workload: Workload) -> Self:
        """As for every mechanism; ``ValueError`` if a `body` was given, as it need not fit."""
        if self._given is not None:
            raise ValueError("a mechanism built with a `body` cannot be built for another workload")
        return type(self)(
            workload,
            n=self.n,
            privacy=self.privacy,
            adjacency=self.adjacency,
            variant=self._variant,
        )
