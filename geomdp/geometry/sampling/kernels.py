"""Markov kernels: steps of chains whose stationary distribution is uniform on a body.

A kernel is a frozen dataclass with one method `step`. Each row of a batch of points is one chain.
Bodies must be full-dimensional; `samplers` gives other bodies such coordinates. CONTRIBUTING.md
describes how to add a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import whole
from geomdp.bodies import Body, HPolytope, SlabBody


class Kernel(Protocol):
    """A step of a Markov chain that keeps uniform points of a body uniform.

    Examples
    --------
    >>> from geomdp.geometry import sampling
    >>> sampling.HitAndRun().name
    'hit-and-run'
    >>> sampling.CoordinateHitAndRun().name
    'coordinate hit-and-run'
    """

    @property
    def name(self) -> str:
        """Name of the kernel, with which the guarantee of a release describes its sampler."""

    def step(self, rng: np.random.Generator, body: Body, points: FloatArray) -> FloatArray:
        """The next points (chains, m) of all chains, given the present `points` in `body`."""


@dataclass(frozen=True)
class HitAndRun:
    """Random-direction hit-and-run: a uniform point on the chord in a uniformly random direction.

    The kernel works for any full-dimensional body with chords, and computes one batch of chords per
    step. It is reversible for the uniform distribution (Smith 1984). Lovasz (1999) bounds its
    mixing time.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> from geomdp.geometry import sampling
    >>> kernel = sampling.HitAndRun()
    >>> disc = gd.bodies.Ball(2)
    >>> points = kernel.step(np.random.default_rng(0), disc, np.zeros((5, 2)))
    >>> points.shape, bool(disc.contains(points).all())
    ((5, 2), True)
    """

    name = "hit-and-run"

    def step(self, rng: np.random.Generator, body: Body, points: FloatArray) -> FloatArray:
        """The next points (chains, m) of all chains, given the present `points` in `body`."""
        directions = rng.standard_normal(points.shape)
        low, high = body.chord(points, directions)
        times = low + (high - low) * rng.random(len(points))
        return points + times[:, None] * directions


@dataclass(frozen=True)
class CoordinateHitAndRun:
    """Coordinate hit-and-run: a step is one or more sweeps over all coordinates.

    One coordinate after the other is redrawn uniformly on the chord in its direction. Each such
    move is reversible.

    On a polytope with listed facets (`HPolytope` or `SlabBody`), all chains move along the same
    coordinate at the same time, with independent randomness (X-LOCK). A sweep then costs O(F m) per
    chain for F facets in dimension m. On every other full-dimensional body it computes m batches of
    chords.

    Parameters
    ----------
    sweeps : int
        Sweeps per step, at least 1.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> from geomdp.geometry import sampling
    >>> kernel = sampling.CoordinateHitAndRun()
    >>> box = gd.bodies.Box.centred([1.0, 100.0])
    >>> points = kernel.step(np.random.default_rng(0), box, np.zeros((5, 2)))
    >>> points.shape, bool(box.contains(points).all())
    ((5, 2), True)
    """

    sweeps: int = 1

    name = "coordinate hit-and-run"

    def __post_init__(self) -> None:
        whole(self.sweeps, "sweeps")

    def step(self, rng: np.random.Generator, body: Body, points: FloatArray) -> FloatArray:
        """The next points (chains, m) of all chains, given the present `points` in `body`."""
        if isinstance(body, SlabBody | HPolytope):
            return self._in_lockstep(rng, body, points)
        points = points.copy()
        for _ in range(self.sweeps):
            for direction in np.eye(points.shape[1]):
                low, high = body.chord(points, np.tile(direction, (len(points), 1)))
                points += np.outer(low + (high - low) * rng.random(len(points)), direction)
        return points

    def _in_lockstep(
        self, rng: np.random.Generator, body: SlabBody | HPolytope, points: FloatArray
    ) -> FloatArray:
        from geomdp.geometry.sampling.lockstep import halfspace_sweep, slab_sweep  # slow import

        columns = np.array(points.T, order="C")
        match body:
            case SlabBody(directions=normals, widths=offsets):
                sweep = slab_sweep
            case HPolytope(normals=normals, offsets=offsets):
                sweep = halfspace_sweep
        # Fresh products in each step keep the rounding errors of updates from accumulating.
        products = normals @ columns
        for _ in range(self.sweeps):
            sweep(normals, offsets, products, columns, rng.random(columns.shape))
        return np.ascontiguousarray(columns.T)
