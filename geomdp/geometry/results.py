"""Result records of the geometric algorithms: estimates, projections and samples."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp.privacy.guarantees import SamplerStatus


@dataclass(frozen=True)
class Estimate:
    """A number that is known exactly (stderr 0, samples 0) or estimated by simulation.

    Parameters
    ----------
    value, stderr : float
        The number or its estimate, and its standard error.
    interval : tuple of float
        (low, high), with the level and the validity that the function states.
    samples : int
        Number of samples used.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.gaussian_width(gd.bodies.Box.centred([1.0, 2.0]))
    Estimate(2.39365, exact)
    >>> triangle = gd.bodies.VPolytope([[0.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
    >>> found = gd.gaussian_width(triangle, rng=0, samples=1000)
    >>> low, high = found.interval
    >>> low < found.value < high
    True
    """

    value: float
    stderr: float
    interval: tuple[float, float]
    samples: int

    @classmethod
    def exact(cls, value: float) -> Estimate:
        """A number known in closed form."""
        return cls(value, 0.0, (value, value), 0)

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        if self.samples == 0:
            return f"Estimate({self.value:.6g}, exact)"
        low, high = self.interval
        return (
            f"Estimate({self.value:.6g} +- {self.stderr:.2g}, in [{low:.6g}, {high:.6g}]; "
            f"{self.samples} samples)"
        )


@dataclass(frozen=True)
class Projection:
    """The point of a body K nearest to a target y, with a bound `gap` on the squared error.

    Parameters
    ----------
    point : (m,) array
        The point found; it lies in the body.
    gap : float
        Frank-Wolfe duality gap max over x in K of <y - point, x - point>, recomputed at the end.
        The true nearest point p* satisfies ||point - p*||^2 <= gap.
    iterations : int
        Rounds of the search over listed vertices, else calls of `extreme_point`; 0 if closed form.
    converged : bool
        Whether the gap is within the requested tolerance.
    weights, atoms : dict of int to float, (k, m) array
        Weights of the convex combination that gives `point`, by row number of the extreme points
        `atoms` or, if that is None, by number of a listed vertex; both None for a closed form.

    Examples
    --------
    >>> import geomdp as gd
    >>> triangle = gd.bodies.VPolytope([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    >>> found = gd.project(triangle, [1.0, 1.0])
    >>> {number: round(weight, 6) for number, weight in found.weights.items()}
    {1: 0.5, 2: 0.5}
    """

    point: FloatArray
    gap: float
    iterations: int
    converged: bool
    weights: dict[int, float] | None = None
    atoms: FloatArray | None = None

    def __repr__(self) -> str:
        used = "" if self.weights is None else f", extreme points: {len(self.weights)}"
        state = "" if self.converged else ", not converged"
        return (
            f"Projection(dimension: {len(self.point)}{used}, gap: {self.gap:.2g}, "
            f"iterations: {self.iterations}{state})"
        )


@dataclass(frozen=True)
class Diagnostics:
    """Convergence diagnostics of a set of Markov chains, for each coordinate."""

    split_r_hat: FloatArray
    bulk_ess: FloatArray
    chains: int
    steps: int

    @property
    def worst_r_hat(self) -> float:
        """Largest split R-hat over the coordinates where it is not NaN; NaN if there are none."""
        known = self.split_r_hat[~np.isnan(self.split_r_hat)]
        return float(known.max()) if len(known) else math.nan

    @property
    def least_ess(self) -> float:
        """Smallest bulk effective sample size."""
        return float(self.bulk_ess.min())

    def __repr__(self) -> str:
        return f"Diagnostics({self})"

    def __str__(self) -> str:
        return (
            f"{self.chains} chains, split R-hat at most {self.worst_r_hat:.3f}, "
            f"bulk ESS at least {self.least_ess:.0f}"
        )


@dataclass(frozen=True)
class Samples:
    """Points of a body, and how they were drawn."""

    points: FloatArray
    sampler: SamplerStatus
    diagnostics: Diagnostics | None = None

    def __repr__(self) -> str:
        n, m = self.points.shape
        return f"Samples({n} points in dimension {m}; {self.sampler})"

    def __array__(
        self, dtype: np.dtype[np.float64] | None = None, copy: bool | None = None
    ) -> FloatArray:
        return np.array(self.points, dtype=dtype, copy=copy)
