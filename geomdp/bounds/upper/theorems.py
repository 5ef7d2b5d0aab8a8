"""Upper bounds from papers: numbers of records that mechanisms need, and their errors.

The docstring of each bound for an offline mechanism begins with the word *explicit* or *shape*. An
explicit formula has all its constants and holds for every data set. A shape depends on constants
that its theorem does not give and the caller gives, in most functions as one `constant` C.

There are k queries, N elements in the universe and n records. From a sample size on, the error
E ||M(X) - Q(X)||_2 / sqrt(k) of a mechanism M, or the root mean square per query where stated, is
at most alpha. Neighbouring data sets differ in one replaced record. Privacy is eps-DP if nothing
else is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from geomdp._numerics.linalg import smallest_accuracy
from geomdp._validation import positive, probability, real_number, universe_size, whole
from geomdp.privacy import ApproxDP, PureDP
from geomdp.privacy.definitions import check_privacy


class Regimes(NamedTuple):
    """The sample sizes of Theorem 1 for ball noise (JL-L15), K-norm noise (JL-L16) and the JL
    mechanism (JL-T21).
    """

    ball: float
    knorm: float
    jl: float

    @property
    def least(self) -> float:
        """The smallest of the three sizes: the bound of Theorem 1 on the sample complexity."""
        return min(self)


def bounded_queries(
    queries: int, size: int, *, epsilon: float, alpha: float, constant: float
) -> Regimes:
    """Shape of Theorem 1: sample sizes for k queries q with |q| <= 1 on a universe of N elements.

    sc <= C min{k, sqrt(k ln N), ln N / alpha} / (alpha eps) for the sample complexity sc, k =
    `queries` and N = `size`. The result has the three terms as `ball`, `knorm` and `jl`.
    Source: Nikolov 2022, Theorem 1; JL-T1.

    Examples
    --------
    >>> import geomdp as gd
    >>> sizes = gd.bounds.upper.bounded_queries(1000, 2**20, epsilon=0.1, alpha=0.1, constant=1.0)
    >>> {name: round(size) for name, size in sizes._asdict().items()}
    {'ball': 100000, 'knorm': 11774, 'jl': 13863}
    >>> round(sizes.least)
    11774
    """
    k, logs = whole(queries, "queries"), math.log(universe_size(size))
    scale = _scale(constant, epsilon, alpha)
    return Regimes(scale * k, scale * math.sqrt(k * logs), scale * logs / alpha)


def from_width(
    width: float, queries: int, *, epsilon: float, alpha: float, constant: float
) -> float:
    """Shape of Theorem 2: C min{w / (alpha eps), w^2 / (k alpha^2 eps)}, where w is the `width`.

    w is the Gaussian width of the sensitivity polytope, at most sqrt(2 k ln N) for bounded queries
    (JL-14). Source: Nikolov 2022, Theorem 2; JL-T2.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.from_width(6.0, 32, epsilon=0.1, alpha=0.05, constant=1.0))
    1200
    """
    w, k = positive(width, "width"), whole(queries, "queries")
    scale = _scale(constant, epsilon, alpha)
    return scale * min(w, w**2 / (k * alpha))


def monotone_marginals(
    attributes: int, order: int, *, epsilon: float, alpha: float, constant: float
) -> float:
    """Shape for marginals of width l = `order` of d attributes.

    C min{d^l / (alpha eps), d^((l + 1)/2) / (alpha eps), d / (alpha^2 eps)}, where C depends on l.
    Source: Nikolov 2022, equation (2); JL-MARG.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.monotone_marginals(20, 3, epsilon=1.0, alpha=0.1, constant=1.0))
    2000
    """
    d = whole(attributes, "attributes")
    ell = whole(order, "order", maximum=d)
    reach = min(float(d**ell), math.pow(d, (ell + 1) / 2), d / alpha)
    return _scale(constant, epsilon, alpha) * reach


def jl_mechanism_error(
    width: float,
    queries: int,
    rows: int,
    *,
    n: int,
    epsilon: float,
    distortion: float,
    noise: float,
) -> float:
    """Shape of Theorem 21: error of the JL mechanism with m = `rows` and recursive K-norm noise.

    (w / sqrt k) (c1 / sqrt m + c2 sqrt m / (eps n)), where w is the Gaussian `width`. The theorem
    leaves c1 = `distortion` and c2 = `noise` open. Source: Nikolov 2022, Theorem 21; JL-T21.

    Examples
    --------
    >>> import geomdp as gd
    >>> error = gd.bounds.upper.jl_mechanism_error(
    ...     20.0, 100, rows=50, n=1000, epsilon=0.1, distortion=1.0, noise=1.0
    ... )
    >>> round(error, 3)
    0.424
    """
    m, k = whole(rows, "rows"), whole(queries, "queries")
    per_record = positive(epsilon, "epsilon") * whole(n, "n")
    near = positive(distortion, "distortion") / math.sqrt(m)
    noisy = positive(noise, "noise") * math.sqrt(m) / per_record
    return positive(width, "width") / math.sqrt(k) * (near + noisy)


def jl_mechanism_rows(
    dimension: int, *, n: int, epsilon: float, distortion: float = 1.0, noise: float = 1.0
) -> int:
    """The number of rows that makes the two terms of `jl_mechanism_error` equal.

    It is c1 eps n / c2, rounded up, and at most the effective `dimension` of the workload, because
    a map with so many rows need not distort. Source: Nikolov 2022, Theorem 21; JL-T21.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bounds.upper.jl_mechanism_rows(500, n=1000, epsilon=0.1)
    100
    """
    share = positive(distortion, "distortion") / positive(noise, "noise")
    wanted = math.ceil(share * positive(epsilon, "epsilon") * whole(n, "n"))
    return min(max(wanted, 1), whole(dimension, "dimension"))


def ball_bounded(queries: int, *, epsilon: float, alpha: float) -> float:
    """Explicit first term of Theorem 1, in root mean square: 2 sqrt(k (k + 1)) / (alpha eps).

    The bound holds for ball noise on k = `queries` queries with values in [-1, 1]. Source: Nikolov
    2022, Lemma 15; JL-L15.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.ball_bounded(10, epsilon=1.0, alpha=0.05))
    420
    """
    k = whole(queries, "queries")
    return 2 * math.sqrt(k * (k + 1)) * _scale(1.0, epsilon, alpha)


def gaussian_projection(size: int, *, rho: float, alpha: float) -> float:
    """Explicit sample size under rho-zCDP, in root mean square: 2 sqrt(ln N / rho) / alpha^2.

    For queries with values in [-1, 1] and N = `size` elements, the mechanism adds Gaussian noise
    and projects on the sensitivity polytope. Source: Nikolov-Talwar-Zhang 2016; JL-GAUSS.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.gaussian_projection(2**20, rho=0.01, alpha=0.05))
    29786
    """
    logs = math.log(universe_size(size))
    return 2 * math.sqrt(logs / positive(rho, "rho")) / positive(alpha, "alpha") ** 2


def small_db(queries: int, size: int, *, epsilon: float, alpha: float, constant: float) -> float:
    """Shape of the older worst-case bound of SmallDB: C ln k ln N / (alpha^3 eps).

    Source: Blum-Ligett-Roth 2008, as listed by Nikolov-Ullman 2021; JL-T1.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.small_db(100, 2**10, epsilon=1.0, alpha=0.1, constant=1.0))
    31921
    """
    logs = math.log(whole(queries, "queries", minimum=2)) * math.log(universe_size(size))
    return _scale(constant, epsilon, alpha) * logs / alpha**2


def older_projection(
    queries: int, size: int, *, epsilon: float, alpha: float, constant: float
) -> float:
    """Shape of the older bound for projection: C (ln k)^2 (ln N)^(3/2) / (alpha^2 eps).

    Source: Nikolov-Talwar-Zhang 2016, as listed by Nikolov-Ullman 2021; JL-T1.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.older_projection(100, 2**10, epsilon=1.0, alpha=0.1, constant=1.0))
    38702
    """
    logs = math.log(whole(queries, "queries", minimum=2)) ** 2
    logs *= float(math.log(universe_size(size)) ** 1.5)
    return _scale(constant, epsilon, alpha) * logs / alpha


def _scale(constant: float, epsilon: float, alpha: float) -> float:
    """C / (alpha epsilon); ``ValueError`` if one of the three is not finite and above 0."""
    product = positive(alpha, "alpha") * positive(epsilon, "epsilon")
    return positive(constant, "constant") / product


# Second moments, covariances and two-way marginals.


def second_moment_error(d: int, *, n: int, epsilon: float) -> float:
    """Explicit bound min{(d + 1) sqrt(2 d) / (n eps), sqrt((4 d + 3) / (n eps))} on the root mean
    square of ||M - (1/n) sum of x x^T||_F, x in the unit ball of R^d, for a mechanism M that adds
    the difference of two Wishart matrices and projects (Nikolov 2022, Lemma 22; JL-COV, JL-WIS).
    """
    d, per_record = whole(d, "d"), positive(epsilon, "epsilon") * whole(n, "n")
    return min((d + 1) * math.sqrt(2 * d) / per_record, math.sqrt((4 * d + 3) / per_record))


def second_moments(d: int, *, epsilon: float, alpha: float) -> float:
    """Explicit sample size for `second_moment_error` <= alpha, in Frobenius norm.

    min{(d + 1) sqrt(2 d) / (alpha eps), (4 d + 3) / (alpha^2 eps)} (Lemma 22; JL-WIS).

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.second_moments(5, epsilon=1.0, alpha=0.05))
    379
    """
    d, scale = whole(d, "d"), _scale(1.0, epsilon, alpha)
    return scale * min((d + 1) * math.sqrt(2 * d), (4 * d + 3) / alpha)


def covariance_error(d: int, *, n: int, epsilon: float) -> float:
    """Explicit Theorem 3: bound on E ||S(X) - Sigma||_F for n independent records.

    The records lie in the unit ball of R^d and have covariance Sigma, which S(X) estimates. The
    bound is the sum of the sampling error 3 / sqrt n, the error of the second moments at privacy
    eps / 2, and twice the error 2 d / (n eps / 2) of the mean at privacy eps / 2. Source: Nikolov
    2022, Theorem 3; JL-T3.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.covariance_error(5, n=10_000, epsilon=1.0), 4)
    0.0378
    """
    half = positive(epsilon, "epsilon") / 2
    mean = 2 * whole(d, "d") / (whole(n, "n") * half)
    return 3 / math.sqrt(n) + second_moment_error(d, n=n, epsilon=half) + 2 * mean


def two_way_marginals_error(attributes: int, *, n: int, epsilon: float) -> float:
    """Explicit Theorem 23, in root mean square: sqrt(d / (d - 1)) times `second_moment_error`.

    All conjunctions of two of d attributes are computed from the second moments of x / sqrt d.
    Source: Nikolov 2022, Theorem 23; JL-T23.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.two_way_marginals_error(10, n=10_000, epsilon=1.0), 4)
    0.0052
    """
    d = whole(attributes, "attributes", minimum=2)
    return math.sqrt(d / (d - 1)) * second_moment_error(d, n=n, epsilon=epsilon)


def two_way_marginals(attributes: int, *, epsilon: float, alpha: float) -> float:
    """Explicit sample size for `two_way_marginals_error` <= alpha, in root mean square.

    The size is `second_moments` at accuracy alpha sqrt((d - 1) / d) (Theorem 23; JL-T23).

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.two_way_marginals(10, epsilon=1.0, alpha=0.01))
    5185
    """
    d = whole(attributes, "attributes", minimum=2)
    inner = positive(alpha, "alpha") * math.sqrt((d - 1) / d)
    return second_moments(d, epsilon=epsilon, alpha=inner)


# Accuracy of the summary that answers smooth queries; the caller gives the constant.


def smooth_accuracy(d: int, order: int, *, n: int, epsilon: float, constant: float) -> float:
    """Error bound of Wang et al. 2013, Theorem 3.1, for queries with bounded derivatives.

    The error, in the units of the queries, is at most C n^(-K / (2 d + K)) max(1, 1 / eps) with
    probability 1 - beta for every beta >= 10 exp(-n^(d / (2 d + K)) / 5). The paper prints 1 / eps
    in place of the maximum, which is wrong for eps > 1 (DISC-17). The n records lie in [-1, 1]^d; a
    query has bounded derivatives up to K = `order`. C, the `constant`, depends on d, K and this
    bound.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.smooth_accuracy(2, 4, n=1000, epsilon=1.0, constant=1.0), 3)
    0.032
    """
    d, order = whole(d, "d"), whole(order, "order")
    scale = positive(constant, "constant") * max(1.0, 1 / positive(epsilon, "epsilon"))
    return scale * math.pow(whole(n, "n"), -order / (2 * d + order))


# Gaussian widths of images of sets under maps that stretch distances little.


def near_contraction_width(width: float, excess: float, rows: int) -> float:
    """Bound on the Gaussian width of f(S) if ||f(x) - f(y)|| <= ||x - y|| + `excess` on S.

    For a map f to R^m, m = `rows`, a set S of Gaussian width w = `width`, and d = `excess`, it is

        (w^(1/2) + (d m^(1/2))^(1/2))^2  <=  2 w + 2 d m^(1/2).

    The source states the right side. Proof: let P be a maximal subset of S with distances above b >
    0. On P, f has Lipschitz constant 1 + d / b, and f(S) is within b + d of f(P). So the width is
    at most (1 + d / b) w + (b + d) m^(1/2). The best b satisfies b^2 = d w / m^(1/2). Source:
    Nikolov 2022, Lemmas 10 and 11; JL-L10, JL-L11.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.near_contraction_width(2.0, 0.5, rows=16), 3)
    8.0
    """
    d = real_number(excess)
    if not 0 <= d < math.inf:
        raise ValueError(f"excess must be finite and at least 0, got {excess!r}")
    spread = d * math.sqrt(whole(rows, "rows"))
    return (math.sqrt(positive(width, "width")) + math.sqrt(spread)) ** 2


# Sparse projection: a random matrix with T rows of signs projects k queries of sparsity m and the
# histogram of n records (Blum and Roth). Logarithms are natural, except those to base 2 in
# Corollary 4.7 and Theorem 4.9 (DISC-4).

#: The Johnson-Lindenstrauss lemma for signs of limited independence needs T >= 4 * 64^2 ln(1/tau) /
#: s^2 rows for distortion s with failure probability tau.
JL_CONSTANT = 4 * 64**2
#: Rows of a summary: the signs of a column fill a 64-bit word, and 2^24 numbers are 128 MB.
MIN_ROWS, MAX_ROWS = 64, 1 << 24


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
    """The number of rows T at which distortion and noise are about equal (BR-PROJ): the least power
    of two that is at least (eps n)^2, but at least 2^6 and at most 2^16. More rows improve little:
    the noise does not depend on T, and the distortion falls as 1 / sqrt(T).
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


