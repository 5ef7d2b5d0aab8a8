"""Columns asked by prefixes, ranges or means; means and quantiles by group from a release alone."""

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp.mechanisms import Laplace, ResidualGaussian
from geomdp.tabulation import Tabulation, ways
from geomdp.tabulation.tasks import task_of
from tests.stats import binomial_below

#: So large that the noise in counts is far below 1.
PRECISE = gd.ZCDP(1e9)
SCHEMA = gd.data.Schema.from_dict(
    {
        "ward": ["ENT", "surgery", "empty"],
        "smoker": {"kind": "boolean", "missing": True},
        "visits": {"categories": [0, 1, 2, 5], "other": True, "missing": True},
        "income": {"edges": [0, 10, 30, 70], "missing": True},
    }
)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "ward": rng.choice(["ENT", "surgery"], 400, p=[0.9, 0.1]),
            "smoker": rng.choice(np.array([True, False, None], dtype=object), 400),
            "visits": rng.choice(np.array([0, 1, 2, 5, 7, None], dtype=object), 400),
            "income": rng.choice([0.0, 9.5, 12.25, 29.0, 31.0, 70.0, np.nan], 400),
        }
    )


def exactly(frame, *asked):
    # Without a seed an empty group seems to hold records in 1 run of 40, as the level 0.95 allows.
    return gd.release(frame, SCHEMA, asked, privacy=PRECISE, mechanism=ResidualGaussian, rng=1)


def test_means_are_those_of_the_records_with_a_number(frame):
    found = exactly(frame, ("ward", "visits[mean]"), ("smoker[mean]",)).means()
    known = frame[frame.visits.isin([0, 1, 2, 5])]
    by_ward = known.visits.astype(int).groupby(known.ward).agg(["count", "sum", "mean"])
    rows = found[found.column == "visits"].set_index("ward")
    known = rows.loc[["ENT", "surgery"], ["count", "total", "mean"]]
    np.testing.assert_allclose(known, by_ward, rtol=1e-4)
    assert rows.loc["empty", ["mean", "low", "high"]].isna().all()
    smoker = found[found.column == "smoker"].iloc[0]
    assert smoker["mean"] == pytest.approx(frame.smoker.dropna().astype(int).mean(), abs=1e-4)
    assert pd.isna(smoker["ward"])
    answered = found.dropna(subset=["mean"])
    for name, low, high in (("mean", "low", "high"), ("total", "total_low", "total_high")):
        assert (answered[low] <= answered[name]).all()
        assert (answered[name] <= answered[high]).all()


@pytest.mark.parametrize("spec", ["prefixes:income", "ranges:income"])
def test_missing_values_are_in_no_prefix_and_no_range(frame, spec):
    shares = exactly(frame, spec).tables[("income",)]
    assert shares["(missing)"] == pytest.approx(frame.income.isna().mean(), abs=1e-5)
    last = "<=[30, 70]" if spec.startswith("p") else "[0, 10) to [30, 70]"
    assert shares[last] == pytest.approx(frame.income.notna().mean(), abs=1e-5)


def test_intervals_of_bins_contain_the_mean_of_the_values_themselves(frame):
    found = exactly(frame, ("ward", "income[mean]")).means().set_index("ward")
    true = frame.groupby("ward").income.agg(["sum", "mean"])
    for ward in ("ENT", "surgery"):
        row = found.loc[ward]
        assert row["low"] <= true.loc[ward, "mean"] <= row["high"]
        assert row["total_low"] <= true.loc[ward, "sum"] <= row["total_high"]
        # The middle of a bin is 5, 20 or 50, and the widest bin is 40 wide.
        middle = pd.cut(frame.income[frame.ward == ward], [-1, 9.99, 29.99, 70], labels=[5, 20, 50])
        assert row["mean"] == pytest.approx(middle.dropna().astype(int).mean(), rel=1e-4)
        assert row["low"] == pytest.approx(max(0, row["mean"] - 20), abs=0.01)


def test_quantiles_are_those_of_the_records(frame):
    found = exactly(frame, ("ward", "visits[prefixes]"), ("income[prefixes]",))
    rows = found.quantiles([0.1, 0.5, 0.9]).set_index(["column", "ward", "quantile"]).sort_index()
    known = frame[frame.visits.isin([0, 1, 2, 5])]
    for ward in ("ENT", "surgery"):
        values = known.visits[known.ward == ward].astype(int)
        for q in (0.1, 0.5, 0.9):
            true = np.quantile(values, q, method="inverted_cdf")
            assert rows.loc[("visits", ward, q), "level"] == str(true)
    assert rows.loc[("visits", "empty", 0.5)].isna().all()
    for _, row in rows.loc["income"].iterrows():
        true = np.quantile(frame.income.dropna(), row.name[1], method="inverted_cdf")
        assert float(row["low"]) <= true <= float(row["high"])


