"""Squared factorisation norms, and the shares of them that orthogonal lines reach.

Let V be the set of differences of the answers of two elements. Gaussian noise with covariance Sigma
has sensitivity 1 if w^T Sigma^-1 w <= 1 for all w in V. The least total variance of such noise is
the squared factorisation norm gamma^2, in the Frobenius version for mean squared errors:

    gamma^2  =  min {tr Sigma : w^T Sigma^-1 w <= 1 for all w in V}
             =  max {(tr M_p^(1/2))^2 : p probability weights on V},    M_p = sum_w p_w w w^T.

The second line is Lagrange duality. For weights s p, the least value of
tr Sigma + s (tr Sigma^-1 M_p - 1) is 2 s^(1/2) tr M_p^(1/2) - s, at Sigma = (s M_p)^(1/2). The
largest of these values over s is (tr M_p^(1/2))^2.

The lower bound from orthogonal lines (`geomdp.bounds.lines`) is this dual, with
the least risk of a private estimate on each line in place of the variance of noise. Line j has a
pair with the difference w_j in V, a vector u_j, and the length delta_j = <u_j, w_j>. The vectors
u_j are orthonormal. Let W have the columns w_j, and let D be a diagonal matrix with D_jj^2 = p_j.

* For any lines, choose p_j proportional to delta_j^2. The nuclear norm of W D is tr M_p^(1/2), and
  it is at least sum_j D_jj <u_j, w_j>. So sum_j delta_j^2 <= (tr M_p^(1/2))^2 <= gamma^2.
* For any weights p on i <= k pairs, let the vectors u_j be the columns of the polar factor of W D.
  Then delta_j = S_jj / D_jj with S = (D W^T W D)^(1/2). As sum_j D_jj^2 = 1, the inequality of
  Cauchy and Schwarz gives sum_j delta_j^2 >= (tr S)^2 = (tr M_p^(1/2))^2.

So the largest sum of squared lengths of i lines is the largest (tr M_p^(1/2))^2 for weights on i
pairs. It equals gamma^2 if and only if optimal weights on i pairs exist. Let r be the dimension of
the span of V. Then r (r + 1) / 2 pairs always suffice: the optimal M_p is on the boundary of the
hull of the matrices w w^T (Caratheodory). `OrthogonalLines` allows k pairs, and the search of
`geomdp` uses at most r. For the simplex with r + 1 corners, no fewer than all r (r + 1) / 2 pairs
are optimal.

Row products of marginals (Kasiviswanathan, Rudelson, Smith and Ullman 2010) use pairs of records
that differ in one column, the secret bit. The other columns are random and public. Let sigma be
the least singular value of W. In mean squared error, the bound has i sigma^2 in place of
sum_j delta_j^2. Lines with the same pairs and equal weights prove at least as much, because
delta_j = ((W^T W)^(1/2))_jj >= sigma. So i sigma^2 is at most the squared factorisation norm of the
pairs that differ in one column.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

import experiments.engine.tools as ex
import geomdp as gd

#: Singular values below this share of the largest singular value count as 0.
SINGULAR = 1e-9


def principal_coordinates(rows: ex.FloatArray) -> ex.FloatArray:
    """Coordinates of the points `rows` along their right singular vectors."""
    _, values, axes = np.linalg.svd(rows, full_matrices=False)
    return np.asarray(rows @ axes[values > SINGULAR * values[0]].T)


#: Steps of the ascent on p. With 100 steps, the two bounds on gamma^2 differ by at most 1.2% for
#: the standard workloads.
STEPS = 100
#: Largest number of elements whose pairs are listed.
MOST_ELEMENTS = 512
#: An error so small that the lower bound uses as many lines as the search finds.
SMALL_ERROR = 1e-4


def least_variance(differences: ex.FloatArray) -> tuple[float, float, ex.FloatArray]:
    """Lower and upper bound on gamma^2, and weights p (E,), for a set V of differences.

    V consists of the rows of `differences` (E, k). Let q_w = w^T M_p^(-1/2) w. Each step multiplies
    p_w by q_w / tr M_p^(1/2), which keeps the sum of the weights. The weights p prove the lower
    bound. Noise with the covariance Sigma = (max_w q_w) M_p^(1/2) has sensitivity 1 and proves the
    upper bound.
    """
    points = principal_coordinates(differences)
    weights = np.full(len(points), 1 / len(points))
    best, lower, upper = weights, 0.0, math.inf
    for _ in range(STEPS):
        values, vectors = np.linalg.eigh((points * weights[:, None]).T @ points)
        trace = float(np.sqrt(values).sum())
        squares = ((points @ (vectors * values**-0.25)) ** 2).sum(axis=1)
        if trace**2 > lower:
            best, lower = weights, trace**2
        upper = min(upper, trace * float(squares.max()))
        weights = weights * squares / trace
        weights = weights / weights.sum()
    return lower, upper, best


def norm_columns(
    Q: gd.workloads.Workload, privacy: gd.privacy.Privacy, alpha: float, bound: gd.bounds.Bound
) -> ex.Row:
    """Columns of a row: gamma^2, and how near lines and row products come to it.

    `norm` is an upper bound on gamma^2. `all_lines` is the sum of squared lengths of the lines that
    are best for many records. `own_lines` is this sum for the lines of `bound`, or 0 if the last
    step of its proof does not use lines. For marginals, `row_products` is a number of records that
    no bound from row products exceeds.
    """
    many = gd.bounds.orthogonal_lines_bound(
        Q, alpha=SMALL_ERROR, metric=gd.bounds.RMS(), privacy=privacy
    )
    found: ex.Row = {
        "norm": squared_norm(Q),
        "all_lines": sum_of_squares(many),
        "own_lines": sum_of_squares(bound),
    }
    if isinstance(Q, gd.workloads.Marginals):
        # The least risk of a private estimate of one count is at most `one_count_variance`.
        total = one_count_variance(privacy) * one_column_norm(Q)
        found["row_products"] = math.sqrt(total / Q.n_queries) / alpha
    return found


def sum_of_squares(bound: gd.bounds.Bound) -> float:
    """Sum of delta_j^2 over the lines in the last step of a bound's proof; 0 without such lines."""
    if not isinstance(bound.certificate, gd.bounds.Certificate):
        return 0.0
    rung = bound.certificate.rungs[-1]
    return float((rung.family.lengths**2).sum()) if rung.kind == "lines" else 0.0


