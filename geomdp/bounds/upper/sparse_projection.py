"""Sizes and error bounds of sparse projection: rows, independence of the signs, error.

A random matrix with T rows of signs projects k queries of sparsity m and the histogram of n
records. The algorithm, lemmas and theorems named here are from Blum and Roth. Logarithms are
natural, except those to base 2 in Corollary 4.7 and Theorem 4.9 (DISC-4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from geomdp._validation import positive, probability, whole
from geomdp.privacy import ApproxDP
from geomdp.privacy.definitions import check_privacy

#: Constant of the Johnson-Lindenstrauss lemma for signs of limited independence. The lemma needs
#: T >= 4 * 64^2 ln(1/tau) / s^2 rows for distortion s with failure probability tau.
JL_CONSTANT = 4 * 64**2
#: Least number of rows: the signs of a column fill at least one 64-bit word.
MIN_ROWS = 64
#: Largest number of rows of a summary: 2^24 numbers are 128 MB.
MAX_ROWS = 1 << 24


@dataclass(frozen=True)
class PaperSizes:
    """The sizes in Algorithm 2 of Blum and Roth (BR-PROJ).

    Parameters
    ----------
    failure : float
        tau = beta / (4k), the failure probability allowed for each inner product. The whole run may
        fail with probability beta.
    distortion : float
        s = 2 sqrt(m) / (m + n^2), the relative distortion allowed for the projection.
    rows : int
        T = ceil(4 * 64^2 ln(1/tau) / distortion^2), which is enough for the proof.
    boxed_rows : int
        The T printed in the box of the algorithm. It is 2 sqrt(m) times as large as `rows`, up to
        rounding (DISC-2).

    Examples
    --------
    >>> import geomdp as gd
    >>> sizes = gd.bounds.upper.paper_sizes(n=4, sparsity=4, queries=10, beta=0.05)
    >>> sizes.rows, sizes.runnable_rows
    (2738017, 4194304)
    >>> sizes.boxed_rows
    10952068
    """

    failure: float
    distortion: float
    rows: int
    boxed_rows: int

    @property
    def runnable_rows(self) -> int:
        """The least power of two that is at least `rows` and 64; ``ValueError`` if `rows` > 2^24.

        `SparseProject` needs a power of two, and more rows distort less.
        """
        if self.rows > MAX_ROWS:
            raise ValueError(f"rows must be at most 2^24 to be run, the paper needs {self.rows}")
        return max(MIN_ROWS, 1 << (self.rows - 1).bit_length())


def paper_sizes(*, n: int, sparsity: int, queries: int, beta: float) -> PaperSizes:
    """Sizes for n records, k queries of sparsity m, and failure probability beta (BR-PROJ).

    Examples
    --------
    >>> import geomdp as gd
    >>> sizes = gd.bounds.upper.paper_sizes(n=4, sparsity=4, queries=10, beta=0.05)
    >>> sizes.failure, sizes.distortion
    (0.00125, 0.2)
    """
    n, m, k = whole(n, "n"), whole(sparsity, "sparsity"), whole(queries, "queries")
    tau = probability(beta, "beta") / (4 * k)
    distortion = 2 * math.sqrt(m) / (m + n**2)
    rows = JL_CONSTANT * math.log(1 / tau) / distortion**2
    return PaperSizes(tau, distortion, math.ceil(rows), math.ceil(rows * 2 * math.sqrt(m)))


def independence(*, rows: int, queries: int, beta: float) -> int:
    """The least r for which r-wise independent signs are enough by Corollary 4.7 (BR-PROJ).

    For k = `queries` and T = `rows`, r is the least even number that is at least
    2 log2(k T / (2 beta)) and at least 4.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bounds.upper.independence(rows=1024, queries=100, beta=0.05)
    40
    """
    # For a tiny beta the quotient overflows, but its logarithm does not.
    log_failures = math.log2(2 * probability(beta, "beta"))
    needed = 2 * (math.log2(whole(queries, "queries") * rows) - log_failures)
    return max(4, 2 * math.ceil(needed / 2))


def feasible_rows(*, n: int, epsilon: float) -> int:
    """The number of rows T at which distortion and noise are about equal (BR-PROJ).

    T is the least power of two that is at least (eps n)^2, but at least 2^6 and at most 2^16. More
    rows improve little: the noise does not depend on T, and the distortion falls as 1 / sqrt(T). To
    use more than 2^16 rows, pass `rows` to the mechanism.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bounds.upper.feasible_rows(n=1000, epsilon=0.1)
    16384
    """
    target = math.log2(positive(epsilon, "epsilon") * whole(n, "n")) * 2
    return 1 << min(max(math.ceil(target), MIN_ROWS.bit_length() - 1), 16)


def coefficient_bound(*, sparsity: int, rows: int, queries: int, beta: float) -> float:
    """Bound on the coefficients of all projected queries, with probability 1 - beta.

    For m = `sparsity`, k = `queries` and T = `rows`, no coefficient exceeds
    4 sqrt(m log2(k T / (2 beta)) / T) in absolute value (Corollary 4.7).

    Examples
    --------
    >>> import geomdp as gd
    >>> bound = gd.bounds.upper.coefficient_bound(sparsity=9, rows=1024, queries=100, beta=0.05)
    >>> round(bound, 3)
    1.676
    """
    logs = math.log2(whole(queries, "queries") * rows / (2 * probability(beta, "beta")))
    return 4 * math.sqrt(whole(sparsity, "sparsity") * logs / rows)


def laplace_sum_tail(*, bound: float, scale: float, rows: int, deviation: float) -> float:
    """Bound on Pr[|q_1 Y_1 + ... + q_T Y_T| >= deviation] for independent Y_i ~ Lap(b).

    T is `rows`, b is `scale`, and all |q_i| are at most `bound`. Let a = deviation / bound. If
    a <= T b, the result is exp(-a^2 / (6 T b^2)). If a > T b, it is exp(-a / (6 b)) (Lemma 4.8).

    Examples
    --------
    >>> import geomdp as gd
    >>> tail = gd.bounds.upper.laplace_sum_tail(bound=0.1, scale=2.0, rows=1024, deviation=60.0)
    >>> print(f"{tail:.2e}")
    4.35e-07
    """
    a = positive(deviation, "deviation") / positive(bound, "bound")
    if a <= rows * scale:
        return math.exp(-(a**2) / (6 * rows * scale**2))
    return math.exp(-a / (6 * scale))


def paper_accuracy(privacy: ApproxDP, *, n: int, sparsity: int, queries: int, beta: float) -> float:
    """Theorem 4.9 with its constant: a bound on the errors of all k answers, under add/remove.

    The bound holds with probability 1 - beta for Laplace noise and the T rows of the paper. With
    m = `sparsity` and k = `queries` it is
    (1/n) (sqrt(m) + (16 sqrt(3) / eps) sqrt(m ln(4k/beta) ln(1/delta) (log2(2k/beta) + log2 T))).

    Examples
    --------
    >>> import geomdp as gd
    >>> accuracy = gd.bounds.upper.paper_accuracy(
    ...     gd.ApproxDP(1.0, 1e-6), n=10**6, sparsity=100, queries=1000, beta=0.05
    ... )
    >>> round(accuracy, 4)
    0.0353
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
