"""Private covariances in the units of the columns, and regression from them."""

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp.tabulation import covariance
from tests.stats import LEVEL, binomial_above, binomial_below

BOUNDED = gd.data.Schema.from_dict(
    {"age": {"bounds": [0, 120]}, "income": {"bounds": [-100, 900]}, "smoker": bool}
)
ROWS = 500
PRECISE = gd.PureDP(1e8)


@pytest.fixture(scope="module")
def people():
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 90, ROWS)
    income = 5 * age + rng.uniform(0, 300, ROWS)
    return pd.DataFrame({"age": age, "income": income, "smoker": rng.random(ROWS) < 0.5})


def test_covariances_are_those_of_the_records(people, tmp_path):
    found = covariance(people, BOUNDED, privacy=PRECISE, rng=0)
    expected = people[["age", "income"]].cov(ddof=0)
    assert list(found.frame.index) == list(found.frame.columns) == ["age", "income"]
    np.testing.assert_allclose(found.frame, expected, rtol=1e-3)
    assert "covariance of 2 columns: seeded" in repr(found)
    assert "<table" in found._repr_html_()
    people.to_csv(tmp_path / "r.csv", index=False)
    stored = covariance(tmp_path / "r.csv", BOUNDED, privacy=PRECISE, rng=0)
    np.testing.assert_array_equal(stored.frame, found.frame)


def test_one_column_and_its_guarantee(people):
    found = covariance(people, BOUNDED, privacy=gd.ZCDP(0.5), columns=["income"])
    assert str(found.guarantee).startswith("0.5-zCDP")
    assert found.frame.shape == (1, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"columns": ["smoker"]}, "must name real columns"),
        ({"n": 7}, "n must be the number of records, 500, got 7"),
        ({"adjacency": gd.Adjacency.ADD_REMOVE}, "a covariance needs replace-one"),
        ({"adjacency": gd.Adjacency.ADD_REMOVE, "n": 500}, "a covariance needs replace-one"),
    ],
)
def test_covariances_that_are_refused(people, options, message):
    ledger = gd.Ledger(gd.PureDP(1e9), adjacency=options.get("adjacency", gd.Adjacency.REPLACE_ONE))
    with pytest.raises(ValueError, match=message):
        covariance(people, BOUNDED, privacy=PRECISE, ledger=ledger, **options)
    assert not ledger.spends()


def test_a_ledger_refuses_before_records_are_read(tmp_path):
    ledger = gd.Ledger(gd.PureDP(1.0))
    with pytest.raises(gd.BudgetExhausted):
        covariance(tmp_path / "absent.csv", BOUNDED, privacy=PRECISE, ledger=ledger)


# --- regression -----------------------------------------------------------------------------------

WAGES = gd.data.Schema.from_dict(
    {"age": {"bounds": [20, 60]}, "school": {"bounds": [0, 25]}, "pay": {"bounds": [0, 100]}}
)
SLOPES = {"age": 0.5, "school": 1.2}


def wages(rows, rng):
    age = rng.uniform(20, 60, rows)
    school = 6 + 0.1 * age + rng.uniform(-6, 6, rows)
    pay = 10 + 0.5 * age + 1.2 * school + rng.uniform(-10, 10, rows)
    return pd.DataFrame({"age": age, "school": school, "pay": pay})


def test_without_noise_regression_is_least_squares():
    frame = wages(2000, np.random.default_rng(1))
    found = covariance(frame, WAGES, privacy=PRECISE, rng=0).regression("pay")
    design = np.column_stack([np.ones(2000), frame["age"], frame["school"]])
    fitted, square, *_ = np.linalg.lstsq(design, frame["pay"], rcond=None)
    np.testing.assert_allclose([found.intercept, *found.frame["coefficient"]], fitted, rtol=1e-4)
    level, *errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * square / 2000)
    np.testing.assert_allclose(found.frame["standard_error"], errors, rtol=1e-3)
    assert found.level["standard_error"] == pytest.approx(level, rel=1e-3)
    half = (found.frame["high"] - found.frame["low"]) / 2
    # A quantile of 2000 draws has a relative standard deviation of 2%.
    np.testing.assert_allclose(half, 1.96 * np.array(errors), rtol=0.12)


def test_intervals_of_a_regression_contain_the_noise():
    """They cover the slopes and the intercept in 95% of releases; without the noise they do not."""
    trials, truth = 100, np.array([*SLOPES.values(), 10.0])
    covered, without = np.zeros(3, dtype=int), np.zeros(3, dtype=int)
    for seed in range(trials):
        frame = wages(5000, np.random.default_rng([2, seed]))
        found = covariance(frame, WAGES, privacy=gd.PureDP(2.0), rng=seed).regression("pay")
        rows = pd.concat([found.frame, found.level.to_frame().T])
        covered += ((rows["low"] <= truth) & (truth <= rows["high"])).to_numpy()
        sampling = np.sqrt(rows["standard_error"] ** 2 - rows["noise_error"] ** 2)
        without += (np.abs(rows["coefficient"] - truth) <= 1.96 * sampling).to_numpy()
    for hits, few in zip(covered, without, strict=True):
        # First order in the noise, and quantiles of 2000 draws, cost up to 2% of the coverage.
        binomial_above(int(hits), trials, 0.93, LEVEL / 3)
        binomial_below(int(few), trials, 0.8, LEVEL / 3)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (["rent"], {}, r"columns must be among \['age', 'income'\], got \['rent'\]"),
        (["age", ["rent"]], {}, r"got \['rent'\]"),
        (["age", []], {}, "one or more different columns other than 'age'"),
        (["age", ["age"]], {}, "other than 'age'"),
        (["age", ["income", "income"]], {}, "different columns"),
        (["age"], {"confidence": 1.0}, "confidence must be above 0 and below 1, got 1.0"),
    ],
)
def test_regressions_that_are_refused(people, arguments, options, message):
    found = covariance(people, BOUNDED, privacy=PRECISE, rng=0)
    with pytest.raises(ValueError, match=message):
        found.regression(*arguments, **options)


def test_predictors_lost_in_the_noise_are_refused(people):
    found = covariance(people, BOUNDED, privacy=gd.PureDP(0.01), rng=0)
    with pytest.raises(ValueError, match="too large to tell the predictors apart"):
        found.regression("age")
