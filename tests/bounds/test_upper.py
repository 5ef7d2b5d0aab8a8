"""Upper bounds in closed form: their arithmetic, and mechanisms whose errors must be smaller."""

import math

import numpy as np
import pytest

from geomdp import mechanisms
from geomdp.bounds import upper
from geomdp.bounds.upper import near_contraction_width, theorems
from geomdp.bounds.upper.theorems import second_moment_error
from geomdp.mechanisms.interactive.iterative import EnumeratedQueries
from geomdp.mechanisms.interactive.online import solve_accuracy
from geomdp.privacy import ZCDP, ApproxDP, PureDP
from geomdp.workloads import Marginals, RandomSigns
from geomdp.workloads import SecondMoment as SecondMoments
from geomdp.workloads.base import DenseQuery

AT = {"epsilon": 0.5, "alpha": 0.1}


def test_theorem_1_is_theorem_2_at_the_width_of_bounded_queries():
    """At width sqrt(2 k ln N), Theorem 2 gives the last two sizes of Theorem 1 up to constants."""
    k, N = 50, 1000
    regimes = upper.bounded_queries(k, N, **AT, constant=2.0)
    assert regimes.ball == 2.0 * k / 0.05
    assert regimes.least == min(regimes)
    width = math.sqrt(2 * k * math.log(N))
    by_width = upper.from_width(width, k, **AT, constant=1.0)
    np.testing.assert_allclose(by_width, min(regimes.knorm / math.sqrt(2), regimes.jl), rtol=1e-13)


@pytest.mark.parametrize(
    ("order", "alpha", "reach"),
    [(1, 0.9, 16.0), (2, 0.1, 64.0), (2, 0.5, 32.0), (3, 0.01, 256.0), (3, 0.1, 160.0)],
)
def test_marginals_have_the_least_of_three_terms(order, alpha, reach):
    """The bound for 16 attributes is C min(16^l, 16^((l + 1) / 2), 16 / alpha) / (alpha eps).

    For l = 1, the first two terms are equal, and the third is larger for all alpha < 1. For l > 1,
    the first is larger than the second.
    """
    found = upper.monotone_marginals(16, order, epsilon=0.5, alpha=alpha, constant=3.0)
    assert found == pytest.approx(3.0 * reach / (alpha * 0.5), rel=1e-13)


