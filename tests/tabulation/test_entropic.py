"""Entropic fits: optimal, a function of the release alone, and never beyond twice the noise."""

import functools
import itertools
import math

import cvxpy as cp
import numpy as np
import pandas as pd
import pytest
import scipy.stats

import geomdp as gd
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp.mechanisms import Laplace, Projected
from geomdp.tabulation import consistency, entropic
from geomdp.tabulation.consistency import Consistency, Form
from geomdp.tabulation.entropic import Fits, JointTables, Tree, cost_of, fit
from geomdp.tabulation.tasks import task_of
from tests.stats import LEVEL, binomial_agrees
from tests.tabulation.cases import LEVELS, SCHEMA, N, frame_of, tables_of

CASES = {
    "pairs": (tuple(itertools.combinations("abcd", 2)), (1.0,) * 6),
    "apart, weighted": ((("a", "b"), ("b",), ("c", "d"), ("d",)), (1.0, 0.5, 3.0, 2.0)),
    "mixed": ((("a", "b", "c"), ("c", "d")), (1.0, 2.0)),
    "one": ((("b", "c"),), (1.0,)),
}


class Case:
    def __init__(self, crossed, weights):
        self.tables = tables_of(LEVELS, crossed)
        self.weights = weights
        self.joint = JointTables(self.tables, weights)
        names = [name for name in LEVELS if any(name in table for table in crossed)]
        everyone = np.indices([LEVELS[name] for name in names]).reshape(len(names), -1)
        rows = []
        for table, weight in zip(crossed, weights, strict=True):
            codes = everyone[[names.index(name) for name in table]]
            cells = itertools.product(*(range(LEVELS[name]) for name in table))
            rows += [weight * (codes == np.array(cell)[:, None]).all(axis=0) for cell in cells]
        self.matrix = np.array(rows, dtype=float)  # A

    def noisy(self, seed, noise):
        rng = np.random.default_rng(seed)
        truth = self.matrix @ rng.dirichlet(np.full(self.matrix.shape[1], 0.05))
        return truth, truth + noise * rng.standard_normal(len(truth))

    def solved(self, y, tau, prior, gap=1e-10, covariance=None):
        return fit(self.joint, y, tau, prior, np.zeros_like(y), gap, covariance)


@pytest.fixture(params=CASES, name="case")
def fixture_case(request):
    return Case(*CASES[request.param])


@pytest.mark.parametrize("block", [entropic.BLOCK, 1])
def test_tables_and_covariances_are_those_of_the_joint_table(case, monkeypatch, block):
    monkeypatch.setattr(entropic, "BLOCK", block)
    case.joint = JointTables(case.tables, case.weights)
    rng = np.random.default_rng(0)
    scores, v = rng.normal(size=(2, case.joint.n_cells))
    weights = np.exp(case.matrix.T @ scores)
    p = weights / weights.sum()
    answers, logarithm = case.joint.fitted(scores)
    # Columns in no table and combinations of columns that are apart do not change the divisor.
    np.testing.assert_allclose(answers, case.matrix @ p, rtol=1e-12)
    assert logarithm == pytest.approx(np.log(weights.sum()), rel=1e-12)
    values = case.matrix.T @ v
    expected = case.matrix @ (p * (values - p @ values))
    monkeypatch.setattr(case.joint, "_has_matrices", True)
    np.testing.assert_allclose(case.joint.covariance(scores) @ v, expected, atol=1e-14)
    monkeypatch.setattr(case.joint, "_has_matrices", False)
    moved = case.joint.covariance(scores) @ v
    np.testing.assert_allclose(moved, expected, atol=1e-5 * np.abs(expected).max())


def test_combinations_are_drawn_as_often_as_they_should_be(case, monkeypatch):
    """Each combination of joined columns is drawn k p times, rounded up or down at random."""
    monkeypatch.setattr(entropic, "BLOCK", 1)
    joint = JointTables(case.tables, case.weights)
    rng, count, trials = np.random.default_rng(4), 50, 200
    scores = rng.normal(size=joint.n_cells)
    weights = np.exp(case.matrix.T @ scores)
    names = [name for name in LEVELS if any(name in table.columns for table in case.tables)]
    p = (weights / weights.sum()).reshape([LEVELS[name] for name in names])
    for chosen in entropic._joined(case.tables):
        own = [n for n in names if any(n in case.tables[i].columns for i in chosen)]
        rest = tuple(names.index(name) for name in names if name not in own)
        expected = count * p.sum(axis=rest)
        found = np.empty((trials, expected.size))
        for row in found:
            drawn = joint.sample(scores, count, rng)
            cells = np.ravel_multi_index([drawn[name] for name in own], expected.shape)
            row[:] = np.bincount(cells, minlength=expected.size)
        assert (np.abs(found - expected.ravel()) < 1).all()
        for counts, mean in zip(found.T, expected.ravel(), strict=True):
            up = int((counts > np.floor(mean)).sum())
            binomial_agrees(up, trials, mean - math.floor(mean), LEVEL / expected.size)


