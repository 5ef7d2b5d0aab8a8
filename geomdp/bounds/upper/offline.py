"""Upper bounds from papers for offline mechanisms: numbers of records needed, and errors.

The docstring of each bound begins with the word *explicit* or *shape*. An explicit formula has all
its constants and holds for every data set. A shape depends on constants that its theorem does not
give and the caller gives, in most functions as one `constant` C.

There are k queries, N elements in the universe and n records. From a sample size on, the error
E ||M(X) - Q(X)||_2 / sqrt(k) of a mechanism M, or the root mean square per query where stated, is
at most alpha. Neighbouring data sets differ in one replaced record. Privacy is eps-DP if nothing
else is said. The `predicted_rmse` of a mechanism uses the queries themselves and is usually smaller
than these bounds.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from geomdp._validation import positive, probability, real_number, universe_size, whole
from geomdp.privacy import ApproxDP
from geomdp.privacy.definitions import check_privacy


class Regimes(NamedTuple):
    """The three sample sizes of Theorem 1, one for each of three mechanisms.

    `ball` is C k / (alpha epsilon) for ball noise (JL-L15), `knorm` is C sqrt(k ln N) / (alpha
    epsilon) for K-norm noise (JL-L16), `jl` is C ln N / (alpha^2 epsilon) for the JL mechanism
    (JL-T21).
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

    sc <= C min{k, sqrt(k ln N), ln N / alpha} / (alpha eps), where sc is the sample complexity, k
    is `queries`, and N is `size`. The terms are those of ball noise, of K-norm noise and of the JL
    mechanism: `ball`, `knorm` and `jl` of the result. Source: Nikolov 2022, Theorem 1; JL-T1.

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

    w is the Gaussian width of the sensitivity polytope. For bounded queries it is at most sqrt(2 k
    ln N), which gives the last two terms of Theorem 1 (JL-14). Source: Nikolov 2022, Theorem 2;
    JL-T2.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(32)
    >>> polytope = gd.bodies.sensitivity_polytope(workload)
    >>> width = gd.geometry.gaussian_width(polytope, rng=0).value
    >>> size = gd.bounds.upper.from_width(
    ...     width, workload.n_queries, epsilon=0.1, alpha=0.05, constant=1.0
    ... )
    >>> round(size)
    779
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
    leaves c1 = `distortion` and c2 = `noise` open. At m = eps n the terms are equal up to them.
    Source: Nikolov 2022, Theorem 21; JL-T21.

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

    It is c1 eps n / c2, rounded up; for c1 = c2, the ceil(eps n) of the theorem. It is at most the
    effective `dimension` of the workload, because a map with `dimension` rows need not distort.
    Source: Nikolov 2022, Theorem 21; JL-T21.

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

    The bound holds for ball noise on k = `queries` queries with values in [-1, 1]. The answers for
    two records differ by at most 2 sqrt k in Euclidean norm. Source: Nikolov 2022, Lemma 15;
    JL-L15.

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
    and projects on the sensitivity polytope, without the map of the JL mechanism to a lower
    dimension. For some queries, no sample size that grows more slowly with N is enough, even under
    approximate DP. Source: Nikolov-Talwar-Zhang 2016; JL-GAUSS.

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
    logs = math.log(whole(queries, "queries", minimum=2))
    logs *= math.log(universe_size(size))
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
    """Explicit bound on (E ||M - (1/n) sum of x x^T||_F^2)^(1/2), x in the unit ball of R^d.

    It is min{(d + 1) sqrt(2 d) / (n eps), sqrt((4 d + 3) / (n eps))} for a mechanism M that adds
    the difference of two Wishart matrices and projects. Source: Nikolov 2022, Lemma 22; JL-COV,
    JL-WIS.
    """
    d, per_record = whole(d, "d"), positive(epsilon, "epsilon") * whole(n, "n")
    return min((d + 1) * math.sqrt(2 * d) / per_record, math.sqrt((4 * d + 3) / per_record))


