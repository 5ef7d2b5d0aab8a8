"""Chords of the spectraplex by generalised eigenvalues, as one would write them without geomdp."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh

import geomdp as gd
from geomdp._numerics.linalg import unsvec

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class EigenvalueChords(gd.bodies.Body):
    """The spectraplex {M psd, tr M <= 1} with exact chords, but without the other oracles."""

    inner: gd.bodies.Spectraplex  # The body

    @property
    def dimension(self) -> int:
        """Dimension d (d + 1) / 2."""
        return self.inner.dimension

    def chord(self, points: Array, directions: Array) -> tuple[Array, Array]:
        """Ends (lo, hi) of each chord: there an eigenvalue reaches 0 or the trace reaches 1."""
        low, high = np.empty(len(points)), np.empty(len(points))
        for k, (M, D) in enumerate(zip(unsvec(points), unsvec(directions), strict=True)):
            # For positive definite M, M + t D is psd iff 1 + t lambda >= 0 for every eigenvalue
            # lambda of M^-1 D.
            slopes = eigh(D, M, eigvals_only=True)
            room, rise = 1 - np.trace(M), np.trace(D)
            ends = np.append(-1 / slopes[slopes != 0], room / rise if rise else [])
            low[k], high[k] = ends[ends < 0].max(), ends[ends > 0].min()
        return low, high
