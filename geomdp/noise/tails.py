"""How large noise can be, computed without records.

Half-widths of confidence intervals around noisy answers (X-INT), and upper bounds on E ||Z||_inf,
the expected largest |Z_i| of a noise vector Z.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import TypeGuard

import numpy as np

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp._validation import MOST_CONFIDENCE, probability
from geomdp.bodies.elliptope import TableMoments
from geomdp.noise.base import Noise, checked_noise
from geomdp.noise.differences import DRAWS, ConeNoise, PairedNoise
from geomdp.noise.few_queries import GeometricNoise
from geomdp.noise.gaussian import GaussianNoise, ResidualNoise
from geomdp.noise.knorm import KNormNoise, LaplaceNoise, MappedNoise
from geomdp.noise.recursive import RecursiveNoise

# Half-widths of confidence intervals

#: Least and largest number of public draws from which a quantile is computed: with the least, the
#: coverage of a 95% interval has standard deviation (0.05 * 0.95 / 2000)^(1/2) = 0.5%.
LEAST_DRAWS, MOST_DRAWS = 1999, 20_000_000
#: Least number of draws at or above the quantile, which else would vary a lot with the draws.
EXCEEDANCES = 20
#: Number of draws of noise on a body whose uniform points are slow to draw (see `half_widths`).
REPLAYED = DRAWS // 2
#: Largest number of entries of a block of draws, 64 MiB of float64.
BLOCK_ENTRIES = 1 << 23


def half_widths(noise: Noise, confidence: float = 0.95) -> FloatArray:
    """The c_j with P(|Z_j| <= c_j) >= confidence, for each coordinate j separately.

    For any records, [y_j - c_j, y_j + c_j] around a noisy sum y_j contains the true sum with at
    least this probability. For the mean of n records, the half-width is c_j / n. If a mechanism
    rounds answers before it adds noise, its `answer_rounding` must be added to c_j / n.

    Laplace, geometric and Gaussian noise and `ResidualNoise` have closed forms. For other noise,
    c_j is an order statistic of |Z_j| over public draws (X-INT). Among |Z_j| of the release and of
    B independent public draws, the release is equally likely to have any rank. So it is at most the
    k-th smallest of the draws, with k = ceil((B + 1) confidence), with probability at least
    k / (B + 1) >= confidence, over the draws and the release together. For draws from a Markov
    chain, this assumes that the chain has mixed. Cost: B = max(1999, 20 / beta) draws for
    confidence 1 - beta.

    One uniform point of a `TableMoments` with a finite `violation` may take a hundred tries. So for
    a confidence up to 0.96, where at least 20 draws lie at or above the quantile, the 1024 public
    points that gave the variances are used again, two for each of B = 512 draws. Over the choice of
    512 draws, the coverage of a 95% interval has standard deviation 1.0%, and a half-width varies
    by 4%. For 1999 draws, these numbers are 0.5% and 2%.

    Parameters
    ----------
    noise : Noise
        Z on R^m, in units of sums.
    confidence : float
        The probability, above 0 and below 1 (at most 0.999999 without a closed form).

    Returns
    -------
    (m,) array
        The c_j, in units of sums.

    Examples
    --------
    >>> import geomdp as gd
    >>> noise = gd.noise.LaplaceNoise(dimension=2, scale=1.0)
    >>> gd.noise.half_widths(noise, confidence=0.95).round(4).tolist()
    [2.9957, 2.9957]
    """
    beta = 1 - probability(confidence, "confidence")
    checked_noise(noise)
    if isinstance(noise, GeometricNoise):
        return noise.half_widths(beta)
    closed = _closed(noise, beta)
    if closed is not None:
        return closed
    draws, rank = order_statistic(noise, beta)
    cells = noise.cells if isinstance(noise, PairedNoise) and not _is_slow(noise) else None
    if cells is not None and cells.nnz == noise.dimension:
        # Each answer is the share of one cell of a table of two columns, or of one level.
        return _of_cells(noise, cells.indices.astype(np.int64), draws, rank)
    return np.asarray(_largest(_blocks(noise, draws), draws - rank + 1)[0])


def simultaneous_half_widths(noise: Noise, confidence: float = 0.95) -> FloatArray:
    """The c_j with P(|Z_j| <= c_j for all j) >= confidence, proportional to standard deviations.

    They are computed as in `half_widths` (X-INT), from the maximum over j of |Z_j| / s_j.
    """
    beta = 1 - probability(confidence, "confidence")
    checked_noise(noise)
    if isinstance(noise, LaplaceNoise | ResidualNoise):
        closed = _closed(noise, _single(beta, noise.dimension))
        assert closed is not None
        return closed
    deviations = np.sqrt(noise.variances())
    moving = deviations > 0
    if not moving.any():
        return np.zeros(noise.dimension)
    # The draws must be independent of the s_j, so the points that gave the s_j are not reused.
    draws, rank = _fresh_order_statistic(beta)
    return deviations * _quantile(_blocks(noise, draws), moving, deviations[moving], rank)


def _quantile(
    blocks: Iterable[FloatArray], among: slice | BoolArray, divisors: FloatArray, rank: int
) -> float:
    """The number at `rank` (from 1) of max |Z_j| / w_j over j in `among`, one for each draw."""
    maxima = [(np.abs(block[:, among]) / divisors).max(axis=1) for block in blocks]
    return float(np.partition(np.concatenate(maxima), rank - 1)[rank - 1])


def largest_half_width(
    noise: Noise, confidence: float, among: slice, divisors: FloatArray
) -> float:
    """The c with P(|Z_j| <= c w_j for all j in `among`) >= confidence, for `divisors` w_j above 0.

    Laplace and Gaussian noise have closed forms (Sidak 1967), which for unequal w_j or variances
    are upper bounds. For other noise c is an order statistic, as in `half_widths` (X-INT).
    """
    beta = 1 - probability(confidence, "confidence")
    closed = _closed(noise, _single(beta, len(divisors)), among, divisors)
    if closed is not None:
        return float(closed.max())
    draws, rank = order_statistic(noise, beta)
    return _quantile(_blocks(noise, draws), among, divisors, rank)


def _single(beta: float, count: int) -> float:
    """The b with (1 - b)^count = 1 - beta: for independent events, or a bound by Sidak (1967)."""
    return -math.expm1(math.log1p(-beta) / count)


def _closed(
    noise: Noise, beta: float, among: slice = slice(None), divisors: FloatArray | float = 1.0
) -> FloatArray | None:
    """c_j / w_j with P(|Z_j| > c_j) = `beta` for j in `among` and `divisors` w_j, or None."""
    if isinstance(noise, LaplaceNoise):
        # P(|Z_j| > c) = exp(-c / b), where b is the scale.
        return np.full(noise.dimension, -noise.scale * math.log(beta))[among] / divisors
    if isinstance(noise, GaussianNoise | ResidualNoise):
        from scipy import special  # slow import

        return np.sqrt(noise.variances())[among] / divisors * -special.ndtri(beta / 2)
    return None


def order_statistic(noise: Noise, beta: float) -> tuple[int, int]:
    """The numbers B and k of `half_widths`: the quantile is the k-th smallest of B draws."""
    if _is_slow(noise) and beta * REPLAYED >= EXCEEDANCES:
        return REPLAYED, math.ceil((REPLAYED + 1) * (1 - beta))
    return _fresh_order_statistic(beta)


def _fresh_order_statistic(beta: float) -> tuple[int, int]:
    if EXCEEDANCES / beta > MOST_DRAWS:
        raise ValueError(
            f"confidence must be at most {MOST_CONFIDENCE} for noise whose intervals are computed "
            f"from draws, got {1 - beta!r}"
        )
    draws = max(LEAST_DRAWS, math.ceil(EXCEEDANCES / beta))
    return draws, math.ceil((draws + 1) * (1 - beta))


def _is_slow(noise: Noise) -> TypeGuard[PairedNoise | ConeNoise | MappedNoise]:
    """Whether a uniform point of the body of this noise takes many tries by rejection."""
    if isinstance(noise, MappedNoise):
        return len(noise.parts) == 1 and _is_slow(noise.parts[0].noise)
    if not isinstance(noise, PairedNoise | ConeNoise):
        return False
    return isinstance(noise.body, TableMoments) and noise.body.cut


def _replayed(noise: PairedNoise | ConeNoise | MappedNoise) -> FloatArray:
    """Draws (512, m) from two each of the 1024 points in `draws`, with new radii."""
    if isinstance(noise, MappedNoise):
        (part,) = noise.parts
        assert isinstance(part.noise, PairedNoise | ConeNoise)
        return np.asarray((part.matrix @ _replayed(part.noise).T).T)
    # The points come from another random stream, so the radii are independent of the points.
    return noise.sample_at(np.random.default_rng([PUBLIC_SEED, 1]), noise.draws)


def public_blocks(
    sample: Callable[[np.random.Generator, int], FloatArray], draws: int, rows: int
) -> Iterator[FloatArray]:
    """Public draws of noise, in blocks of at most `rows`; `sample` draws a number of them."""
    rng = np.random.default_rng(PUBLIC_SEED)
    for start in range(0, draws, rows):
        yield sample(rng, min(rows, draws - start))


def _blocks(noise: Noise, draws: int) -> Iterable[FloatArray]:
    if draws == REPLAYED and _is_slow(noise):
        return [_replayed(noise)]
    return public_blocks(noise.sample, draws, max(1, BLOCK_ENTRIES // noise.dimension))


def _of_cells(noise: Noise, cells: IntArray, draws: int, rank: int) -> FloatArray:
    """Quantiles (m,) of |Z_j| from `draws` of one cell of each table: they all have one law."""
    assert isinstance(noise, PairedNoise)
    assert isinstance(noise.body, TableMoments)
    levels, count = np.array(noise.body.levels), len(noise.body.levels)
    rows = max(1, BLOCK_ENTRIES // (2 * count * int(levels.sum())))
    found = _largest(public_blocks(noise.sample_cells, draws, rows), draws - rank + 1)[0]
    # The share of all records has no noise; a level is the cell of a column with itself.
    first, second = np.triu_indices(count, 1)
    widths = [0.0, *np.repeat(np.diag(found), levels)]
    widths += np.repeat(found[first, second], levels[first] * levels[second]).tolist()
    return np.array(widths)[cells]


def _largest(blocks: Iterable[FloatArray], count: int) -> FloatArray:
    """The `count` largest moduli of each entry over blocks of draws, the least of them first."""
    kept: FloatArray | None = None
    for block in blocks:
        kept = np.abs(block) if kept is None else np.concatenate([kept, np.abs(block)])
        if len(kept) >= count:
            kept = np.partition(kept, len(kept) - count, axis=0)[-count:]
    assert kept is not None
    return kept


# Upper bounds on the expected largest coordinate

#: Classes of noise with symmetric log-concave densities.
LOG_CONCAVE = (
    LaplaceNoise,
    GaussianNoise,
    ResidualNoise,
    KNormNoise,
    ConeNoise,
    PairedNoise,
    RecursiveNoise,
)
#: Steps of the upper sum in `log_concave_maximum`, which is a few tenths of a percent too large.
STEPS = 1 << 12
#: The upper sum ends where the exponent c of `log_concave_maximum` is ln m plus this number: there
#: the union bound is at most e^-40.
REACH = 40.0
#: Significant digits to which standard deviations are rounded up, so that few values remain.
DIGITS = 4


def expected_maximum(noise: Noise) -> float:
    """A proved upper bound on E max over i of |Z_i|, for symmetric noise Z on sums of answers.

    The result is the least of these bounds, or infinity (Prekopa 1973; formula sheet GEN-3, JL-KN):

    * Laplace noise of scale b: b (1 + 1/2 + ... + 1/m), which is exact.
    * Geometric noise: b (1 + 1/2 + ... + 1/m) + max u_i, because Z_i / u_i is distributed as
      floor(x) - floor(y), below |x - y| + 1, for a Laplace x - y; or the sum of the E |Z_i|.
    * K-norm noise: (r / epsilon) max over i of h_K(e_i), because E ||Z||_K = r / epsilon.
    * `LOG_CONCAVE` classes and their linear images: `log_concave_maximum`, a union bound.
    * All noise: (E ||Z||_2^2)^(1/2). This and the union bound need exact second moments.
    """
    if isinstance(noise, LaplaceNoise):
        return noise.scale * _harmonic(noise.dimension)
    bounds = [math.inf]
    if isinstance(noise, GeometricNoise):
        bounds.append(noise.scale * _harmonic(noise.dimension) + float(noise.units.max()))
        bounds.append(float(noise.mean_sizes().sum()))
    moment = noise.second_moment()
    if moment.samples == 0:
        bounds.append(math.sqrt(moment.value))
        if is_log_concave(noise):
            deviations = np.sqrt(np.maximum(noise.variances(), 0.0))
            bounds.append(log_concave_maximum(deviations))
    if isinstance(noise, KNormNoise):
        reach = float(noise.body.support(np.eye(noise.dimension)).max())
        bounds.append(noise.effective_dimension / noise.epsilon * reach)
    return min(bounds)


def _harmonic(count: int) -> float:
    """1 + 1/2 + ... + 1/m, the expected maximum of m exponential variables of mean 1."""
    return float((1 / np.arange(1, count + 1)).sum())


def is_log_concave(noise: Noise) -> bool:
    """Whether the density is known to be symmetric and log-concave."""
    if isinstance(noise, MappedNoise):
        return all(is_log_concave(part.noise) for part in noise.parts)
    return isinstance(noise, LOG_CONCAVE)


def log_concave_maximum(deviations: FloatArray) -> float:
    """Upper bound on E max over i of |X_i| for symmetric log-concave X_i of `deviations` (m,).

    G(t) = P(|X| > t) is log-concave with G(0) = 1. So G(t) = e^-c implies G(u) >= e^(-c u / t) for
    u <= t, hence E X^2 >= 2 (t / c)^2 (1 - (1 + c) e^-c), and P(|X| > s(c) sigma) <= e^-c with
    s(c) = c / (2 (1 - (1 + c) e^-c))^(1/2). With the sum S(t) of these bounds over i, the result
    bounds the integral of min{1, S(t)} by an upper sum up to the last c. The tail of X_i is at most
    the integral of e^(-c t / (s(c) sigma_i)), because c / s(c) increases.
    """
    largest = float(deviations.max(initial=0.0))
    if largest == 0:
        return 0.0
    scaled = deviations[deviations > 0] / largest
    places = 10.0 ** (np.floor(np.log10(scaled)) - DIGITS + 1)
    shares, counts = np.unique(np.ceil(scaled / places) * places, return_counts=True)
    last = math.log(counts.sum()) + REACH
    exponents = np.linspace(0.0, last, STEPS + 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        limits = exponents / np.sqrt(2 * (1 - (1 + exponents) * np.exp(-exponents)))
    limits[0] = 1.0  # s(c) tends to 1 as c tends to 0
    heights = np.linspace(0.0, limits[-1], STEPS + 1)
    tails = np.zeros(STEPS + 1)
    for share, count in zip(shares, counts, strict=True):
        # The largest c with s(c) at or below t / sigma is too small, if anything.
        place = np.searchsorted(limits, heights / share, side="right") - 1
        tails += count * np.exp(-exponents[np.maximum(place, 0)])
    body = np.minimum(tails[:-1], 1.0).sum() * heights[1]
    beyond = (shares * counts).sum() * limits[-1] / last * math.exp(-last)
    return largest * float(body + beyond)
