"""The index of the largest noisy score, by float64 with error bounds or by ball arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from flint import arb

from geomdp._typing import FloatArray
from geomdp.noise.exact.laplace_numbers import ExactNumber, exact_ball
from geomdp.noise.exact.near import (
    LOG_ERROR,
    Near,
    NearVector,
    Words,
    minus_log,
    near_laplaces,
    near_log,
)
from geomdp.noise.exact.rounding import refined
from geomdp.noise.exact.uniforms import Draw, Entropy, Undecided, UniformBits
from geomdp.noise.exact.variates import Vector, exponentials, laplaces


@dataclass(frozen=True)
class Perturbation:
    """Independent noise of scale 1 on k scores: in balls, in float64 with bounds, and simulated."""

    balls: Callable[[int, Draw], Vector]
    near: Callable[[int], NearVector]
    sample: Callable[[np.random.Generator, int], FloatArray]


def _near_gumbels(count: int) -> NearVector:
    """Gumbel variables -ln E with E = -ln U, in float64 with error bounds.

    An error `off` of E causes one of at most off / (E - off), which is doubled here for rounding.
    """

    def evaluate(words: Words) -> Near:
        size, off = minus_log(words)
        errors = np.where(size > 2 * off, off / (size - off) * 2 + LOG_ERROR, np.inf)
        return -near_log(size), errors

    return NearVector(count, evaluate)


def _gumbels(count: int, draw: Draw) -> Vector:
    return [-value.log() for value in exponentials(count, draw)]


#: -ln E for exponential E. With this noise the choice is the exponential mechanism.
GUMBEL = Perturbation(_gumbels, _near_gumbels, lambda rng, k: rng.gumbel(size=k))
#: -ln U for uniform U.
EXPONENTIAL = Perturbation(
    exponentials,
    lambda count: NearVector(count, minus_log),
    lambda rng, k: rng.standard_exponential(k),
)
#: ln(U / V) for uniform U and V.
LAPLACE = Perturbation(
    laplaces, lambda count: near_laplaces(count, 1.0), lambda rng, k: rng.laplace(size=k)
)


def noisy_argmax(
    scores: FloatArray,
    scale: float,
    entropy: Entropy | None = None,
    *,
    perturbation: Perturbation = GUMBEL,
) -> int:
    """The index of the largest scores[i] + scale * noise; the floats are exact numbers."""
    values = scores.tolist()
    none = np.zeros(len(scores))
    return exact_argmax(scores, none, values.__getitem__, scale, entropy, perturbation=perturbation)


def exact_argmax(
    near: FloatArray,
    errors: FloatArray,
    exact: Callable[[int], ExactNumber],
    scale: float,
    entropy: Entropy | None = None,
    *,
    perturbation: Perturbation = GUMBEL,
) -> int:
    """The index of the largest exact(i) + scale * noise, decided exactly.

    `exact` is called for all indices if the floats `near` (k,), within `errors` (k,), do not
    decide. With Gumbel noise, index i has a probability proportional to exp(exact(i) / scale).
    """

    def largest(draw: Draw) -> int:
        unit = arb(scale)
        variables = perturbation.balls(len(near), draw)
        keys = [exact_ball(exact(i)) / unit + z for i, z in enumerate(variables)]
        best = 0
        for i, key in enumerate(keys):
            # Compare the exact midpoints. After rounding to floats, midpoints of large scores could
            # be equal.
            if key.mid() > keys[best].mid():
                best = i
        if all(i == best or key < keys[best] for i, key in enumerate(keys)):
            return best
        raise Undecided

    by_floats = partial(_by_floats, near, errors, scale, perturbation.near(len(near)))
    return refined(largest, entropy, by_floats)


def _by_floats(
    near: FloatArray, errors: FloatArray, scale: float, noise: NearVector, bits: UniformBits
) -> int:
    """The index of the largest score / scale + noise from first words, or `Undecided`."""
    with np.errstate(all="ignore"):
        values, off = noise.evaluate(bits.first_words(noise.count))
        shift = near / scale
        keys = shift + values
        rounding = 2.0**-51 * (np.abs(shift) + np.abs(values) + np.abs(keys)) + 2.0**-1000
        wrong = errors / scale * (1 + 2.0**-50) + off + rounding
        lowest = keys - wrong
        best = int(np.argmax(lowest))
        rivals = keys + wrong
        rivals[best] = -np.inf
        # The comparison is False for NaN. Then ball arithmetic decides.
        if (rivals < lowest[best]).all():
            return best
    raise Undecided
