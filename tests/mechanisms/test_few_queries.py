"""Geometric, staircase and lattice box noise: privacy on all neighbours, error, exact releases."""

from __future__ import annotations

import math

import numpy as np
import pytest

import geomdp as gd
from geomdp.advice.bracket import error_limit, upper_bounds
from geomdp.advice.error_curve import error_table
from geomdp.audit import audit_noise
from geomdp.mechanisms import Geometric, Laplace, LatticeBox, Staircase
from geomdp.mechanisms.additive_noise import sums
from geomdp.mechanisms.additive_noise.sums import Change
from geomdp.noise import half_widths
from geomdp.noise.few_queries import GeometricNoise, StaircaseNoise
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import Explicit, Histogram, Marginals, MarginalTables, Parities, Prefixes
from tests.mechanisms.test_exact_table import moves
from tests.noise.densities import log_density
from tests.stats import mean_agrees

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
N = 50
COUNT = Explicit([[0, 1]])
REAL = Explicit([[0.0, 0.3, 1.0, 0.45]])
WHOLE = {
    "count": COUNT,
    "away from 0": Explicit([[3, 5]]),
    "signs": Parities(3, 2),
    "bits": Marginals(3, 1),
    "tables": MarginalTables([2, 3], 2),
    "histogram": Histogram(4),
    "prefixes": Prefixes(5),
    "units": Explicit([[0, 6, 3], [4, 0, 8], [-5, 5, 5]]),
    "with a constant": Explicit([[0, 1, 2], [7, 7, 7]]),
}
HUGE = Explicit([[-(2**53 - 1), 2**53 - 2]])
WIDE = Explicit([[1, 2**30]])
KINDS = (Geometric, LatticeBox)


def build(kind, workload, epsilon=1.0, adjacency=REPLACE, n=N):
    return kind(workload, n=n, privacy=PureDP(epsilon), adjacency=adjacency)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("workload", WHOLE)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [0.1, 3.0])
def test_no_change_of_one_record_costs_more_than_epsilon_and_some_costs_all(
    kind, workload, adjacency, epsilon
):
    """A loss is a log ratio of probabilities on the lattice, which contains all changes."""
    noise = build(kind, WHOLE[workload], epsilon, adjacency).noise
    shifts = moves(gd.workloads.explicit_answers(WHOLE[workload]), adjacency)
    points = np.vstack([noise.sample(np.random.default_rng(2), 40), np.zeros(noise.dimension)])
    losses = [log_density(noise, points) - log_density(noise, points - shift) for shift in shifts]
    # Probabilities are compared, so a change outside the lattice has an infinite loss.
    largest = np.abs(losses).max()
    assert largest <= epsilon * (1 + 1e-9)
    np.testing.assert_allclose(largest, epsilon, rtol=1e-9)


def test_the_unit_of_a_query_is_the_greatest_that_divides_its_changes():
    found = Change(WHOLE["units"], REPLACE).lattice
    assert (found.units.tolist(), found.counts.tolist()) == ([3, 4, 10], [2, 2, 1])
    found = Change(WHOLE["units"], ADD).lattice
    assert (found.units.tolist(), found.counts.tolist()) == ([3, 4, 5], [2, 2, 1])
    # Each count belongs to its own query, also if another query has larger answers.
    found = Change(Explicit([[0, 1], [-7, 3]]), ADD).lattice
    assert (found.units.tolist(), found.counts.tolist()) == ([1, 1], [1, 7])
    found = Change(WHOLE["with a constant"], REPLACE).lattice
    assert (found.units.tolist(), found.counts.tolist()) == ([1, 1], [2, 0])
    assert Change(Parities(3, 2), REPLACE).lattice.units.tolist() == [2] * Parities(3, 2).n_queries


def test_workloads_that_are_not_listed_get_the_unit_one(monkeypatch):
    for large in (HUGE, Explicit([[0, 2**52]])):
        assert Change(large, REPLACE).lattice is None
    assert Change(Explicit([[0, 2**52 - 1]]), ADD).lattice.units.tolist() == [2**52 - 1]
    monkeypatch.setattr(sums, "MAX_ANSWERS", 3)
    assert build(Geometric, Explicit([[0, 2, 4, 6]])).noise.units.tolist() == [1]
    with pytest.raises(ValueError, match="at most"):
        build(LatticeBox, Explicit([[0, 2, 4, 6]]))


@pytest.mark.parametrize("kind", [*KINDS, Staircase])
@pytest.mark.parametrize("adjacency", Adjacency)
def test_the_sensitivity_depends_on_the_neighbour_relation(kind, adjacency):
    """A record changes the sum by 2 if it is replaced, and by up to 5 if it is removed."""
    query = Explicit([[3, 5]])
    twin = Explicit([[0, 2 if adjacency is REPLACE else 5]])
    expected = build(kind, twin, adjacency=REPLACE).predicted_rmse.value
    found = build(kind, query, adjacency=adjacency).predicted_rmse.value
    if adjacency is ADD and kind is not Staircase:
        # The unit is 1 and not 5, because both 3 and 5 are changes.
        expected = build(kind, Explicit([[0, 1, 5]])).predicted_rmse.value
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("epsilon", [1e-12, 1e12])
@pytest.mark.parametrize(("kind", "query"), [*((kind, COUNT) for kind in KINDS), (Staircase, REAL)])
def test_every_epsilon_has_a_finite_prediction_and_a_release(kind, query, epsilon):
    mechanism = build(kind, query, epsilon)
    assert 0 < mechanism.predicted_rmse.value < math.inf
    assert np.isfinite(mechanism.release(np.ones(N, dtype=int)).answers).all()


