"""Evaluation of polynomials over GF(2^64) at all points of an affine subspace.

The elements of GF(2^64) are the 64-bit words. Let V_j be the set of all words below 2^j. The
subspace polynomial s_j(x) = product over v in V_j of (x - v) is linear over GF(2), and constant on
every coset of V_j. Let s'_j = s_j / s_j(2^j), and let X_i be the product of the s'_j over all bits
j that are 1 in i. A butterfly network evaluates a polynomial of degree below 2^k, written in the
basis X_i, on a coset of V_k with (k/2) 2^k multiplications (Lin, Chung and Han 2014; X-GF).
"""

from __future__ import annotations

import numpy as np

from geomdp._numerics.compilation import numba
from geomdp._validation import whole
from geomdp.mechanisms.sparse.hashing.field import (
    FOLD,
    Words,
    fill_multiples,
    inverse,
    multiply,
    times,
)

#: Largest k. The values of a random polynomial of degree below 2^k are 2^k-wise independent. No
#: error bound of this library needs more than 2^12-wise independence.
MAX_LEVELS = 12


def subspace_maps(levels: int) -> Words:
    """The maps s'_0, ..., s'_(levels-1): entry (j, i) of the array (levels, 64) is s'_j(2^i)."""
    levels = whole(levels, "levels", minimum=0, maximum=MAX_LEVELS)
    values = np.uint64(1) << np.arange(64, dtype=np.uint64)
    maps = np.empty((levels, 64), dtype=np.uint64)
    for j in range(levels):
        pivot = values[j]
        scale = np.full(64, inverse(int(pivot)), dtype=np.uint64)
        maps[j] = multiply(scale, values)
        # s_0(x) = x and s_(j+1)(x) = s_j(x)^2 + s_j(2^j) s_j(x).
        values = multiply(values, values) ^ multiply(np.full(64, pivot), values)
    return maps


@numba.njit(cache=True)
def apply_map(images: Words, word: np.uint64) -> np.uint64:
    """The image of `word` under a GF(2)-linear map, given by its `images` (64,) of unit words."""
    result = np.uint64(0)
    for i in range(64):
        if (word >> np.uint64(i)) & np.uint64(1):
            result ^= images[i]
    return result


@numba.njit(cache=True)
def evaluate_on_coset(coefficients: Words, origin: Words, shifts: Words, out: Words) -> None:
    """Write the values of a polynomial at theta + v, for all words v below 2^k, to `out` (2^k,).

    `coefficients` (2^k,) are in the basis X_i, `origin` (k,) has all s'_j(theta), and `shifts`
    (k, 2^k) has all s'_j(v).
    """
    table = np.empty(16, dtype=np.uint64)
    fold = FOLD
    size = len(coefficients)
    out[:] = coefficients
    half = size >> 1
    level = len(origin) - 1
    while half > 0:
        for start in range(0, size, 2 * half):
            # s'_level is constant on theta + start + V_level. On the next coset of V_level, the
            # value is this constant plus 1.
            fill_multiples(origin[level] ^ shifts[level, start], table)
            for i in range(start, start + half):
                low = out[i] ^ times(table, out[i + half], fold)
                out[i + half] ^= low
                out[i] = low
        half >>= 1
        level -= 1