@pytest.mark.filterwarnings("ignore:Solution may be inaccurate")  # of the other solver, 1e-4 do
@pytest.mark.parametrize(("noise", "tau"), [(0.3, 1.0), (0.1, 0.01), (0.02, 1e-3)])
def test_fits_are_optimal_for_another_solver(case, noise, tau, monkeypatch):
    _, y = case.noisy(2, noise)
    prior = np.random.default_rng(3).normal(size=len(y))
    u = np.exp(case.matrix.T @ prior)
    u /= u.sum()
    p = cp.Variable(len(u), nonneg=True)
    loss = cp.sum_squares(case.matrix @ p - y) / 2 + tau * cp.sum(cp.kl_div(p, u))
    cp.Problem(cp.Minimize(loss), [cp.sum(p) == 1]).solve(solver=cp.CLARABEL)
    found = case.solved(y, tau, prior)
    assert found.gap <= 1e-10
    q = np.exp(case.matrix.T @ (found.multipliers / tau + prior))
    q /= q.sum()
    np.testing.assert_allclose(case.matrix @ q, found.answers, atol=1e-12)
    own = np.sum((found.answers - y) ** 2) / 2 + tau * q @ np.log(q / u)
    assert own <= loss.value + 1e-9 + found.gap
    # The loss grows by at least half the squared distance.
    apart = np.sum((found.answers - case.matrix @ p.value) ** 2) / 2
    assert apart <= loss.value - own + 1e-6
    # The covariance at the start, where p is the prior, changes the coordinates only.
    monkeypatch.setattr(case.joint, "_has_matrices", True)
    turned = case.solved(y, tau, prior, 1e-6, case.joint.covariance(prior))
    assert turned.gap <= 1e-6
    assert np.sum((turned.answers - found.answers) ** 2) <= 2.1e-6
    # A larger gap moves the tables by at most the root of twice the gap.
    rough = case.solved(y, tau, prior, 1e-4)
    roots = np.sqrt([2 * rough.gap, 2 * found.gap])
    assert np.linalg.norm(rough.answers - found.answers) <= roots.sum()


def test_the_largest_divergence_is_that_of_one_combination(case):
    scores = np.random.default_rng(7).normal(size=case.joint.n_cells)
    weights = np.exp(case.matrix.T @ scores)
    exact = -np.log(weights.min() / weights.sum())
    assert case.joint.farthest(scores) >= exact - 1e-12
    assert case.joint.farthest(0 * scores) == pytest.approx(np.log(case.matrix.shape[1]))


def tiny(case):
    """Draws of noise that is hardly larger than rounding errors."""
    return 1e-9 * np.random.default_rng(7).normal(size=(4, case.joint.n_cells))


def test_the_prior_of_independent_columns_is_their_product(case):
    rng = np.random.default_rng(6)
    levels = [rng.dirichlet(np.ones(count)) for count in LEVELS.values()]
    names = [name for name in LEVELS if any(name in t.columns for t in case.tables)]
    own = [share for name, share in zip(LEVELS, levels, strict=True) if name in names]
    truth = case.matrix @ functools.reduce(np.multiply.outer, own).ravel()
    tree = Tree(JointTables(case.tables, case.weights), tiny(case))
    np.testing.assert_allclose(case.joint.fitted(tree.scores(truth))[0], truth, atol=1e-7)
    # Levels are at least as large as the noise, so that no level is excluded.
    noisy = Tree(JointTables(case.tables, case.weights), 1e9 * tiny(case))
    assert np.isfinite(noisy.scores(-truth)).all()


