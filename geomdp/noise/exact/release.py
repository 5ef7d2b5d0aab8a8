"""Correctly rounded noise for sums of answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from geomdp._validation import listed, positive, require_type, whole
from geomdp.noise.base import Noise
from geomdp.noise.differences import ConeNoise
from geomdp.noise.exact.near import NearVector, near_gaussians, near_laplaces
from geomdp.noise.exact.near_elliptope import near_cone
from geomdp.noise.exact.points import Computable
from geomdp.noise.exact.rounding import nearest_multiples, refined
from geomdp.noise.exact.tables import near_residuals, residual_vector
from geomdp.noise.exact.variates import Entropy
from geomdp.noise.exact.vectors import gaussian_vector, noise_vector
from geomdp.noise.gaussian import ResidualNoise, drawn_size
from geomdp.noise.knorm import LaplaceNoise

#: Number of Gaussian variables of residuals that are drawn at a time. If float64 does not decide
#: the rounding of one variable, ball arithmetic draws all of these variables. This takes a second.
BLOCK = 1 << 14
#: Largest modulus of k for a unit 2^-k. Draws are computed to at most 15872 bits, so a larger k has
#: no use.
MOST_BITS = 1 << 16


class RoundedVector:
    """A computable random vector Z, drawn with correct rounding to multiples of 2^-grid.

    Parameters
    ----------
    vector : callable
        Z as a function of uniform numbers.
    grid : int
        k; the unit of a draw is 2^-k (k is negative for units above 1).
    near : NearVector, optional
        Z in float64 with proved error bounds. It decides most roundings and changes no result.

    Examples
    --------
    >>> import numpy as np
    >>> from geomdp.noise.exact import RoundedVector, gaussian_vector
    >>> vector = RoundedVector(gaussian_vector(dimension=3, scale=1.0), grid=10)
    >>> steps = vector.draw()
    >>> len(steps), all(isinstance(step, int) for step in steps)
    (3, True)

    Bytes of a seeded generator give a simulation, which is not private:

    >>> vector.draw(np.random.default_rng(0).bytes)
    [248, 941, 172]
    """

    def __init__(self, vector: Computable, grid: int, near: NearVector | None = None) -> None:
        if not callable(vector):
            raise ValueError(f"vector must be a function of uniform numbers, got {vector!r}")
        self.vector, self.grid, self._near = vector, _checked(grid), near

    def draw(self, entropy: Entropy | None = None) -> list[int]:
        """One whole number j, of any size, for each coordinate: the rounded noise is j 2^-grid.

        ``PrecisionExhausted`` if 15872 bits do not decide a rounding; float64 is never a
        substitute. `entropy` is the source of random bytes, by default `os.urandom`; anything else
        is for tests.
        """
        near, filtered = self._near, None
        if near is not None:
            filtered = partial(near.rounded, grid=self.grid)
        return refined(
            lambda draw: nearest_multiples(self.vector(draw), self.grid), entropy, filtered
        )


def _checked(grid: int) -> int:
    return whole(grid, "grid", minimum=-MOST_BITS, maximum=MOST_BITS)


class RoundedNoise(RoundedVector):
    """A noise on sums, prepared for correctly rounded draws.

    A draw is Z rounded to a multiple of 2^-grid; halves are rounded up. If the true sums S are
    multiples of 2^-grid, S plus the draw is the rounding of S + Z, so it is post-processing of the
    mechanism with real-valued noise, and its guarantee holds for the computed numbers. Neither the
    draw nor its running time and random bits depend on records. ``NoExactPath`` if the noise has no
    sampler that can be computed to arbitrary precision.

    Parameters
    ----------
    noise : Noise
        Noise on sums. Floats in it are taken as exact numbers, for which the privacy proof must
        hold. The exception is a rounded map of cells of a `TableMoments` (see `cell_map`).
    grid : int
        As in `RoundedVector`.

    References
    ----------
    Mironov 2012 (how float64 noise reveals true answers); formula sheet X-GRID.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.noise.exact import RoundedNoise, public_grid
    >>> noise = gd.noise.LaplaceNoise(dimension=3, scale=1.0)
    >>> rounded = RoundedNoise(noise, public_grid(noise))
    >>> rounded.grid
    10

    Noisy sums are exact multiples of 2^-10:

    >>> sums = [120, 80, 40]
    >>> noisy = [s + j * 2.0**-rounded.grid for s, j in zip(sums, rounded.draw(), strict=True)]
    >>> all((y * 2**10).is_integer() for y in noisy)
    True
    """

    def __init__(self, noise: Noise, grid: int) -> None:
        super().__init__(noise_vector(noise), grid, _near(noise))


def _near(noise: Noise) -> NearVector | None:
    """The noise in float64 with proved error bounds; None if no such code exists for it."""
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
        Number m of variables.
    scale : float
        Standard deviation of each variable, taken as an exact number.
    grid : int
        As in `RoundedVector`.

    Examples
    --------
    >>> import numpy as np
    >>> from geomdp.noise.exact import RoundedGaussians
    >>> rounded = RoundedGaussians(dimension=2, scale=8.0, grid=7)
    >>> len(rounded.draw())
    2

    Bytes of a seeded generator give a simulation, which is not private:

    >>> simulated = rounded.draw(np.random.default_rng(0).bytes)
    >>> [j * 2.0**-7 for j in simulated]
    [7.5390625, -0.9453125]
    """

    def __init__(self, dimension: int, scale: float, grid: int) -> None:
        dimension, scale = whole(dimension, "dimension"), positive(scale, "scale")
        vector, near = gaussian_vector(dimension, scale), near_gaussians(dimension, scale)
        super().__init__(vector, grid, near)


