"""Sizes and error bounds of sparse projection: rows, independence of the signs, error.

All logarithms are natural except where Corollary 4.7 needs base 2 (DISC-4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from geomdp._validation import positive, probability, whole
from geomdp.privacy import ApproxDP
from geomdp.privacy.definitions import check_privacy

#: Constant of the limited-independence Johnson-Lindenstrauss lemma: T >= 4 * 64^2 ln(1/tau) / s^2.
JL_CONSTANT = 4 * 64**2
#: Least number of rows: one 64-bit word of signs.
MIN_ROWS = 64
#: Largest number of rows of a summary: 2^24 numbers are 128 MB.
MAX_ROWS = 1 << 24


@dataclass(frozen=True)
class PaperSizes:
    """The sizes of Blum-Roth's Algorithm 2 (BR-PROJ).

    Parameters
    ----------
    failure : float
        tau = beta / (4k), the failure probability per inner product.
    distortion : float
        2 sqrt(m) / (m + n^2).
    rows : int
        T = ceil(4 * 64^2 ln(1/tau) / distortion^2), as the proof needs it.
    boxed_rows : int
        The larger T printed in the algorithm's box, by a factor 2 sqrt(m) (DISC-2).
    """

    failure: float
    distortion: float
    rows: int
    boxed_rows: int

    @property
    def runnable_rows(self) -> int:
        """The least power of two from `rows` on, for `SparseProject`: more rows distort less.

        Raises
        ------
        ValueError
            If it is above 2^24.
        """
        if self.rows > MAX_ROWS:
            raise ValueError(f"rows must be at most 2^24 to be run, the paper's are {self.rows}")
        return max(MIN_ROWS, 1 << (self.rows - 1).bit_length())


def paper_sizes(*, n: int, sparsity: int, queries: int, beta: float) -> PaperSizes:
    """Sizes for n records, k queries of sparsity m, and failure probability beta (BR-PROJ)."""
    n, m, k = whole(n, "n"), whole(sparsity, "sparsity"), whole(queries, "queries")
    tau = probability(beta, "beta") / (4 * k)
    distortion = 2 * math.sqrt(m) / (m + n**2)
    rows = JL_CONSTANT * math.log(1 / tau) / distortion**2
    return PaperSizes(tau, distortion, math.ceil(rows), math.ceil(rows * 2 * math.sqrt(m)))


def independence(*, rows: int, queries: int, beta: float) -> int:
    """The even r >= 2 log2(k T / (2 beta)) of Corollary 4.7, at least 4 (BR-PROJ)."""
    # The quotient itself may overflow for a tiny beta.
    log_failures = math.log2(2 * probability(beta, "beta"))
    needed = 2 * (math.log2(whole(queries, "queries") * rows) - log_failures)
    return max(4, 2 * math.ceil(needed / 2))


def feasible_rows(*, n: int, epsilon: float) -> int:
    """A power of two T near eps^2 n^2, where the distortion balances the noise, within limits.

    The noise in an answer does not depend on T while the distortion falls as 1 / sqrt(T), so more
    rows than (eps n)^2 gain nothing (BR-PROJ). At least 2^6 and at most 2^16; pass `rows`
    explicitly for more.
    """
    target = math.log2(positive(epsilon, "epsilon") * whole(n, "n")) * 2
    return 1 << min(max(math.ceil(target), MIN_ROWS.bit_length() - 1), 16)


def coefficient_bound(*, sparsity: int, rows: int, queries: int, beta: float) -> float:
    """4 sqrt(m log2(k T / (2 beta)) / T), which no |Qhat_i| exceeds w.p. 1 - beta (C4.7)."""
    logs = math.log2(whole(queries, "queries") * rows / (2 * probability(beta, "beta")))
    return 4 * math.sqrt(whole(sparsity, "sparsity") * logs / rows)


def laplace_sum_tail(*, bound: float, scale: float, rows: int, deviation: float) -> float:
    """Bound on Pr[|sum q_i Y_i| >= deviation], Y_i ~ Lap(scale) iid, |q_i| <= bound (L4.8).

    With a = deviation / bound: exp(-a^2 / (6 T b^2)) for a <= T b, else exp(-a / (6 b)).
    """
    a = positive(deviation, "deviation") / positive(bound, "bound")
    if a <= rows * scale:
        return math.exp(-(a**2) / (6 * rows * scale**2))
    return math.exp(-a / (6 * scale))


def paper_accuracy(privacy: ApproxDP, *, n: int, sparsity: int, queries: int, beta: float) -> float:
    """Theorem 4.9 with its constant: the error of all k answers w.p. 1 - beta, add/remove.

    (1/n) (sqrt(m) + (16 sqrt(3) / eps) sqrt(m ln(4k/beta) ln(1/delta)
    (log2(2k/beta) + log2 T))), with Laplace noise and the paper's T.
    """
    check_privacy(privacy, ApproxDP)
    rows = paper_sizes(n=n, sparsity=sparsity, queries=queries, beta=beta).rows
    logs = (
        math.log(4 * queries / beta)
        * math.log(1 / privacy.delta)
        * (math.log2(2 * queries / beta) + math.log2(rows))
    )
    noise = 16 * math.sqrt(3) / privacy.epsilon * math.sqrt(sparsity * logs)
    return (math.sqrt(sparsity) + noise) / n
