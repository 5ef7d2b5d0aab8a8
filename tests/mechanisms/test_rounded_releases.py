"""Unseeded releases: noise is correctly rounded and comes from the operating system's bits."""

from __future__ import annotations

import os
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from geomdp import bodies
from geomdp.audit import audit
from geomdp.data.tallies import CountedRecords, Tallies
from geomdp.mechanisms import (
    Ball,
    Coarse,
    Cone,
    Ellipsoid,
    Gaussian,
    KNorm,
    Laplace,
    Matrix,
    Projected,
    Shrunk,
    TightCone,
)
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.mechanisms.additive_noise.certify import SLACK, framed, is_upright_box
from geomdp.mechanisms.additive_noise.knorm import is_around_differences_alone
from geomdp.mechanisms.base import quotients
from geomdp.mechanisms.strategies import Haar
from geomdp.noise.rounding import Rounded
from geomdp.privacy import ZCDP, Adjacency, Guarantee, Ledger, PureDP
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, rounded_arithmetic
from geomdp.workloads import (
    Explicit,
    Histogram,
    LinearMap,
    Marginals,
    MarginalTables,
    Means,
    Parities,
    Prefixes,
    RandomSigns,
    Ranges,
    SecondMoment,
)
from tests.noise.exact.reference import seeded
from tests.stats import LEVEL, ks_same, mean_agrees

N = 128
ONE = PureDP(1.0)
BOTH = tuple(Adjacency)
PAIRS = MarginalTables([2, 3], 2)

#: Functions of the adjacency that return a mechanism with rounded unseeded releases, by name.
ROUNDED = {
    "laplace": lambda a: Laplace(Ranges(5), n=N, privacy=ONE, adjacency=a),
    "laplace of whole rows": lambda a: Laplace(
        Explicit([[3, 0, -1], [0, 2, 7]]), n=N, privacy=ONE, adjacency=a
    ),
    "cone of signs": lambda a: Cone(Marginals(3, 2), n=N, privacy=ONE, adjacency=a),
    "cone of binary tables": lambda a: Cone(
        MarginalTables([2, 2, 2], 2), n=N, privacy=ONE, adjacency=a
    ),
    "cone of tables": lambda a: Cone(PAIRS, n=N, privacy=ONE, adjacency=a),
    "cone of a histogram": lambda a: Cone(Histogram(4), n=N, privacy=ONE, adjacency=a),
    "tight cone": lambda a: TightCone(PAIRS, n=N, privacy=ONE, adjacency=a),
    "tight cone of parities": lambda a: TightCone(Parities(3, 2), n=N, privacy=ONE, adjacency=a),
    "k-norm of a box": lambda a: KNorm(Parities(3, 1), n=N, privacy=ONE, adjacency=a),
    "projected": lambda a: Projected(Laplace(Marginals(3, 1), n=N, privacy=ONE, adjacency=a)),
}


@pytest.fixture(params=[(name, a) for name in sorted(ROUNDED) for a in BOTH], ids=str)
def mechanism(request):
    name, adjacency = request.param
    return ROUNDED[name](adjacency)


def records_of(mechanism):
    return mechanism.workload.universe.sample(N, 3)


def additive(mechanism):
    return mechanism.inner if isinstance(mechanism, Projected) else mechanism


def test_the_answer_is_the_exact_quotient_of_sum_and_rounded_noise(mechanism, monkeypatch):
    inner, records = additive(mechanism), records_of(mechanism)
    inner.set_up()
    expected = Rounded.of(inner.noise, inner.grid).draw(seeded(1))
    monkeypatch.setattr(os, "urandom", seeded(1))
    answers = inner.release(records).answers
    counts = inner.workload.totals(records).sums.tolist()
    exact = [
        float((int(count) + Fraction(j, 2**inner.grid)) / N)
        for count, j in zip(counts, expected, strict=True)
    ]
    if inner._hull is None:
        assert answers.tolist() == exact
    else:
        hull = inner._hull
        np.testing.assert_array_equal(
            answers, hull.embed(hull.coordinates(np.array(exact)[None]))[0]
        )


def test_the_record_says_so_and_a_seeded_one_does_not(mechanism):
    records = records_of(mechanism)
    found = mechanism.release(records).guarantee
    assert found == mechanism.guarantee
    assert found.arithmetic == rounded_arithmetic(mechanism.grid)
    assert f"correctly rounded to multiples of 2^-{mechanism.grid}; random bits" in str(found)
    assert Guarantee.from_dict(found.to_dict()) == found
    seeded_record = mechanism.release(records, rng=0).guarantee
    assert str(seeded_record) == "seeded: no privacy claim"
    assert seeded_record.arithmetic == FLOAT64_CAVEAT