class RoundedParts:
    """Several independent noises, prepared for correctly rounded draws on one grid.

    It takes the place of `RoundedNoise` for sums measured in parts; parts share no random bits.
    ``NoExactPath`` as in `RoundedNoise`.

    Parameters
    ----------
    noises : sequence of Noise
        The noise of each part, on sums.
    grid : int
        As in `RoundedVector`.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.noise.exact import RoundedParts
    >>> parts = [gd.noise.LaplaceNoise(2, 1.0), gd.noise.LaplaceNoise(3, 4.0)]
    >>> len(RoundedParts(parts, grid=10).draw())
    5
    """

    def __init__(self, noises: Sequence[Noise], grid: int) -> None:
        self.grid = _checked(grid)
        self._parts = [RoundedNoise(noise, grid) for noise in listed(noises, "noises")]
        if not self._parts:
            raise ValueError("noises must hold at least 1 noise, got 0")

    def draw(self, entropy: Entropy | None = None) -> list[int]:
        """The draws of all parts, in the order of the parts, as one list."""
        return [j for part in self._parts for j in part.draw(entropy)]


class RoundedResiduals:
    """Noise on the coordinates of residuals, drawn with correct rounding to multiples of 2^-grid.

    The coordinates (see `Residuals`) are whole numbers, so for grid >= 0 they are multiples of
    2^-grid. As in `RoundedNoise`, the result is post-processing of the mechanism with real-valued
    noise (X-GRID). The cells of tables are computed from the noisy coordinates.

    Parameters
    ----------
    noise : ResidualNoise
        The noise; its scales are taken as exact numbers.
    grid : int
        As in `RoundedVector`.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> from geomdp.noise.exact import RoundedResiduals
    >>> from geomdp.workloads.residuals import Residuals
    >>> residuals = Residuals(gd.workloads.MarginalTables([2, 3], k=1))
    >>> noise = gd.noise.ResidualNoise(residuals, np.array([0.0, 2.0, 3.0]))
    >>> rounded = RoundedResiduals(noise, grid=9)

    The number of records, which comes first, is public here. Bytes of a seeded generator give a
    simulation, which is not private:

    >>> rounded.draw(np.random.default_rng(0).bytes)[0]
    0
    """

    def __init__(self, noise: ResidualNoise, grid: int) -> None:
        require_type(noise, ResidualNoise, "noise")
        self.grid = _checked(grid)
        self._parts: list[RoundedVector] = []
        for group in noise.residuals.groups:
            scales = noise.scales[group.numbers]
            step = max(1, BLOCK // drawn_size(group.shape))
            for start in range(0, len(scales), step):
                own = scales[start : start + step]
                vector, near = residual_vector(group.shape, own), near_residuals(group.shape, own)
                self._parts.append(RoundedVector(vector, grid, near))

    def draw(self, entropy: Entropy | None = None) -> list[int]:
        """One whole number j for each coordinate: the rounded noise is j 2^-grid."""
        return [j for part in self._parts for j in part.draw(entropy)]


#: Noise that is prepared for correctly rounded draws.
Rounded: TypeAlias = RoundedVector | RoundedParts | RoundedResiduals


def rounded_noise(noise: Noise, grid: int, entropy: Entropy | None = None) -> list[int]:
    """One draw of a noise on sums, correctly rounded, in units of 2^-grid.

    It is one `RoundedVector.draw` of a `RoundedNoise`, which prepares `noise` for more than one
    draw, with the same arguments and errors.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> from geomdp.noise.exact import rounded_noise
    >>> noise = gd.noise.LaplaceNoise(dimension=2, scale=1.0)
    >>> len(rounded_noise(noise, grid=10))
    2

    Bytes of a seeded generator give a simulation, which is not private:

    >>> rounded_noise(noise, 10, np.random.default_rng(0).bytes)
    [2810, 2860]
    """
    return RoundedNoise(noise, grid).draw(entropy)
