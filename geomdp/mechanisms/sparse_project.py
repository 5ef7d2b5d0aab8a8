"""SparseProject: sparse queries answered from a noisy random projection (BR-PROJ)."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray, IntArray, RandomState
from geomdp._validation import require_type, whole
from geomdp.bounds.upper.theorems import MAX_ROWS, MIN_ROWS, feasible_rows, independence
from geomdp.mechanisms.base import quotients, release_once, source_and_record
from geomdp.mechanisms.sparse_summary import (
    ElementEncoding,
    HashedSigns,
    IntegerElements,
    SparseSummary,
)
from geomdp.noise import LaplaceNoise
from geomdp.noise.gaussian import isotropic, proved_gaussian_scale, proved_shortcut_scale
from geomdp.noise.rounding import Rounded, grid_for
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Exact, Guarantee, shortcut_step_epsilon
from geomdp.privacy.definitions import check_privacy, check_range, checked_adjacency, gaussian_scale
from geomdp.privacy.guarantees import rounded_arithmetic
from geomdp.privacy.ledger import Ledger
from geomdp.workloads.universes import Elements, OpenUniverse

# Noise on the T rows of the projection A D, in float64 or rounded.

#: The noise of this number of rows is drawn at a time. This bounds the memory: noise is drawn as
#: Python integers, which take 40 bytes each.
ROWS = 1 << 16


@dataclass(frozen=True)
class GaussianRows:
    """Gaussian noise on all T rows for the l2 sensitivity of the whole vector, independent of T.

    Examples
    --------
    >>> import geomdp as gd
    >>> noise = gd.mechanisms.GaussianRows()
    >>> round(noise.sigma(gd.ApproxDP(1.0, 1e-6), sensitivity=2.0, rows=64), 2)
    8.45
    """

    def sigma(self, privacy: ApproxDP | ZCDP, sensitivity: float, rows: int) -> float:
        """Standard deviation of the noise on a row, for the l2 `sensitivity` of all rows."""
        del rows
        return gaussian_scale(sensitivity, privacy)

    def draw(self, rng: np.random.Generator, sigma: float, rows: int) -> FloatArray:
        """Noise (rows,) in float64."""
        return sigma * rng.standard_normal(rows)

    def proved_scale(self, privacy: ApproxDP | ZCDP, change: int, rows: int) -> float:
        """Standard deviation that provably suffices if no row changes by more than `change`."""
        return proved_gaussian_scale(rows * change**2, privacy)

    def rounded(self, scale: float, rows: int) -> Rounded:
        """Correctly rounded noise on `rows` rows."""
        return Rounded([isotropic(rows, scale)], grid_for(scale))


@dataclass(frozen=True)
class LaplaceRows:
    """Laplace noise on every row, with privacy composed over the T rows, as in Blum and Roth.

    Let s be the l2 sensitivity of the whole vector. Entries of A have the same modulus, so each row
    has sensitivity s / sqrt(T). Laplace noise of scale s sqrt(8 ln(1/delta)) / eps makes each row
    eps / sqrt(8 T ln(1/delta))-DP. For eps at most 1 and delta below 1/2, the T rows together are
    then (eps, delta)-DP (GEN-2b).

    Examples
    --------
    >>> import geomdp as gd
    >>> noise = gd.mechanisms.LaplaceRows()
    >>> round(noise.sigma(gd.ApproxDP(1.0, 1e-6), sensitivity=2.0, rows=64), 2)
    29.74
    """

    def sigma(self, privacy: ApproxDP | ZCDP, sensitivity: float, rows: int) -> float:
        """Standard deviation on a row, sqrt(2) times the Laplace scale; `sensitivity` is s.

        ``ValueError`` for ZCDP, and for eps above 1.
        """
        step = shortcut_step_epsilon(_approximate(privacy), rows)
        return math.sqrt(2) * sensitivity / math.sqrt(rows) / step

    def draw(self, rng: np.random.Generator, sigma: float, rows: int) -> FloatArray:
        """Noise (rows,) in float64."""
        return rng.laplace(0.0, sigma / math.sqrt(2), size=rows)

    def proved_scale(self, privacy: ApproxDP | ZCDP, change: int, rows: int) -> float:
        """Laplace scale that provably suffices if no row changes by more than `change`."""
        return proved_shortcut_scale(change, _approximate(privacy), rows)

    def rounded(self, scale: float, rows: int) -> Rounded:
        """Correctly rounded noise on `rows` rows."""
        return Rounded.of(LaplaceNoise(rows, scale), grid_for(math.sqrt(2) * scale))


def _approximate(privacy: ApproxDP | ZCDP) -> ApproxDP:
    if not isinstance(privacy, ApproxDP):
        raise ValueError(f"privacy must be ApproxDP for LaplaceRows, got {privacy}")
    return privacy


class RoundedRows:
    """Correctly rounded noise on the whole numbers T^(1/2) A D (X-GRID), for T = `rows`.

    The entries of A are +-T^(-1/2). So for every choice of the signs, adding a record changes each
    entry of T^(1/2) A D by 1, and replacing a record by at most 2 (`change`).
    """

    def __init__(
        self, noise: GaussianRows | LaplaceRows, privacy: ApproxDP | ZCDP, change: int, rows: int
    ) -> None:
        self._rows = rows
        # T and ROWS are powers of two, so all parts have the same size and share this sampler.
        scale = noise.proved_scale(privacy, change, rows)
        self._part = noise.rounded(scale, min(rows, ROWS))
        self.grid = self._part.grid

    def draw(self) -> list[IntArray]:
        """Rounded noise in multiples of 2^-grid, in parts of at most 2^16 rows."""
        return [np.array(self._part.draw()) for _ in range(0, self._rows, ROWS)]

    def released(self, sums: FloatArray, noise: list[IntArray]) -> FloatArray:
        """A D with noise (T,): `sums`, T^(1/2) A D, plus a result of `draw`, over T^(1/2)."""
        parts = np.split(sums, list(range(ROWS, len(sums), ROWS)))
        noisy = [
            quotients(part, multiples.tolist(), 1 << self.grid, 1)
            for part, multiples in zip(parts, noise, strict=True)
        ]
        return np.asarray(np.concatenate(noisy) / math.sqrt(self._rows))


# The mechanism.

#: Number of records that are read and counted at a time.
COUNT_ROWS = 1 << 16


class SparseProject:
    """Release A D + noise for a random sign matrix A, and answer queries from the noisy vector.

    D is the histogram of the records over an open universe, which need not be listed. A is a matrix
    of T rows, with a column for each element of the universe and entries +-T^(-1/2) of limited
    independence. Only a hash key of A is stored. The answer to a query Q with at most m nonzero
    values is <A Q, A D + noise> / n. It needs only the released vector and the key, and takes
    O(m T / 64) hash evaluations (Blum-Roth, Algorithm 2; BR-PROJ).

    Privacy: the guarantee `privacy`. Every column of A has norm exactly 1. For any key, the l2
    sensitivity of A D is therefore 1 under add/remove and at most 2 under replace-one, so only
    accuracy depends on the independence of the entries of A. Gaussian noise on the whole vector
    gives (eps, delta)-DP or rho-zCDP, and Laplace noise on every row, composed over the rows,
    (eps, delta)-DP for eps at most 1. Without a seed, the claim also holds for the computed vector,
    because the noise on the whole numbers sqrt(T) A D is correctly rounded.

    ``ValueError`` for parameters out of range, and for Laplace noise with `ZCDP` or with epsilon
    above 1.

    Parameters
    ----------
    n, sparsity, queries : int
        Number of records (as for `AdditiveMechanism`), largest number m of elements that a query
        may list, and number k of queries, which with `beta` determines how independent the entries
        of A are.
    privacy : ApproxDP or ZCDP
        The guarantee of one release; epsilon or rho is from 1e-12 to 1e12.
    rows : int, optional
        Number of rows T, a power of two from 2^6 to 2^24; by default `feasible_rows`.
    beta : float
        Failure probability of the accuracy bound for all k queries, 0 < beta < 1.
    noise : GaussianRows or LaplaceRows, optional
        The noise; by default Gaussian noise, which is smaller.
    encoding : ElementEncoding
        Map from elements to columns; by default elements are whole numbers.
    adjacency, rng : Adjacency, Generator or int
        Neighbour relation; source of the public hash key, which the constructor draws once.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> mechanism = gd.SparseProject(
    ...     n=100_000, sparsity=1, queries=100, privacy=gd.ApproxDP(1.0, 1e-6), rows=256, rng=0
    ... )
    >>> records = np.array([7] * 60_000 + [8] * 40_000)
    >>> summary = mechanism.release(records, rng=1)  # a simulation: the seed voids privacy
    >>> answer = summary.answer(gd.workloads.SparseQuery([7], [1.0]))
    >>> round(answer.value, 2), round(answer.noise_std, 4)
    (0.6, 0.0001)
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
        check_privacy(privacy, ApproxDP, ZCDP)
        check_range(privacy)
        checked_adjacency(adjacency)
        self.n = whole(n, "n")
        self.sparsity = whole(sparsity, "sparsity")
        if rows is None:
            loss = privacy.epsilon if isinstance(privacy, ApproxDP) else math.sqrt(2 * privacy.rho)
            rows = feasible_rows(n=self.n, epsilon=loss)
        rows = whole(rows, "rows", minimum=MIN_ROWS, maximum=MAX_ROWS)
        wanted = independence(rows=rows, queries=queries, beta=beta)
        self.noise = noise if noise is not None else GaussianRows()
        if not isinstance(self.noise, GaussianRows | LaplaceRows):
            raise ValueError(
                f"noise must be GaussianRows or LaplaceRows, got {type(noise).__name__}"
            )
        self.encoding = encoding if encoding is not None else IntegerElements()
        require_type(self.encoding, ElementEncoding, "encoding")
        change = 2 if adjacency is Adjacency.REPLACE_ONE else 1
        self.sigma = self.noise.sigma(privacy, float(change), rows)
        self._rounded = RoundedRows(self.noise, privacy, change, rows)
        self.signs = HashedSigns.draw(rows, wanted, np.random.default_rng(rng))
        arithmetic = rounded_arithmetic(self.grid)
        self.guarantee = Guarantee(privacy, adjacency, Exact(), arithmetic)

    def __repr__(self) -> str:
        return (
            f"SparseProject(n={self.n}, sparsity={self.sparsity}, rows={self.signs.rows}, "
            f"{self.guarantee.privacy}, {self.guarantee.adjacency.value})"
        )

    @property
    def grid(self) -> int:
        """Unseeded releases round noise correctly to multiples of 2^-grid, in units of T^(-1/2).

        In these units A D is a vector of whole numbers.
        """
        return self._rounded.grid

    def release(
        self, records: Elements, rng: RandomState = None, *, ledger: Ledger | None = None
    ) -> SparseSummary:
        """The private summary of `records`, elements as in `OpenUniverse`; see `Mechanism.release`.

        If the encoding does not accept an element, a ``ValueError`` is raised before the ledger is
        charged.
        """
        generator, guarantee = source_and_record(rng, self.guarantee)

        def draw(_: None, sums: FloatArray) -> SparseSummary:
            if rng is None:
                vector = self._rounded.released(sums, self._rounded.draw())
            else:
                noise = self.noise.draw(generator, self.sigma, self.signs.rows)
                vector = np.asarray(sums / math.sqrt(self.signs.rows) + noise)
            return SparseSummary(
                vector=vector,
                signs=self.signs,
                n=self.n,
                sparsity=self.sparsity,
                sigma=self.sigma,
                encoding=self.encoding,
                guarantee=guarantee,
            )

        def read() -> tuple[int, FloatArray]:
            return self._sums(records)

        return release_once(self, guarantee, ledger, set_up=lambda: None, read=read, draw=draw)

    def _sums(self, records: Elements) -> tuple[int, FloatArray]:
        """Number of records, and the whole numbers sqrt(T) A D (T,) for their histogram D."""
        counts: Counter[int] = Counter()
        for chunk in OpenUniverse().chunks(records, COUNT_ROWS):
            # Encode before counting: a counter takes 1.0 for the element 1, but the encoding
            # refuses it.
            counts.update(self.encoding.encode(chunk.tolist()).tolist())
        numbers = np.fromiter(counts, dtype=np.int64, count=len(counts))
        weights = np.fromiter(counts.values(), dtype=np.float64, count=len(counts))
        return counts.total(), self.signs.signed_sums(numbers, weights)
