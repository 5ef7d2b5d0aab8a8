"""Ways to prove lower bounds that brackets do not use: factorisation norms, volumes, row products.

A bracket is a lower and an upper bound on the number of records (`gd.sample_complexity_bracket`).
"""

import itertools
import math

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import pytest
import scipy.optimize
import scipy.spatial

import geomdp as gd
from experiments.lower_bounds import factorisation_norms
from geomdp.bounds.lines import OrthogonalLines
from geomdp.workloads import explicit_answers

FloatArray = npt.NDArray[np.float64]

WORKLOADS = [
    gd.workloads.Prefixes(4),
    gd.workloads.Histogram(5),
    gd.workloads.RandomSigns(4, 12, rng=1),
    gd.workloads.Marginals(3, 2),
]


def pairs(Q: gd.workloads.Workload) -> npt.NDArray[np.int_]:
    """The pairs of elements with different answers."""
    listed = itertools.combinations(range(Q.universe.size), 2)
    found = explicit_answers(Q)
    return np.array([pair for pair in listed if np.ptp(found[list(pair)], axis=0).max() > 0])


def differences(Q: gd.workloads.Workload) -> FloatArray:
    chosen = pairs(Q)
    return explicit_answers(Q)[chosen[:, 0]] - explicit_answers(Q)[chosen[:, 1]]


def lines_of_all_pairs(Q: gd.workloads.Workload, weights: FloatArray) -> FloatArray:
    """Lengths of lines on all pairs with these weights.

    Queries with all answers 0 are added, because there must be as many queries as pairs.
    """
    chosen = pairs(Q)
    room = np.zeros((max(0, len(chosen) - Q.n_queries), Q.universe.size))
    return OrthogonalLines(
        gd.workloads.Explicit(np.vstack([explicit_answers(Q).T, room])),
        elements=np.arange(Q.universe.size),
        pairs=chosen,
        weights=np.sqrt(weights),
    ).lengths


@pytest.mark.parametrize("Q", WORKLOADS, ids=repr)
def test_bounds_on_the_norm_enclose_the_semidefinite_program(Q):
    V = differences(Q)
    _, values, axes = np.linalg.svd(V, full_matrices=False)
    points = V @ axes[values > 1e-9].T
    covariance = cp.Variable((points.shape[1],) * 2, PSD=True)
    private = [cp.matrix_frac(point, covariance) <= 1 for point in points]
    norm = cp.Problem(cp.Minimize(cp.trace(covariance)), private).solve(solver=cp.CLARABEL)
    lower, upper, weights = factorisation_norms.least_variance(V)
    assert lower <= norm * (1 + 1e-6)
    assert norm <= upper * (1 + 1e-6)
    assert upper <= 1.02 * lower
    root = np.sqrt(np.maximum(np.linalg.eigvalsh((V * weights[:, None]).T @ V), 0)).sum()
    assert root**2 == pytest.approx(lower)
    assert factorisation_norms.squared_norm(Q) == pytest.approx(upper)


@pytest.mark.parametrize("Q", WORKLOADS, ids=repr)
def test_lines_with_the_best_pairs_reach_the_norm_and_no_lines_pass_it(Q):
    """Negative control: the best lines are above 97% of the bound, so a bound 3% lower fails."""
    lower, upper, weights = factorisation_norms.least_variance(differences(Q))
    best = float((lines_of_all_pairs(Q, weights) ** 2).sum())
    assert lower * (1 - 1e-6) <= best <= upper * (1 + 1e-6)
    assert best > 0.97 * upper
    rng = np.random.default_rng(0)
    for _ in range(20):
        drawn = rng.dirichlet(np.full(len(weights), 0.3)) + 1e-6
        lengths = lines_of_all_pairs(Q, drawn / drawn.sum())
        V = differences(Q)
        values = np.linalg.eigvalsh((V * (drawn / drawn.sum())[:, None]).T @ V)
        dual = float(np.sqrt(np.maximum(values, 0)).sum()) ** 2
        assert dual * (1 - 1e-3) <= float((lengths**2).sum()) <= upper * (1 + 1e-6)


def test_the_variance_for_one_count_is_that_of_the_mechanisms():
    Q = gd.workloads.Marginals(1, 1)
    for privacy, known in (
        (gd.ZCDP(0.3), gd.mechanisms.Gaussian(Q, n=1, privacy=gd.ZCDP(0.3))),
        (gd.ApproxDP(0.7, 1e-6), gd.mechanisms.Geometric(Q, n=1, privacy=gd.PureDP(0.7))),
    ):
        assert known.predicted_rmse.value**2 == pytest.approx(
            factorisation_norms.one_count_variance(privacy)
        )