def paper_rows(*, n: int, sparsity: int, queries: int, beta: float) -> int:
    """T = ceil(4 * 64^2 ln(1/tau) / s^2) of Algorithm 2, for the failure probability tau =
    beta / (4 k) of each inner product and the distortion s = 2 sqrt(m) / (m + n^2). The T in the
    box of the algorithm is 2 sqrt(m) times as large (DISC-2).
    """
    n, m, k = whole(n, "n"), whole(sparsity, "sparsity"), whole(queries, "queries")
    tau = probability(beta, "beta") / (4 * k)
    distortion = 2 * math.sqrt(m) / (m + n**2)
    return math.ceil(JL_CONSTANT * math.log(1 / tau) / distortion**2)


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
    rows = paper_rows(n=n, sparsity=sparsity, queries=queries, beta=beta)
    logs = math.log(4 * queries / beta) * math.log(1 / privacy.delta)
    logs *= math.log2(2 * queries / beta) + math.log2(rows)
    noise = 16 * math.sqrt(3) / privacy.epsilon * math.sqrt(sparsity * logs)
    return (math.sqrt(sparsity) + noise) / n


# Accuracy theorems of interactive mechanisms: with probability at least 1 - beta, no answer has an
# error above alpha. The update rule makes at most B(alpha) updates at accuracy alpha. Each function
# solves one equation for alpha in (0, 1], up to a relative error of 1e-12.

