"""Correctly rounded noise for sums of answers, and the public grid it is rounded to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from geomdp.noise.base import Noise
from geomdp.noise.cone import ConeNoise
from geomdp.noise.exact.near import NearVector, near_gaussians, near_laplaces
from geomdp.noise.exact.near_elliptope import near_cone
from geomdp.noise.exact.points import Computable
from geomdp.noise.exact.rounding import nearest_multiples, refined
from geomdp.noise.exact.uniforms import Entropy
from geomdp.noise.exact.vectors import gaussian_vector, noise_vector
from geomdp.noise.laplace import LaplaceNoise

#: The grid is at most this share of the smallest standard deviation of a coordinate: rounding then
#: adds at most (1 / 1024)^2 / 12 < 10^-7 of the variance.
SHARE = 1 / 1024


class RoundedVector:
    """A computable random vector Z, drawn with correct rounding to multiples of 2^-grid.

    Parameters
    ----------
    vector : callable
        Z as a function of uniform numbers.
    grid : int
        k; the unit of a draw is 2^-k. Negative for units above 1.
    near : NearVector, optional
        Z in float64 with proved errors: a filter, which decides most roundings.
    """

    def __init__(self, vector: Computable, grid: int, near: NearVector | None = None) -> None:
        self._vector, self.grid, self._near = vector, grid, near

    def draw(self, entropy: Entropy | None = None) -> list[int]:
        """Whole numbers j, one a coordinate and of any size, with j 2^-grid the rounded noise.

        Parameters
        ----------
        entropy : callable, optional
            Source of random bytes; by default `os.urandom`. Anything else is for tests.

        Raises
        ------
        PrecisionExhausted
            If a coordinate is still undecided at 15872 bits. There is no fallback to float64.
        """
        near, filtered = self._near, None
        if near is not None:
            filtered = partial(near.rounded, grid=self.grid)
        return refined(
            lambda draw: nearest_multiples(self._vector(draw), self.grid), entropy, filtered
        )


class RoundedNoise(RoundedVector):
    """A noise prepared for correctly rounded draws on sums.

    A draw is the rounding of Z to the multiples of 2^-grid, halves rounded up. For true sums S that
    are such multiples, S plus the draw is the rounding of S + Z, hence post-processing of the
    mechanism of the proof: what is proved of it in real arithmetic holds of what is computed. The
    draw does not see S, so neither its time nor the bits it uses depend on records.

    Parameters
    ----------
    noise : Noise
        On sums. Its scales, and the entries of its matrices and bodies, are taken as the dyadic
        rationals that the floats are: the proof must hold for these. An exception are maps of
        contrasts of tables, see `cell_map`.
    grid : int
        k; the unit of a draw is 2^-k. Negative for units above 1.

    Raises
    ------
    NoExactPath
        If the noise has no computable sampler.

    References
    ----------
    Mironov 2012 (what float64 noise gives away); formula sheet X-GRID.
    """

    def __init__(self, noise: Noise, grid: int) -> None:
        super().__init__(noise_vector(noise), grid, _near(noise))


def _near(noise: Noise) -> NearVector | None:
    """The noise in float64 with proved errors, where that is written."""
    match noise:
        case LaplaceNoise():
            return near_laplaces(noise.dimension, noise.scale)
        case ConeNoise():
            return near_cone(noise)
        case _:
            return None


class RoundedGaussians(RoundedVector):
    """Independent Gaussian variables, prepared for correctly rounded draws.

    Parameters
    ----------
    dimension : int
        Their number m; the noise fills R^m.
    scale : float
        Standard deviation of each, taken as the dyadic rational that it is.
    grid : int
        k; the unit of a draw is 2^-k.
    """

    def __init__(self, dimension: int, scale: float, grid: int) -> None:
        vector, near = gaussian_vector(dimension, scale), near_gaussians(dimension, scale)
        super().__init__(vector, grid, near)


class RoundedParts:
    """Independent noises, one after the other, prepared for correctly rounded draws on one grid.

    As `RoundedNoise`, for sums that are measured in several parts. Each part has bits of its own.
    """

    def __init__(self, noises: Sequence[Noise], grid: int) -> None:
        self.grid = grid
        self._parts = [RoundedNoise(noise, grid) for noise in noises]

    def draw(self, entropy: Entropy | None = None) -> list[int]:
        """The draws of all parts, as one list."""
        return [j for part in self._parts for j in part.draw(entropy)]


def rounded_noise(noise: Noise, grid: int, entropy: Entropy | None = None) -> list[int]:
    """One draw of the noise in units of 2^-grid: see `RoundedNoise`, which is prepared once."""
    return RoundedNoise(noise, grid).draw(entropy)


def public_grid(noise: Noise) -> int:
    """The least k >= 0 with 2^-k at most 1/1024 of the smallest standard deviation above 0.

    It depends on the noise alone, which is public. As 2^-k divides 1, sums of whole numbers lie on
    the grid.

    Raises
    ------
    ValueError
        If all standard deviations are 0.
    """
    variances = np.asarray(noise.variances())
    moving = variances[variances > 0]
    if not moving.size:
        raise ValueError(f"noise must move at least one coordinate, got {noise!r}")
    return grid_for(math.sqrt(float(moving.min())))


def grid_for(deviation: float) -> int:
    """The least k >= 0 with 2^-k at most 1/1024 of the standard deviation `deviation`."""
    return max(0, math.ceil(-math.log2(SHARE * deviation)))
