"""An adversary that sees random data and the hypothesis of an update rule, and forces updates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from geomdp.workloads import DenseQuery, SparseQuery

#: Sparsity of sparse queries, and number of elements that carry data.
SPARSITY, ATOMS = 4, 32
#: Number of random queries that the adversary compares each time, and number of failures in a row
#: after which it gives up.
CANDIDATES, PATIENCE = 8, 30


class DenseStream:
    """Queries on a finite universe, given by their values on all elements.

    Parameters
    ----------
    size : int
        Universe size.
    rng : Generator
        Draws the data, which are far from uniform, and the queries.
    """

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self.data = rng.dirichlet(np.full(size, 0.1))
        self._rng = rng

    def candidates(self, hypothesis: Any) -> list[DenseQuery]:
        """Random 0/1 queries, and queries adapted to the hypothesis if it is given by a vector."""
        queries = [self._rng.integers(2, size=len(self.data)) for _ in range(CANDIDATES)]
        current = getattr(hypothesis, "distribution", getattr(hypothesis, "vector", None))
        if current is not None:
            heavier = self.data > current
            for share in (0.0, 0.2):
                flips = self._rng.random(len(self.data)) < share
                queries += [heavier ^ flips, ~heavier ^ flips]
        return [DenseQuery(np.asarray(values, dtype=float)) for values in queries]

    def truth(self, query: DenseQuery) -> float:
        """Mean of the query under the data."""
        return float(query.values @ self.data)


class SparseStream:
    """Sparse queries on a universe whose elements are not listed in advance.

    Parameters
    ----------
    rng : Generator
        Draws data on a few elements (atoms), and queries on atoms and on elements without data.
    """

    def __init__(self, rng: np.random.Generator) -> None:
        weights = np.sort(rng.dirichlet(np.full(ATOMS, 0.1)))[::-1]
        self.data = {f"atom {i}": float(weight) for i, weight in enumerate(weights)}
        self._rng = rng
        self._fresh = 0

    def candidates(self, hypothesis: Any) -> list[SparseQuery]:
        """Random queries, and queries on elements that the hypothesis over- or underrates most."""
        names = list(self.data)
        gaps = np.array([self.data[x] - hypothesis.weight(x) for x in names])
        order = np.argsort(gaps)
        supports = [[names[i] for i in order[-SPARSITY:]], [names[i] for i in order[:SPARSITY]]]
        for _ in range(CANDIDATES):
            supports.append([names[i] for i in self._rng.choice(ATOMS, SPARSITY - 1, False)])
            self._fresh += 1
            supports[-1].append(f"no data {self._fresh}")
        return [SparseQuery.counting(support) for support in supports]

    def truth(self, query: SparseQuery) -> float:
        """Mean of the query under the data."""
        return math.fsum(self.data.get(x, 0.0) for x in query.support)


def count_updates(hypothesis: Any, stream: DenseStream | SparseStream, alpha: float) -> int:
    """Number of updates that the adversary forces with the data and queries of a stream."""
    updates, idle = 0, 0
    while idle < PATIENCE:
        queries: Any = stream.candidates(hypothesis)
        gaps = np.array([stream.truth(q) - hypothesis.evaluate(q) for q in queries])
        # The rule learns least from the smallest gap that is large enough for an update.
        allowed = np.flatnonzero(np.abs(gaps) >= alpha)
        if len(allowed) == 0:
            idle += 1
            continue
        idle = 0
        chosen = allowed[np.argmin(np.abs(gaps[allowed]))]
        answer = stream.truth(queries[chosen]) - math.copysign(0.999 * alpha, gaps[chosen])
        hypothesis.update(queries[chosen], answer)
        updates += 1
    return updates
