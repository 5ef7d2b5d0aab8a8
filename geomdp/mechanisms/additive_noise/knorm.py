"""The K-norm mechanism: noise shaped like the body of differences of neighbours."""

from __future__ import annotations

import math
from functools import cached_property
from typing import Self

from geomdp._numerics.linalg import AffineHull
from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp.bodies import Scaled, SimplexDifference, neighbour_body
from geomdp.bodies.base import Body
from geomdp.bodies.of_workloads.containment import check_contains_neighbours
from geomdp.bodies.of_workloads.sensitivity import exact_noise_bodies
from geomdp.geometry.outer_slabs.refinement import refine_slabs
from geomdp.geometry.sampling.samplers import ChainSampler, ExactSampler, UniformSampler
from geomdp.mechanisms.additive_noise.certified_bodies import certified_body, holds_as_given
from geomdp.mechanisms.additive_noise.certified_rows import CertifiedRows
from geomdp.mechanisms.additive_noise.pure import PureMechanism
from geomdp.mechanisms.additive_noise.units import ScaledAnswers, Units
from geomdp.mechanisms.sensitivity import answer_hull
from geomdp.noise import KNormNoise
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import Workload
from geomdp.workloads.structure.symmetries import random_symmetry

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