def test_quantile_intervals_are_the_extremes_over_all_increasing_prefixes():
    rng = np.random.default_rng(5)
    for _ in range(300):
        true = np.cumsum(rng.integers(0, 4, 6)) + 1.0
        least, most = true - rng.integers(0, 3, 6), true + rng.integers(0, 3, 6)
        q = rng.uniform(0.05, 0.95)
        bounds = np.maximum.accumulate(least), np.minimum.accumulate(most[::-1])[::-1]
        low, level, high = ways.quantile_of(q, true, *bounds)
        assert level == np.argmax(true >= q * true[-1])
        drawn = np.sort(rng.uniform(*bounds, (500, 6)), axis=1)
        inside = drawn[((drawn >= least) & (drawn <= most)).all(axis=1)]
        reached = (inside >= q * inside[:, -1:]).argmax(axis=1)
        assert (low <= reached).all()
        assert (reached <= high).all()
        lowest, highest = bounds[1].copy(), bounds[0].copy()
        lowest[-1] = max(bounds[0][-1], lowest[-2])  # prefixes increase
        highest[-1] = bounds[1][-1]
        assert np.argmax(lowest >= q * lowest[-1]) >= low
        assert np.argmax(highest >= q * highest[-1]) == high


def test_a_public_total_moves_no_quantile_by_rounding():
    share = np.array([0.1, 0.3, 0.6, 1.0])
    for q, level in ((0.1, 0), (0.3, 1), (0.6, 2), (0.95, 3)):
        bound = share * (1 + 1e-16)
        assert ways.quantile_of(q, share, bound, bound)[:2] == (level, level)


def test_intervals_are_the_extremes_over_the_box_of_count_and_total():
    rng = np.random.default_rng(6)
    levels = ["[-10, 0)", "[0, 30)", "[30, 60]"]  # with the centres -5, 15 and 45
    least = rng.uniform(0.1, 50, 400) * np.stack([np.ones(400), rng.uniform(-1, 1, 400)])
    most = least + rng.uniform(0, 20, (2, 400))
    answers = rng.uniform(least, most)
    numbers = ways.numbers_of(levels, least, most, answers)
    found = dict(zip(ways.MEANS[1:], numbers, strict=True))
    inside = np.abs(answers[1]) <= answers[0]
    np.testing.assert_allclose(found["total"][inside], (20 * answers[0] + 25 * answers[1])[inside])
    assert (found["total_low"] >= -10 * most[0]).all()
    for _ in range(50):
        count, total = rng.uniform(least, most)
        # Each record is at most half of the widest bin from the centre, and within the bounds.
        real = 20 * count + 25 * total + rng.uniform(-15, 15, 400) * count
        possible = (real >= -10 * count) & (real <= 60 * count)
        assert possible.sum() > 40
        for value, low, high in ((real, "total_low", "total_high"), (real / count, "low", "high")):
            assert (found[low] - 1e-9 <= value)[possible].all()
            assert (value <= found[high] + 1e-9)[possible].all()


# Noise, and the coverage of the intervals

DIGITS = gd.data.Schema.from_dict({"ward": ["a", "b"], "score": list(range(11))})
TASK = task_of(DIGITS, ["tables:ward*score[mean]"])
#: 60 records with a high score, so that the noise in the count matters, and 340 with any.
WARDS = np.repeat([0, 1], [60, 340])
RECORDS = np.stack([WARDS, np.r_[np.full(60, 10), np.arange(340) % 11]], axis=1)
NOISE = {
    "Laplace": lambda task: Laplace(task.workload, n=400, privacy=gd.PureDP(0.8)),
    "Gaussian": lambda task: ResidualGaussian(task.workload, n=400, privacy=gd.ZCDP(0.08)),
}


@pytest.fixture(scope="module", params=NOISE)
def tabulations(request):
    mechanism = NOISE[request.param](TASK)
    return [Tabulation(mechanism.release(RECORDS, rng=i), TASK, mechanism) for i in range(300)]