def least_share(ratio: float, dimension: int, moment: int, cells: int = 1000) -> float:
    """Least mean of |x|^`moment` of densities on the unit ball, relative to the uniform density.

    The largest value of a density is at most `ratio` times the least. The densities are constant on
    thin shells, so this is a linear program.
    """
    edges = np.linspace(0, 1, cells + 1)
    volumes = np.diff(edges**dimension)
    powers = np.diff(edges ** (dimension + moment)) * dimension / (dimension + moment)
    # The densities are m + x with 0 <= x <= (R - 1) m. The variables are m and one x per shell.
    A = scipy.sparse.hstack(
        [scipy.sparse.identity(cells), scipy.sparse.csr_array(np.full((cells, 1), 1 - ratio))]
    )
    found = scipy.optimize.linprog(
        np.append(powers, powers.sum()),
        A_ub=A,
        b_ub=np.zeros(cells),
        A_eq=np.append(volumes, 1.0)[None],
        b_eq=[1.0],
    )
    return float(found.fun) * (dimension + moment) / dimension


@pytest.mark.parametrize(("dimension", "moment"), [(1, 1), (1, 2), (3, 1), (8, 2)])
@pytest.mark.parametrize("ratio", [1.5, 20.0, 3000.0])
def test_the_ratio_of_densities_is_that_of_the_linear_program(dimension, moment, ratio):
    share = least_share(ratio, dimension, moment)
    (found,) = factorisation_norms.log_ratio(np.array([share]), np.array([dimension]), moment)
    assert found == pytest.approx(math.log(ratio), rel=1e-3)
    assert found != pytest.approx(math.log(2 * ratio), rel=1e-2)


def ceiling(
    found: factorisation_norms.Radii, metric: gd.bounds.Metric, *, alpha: float = 0.05
) -> float:
    return found.ceiling(epsilon=0.1, alpha=alpha, metric=metric, queries=len(found.body))


@pytest.mark.parametrize("metric", [gd.bounds.MeanL2(), gd.bounds.RMS(), gd.bounds.WorstCase()])
@pytest.mark.parametrize("dimension", [1, 2, 4])
def test_exact_volumes_of_cubes_exclude_no_record_that_suffices(dimension, metric):
    """The exact volume of [0, 1]^d cannot exclude a number of records that suffices.

    K-norm noise Z for [-1, 1]^d has E ||Z||_inf = d / epsilon, and E ||Z||_2^2 is
    d (d + 1) (d + 2) / (3 epsilon^2) (JL-L14). The negative control has the volume of a cube that
    is six times as wide, and its ceiling is too high.
    """
    Q = gd.workloads.Marginals(dimension, 1)
    exact = gd.geometry.volume_radius(gd.sensitivity_polytope(Q)).value
    upper = factorisation_norms.radii(Q)
    assert (upper.body >= exact * (1 - 1e-9)).all()
    assert (upper.half_difference >= exact * (1 - 1e-9)).all()
    known = np.append(np.zeros(dimension - 1) + 1e-9, exact)
    excluded = ceiling(factorisation_norms.Radii(known, known), metric)
    noise = math.sqrt((dimension + 1) * (dimension + 2) / 3)
    if isinstance(metric, gd.bounds.WorstCase):
        noise = dimension
    enough = noise / (0.1 * 0.05)
    assert 0 < excluded < enough
    assert excluded <= ceiling(upper, metric) * (1 + 1e-9)
    assert ceiling(factorisation_norms.Radii(6 * known, 6 * known), metric) > enough


def test_a_long_box_has_ceilings_far_below_those_of_its_width():
    """For a box with sides 1, 1/4, ..., the last radius is below half of Urysohn's bound."""
    sides = 0.25 ** np.arange(4)
    corners = np.array(list(itertools.product((0.0, 1.0), repeat=4))) * sides
    Q = gd.workloads.Explicit(corners.T)
    for size in range(1, 5):
        exact = sides[:size].prod() ** (1 / size) * gd.geometry.unit_ball_volume(size) ** (
            -1 / size
        )
        assert exact <= factorisation_norms.radii(Q).half_difference[size - 1]
    plain = gd.gaussian_width(gd.bodies.VPolytope(corners), rng=0).value
    assert (
        factorisation_norms.radii(Q).half_difference[-1]
        < plain / gd.geometry.mean_gaussian_norm(4) / 2
    )


def test_rows_under_concentrated_privacy_have_their_columns():
    Q, privacy = gd.workloads.Marginals(3, 2), gd.ZCDP(0.5)
    bound = gd.bounds.orthogonal_lines_bound(Q, alpha=0.05, metric=gd.bounds.RMS(), privacy=privacy)
    found = factorisation_norms.norm_columns(Q, privacy, 0.05, bound)
    assert 0 < found["own_lines"] <= found["all_lines"] <= found["norm"]
    assert 0 < found["row_products"] < bound.records