@pytest.mark.parametrize("edges", [("ab", "bc", "cd"), ("ad", "bd", "cd"), ("ac",)])
def test_the_prior_of_a_tree_of_columns_is_that_tree(edges):
    """The distribution is proportional to a product of functions of the pairs on the tree."""
    case, rng = Case(*CASES["pairs"]), np.random.default_rng(8)
    weights = np.ones([*LEVELS.values()])
    everyone = np.indices(weights.shape)
    for edge in edges:
        first, second = ("abcd".index(name) for name in edge)
        factor = np.exp(2 * rng.normal(size=(weights.shape[first], weights.shape[second])))
        weights = weights * factor[everyone[first], everyone[second]]
    truth = case.matrix @ (weights / weights.sum()).ravel()
    tree = Tree(JointTables(case.tables, case.weights), tiny(case))
    np.testing.assert_allclose(case.joint.fitted(tree.scores(truth))[0], truth, atol=1e-6)


# --- releases -----------------------------------------------------------------------------------

REPLACE = gd.Adjacency.REPLACE_ONE
TASK = task_of(SCHEMA, ["marginals:2"])


def mechanism(epsilon=1.0):
    return Laplace(TASK.workload, n=N, privacy=gd.PureDP(epsilon), adjacency=REPLACE)


@pytest.mark.parametrize("prior", [0, 1])
@pytest.mark.parametrize("kappa", [1000.0, 30.0])
def test_the_estimate_is_steins_formula(prior, kappa, monkeypatch):
    """The derivative by conjugate gradients agrees with differences of fits to moved answers."""
    monkeypatch.setattr(entropic, "RESIDUAL", 1e-8)
    M = mechanism()
    fits = Fits(JointTables(TASK.tables, [1.0] * 3), M)
    y = M.release(np.zeros((N, 3), dtype=np.uint8), rng=8).answers
    tau, scores_of = kappa * fits._variance, fits._priors[prior]

    def solved(noisy):
        return fit(fits._joint, noisy, tau, scores_of(noisy), np.zeros_like(noisy), 1e-25)

    model, offset = solved(y), scores_of(y)
    moved = [solved(y + 1e-4 * draw).answers - model.answers for draw in fits._draws]
    freedom = np.sum(fits._draws * moved) / 1e-4 / np.sum(fits._draws**2)
    moves = [(scores_of(y + 1e-4 * draw) - offset) / 1e-4 for draw in fits._draws]
    for has_matrices in (True, False):
        monkeypatch.setattr(fits._joint, "_has_matrices", has_matrices)
        covariance = fits._joint.covariance(model.multipliers / tau + offset)
        found = fits._freedom(covariance, tau, moves)
        assert found == pytest.approx(freedom, rel=1e-3)


def test_a_fit_is_a_function_of_the_release_and_of_public_draws(monkeypatch):
    seeds, made = [], np.random.default_rng
    first = mechanism().release(TASK.workload.universe.sample(N, made(0)), rng=1)

    def recorded(seed=None):
        seeds.append(seed)
        return made(seed)

    monkeypatch.setattr(np.random, "default_rng", recorded)
    answers = []
    for records_seed in (2, 3):
        # Other records and other noise, but the same noisy answers are adjusted.
        M = mechanism()
        M.release(TASK.workload.universe.sample(N, made(records_seed)), rng=made(records_seed))
        seeds.clear()
        last = Consistency(TASK, M, REPLACE)
        moved, form, _ = last.applied(first)
        assert set(seeds) == {PUBLIC_SEED}
        assert form is Form.FITTED
        answers.append(moved.answers)
    np.testing.assert_array_equal(*answers)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_no_fit_errs_more_than_its_bound(epsilon):
    M = mechanism(epsilon)
    limit = M.predicted_rmse.value**2 * TASK.workload.n_queries
    # All records are equal: the data for which a prior is farthest off.
    records, rng = np.zeros((N, 3), dtype=np.uint8), np.random.default_rng(9)
    truth = TASK.workload.answers(records)
    squares, last = [], Consistency(TASK, M, REPLACE)
    for _ in range(8):
        released = M.release(records, rng=rng)
        moved, _, _ = last.applied(released)
        allowed = 2 * limit + 2 * np.sum((released.answers - truth) ** 2)
        for trial in last._fits.trials(released.answers):
            assert np.sum((trial.answers - truth) ** 2) <= allowed
        assert moved.answers.min() >= 0
        squares.append(np.mean((moved.answers - truth) ** 2))
    bound = moved.predicted_rmse
    assert bound.value == pytest.approx(2 * M.predicted_rmse.value, rel=2e-5)
    assert bound.kind is gd.mechanisms.PredictionKind.UPPER_BOUND
    assert np.sqrt(np.mean(squares)) <= bound.value


