"""Level sets {z : density >= c} of noise, exact or estimated from draws."""

from __future__ import annotations

from functools import singledispatch
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt
from scipy.stats import chi, gamma

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp._validation import finite_array, vector
from geomdp.bodies import Ball, Body, CrossPolytope, LinearImage, Scaled
from geomdp.noise import GaussianNoise, KNormNoise, LaplaceNoise, Noise
from geomdp.noise.base import checked_noise
from geomdp.plotting.looks import COLOURS, axes_of, equal_units
from geomdp.plotting.pictures import shadow_outline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

#: To estimate a density in the plane, `DRAWS` draws are counted on a grid of `CELLS` x `CELLS`
#: cells. A cell holds 16 draws on average.
DRAWS, CELLS = 1 << 18, 128
#: Standard deviation of the Gaussian kernel that smooths the counts, in cells.
KERNEL = 2.0
#: On each axis, the range of the grid contains at least this share of the draws.
COVERED = 0.999


@singledispatch
def level_body(noise: Noise, share: float) -> Body | None:
    """The level set {z : density >= c} of noise on R^m that has the probability `share`.

    It is a scaled copy of the body K for K-norm noise, a cross-polytope for Laplace noise, a ball
    in the span of the noise for Gaussian noise, and None for other noise, such as cone noise.
    ``ValueError`` if `share` is not above 0 and below 1.

    Notes
    -----
    For K-norm noise Z, epsilon times the gauge of Z has a Gamma(r) distribution, where r is the
    dimension of K (JL-KN). For Laplace noise in R^m, the l1 norm divided by the scale has a
    Gamma(m) distribution. For Gaussian noise, the Euclidean norm divided by the scale has a chi
    distribution.

    Examples
    --------
    >>> import geomdp as gd
    >>> noise = gd.noise.LaplaceNoise(dimension=2, scale=1.0)
    >>> half = gd.plotting.level_body(noise, share=0.5)
    >>> type(half).__name__, round(half.radius(), 4)
    ('CrossPolytope', 1.6783)
    """
    del noise
    _checked_share(share)
    return None


@level_body.register
def _(noise: KNormNoise, share: float) -> Body:
    radius = gamma(noise.effective_dimension).ppf(_checked_share(share)) / noise.epsilon
    return Scaled(noise.body, float(radius))


@level_body.register
def _(noise: LaplaceNoise, share: float) -> Body:
    radius = gamma(noise.dimension).ppf(_checked_share(share))
    return CrossPolytope(noise.dimension, float(noise.scale * radius))


@level_body.register
def _(noise: GaussianNoise, share: float) -> Body:
    r = noise.effective_dimension
    ball = Ball(r, float(noise.scale * chi(r).ppf(_checked_share(share))))
    return LinearImage(noise.basis, ball)


def _checked_share(share: float) -> float:
    if not 0 < share < 1:
        raise ValueError(f"share must be above 0 and below 1, got {share!r}")
    return share