@pytest.mark.statistical
def test_intervals_hold_the_true_numbers(tabulations):
    """No interval of a count, total or mean of one group misses too often."""
    truths = {"count": [60, 340], "total": [600, sum(np.arange(340) % 11)]}
    truths["mean"] = np.divide(truths["total"], truths["count"])
    columns = [found.means(0.95) for found in tabulations]
    for name, low, high in (("count", "count_low", "count_high"), ("mean", "low", "high"),
                            ("total", "total_low", "total_high")):  # fmt: skip
        missed = sum(
            (each[low] > truths[name]).astype(int) + (each[high] < truths[name]) for each in columns
        )
        for misses in missed:
            binomial_below(int(misses), len(columns), 0.05)
    assert np.mean([np.isfinite(each["mean"]).all() for each in columns]) > 0.9


def test_the_noise_depends_on_no_unit_and_no_origin():
    """One record changes the count and the scaled total by at most 2 each: Laplace scale 4."""
    elements = TASK.workload.evaluate(TASK.workload.universe.elements())
    apart = np.abs(elements[:, None] - elements[None]).sum(axis=2).max()
    assert apart == TASK.workload.l1_diameter() == 4
    for factor, origin in ((1, 0), (1000, 0), (0.25, 5e6)):
        levels = [str(origin + factor * i) for i in range(11)]
        schema = gd.data.Schema.from_dict({"ward": ["a", "b"], "score": levels})
        task = task_of(schema, [("ward", "score[mean]")])
        mechanism = Laplace(task.workload, n=400, privacy=gd.PureDP(0.8))
        found = Tabulation(mechanism.release(RECORDS, rng=0), task, mechanism)
        np.testing.assert_allclose(found.noise_std, np.sqrt(2) * 4 / 0.8 / 400)
        assert found.means()["mean"][1] == pytest.approx(origin + 5 * factor, abs=2 * factor)


# What is refused


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ("tables:ward[mean]", "\\[mean\\] needs numbers, bins or a boolean"),
        ("tables:one[mean]", "2 or more finite numbers that differ"),
        ("tables:ward*real[mean]", "'real' is real.*declare it with edges"),
        ("tables:unreal[mean],ward", "numbers, bins or a boolean"),
        ("tables:ward*missing", "COLUMN\\[mean\\]"),
    ],
)
def test_columns_without_a_mean_are_refused(asked, words):
    declared = {"ward": ["a", "b"], "one": [3], "unreal": ["x"], "real": {"bounds": [0, 1]}}
    with pytest.raises(ValueError, match=words):
        task_of(gd.data.Schema.from_dict(declared), [asked])


def test_forms_that_a_release_does_not_have_are_refused_before_it(frame):
    asked = {"epsilon": 1.0, "n": 1}  # the wrong n would be the next error
    with pytest.raises(ValueError, match="integers must be False"):
        gd.release(frame, SCHEMA, "tables:visits[mean]", integers=True, **asked)
    schema = gd.data.Schema.from_dict({"total": ["a", "b"], "visits": [1, 2]})
    with pytest.raises(ValueError, match=r"'total'.*must be renamed"):
        gd.release(frame, schema, "tables:total*visits[mean]", **asked)
    found = exactly(frame, ("ward", "smoker"))
    with pytest.raises(ValueError, match="asked by \\[mean\\]"):
        found.means()
    with pytest.raises(ValueError, match="asked by \\[prefixes\\]"):
        found.quantiles([0.5])
    with pytest.raises(ValueError, match="probabilities"):
        exactly(frame, ("visits[prefixes]",)).quantiles([0.5, 1.0])


def test_a_column_with_brackets_in_its_name():
    schema = gd.data.Schema.from_dict({"pay [EUR] * 2": ["low", "high"], "visits": [1, 2]})
    assert task_of(schema, [("pay [EUR] * 2", "visits")]).columns == ("pay [EUR] * 2", "visits")


def test_several_numeric_columns_in_one_table(frame):
    found = exactly(frame, ("ward", "smoker[mean]", "visits[mean]")).means()
    rows = found[(found.column == "visits") & (found.smoker == "(missing)")].set_index("ward")
    own = frame[frame.smoker.isna() & frame.visits.isin([0, 1, 2, 5]) & (frame.ward == "ENT")]
    assert rows.loc["ENT", "mean"] == pytest.approx(own.visits.astype(int).mean(), rel=1e-3)
    assert set(found.smoker.dropna()) == {"[count]", "(missing)"}


