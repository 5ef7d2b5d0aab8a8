"""Correctly rounded Gaussian noise on the residuals of tables."""

from __future__ import annotations

from geomdp.noise.exact.release import RoundedVector
from geomdp.noise.exact.tables.residuals import near_residuals, residual_vector
from geomdp.noise.exact.uniforms import Entropy
from geomdp.noise.residual import ResidualNoise, drawn_size

#: Number of Gaussian variables that are drawn at a time. If float64 does not decide the rounding of
#: one of them, ball arithmetic takes a second for all of these.
BLOCK = 1 << 14


class RoundedResiduals:
    """Noise on the coordinates of residuals, drawn with correct rounding to multiples of 2^-grid.

    Coordinates of residuals of counts are whole numbers. So the rounding of coordinates plus noise
    is coordinates plus rounded noise, and is post-processing of the mechanism with real-valued
    noise (X-GRID). The cells of tables are computed from it.

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
        self.grid = grid
        self._parts: list[RoundedVector] = []
        for group in noise.residuals.groups:
            scales = noise.scales[group.numbers]
            step = max(1, BLOCK // drawn_size(group.shape))
            for start in range(0, len(scales), step):
                own = scales[start : start + step]
                vector, near = residual_vector(group.shape, own), near_residuals(group.shape, own)
                self._parts.append(RoundedVector(vector, grid, near))

    def draw(self, entropy: Entropy | None = None) -> list[int]:
        """The draws of all coordinates, each a whole multiple of 2^-grid."""
        return [j for part in self._parts for j in part.draw(entropy)]