def draw_noise(
    noise: Noise,
    ax: Axes | None = None,
    *,
    shares: Sequence[float] = (0.5, 0.9),
    rows: npt.ArrayLike | None = None,
    centre: npt.ArrayLike = (0.0, 0.0),
    colour: str = COLOURS[3],
    label: str = "",
) -> list[Artist]:
    """Draw curves of equal density of noise in a plane. Each curve encloses a given probability.

    The curves are exact for K-norm, Laplace and Gaussian noise on R^2 without `rows`
    (`level_body`). In all other cases, the density is estimated from 2^18 draws, counted on a grid
    of 128 x 128 cells and smoothed by a Gaussian kernel with a standard deviation of 2 cells.

    Parameters
    ----------
    noise : Noise
        Noise on R^m.
    ax : Axes, optional
        Where to draw; by default a new figure.
    shares : sequence of float
        The probabilities, above 0 and below 1. One curve is drawn for each, the smallest
        share first.
    rows : (2, m) array_like, optional
        The linear map to the plane. Needed if m is not 2.
    centre : (2,) array_like
        The true answers. The curves are drawn around this point.
    colour, label : str
        As for `draw`.

    Raises
    ------
    ValueError
        If `shares` is empty or a share is out of range. If `rows` is needed and missing, or `rows`
        or `centre` has another shape. If `ax` is three-dimensional, or `noise` is not a `Noise`.
        Where the density is estimated, also if a share is so near to 1 that the grid holds too few
        draws.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import geomdp as gd
    >>> figure, ax = plt.subplots()
    >>> noise = gd.noise.LaplaceNoise(dimension=2, scale=1.0)
    >>> artists = gd.plotting.draw_noise(noise, ax, shares=(0.5, 0.9))
    >>> [type(artist).__name__ for artist in artists]
    ['LineCollection', 'LineCollection']
    >>> plt.close(figure)
    """
    levels = sorted(_checked_share(share) for share in shares)
    if not levels:
        raise ValueError("shares must contain at least 1 number, got none")
    m = checked_noise(noise).dimension
    matrix = np.eye(2) if rows is None and m == 2 else rows
    if matrix is None:
        raise ValueError(f"rows must be given for noise in {m} dimensions")
    plane = finite_array(matrix, "rows", ndim=2)
    if plane.shape != (2, m):
        raise ValueError(f"rows must have shape (2, {m}), got {plane.shape}")
    middle = vector(centre, 2, "centre")
    ax = axes_of(2, ax)
    bodies = [level_body(noise, share) for share in levels] if rows is None else [None]
    curves: list[list[FloatArray]] = []
    for body in bodies:
        if body is None:
            curves = _estimated(noise, plane, levels)
            break
        ring = shadow_outline(body, np.eye(2)).points
        curves.append([np.vstack([ring, ring[:1]])])
    return _drawn(ax, curves, middle, colour, label)


def _drawn(
    ax: Axes, curves: list[list[FloatArray]], centre: FloatArray, colour: str, label: str
) -> list[Artist]:
    from matplotlib.collections import LineCollection

    artists: list[Artist] = []
    for number, rings in enumerate(curves):
        # Outer curves are paler.
        alpha = 1.0 - 0.6 * number / max(1, len(curves))
        lines = LineCollection(
            [ring + centre for ring in rings], colors=colour, alpha=alpha, linewidths=1.3
        )
        lines.set_label(label if label and number == 0 else "_")
        ax.add_collection(lines)
        artists.append(lines)
    equal_units(ax)
    return artists


def _estimated(noise: Noise, rows: FloatArray, shares: Sequence[float]) -> list[list[FloatArray]]:
    """For each probability, curves around the densest region that has it, from counts of draws."""
    from contourpy import contour_generator
    from scipy.ndimage import gaussian_filter

    draws = noise.sample(np.random.default_rng(PUBLIC_SEED), DRAWS) @ rows.T
    reach = np.quantile(np.abs(draws), COVERED, axis=0) * 1.1
    edges = [np.linspace(-r, r, CELLS + 1) for r in reach]
    counts, _, _ = np.histogram2d(draws[:, 0], draws[:, 1], bins=edges)
    # The distribution of the noise is symmetric about 0, so average the counts at z and -z.
    density = gaussian_filter((counts + counts[::-1, ::-1]) / 2, KERNEL)
    falling = np.sort(density.ravel())[::-1]
    held = np.cumsum(falling) / DRAWS
    if max(shares) >= held[-1]:
        raise ValueError(
            f"shares must be below {held[-1]:.4f}, the share of the draws that the picture holds, "
            f"got {max(shares)}"
        )
    middles = [(edge[1:] + edge[:-1]) / 2 for edge in edges]
    lines = contour_generator(middles[0], middles[1], density.T)
    levels = [float(falling[int(np.searchsorted(held, share))]) for share in shares]
    # By default `contour_generator` returns separate lines: a list of arrays (p, 2).
    return [cast(list[FloatArray], lines.lines(level)) for level in levels]
