"""Convergence diagnostics of Markov chains: rank-normalised split R-hat and bulk ESS.

ESS is the effective sample size. Draws are arrays (chains, draws, m), and each diagnostic is an
array (m,). A coordinate is any real function of the state of a chain. Diagnostics can refute
convergence but cannot prove it (SAM-3).

References
----------
Vehtari, Gelman, Simpson, Carpenter, Buerkner (2021), "Rank-normalization, folding, and
localization: an improved R-hat", sections 3-4. Geyer (1992) for the monotone sequence.
"""

from __future__ import annotations

import numpy as np
import scipy

from geomdp._typing import FloatArray
from geomdp._validation import finite_array
from geomdp.geometry.results import Diagnostics

#: Smallest number of draws of a chain: each half of the chain needs two draws for a variance.
MINIMUM_DRAWS = 4
#: Normal scores of a moving coordinate have a variance near 1. A variance up to this limit is
#: rounding error and is treated as 0.
STILL = 1e-20


def split_r_hat(draws: FloatArray) -> FloatArray:
    """Rank-normalised split R-hat: the larger of the bulk and the folded statistic.

    For the bulk statistic, values are replaced by normal scores (normal quantiles of their ranks).
    For half-chains of n draws, it is (((n - 1) W + B) / (n W))^(1/2), where W is the mean of the
    variances within half-chains, and B is n times the variance of their means. The folded statistic
    takes |x - median| in place of each value x, and detects chains that differ only in spread.

    Parameters
    ----------
    draws : (chains, draws, m) array
        At least 2 chains of at least 4 draws.

    Returns
    -------
    (m,) array
        A value near 1 means that the chains agree. If no half-chain moves in a coordinate, it is
        NaN or infinite. It is also NaN if |x - median| is the same for all draws.

    Raises
    ------
    ValueError
        For too few chains or draws, NaN or infinity.

    Examples
    --------
    >>> import numpy as np
    >>> from geomdp.geometry import sampling
    >>> draws = np.random.default_rng(0).standard_normal((4, 500, 1))
    >>> sampling.split_r_hat(draws).round(1).tolist()
    [1.0]
    >>> apart = draws + 5 * np.arange(4)[:, None, None]
    >>> bool(sampling.split_r_hat(apart)[0] > 2)
    True
    """
    draws = _checked(draws, minimum_chains=2)
    halves = _split(draws)
    # As in arviz, Stan and the paper, the median is over the draws of all half-chains together.
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    return np.maximum(_r_hat(_normal_scores(halves)), _r_hat(_normal_scores(folded)))


def bulk_ess(draws: FloatArray) -> FloatArray:
    """Bulk effective sample size over all chains, from rank-normalised half-chains.

    ESS = S / (1 + 2 sum_t rho_t), t = 1, 2, ..., where S is the number of draws of all half-chains,
    and rho_t is the autocorrelation at lag t, pooled over half-chains. The rho_t are summed in
    pairs. The sum ends before the first pair that is not positive, or before the last pair. Of this
    pair, only the first term counts, half as much as others, and only if it or the sum of the pair
    is not negative. A pair counts at most as much as each pair before it (Geyer's initial monotone
    sequence).

    Parameters
    ----------
    draws : (chains, draws, m) array
        At least 1 chain of at least 4 draws.

    Returns
    -------
    (m,) array
        The ESS of each coordinate, at most S log10(S). For S >= 10, this limit matters only if
        correlations are negative. If a coordinate does not move, its ESS is S.

    Raises
    ------
    ValueError
        For too few draws, NaN or infinity.

    Examples
    --------
    >>> import numpy as np
    >>> from geomdp.geometry import sampling
    >>> noise = np.random.default_rng(0).standard_normal((4, 500, 1))
    >>> round(float(sampling.bulk_ess(noise)[0]), -3)
    2000.0
    >>> walks = np.cumsum(noise, axis=1)
    >>> float(sampling.bulk_ess(walks)[0]) < 50
    True
    """
    draws = _checked(draws, minimum_chains=1)
    return _effective_size(_normal_scores(_split(draws)))