def test_a_seeded_release_is_the_float64_simulation(mechanism):
    inner, records = additive(mechanism), records_of(mechanism)
    sums = inner.workload.totals(records).sums
    answers = (sums + inner.noise.sample(np.random.default_rng(7), 1)) / N
    if inner._hull is not None:
        answers = inner._hull.embed(inner._hull.coordinates(answers))
    np.testing.assert_array_equal(inner.release(records, rng=7).answers, answers[0])


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["laplace", "cone of signs", "cone of tables", "k-norm of a box"])
def test_releases_have_the_predicted_error_and_the_law_of_seeded_ones(name):
    mechanism = ROUNDED[name](Adjacency.REPLACE_ONE)
    sums = mechanism.workload.totals(records_of(mechanism)).sums
    answers = np.array([mechanism.draw(None)(sums) for _ in range(1500)])
    errors = ((answers - sums / N) ** 2).mean(axis=1)
    predicted = mechanism.predicted_rmse
    assert predicted.stderr == 0
    mean_agrees(errors, predicted.value**2)
    others = (sums + mechanism.noise.sample(np.random.default_rng(1), 20_000)) / N
    for j in range(len(sums)):
        ks_same(answers[:, j], others[:, j], level=LEVEL / len(sums))


def audited(privacy):
    """Audit the claim of 1-DP for rounded Laplace noise that is calibrated to `privacy`."""
    mechanism = Laplace(Histogram(2), n=N, privacy=privacy, adjacency=Adjacency.ADD_REMOVE)

    def sampler(count):
        sums = np.array([count, 0.0])
        return lambda trials, _: np.array([mechanism.draw(None)(sums) for _ in range(trials)])

    return audit(sampler(40.0), sampler(41.0), ONE, trials=6000, rng=1)


@pytest.mark.statistical
def test_an_audit_refutes_less_than_half_the_noise_only(monkeypatch):
    monkeypatch.setattr(os, "urandom", seeded(2))
    assert not audited(ONE).refuted
    assert audited(PureDP(2.5)).refuted


def test_copies_share_the_noise_and_the_grid():
    mechanism = Cone(Marginals(3, 2), n=N, privacy=ONE)
    twin = mechanism.with_n(64)
    assert twin.grid == mechanism.grid
    answers = twin.release(twin.workload.universe.sample(64, 1)).answers
    assert (answers * 64 * 2**twin.grid == np.rint(answers * 64 * 2**twin.grid)).all()


def test_outputs_of_neighbours_are_the_same_grid():
    """Division by n = 2^7 is exact, so answers are exact multiples of 2^-7 times the grid unit."""
    mechanism = Laplace(Marginals(3, 1), n=N, privacy=ONE)
    unit = N * 2**mechanism.grid
    records = np.zeros((N, 3), dtype=int)
    neighbour = records.copy()
    neighbour[0] = 1
    for each in (records, neighbour):
        for _ in range(50):
            multiples = mechanism.release(each).answers * unit
            assert (multiples == np.rint(multiples)).all()


#: Real answers of 2^13 elements. Such answers are rounded to units for up to 2^12 elements only.
HALVES = LinearMap(Marginals(13, 1), np.eye(13) / 2)
#: Mechanisms without correctly rounded releases, for instance because sums are not exact.
IN_FLOAT64 = {
    "gaussian of fractions": lambda: Gaussian(HALVES, n=N, privacy=ZCDP(0.5)),
    "fractions": lambda: Laplace(HALVES, n=N, privacy=ONE),
    "huge answers": lambda: Laplace(Explicit([[0.5, 1e9]]), n=N, privacy=ONE),
    "ball of fractions": lambda: Ball(HALVES, n=N, privacy=ONE),
    "k-norm of real records": lambda: KNorm(Means(2), n=N, privacy=ONE),
    "too many records": lambda: Laplace(Histogram(2), n=2**53, privacy=ONE),
    "too many records of fractions": lambda: Laplace(Explicit([[0.5, 1.0]]), n=2**26, privacy=ONE),
    "shrunk": lambda: Shrunk(Gaussian(HALVES, n=N, privacy=ZCDP(0.5))),
}


@pytest.mark.parametrize("name", sorted(IN_FLOAT64))
def test_what_is_not_exact_keeps_its_caveat(name):
    mechanism = IN_FLOAT64[name]()
    assert mechanism.grid is None
    assert mechanism.guarantee.arithmetic == FLOAT64_CAVEAT