#: Constant of Theorem 3.3 of Blum-Roth.
ONLINE_CONSTANT = 3000


def online_accuracy(
    bound: Callable[[float], float], *, n: int, queries: int, privacy: ApproxDP, beta: float
) -> float:
    """The accuracy alpha in (0, 1] of Theorem 3.3, for k adaptive queries about n records.

    alpha = 3000 sqrt(B(alpha)) ln(4/delta) ln(k/beta) / (eps n).

    With the bound of `SparseMultiplicativeWeights`, whose table has s = s(alpha) slots, this is
    Theorem 3.8 (DISC-8): alpha^2 = 6000 sqrt(ln s + 1) ln(4/delta) ln(k/beta) / (eps n). Source:
    Blum-Roth 2013, Theorems 3.3 and 3.8; BR-T3.3, BR-SMW.

    Parameters
    ----------
    bound : callable
        B(alpha), the largest number of updates of the rule at accuracy alpha; not increasing.
    n, queries : int
        Number of records, and number k of adaptive queries with values in [0, 1].
    privacy, beta : ApproxDP, float
        Guarantee of the whole run, and failure probability, 0 < beta < 1.

    Raises
    ------
    ValueError
        For parameters out of range, or if even alpha = 1 does not satisfy the theorem.

    Examples
    --------
    >>> import geomdp as gd
    >>> rule = gd.mechanisms.MultiplicativeWeights(1024)
    >>> alpha = gd.bounds.upper.online_accuracy(
    ...     rule.bound, n=10**8, queries=1000, privacy=gd.ApproxDP(1.0, 1e-6), beta=0.05
    ... )
    >>> round(alpha, 3)
    0.154
    """
    check_privacy(privacy, ApproxDP)
    share = whole(queries, "queries") / probability(beta, "beta")
    logs = math.log(4 / privacy.delta) * math.log(share)
    scale = ONLINE_CONSTANT * logs / (privacy.epsilon * whole(n, "n"))
    return _solved(lambda alpha: scale * math.sqrt(bound(alpha)), n, queries)