def second_moments(d: int, *, epsilon: float, alpha: float) -> float:
    """Explicit sample size for `second_moment_error` <= alpha, in Frobenius norm.

    min{(d + 1) sqrt(2 d) / (alpha eps), (4 d + 3) / (alpha^2 eps)}. Source: Nikolov 2022, Lemma 22;
    JL-WIS.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.bounds.upper.second_moments(5, epsilon=1.0, alpha=0.05))
    379
    """
    d = whole(d, "d")
    scale = 1 / (positive(alpha, "alpha") * positive(epsilon, "epsilon"))
    return scale * min((d + 1) * math.sqrt(2 * d), (4 * d + 3) / alpha)


def covariance_error(d: int, *, n: int, epsilon: float) -> float:
    """Explicit Theorem 3: bound on E ||S(X) - Sigma||_F for n independent records.

    The records lie in the unit ball of R^d and have covariance Sigma; S(X) is the private estimate.
    The bound is the sum of the sampling error 3 / sqrt n, the error of the second moments at
    privacy eps / 2, and twice the error 2 d / (n eps / 2) of the mean at privacy eps / 2. Source:
    Nikolov 2022, Theorem 3; JL-T3.

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

    The size is `second_moments` at accuracy alpha sqrt((d - 1) / d), for d attributes. Source:
    Nikolov 2022, Theorem 23; JL-T23.

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
    in place of the maximum. For eps > 1 this is wrong: as eps grows, the approximation error does
    not fall (DISC-17).

    The n records lie in [-1, 1]^d; a query has bounded derivatives up to K = `order`. The C of the
    theorem, `constant`, depends on d, K and the bound on the derivatives.

    Examples
    --------
    >>> import geomdp as gd
    >>> [
    ...     round(gd.bounds.upper.smooth_accuracy(2, 4, n=n, epsilon=1.0, constant=1.0), 3)
    ...     for n in (1000, 1_000_000)
    ... ]
    [0.032, 0.001]
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
    >>> round(gd.bounds.upper.near_contraction_width(2.0, 0.0, rows=10), 3)
    2.0
    >>> round(gd.bounds.upper.near_contraction_width(2.0, 0.5, rows=16), 3)
    8.0
    """
    d = real_number(excess)
    if not 0 <= d < math.inf:
        raise ValueError(f"excess must be finite and at least 0, got {excess!r}")
    spread = d * math.sqrt(whole(rows, "rows"))
    return (math.sqrt(positive(width, "width")) + math.sqrt(spread)) ** 2


# Sparse projection: rows, independence of the signs, error.
#
# A random matrix with T rows of signs projects k queries of sparsity m and the histogram of n
# records. The algorithm, lemmas and theorems named here are from Blum and Roth. Logarithms are
# natural, except those to base 2 in Corollary 4.7 and Theorem 4.9 (DISC-4).

#: Constant of the Johnson-Lindenstrauss lemma for signs of limited independence. The lemma needs
#: T >= 4 * 64^2 ln(1/tau) / s^2 rows for distortion s with failure probability tau.
JL_CONSTANT = 4 * 64**2
#: Least number of rows: the signs of a column fill at least one 64-bit word.
MIN_ROWS = 64
#: Largest number of rows of a summary: 2^24 numbers are 128 MB.
MAX_ROWS = 1 << 24


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
    """T of Algorithm 2, for n records, k queries of sparsity m, and failure probability beta.

    T = ceil(4 * 64^2 ln(1/tau) / s^2), for the failure probability tau = beta / (4 k) of each inner
    product and the distortion s = 2 sqrt(m) / (m + n^2). The T in the box of the algorithm is
    2 sqrt(m) times as large (DISC-2).
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
    logs = (
        math.log(4 * queries / beta)
        * math.log(1 / privacy.delta)
        * (math.log2(2 * queries / beta) + math.log2(rows))
    )
    noise = 16 * math.sqrt(3) / privacy.epsilon * math.sqrt(sparsity * logs)
    return (math.sqrt(sparsity) + noise) / n
