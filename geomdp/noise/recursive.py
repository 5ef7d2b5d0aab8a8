"""Recursive Hardt-Talwar noise: K-norm noise on orthogonal subspaces that share one epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import batch, listed, positive
from geomdp.bodies.arguments import off_span
from geomdp.geometry.results import Estimate
from geomdp.noise.knorm import KNormNoise
from geomdp.noise.levels import Level, Stage
from geomdp.privacy import Approximate, Exact, Heuristic, SamplerStatus


class RecursiveNoise:
    """Z = sum over i of B_i P_i Z_i, Z_i with density proportional to exp(-epsilon_i ||z||_{K_i}).

    The columns of B_i are an orthonormal basis of the subspace V_i, and the V_i are orthogonal to
    each other. P_i maps the space of the body K_i onto coordinates of V_i.

    Suppose that sums of neighbours differ by vectors of a body K, that the V_i together span the
    span of K, and that each K_i contains the projection of K on its space. Then K-norm noise of K_i
    makes the projection of the sums epsilon_i-DP. The component of the sums plus Z in V_i is
    computed from this noisy projection alone. By composition, the sums plus Z are
    (sum of epsilon_i)-DP.

    The epsilon_i are proportional to A_i^(1/3), where A_i is E ||B_i P_i Z_i||_2^2 at
    epsilon_i = 1. This minimises E ||Z||_2^2 (JL-SPLIT).

    Parameters
    ----------
    levels : sequence of Level
        At least one `Level`: K-norm noise in one subspace; the V_i are orthogonal to each other.
    epsilon : float
        Total privacy loss, finite and above 0.

    References
    ----------
    Hardt-Talwar 2010, section 7; Bhaskara et al. 2012; Nikolov 2022, Lemmas 16, 18 and 19;
    formula sheet JL-L18, JL-SPLIT, SAM-1.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> from geomdp.geometry import sampling
    >>> K = gd.bodies.Ellipsoid(np.diag([1.0, 1.0, 30.0, 30.0]))
    >>> levels = gd.noise.best_stop(
    ...     gd.noise.decompose(K, gd.noise.Variant.INTRINSIC, exact=True)
    ... )
    >>> noise = gd.noise.RecursiveNoise(levels, epsilon=1.0)
    >>> noise
    RecursiveNoise(dimensions (2, 2), epsilon=1)
    >>> noise.split.round(3).tolist()
    [0.094, 0.906]

    The shares of epsilon add up to 1. K-norm noise of K itself with epsilon = 1 has a larger
    squared error:

    >>> sampler = sampling.ExactSampler(K)
    >>> plain = gd.noise.KNormNoise(K, epsilon=1.0, sampler=sampler)
    >>> round(noise.second_moment().value / plain.second_moment().value, 3)
    0.806
    """

    def __init__(self, levels: Sequence[Level], epsilon: float) -> None:
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
    def basis(self) -> FloatArray:
        """Orthonormal columns (m, r) that span the sum of all V_i."""
        return np.hstack([level.basis for level in self.levels])

    @property
    def sampler(self) -> SamplerStatus:
        return combined_status([part.sampler for part in self.parts])

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """One uniform point for every level and draw."""
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
        """sum of A_i / epsilon_i^2 = (sum of A_i^(1/3))^3 / epsilon^2 (JL-SPLIT).

        Exact if the A_i are exact. Estimated A_i can be correlated, as all come from one public
        stream. So standard errors, for an upper bound, and the ends of intervals are added.
        """
        energies = [level.energy for level in self.levels]
        squares = self.split**2
        value, stderr, low, high = (
            float(sum(number / square for number, square in zip(numbers, squares, strict=True)))
            for numbers in (
                [energy.value for energy in energies],
                [energy.stderr for energy in energies],
                [energy.interval[0] for energy in energies],
                [energy.interval[1] for energy in energies],
            )
        )
        return Estimate(value, stderr, (low, high), max(energy.samples for energy in energies))

    def log_density(self, points: FloatArray) -> FloatArray:
        """The sum over the levels; -inf outside of the sum of all V_i.

        The body of each level needs a gauge and a volume in closed form. ``ValueError`` if a
        level is a projection of K-norm noise: its density has no closed form.
        """
        points = batch(points, self.dimension, "points")
        parts = [part.log_density(points @ onto) for part, onto in self._intrinsic()]
        return np.where(off_span(points, self.basis), -np.inf, np.sum(parts, axis=0))

    def log_density_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        """log f(z) - log f(z - s), (b,), for rows of `points` and `shifts` (b, m).

        Both must lie in the sum of all V_i (not checked); ``ValueError`` as in `log_density`.
        """
        levels = self._intrinsic()
        points = batch(points, self.dimension, "points")
        shifts = batch(shifts, self.dimension, "shifts")
        ratios = [part.log_density_ratio(points @ onto, shifts @ onto) for part, onto in levels]
        return np.asarray(np.sum(ratios, axis=0))

    def _intrinsic(self) -> list[tuple[KNormNoise, FloatArray]]:
        """K-norm noise and span (m, D) of each level; ``ValueError`` as in `log_density`."""
        if any(level.keep.shape[0] < level.keep.shape[1] for level in self.levels):
            raise ValueError(
                "levels must not project K-norm noise on a smaller subspace, because the density "
                "of the projection has no closed form"
            )
        return [
            (part, level.basis @ level.keep)
            for part, level in zip(self.parts, self.levels, strict=True)
        ]


def combined_status(statuses: Sequence[SamplerStatus]) -> SamplerStatus:
    """`Heuristic` if one is, `Exact` if all are, else `Approximate` with the sum of tv (SAM-1)."""
    doubts = dict.fromkeys(s.reason for s in statuses if isinstance(s, Heuristic))
    if doubts:
        return Heuristic("; ".join(doubts))
    proved = [status for status in statuses if isinstance(status, Approximate)]
    if proved:
        sources = dict.fromkeys(status.source for status in proved)
        return Approximate(sum(status.tv for status in proved), "; ".join(sources))
    return Exact()


def best_stop(stages: Sequence[Stage]) -> tuple[Level, ...]:
    """The levels with the least `energy_of`, over all stages at which the recursion can stop.

    A stop at stage l gives the splits of the earlier stages, and K-norm noise on the subspace that
    remains. For l = 1 this is plain K-norm noise, so its `energy_of` is never smaller than the
    result's.

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
