"""The noise of the Hardt-Talwar decomposition: K-norm noise in each of several subspaces."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from geomdp._numerics.linalg import is_diagonal
from geomdp._typing import FloatArray
from geomdp.bodies.base import Body
from geomdp.geometry.results import Estimate
from geomdp.geometry.sampling.samplers import UniformSampler
from geomdp.noise.estimates import mean_estimate


@dataclass(frozen=True, eq=False)
class NoiseBody:
    """A symmetric full-dimensional body in R^D, with a sampler of uniform points U in the body.

    Examples
    --------
    >>> import geomdp as gd
    >>> K = gd.bodies.Box.centred([1.0, 2.0, 3.0])
    >>> (first, *_) = gd.noise.decompose(K, gd.noise.Variant.INTRINSIC, exact=True)
    >>> source = first.stop.source  # the body of K-norm noise on all of R^3
    >>> source.body.dimension, source.moment.diagonal().round(3).tolist()
    (3, [0.333, 1.333, 3.0])
    """

    body: Body
    sampler: UniformSampler
    #: E U U^T (D, D), exact or estimated from `draws`.
    moment: FloatArray
    #: Public draws (n, D) from which the moment is estimated; None if it is exact.
    draws: FloatArray | None

    def __repr__(self) -> str:
        return f"NoiseBody({self.body!r})"


@dataclass(frozen=True, eq=False)
class Level:
    """Noise in one subspace V of R^m: K-norm noise in R^D, mapped onto V.

    The energy of a level is the expected squared length of its noise Z at epsilon = 1.

    Examples
    --------
    >>> import geomdp as gd
    >>> K = gd.bodies.Box.centred([1.0, 2.0, 3.0])
    >>> (first, *_) = gd.noise.decompose(K, gd.noise.Variant.INTRINSIC, exact=True)
    >>> first.split.dimension  # the two axes of least width
    2
    >>> first.split.basis.T.tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]
    >>> first.split.energy  # E ||Z||^2 at epsilon = 1: 3 * 4 * (1 + 4) / 3
    Estimate(20, exact)
    """

    #: The K-norm body in R^D.
    source: NoiseBody
    #: Orthonormal columns (m, r) that span the decomposed body.
    frame: FloatArray
    #: Orthonormal rows (d, r) that span V, written in the basis `frame`.
    rows: FloatArray
    #: Orthonormal rows (d, D): the matrix that maps points of R^D to coordinates of V.
    keep: FloatArray

    def __repr__(self) -> str:
        return f"Level(dimension={self.dimension}, {self.source!r})"

    @cached_property
    def basis(self) -> FloatArray:
        """Orthonormal columns (m, d) that span V."""
        return np.asarray(self.frame @ self.rows.T)

    @property
    def dimension(self) -> int:
        """Dimension d of V."""
        return len(self.rows)

    @cached_property
    def energy(self) -> Estimate:
        """E ||Z||_2^2 at epsilon = 1, which is (D + 1)(D + 2) E ||keep U||_2^2 (JL-L14)."""
        D = self.source.body.dimension
        factor = (D + 1) * (D + 2)
        draws = self.source.draws
        if draws is None:
            # A square orthogonal `keep` does not change the trace.
            moment = self.source.moment
            if self.dimension == D:
                return Estimate.exact(factor * float(np.trace(moment)))
            if is_diagonal(moment):
                kept = (self.keep**2).sum(axis=0) @ np.diag(moment)
            else:
                kept = np.vdot(self.keep @ moment, self.keep)
            return Estimate.exact(factor * float(kept))
        return mean_estimate(factor * ((draws @ self.keep.T) ** 2).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Stage:
    """One step of the decomposition, with two choices of noise for the subspace W that remains.

    Examples
    --------
    >>> import geomdp as gd
    >>> K = gd.bodies.Box.centred([1.0, 2.0, 3.0])
    >>> stages = gd.noise.decompose(K, gd.noise.Variant.INTRINSIC, exact=True)
    >>> [(stage.stop.dimension, stage.split and stage.split.dimension) for stage in stages]
    [(3, 2), (1, None)]
    """

    #: K-norm noise on all of W. With this choice, the decomposition ends.
    stop: Level
    #: Noise on a subspace V of W; None at the last stage. With this choice, the next stage treats
    #: the orthogonal complement of V in W.
    split: Level | None