@lru_cache(maxsize=16)
def squared_norm(Q: gd.workloads.Workload) -> float:
    """An upper bound on gamma^2: the total variance of some Gaussian noise of sensitivity 1."""
    # Gaussian noise for one record under 0.5-zCDP has sensitivity 1.
    equal = gd.mechanisms.Gaussian(Q, n=1, privacy=gd.ZCDP(0.5)).predicted_rmse.value
    total = equal**2 * Q.n_queries
    size = Q.universe.size
    if size is None or size > MOST_ELEMENTS:
        return total
    answers = gd.workloads.explicit_answers(Q)
    first, second = np.triu_indices(size, 1)
    return min(total, least_variance(answers[first] - answers[second])[1])


def one_column_norm(Q: gd.workloads.Marginals) -> float:
    """An upper bound on gamma^2 for pairs of records that differ in the first column only."""
    ones = Q.universe.elements(0, Q.universe.size)
    ones = ones[ones[:, 0] == 1]
    zeros = ones.copy()
    zeros[:, 0] = 0
    differences = Q.evaluate(ones) - Q.evaluate(zeros)
    return least_variance(differences[np.abs(differences).max(axis=1) > 0])[1]


def one_count_variance(privacy: gd.privacy.Privacy) -> float:
    """Variance of private noise on one count: Gaussian under zCDP, else geometric."""
    if isinstance(privacy, gd.ZCDP):
        return 1 / (2 * privacy.rho)
    return 2 * math.exp(-privacy.epsilon) / math.expm1(-privacy.epsilon) ** 2


#: The map T divides each principal axis by a power of the standard deviation of the points along
#: it. These are the powers.
POWERS = (0.0, 0.25, 0.5, 0.75, 1.0)
#: Largest probability that, for any of the powers, the upper limit of a simulated width is too low.
LEVEL = 1e-6
#: Shares t that are tried.
SHARES = np.geomspace(1e-4, 1.0, 1000)[:, None]
#: Largest size of a universe whose elements are listed.
MOST_VERTICES = 1 << 11


