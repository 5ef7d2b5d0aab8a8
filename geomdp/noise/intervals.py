"""How far noise moves each answer: half-widths of intervals, computed without records (X-INT)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TypeGuard

import numpy as np

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp._validation import probability
from geomdp.bodies.conic.table_moments import TableMoments
from geomdp.noise.base import Noise, checked_noise
from geomdp.noise.cone import ConeNoise
from geomdp.noise.gaussian import GaussianNoise
from geomdp.noise.image_moments import DRAWS
from geomdp.noise.laplace import LaplaceNoise
from geomdp.noise.paired import PairedNoise
from geomdp.noise.residual import ResidualNoise

#: Least number of public draws from which a quantile is computed. The coverage of the interval then
#: varies by (0.05 * 0.95 / 2000)^(1/2) = 0.5% around 95%, over the choice of the draws.
LEAST_DRAWS = 1999
#: Least number of draws above the quantile. With fewer, the quantile would vary a lot with the
#: draws.
EXCEEDANCES = 20
#: Number of draws of noise on a body whose uniform points are slow to draw (see the notes of
#: `half_widths`). They reuse the `DRAWS` points from which the variances of the noise were
#: estimated, and each draw takes two of these points.
REPLAYED = DRAWS // 2
#: Largest number of entries of draws in memory at once: 64 MiB of float64.
BLOCK_ENTRIES = 1 << 23


def half_widths(noise: Noise, confidence: float = 0.95) -> FloatArray:
    """The c_j with P(|Z_j| <= c_j) >= confidence, for each coordinate j separately.

    For any records, the interval from y_j - c_j to y_j + c_j around a noisy sum y_j contains the
    true sum with at least this probability.

    Parameters
    ----------
    noise : Noise
        Z on R^m, in units of sums.
    confidence : float
        The probability 1 - beta, above 0 and below 1.

    Returns
    -------
    (m,) array
        The c_j, in units of sums. They have a closed form for Laplace and Gaussian noise. For other
        noise they are order statistics of |Z_j| over public draws.

    Raises
    ------
    ValueError
        If `noise` is not a `Noise`, or `confidence` is not between 0 and 1.

    Notes
    -----
    If |Z_j| of the release and of B independent public draws are sorted, the release is equally
    likely to have any rank. So the k-th smallest |Z_j| of B draws, with
    k = ceil((B + 1) confidence), is at least |Z_j| of the release with probability at least
    k / (B + 1) >= confidence. This probability is over the public draws and the release together.
    If draws come from a Markov chain, the statement holds only as far as the chain has mixed. Cost:
    B = max(1999, 20 / beta) draws.

    Uniform points of a `TableMoments` with a finite `violation` are found by rejection, which may
    take a hundred tries for each point. Draws of noise on such a body are therefore made from the
    1024 public points with which its variances were estimated: B = 512 draws of two points each.
    This is done only if at least 20 of the 512 draws lie above the quantile, that is for a
    confidence up to 0.96. For a higher confidence, new points are drawn. With 512 draws, the
    coverage varies by 1.0% around 95% instead of 0.5%, over the choice of the public draws, and the
    half-widths vary by 4% instead of 2%. The 1024 points can come from the user's cache. A checksum
    protects them against damage, but nothing protects them against someone who can write to the
    cache.

    References
    ----------
    Formula sheet X-INT.

    Examples
    --------
    >>> import geomdp as gd
    >>> noise = gd.noise.LaplaceNoise(dimension=2, scale=1.0)
    >>> gd.noise.half_widths(noise, confidence=0.95).round(4).tolist()
    [2.9957, 2.9957]
    >>> cone = gd.noise.ConeNoise(gd.bodies.Spectraplex(2), rate=0.5, centre=[0.0, 0.0, 0.0])
    >>> gd.noise.half_widths(cone, confidence=0.9).shape
    (3,)
    """
    beta = 1 - probability(confidence, "confidence")
    checked_noise(noise)
    if isinstance(noise, LaplaceNoise):
        # P(|Z_j| > c) = exp(-c / b).
        return np.full(noise.dimension, -noise.scale * math.log(beta))
    if isinstance(noise, GaussianNoise | ResidualNoise):
        from scipy import special  # slow import

        return np.sqrt(noise.variances()) * -special.ndtri(beta / 2)
    draws, rank = order_statistic(noise, beta)
    if _is_slow(noise) and draws == REPLAYED:
        sizes = np.abs(_replayed(noise))
        return np.asarray(np.partition(sizes, rank - 1, axis=0)[rank - 1])
    return np.asarray(_largest(noise, draws, draws - rank + 1)[0])


def simultaneous_half_widths(noise: Noise, confidence: float = 0.95) -> FloatArray:
    """The c_j with P(|Z_j| <= c_j for all j) >= confidence, proportional to standard deviations.

    c_j = c s_j, where s_j is the standard deviation of Z_j and c is a quantile of max |Z_j| / s_j.
    The quantile has a closed form for Laplace noise. For noise on residuals of tables, which can
    have millions of cells, c is an upper bound on it in closed form (Sidak 1967). For other noise c
    is an order statistic over public draws, see the notes of `half_widths` (X-INT).

    Parameters
    ----------
    noise : Noise
        Z on R^m, in units of sums.
    confidence : float
        The probability 1 - beta, above 0 and below 1.

    Returns
    -------
    (m,) array
        The c_j, in units of sums.

    Raises
    ------
    ValueError
        If `noise` is not a `Noise`, or `confidence` is not between 0 and 1.

    Examples
    --------
    >>> import geomdp as gd
    >>> noise = gd.noise.LaplaceNoise(dimension=2, scale=1.0)
    >>> gd.noise.simultaneous_half_widths(noise, confidence=0.95).round(4).tolist()
    [3.6761, 3.6761]
    """
    beta = 1 - probability(confidence, "confidence")
    checked_noise(noise)
    if isinstance(noise, LaplaceNoise):
        # P(max |Z_j| <= c) = (1 - exp(-c / b))^m; log1p and expm1 keep small beta exact.
        single = -math.expm1(math.log1p(-beta) / noise.dimension)
        return np.full(noise.dimension, -noise.scale * math.log(single))
    deviations = np.sqrt(noise.variances())
    if isinstance(noise, ResidualNoise):
        from scipy import special  # slow import

        # Sidak's inequality for Gaussian Z: the probability that |Z_j| <= c_j for all j is at least
        # the product of the probabilities for each j.
        single = -math.expm1(math.log1p(-beta) / noise.dimension)
        return np.asarray(deviations * -special.ndtri(single / 2))
    moving = deviations > 0
    # Use fresh draws, not the points with which the s_j were estimated, because the draws must be
    # independent of the s_j.
    draws, rank = _fresh_order_statistic(beta)
    maxima = np.concatenate(
        [
            (np.abs(block[:, moving]) / deviations[moving]).max(axis=1)
            for block in _blocks(noise, draws)
        ]
    )
    return np.asarray(deviations * np.partition(maxima, rank - 1)[rank - 1])


def order_statistic(noise: Noise, beta: float) -> tuple[int, int]:
    """Number B of draws for `half_widths`, and the quantile's rank k, counted from the smallest."""
    if _is_slow(noise) and beta * REPLAYED >= EXCEEDANCES:
        return REPLAYED, _rank(REPLAYED, beta)
    return _fresh_order_statistic(beta)