@pytest.mark.parametrize(
    "workload",
    [
        Marginals(4, 2),
        Parities(4, 3),
        PAIRS,
        Histogram(5),
        Prefixes(5),
        Ranges(5),
        Explicit([[3, 0, -1], [0, 2, 7]]),
    ],
    ids=repr,
)
def test_sums_of_whole_answers_are_exact(workload):
    records = workload.universe.sample(500, 2)
    answers = workload.evaluate(records)
    assert (answers == np.rint(answers)).all()
    np.testing.assert_array_equal(workload.totals(records).sums, answers.sum(axis=0))


def float_quotients(sums, multiples, unit, n):
    """The planted defect: sums and noise are added in float64."""
    return (sums + np.array(multiples, dtype=float) / unit) / n


def test_no_sums_have_no_quotients():
    assert quotients(np.zeros(0), [], 4, 2).shape == (0,)


def check_sums_with_large_noise_are_exact(quotients):
    """For noise beyond 2^53, the answer depends only on the exact sum of count and noise."""
    for j in (2**53 + 1, 2**60 + 129, -(2**61) + 383):
        near = quotients(np.array([1.0]), [j], 1, 7)
        shifted = quotients(np.array([2.0]), [j - 1], 1, 7)
        assert near == shifted == [(1 + j) / 7]


def test_adding_in_float64_is_caught():
    check_sums_with_large_noise_are_exact(quotients)
    with pytest.raises(AssertionError):
        check_sums_with_large_noise_are_exact(float_quotients)


def test_sums_that_are_not_whole_are_an_error():
    for sums in ([0.5], [2.0**53]):
        with pytest.raises(ArithmeticError, match="whole numbers below 2"):
            quotients(np.array(sums), [1], 4, 2)


def test_noise_is_used_once():
    mechanism = Laplace(Histogram(2), n=10, privacy=PureDP(1.0))
    for rng in (None, np.random.default_rng(0)):
        for draw in (mechanism.draw, mechanism.private):
            privatiser = draw(rng)
            privatiser(np.array([5.0, 5.0]))
            with pytest.raises(RuntimeError, match="noise is used once"):
                privatiser(np.array([3.0, 7.0]))


def test_another_n_has_a_grid_of_its_own():
    mechanism = Laplace(Histogram(2), n=10, privacy=PureDP(1.0))
    assert mechanism.grid is not None
    assert mechanism.with_n(2**53).grid is None
    assert mechanism.with_n(2**53).guarantee.arithmetic == FLOAT64_CAVEAT
    assert mechanism.with_n(2**53).with_n(10).grid == mechanism.grid


def counted(workload, counts):
    """Records of a listed universe, with `counts[i]` copies of element i."""
    numbers = np.array(counts, dtype=np.int64)
    return CountedRecords(
        workload.universe, Tallies((len(counts),), int(numbers.sum()), {(0,): numbers})
    )


@pytest.mark.parametrize(
    ("mechanism", "most"),
    [
        # Whole answers up to 2^40 - 1, real answers up to 2^28 - 3 units of 2^-28, and counts.
        (partial(Laplace, Explicit([[2.0**40 - 1, 3.0 - 2**40]])), 2**13),
        (partial(Laplace, Explicit([[0.99999999, 0.5, 0.3]])), 2**25 - 1),
        (partial(Matrix, Prefixes(2)), 2**53 - 1),
    ],
)
def test_more_records_than_have_exact_sums_are_refused_before_payment(mechanism, most):
    # Under add/remove there may be more records than n. In the second case, one record could change
    # a rounded sum by 2^28 - 2 units, but the noise is for 2^28 - 3 units. Without the limit, sums
    # of 2^53 or more would be refused only after the payment.
    private = mechanism(n=1000, privacy=PureDP(1.0), adjacency=Adjacency.ADD_REMOVE)
    workload = private.workload
    rest = [0] * (workload.universe.size - 1)
    ledger = Ledger(PureDP(1.0), adjacency=Adjacency.ADD_REMOVE)
    with pytest.raises(ValueError, match=f"at most {most}"):
        private.release(counted(workload, [most + 1, *rest]), ledger=ledger)
    assert not ledger.spends()
    assert np.isfinite(private.release(counted(workload, [most, *rest])).answers).all()


