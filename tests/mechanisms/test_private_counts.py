"""Under add/remove the number of records is private, and the declared n can be wrong by 30%."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import nnls

import geomdp as gd
from geomdp._numerics.linalg import svec, unsvec
from geomdp.bodies import sensitivity_polytope
from geomdp.geometry.projection import ConeProjector, Projector
from geomdp.mechanisms import (
    Ball,
    Covariance,
    Fitted,
    Gaussian,
    Laplace,
    Matrix,
    MomentProjection,
    PairMarginals,
    Projected,
    SecondMoment,
)
from geomdp.tabulation.consistency import Form
from geomdp.tabulation.tasks import task_of
from geomdp.workloads import (
    DenseQuery,
    Histogram,
    Marginals,
    MarginalTables,
    Prefixes,
    RandomSigns,
    Ranges,
    SparseQuery,
)
from tests.stats import binomial_above, mean_agrees

ADD = {"privacy": gd.PureDP(1.0), "adjacency": gd.Adjacency.ADD_REMOVE}
RECORDS = 1000
#: Declared numbers of records: 30% too small, right, and 30% too large.
DECLARED = [700, 1000, 1300]
TABLES, MOMENTS = MarginalTables([2, 3, 2], 2), gd.workloads.SecondMoment(3)

#: Every post-processing that allows add/remove, for a declared n.
ALLOWED = {
    "projected tables": lambda n: Projected(Laplace(TABLES, n=n, **ADD)),
    "projected prefix sums": lambda n: Projected(Laplace(Prefixes(8), n=n, **ADD)),
    "projected ranges": lambda n: Projected(Ball(Ranges(5), n=n, **ADD)),
    "projected histogram": lambda n: Projected(Laplace(Histogram(6), n=n, **ADD)),
    "projected one-way tables": lambda n: Projected(
        Laplace(MarginalTables([2] * 40, 1), n=n, **ADD)
    ),
    "projected relaxed tables": lambda n: Projected(
        Gaussian(MarginalTables([2] * 26, 2), n=n, **ADD | {"privacy": gd.ZCDP(0.5)})
    ),
    "fitted tables": lambda n: Fitted(Matrix(TABLES, n=n, **ADD)),
    "fitted prefix sums": lambda n: Fitted(Matrix(Prefixes(8), n=n, **ADD)),
    "second moments": lambda n: SecondMoment(MOMENTS, n=n, **ADD),
    "Gaussian second moments": lambda n: SecondMoment(
        MOMENTS, n=n, **ADD | {"privacy": gd.ZCDP(0.5)}
    ),
    "shrunk second moments": lambda n: SecondMoment(MOMENTS, n=n, shrink=True, **ADD),
    "pair marginals": lambda n: PairMarginals(Marginals(4, 2), n=n, **ADD),
}


def datasets(workload):
    """Copies of one record, and a mix of ten records: sums of answers over `RECORDS` records."""
    elements = workload.universe.sample(10, np.random.default_rng(0))
    answers = np.array([workload.totals(elements[[i]]).sums for i in range(10)])
    return {"vertex": RECORDS * answers[0], "mix": RECORDS * answers.mean(axis=0)}


def inputs(mechanism, sums):
    """The sums to which noise is added, from sums of the queries of the mechanism."""
    if not isinstance(mechanism, PairMarginals):
        return sums
    second = np.zeros((4, 4))
    second[np.triu_indices(4, 1)] = sums
    return svec((second + second.T) / 4 + np.diag(np.full(4, RECORDS / 4)))


def noisy_and_released(mechanism, given, seed):
    """Noisy sums divided by n, and the released answers that are computed from them."""
    noisy = mechanism.inner.draw(np.random.default_rng(seed))(given)
    if isinstance(mechanism, PairMarginals):
        return noisy, mechanism.process(mechanism.inner.process(noisy))
    return noisy, mechanism.process(noisy)


def limit(mechanism, length, drift=0.0):
    """The proved limit on the l2 error of the answers if the noise on them has this length.

    `drift` is how far the noise lowers the trace of second moments (X-TRACE).
    """
    match mechanism:
        case Fitted():
            return length + math.sqrt(mechanism.workload.n_queries) * float(
                Projected(mechanism.inner).predicted_rmse
            )
        case SecondMoment(shrink=True):
            shrunk = length + math.sqrt(mechanism._traceless_energy) / mechanism.n
            return math.hypot(shrunk, math.sqrt(1 - 1 / mechanism.workload.d) * drift)
        case SecondMoment():
            return math.hypot(length, math.sqrt(1 - 1 / mechanism.workload.d) * drift)
        case PairMarginals():
            return limit(mechanism.inner, length, drift) * mechanism.workload.d / math.sqrt(2)
    return length


@pytest.mark.parametrize(
    ("name", "n"), [(x, n) for x in ALLOWED for n in DECLARED if n == 700 or "relaxed" not in x]
)
def test_no_answer_errs_more_than_the_noise_explains(name, n):
    """So the error bound, the mean over the noise, holds whatever the number of records."""
    mechanism = ALLOWED[name](n)
    root = math.sqrt(mechanism.workload.n_queries)
    for sums in datasets(mechanism.workload).values():
        given = inputs(mechanism, sums)
        for seed in range(1 if "relaxed" in name else 10):
            noisy, released = noisy_and_released(mechanism, given, seed)
            noise, drift = noisy - given / n, 0.0
            if "moments" in name or "pair" in name:
                drift = max(0.0, -float(np.trace(unsvec(noise))))
            most = limit(mechanism, np.linalg.norm(noise), drift)
            assert np.linalg.norm(released - sums / n) <= most * (1 + 1e-6)
    noise = mechanism.inner
    length = math.sqrt(noise.workload.n_queries) * float(noise.predicted_rmse)
    assert root * float(mechanism.predicted_rmse) >= limit(mechanism, length) * (1 - 1e-12)


COLUMNS = {"region": ["north", "south", "east"], "smoker": bool, "age": list(range(8))}
SCHEMA = gd.data.Schema.from_dict(COLUMNS)
CHOICES = {
    "Laplace": Laplace,
    "projected": lambda *a, **k: Projected(Laplace(*a, **k)),
    "fitted": lambda *a, **k: Fitted(Matrix(*a, **k)),
}


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "region": rng.choice(COLUMNS["region"], RECORDS, p=[0.7, 0.2, 0.1]),
            "smoker": rng.random(RECORDS) < 0.3,
            "age": rng.integers(8, size=RECORDS),
        }
    )


@pytest.mark.statistical
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize(("asked", "n"), [("marginals:2", 700), ("prefixes:age", 1300)])
def test_answers_stay_in_their_intervals_and_within_their_bound(frame, asked, choice, n):
    options = {"n": n, "adjacency": ADD["adjacency"]}
    truth = gd.release(
        frame, SCHEMA, asked, epsilon=1e9, mechanism=Laplace, unbiased=True, rng=0, **options
    ).answers
    built = CHOICES[choice](task_of(SCHEMA, [asked]).workload, n=n, **ADD)
    covered = inside = 0
    for seed in range(10):
        result = gd.release(
            frame, SCHEMA, asked, epsilon=1.0, mechanism=lambda *_, **__: built, rng=seed, **options
        )
        noise = np.linalg.norm(result.released.noisy - truth)
        assert np.linalg.norm(result.answers - truth) <= limit(built, noise) * (1 + 1e-3)
        low, high = result.interval(0.99, simultaneous=True)
        covered += bool(((low <= truth + 1e-8) & (truth <= high + 1e-8)).all())
        inside += bool(((low <= result.answers + 1e-8) & (result.answers <= high + 1e-8)).all())
    binomial_above(covered, 10, 0.99)
    # No theorem says that post-processed answers stay in intervals for the truth, but most do.
    assert inside >= 8


def test_tables_agree_on_one_total_that_is_not_forced(frame):
    result = gd.release(
        frame, SCHEMA, "marginals:2", epsilon=2.0, mechanism=Laplace, rng=0, n=700,
        adjacency=ADD["adjacency"],
    )  # fmt: skip
    assert result.form is Form.ANY_TOTAL
    assert result.answers.min() >= 0
    totals = [table.to_numpy().sum() for table in result.tables.values()]
    np.testing.assert_allclose(totals, totals[0], rtol=1e-10)
    assert totals[0] == pytest.approx(RECORDS / 700, abs=0.05)


#: What has no bound for every number of records, and words of the refusal. The contracts of
#: mechanisms have more.
REFUSED = {
    "covariance": (lambda: Covariance(MOMENTS, n=9, **ADD), "covariance needs replace-one"),
    "fit on a relaxation": (
        lambda: Fitted(Laplace(MarginalTables([2] * 26, 2), n=9, **ADD)), "for replace-one if"
    ),
    "moments of a distribution": (
        lambda: _smooth().projected(MomentProjection.on_grid(_smooth().noise_std, 40)),
        "moments must be means",
    ),
}  # fmt: skip


def _smooth():
    mechanism = gd.SmoothSummary(1, n=900, smoothness=2, degree=4, **ADD)
    return mechanism.release(np.zeros((RECORDS, 1)), rng=0)


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_bound_is_refused(name):
    build, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        build()


def test_the_advisor_says_why_it_does_not_project():
    table = gd.advise(Prefixes(6), n=50, **ADD).table.set_index("mechanism")
    for name in ("JL(KNorm(exact=True))", "Coarse(Projected)"):
        assert "the number of records is private" in table.loc[name, "why"]


def test_the_distortion_of_sparse_answers_is_that_of_all_records():
    n = 700
    setting = {
        "n": n, "sparsity": 2, "queries": 10, "privacy": gd.ApproxDP(1.0, 1e-6), "rows": 64,
        "adjacency": ADD["adjacency"],
    }  # fmt: skip
    records, query, squares = np.array([7] * 600 + [8] * 400), SparseQuery([7, 9], [1.0, 0.5]), []
    for seed in range(1000):
        project = gd.SparseProject(**setting, rng=seed)
        squares.append(project.release(records, rng=seed).answer(query).distortion_std ** 2)
    length = 600**2 + 400**2 + 64 * project.sigma**2
    mean_agrees(squares, 2 / 64 * 1.25 * length / n**2)


CELLS = [DenseQuery(row) for row in (*np.eye(3), np.ones(3))]


@pytest.mark.parametrize("factor", [0.7, 1.0, 1.3])
def test_an_iterative_run_states_an_accuracy_only_after_its_test(factor):
    n = 10**6
    mechanism = gd.IterativeConstruction(
        gd.mechanisms.MultiplicativeWeights(3), gd.mechanisms.EnumeratedQueries(CELLS), n=n, **ADD
    )
    assert mechanism.accuracy is None
    shares = factor * np.array([0.7, 0.3, 0.0, 1.0])
    records = np.repeat([0, 1], (n * shares[:2]).astype(int)).astype(np.int8)
    release = mechanism.release(records, rng=0)
    error = max(abs(release.hypothesis.evaluate(q) - t) for q, t in zip(CELLS, shares, strict=True))
    assert (release.accuracy is None) == (factor != 1.0)
    assert release.accuracy is None or error <= release.accuracy


@pytest.mark.parametrize("factor", [0.7, 1.3])
def test_online_answers_have_no_accuracy_once_the_updates_are_used_up(factor):
    mechanism = gd.OnlineConstruction(
        gd.mechanisms.MultiplicativeWeights(3), n=10**7, queries=3000, rng=0, **ADD
    )
    wrong = 0
    for _ in range(mechanism.queries):
        answer = mechanism.ask_truth(CELLS[-1], Fraction(factor))
        if mechanism.accuracy is not None:
            wrong += abs(answer.value - factor) > mechanism.accuracy
    assert wrong == 0
    assert mechanism.halted
    assert mechanism.accuracy is None


CONES = [
    Prefixes(8), Histogram(5), TABLES, Marginals(5, 2), Ranges(6), RandomSigns(3, 20, 0)
]  # fmt: skip


@pytest.mark.parametrize("workload", CONES, ids=repr)
@pytest.mark.parametrize(("size", "noise"), [(1e-3, 3.0), (0.7, 0.1), (0.7, 1e-6), (50.0, 0.0)])
def test_nearest_points_of_cones_are_those_of_nonnegative_least_squares(workload, size, noise):
    body = sensitivity_polytope(workload)
    vertices, rng = body.vertex_list(), np.random.default_rng(3)
    truth = workload.answers(workload.universe.sample(10, rng))
    target = size * (truth + noise * rng.standard_normal(len(truth)))
    found = ConeProjector(Projector(body)).nearest(target, tol=1e-12)
    weights, _ = nnls(vertices.T, target, maxiter=10_000)
    np.testing.assert_allclose(found.point, vertices.T @ weights, atol=1e-7 * size * (1 + noise))
    # The residual is orthogonal to the point, and no point of the body has a larger product.
    residual = target - found.point
    assert abs(residual @ found.point) <= 1e-12 * target @ target
    assert max((vertices @ residual).max(), 0) == pytest.approx(found.gap, abs=1e-12 * size)
    assert found.gap <= 1e-9 * size * (1 + noise)


def test_a_cone_without_points_in_the_direction_of_the_target():
    body = sensitivity_polytope(Histogram(3))
    found = ConeProjector(Projector(body)).nearest(np.array([-1.0, -2.0, 0.0]))
    np.testing.assert_array_equal(found.point, 0)