def iterative_accuracy(
    bound: Callable[[float], float],
    *,
    n: int,
    queries: int,
    privacy: PureDP | ApproxDP,
    beta: float,
) -> float:
    """The alpha of Theorems 7 and 8, corrected, for a class C of |C| = `queries` linear queries.

    Let b = max(1, B(alpha/2)). For pure DP, alpha = 32 b / (n eps) ln(2 b |C| / beta). For
    approximate DP, 2 sqrt(b ln(1/delta)) replaces the first factor b. The printed theorems have 8
    in place of 32, and 16 in place of 32 * 2; these constants guarantee only an error of 3 alpha /
    2 (DISC-13). Parameters and errors: see `online_accuracy`. Source: Roth's lecture on iterative
    construction, Theorems 7 and 8; Dwork-Roth 2014, section 5.2; IC-T4, IC-T5.

    Examples
    --------
    >>> import geomdp as gd
    >>> rule = gd.mechanisms.MultiplicativeWeights(1024)
    >>> alpha = gd.bounds.upper.iterative_accuracy(
    ...     rule.bound, n=10**6, queries=1000, privacy=gd.PureDP(1.0), beta=0.05
    ... )
    >>> round(alpha, 3)
    0.394
    """
    check_privacy(privacy, PureDP, ApproxDP)
    count, share = whole(queries, "queries"), probability(beta, "beta")
    whole(n, "n")

    def right_side(alpha: float) -> float:
        updates = max(1.0, bound(alpha / 2))
        match privacy:
            case PureDP(epsilon=epsilon):
                steps = 32 * updates / epsilon
            case ApproxDP(epsilon=epsilon, delta=delta):
                steps = 64 * math.sqrt(updates * math.log(1 / delta)) / epsilon
        return steps / n * math.log(2 * updates * count / share)

    return _solved(right_side, n, queries)


