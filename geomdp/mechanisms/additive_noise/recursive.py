"""The recursive mechanism: K-norm noise, level by level, for bodies with long and short axes."""

from __future__ import annotations

from functools import cached_property
from typing import Self

from geomdp._numerics.linalg import AffineHull
from geomdp.bodies.base import Body
from geomdp.bodies.of_workloads.sensitivity import exact_noise_bodies
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.mechanisms.additive_noise.certified_bodies import certified_body, holds_as_given
from geomdp.mechanisms.additive_noise.certified_rows import CertifiedRows
from geomdp.mechanisms.additive_noise.knorm import holding_neighbours
from geomdp.mechanisms.additive_noise.pure import PureMechanism
from geomdp.mechanisms.sensitivity import answer_hull
from geomdp.noise import KNormNoise
from geomdp.noise.decomposition import Variant, decompose_each
from geomdp.noise.exact import RoundedNoise
from geomdp.noise.exact.release import Rounded
from geomdp.noise.recursive import RecursiveNoise, best_stop, energy_of
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import Workload


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
