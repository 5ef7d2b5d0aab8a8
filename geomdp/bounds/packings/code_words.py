"""Packings of data sets with one record each, for 1-way marginals: words of a code (JL-T25)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from geomdp._typing import IntArray
from geomdp._validation import require_type, whole
from geomdp.bounds.certificates.rung import MARGIN, PackingFamily
from geomdp.bounds.certificates.workloads import workload_subject
from geomdp.bounds.metrics import Metric, WorstCase
from geomdp.bounds.packings.binary_codes import LinearCode
from geomdp.bounds.packings.reed_solomon import ReedSolomon
from geomdp.workloads import Marginals


@dataclass(frozen=True, eq=False)
class CodeWords(PackingFamily):
    """Data sets of one record each. The records are words in {0, 1}^d of a concatenated code.

    The answers of a record to 1-way marginals are the record itself. Each symbol of a word of an
    outer Reed-Solomon code is written as a word of an inner binary code; the remaining attributes
    are 0. Two records differ in at least (outer distance) x (inner distance) attributes.

    Parameters
    ----------
    attributes : int
        Number d of attributes.
    outer : ReedSolomon
        Outer code of length L over a field of q symbols; q is at most the number of words of
        `inner`.
    inner : LinearCode
        Inner code with words of b bits, L b <= d. Symbol a is written as word number a.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> inner = gd.bounds.greedy_code(8, 4)
    >>> inner
    LinearCode(8 words of 8 bits, distance 4)
    >>> outer = gd.bounds.ReedSolomon(prime=7, length=2, degree=1)
    >>> packing = gd.bounds.CodeWords(16, outer, inner)
    >>> round(packing.separation(gd.bounds.MeanL2()), 4)
    0.7071
    >>> gd.bounds.certify([packing], epsilon=0.1, alpha=0.1)
    Bound(sc > 30, 0 assumptions)
    """

    attributes: int
    outer: ReedSolomon
    inner: LinearCode

    def __post_init__(self) -> None:
        require_type(self.outer, ReedSolomon, "outer")
        require_type(self.inner, LinearCode, "inner")
        whole(self.attributes, "attributes", minimum=self.outer.length * self.inner.length)
        whole(self.outer.prime, "symbols", maximum=self.inner.count)

    #: Number of records of a data set.
    size = 1

    def __repr__(self) -> str:
        return f"CodeWords({self.attributes} attributes, {self.outer!r}, {self.inner!r})"

    @property
    def subject(self) -> object:
        return workload_subject(Marginals(self.attributes, 1))

    @property
    def log_others(self) -> float:
        """ln(q^t - 1) for the q^t words of an outer code of degree t."""
        return self.outer.log_others

    def separation(self, metric: Metric) -> float:
        """sqrt(D / d), or 1 for `WorstCase`, minus a margin for rounding.

        Any two records differ in at least D = (outer distance) x (inner distance) attributes.
        """
        differing = self.outer.differing * self.inner.distance
        share = 1.0 if isinstance(metric, WorstCase) else differing / self.attributes
        return math.sqrt(share) * (1 - MARGIN)

    def records(self, words: IntArray) -> IntArray:
        """The records (w, d) of w words of the outer code, which are the rows of `words` (w, L)."""
        written = self.inner.words(words.ravel()).reshape(len(words), -1)
        return np.pad(written, ((0, 0), (0, self.attributes - written.shape[1])))

    def document(self) -> dict[str, Any]:
        return {
            "type": "code words",
            "attributes": self.attributes,
            "generators": self.inner.generators,
            "symbols": self.outer.prime,
            "length": self.outer.length,
            "degree": self.outer.degree,
        }
