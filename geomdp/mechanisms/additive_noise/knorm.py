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

#: Slabs per dimension at most, and bound on slabs^2 x dimension, to which the sweeps of one
#: refinement are proportional: 1100 slabs in dimension 55, 1030 in 94, 816 in 150.
SLABS_PER_DIMENSION, SLAB_WORK = 20, 100_000_000


class KNorm(PureMechanism):
    """K-norm noise of a symmetric body that holds all differences of neighbours.

    M(X) = (sum of Q(x) + Z) / n, Z with density proportional to exp(-epsilon ||z||_K) on the span
    of K, K a symmetric body with v in K for all differences v of sums of neighbours. K is

    * `body`, where given: it is checked to hold the differences;
    * with `exact`, the body of `exact_noise_bodies(workload, adjacency)` with the least E||Z||^2;
    * otherwise the neighbour body itself (K_Q - K_Q for replace-one, the hull of K_Q and -K_Q for
      add/remove) where it can be sampled exactly, else its refined outer slab body (X-OUT), sampled
      by hit-and-run. It has at most 20 slabs per dimension, fewer above dimension 62 (see
      `slab_budget`); refining takes seconds in dimension 50 and minutes above 100 or so.

    Parameters and errors are those of `AdditiveMechanism`; `privacy` is a `PureDP`, `body` a
    symmetric body in R^m in units of sums (not divided by n), and `exact` requires an exact
    sampler. ``ValueError`` for a `body` that leaves out a difference or cannot be proved to hold
    all, and for `exact` with a `body` that has no exact sampler: the message lists those that have.

    Notes
    -----
    Privacy: for all neighbouring X, X' and measurable S,
    Pr[M(X) in S] <= e^epsilon Pr[M(X') in S], in real arithmetic, provided Z has the stated
    distribution: a shift by v changes its log-density by at most epsilon ||v||_K <= epsilon. With
    an exact sampler it has. With a Markov chain (`guarantee.sampler` is `Heuristic`) it has not:
    no bound on its distance from Z is proved, epsilon is a target and no guarantee is claimed
    (SAM-3). The choice of K, its slabs and all estimates use the workload alone.

    Error: exactly ((r + 1)(r + 2) E||U||^2 / m)^(1/2) / (epsilon n) per query, U uniform on K, r
    its dimension; estimated, with a standard error, where K has no closed second moment.

    The set-up (choice, refinement and preparation of the sampler) runs on first use.

    References
    ----------
    Hardt-Talwar 2010; Nikolov 2022, Lemma 14; formula sheet JL-KN, JL-L14, X-OUT, SAM-1 to SAM-6.
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
            raise ValueError(f"body must have an exact sampler, as have {names}; got {body!r}")

    def _prepare(self) -> None:
        self._span = answer_hull(self.workload, self.adjacency)

    @cached_property
    def noise(self) -> KNormNoise:
        """Distribution of Z, on sums of answer vectors; set up on first use."""
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
        # Where answers are whole numbers, floats hold the parameters of these bodies exactly.
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
        # The body may fill a larger space than the answers do, and then so does the noise.
        return AffineHull(self._span.offset, self.noise.body.affine_hull().basis)

    def with_workload(self, workload: Workload) -> Self:
        """The same family for another workload; ``ValueError`` if built with a `body`."""
        if self._given is not None:
            raise ValueError("a mechanism built with a body of its own has no other workload")
        return type(self)(
            workload,
            n=self.n,
            privacy=self.privacy,
            adjacency=self.adjacency,
            exact=self._exact,
        )


def holding_neighbours(body: Body, workload: Workload, adjacency: Adjacency) -> Body:
    """`body`, proved to hold all differences of neighbours; ``ValueError`` if it does not.

    A body that misses some by rounding is scaled up until it holds them (by at most 1 + 2e-8), so
    that the privacy claim has no slack.
    """
    factor = check_contains_neighbours(body, workload, adjacency)
    return body if factor == 1 else Scaled(body, factor)


def slab_budget(dimension: int) -> int:
    """Number of slabs of an outer body: 20 r, at most (1e8 / r)^(1/2), at least 2 r."""
    affordable = math.isqrt(SLAB_WORK // dimension)
    return max(2 * dimension, min(SLABS_PER_DIMENSION * dimension, affordable))