# --- tables with prefixes and ranges -------------------------------------------------------------

AGES = [10, 20, 30, 40]
AGED = gd.data.Schema.from_dict({"region": ["north", "south"], "smoker": bool, "age": AGES})


@pytest.fixture(scope="module")
def aged():
    rng = np.random.default_rng(1)
    regions, smokers = rng.choice(["north", "south"], 300), rng.integers(0, 2, 300).astype(bool)
    return pd.DataFrame({"region": regions, "smoker": smokers, "age": rng.choice(AGES, 300)})


def test_all_tables_of_two_columns_with_ranges(aged):
    asked = {"privacy": PRECISE, "mechanism": ResidualGaussian}
    result = gd.release(aged, AGED, "marginals:2,age[ranges]", **asked)
    shares = dict(zip(result.task.labels, result.answers, strict=True))
    assert len(shares) == 2 * 2 + 2 * 10 + 2 * 10
    some = (aged.smoker & aged.age.between(20, 30)).mean()
    assert shares["smoker=true,age=20 to 30"] == pytest.approx(some, abs=1e-4)
    both = ((aged.region == "south") & ~aged.smoker).mean()
    assert shares["region=south,smoker=false"] == pytest.approx(both, abs=1e-4)
    assert result.task.description == "3 2-way tables of 3 columns, age by ranges"


def test_without_brackets_they_are_tables():
    task = task_of(AGED, ["tables:age*region,smoker"])
    assert [table.columns for table in task.tables] == [("region", "age"), ("smoker",)]
    assert isinstance(task.workload, gd.workloads.ChosenTables)
    assert task.labels == task_of(AGED, [("region", "age"), ("smoker",)]).labels


@pytest.mark.parametrize(
    ("workload", "words"),
    [
        ("tables", "written tables:"),
        ("tables:region*height", r"COLUMN among region, smoker, age; got 'height'"),
        ("tables:region*age[prefix]", r"COLUMN\[prefixes\], COLUMN\[ranges\].*got 'age\[prefix\]'"),
        ("tables:region*age[prefixes", r"got 'age\[prefixes'"),
        ("tables:age[prefixes],smoker*age", "'age' must be asked in the same way"),
        ("tables:age[prefixes],age[ranges]", "'age' must be asked in the same way"),
        ("marginals:1,age[prefixes],age[ranges]", "'age' must be asked in the same way"),
        ("marginals:1,age[prefixes],age", "'age' must be asked in the same way"),
        ("tables:age,age", "occurs more than once"),
        ("tables:age*age", "column twice"),
        ("marginals:2,height[ranges]", r"got 'height\[ranges\]'"),
        ("marginals:4,age[ranges]", "at least 1 and at most 3"),
        ("marginals:2,", "COLUMN among"),
    ],
)
def test_other_spellings_are_refused(workload, words):
    with pytest.raises(ValueError, match=words):
        task_of(AGED, [workload])


def test_products_and_tables_are_mixed_with_weights(aged):
    asked = ["tables:age[prefixes]", ("region", "smoker"), ("age[prefixes]", "region")]
    task = task_of(AGED, asked, weights=[1, 2, 4])
    assert [table.columns for table in task.products] == [
        ("age",), ("region", "smoker"), ("region", "age")]  # fmt: skip
    assert task.weights.tolist() == [1] * 4 + [2] * 4 + [4] * 8
    given = {"weights": [1, 2, 4], "privacy": PRECISE, "mechanism": ResidualGaussian}
    result = gd.release(aged, AGED, asked, **given)
    both = ((aged.region == "south") & (aged.age <= 30)).mean()
    assert result.tables["region", "age"].loc["south", "<=30"] == pytest.approx(both, abs=1e-4)
    assert result.tables[("age",)]["<=20"] == pytest.approx((aged.age <= 20).mean(), abs=1e-4)


def test_the_order_of_texts_is_doubtful_and_that_of_numbers_is_not(aged):
    with pytest.warns(UserWarning, match="declared order, north < south"):
        gd.release(aged, AGED, "tables:region[ranges]", epsilon=1.0)
    turned = gd.data.Schema.from_dict({"age": [10, 30, 20, 40]})
    assert "10 < 30 < 20 < 40" in task_of(turned, ["prefixes:age"]).disordered
    assert task_of(AGED, ["marginals:1,age[prefixes],smoker[ranges]"]).disordered == ""
