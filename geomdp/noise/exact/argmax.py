"""The exponential mechanism for exact scores, by float64 with error bounds or ball arithmetic.

Float64 decides if the largest noisy score is ahead of all others by more than the error bounds.
Otherwise ball arithmetic (`arb`, intervals around the exact values) decides.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from flint import arb

from geomdp._typing import FloatArray
from geomdp.noise.exact.laplace_numbers import ExactNumber, exact_ball
from geomdp.noise.exact.near import LOG_ERROR, minus_log, near_log
from geomdp.noise.exact.rounding import refined
from geomdp.noise.exact.uniforms import Draw, Entropy, Undecided, UniformBits
from geomdp.noise.exact.variates import exponentials


def noisy_argmax(scores: FloatArray, scale: float, entropy: Entropy | None = None) -> int:
    """An index with probability proportional to exp(scores[i] / scale).

    The floats `scores` (k,) and `scale` stand for their exact values. See `exact_argmax`.
    """
    values = scores.tolist()
    return exact_argmax(scores, np.zeros(len(scores)), values.__getitem__, scale, entropy)


def exact_argmax(
    near: FloatArray,
    errors: FloatArray,
    exact: Callable[[int], ExactNumber],
    scale: float,
    entropy: Entropy | None = None,
) -> int:
    """An index with probability proportional to exp(exact(i) / scale), by the Gumbel-max method.

    It is the index i of the largest exact(i) / scale - ln E_i, where the E_i are independent
    exponential variables. -ln E_i is a Gumbel variable.

    Parameters
    ----------
    near : (k,) array
        Floats near the scores.
    errors : (k,) array
        Bounds on the distances of `near` from the scores.
    exact : callable
        Index -> exact score. Called for all indices if float64 does not decide.
    scale : float
        Above 0; stands for its exact value, a dyadic rational.
    entropy : callable, optional
        Source of random bytes; by default `os.urandom`. Other sources are for tests only.
    """

    def largest(draw: Draw) -> int:
        unit = arb(scale)
        spread = exponentials(len(near), draw)
        keys = [exact_ball(exact(i)) / unit - e.log() for i, e in enumerate(spread)]
        best = 0
        for i, key in enumerate(keys):
            # Compare the exact midpoints. Rounded to floats, midpoints of large scores could be
            # equal.
            if key.mid() > keys[best].mid():
                best = i
        if all(i == best or key < keys[best] for i, key in enumerate(keys)):
            return best
        raise Undecided

    return refined(largest, entropy, partial(_by_floats, near, errors, scale))


def _by_floats(near: FloatArray, errors: FloatArray, scale: float, bits: UniformBits) -> int:
    """The index of the largest key, from the first 62 bits of each uniform number.

    The key of index i is score / scale - ln E with E = -ln U. The computed E has an error of at
    most `off`, so ln E has one of at most off / (E - off), plus that of `near_log`. The two terms
    and their sum are rounded, each by at most half a unit in its last place.

    Raises
    ------
    Undecided
        If the error bounds of the largest key and of another one overlap.
    """
    with np.errstate(all="ignore"):
        size, off = minus_log(bits.first_words(len(near)))
        gumbel = -near_log(size)
        shift = near / scale
        keys = shift + gumbel
        rounding = 2.0**-51 * (np.abs(shift) + np.abs(gumbel) + np.abs(keys)) + 2.0**-1000
        wrong = errors / scale * (1 + 2.0**-50) + off / (size - off) * 2 + LOG_ERROR + rounding
        wrong = np.where(size > 2 * off, wrong, np.inf)
        lowest = keys - wrong
        best = int(np.argmax(lowest))
        rivals = keys + wrong
        rivals[best] = -np.inf
        # The comparison is False for NaN, so balls decide then.
        if (rivals < lowest[best]).all():
            return best
    raise Undecided