def test_jl_rows_balance_the_two_terms():
    n, epsilon = 900, 0.25
    settings = {"n": n, "epsilon": epsilon, "distortion": 3.0, "noise": 2.0}
    rows = upper.jl_mechanism_rows(10**6, **settings)
    assert rows == math.ceil(1.5 * n * epsilon)
    errors = [upper.jl_mechanism_error(5.0, 40, m, **settings) for m in (rows // 2, rows, 2 * rows)]
    assert errors[1] < min(errors[0], errors[2])
    np.testing.assert_allclose(
        errors[1], 5.0 / math.sqrt(40) * 2 * math.sqrt(6 / (n * epsilon)), rtol=1e-3
    )
    assert upper.jl_mechanism_rows(7, n=n, epsilon=epsilon) == 7
    assert upper.jl_mechanism_rows(7, n=1, epsilon=0.01) == 1


def test_ball_noise_reaches_its_closed_sample_size():
    """For answers of the largest diameter, 2 sqrt k, no n below the size of JL-L15 is enough."""
    workload = RandomSigns(12, 4000, 0)  # two elements have opposite answers
    assert workload.l2_diameter() == pytest.approx(2 * math.sqrt(12))
    n = math.ceil(upper.ball_bounded(12, **AT))
    assert mechanisms.Ball(workload, n=n, privacy=PureDP(0.5)).predicted_rmse.value <= 0.1
    assert mechanisms.Ball(workload, n=n - 1, privacy=PureDP(0.5)).predicted_rmse.value > 0.1


def test_gaussian_projection_oracle():
    """For N = 1000, n = 500 and rho = 1/2, JL-GAUSS bounds the error by 0.12193."""
    np.testing.assert_allclose(
        upper.gaussian_projection(1000, rho=0.5, alpha=0.12193), 500, rtol=1e-4
    )
    workload = RandomSigns(200, 100, 0)
    n = math.ceil(upper.gaussian_projection(100, rho=0.5, alpha=0.2))
    inner = mechanisms.Gaussian(workload, n=n, privacy=ZCDP(0.5))
    assert mechanisms.Projected(inner).predicted_rmse.value <= 0.2


@pytest.mark.parametrize("d", [1, 2, 5, 20])
@pytest.mark.parametrize("n", [10, 1000, 100_000])
def test_mechanisms_do_not_err_more_than_the_closed_forms(d, n):
    workload, privacy = SecondMoments(d), PureDP(0.7)
    root = math.sqrt(workload.n_queries)
    mechanism = mechanisms.SecondMoment(workload, n=n, privacy=privacy)
    bound = second_moment_error(d, n=n, epsilon=0.7)
    assert mechanism.predicted_rmse.value * root <= bound * (1 + 1e-12)
    covariance = mechanisms.Covariance(workload, n=n, privacy=privacy)
    # For the error of the mean, the mechanism takes the root mean square, and the theorem takes the
    # expectation, which is smaller.
    excess = 2 * (math.sqrt(d * (d + 1)) - d) * 2 / (n * 0.35)
    closed = upper.covariance_error(d, n=n, epsilon=0.7)
    assert covariance.population_bound <= (closed + excess) * (1 + 1e-12)


@pytest.mark.parametrize("alpha", [0.5, 0.02])
def test_sample_sizes_invert_their_errors(alpha):
    for sizes, error in (
        (upper.second_moments, second_moment_error),
        (upper.two_way_marginals, upper.two_way_marginals_error),
    ):
        needed = sizes(6, epsilon=0.5, alpha=alpha)
        assert error(6, n=math.ceil(needed), epsilon=0.5) <= alpha * (1 + 1e-12)
        assert error(6, n=math.floor(needed * 0.99), epsilon=0.5) > alpha


def test_older_bounds_are_worse_by_their_powers():
    at = {"epsilon": 1.0, "constant": 1.0}
    k, N = 100, 10_000
    for bound, power in ((upper.small_db, 8), (upper.older_projection, 4)):
        ratio = bound(k, N, alpha=0.05, **at) / bound(k, N, alpha=0.1, **at)
        np.testing.assert_allclose(ratio, power, rtol=1e-12)
    # The bounds grow as ln k and (ln k)^2, so they are two and four times as large for k^2 queries.
    for bound, factor in ((upper.small_db, 2), (upper.older_projection, 4)):
        ratio = bound(k**2, N, alpha=0.1, **at) / bound(k, N, alpha=0.1, **at)
        np.testing.assert_allclose(ratio, factor, rtol=1e-12)


def test_online_theorem_and_the_construction_here():
    """Theorem 3.3 implies Theorem 3.8; the construction of the library has a smaller error."""
    rule, n, k, beta = mechanisms.SparseMultiplicativeWeights(4), 10**9, 1000, 0.05
    privacy = ApproxDP(0.5, 1e-6)
    alpha = theorems.online_accuracy(rule.bound, n=n, queries=k, privacy=privacy, beta=beta)
    logs = math.log(4 / 1e-6) * math.log(k / beta)
    closed = math.sqrt(6000 * math.sqrt(math.log(rule.slots(alpha)) + 1) * logs / (0.5 * n))
    np.testing.assert_allclose(alpha, closed, rtol=1e-9)
    ours = 3 * solve_accuracy(rule, privacy=privacy, n=n, queries=k, beta=beta)
    assert ours < alpha


@pytest.mark.parametrize("privacy", [PureDP(1.0), ApproxDP(1.0, 1e-6)])
def test_iterative_theorem_bounds_the_construction(privacy):
    size, count, n, beta = 16, 20, 10**7, 0.05
    rule = mechanisms.MultiplicativeWeights(size)
    alpha = theorems.iterative_accuracy(rule.bound, n=n, queries=count, privacy=privacy, beta=beta)
    rng = np.random.default_rng(0)
    queries = [DenseQuery(row) for row in rng.random((count, size))]
    built = mechanisms.IterativeConstruction(
        rule, EnumeratedQueries(queries), n=n, privacy=privacy, beta=beta
    )
    assert built.accuracy <= alpha * (1 + 1e-9)
    if isinstance(privacy, PureDP):
        updates = rule.bound(alpha / 2)
        logs = math.log(2 * updates * count / beta)
        np.testing.assert_allclose(alpha**3, 512 * math.log(size) * logs / n, rtol=1e-9)
    # The construction solves the same equation, except that it rounds the number of updates down.
    assert alpha <= built.accuracy * 1.001


def test_smooth_rates():
    """For K = 2 d the error is C n^(-1/2) (SM-TAB), and epsilon > 1 does not lower it (DISC-17)."""
    at = {"epsilon": 1.0, "constant": 3.0}
    np.testing.assert_allclose(theorems.smooth_accuracy(2, 4, n=10_000, **at), 0.03, rtol=1e-12)
    large = theorems.smooth_accuracy(2, 4, n=10_000, epsilon=50.0, constant=3.0)
    assert large == theorems.smooth_accuracy(2, 4, n=10_000, **at)


BOUND = mechanisms.MultiplicativeWeights(9).bound
RULE = {"n": 5, "queries": 3, "privacy": PureDP(1.0), "beta": 0.1}


@pytest.mark.parametrize(("call", "message"), [
    (lambda: upper.ball_bounded(0, **AT), "queries must be a whole number, at least 1, got 0"),
    (lambda: upper.second_moments(3, epsilon=0.0, alpha=0.1), "epsilon must be a finite number"),
    (lambda: upper.two_way_marginals(1, **AT), "attributes must be a whole number, at least 2"),
    (lambda: upper.bounded_queries(5, 5, **AT, constant=-1.0), "constant must be a finite num"),
    (lambda: upper.iterative_accuracy(BOUND, **RULE), "n must be larger for 3 queries"),
    (lambda: upper.online_accuracy(BOUND, **RULE), "privacy must be ApproxDP"),
])  # fmt: skip
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_two_way_marginals_through_the_covariance_body():
    """The error of cone noise is at most the first term of Theorem 23."""
    from geomdp.mechanisms import Cone

    for n in (50, 5000):
        direct = Cone(Marginals(8, 2), n=n, privacy=PureDP(1.0)).predicted_rmse.value
        assert direct <= upper.two_way_marginals_error(8, n=10**5, epsilon=1.0) * 10**5 / n


@pytest.mark.parametrize(
    ("width", "excess", "rows"), [(2.0, 0.5, 16), (0.1, 3.0, 5), (7.0, 0.0, 2)]
)
def test_widths_under_near_contractions(width, excess, rows):
    """The bound is min over b of (1 + d/b) w + (b + d) sqrt m <= 2 w + 2 d sqrt m (JL-L11)."""
    bound = near_contraction_width(width, excess, rows=rows)
    separations = np.geomspace(1e-4, 1e4, 20_001)
    sums = (1 + excess / separations) * width + (separations + excess) * math.sqrt(rows)
    assert bound <= sums.min() <= bound * (1 + 1e-3) + 1e-3
    printed = 2 * width + 2 * excess * math.sqrt(rows)
    assert printed / 2 <= bound * (1 + 1e-12) <= printed * (1 + 2e-12)
    for bad in (-1.0, math.nan, math.inf, True):
        with pytest.raises(ValueError, match="excess"):
            near_contraction_width(width, bad, rows=rows)
