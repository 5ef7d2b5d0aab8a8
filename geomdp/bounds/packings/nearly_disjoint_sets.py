"""Families of s-sets in which any two sets share few elements (JL-T24).

Uniform distributions on sets S and T of such a family differ by ||p_S - p_T||_2^2 = |S (+) T| / s^2
(symmetric difference).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from geomdp._typing import IntArray
from geomdp._validation import positive, whole
from geomdp.bounds.packings.reed_solomon import ReedSolomon

#: Relative and absolute error allowed to a difference of a few values of lgamma.
LGAMMA_ERROR = 1e-13


class SetFamily(Protocol):
    """A family of sets, known by numbers only."""

    @property
    def log_count(self) -> float:
        """ln of a lower bound on the number of sets."""

    @property
    def size(self) -> int:
        """Number of elements s of each set."""

    @property
    def difference(self) -> int:
        """Least size of the symmetric difference of two sets."""

    @property
    def log_universe(self) -> float:
        """ln of the number of elements that the sets are chosen from."""

    def document(self) -> dict[str, Any]:
        """The family as written to a certificate file."""


@dataclass(frozen=True)
class Singletons:
    """Sets of one element each.

    Parameters
    ----------
    log_count : float
        ln of their number, above 0.
    """

    log_count: float

    size = 1
    #: Two different single elements make up their symmetric difference.
    difference = 2

    def __post_init__(self) -> None:
        positive(self.log_count, "log_count")

    @property
    def log_universe(self) -> float:
        """ln of their number."""
        return self.log_count

    def document(self) -> dict[str, Any]:
        """The family as written to a certificate file."""
        return {"type": "singletons", "log_count": self.log_count}


@dataclass(frozen=True)
class GreedySets:
    """A maximal family of s-subsets of {1..N} that pairwise share at most s / 2 elements.

    With t = floor(s / 2) + 1, a set shares t or more elements with at most C(s, t) C(N - t, s - t)
    sets, so a maximal family has at least C(N, s) / (C(s, t) C(N - t, s - t)) = C(N, t) / C(s, t)^2
    of them. The family exists by this count; it is not listed.

    Parameters
    ----------
    universe : int
        N, at least s.
    size : int
        s.
    """

    universe: int
    size: int

    def __post_init__(self) -> None:
        whole(self.size, "size")
        whole(self.universe, "universe", minimum=self.size)

    @property
    def log_count(self) -> float:
        """ln(C(N, t) / C(s, t)^2), rounded down."""
        t = self.size // 2 + 1
        value, scale = _log_binomial(self.universe, t), _log_binomial(self.size, t)
        return value - 2 * scale - LGAMMA_ERROR * (1 + self.universe * math.log(self.universe + 1))

    @property
    def difference(self) -> int:
        """2 (s - floor(s / 2))."""
        return 2 * (self.size - self.size // 2)

    @property
    def log_universe(self) -> float:
        """ln N."""
        return math.log(self.universe)

    def document(self) -> dict[str, Any]:
        """The family as written to a certificate file."""
        return {"type": "greedy", "universe": self.universe, "size": self.size}


@dataclass(frozen=True)
class ReedSolomonSets:
    """The sets {(i, w_i) : i < s} over the words w of a Reed-Solomon code (q, s, t).

    The universe is s blocks of q elements, (i, a) being element i q + a. q^t sets; two of them
    share at most t - 1 elements.

    Parameters
    ----------
    code : ReedSolomon
        Words of length s.
    """

    code: ReedSolomon

    @property
    def log_count(self) -> float:
        """t ln q."""
        return self.code.log_count

    @property
    def size(self) -> int:
        """The length s."""
        return self.code.length

    @property
    def difference(self) -> int:
        """2 (s - t + 1)."""
        return 2 * self.code.differing

    @property
    def universe(self) -> int:
        """Number of elements s q."""
        return self.code.length * self.code.prime

    @property
    def log_universe(self) -> float:
        """ln(s q)."""
        return math.log(self.universe)

    def elements(self, words: IntArray) -> IntArray:
        """Element numbers of the sets of some `words` (b, s): (b, s)."""
        return words + self.code.prime * np.arange(self.size)

    def sets(self) -> IntArray:
        """All sets, as rows of element numbers (q^t, s); at most 2^20 of them."""
        return self.elements(self.code.words())

    def document(self) -> dict[str, Any]:
        """The family as written to a certificate file."""
        code = self.code
        return {
            "type": "reed-solomon",
            "prime": code.prime,
            "size": code.length,
            "degree": code.degree,
        }


def greedy_sets(universe: int, size: int, most: int | None = None) -> IntArray:
    """Sets of a greedy family as in `GreedySets`, listed in lexicographic order: (M, size).

    Parameters
    ----------
    universe, size : int
        N and s; all C(N, s) sets are examined unless `most` are found before.
    most : int or None
        Number of sets at which to stop.

    Returns
    -------
    (M, size) array
        Rows of element numbers 0..N-1. All of a maximal family if `most` is None.

    Notes
    -----
    O(C(N, s) M) intersections of machine words.
    """
    whole(universe, "universe", minimum=whole(size, "size"), maximum=64)
    kept: list[tuple[int, ...]] = []
    masks = np.zeros(0, dtype=np.uint64)
    for chosen in itertools.combinations(range(universe), size):
        mask = np.uint64(sum(1 << element for element in chosen))
        if len(masks) == 0 or 2 * int(np.bitwise_count(masks & mask).max()) <= size:
            kept.append(chosen)
            masks = np.append(masks, mask)
            if len(kept) == most:
                break
    return np.array(kept, dtype=np.int64)


def log_whole(log_count: float) -> float:
    """ln of the largest whole number M that is at most e^log_count: a packing has M sets.

    Beyond e^36 > 2^51 the two agree to float64. The relative margin keeps the count of a code,
    whose logarithm is known to 1e-15, from falling to the next lower whole number.
    """
    if log_count > 36:
        return log_count
    return math.log(max(1, math.floor(math.exp(log_count) * (1 + LGAMMA_ERROR))))


def _log_binomial(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