@pytest.mark.statistical
def test_exact_releases_of_a_real_query_have_the_predicted_error():
    for adjacency in Adjacency:
        mechanism = build(Staircase, REAL, 2.0, adjacency)
        assert mechanism.grid is not None
        records = np.array([0, 1, 2, 3, 2] * 10)
        sums, truth = mechanism.measured(records).sums, REAL.answers(records)
        errors = np.array([mechanism.private(None)(sums) - truth for _ in range(4000)])
        mean_agrees(errors[:, 0] ** 2, mechanism.predicted_rmse.value**2)
        mean_agrees(errors[:, 0], 0.0)


@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("workload", [COUNT, REAL], ids=["count", "real"])
def test_audit_passes_staircase_noise_and_refutes_half_of_it(workload, adjacency):
    mechanism = build(Staircase, workload, adjacency=adjacency)
    width = mechanism.noise.width
    for factor, refuted in ((1.0, False), (0.5, True)):
        noise = StaircaseNoise(factor * width, 1.0)
        result = audit_noise(
            noise,
            workload,
            mechanism.guarantee,
            trials=60_000,
            density=noise.log_density_ratio,
            rng=4,
        )
        assert result.refuted is refuted


@pytest.mark.parametrize("epsilon", [0.5, 30.0])
@pytest.mark.parametrize("n", [1, 10])
@pytest.mark.parametrize(
    ("kind", "workload"), [(Geometric, COUNT), (LatticeBox, COUNT), (Geometric, WHOLE["bits"])]
)
def test_a_projection_never_predicts_less_than_the_error_of_rare_noise(kind, workload, n, epsilon):
    """If all records are 0, the projected answer is wrong whenever the noise is above 0."""
    inner = build(kind, workload, epsilon, n=n)
    reach = math.ceil(60 / epsilon) * (workload.n_queries if kind is Geometric else 1) + 1
    steps = np.arange(1, reach + 1.0)
    one = GeometricNoise([1.0], inner.noise.scale) if kind is Geometric else inner.noise
    errors = np.minimum(steps / n, 1.0) ** 2
    expected = np.exp(log_density(one, steps[:, None])) @ errors
    assert gd.mechanisms.Projected(inner).predicted_rmse.value ** 2 >= expected * (1 - 1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_real_answers_are_refused_with_the_way_out(kind):
    with pytest.raises(ValueError, match="divide the queries by that unit"):
        build(kind, REAL)
    with pytest.raises(ValueError, match="whole numbers"):
        build(kind, gd.workloads.SecondMoment(2))


def test_staircase_takes_one_query_and_lattice_box_few(monkeypatch):
    with pytest.raises(ValueError, match="1 query for Staircase, got 3"):
        build(Staircase, Marginals(3, 1))
    assert build(LatticeBox, Explicit(np.eye(64, 2))).noise.dimension == 64
    monkeypatch.setattr(sums, "explicit_answers", lambda *_: pytest.fail("listed"))
    with pytest.raises(ValueError, match="1 to 64 queries for LatticeBox, got 65"):
        build(LatticeBox, Histogram(65))


@pytest.mark.parametrize(
    ("workload", "epsilon", "kind"),
    [(COUNT, 0.1, Geometric), (REAL, 3.0, Staircase), (Marginals(3, 1), 10.0, LatticeBox)],
)
def test_the_advisor_chooses_the_noise_with_the_least_error(workload, epsilon, kind):
    advice = gd.advise(workload, n=100_000, privacy=PureDP(epsilon), exact_only=True)
    assert type(getattr(advice.best, "inner", advice.best)) is kind


def test_the_advisor_says_why_the_lattice_does_not_apply():
    def why(workload):
        advice = gd.advise(workload, n=1000, privacy=PureDP(1.0), effort=0.05)
        return advice.table.set_index("mechanism")["why"]

    assert why(REAL)["Geometric"] == "the answers are not known to be whole numbers"
    assert "it is Geometric" in why(COUNT)["LatticeBox"]
    many = why(Prefixes(300))
    assert many["Geometric"] == "its error is not 0.01% below that of Laplace"
    assert many["LatticeBox"] == "it is made for at most 64 queries"
    assert many["Staircase"] == "it is made for one query"


@pytest.mark.parametrize("kind", KINDS)
def test_changes_that_float64_rounds_are_refused(kind):
    """The two answers of `HUGE` differ by 2^54 - 3, which is no float64 number."""
    with pytest.raises(ValueError, match="l1 sensitivity below"):
        build(kind, HUGE, n=1)
    with pytest.raises(ValueError, match="l1 sensitivity below"):
        build(kind, Explicit([[-(2**52), 2**52]]), n=1)
    below = 2**52 - 1
    noise = build(kind, Explicit([[-below, below - 1]]), n=1).noise
    assert int(noise.units[0]) == 2 * below - 1


@pytest.mark.parametrize("kind", [Staircase, Laplace])
def test_a_sensitivity_that_float64_rounds_is_not_proved(kind):
    assert build(kind, HUGE, n=1).grid is None
    assert build(kind, Explicit([[-(2**52), 2**52]]), n=1).grid is None
    assert build(kind, Explicit([[0, 2**52]]), n=1).grid is not None


@pytest.mark.parametrize("kind", KINDS)
def test_sums_that_float64_rounds_are_refused_before_the_ledger_pays(kind):
    """Rounded sums of neighbours can differ by numbers that are not multiples of 2^30 - 1."""
    ledger = gd.Ledger(PureDP(1.0))
    for n in (2**23, 2**24):
        with pytest.raises(ValueError, match=f"at most {2**23 - 1} .* got {n}"):
            build(kind, WIDE, n=n).release(np.ones(n, dtype=int), 0, ledger=ledger)
    mechanism = build(kind, WIDE, n=2**23 - 1)
    assert mechanism.grid == 0
    assert mechanism.with_n(5).grid == 0
    for rung in (mechanism, gd.mechanisms.Projected(mechanism)):
        with pytest.raises(ValueError, match=f"at most {2**23 - 1}"):
            rung.with_n(2**24)
    assert ledger.left() == {"epsilon": 1.0}


def test_advice_for_more_records_than_sums_hold_leaves_the_lattice_out():
    table = gd.advise(WIDE, n=2**24, privacy=PureDP(3.0), effort=0.05).table.set_index("mechanism")
    for name in ("Geometric", "LatticeBox"):
        assert "not exact in float64" in table.loc[name, "why"]
    rows = error_table(WIDE, ns=[2**20, 2**24], privacy=PureDP(3.0))
    rows = rows[rows["quantity"] == "predicted"]
    for name, numbers in (("Geometric", [2**20]), ("Laplace", [2**20, 2**24])):
        assert rows[rows["curve"] == name]["n"].tolist() == numbers
    question = gd.bounds.Problem(3.0, 1.0, gd.bounds.RMS(), REPLACE)
    bounds, refused = upper_bounds(WIDE, question)
    assert bounds
    assert any("not exact in float64" in why for why in refused.values())


@pytest.mark.parametrize("epsilon", [100.0, 200.0, 1e3, 1e6])
def test_the_least_unit_limits_the_scale(epsilon):
    """If the unit 1000 set the lower limit of the scale, the first query would get more noise."""
    workload = Explicit([[0, 1, 0, 1], [0, 0, 1000, 1000]])
    geometric, laplace = (build(kind, workload, epsilon, n=1) for kind in (Geometric, Laplace))
    assert 0 < geometric.predicted_rmse.value < laplace.predicted_rmse.value
    deep = build(Geometric, Explicit([[0, 1, 0, 1], [0, 0, 2**30, 2**30]]), 1e12, n=1)
    assert 0 < deep.predicted_rmse.value < 1e-20
    assert deep.release(np.array([3])).answers.tolist() == [1, 2**30]
    np.testing.assert_array_equal(gd.noise.half_widths(deep.noise), [0, 0])
    assert np.isfinite(deep.noise.log_density_ratio([[0.0, 0.0]], [[0.0, 0.0]])).all()


@pytest.mark.parametrize("kind", [Staircase, Laplace])
@pytest.mark.parametrize("adjacency", Adjacency)
def test_predictions_and_intervals_include_the_rounding_of_answers(kind, adjacency):
    """1/3 is rounded to a multiple of 2^-28, and for large n epsilon the noise is smaller."""
    n = 10**6
    query, records = Explicit([[0.0, 1 / 3, 1.0]]), np.ones(n, dtype=int)
    epsilon = 30.0 if kind is Staircase else 1e6
    mechanism = build(kind, query, epsilon, adjacency, n=n)
    errors = np.array([mechanism.release(records).noisy[0] - 1 / 3 for _ in range(30)])
    measured = math.sqrt(np.mean(errors**2))
    predicted = mechanism.predicted_rmse
    assert predicted.kind is gd.mechanisms.PredictionKind.UPPER_BOUND
    assert measured <= predicted.value * 1.03
    assert predicted.value <= 2.0**-29 * 1.01
    reach = half_widths(mechanism.noise) / n + mechanism.answer_rounding
    assert (np.abs(errors) <= reach[0]).mean() > 0.8
    # `Shrunk` needs a public number of records.
    shrunk = [gd.mechanisms.Shrunk] if adjacency is Adjacency.REPLACE_ONE else []
    for post in (gd.mechanisms.Projected, gd.mechanisms.Fitted, *shrunk):
        assert measured <= post(mechanism).predicted_rmse.value * 1.03
    for metric in (gd.bounds.RMS(), gd.bounds.MeanL2(), gd.bounds.WorstCase()):
        assert error_limit(metric, mechanism).value >= np.abs(errors).mean() / 1.03