@pytest.mark.statistical
@pytest.mark.parametrize("prior", [0, 1])
def test_the_estimate_is_unbiased_for_gaussian_noise_and_a_fixed_kappa(prior, monkeypatch):
    monkeypatch.setattr(entropic, "LARGE", (100.0,))
    M = gd.mechanisms.Gaussian(TASK.workload, n=N, privacy=gd.ZCDP(0.1), adjacency=REPLACE)
    fits, rng = Fits(JointTables(TASK.tables, [1.0] * 3), M), np.random.default_rng(10)
    records = TASK.workload.universe.sample(N, rng)
    truth, apart = TASK.workload.answers(records), []
    for _ in range(100):
        # With new draws each time the mean is over them as well. Their ratio is biased by less than
        # 1 in 16 * 16, far below what 100 releases resolve.
        fits._draws = M.noise.sample(rng, 16) / N
        y = M.release(records, rng=rng).answers
        trial = next(fits._path(y, fits._priors[prior]))
        apart.append(trial.risk - np.sum((trial.answers - truth) ** 2))
    apart = np.array(apart)
    score = apart.mean() / (apart.std(ddof=1) / np.sqrt(len(apart)))
    assert abs(score) <= scipy.stats.norm.isf(LEVEL / 2)


@pytest.mark.parametrize("epsilon", [0.02, 0.5])
def test_fits_of_less_risk_weigh_more_and_the_mean_is_that_of_the_distribution(epsilon):
    M = mechanism(epsilon)
    fits = Fits(JointTables(TASK.tables, [1.0] * 3), M)
    y = M.release(np.zeros((N, 3), dtype=np.uint8), rng=8).answers
    found, trials = fits.best(y), fits.trials(y)
    weights, risks = found.distribution.weights, np.array([trial.risk for trial in trials])
    assert weights.sum() == pytest.approx(1)
    variance = M.predicted_rmse.value**2
    odds = np.array([trial.odds for trial in trials])
    even = fits._joint.fitted(np.zeros_like(y))[0]
    uniform = [np.abs(trial.answers - even).max() < 1e-5 for trial in trials]
    np.testing.assert_array_equal(odds, np.where(uniform, 60.0, 1.0))
    assert any(uniform) == (epsilon < 0.1)
    expected = (risks - risks[0]) / (16 * variance) - np.log(odds / odds[0])
    np.testing.assert_allclose(-np.log(weights / weights[0]), expected, rtol=1e-2, atol=1e-9)
    tables = [fits._joint.fitted(scores)[0] for scores in found.distribution.scores]
    np.testing.assert_allclose(found.answers, weights @ np.array(tables), atol=1e-12)


