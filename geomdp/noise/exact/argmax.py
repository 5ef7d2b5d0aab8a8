"""The exponential mechanism for exact scores: decided in float64 with a margin, else in balls."""

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
    """An index with probability proportional to exp(scores[i] / scale), for floats as they are."""
    values = scores.tolist()
    return exact_argmax(scores, np.zeros(len(scores)), values.__getitem__, scale, entropy)


def exact_argmax(
    near: FloatArray,
    errors: FloatArray,
    exact: Callable[[int], ExactNumber],
    scale: float,
    entropy: Entropy | None = None,
) -> int:
    """An index with probability proportional to exp(exact(i) / scale): by Gumbel-max.

    The largest score / scale - ln E, with E exponential: -ln E is a Gumbel variable.

    Parameters
    ----------
    near : (k,) array
        Floats near the scores.
    errors : (k,) array
        Bounds on their distances from the scores.
    exact : callable
        Index -> the score itself; called for all of them where float64 leaves two candidates.
    scale : float
        Taken as the dyadic rational that it is.
    entropy : callable, optional
        Source of random bytes; by default `os.urandom`. Anything else is for tests.
    """

    def largest(draw: Draw) -> int:
        unit = arb(scale)
        spread = exponentials(len(near), draw)
        keys = [exact_ball(exact(i)) / unit - e.log() for i, e in enumerate(spread)]
        best = 0
        for i, key in enumerate(keys):
            # Middles are compared as they are: as floats, those of large scores could be equal.
            if key.mid() > keys[best].mid():
                best = i
        if all(i == best or key < keys[best] for i, key in enumerate(keys)):
            return best
        raise Undecided

    return refined(largest, entropy, partial(_by_floats, near, errors, scale))


def _by_floats(near: FloatArray, errors: FloatArray, scale: float, bits: UniformBits) -> int:
    """The same index, from the first word of each number; `Undecided` if two keys overlap.

    E = -ln u is off by at most o; ln E then by at most o / (E - o) and the error of
    `near_log`. A sum of two terms adds half a unit in the last place of each and of itself.
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
        # False for NaN, which only balls can decide.
        if (rivals < lowest[best]).all():
            return best
    raise Undecided
