"""Families of sets with s elements each. Any two sets of a family share few elements (JL-T24)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from geomdp._typing import IntArray
from geomdp._validation import positive, require_type
from geomdp.bounds.packings.reed_solomon import ReedSolomon

#: Relative error allowed in a number of sets that is computed from its logarithm.
COUNT_ERROR = 1e-13


@runtime_checkable
class SetFamily(Protocol):
    """A family of sets, given by a rule because it is too large for a list."""

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
        """ln of the number of elements of the universe from which the sets are chosen."""

    def document(self) -> dict[str, Any]:
        """The family as written to a certificate file."""


@dataclass(frozen=True)
class Singletons:
    """Sets of one element each.

    Parameters
    ----------
    log_count : float
        ln of the number of sets, above 0.

    Examples
    --------
    >>> import math
    >>> import geomdp as gd
    >>> sets = gd.bounds.Singletons(math.log(1000))
    >>> sets.size, sets.difference
    (1, 2)
    >>> packing = gd.bounds.RandomSignSets(500, sets)
    >>> round(packing.separation(gd.bounds.MeanL2()), 3)
    1.109
    """

    log_count: float

    size = 1
    #: The symmetric difference of two different sets of one element holds both elements.
    difference = 2

    def __post_init__(self) -> None:
        positive(self.log_count, "log_count")

    @property
    def log_universe(self) -> float:
        return self.log_count

    def document(self) -> dict[str, Any]:
        return {"type": "singletons", "log_count": self.log_count}


@dataclass(frozen=True)
class ReedSolomonSets:
    """The sets {(i, w_i) : i < s}, one for each word w of a Reed-Solomon code.

    The code has length s and degree t over a field of q elements. The universe has s blocks of q
    elements each. The pair (i, a) is element number i q + a. There are q^t sets, and any two sets
    share at most t - 1 elements.

    Parameters
    ----------
    code : ReedSolomon
        The code, with s q below 2^63.

    Examples
    --------
    >>> import geomdp as gd
    >>> sets = gd.bounds.ReedSolomonSets(gd.bounds.ReedSolomon(prime=5, length=3, degree=1))
    >>> sets.elements(sets.code.words())
    array([[ 0,  5, 10],
           [ 1,  6, 11],
           [ 2,  7, 12],
           [ 3,  8, 13],
           [ 4,  9, 14]])
    >>> sets.difference
    6
    """

    code: ReedSolomon

    def __post_init__(self) -> None:
        require_type(self.code, ReedSolomon, "code")
        if self.universe >= 2**63:
            raise ValueError(
                f"code must have fewer than 2^63 element numbers s q, got {self.universe}"
            )

    @property
    def log_count(self) -> float:
        """ln of the number of sets, t ln q."""
        return self.code.log_count

    @property
    def size(self) -> int:
        return self.code.length

    @property
    def difference(self) -> int:
        """Least size 2 (s - t + 1) of the symmetric difference of two sets."""
        return 2 * self.code.differing

    @property
    def universe(self) -> int:
        """Number of elements s q."""
        return self.code.length * self.code.prime

    @property
    def log_universe(self) -> float:
        return math.log(self.universe)

    def elements(self, words: IntArray) -> IntArray:
        """Element numbers (b, s) of the sets that the rows of `words` (b, s) define."""
        return words + self.code.prime * np.arange(self.size)

    def document(self) -> dict[str, Any]:
        code = self.code
        return {
            "type": "reed-solomon",
            "prime": code.prime,
            "size": code.length,
            "degree": code.degree,
        }


def log_whole(log_count: float) -> float:
    """ln M, where M is e^`log_count` rounded down to a whole number."""
    if log_count > 36:
        return log_count
    count = math.exp(log_count)
    # Without the share, a rounding error could lower a whole number of words by one. With the limit
    # 1/2, M sets do not have more pairs than the e^(2 log_count) / 2 of the union bound.
    return math.log(max(1, math.floor(count + min(COUNT_ERROR * count, 0.5))))