def test_where_tables_are_projected(monkeypatch):
    def made(**changed):
        asked = {"epsilon": 0.2, "mechanism": Laplace, "rng": 1} | changed
        return gd.release(frame_of(11), SCHEMA, "marginals:2", **asked)

    fitted = made()
    assert fitted.form is Form.FITTED
    assert fitted.estimated_rmse is not None
    nearest = made(projected=True)
    assert nearest.form is Form.CONSISTENT
    assert nearest.estimated_rmse is None
    assert nearest.predicted_rmse.value < fitted.predicted_rmse.value
    for mine, theirs in zip(fitted.interval(), nearest.interval(), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(fitted.to_frame()["unbiased"], nearest.released.noisy)
    own = {"mechanism": lambda *a, **k: Projected(Laplace(*a, **k))}
    assert isinstance(made(**own).mechanism, Laplace)
    assert isinstance(made(projected=True, **own).mechanism, Projected)
    assert made(epsilon=1e6).form is Form.CONSISTENT
    assert made(n=N, adjacency=gd.Adjacency.ADD_REMOVE).form is Form.ANY_TOTAL
    monkeypatch.setattr(consistency, "MAX_COST", cost_of(TASK.tables) - 1)
    assert made().form is Form.CONSISTENT
    with pytest.raises(ValueError, match="either unbiased or projected"):
        made(unbiased=True, projected=True)


def test_a_search_that_does_not_converge_leaves_a_projection(monkeypatch):
    monkeypatch.setattr(entropic, "MOST", 1)
    monkeypatch.setattr(entropic, "GAP", 0.0)
    result = gd.release(frame_of(12), SCHEMA, "marginals:2", epsilon=8.0, mechanism=Laplace, rng=1)
    assert result.form is Form.CONSISTENT
    limit = mechanism(8.0).predicted_rmse.value
    assert result.predicted_rmse.value == pytest.approx(2 * limit, rel=2e-5)


def test_whole_noise_that_no_public_draw_shows_leaves_a_projection():
    """Nothing that fails may come after a release is paid."""
    schema, ledger = gd.data.Schema.from_dict({"smoker": bool}), gd.Ledger(gd.PureDP(10.0))
    frame = pd.DataFrame({"smoker": [True] * 3 + [False] * 5})
    asked = {"epsilon": 10.0, "mechanism": gd.mechanisms.Geometric, "ledger": ledger}
    found = gd.release(frame, schema, "marginals:1", **asked)
    assert found.form is not Form.FITTED
    assert found.answers.sum() == pytest.approx(1.0)
    assert len(ledger.spends()) == 1


def test_covariance_matrices_are_small_for_all_cells_asked():
    """A few levels of one column can decide many columns, and so many tables."""
    levels = [str(i) for i in range(60)]
    parts = {f"c{i}": {"no": levels[: i + 1], "yes": levels[i + 1 :]} for i in range(16)}
    columns = {"fine": levels, **{name: ["no", "yes"] for name in parts}}
    schema = gd.data.Schema.from_dict(columns).declare(refines={"fine": parts})
    for order, has_matrices in (("marginals:1", True), ("marginals:3", False)):
        task = task_of(schema, [order])
        joint = JointTables(task.tables, task.table_weights, task.possible)
        assert joint.matrix.shape[1] == 60
        assert (joint.n_cells <= entropic.MAX_COVARIANCE) is has_matrices
        assert isinstance(joint.covariance(np.zeros(joint.n_cells)), np.ndarray) is has_matrices


def test_rounding_of_a_covariance_matrix_fails_no_search():
    """Far below the noise of releases, I + C / tau is not positive definite in float64."""
    case = Case((("b", "c"), ("c", "d")), (1.0, 1.0))
    truth, _ = case.noisy(4, 0.0)
    covariance = case.joint.covariance(np.zeros_like(truth))
    for tau in 10.0 ** np.arange(-20, 0):
        found = case.solved(truth, tau, np.zeros_like(truth), 1e-6, covariance)
        assert np.isfinite(found.answers).all()


# Synthetic records


def test_synthetic_records_have_the_labels_and_about_the_fitted_tables():
    frame = frame_of(0)
    found = gd.release(frame, SCHEMA, "marginals:2", epsilon=1.0, rng=0)
    drawn = found.synthetic(rng=1)
    assert list(drawn.columns) == list(SCHEMA.names)
    assert len(drawn) == len(frame)
    for columns, table in found.tables.items():
        shares = drawn.value_counts(list(columns), normalize=True)
        for cell, share in table.stack().items():
            assert abs(shares.get(cell, 0.0) - share) <= 0.05
    assert len(found.synthetic(7)) == 7
    with pytest.raises(ValueError, match="count must be"):
        found.synthetic(0)
    pd.testing.assert_frame_equal(drawn, found.synthetic(rng=1))
    assert not drawn.equals(found.synthetic(rng=2))


def test_whole_counts_are_those_of_synthetic_records():
    frame = frame_of(0)
    found = gd.release(frame, SCHEMA, "marginals:2", epsilon=1.0, integers=True, rng=0)
    counts = {name: table * len(frame) for name, table in found.tables.items()}
    for columns, table in counts.items():
        np.testing.assert_allclose(table, np.rint(table), atol=1e-6)
        for other, second in counts.items():
            if columns[0] == other[0]:
                np.testing.assert_allclose(table.sum(axis=1), second.sum(axis=1), atol=1e-6)
    assert "whole counts of" in found.statement
    assert "tables agree" in found.statement


@pytest.mark.parametrize("options", [{"unbiased": True}, {"projected": True}])
def test_synthetic_records_need_fitted_tables(options):
    found = gd.release(frame_of(0), SCHEMA, "marginals:2", epsilon=1.0, rng=0, **options)
    with pytest.raises(ValueError, match="synthetic records need fitted tables, got"):
        found.synthetic()
