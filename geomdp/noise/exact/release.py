"""Correctly rounded noise for sums of answers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TypeAlias

from geomdp._validation import listed, positive, require_type, whole
from geomdp.noise.base import Noise
from geomdp.noise.cone import ConeNoise
from geomdp.noise.exact.near import NearVector, near_gaussians, near_laplaces
from geomdp.noise.exact.near_elliptope import near_cone
from geomdp.noise.exact.points import Computable
from geomdp.noise.exact.rounding import nearest_multiples, refined
from geomdp.noise.exact.tables.residuals import near_residuals, residual_vector
from geomdp.noise.exact.uniforms import Entropy
from geomdp.noise.exact.vectors import gaussian_vector, noise_vector
from geomdp.noise.laplace import LaplaceNoise
from geomdp.noise.residual import ResidualNoise, drawn_size

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
        k; the unit of a draw is 2^-k. For units above 1, k is negative.
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
        self._vector, self.grid, self._near = vector, _checked(grid), near

    def draw(self, entropy: Entropy | None = None) -> list[int]:
        """One whole number j for each coordinate: the rounded noise is j 2^-grid.

        Parameters
        ----------
        entropy : callable, optional
            Source of random bytes; by default `os.urandom`. Anything else is for tests.

        Returns
        -------
        list of int
            The numbers j, of any size.

        Raises
        ------
        PrecisionExhausted
            If the rounding of a coordinate is not decided by 15872 bits. Float64 is never used
            instead.
        """
        near, filtered = self._near, None
        if near is not None:
            filtered = partial(near.rounded, grid=self.grid)
        return refined(
            lambda draw: nearest_multiples(self._vector(draw), self.grid), entropy, filtered
        )


def _checked(grid: int) -> int:
    return whole(grid, "grid", minimum=-MOST_BITS, maximum=MOST_BITS)


class RoundedNoise(RoundedVector):
    """A noise on sums, prepared for correctly rounded draws.

    A draw is Z rounded to a multiple of 2^-grid; halves are rounded up. Suppose that the true sums
    S are multiples of 2^-grid. Then S plus the draw is the rounding of S + Z, so it is
    post-processing of the mechanism with real-valued noise. A guarantee that is proved for real
    arithmetic therefore holds for the computed numbers. The draw does not depend on S. So the
    running time and the random bits of a draw do not depend on records.

    Parameters
    ----------
    noise : Noise
        Noise on sums. Scales, and entries of matrices and bodies, are taken as exactly the numbers
        that the floats represent. The privacy proof must hold for these numbers. The exception is a
        map from the coordinates of a `TableMoments`. If such a map is the rounded form of a map
        from table cells with rational coefficients, the rational map is used (see `cell_map`).
    grid : int
        k; the unit of a draw is 2^-k. For units above 1, k is negative.

    Raises
    ------
    NoExactPath
        If the noise has no sampler that can be computed to arbitrary precision.

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
        Standard deviation of each variable. It is taken as exactly the number that the float
        represents.
    grid : int
        k; the unit of a draw is 2^-k.

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

    This class takes the place of `RoundedNoise` for sums that are measured in several parts. No two
    parts share random bits.

    Parameters
    ----------
    noises : sequence of Noise
        The noise of each part, on sums.
    grid : int
        k; the unit of a draw is 2^-k.

    Raises
    ------
    NoExactPath
        If a noise has no sampler that can be computed to arbitrary precision.

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

    The coordinates (see `Residuals`) are sums and differences of counts. They are whole numbers, so
    for grid >= 0 they are multiples of 2^-grid. Then the coordinates plus rounded noise are the
    rounding of the coordinates plus noise. The result is post-processing of the mechanism with
    real-valued noise (X-GRID). The cells of tables are computed from these noisy coordinates.

    Parameters
    ----------
    noise : ResidualNoise
        The noise. Its scales are taken as exactly the numbers that the floats represent.
    grid : int
        k; the unit of a draw is 2^-k.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> from geomdp.noise.exact import RoundedResiduals
    >>> from geomdp.workloads.structure.residuals import Residuals
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

    To draw more than once, build a `RoundedNoise`, which prepares the noise only once.

    Parameters
    ----------
    noise : Noise
        Noise on sums.
    grid : int
        k; the unit of the draw is 2^-k.
    entropy : callable, optional
        Source of random bytes; by default `os.urandom`. Anything else is for tests.

    Returns
    -------
    list of int
        One whole number for each coordinate.

    Raises
    ------
    NoExactPath
        If the noise has no sampler that can be computed to arbitrary precision.
    PrecisionExhausted
        If the rounding of a coordinate is not decided by 15872 bits.

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