def _solved(right_side: Callable[[float], float], n: int, queries: int) -> float:
    alpha = smallest_accuracy(lambda alpha: alpha >= right_side(alpha))
    if alpha is None:
        raise ValueError(f"n must be larger for {queries} queries, even for alpha = 1, got {n}")
    return alpha


# Accuracy theorems of the sparse vector technique, for queries of sensitivity 1. A mechanism with
# threshold T is (alpha, beta)-accurate if with probability at least 1 - beta, every query that is
# reported above the threshold has a true answer of at least T - alpha, every other query one of at
# most T + alpha, and each released value is within alpha of the true answer.
#
# Let k be the number of queries and c the `cutoff`. To exclude an early halt, each theorem assumes
# that at most c of the k queries have a true answer of at least T - alpha; for `above_threshold`,
# only the last query. For queries of sensitivity D, multiply alpha by D, except in `sparse_kept`,
# where the noise scales contain D.


def _logs(queries: int, beta: float, multiple: float) -> float:
    queries = whole(queries, "queries")
    return math.log(queries) + math.log(multiple / probability(beta, "beta"))


def above_threshold(epsilon: float, *, queries: int, beta: float) -> float:
    """alpha = 8 (ln k + ln(2/beta)) / eps (Dwork-Roth, Theorem 3.24; SV-AT).

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.above_threshold(1.0, queries=100, beta=0.05), 2)
    66.35
    """
    return 8 * _logs(queries, beta, 2) / positive(epsilon, "epsilon")