def test_rounding_of_computed_answers_is_the_largest_distance():
    """Two rounded answers get K-norm noise, and the third answer is computed from these two."""
    workload = Explicit([[0.0, 1 / 3, 1.0, 0.7], [0.0, 2 / 3, 2.0, 1.4], [0.1, 0.4, 0.3, 0.2]])
    mechanism = Ellipsoid(workload, n=10**4, privacy=PureDP(1e12))
    assert mechanism.exact_path is not None
    for element in range(4):
        records = np.full(10**4, element)
        error = np.abs(mechanism.release(records).answers - workload.answers(records))
        assert (error <= mechanism.answer_rounding + 1e-12).all()
    assert mechanism.answer_rounding.max() < 2.0**-24


def test_rounding_of_real_records_is_bounded():
    rng = np.random.default_rng(0)
    for workload in (Means(2), SecondMoment(2)):
        mechanism = Laplace(workload, n=100, privacy=PureDP(1e12))
        records = rng.uniform(0, 0.7, size=(100, 2))
        error = np.abs(mechanism.release(records).answers - workload.answers(records))
        assert (error <= mechanism.answer_rounding + 1e-12).all()
        assert mechanism.answer_rounding.max() <= 2.0**-38


SKEW = np.array([[2.0, 1.0], [0.0, 3.0], [1.0, -1.0]])
BODIES = {
    "box": bodies.Box(-np.ones(2), np.ones(2)),
    "ellipsoid": bodies.Ellipsoid(SKEW[:2]),
    "image of a ball": bodies.LinearImage(SKEW, bodies.Ball(2, 3.0)),
    "scaled image": bodies.Scaled(bodies.LinearImage(SKEW, bodies.CrossPolytope(2)), 0.5),
    "image of a scaled ellipsoid": bodies.LinearImage(
        SKEW, bodies.Scaled(bodies.Ellipsoid(SKEW[:2]), 4.0)
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_framed_body_is_the_image_of_its_core(name):
    """The image of the core has the support function of the body, so proofs may use the core."""
    matrix, core = framed(BODIES[name])
    directions = np.random.default_rng(0).standard_normal((20, BODIES[name].dimension))
    np.testing.assert_allclose(
        core.support(directions @ matrix), BODIES[name].support(directions), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("matrix", "upright"),
    [(np.diag([2.0, -1.0]), True), ([[1.0], [1.0]], False), ([[1.0, 1.0]], False), (SKEW, False)],
)
def test_the_image_of_a_box_is_upright_if_no_axis_meets_another(matrix, upright):
    """The image is known to be upright if no row and no column has two entries other than 0."""
    matrix = np.array(matrix)
    image = bodies.LinearImage(matrix, cube(matrix.shape[1]))
    assert is_upright_box(image) is upright
    assert is_upright_box(bodies.Scaled(image, 3.0)) is upright
    assert is_upright_box(cube(2))
    assert not is_upright_box(bodies.Ball(2, 1.0))


def cube(m):
    return bodies.Box(-np.ones(m), np.ones(m))


def test_the_additive_mechanism_within_another_answers_the_same_workload():
    laplace = Laplace(Prefixes(8), n=N, privacy=ONE)
    assert additive_within(laplace) is laplace
    assert additive_within(Projected(laplace)) is laplace
    assert additive_within(Coarse(laplace, 0.3)) is None


@pytest.mark.parametrize(
    ("workload", "alone"),
    [
        (SecondMoment(3), BOTH),
        (Prefixes(5), BOTH),
        (MarginalTables([2] * 16, 1), (Adjacency.ADD_REMOVE,)),
        # For 5000 elements, there are too many pairs to search, but not too many answer vectors.
        (RandomSigns(3, 5000, 0), (Adjacency.ADD_REMOVE,)),
        (Marginals(40, 2), ()),
    ],
    ids=repr,
)
def test_ellipsoids_around_differences_alone(workload, alone):
    for adjacency in Adjacency:
        assert is_around_differences_alone(workload, adjacency) is (adjacency in alone)


def test_a_strategy_is_kept_for_other_workloads():
    mechanism = Matrix(Prefixes(8), n=N, privacy=ONE, strategy=Haar())
    moved, built = (
        mechanism.with_workload(Ranges(8)),
        Matrix(Ranges(8), n=N, privacy=ONE, strategy=Haar()),
    )
    assert moved.predicted_rmse == built.predicted_rmse
    assert moved.predicted_rmse != Matrix(Ranges(8), n=N, privacy=ONE).predicted_rmse


def test_the_slack_of_noise_on_real_records_is_stated():
    mechanism = Laplace(Means(2), n=N, privacy=ONE)
    assert mechanism.guarantee.arithmetic == rounded_arithmetic(mechanism.grid, SLACK)
