"""K-norm mechanisms: noise shaped like a body that contains all differences of neighbours."""

from __future__ import annotations

import abc
import itertools
import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Self, TypeGuard

import numpy as np

from geomdp._numerics.linalg import AffineHull, svec
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.bodies import Body, Scaled
from geomdp.bodies import Ellipsoid as EllipsoidBody
from geomdp.bodies.sensitivity import check_contains_neighbours, exact_noise_bodies
from geomdp.geometry.ellipsoids import (
    PairDifferences,
    Rows,
    capped_ellipsoid,
    least_trace_ellipsoid,
    profile_ellipsoid,
)
from geomdp.geometry.outer_slabs import refine_slabs
from geomdp.geometry.sampling.samplers import ChainSampler
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism, PureMechanism
from geomdp.mechanisms.additive_noise.certify import Origin, knorm
from geomdp.mechanisms.additive_noise.sums import Change
from geomdp.mechanisms.base import answer_hull, l2_sensitivity
from geomdp.noise import KNormNoise
from geomdp.noise.knorm import ball_rate
from geomdp.noise.recursive import RecursiveNoise, Variant, best_stop, decompose_each, energy_of
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Privacy, PureDP
from geomdp.workloads import MarginalTables, SecondMoment, Workload
from geomdp.workloads.structure import random_symmetry

#: Largest number of slabs of an outer body per dimension, and largest value of slabs^2 x dimension,
#: to which the time of a refinement is proportional: 1100 slabs in dimension 55, 816 in dimension
#: 150. Two slabs per dimension are allowed in any case.
SLABS_PER_DIMENSION, SLAB_WORK = 20, 100_000_000


@dataclass(eq=False, repr=False, kw_only=True)
class BodyMechanism(PureMechanism):
    """A mechanism with noise shaped like a body, which the caller may give."""

    body: Body | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        #: The body of the caller, made larger by a share of at most 2e-8 for rounding.
        self._given = self.body
        if self.body is not None:
            factor = check_contains_neighbours(self.body, self.workload, self.adjacency)
            self._given = self.body if factor == 1 else Scaled(self.body, factor)

    @property
    def origin(self) -> Origin:
        return Origin.CHANGES if self.body is None else Origin.CALLER

    def _prepare(self) -> None:
        _ = self.change.hull

    @property
    @abc.abstractmethod
    def _span(self) -> FloatArray:
        """Orthonormal columns (m, r) that span the noise."""

    @cached_property
    def _hull(self) -> AffineHull:
        # The noise fills the span of the body, which can be larger than the span of the answers.
        return AffineHull(self.change.hull.offset, self._span)

    def with_workload(self, workload: Workload) -> Self:
        """As for every mechanism; ``ValueError`` if a `body` was given, as it need not fit."""
        if self.body is not None:
            raise ValueError("a mechanism built with a `body` cannot be built for another workload")
        return super().with_workload(workload)