def diagnose(draws: FloatArray, steps: int) -> Diagnostics:
    """Split R-hat and bulk ESS of draws, in one object.

    Parameters
    ----------
    draws : (chains, draws, m) array
        At least 2 chains of at least 4 draws.
    steps : int
        Number of kernel steps that each chain has made.

    Raises
    ------
    ValueError
        For too few chains or draws, NaN or infinity.

    Examples
    --------
    >>> import numpy as np
    >>> from geomdp.geometry import sampling
    >>> draws = np.random.default_rng(0).standard_normal((4, 500, 2))
    >>> found = sampling.diagnose(draws, steps=500)
    >>> found
    Diagnostics(4 chains, split R-hat at most 1.001, bulk ESS at least 1712)
    """
    return Diagnostics(split_r_hat(draws), bulk_ess(draws), chains=len(draws), steps=steps)


def _checked(draws: FloatArray, minimum_chains: int) -> FloatArray:
    draws = finite_array(draws, "draws", ndim=3)
    chains, length, _ = draws.shape
    if chains < minimum_chains or length < MINIMUM_DRAWS:
        raise ValueError(
            f"draws must hold at least {minimum_chains} chains of at least {MINIMUM_DRAWS} draws, "
            f"got {chains} chains of {length}"
        )
    return draws


def _split(draws: FloatArray) -> FloatArray:
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: FloatArray) -> FloatArray:
    from scipy.stats import rankdata  # a large module, needed for chains only

    flat = draws.reshape(-1, draws.shape[2])
    # Blom (1958): the expected normal order statistic of rank r among S is near
    # the quantile at (r - 3/8) / (S + 1/4).
    scores = scipy.special.ndtri((rankdata(flat, axis=0) - 3 / 8) / (len(flat) + 1 / 4))
    return np.asarray(scores.reshape(draws.shape))


def _r_hat(draws: FloatArray) -> FloatArray:
    length = draws.shape[1]
    between = length * draws.mean(axis=1).var(axis=0, ddof=1)
    within = draws.var(axis=1, ddof=1).mean(axis=0)
    moving = within > STILL
    ratio = np.where(between > STILL, np.inf, np.nan)
    ratio[moving] = between[moving] / within[moving]
    return np.asarray(np.sqrt((ratio + length - 1) / length))


def _autocorrelation(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Pooled autocorrelations (draws, m), and whether each coordinate (m,) moves."""
    chains, length, _ = draws.shape
    centred = draws - draws.mean(axis=1, keepdims=True)
    from scipy.fft import irfft, next_fast_len, rfft  # slow import

    padded = next_fast_len(2 * length, real=True)  # no wrap-around
    spectrum = np.abs(rfft(centred, n=padded, axis=1)) ** 2
    covariance = irfft(spectrum.mean(axis=0), n=padded, axis=0)[:length] / length
    within = covariance[0] * length / (length - 1)
    total = covariance[0].copy()
    if chains > 1:
        total += draws.mean(axis=1).var(axis=0, ddof=1)
    moving = total > STILL
    total[~moving] = 1.0
    return 1 - (within - covariance) / total, moving


def _effective_size(draws: FloatArray) -> FloatArray:
    chains, length, _ = draws.shape
    size = chains * length
    rho, moving = _autocorrelation(draws)
    rho[0] = 1.0
    # Sums of pairs (rho_0 + rho_1), (rho_2 + rho_3), ... are positive for a reversible chain. If
    # there are more than two lags, the largest one or two are left out, because the
    # autocorrelations at these lags are sums of few products.
    pairs = max(1, (length - 1) // 2)
    even, odd = rho[0 : 2 * pairs : 2], rho[1 : 2 * pairs : 2]
    sums = even + odd
    stop = np.where((sums <= 0).any(axis=0), np.argmax(sums <= 0, axis=0), pairs - 1)
    monotone = np.minimum.accumulate(sums, axis=0)
    counted = np.arange(pairs)[:, None] < stop
    last_even = np.take_along_axis(even, stop[None], axis=0)[0]
    last_sum = np.take_along_axis(sums, stop[None], axis=0)[0]
    last = np.where((last_even > 0) | (last_sum >= 0), last_even, 0.0)
    time = -1 + 2 * np.where(counted, monotone, 0.0).sum(axis=0) + last
    time = np.maximum(time, 1 / np.log10(size))
    return np.where(moving, size / time, float(size))
