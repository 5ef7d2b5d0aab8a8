"""The K-norm mechanism: noise shaped like the body of differences of neighbours.

The recursive mechanism adds such noise level by level, for bodies with long and short axes.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, Self

from geomdp._numerics.linalg import AffineHull
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp.bodies import Body, Scaled
from geomdp.bodies.sensitivity import check_contains_neighbours, exact_noise_bodies
from geomdp.geometry.outer_slabs import refine_slabs
from geomdp.geometry.sampling.samplers import ChainSampler
from geomdp.mechanisms.additive_noise.base import PureMechanism
from geomdp.mechanisms.additive_noise.certify import Origin, knorm
from geomdp.mechanisms.additive_noise.sums import Change
from geomdp.noise import KNormNoise
from geomdp.noise.recursive import RecursiveNoise, Variant, best_stop, decompose_each, energy_of
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import Workload
from geomdp.workloads.structure import random_symmetry

#: Largest number of slabs of an outer body per dimension, and largest value of slabs^2 x dimension.
#: The time of a refinement is proportional to slabs^2 x dimension. Together these limits allow 1100
#: slabs in dimension 55, 1031 in dimension 94 and 816 in dimension 150. Two slabs per dimension are
#: allowed in any case.
SLABS_PER_DIMENSION, SLAB_WORK = 20, 100_000_000


class BodyMechanism(PureMechanism):
    """A mechanism with noise shaped like a body, which the caller may give."""

    def __init__(
        self,
        workload: Workload,
        *,
        n: int,
        privacy: PureDP,
        adjacency: Adjacency,
        body: Body | None,
    ) -> None:
        super().__init__(workload, n=n, privacy=privacy, adjacency=adjacency)
        self.origin = Origin.CHANGES if body is None else Origin.CALLER
        #: The body of the caller, made larger by a share of at most 2e-8 for rounding.
        self._given: Body | None = None
        if body is not None:
            factor = check_contains_neighbours(body, workload, adjacency)
            self._given = body if factor == 1 else Scaled(body, factor)

    def _prepare(self) -> None:
        _ = self.change.hull

    def with_workload(self, workload: Workload) -> Self:
        """As for every mechanism; ``ValueError`` if a `body` was given, as it need not fit."""
        if self._given is not None:
            raise ValueError("a mechanism built with a `body` cannot be built for another workload")
        return super().with_workload(workload)


class KNorm(BodyMechanism):
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

    noise: KNormNoise

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
        super().__init__(workload, n=n, privacy=privacy, adjacency=adjacency, body=body)
        self._exact = exact
        if body is not None and exact and not body.implements(Body.sample_uniform):
            names = ", ".join(named.name for named in exact_noise_bodies(workload, adjacency))
            raise ValueError(f"body must have an exact sampler; {names} have one; got {body!r}")

    def law(self, change: Change) -> KNormNoise:
        epsilon = self.privacy.epsilon
        if self._given is None and self._exact:
            candidates = exact_noise_bodies(change.workload, change.adjacency)
            noises = [knorm(named.body, epsilon) for named in candidates]
            return min(noises, key=lambda noise: noise.second_moment().value)
        body = change.body if self._given is None else self._given
        if body.implements(Body.sample_uniform):
            return knorm(body, epsilon)
        if self._given is not None:
            return KNormNoise(body, epsilon, ChainSampler(body))
        refined = refine_slabs(
            body,
            slabs=slab_budget(change.hull.dimension),
            directions=change.hull.basis.T,
            symmetry=random_symmetry(change.workload),
            rng=PUBLIC_SEED,
        )
        return KNormNoise(refined.body, epsilon, refined.sampler, refined.second_moment)

    @cached_property
    def _hull(self) -> AffineHull:
        # The noise fills the span of the body, which can be larger than the span of the answers.
        return AffineHull(self.change.hull.offset, self.noise.body.affine_hull().basis)

    def _options(self) -> dict[str, Any]:
        return {"exact": self._exact}


def slab_budget(dimension: int) -> int:
    """Number of slabs in `dimension` r: min(20 r, (1e8 / r)^(1/2)), at least 2 r."""
    affordable = math.isqrt(SLAB_WORK // dimension)
    return max(2 * dimension, min(SLABS_PER_DIMENSION * dimension, affordable))


class Recursive(BodyMechanism):
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

    noise: RecursiveNoise
    whole_only = True

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
        if variant is not None and not isinstance(variant, Variant):
            raise ValueError(f"variant must be one of {list(Variant)} or None, got {variant!r}")
        super().__init__(workload, n=n, privacy=privacy, adjacency=adjacency, body=body)
        self._variant = variant

    def law(self, change: Change) -> RecursiveNoise:
        if self._given is None:
            named = exact_noise_bodies(change.workload, change.adjacency)
            bodies = [candidate.body for candidate in named]
        else:
            bodies = [self._given]
        variants = list(Variant) if self._variant is None else [self._variant]
        # With one level, all variants give the same noise; `min` then keeps the first variant.
        choices = [
            (best_stop(stages), body)
            for body in bodies
            for stages in decompose_each(body, variants, exact=self._given is None)
        ]
        levels, chosen = min(choices, key=lambda choice: energy_of(choice[0]))
        return RecursiveNoise(levels, self.privacy.epsilon, chosen)

    @cached_property
    def _hull(self) -> AffineHull:
        # The noise fills the span of the body, which can be larger than the span of the answers.
        return AffineHull(self.change.hull.offset, self.noise.basis)

    def _options(self) -> dict[str, Any]:
        return {"variant": self._variant}