@dataclass(eq=False, repr=False, kw_only=True)
class KNorm(BodyMechanism):
    """K-norm noise of a symmetric body that contains all differences of neighbours.

    Z has density proportional to exp(-epsilon ||z||_K) on the span of K, where K is the first of
    these that applies:

    * `body`, if it is given. The constructor checks that this body contains the differences, and
      makes it larger by a share of at most 2e-8 if only rounding puts some of them outside.
    * If `exact`, the body in `exact_noise_bodies(workload, adjacency)` with the least E||Z||^2.
    * The neighbour body, if it has an exact sampler. It is K_Q - K_Q for the sensitivity polytope
      K_Q under replace-one, and the convex hull of K_Q and -K_Q under add/remove.
    * A refined outer slab body: an intersection of slabs around the neighbour body (X-OUT), sampled
      by hit-and-run. It has at most 20 slabs per dimension, and fewer above dimension 62.
      Refinement takes seconds in dimension 50 and minutes above dimension 100.

    Notation and parameters are those of `AdditiveMechanism`. `body` is a symmetric body in R^m in
    units of sums (not divided by n). `exact` requires an exact sampler. ``ValueError`` for a `body`
    that is not proved to contain all differences, or has no exact sampler if `exact`.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic, if Z has the stated distribution. A shift by a
    difference v of sums of neighbours changes the log-density of Z by at most
    epsilon ||v||_K <= epsilon. With a Markov chain (`guarantee.sampler` is `Heuristic`), epsilon is
    a target, and no guarantee is claimed (SAM-3). K does not depend on the records.

    Error: ((r + 1)(r + 2) E||U||^2 / m)^(1/2) / (epsilon n) per query, up to a factor of 1 + 1e-6,
    unless releases round answers. Here U is uniform on K and r is the dimension of K. If E||U||^2
    has no closed form, it is estimated, and has a standard error. The set-up runs on first use.

    References
    ----------
    Hardt-Talwar 2010; Nikolov 2022, Lemma 14; the best of several simple bodies: Awan-Slavkovic
    2018 (arXiv 1801.09236) and Joseph-Yu 2023 (arXiv 2309.15790); formula sheet JL-KN, JL-L14,
    X-OUT, SAM-1 to SAM-6.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> mechanism = gd.mechanisms.KNorm(workload, n=100, privacy=gd.PureDP(1.0), exact=True)
    >>> print(mechanism.predicted_rmse)  # of `Laplace`: 0.02828
    rmse 0.01826
    """

    exact: bool = False
    noise: KNormNoise = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        body = self.body
        if body is not None and self.exact and not body.implements(Body.sample_uniform):
            bodies = exact_noise_bodies(self.workload, self.adjacency)
            names = ", ".join(named.name for named in bodies)
            raise ValueError(f"body must have an exact sampler; {names} have one; got {body!r}")

    def law(self, change: Change) -> KNormNoise:
        epsilon = self.privacy.epsilon
        if self._given is None and self.exact:
            candidates = exact_noise_bodies(change.workload, change.adjacency)
            noises = [knorm(named.body, epsilon) for named in candidates]
            return min(noises, key=lambda noise: noise.second_moment().value)
        body = change.body if self._given is None else self._given
        if body.implements(Body.sample_uniform):
            return knorm(body, epsilon)
        if self._given is not None:
            return KNormNoise(body, epsilon, ChainSampler(body))
        dimension = change.hull.dimension
        most = min(SLABS_PER_DIMENSION * dimension, math.isqrt(SLAB_WORK // dimension))
        refined = refine_slabs(
            body,
            slabs=max(2 * dimension, most),
            directions=change.hull.basis.T,
            symmetry=random_symmetry(change.workload),
            rng=PUBLIC_SEED,
        )
        return KNormNoise(refined.body, epsilon, refined.sampler, refined.second_moment)

    @property
    def _span(self) -> FloatArray:
        return self.noise.body.affine_hull().basis


@dataclass(eq=False, repr=False, kw_only=True)
class Recursive(BodyMechanism):
    """Hardt-Talwar noise of a symmetric body that contains all differences of neighbours.

    A recursion splits the span of the body K into orthogonal subspaces V_i, by the covariance of
    uniform points of K. Z is the sum over these levels of K-norm noise of a shadow K_i (an
    orthogonal projection of K), projected on V_i. The number of levels, and the split of the budget
    among them, minimise the error. If all axes of K have similar lengths, there is one level, and Z
    is K-norm noise of K.

    Notation and parameters are those of `AdditiveMechanism`. If `body` is given, as for `KNorm`, it
    is K, and a Markov chain draws from shadows without an exact sampler. By default, K is the body
    in `exact_noise_bodies(workload, adjacency)` with the least E||Z||^2, split only into shadows
    with exact samplers. The error is then at most that of `KNorm` with `exact`. `variant` is the
    kind of noise of a level; by default the `Variant` with less error. ``ValueError`` for a `body`
    that is not proved to contain all differences.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic, if the noise of all levels has its stated distribution.
    A difference of sums of neighbours lies in K, so its shadow lies in the public shadow K_i. The
    shadow of the sum plus K-norm noise of K_i with epsilon_i is therefore epsilon_i-DP, and the
    epsilon_i add up to epsilon. The rest is post-processing. With a Markov chain in any level
    (`guarantee.sampler` is `Heuristic`) no guarantee is claimed (SAM-3).

    Error: exactly ((sum of A_i^(1/3))^3 / m)^(1/2) / (epsilon n) per query, where A_i is the
    E ||Z||^2 of level i alone at epsilon_i = 1. If the second moment of a level has no closed form,
    A_i is estimated, and the prediction has a standard error.

    The set-up, on first use, takes O(m^3) per level, or seconds to minutes with Markov chains.

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

    variant: Variant | None = None
    noise: RecursiveNoise = field(init=False)
    whole_only = True

    def __post_init__(self) -> None:
        if self.variant is not None and not isinstance(self.variant, Variant):
            raise ValueError(
                f"variant must be one of {list(Variant)} or None, got {self.variant!r}"
            )
        super().__post_init__()

    def law(self, change: Change) -> RecursiveNoise:
        if self._given is None:
            named = exact_noise_bodies(change.workload, change.adjacency)
            bodies = [candidate.body for candidate in named]
        else:
            bodies = [self._given]
        variants = list(Variant) if self.variant is None else [self.variant]
        # With one level, all variants give the same noise.
        choices = [
            (best_stop(stages), body)
            for body in bodies
            for stages in decompose_each(body, variants, exact=self._given is None)
        ]
        levels, chosen = min(choices, key=lambda choice: energy_of(choice[0]))
        return RecursiveNoise(levels, self.privacy.epsilon, chosen)

    @property
    def _span(self) -> FloatArray:
        return self.noise.basis


# Ellipsoids and balls

#: Largest universe in which all pairs of elements are searched, in a tenth of a second for r = 100.
MAX_PAIR_ELEMENTS = 1 << 12
#: Largest number N r of coordinates in memory (128 MB), for N elements whose answers lie in an
#: affine space of r dimensions, and number of elements that are evaluated together.
MAX_COORDINATES, CHUNK_ELEMENTS = 1 << 24, 8192
#: Largest number c of columns of tables for which the 2^c sets of columns in which two records can
#: agree are listed.
MAX_PATTERN_COLUMNS = 12
#: Relative duality gap at which the optimisation stops. The squared error is proportional to the
#: trace, so 5e-3 in the trace is 0.25% in root mean squared error.
GAP = 5e-3


class Ball(AdditiveMechanism):
    """K-norm noise of an l2 ball in the subspace of the differences between neighbours.

    Z has density proportional to exp(-L ||z||_2 / D_2) on the public subspace. The rate L is
    epsilon for a `PureDP`. For an `ApproxDP` it is at most 1% below the largest that gives the
    guarantee. For a `ZCDP` it is the largest epsilon with epsilon tanh(epsilon / 2) <= rho, or in
    one dimension with epsilon + e^-epsilon - 1 <= rho. Notation and parameters are those of
    `AdditiveMechanism`.

    Notes
    -----
    Privacy: epsilon-DP, (epsilon, delta)-DP or rho-zCDP in real arithmetic. Pure privacy holds as
    for `KNorm` with a ball of radius D_2, and implies rho. In one dimension Z is Laplace noise
    along a line, with the rho of `Laplace` (X-TANH). For (epsilon, delta)-DP, a bound on the delta
    of all changes of length D_2 is proved in ball arithmetic (X-ED). Exact sampler.

    Error: exactly D_2 sqrt(r (r + 1) / m) / (L n) per query. For (1, 1e-6)-DP it is 0.57, 0.72,
    0.84, 0.94 and 0.98 times the error of `Gaussian` in r = 5, 10, 20, 55 and 200 dimensions.

    References
    ----------
    Nikolov 2022, Lemma 15; Joseph-Kulesza-Yu 2025 (arXiv 2502.15929); formula sheet JL-L15, JL-KN,
    X-ED.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(4)
    >>> print(gd.mechanisms.Ball(workload, n=100, privacy=gd.PureDP(1.0)).predicted_rmse)
    rmse 0.03
    """

    accepts, in_span, origin = (PureDP, ApproxDP, ZCDP), True, Origin.BALL

    def _prepare(self) -> None:
        _ = self.change.l2, self.change.hull

    def law(self, change: Change) -> KNormNoise:
        return _of_ellipsoid(change.l2 * change.hull.basis, self.privacy)


def _of_ellipsoid(root: FloatArray, privacy: Privacy) -> KNormNoise:
    """Noise of the ellipsoid {B u : |u| <= 1}: B (m, r) times the noise of the unit ball of R^r."""
    body = EllipsoidBody(root)
    return knorm(body, ball_rate(body.effective_dimension, privacy))


class Ellipsoid(AdditiveMechanism):
    """K-norm noise of the least-trace ellipsoid around the differences of neighbours.

    Z has density proportional to exp(-L (z^T S^+ z)^(1/2)) on the public subspace, with the rate L
    of `Ball`. S minimises tr S subject to v^T S^+ v <= 1 for all v in a set that contains all
    differences between sums of neighbours. For a universe of N elements, it is the first of these
    that applies:

    * All differences: for `workloads.SecondMoment`; under replace-one for `MarginalTables` with at
      most 12 columns of more than one level (both by symmetry), and if N <= 2^12 and N r <= 2^24;
      under add/remove if N r <= 2^24.
    * Other cases of replace-one: the vectors of length at most D_2 whose projection on each block
      (one of the orthogonal subspaces `workload.blocks()`) is at most as long as the diameter of
      the projected answers. If N r <= 2^24, four times the matrix of the least-trace ellipsoid
      around the points Q(x) - mean of Q is taken if its trace is lower.
    * Other cases of add/remove: the ball of radius D_2.

    Notation and parameters are those of `AdditiveMechanism`.

    Notes
    -----
    Privacy: epsilon-DP, (epsilon, delta)-DP or rho-zCDP in real arithmetic. Every difference v has
    v^T S^+ v <= 1 (S is scaled up for this if the optimisation does not converge), so a linear map
    makes it a change of length 1 at most, and Z the noise of a ball: see `Ball`. Exact sampler.

    Error: sqrt((r + 1) tr S / m) / (L n) per query, up to a factor of 1 + 1e-6, unless releases
    round answers. If the optimisation, on first use, converges, tr S is within 0.5% of the least.

    References
    ----------
    Formula sheet JL-ELL, SAM-5, X-ED.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Explicit([[0.0, 1.0, 1.0], [0.0, 0.0, 0.2]])
    >>> mechanism = gd.mechanisms.Ellipsoid(workload, n=100, privacy=gd.PureDP(1.0))
    >>> (mechanism.noise.variances() ** 0.5).round(1)
    array([1.8, 0.6])
    """

    accepts, in_span, origin = (PureDP, ApproxDP, ZCDP), True, Origin.SOLVER

    def law(self, change: Change) -> KNormNoise:
        return _of_ellipsoid(least_trace_root(change.workload, change.adjacency), self.privacy)


def least_trace_root(workload: Workload, adjacency: Adjacency) -> FloatArray:
    """Root B (m, r) of the matrix S = B B^T of `Ellipsoid`, with the span of the differences."""
    if isinstance(workload, SecondMoment):
        return moment_root(workload.d, adjacency)
    span, size = answer_hull(workload, adjacency), workload.universe.size
    if adjacency is Adjacency.REPLACE_ONE:
        return _replace_one_root(workload, span)
    if size is None or not _fits(size, span):
        return l2_sensitivity(workload, Adjacency.ADD_REMOVE) * span.basis
    points = _coordinates(workload, span, size)
    return np.asarray(span.basis @ least_trace_ellipsoid(Rows(points), tolerance=GAP).root)


def moment_root(d: int, adjacency: Adjacency) -> FloatArray:
    """Root B (m, m) of the best S for second moments x x^T of records in the unit ball of R^d.

    By symmetry, S has an eigenvalue s on traceless matrices and t on multiples of I. All
    differences are in the ellipsoid if (1 - 1/d) / s + 1 / (d t) <= 1 and, under replace-one,
    2 / s <= 1. The trace (m - 1) s + t is least for s = 2 and t = 2 / (d + 1), or under add/remove
    for s = t sqrt(2 / (d + 2)). For d = 1, t = 1.
    """
    if adjacency is Adjacency.REPLACE_ONE:
        traceless, along = 2.0, 2 / (d + 1)
    else:
        along = (1 + (d - 1) * math.sqrt((d + 2) / 2)) / d
        traceless = along * math.sqrt(2 / (d + 2))
    unit = svec(np.eye(d)) / math.sqrt(d)
    change = math.sqrt(along) - math.sqrt(traceless)
    return math.sqrt(traceless) * np.eye(len(unit)) + change * np.outer(unit, unit)


def is_around_differences_alone(workload: Workload, adjacency: Adjacency) -> bool:
    """Whether the set in the docstring of `Ellipsoid` is exactly the set of all differences."""
    replaced = adjacency is Adjacency.REPLACE_ONE
    if isinstance(workload, SecondMoment) or (replaced and _has_few_patterns(workload)):
        return True
    size = workload.universe.size
    most = MAX_PAIR_ELEMENTS if replaced else math.inf
    return size is not None and size <= most and _fits(size, answer_hull(workload, adjacency))


def _has_few_patterns(workload: Workload) -> TypeGuard[MarginalTables]:
    """Whether the columns in which records of `MarginalTables` agree can be listed."""
    if not isinstance(workload, MarginalTables):
        return False
    return sum(levels > 1 for levels in workload.levels) <= MAX_PATTERN_COLUMNS


def _replace_one_root(workload: Workload, span: AffineHull) -> FloatArray:
    """Root B (m, r) of an ellipsoid {B u : |u| <= 1} that contains Q(x) - Q(x') for all x, x'."""
    if _has_few_patterns(workload):
        return _pattern_root(workload)
    size = workload.universe.size
    if size is not None and size <= MAX_PAIR_ELEMENTS and _fits(size, span):
        pairs = PairDifferences(_coordinates(workload, span, size))
        return np.asarray(span.basis @ least_trace_ellipsoid(pairs, tolerance=GAP).root)
    blocks = workload.blocks()
    axes = capped_ellipsoid(
        [block.basis.shape[1] for block in blocks],
        [block.diameter for block in blocks],
        l2_sensitivity(workload, Adjacency.REPLACE_ONE),
    )
    root = np.hstack([axis * block.basis for axis, block in zip(axes, blocks, strict=True)])
    if size is None or not _fits(size, span):
        return root
    points = _coordinates(workload, span, size)
    # Let c be the mean of Q. If a symmetric convex body contains all points Q(x) - c, then the body
    # times 2 contains all differences (Q(x) - c) - (Q(x') - c).
    around = least_trace_ellipsoid(Rows(2 * (points - points.mean(axis=0))), tolerance=GAP)
    smaller = around.trace < float((root**2).sum())
    return np.asarray(span.basis @ around.root) if smaller else root


def _fits(size: int, span: AffineHull) -> bool:
    return size * span.dimension <= MAX_COORDINATES


def _coordinates(workload: Workload, span: AffineHull, size: int) -> FloatArray:
    """Coordinates (N, r) of Q(x) in `span`, for all elements x."""
    coordinates = np.empty((size, span.dimension))
    for start in range(0, size, CHUNK_ELEMENTS):
        stop = min(start + CHUNK_ELEMENTS, size)
        answers = workload.evaluate(workload.universe.elements(start, stop))
        coordinates[start:stop] = span.coordinates(answers)
    return coordinates


def _pattern_root(workload: MarginalTables) -> FloatArray:
    """Root B (m, r) of the least-trace ellipsoid, from sets of columns in which records agree."""
    # By Schur's lemma, some optimal S is a multiple of the identity on each block.
    blocks = workload.blocks()
    # Lengths in blocks depend only on the columns in which two records agree, so pairs of 0 and all
    # records of zeros and ones give all lengths.
    choices = [(0, 1) if levels > 1 else (0,) for levels in workload.levels]
    records = np.array(list(itertools.product(*choices)), dtype=np.int64)
    answers = workload.evaluate(records)
    moved = answers - answers[0]
    # One product with the bases of all blocks, then sums over the columns of each block.
    sizes = [block.basis.shape[1] for block in blocks]
    squares = (moved @ np.hstack([block.basis for block in blocks])) ** 2
    profiles = np.add.reduceat(squares, np.cumsum([0, *sizes[:-1]]), axis=1)
    axes = profile_ellipsoid(sizes, profiles, tolerance=GAP)
    return np.hstack([axis * block.basis for axis, block in zip(axes, blocks, strict=True)])
