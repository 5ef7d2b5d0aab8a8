"""Packings for marginals from Hadamard blocks and codes (Nikolov 2022, Theorem 25; JL-T25).

The queries are conjunctions of l of d attributes, split into l - 1 parts of d' attributes (a power
of two) and a last part. Let h_1..h_J be the J = d' - 1 non-constant columns of Sylvester's d' x d'
Hadamard matrix, and v_j = (1 + h_j) / 2. The data set X_f of a function f has one record for each
of the first s tuples j of column numbers: (v_{j_1}, ..., v_{j_{l-1}}, f(j)). By the proof in
`geomdp.bounds.checker.marginals`,

    ||Q(X_f) - Q(X_g)||_2 >= (1/s) 2^-(l-1) d'^((l-1)/2) (sum_j ||f(j) - g(j)||^2)^(1/2).

f(j) is B words of a binary code with minimum distance D, and then 0. The s B words encode a word of
a Reed-Solomon code, whose words differ in at least c symbols. So the sum over j is at least c D.
The paper takes B = 1; a search can find binary codes of shorter words.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import hadamard

from geomdp._typing import IntArray
from geomdp._validation import require_type, whole
from geomdp.bounds.certificates.rung import MARGIN, PackingFamily
from geomdp.bounds.certificates.workloads import workload_subject
from geomdp.bounds.metrics import Metric, WorstCase
from geomdp.bounds.packings.binary_codes import LinearCode
from geomdp.bounds.packings.listed import Packing
from geomdp.bounds.packings.reed_solomon import ReedSolomon
from geomdp.workloads import Marginals


@dataclass(frozen=True, eq=False)
class MarginalBlocks(PackingFamily):
    """Data sets for monotone conjunctions of l of d attributes, from Hadamard blocks and codes.

    The first l - 1 parts of each record are columns of a Hadamard matrix, as 0/1 vectors. The last
    part has B words of `code`, which distinguish the data sets: there is one for each word of
    `functions`, given by this rule and not listed. The module has the construction and the
    notation.

    Parameters
    ----------
    attributes, width : int
        Numbers of attributes: d in all, and l >= 2 in a conjunction.
    part : int
        Number of attributes d' of each of the first l - 1 parts: a power of two, at least 2, with
        (l - 1) d' < d.
    code : LinearCode
        Binary code with words of at most d - (l - 1) d' bits; B of them fit in the last part.
    functions : ReedSolomon
        Code of length s B for some s <= (d' - 1)^(l - 1), over a field of q symbols. `code` must
        have at least q words. Symbol a is written as word number a of `code`. Symbols i B to
        (i + 1) B - 1 of a word of `functions` give the value of f at tuple i.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> code = gd.bounds.greedy_code(4, 2)
    >>> functions = gd.bounds.ReedSolomon(prime=3, length=3, degree=1)
    >>> blocks = gd.bounds.MarginalBlocks(8, width=2, part=4, code=code, functions=functions)
    >>> blocks
    MarginalBlocks(Marginals(d=8, k=2), part=4, LinearCode(4 words of 4 bits, distance 2))
    >>> blocks.size
    3
    >>> round(blocks.separation(gd.bounds.MeanL2()), 4)
    0.1543
    """

    attributes: int
    width: int
    part: int
    code: LinearCode
    functions: ReedSolomon

    def __repr__(self) -> str:
        return f"MarginalBlocks({self.workload!r}, part={self.part}, {self.code!r})"

    def __post_init__(self) -> None:
        require_type(self.code, LinearCode, "code")
        require_type(self.functions, ReedSolomon, "functions")
        whole(self.attributes, "attributes")
        whole(self.width, "width", minimum=2, maximum=self.attributes)
        whole(self.part, "part", minimum=2)
        if self.part & (self.part - 1):
            raise ValueError(f"part must be a power of two, got {self.part}")
        whole(self.rest, "attributes of the last part", minimum=self.code.length)
        if self.functions.length % self.words_each:
            raise ValueError(
                f"functions must have a length divisible by {self.words_each} (words per record), "
                f"got {self.functions.length}"
            )
        whole(self.size, "number of records", maximum=(self.part - 1) ** (self.width - 1))
        whole(self.functions.prime, "symbols", maximum=self.code.count)

    @property
    def rest(self) -> int:
        """Number of attributes d - (l - 1) d' of the last part."""
        return self.attributes - (self.width - 1) * self.part

    @cached_property
    def words_each(self) -> int:
        """Number of words B in the last part of a record."""
        return self.rest // self.code.length

    @property
    def workload(self) -> Marginals:
        """Monotone conjunctions of l of the d attributes."""
        return Marginals(self.attributes, self.width)

    @property
    def subject(self) -> object:
        return workload_subject(self.workload)

    @property
    def log_others(self) -> float:
        """ln(q^t - 1) for the q^t words of `functions`, which has degree t."""
        return self.functions.log_others

    @property
    def size(self) -> int:
        return self.functions.length // self.words_each

    def separation(self, metric: Metric) -> float:
        """2^-(l-1) d'^((l-1)/2) sqrt(c D / k) / s for k = C(d, l) queries, rounded down.

        For `WorstCase`, k is the number of queries that take one attribute of each part: their
        largest difference is at least the root mean square.
        """
        others = self.width - 1
        square = self.functions.differing * self.code.distance * (self.part / 4) ** others
        worst = isinstance(metric, WorstCase)
        block = self.part**others * self.rest
        queries = block if worst else math.comb(self.attributes, self.width)
        return math.sqrt(square / queries) / self.size * (1 - MARGIN)

    def tuples(self) -> IntArray:
        """The first s tuples of column numbers 0..J-1, as rows. The last entry varies fastest."""
        columns = self.part - 1
        places = columns ** np.arange(self.width - 2, -1, -1)
        return np.arange(self.size)[:, None] // places % columns

    def records(self, words: IntArray) -> IntArray:
        """Records (b, s, d) of the data sets that some `words` (b, s B) of `functions` define."""
        blocks = (1 + hadamard(self.part, dtype=np.int64)[:, 1:].T) // 2
        first = blocks[self.tuples()].reshape(self.size, -1)
        last = self.code.words(words.ravel()).reshape(len(words), self.size, -1)
        unused = np.zeros((*last.shape[:2], self.rest - last.shape[2]), dtype=np.int64)
        heads = np.broadcast_to(first, (len(words), *first.shape))
        return np.concatenate([heads, last, unused], axis=2)

    def packing(self, words: IntArray) -> Packing:
        """The data sets that some `words` (b, s B) of `functions` define, as a listed packing."""
        records = self.records(words).reshape(-1, self.attributes)
        elements, rows = np.unique(records, axis=0, return_inverse=True)
        return Packing(self.workload, elements, rows.reshape(len(words), -1), "marginal blocks")

    def document(self) -> dict[str, Any]:
        return {
            "type": "marginal blocks",
            "attributes": self.attributes,
            "width": self.width,
            "part": self.part,
            "generators": self.code.generators,
            "symbols": self.functions.prime,
            "length": self.functions.length,
            "degree": self.functions.degree,
        }
