"""Scales of noise that are proved to give a guarantee, for floats taken as exact numbers."""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, ctx

from geomdp.privacy import ZCDP, ApproxDP, shortcut_step_epsilon
from geomdp.privacy.calibration import gaussian_scale
from geomdp.privacy.definitions import check_privacy

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
