"""Upper bounds of the papers for offline mechanisms: records they need, and their errors.

The first word of each docstring says how much is known. *Explicit* formulas hold as they stand, for
every data set. A *shape* gives the dependence on all parameters; the theorem leaves an absolute
constant open, which is the required argument `constant`. Sample sizes are real numbers: from the
next whole number on, the error is at most alpha. Errors are E ||M(X) - Q(X)||_2 / sqrt(k), per
query, or the root mean square where the docstring says so. Neighbours replace one record, and
privacy is epsilon-DP unless said otherwise. The `predicted_rmse` of a mechanism uses more of the
workload and is usually smaller.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from geomdp._validation import positive, universe_size, whole


class Regimes(NamedTuple):
    """The three sample sizes of Theorem 1, by the mechanism that needs them.

    Parameters
    ----------
    ball : float
        C k / (alpha epsilon): ball noise, JL-L15.
    knorm : float
        C sqrt(k ln N) / (alpha epsilon): K-norm noise, JL-L16.
    jl : float
        C ln N / (alpha^2 epsilon): the JL mechanism, JL-T21.
    """

    ball: float
    knorm: float
    jl: float

    @property
    def least(self) -> float:
        """The smallest of the three, which is what Theorem 1 states."""
        return min(self)


def bounded_queries(
    queries: int, size: int, *, epsilon: float, alpha: float, constant: float
) -> Regimes:
    """Shape of Theorem 1: sample sizes for `queries` k with |q| <= 1 on a universe of `size` N.

    sc <= C min{k / (alpha eps), sqrt(k ln N) / (alpha eps), ln N / (alpha^2 eps)}.

    Source: Nikolov 2022, Theorem 1; JL-T1.
    """
    k, logs = whole(queries, "queries"), math.log(universe_size(size))
    scale = _scale(constant, epsilon, alpha)
    return Regimes(scale * k, scale * math.sqrt(k * logs), scale * logs / alpha)


def from_width(
    width: float, queries: int, *, epsilon: float, alpha: float, constant: float
) -> float:
    """Shape of Theorem 2: C min{w / (alpha eps), w^2 / (k alpha^2 eps)}, w = w(K_Q) the `width`.

    w(K_Q) <= sqrt(2 k ln N) for bounded queries gives the last two terms of Theorem 1 (JL-14).

    Source: Nikolov 2022, Theorem 2; JL-T2.
    """
    w, k = positive(width, "width"), whole(queries, "queries")
    scale = _scale(constant, epsilon, alpha)
    return scale * min(w, w**2 / (k * alpha))


def monotone_marginals(
    attributes: int, order: int, *, epsilon: float, alpha: float, constant: float
) -> float:
    """Shape for width-l marginals of d attributes, l = `order`.

    C min{d^l / (alpha eps), d^((l + 1)/2) / (alpha eps), d / (alpha^2 eps)}; C depends on l.

    Source: Nikolov 2022, equation (2); JL-MARG.
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
    """Shape of Theorem 21: error of the JL mechanism with `rows` m and recursive K-norm noise.

    (w / sqrt k) (c1 / sqrt m + c2 sqrt m / (eps n)), with the constants c1 = `distortion` and
    c2 = `noise` left open by the theorem; at m = eps n both terms are of the same order.

    Source: Nikolov 2022, Theorem 21; JL-T21.
    """
    m, k = whole(rows, "rows"), whole(queries, "queries")
    per_record = positive(epsilon, "epsilon") * whole(n, "n")
    near = positive(distortion, "distortion") / math.sqrt(m)
    noisy = positive(noise, "noise") * math.sqrt(m) / per_record
    return positive(width, "width") / math.sqrt(k) * (near + noisy)


def jl_mechanism_rows(
    dimension: int, *, n: int, epsilon: float, distortion: float = 1.0, noise: float = 1.0
) -> int:
    """The number of rows that balances `jl_mechanism_error`: c1 eps n / c2, rounded up.

    At most the effective `dimension` of the workload, as A = I is better than more rows. With both
    constants 1 it is the ceil(eps n) of the theorem.

    Source: Nikolov 2022, Theorem 21; JL-T21.
    """
    share = positive(distortion, "distortion") / positive(noise, "noise")
    wanted = math.ceil(share * positive(epsilon, "epsilon") * whole(n, "n"))
    return min(max(wanted, 1), whole(dimension, "dimension"))


def ball_bounded(queries: int, *, epsilon: float, alpha: float) -> float:
    """Explicit first term of Theorem 1, in root mean square: 2 sqrt(k (k + 1)) / (alpha eps).

    Ball noise for `queries` k with values in [-1, 1], whose answers differ by at most 2 sqrt k.

    Source: Nikolov 2022, Lemma 15; JL-L15.
    """
    k = whole(queries, "queries")
    return 2 * math.sqrt(k * (k + 1)) * _scale(1.0, epsilon, alpha)