@dataclass(frozen=True)
class Radii:
    """Upper bounds on volume radii for K of dimension r. Entry i - 1 is for i dimensions."""

    body: ex.FloatArray  # Bounds (r,) on vr_i(K)
    half_difference: ex.FloatArray  # Bounds (r,) on vr_i((K - K) / 2)

    def ceiling(
        self, *, epsilon: float, alpha: float, metric: gd.bounds.Metric, queries: int
    ) -> float:
        """The largest n, not rounded, for which an error `alpha` per query could be excluded."""
        dimensions = np.arange(1, len(self.body) + 1)
        unit: float | ex.FloatArray = math.sqrt(queries)
        if isinstance(metric, gd.bounds.WorstCase):
            unit = np.array([2 / gd.geometry.unit_ball_volume(i) ** (1 / i) for i in dimensions])
        radii = np.minimum(SHARES * self.half_difference, self.body) / (alpha * unit)
        shares = (1 + metric.moment / dimensions) * radii**-metric.moment
        return float((log_ratio(shares, dimensions, metric.moment) / (epsilon * SHARES)).max())


def log_ratio(
    shares: ex.FloatArray, dimensions: npt.NDArray[np.int_], moment: int
) -> ex.FloatArray:
    """ln R for y = `shares`, in `dimensions` i with the `moment` p; 0 for y >= 1."""
    below = np.minimum(shares, 1.0)
    with np.errstate(divide="ignore"):
        gained = np.log1p(-below) + np.log(dimensions / moment)
    powers = (1 + dimensions / moment) * (np.log1p(moment / dimensions) - np.log(below))
    return np.asarray(np.logaddexp(0.0, gained + powers))


def volume_columns(
    Q: gd.workloads.Workload, *, epsilon: float, alpha: float, metric: gd.bounds.Metric
) -> ex.Row:
    """Column `volume`: how many records a volume packing could exclude at most, not rounded."""
    found = radii(Q).ceiling(epsilon=epsilon, alpha=alpha, metric=metric, queries=Q.n_queries)
    return {"volume": found}


@lru_cache(maxsize=16)
def radii(Q: gd.workloads.Workload) -> Radii:
    """Upper bounds on the volume radii for the hull K of the answers of a workload."""
    size, half = Q.universe.size, Q.l2_diameter() / 2
    if size is None or size > MOST_VERTICES:
        K = gd.sensitivity_polytope(Q)
        bound = np.minimum(half, urysohn(K, np.ones(Q.affine_hull().dimension)))
        return Radii(bound, bound)
    points = principal(np.unique(gd.workloads.explicit_answers(Q).round(12), axis=0))
    spread = points.std(axis=0)
    widths = [
        urysohn(gd.bodies.VPolytope(points / spread**power), spread**power) for power in POWERS
    ]
    bound = np.minimum(half, np.min(widths, axis=0))
    hull = hull_radii(points)
    doubled = [(math.comb(2 * i, i) / 2**i) ** (1 / i) for i in range(1, len(hull) + 1)]
    return Radii(np.minimum(bound, hull), np.minimum(bound, hull * doubled))


def principal(points: ex.FloatArray) -> ex.FloatArray:
    """Coordinates (N, r) of `points` (N, k) along their r principal axes, from the mean."""
    return principal_coordinates(points - points.mean(axis=0))


def urysohn(body: gd.bodies.Body, stretch: ex.FloatArray) -> ex.FloatArray:
    """Urysohn's bounds (r,) on the volume radii of T^-1 `body`, for T^-1 = diag(`stretch`)."""
    width = gd.gaussian_width(body, rng=0, level=LEVEL / len(POWERS)).interval[1]
    dimensions = np.arange(1, len(stretch) + 1)
    norms = [gd.geometry.mean_gaussian_norm(i) for i in dimensions.tolist()]
    return np.asarray(np.exp(np.log(stretch).cumsum() / dimensions) * width / norms)


def hull_radii(points: ex.FloatArray) -> ex.FloatArray:
    """Upper bounds (r,) by simplices on the volume radii of the hull of `points` (N, r)."""
    count, rank = points.shape
    logs = np.log((points**2).sum(axis=0)).cumsum()
    found = []
    for i in range(1, rank + 1):
        squares = math.log(math.comb(count, i + 1)) + math.log(count) + logs[i - 1]
        volume = squares / 2 - math.lgamma(i + 1) - math.log(count - i)
        found.append(math.exp((volume - math.log(gd.geometry.unit_ball_volume(i))) / i))
    return np.array(found)
