"""SparseProject: sparse queries answered from a noisy random projection (BR-PROJ)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import whole
from geomdp.bounds.upper.sparse_projection import (
    MAX_ROWS,
    MIN_ROWS,
    feasible_rows,
    independence,
)
from geomdp.mechanisms.protocol import release_once, source_and_record
from geomdp.mechanisms.sparse.elements import ElementEncoding, IntegerElements
from geomdp.mechanisms.sparse.hashing.signs import HashedSigns
from geomdp.mechanisms.sparse.sparse_summary import SparseSummary
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Exact, Guarantee, shortcut_step_epsilon
from geomdp.privacy.calibration import gaussian_scale
from geomdp.privacy.ledger import Ledger
from geomdp.workloads.universe.open_universe import Elements, OpenUniverse

#: Number of records that are read and counted at a time.
COUNT_ROWS = 1 << 16


@dataclass(frozen=True)
class GaussianRows:
    """Gaussian noise on all T rows at once.

    It is scaled to the l2 sensitivity of the projection, which does not depend on T.
    """

    def sigma(self, privacy: ApproxDP | ZCDP, sensitivity: float, rows: int) -> float:
        """Standard deviation of the noise on each row; `sensitivity` is in l2, of all rows."""
        del rows
        return gaussian_scale(sensitivity, privacy)

    def draw(self, rng: np.random.Generator, sigma: float, rows: int) -> FloatArray:
        """Noise (rows,)."""
        return sigma * rng.standard_normal(rows)


@dataclass(frozen=True)
class LaplaceRows:
    """Laplace noise on every row, composed over the T rows, as in the paper.

    With l2 sensitivity s of the whole vector, each row has sensitivity s / sqrt(T). Laplace noise
    of scale s sqrt(8 ln(1/delta)) / eps makes each row eps / sqrt(8 T ln(1/delta))-DP, and the T
    rows together (eps, delta)-DP (GEN-2b), for eps at most 1.
    """

    def sigma(self, privacy: ApproxDP | ZCDP, sensitivity: float, rows: int) -> float:
        """Standard deviation of the noise on each row: sqrt(2) times the Laplace scale.

        ``ValueError`` for ZCDP, and for eps above 1.
        """
        if not isinstance(privacy, ApproxDP):
            raise ValueError(f"privacy must be ApproxDP for LaplaceRows, got {privacy}")
        step = shortcut_step_epsilon(privacy, rows)
        return math.sqrt(2) * sensitivity / math.sqrt(rows) / step

    def draw(self, rng: np.random.Generator, sigma: float, rows: int) -> FloatArray:
        """Noise (rows,)."""
        return rng.laplace(0.0, sigma / math.sqrt(2), size=rows)


class SparseProject:
    """Release A D + noise for a random sign matrix A, and answer queries from that.

    D is the histogram of the records over an open universe. A is a matrix of T rows, with a column
    for each element of the universe and entries +-T^(-1/2) of limited independence; a hash key
    stands for it. The answer to a query Q of sparsity m is <A Q, A D + noise> / n. It takes
    O(m T / 64) hash evaluations, and only the released vector and the key (Blum-Roth, Algorithm 2;
    BR-PROJ).

    Every column of A has norm exactly 1. For any key, the l2 sensitivity of A D is therefore 1
    under add/remove and at most 2 under replace-one. Privacy does not depend on the independence of
    the entries of A; only accuracy does.

    Privacy: the (eps, delta)-DP or rho-zCDP of `privacy`, by Gaussian noise on the whole vector or
    by Laplace noise composed over its rows, in real arithmetic.

    Parameters
    ----------
    n : int
        Number of records; under add/remove the declared public normaliser.
    sparsity : int
        Largest sparsity m of a query.
    queries : int
        Number k of queries for which the independence of A is chosen.
    privacy : ApproxDP or ZCDP
        The guarantee of one release.
    rows : int, optional
        Number of rows T, a power of two from 2^6 to 2^24; by default `feasible_rows`.
    beta : float
        Failure probability for which the independence of A is chosen, 0 < beta < 1.
    noise : GaussianRows or LaplaceRows, optional
        The noise; by default Gaussian noise, which is smaller.
    encoding : ElementEncoding
        Map from elements to columns; by default elements are whole numbers.
    adjacency : Adjacency
        The neighbour relation.
    rng : Generator, int or None
        Source of the public hash key, which is drawn once, by the constructor.

    Raises
    ------
    ValueError
        For parameters out of range.
    """

    def __init__(
        self,
        *,
        n: int,
        sparsity: int,
        queries: int,
        privacy: ApproxDP | ZCDP,
        rows: int | None = None,
        beta: float = 0.05,
        noise: GaussianRows | LaplaceRows | None = None,
        encoding: ElementEncoding | None = None,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        rng: RandomState = None,
    ) -> None:
        if not isinstance(privacy, ApproxDP | ZCDP):
            raise ValueError(f"privacy must be ApproxDP or ZCDP, got {privacy}")
        self.n = whole(n, "n")
        self.sparsity = whole(sparsity, "sparsity")
        if rows is None:
            loss = privacy.epsilon if isinstance(privacy, ApproxDP) else math.sqrt(2 * privacy.rho)
            rows = feasible_rows(n=self.n, epsilon=loss)
        rows = whole(rows, "rows", minimum=MIN_ROWS, maximum=MAX_ROWS)
        wanted = independence(rows=rows, queries=queries, beta=beta)
        self.noise = noise if noise is not None else GaussianRows()
        self.encoding = encoding if encoding is not None else IntegerElements()
        sensitivity = 2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0
        self.sigma = self.noise.sigma(privacy, sensitivity, rows)
        self.signs = HashedSigns.draw(rows, wanted, np.random.default_rng(rng))
        self.guarantee = Guarantee(privacy, adjacency, Exact())

    def __repr__(self) -> str:
        return (
            f"SparseProject(n={self.n}, sparsity={self.sparsity}, rows={self.signs.rows}, "
            f"{self.guarantee.privacy}, {self.guarantee.adjacency.value})"
        )

    def release(
        self,
        records: Elements,
        rng: RandomState = None,
        *,
        ledger: Ledger | None = None,
    ) -> SparseSummary:
        """The private summary of `records`, which are elements as in `OpenUniverse`.

        Parameters are those of `Mechanism.release`. If the encoding does not accept an element, a
        ``ValueError`` is raised before the ledger pays.
        """
        generator, guarantee = source_and_record(rng, self.guarantee)

        def draw(_: None, vector: FloatArray) -> SparseSummary:
            return SparseSummary(
                vector=vector + self.noise.draw(generator, self.sigma, self.signs.rows),
                signs=self.signs,
                n=self.n,
                sparsity=self.sparsity,
                sigma=self.sigma,
                encoding=self.encoding,
                guarantee=guarantee,
            )

        return release_once(
            type(self).__name__,
            self.n,
            guarantee,
            ledger,
            set_up=lambda: None,  # the constructor leaves nothing to set up
            read=lambda: self._projected(records),
            draw=draw,
        )

    def _projected(self, records: Elements) -> tuple[int, FloatArray]:
        """Number of records, and the exact projection A D (T,) of their histogram."""
        counts: Counter[Hashable] = Counter()
        for chunk in OpenUniverse().chunks(records, COUNT_ROWS):
            counts.update(chunk.tolist())
        numbers = self.encoding.encode(counts)
        weights = np.fromiter(counts.values(), dtype=np.float64, count=len(counts))
        return counts.total(), self.signs.project(numbers, weights)
