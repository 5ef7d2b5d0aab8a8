"""Gaussian width of sensitivity polytopes too large to optimise over, from both sides."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import RandomState
from geomdp._validation import whole
from geomdp.bodies.base import Body
from geomdp.geometry.results import Estimate
from geomdp.geometry.width.concentration import checked_level, gaussian_deviation
from geomdp.geometry.width.coordinate_ascent import local_maxima
from geomdp.geometry.width.width import gaussian_width
from geomdp.workloads import Workload

#: Shares of the level: half for each side.
SIDES = 2


@dataclass(frozen=True)
class WidthBounds:
    """A Gaussian width enclosed by a local search and a larger body.

    Parameters
    ----------
    found : Estimate
        Mean of the values that local search found, a lower bound on w(K) up to simulation; its
        interval is that of the bound from below.
    relaxed : Estimate
        Gaussian width of the larger body, an upper bound on w(K).
    """

    found: Estimate
    relaxed: Estimate

    @property
    def interval(self) -> tuple[float, float]:
        """Ends that hold w(K) between them, except with the probability asked for."""
        return self.found.interval[0], self.relaxed.interval[1]


def gaussian_width_bounds(
    workload: Workload,
    outer: Body,
    rng: RandomState = None,
    samples: int = 256,
    level: float = 1e-3,
    starts: int = 8,
) -> WidthBounds:
    """Bounds on the Gaussian width of a sensitivity polytope K known by its elements alone.

    From below: along each Gaussian direction half the difference of the highest and the lowest
    answers that `local_maxima` finds, at most half the width of K. From above: the width of a body
    that holds K, such as `moment_relaxation(workload)`.

    Parameters
    ----------
    workload : Workload
        Q on a `BooleanCube` or a `CategoricalProduct`, of any size; K = conv{Q(x)}.
    outer : Body
        A body in R^m that holds K, with a support function.
    rng : numpy Generator, int or None
        Randomness of directions and starts.
    samples : int
        Number of directions n for each side, at least 2.
    level : float
        Probability that `interval` misses w(K), in (0, 1).
    starts : int
        Starts of a local search.

    Returns
    -------
    WidthBounds
        Means found are below those of K's half width, which is Lipschitz with constant D/2, D the
        workload's diameter: w(K) >= mean - D sqrt(ln(4 / level) / (2 n)) except with probability
        level/2, and the same for the other side with the diameter of `outer`.

    Raises
    ------
    ValueError
        If `outer` has another dimension than K, for another universe, `samples` < 2 or `level`
        outside (0, 1).

    References
    ----------
    Tsirelson, Ibragimov and Sudakov (1976); formula sheet GEN-4, JL-T2.
    """
    samples, level = whole(samples, "samples", minimum=2), checked_level(level)
    if outer.dimension != workload.n_queries:
        raise ValueError(f"outer must have dimension {workload.n_queries}, got {outer.dimension}")
    generator = np.random.default_rng(rng)
    directions = generator.standard_normal((samples, workload.n_queries))
    above = local_maxima(workload, directions, generator, starts)
    below = local_maxima(workload, -directions, generator, starts)
    values = np.einsum("bm,bm->b", directions, above - below) / 2
    mean, stderr = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(samples)
    reach = gaussian_deviation(workload.l2_diameter() / 2, samples, level / SIDES)
    found = Estimate(mean, stderr, (max(mean - reach, 0.0), mean + reach), samples)
    return WidthBounds(found, gaussian_width(outer, generator, samples, level / SIDES))
