"""Correct rounding to a public grid, and scales of noise that are proved to give a guarantee.

Bits are drawn until the nearest grid points are certain. Floats are taken as exact numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

import numpy as np
from flint import arb, ctx

from geomdp.noise.base import Noise, checked_noise
from geomdp.noise.exact.variates import WORD_BITS, Draw, Entropy, Undecided, UniformBits
from geomdp.privacy import ZCDP, ApproxDP, shortcut_step_epsilon
from geomdp.privacy.calibration import gaussian_scale
from geomdp.privacy.definitions import check_privacy

# Rounding to a public grid

Result = TypeVar("Result")

#: Number of words of each uniform number at the first evaluation: 124 bits. A coordinate of
#: standard deviation s is then known to about 2^-110 s. On a grid of s / 1024, about one coordinate
#: in 2^99 is left undecided.
FIRST_WORDS = 2
#: Number of words at the last evaluation: 15872 bits. Grids finer than about 2^-15000 standard
#: deviations would need more. A coordinate is computed as a ball, an interval that contains it. No
#: number of bits suffices if, with positive probability, the coordinate is exactly half-way between
#: grid points and its ball has a radius above 0.
LAST_WORDS = 256
#: The unit of the grid is at most this share of the smallest standard deviation of a coordinate.
#: Rounding then adds about (1 / 1024)^2 / 12 < 10^-7 of the variance, or less.
SHARE = 1 / 1024

_HALF = arb(0.5)


class PrecisionExhausted(ArithmeticError):  # noqa: N818 (a name like BudgetExhausted)
    """Raised if the largest precision does not decide the outcome of a draw.

    Examples
    --------
    >>> from geomdp.noise.exact import PrecisionExhausted, RoundedVector

    This vector is the constant 1/2, but any number of bits shows only that it is near 1/2:

    >>> def one_half(draw):
    ...     u = draw.uniform()
    ...     return [u - u + 0.5]
    ...
    >>> try:
    ...     RoundedVector(one_half, grid=0).draw()
    ... except PrecisionExhausted as error:
    ...     print(str(error).partition(":")[0])
    the rounding of a draw is not decided by 15872 bits
    """

    def __init__(self) -> None:
        super().__init__(
            f"the rounding of a draw is not decided by {LAST_WORDS * WORD_BITS} bits: the grid is "
            "too fine for that precision, or a coordinate is half-way between two grid points with "
            "positive probability"
        )


def refined(
    evaluate: Callable[[Draw], Result],
    entropy: Entropy | None = None,
    filtered: Callable[[UniformBits], Result] | None = None,
) -> Result:
    """The value of `evaluate` at the first precision that decides it, up to 15872 bits.

    Inexact balls must be computed inside the call, because a ball from outside would not shrink.
    """
    bits = UniformBits(entropy)
    if filtered is not None:
        try:
            return filtered(bits)
        except Undecided:
            pass
    words = FIRST_WORDS
    while words <= LAST_WORDS:
        try:
            with ctx.workprec(words * WORD_BITS):
                return evaluate(Draw(bits, words))
        except Undecided:
            words *= 2
    raise PrecisionExhausted


def nearest_multiples(values: Sequence[arb], grid: int) -> list[int]:
    """The whole j of the nearest j 2^-grid, ties up; `Undecided` for a ball that is too wide."""
    # A product with a power of two is exact at any precision.
    scale = arb(2) ** grid
    result = []
    for value in values:
        # floor(x + 1/2) over the ball. The addition widens the ball by the error of its rounding.
        whole = (value * scale + _HALF).floor().unique_fmpz()
        if whole is None:
            raise Undecided
        result.append(int(whole))
    return result


def public_grid(noise: Noise) -> int:
    """The least k >= 0 with 2^-k at most 1/1024 of the smallest standard deviation above 0.

    This k depends only on the public distribution of the noise, and sums of whole numbers lie on
    the grid. ``ValueError`` if `noise` is not a `Noise`, or all standard deviations are 0.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.noise.exact import public_grid
    >>> public_grid(gd.noise.LaplaceNoise(dimension=2, scale=1.0))
    10
    >>> public_grid(gd.noise.LaplaceNoise(dimension=2, scale=5000.0))
    0
    """
    variances = np.asarray(checked_noise(noise).variances())
    moving = variances[variances > 0]
    if not moving.size:
        raise ValueError(f"noise must have a coordinate of variance above 0, got {noise!r}")
    return grid_for(math.sqrt(float(moving.min())))


def grid_for(deviation: float) -> int:
    """The least k >= 0 with 2^-k at most 1/1024 of a standard deviation.

    `deviation` is a standard deviation of noise, above 0.

    Examples
    --------
    >>> from geomdp.noise.exact import grid_for
    >>> grid_for(1.0), grid_for(10.0), grid_for(10_000.0)
    (10, 7, 0)
    """
    return max(0, math.ceil(-math.log2(SHARE * deviation)))


# Scales that are proved to give a guarantee

#: Working precision, in bits, of ball arithmetic (a ball is a number with a bound on its error).
#: `gaussian_delta_ball` computes delta as a difference of two terms. The subtraction cancels only
#: few of the bits, so hundreds of correct bits remain.
DELTA_BITS = 512


def proved_gaussian_scale(squared: int, privacy: ZCDP | ApproxDP) -> float:
    """A float64 sigma for which N(0, sigma^2 I) noise is proved to give `privacy`.

    `squared` > 0 bounds ||v - v'||_2^2 for the noiseless vectors of neighbours. The parameters of
    `privacy` are taken as exact numbers. The result is `gaussian_scale`, enlarged if the proof
    needs it, usually by a few parts in 10^16.

    Examples
    --------
    >>> from fractions import Fraction
    >>> import geomdp as gd
    >>> from geomdp.noise.exact import proved_gaussian_scale
    >>> sigma = proved_gaussian_scale(2, gd.ZCDP(0.25))
    >>> round(sigma, 6)
    2.0

    The exact value of the float satisfies 2 rho sigma^2 >= 2:

    >>> 2 * Fraction(0.25) * Fraction(sigma) ** 2 >= 2
    True
    """
    scale = least = gaussian_scale(math.sqrt(squared), privacy)
    more = 2.0**-52
    while not _suffices(scale, squared, privacy):
        scale, more = least * (1 + more), 2 * more
    return scale


def _suffices(scale: float, squared: int, privacy: ZCDP | ApproxDP) -> bool:
    """Whether `scale` is proved to give `privacy`; False if the proof fails."""
    if isinstance(privacy, ZCDP):
        return 2 * Fraction(privacy.rho) * Fraction(scale) ** 2 >= squared
    with ctx.workprec(DELTA_BITS):
        found = gaussian_delta_ball(squared, scale, privacy.epsilon)
        return bool(found <= arb(privacy.delta))


def proved_shortcut_scale(change: int, privacy: ApproxDP, steps: int) -> float:
    """A float64 b that is proved to be at least change / `shortcut_step_epsilon`.

    If each of `steps` numbers changes by at most `change` > 0 between neighbours, Laplace noise of
    scale b on each of them gives `privacy` (GEN-2b). ``ValueError`` for an epsilon above 1.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.noise.exact import proved_shortcut_scale
    >>> round(proved_shortcut_scale(1, gd.ApproxDP(1.0, 1e-6), steps=10), 2)
    33.25
    """
    check_privacy(privacy, ApproxDP)
    scale = change / shortcut_step_epsilon(privacy, steps)
    with ctx.workprec(DELTA_BITS):
        squared = -8 * steps * arb(privacy.delta).log() * change**2 / arb(privacy.epsilon) ** 2
        while not arb(scale) ** 2 >= squared:
            scale = math.nextafter(scale, math.inf)
    return scale


def gaussian_delta_ball(squared: int, scale: float, epsilon: float) -> arb:
    """A ball with the `gaussian_delta` of N(0, scale^2 I), for a `squared` l2 sensitivity."""
    loss, theta = arb(epsilon), arb(squared).sqrt() / arb(scale)
    return _normal(theta / 2 - loss / theta) - loss.exp() * _normal(-theta / 2 - loss / theta)


def _normal(x: arb) -> arb:
    return (-x / arb(2).sqrt()).erfc() / 2
