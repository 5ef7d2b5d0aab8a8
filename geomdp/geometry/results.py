"""Results of the geometric algorithms: estimates and projections."""

from __future__ import annotations

from dataclasses import dataclass

from geomdp._typing import FloatArray


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