def sparse(privacy: PureDP | ApproxDP, *, cutoff: int, queries: int, beta: float) -> float:
    """Accuracy of `Sparse` with new threshold noise after each answer above the threshold.

    alpha = 8 c (ln k + ln(2c/beta)) / eps for pure DP. For approximate DP,
    sqrt(512 c ln(1/delta)) replaces 8 c (Dwork-Roth, Theorem 3.26; SV-SP).

    Examples
    --------
    >>> import geomdp as gd
    >>> alpha = gd.bounds.upper.sparse(gd.PureDP(1.0), cutoff=5, queries=100, beta=0.05)
    >>> round(alpha, 1)
    396.1
    """
    check_privacy(privacy, PureDP, ApproxDP)
    logs = _logs(queries, beta, 2 * whole(cutoff, "cutoff"))
    match privacy:
        case PureDP(epsilon=epsilon):
            return 8 * cutoff * logs / epsilon
        case ApproxDP(epsilon=epsilon, delta=delta):
            return math.sqrt(512 * cutoff * math.log(1 / delta)) * logs / epsilon


def sparse_kept(*, threshold: float, query: float, queries: int, beta: float) -> float:
    """Accuracy of a mechanism that draws its threshold noise once (SV-LSL).

    alpha = s_threshold ln(2/beta) + s_query ln(2k/beta), where s_threshold = `threshold` and
    s_query = `query` are the scales of the Laplace noise, by a union bound (GEN-3).

    Examples
    --------
    >>> import geomdp as gd
    >>> alpha = gd.bounds.upper.sparse_kept(threshold=2.0, query=20.0, queries=100, beta=0.05)
    >>> round(alpha, 1)
    173.3
    """
    share = positive(threshold, "threshold") * _logs(1, beta, 2)
    return share + positive(query, "query") * _logs(queries, beta, 2)


def numeric_sparse(privacy: PureDP | ApproxDP, *, cutoff: int, queries: int, beta: float) -> float:
    """Accuracy of `NumericSparse`, for every number of queries (SV-NUM, corrected).

    alpha = 9 c (ln k + ln(4c/beta)) / eps for pure DP (Dwork-Roth, Theorem 3.28). For approximate
    DP, sqrt(8 c ln(2/delta)) replaces c.

    Examples
    --------
    >>> import geomdp as gd
    >>> alpha = gd.bounds.upper.numeric_sparse(gd.PureDP(1.0), cutoff=5, queries=100, beta=0.05)
    >>> round(alpha, 1)
    476.8
    """
    check_privacy(privacy, PureDP, ApproxDP)
    logs = _logs(queries, beta, 4 * whole(cutoff, "cutoff"))
    match privacy:
        case PureDP(epsilon=epsilon):
            return 9 * cutoff * logs / epsilon
        case ApproxDP(epsilon=epsilon, delta=delta):
            return 9 * math.sqrt(8 * cutoff * math.log(2 / delta)) * logs / epsilon


def numeric_sparse_printed(privacy: ApproxDP, *, cutoff: int, queries: int, beta: float) -> float:
    """The accuracy that Dwork and Roth print for NumericSparse at delta > 0; it can be false.

    alpha = (ln k + ln(4c/beta)) sqrt(c ln(2/delta)) (sqrt(512) + 1) / eps (Theorem 3.28). For few
    queries the printed noise scales do not give this accuracy (DISC-11).

    Examples
    --------
    >>> import geomdp as gd
    >>> privacy = gd.ApproxDP(1.0, 1e-6)
    >>> printed = gd.bounds.upper.numeric_sparse_printed(privacy, cutoff=10, queries=10, beta=0.05)
    >>> proved = gd.bounds.upper.numeric_sparse(privacy, cutoff=10, queries=10, beta=0.05)
    >>> round(printed), round(proved)
    (2558, 2756)
    """
    check_privacy(privacy, ApproxDP)
    spread = math.sqrt(whole(cutoff, "cutoff") * math.log(2 / privacy.delta)) * (math.sqrt(512) + 1)
    return _logs(queries, beta, 4 * cutoff) * spread / privacy.epsilon
