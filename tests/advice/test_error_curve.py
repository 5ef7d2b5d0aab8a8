"""Error tables contain the predictions of `advise`, smaller lower bounds, and measured errors."""

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp.advice import Quantity, error_table
from geomdp.advice.error_curve import ANY, MEASURED_POINTS, MEASURED_RELEASES
from tests.stats import LEVEL

W = gd.workloads.MarginalTables({"a": 2, "b": 2, "c": 2}, k=2)
PRIVACY = gd.PureDP(1.0)
PER_N = ("JL(", "Coarse(", "Fitted(")
NS = [3, 10, 100, 1000, 10_000, 100_000]


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    records = W.universe.sample(300, rng=1)
    return error_table(W, ns=NS, privacy=PRIVACY, records=records)


def of(table: pd.DataFrame, quantity: Quantity) -> pd.DataFrame:
    return table[table.quantity == quantity.value]


@pytest.mark.parametrize("n", [NS[0], NS[-1]])
def test_predictions_are_those_of_the_advisor(table, n):
    advised = gd.advise(W, n=n, privacy=PRIVACY).table.dropna(subset="predicted_rmse")
    expected = dict(zip(advised.mechanism, advised.predicted_rmse, strict=True))
    # For each n, `advise` chooses the dimension of JL and the points of Coarse, and leaves out JL
    # or Coarse if it cannot win. Only `advise` tries fits.
    expected = {name: value for name, value in expected.items() if not name.startswith(PER_N)}
    there = of(table, Quantity.PREDICTED)
    there = there[(there.n == n) & ~there.curve.str.startswith(PER_N)]
    assert dict(zip(there.curve, there.rmse, strict=True)) == pytest.approx(expected, rel=1e-9)


def test_the_jl_mechanism_appears_where_it_applies():
    # The dimension of JL, ceil(epsilon n), must be below the dimension of the answers, here 16.
    Q = gd.workloads.Histogram(17)
    found = error_table(Q, ns=[5, 15, 16, 50], privacy=PRIVACY, exact_only=True)
    assert set(found[found.curve.str.startswith("JL(")].n) == {5, 15}


def test_no_prediction_is_below_what_is_excluded(table):
    excluded = of(table, Quantity.EXCLUDED)
    assert set(excluded.curve) == {ANY}
    predicted = of(table, Quantity.PREDICTED).groupby("n").rmse.min()
    # A bound at one n holds at every smaller n.
    for n, least in predicted.items():
        assert least > excluded[excluded.n >= n].rmse.max()
    # The bound is stated at both ends of the curve. It does not increase with n, and, by padding,
    # it does not fall faster than 1 / n.
    assert {NS[0], NS[-1]} <= set(excluded.n)
    ordered = excluded.sort_values("n")
    assert (ordered.rmse.diff().dropna() <= 0).all()
    assert ((ordered.rmse * ordered.n).diff().dropna() >= -1e-12).all()


def test_what_is_excluded_is_what_the_bracket_excludes():
    # `error_table` computes a bound on n for this error, a tenth of the largest error it uses.
    error = W.l2_diameter() / np.sqrt(W.n_queries) / 10
    bracket = gd.sample_complexity_bracket(W, 1.0, error, metric=gd.bounds.RMS())
    n = int(bracket.lower.records)
    found = of(error_table(W, ns=[n, 10 * n], privacy=PRIVACY), Quantity.EXCLUDED)
    at = dict(zip(found.n, found.rmse, strict=True))
    assert at[n] >= error
    assert at[10 * n] >= error / 10
    # A mechanism reaches `error` with `upper` records, so no error above `error` is excluded there.
    # By padding, the error at[n] n / upper is excluded there.
    upper = int(bracket.upper.records)
    assert at[n] < error * upper / n


@pytest.mark.statistical
def test_measured_errors_are_the_predicted_ones(table):
    measured = of(table, Quantity.MEASURED)
    assert set(measured.n) == {NS[i] for i in (0, 1, 2, 4, 5)}
    assert measured.n.nunique() == MEASURED_POINTS
    predicted = of(table, Quantity.PREDICTED)
    joined = measured.merge(predicted, on=["curve", "n"], suffixes=("", "_predicted"))
    assert len(joined) == len(measured)
    # Cantelli's inequality with the standard errors gives `allowed`, for all points together and
    # for both signs. Measured errors may be far below a prediction that is only an upper bound, but
    # not below an exact prediction.
    allowed = np.sqrt(2 * len(joined) / LEVEL - 1)
    tighter = 12.0  # enough, because means over 20 releases are close to normal
    scores = (joined.rmse - joined.rmse_predicted) / joined.stderr
    assert tighter < allowed
    assert (scores < tighter).all()
    assert (scores[joined.kind_predicted == "exact"] > -tighter).all()
    assert MEASURED_RELEASES == 20


def test_what_is_measured_depends_on_the_records_and_the_rest_does_not(table):
    other = pd.DataFrame(np.zeros((40, 3), dtype=np.int64), columns=list("abc"))
    again = error_table(W, ns=NS, privacy=PRIVACY, records=other)
    public = [Quantity.PREDICTED.value, Quantity.EXCLUDED.value]
    pd.testing.assert_frame_equal(
        again[again.quantity.isin(public)], table[table.quantity.isin(public)]
    )
    assert (of(again, Quantity.MEASURED).rmse != of(table, Quantity.MEASURED).rmse).any()


def test_heuristic_samplers_are_named_and_not_measured(table):
    heuristic = table[table.sampler.str.startswith("heuristic")]
    assert set(heuristic.quantity) == {Quantity.PREDICTED.value}
    measured = of(table, Quantity.MEASURED)
    assert set(measured.sampler) == {"exact"}
    assert not set(measured.curve) & set(heuristic.curve)


@pytest.mark.parametrize("privacy", [gd.ZCDP(0.5), gd.ApproxDP(1.0, 1e-6)], ids=str)
def test_other_guarantees_have_gaussian_noise_and_a_bound(privacy):
    found = error_table(W, ns=[100, 1000], privacy=privacy)
    assert "Gaussian" in set(found.curve)
    excluded, predicted = of(found, Quantity.EXCLUDED), of(found, Quantity.PREDICTED)
    for n in (100, 1000):
        least = predicted[predicted.n == n].rmse.min()
        assert least / 4 < excluded[excluded.n >= n].rmse.max() < least


@pytest.mark.parametrize(("arguments", "message"), [
        *(
            ({"ns": ns}, "ns must be")
            for ns in ([100], [100, 100], [1000, 100], [0, 10], [1.5, 10])
        ),
    ({"privacy": 1.0}, "privacy must be"),
    ({"records": np.zeros((0, 3), dtype=np.int64)}, "at least 1 record, got 0"),
    ({"records": np.full((2, 3), 9)}, "row 0"),
])  # fmt: skip
def test_refusals(arguments, message):
    with pytest.raises(ValueError, match=message):
        error_table(W, **({"ns": NS, "privacy": PRIVACY} | arguments))


def test_nothing_is_excluded_where_answers_do_not_depend_on_records():
    constant = gd.workloads.Explicit([[1.0, 1.0]])
    adjacency = gd.Adjacency.ADD_REMOVE
    table = error_table(constant, ns=[10, 100], privacy=PRIVACY, adjacency=adjacency)
    assert of(table, Quantity.EXCLUDED).empty
    assert not of(table, Quantity.PREDICTED).empty