def _fresh_order_statistic(beta: float) -> tuple[int, int]:
    draws = max(LEAST_DRAWS, math.ceil(EXCEEDANCES / beta))
    return draws, _rank(draws, beta)


def _rank(draws: int, beta: float) -> int:
    return math.ceil((draws + 1) * (1 - beta))


def _is_slow(noise: Noise) -> TypeGuard[PairedNoise | ConeNoise]:
    """Whether a draw takes many tries. The variances are then estimated from points of the body."""
    if not isinstance(noise, PairedNoise | ConeNoise):
        return False
    return isinstance(noise.body, TableMoments) and noise.body.cut


def _replayed(noise: PairedNoise | ConeNoise) -> FloatArray:
    """Draws (512, m) of noise from the points with which its variances were estimated.

    A draw is computed from two uniform points of the body and from random radii, which are drawn
    here. `moments.draws` holds the points minus the centroid of the body, which is 0.
    """
    # The points come from another random stream, so the radii are independent of the points.
    return noise.sample_at(np.random.default_rng([PUBLIC_SEED, 1]), noise.moments.draws)


def _blocks(noise: Noise, draws: int) -> Iterator[FloatArray]:
    """Public draws (b, m) of the noise in blocks of limited size, `draws` rows in all."""
    rng = np.random.default_rng(PUBLIC_SEED)
    rows = max(1, BLOCK_ENTRIES // noise.dimension)
    for start in range(0, draws, rows):
        yield noise.sample(rng, min(rows, draws - start))


def _largest(noise: Noise, draws: int, count: int) -> FloatArray:
    """The `count` largest |Z_j| over public draws, for each j: (count, m), smallest in row 0."""
    kept = np.empty((0, noise.dimension))
    for block in _blocks(noise, draws):
        kept = np.concatenate([kept, np.abs(block)])
        if len(kept) > count:
            kept = np.partition(kept, len(kept) - count, axis=0)[-count:]
    return kept
