"""Chebyshev product moments as a user would compute them without geomdp: NumPy and finufft."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

#: Number of records in a block. At the sizes measured, no array of a block exceeds 4 MiB.
BLOCK = 2048


def blocked_cosines(points: Array, size: int) -> Array:
    """Means of all products T_r1(x_1) ... T_rd(x_d) of Chebyshev polynomials, r_i below `size`."""
    total = np.zeros((size,) * points.shape[1])
    for start in range(0, len(points), BLOCK):
        angles = np.arccos(points[start : start + BLOCK])
        total += block_sums(np.cos(angles.T[:, None, :] * np.arange(size)[:, None]))
    return total / len(points)


def blocked_recurrences(points: Array, size: int) -> Array:
    """The means of `blocked_cosines`, by recurrences, which NumPy computes faster than cosines."""
    total = np.zeros((size,) * points.shape[1])
    for start in range(0, len(points), BLOCK):
        x = np.ascontiguousarray(points[start : start + BLOCK].T)
        waves = np.empty((len(x), size, x.shape[1]))
        waves[:, 0], waves[:, 1] = 1.0, x
        for r in range(2, size):
            np.multiply(2 * x, waves[:, r - 1], out=waves[:, r])
            waves[:, r] -= waves[:, r - 2]
        total += block_sums(waves)
    return total / len(points)


def block_sums(waves: Array) -> Array:
    """All products T_r1(x_1) ... T_rd(x_d), summed over the records x of a block."""
    d, size, _ = waves.shape
    if d == 1:
        return waves[0].sum(axis=1)
    left = waves[0]
    for i in range(1, d - 1):
        left = (left[:, None, :] * waves[i]).reshape(-1, waves.shape[2])
    return np.reshape(left @ waves[-1].T, (size,) * d)


def fourier(points: Array, size: int, tolerance: float) -> Array:
    """The means of `blocked_cosines` by one non-uniform FFT, up to `tolerance`."""
    import finufft

    d = points.shape[1]
    transform = (finufft.nufft1d1, finufft.nufft2d1, finufft.nufft3d1)[d - 1]
    waves = transform(
        *np.ascontiguousarray(np.arccos(points.T)),
        np.ones(len(points), dtype=np.complex128),
        (2 * size - 1,) * d,
        eps=tolerance,
        isign=1,
        upsampfac=2.0,
        spread_sort=0,
        nthreads=1,
    ).real
    zero = size - 1
    for axis in range(d):
        up = np.take(waves, range(zero, 2 * zero + 1), axis)
        waves = (up + np.take(waves, range(zero, -1, -1), axis)) / 2
    return np.asarray(waves) / len(points)
