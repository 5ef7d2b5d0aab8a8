"""Families of s-sets in which any two sets share few elements (JL-T24).

Uniform distributions on sets S and T of such a family differ by ||p_S - p_T||_2^2 = |S (+) T| / s^2
(symmetric difference).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from geomdp._typing import IntArray
from geomdp._validation import positive
from geomdp.bounds.packings.reed_solomon import ReedSolomon

#: Relative error allowed to the number of words of a code, computed from its logarithm.
COUNT_ERROR = 1e-13


class SetFamily(Protocol):
    """A family of sets, given by a rule and not listed."""

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
class ReedSolomonSets:
    """The sets {(i, w_i) : i < s} over the words w of a Reed-Solomon code (q, s, t).

    The universe is s blocks of q elements; (i, a) is element i q + a. There are q^t sets, and two
    of them share at most t - 1 elements.

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
        """Element numbers (b, s) of the sets of some `words` (b, s)."""
        return words + self.code.prime * np.arange(self.size)

    def document(self) -> dict[str, Any]:
        """The family as written to a certificate file."""
        code = self.code
        return {
            "type": "reed-solomon",
            "prime": code.prime,
            "size": code.length,
            "degree": code.degree,
        }


def log_whole(log_count: float) -> float:
    """ln of the largest whole number M that is at most e^log_count: a packing has M sets.

    Beyond e^36 > 2^51 the two agree to float64. The relative margin keeps the count of a code,
    whose logarithm is known to 1e-15, from falling to the next lower whole number.
    """
    if log_count > 36:
        return log_count
    return math.log(max(1, math.floor(math.exp(log_count) * (1 + COUNT_ERROR))))