def gaussian_projection(size: int, *, rho: float, alpha: float) -> float:
    """Explicit, rho-zCDP, in root mean square: 2 sqrt(ln N / rho) / alpha^2 for |q| <= 1.

    Gaussian noise projected on the sensitivity polytope of a universe of `size` N. The best
    possible dependence on N under approximate privacy, without a JL map.

    Source: Nikolov-Talwar-Zhang 2016; JL-GAUSS.
    """
    logs = math.log(universe_size(size))
    return 2 * math.sqrt(logs / positive(rho, "rho")) / positive(alpha, "alpha") ** 2


def small_db(queries: int, size: int, *, epsilon: float, alpha: float, constant: float) -> float:
    """Shape of the older worst-case bound of SmallDB: C ln k ln N / (alpha^3 eps).

    Source: Blum-Ligett-Roth 2008, as listed by Nikolov-Ullman 2021; JL-T1.
    """
    logs = math.log(whole(queries, "queries", minimum=2))
    logs *= math.log(universe_size(size))
    return _scale(constant, epsilon, alpha) * logs / alpha**2


def older_projection(
    queries: int, size: int, *, epsilon: float, alpha: float, constant: float
) -> float:
    """Shape of the older pure projection bound: C (ln k)^2 (ln N)^(3/2) / (alpha^2 eps).

    Source: Nikolov-Talwar-Zhang 2016, as listed by Nikolov-Ullman 2021; JL-T1.
    """
    logs = math.log(whole(queries, "queries", minimum=2)) ** 2
    logs *= float(math.log(universe_size(size)) ** 1.5)
    return _scale(constant, epsilon, alpha) * logs / alpha


def second_moment_error(d: int, *, n: int, epsilon: float) -> float:
    """Explicit bound on (E ||M - (1/n) sum of x x^T||_F^2)^(1/2), x in the unit ball of R^d.

    min{(d + 1) sqrt(2 d) / (n eps), sqrt((4 d + 3) / (n eps))}: a difference of Wishart matrices,
    projected. In Frobenius norm, not per query; both terms of Lemma 22 with their constants.

    Source: Nikolov 2022, Lemma 22; JL-COV, JL-WIS.
    """
    d, per_record = whole(d, "d"), positive(epsilon, "epsilon") * whole(n, "n")
    return min((d + 1) * math.sqrt(2 * d) / per_record, math.sqrt((4 * d + 3) / per_record))


def second_moments(d: int, *, epsilon: float, alpha: float) -> float:
    """Explicit sample size for `second_moment_error` <= alpha, in Frobenius norm.

    min{(d + 1) sqrt(2 d) / (alpha eps), (4 d + 3) / (alpha^2 eps)}.

    Source: Nikolov 2022, Lemma 22; JL-WIS.
    """
    d = whole(d, "d")
    scale = _scale(1.0, epsilon, alpha)
    return scale * min((d + 1) * math.sqrt(2 * d), (4 * d + 3) / alpha)


def covariance_error(d: int, *, n: int, epsilon: float) -> float:
    """Explicit Theorem 3: bound on E ||S(X) - Sigma||_F for n draws on the unit ball of R^d.

    The sum of 3 / sqrt n for sampling, the error of second moments with eps / 2, and twice the
    error 4 d / (n eps) of the mean with the other eps / 2.

    Source: Nikolov 2022, Theorem 3; JL-T3.
    """
    half = positive(epsilon, "epsilon") / 2
    mean = 2 * whole(d, "d") / (whole(n, "n") * half)
    return 3 / math.sqrt(n) + second_moment_error(d, n=n, epsilon=half) + 2 * mean


def two_way_marginals_error(attributes: int, *, n: int, epsilon: float) -> float:
    """Explicit Theorem 23, in root mean square: sqrt(d / (d - 1)) `second_moment_error`.

    All conjunctions of two of d attributes, from the second moments of x / sqrt d.

    Source: Nikolov 2022, Theorem 23; JL-T23.
    """
    d = whole(attributes, "attributes", minimum=2)
    return math.sqrt(d / (d - 1)) * second_moment_error(d, n=n, epsilon=epsilon)


def two_way_marginals(attributes: int, *, epsilon: float, alpha: float) -> float:
    """Explicit sample size for `two_way_marginals_error` <= alpha, in root mean square.

    `second_moments` at accuracy alpha sqrt((d - 1) / d).

    Source: Nikolov 2022, Theorem 23; JL-T23.
    """
    d = whole(attributes, "attributes", minimum=2)
    inner = positive(alpha, "alpha") * math.sqrt((d - 1) / d)
    return second_moments(d, epsilon=epsilon, alpha=inner)


def _scale(constant: float, epsilon: float, alpha: float) -> float:
    """C / (alpha epsilon), each factor checked."""
    product = positive(alpha, "alpha") * positive(epsilon, "epsilon")
    return positive(constant, "constant") / product
