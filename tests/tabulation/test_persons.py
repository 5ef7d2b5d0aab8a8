"""Releases that protect persons with several rows, and what they cost."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import geomdp as gd
from geomdp.advice.least_budget import budget_for
from geomdp.data.tallies import count_records
from geomdp.privacy import (
    ZCDP,
    Adjacency,
    ApproxDP,
    Exact,
    Guarantee,
    Ledger,
    PureDP,
    group_privacy,
    member_privacy,
)

SCHEMA = gd.data.Schema.from_dict({"a": ["x", "y"], "b": bool})
PERSONS = {"adjacency": Adjacency.ADD_REMOVE, "n": 8, "person": "id"}
KINDS = (PureDP, ZCDP, lambda loss: ApproxDP(loss, 1e-6))


def frame(rows):
    """Two others, and a person with `rows` equal rows."""
    names, a = ["p", "q", "q", *"r" * rows], ["y", "y", "y", *"x" * rows]
    return pd.DataFrame({"id": names, "a": a, "b": [True, False, True, *[True] * rows]})


# The price: privacy of one of k rows, from privacy of the person.


@given(st.sampled_from(KINDS), st.floats(1e-6, 20.0), st.integers(1, 1000))
def test_the_privacy_of_a_row_is_the_weakest_that_protects_the_person(build, loss, k):
    wanted = build(loss)
    row = member_privacy(wanted, k)
    together = group_privacy(row, k).parameters()
    limits = wanted.parameters()
    assert all(together[name] <= limits[name] for name in limits)
    for name, value in row.parameters().items():
        if k == 1:
            break
        weaker = type(row)(**{**row.parameters(), name: value * (1 + 1e-12)})
        assert group_privacy(weaker, k).parameters()[name] > limits[name]


def test_a_delta_too_small_for_a_row_is_refused():
    with pytest.raises(ValueError, match="delta must be above 0"):
        member_privacy(ApproxDP(800.0, 1e-9), 1000)


@pytest.mark.parametrize("build", KINDS)
def test_noise_grows_by_the_number_of_rows(build):
    """The noise of k rows on sums is k times that of one, for epsilon and for rho."""
    kind = gd.mechanisms.Laplace if build is PureDP else gd.mechanisms.Gaussian
    tables = {"workload": "marginals:1", "privacy": build(0.01), "mechanism": kind}
    single, triple = (
        gd.release(frame(3), SCHEMA, **tables, **PERSONS, max_rows_per_person=k).noise_std
        for k in (1, 3)
    )
    # For (epsilon, delta), group privacy needs a little more than three times the noise.
    low, high = (3, 3) if build in (PureDP, ZCDP) else (3, 3.01)
    assert np.all(triple >= single * low * (1 - 1e-9))
    assert np.all(triple <= single * high * (1 + 1e-9))


# The claim.


def test_a_release_says_whom_it_protects():
    row = gd.release(frame(3), SCHEMA, "marginals:1", epsilon=1.0)
    assert str(row.guarantee).startswith("1-DP, replace-one; protects a row; noise")
    asked = {"epsilon": 1.0, "max_rows_per_person": 3, **PERSONS}
    person = gd.release(frame(3), SCHEMA, "marginals:1", **asked)
    said = "1-DP, add/remove; protects a person, of whom at most 3 rows are counted, by the column"
    assert str(person.guarantee).startswith(said)
    assert "of a person, of whom at most 3 rows are counted" in repr(person.guarantee)
    assert person.guarantee.effective.epsilon <= 1.0
    assert person.mechanism.privacy.epsilon == pytest.approx(1 / 3)


def test_every_mechanism_that_takes_bounded_counts_makes_the_claim_for_persons():
    workload = gd.workloads.MarginalTables(SCHEMA.levels, 1)
    source = gd.data.source_of(frame(3))
    counted = count_records(source, SCHEMA, workload, person="id", max_rows_per_person=2)
    asked = {"n": 8, "privacy": PureDP(0.5), "adjacency": Adjacency.ADD_REMOVE}
    for mechanism in (gd.mechanisms.Laplace, gd.mechanisms.ReportNoisyMax):
        guarantee = mechanism(workload, **asked).release(counted).guarantee
        assert (guarantee.privacy, guarantee.max_rows_per_person) == (PureDP(1.0), 2)
    laplace = gd.mechanisms.Laplace(workload, n=6, privacy=PureDP(0.5))
    with pytest.raises(ValueError, match="max_rows_per_person needs add/remove"):
        laplace.release(counted)


def test_a_record_tells_persons_from_rows_and_older_records_are_read():
    row = Guarantee(PureDP(0.5), Adjacency.ADD_REMOVE, Exact())
    for guarantee in (row, row.for_persons(1), row.for_persons(3)):
        record = json.loads(json.dumps(guarantee.to_dict()))
        assert Guarantee.from_dict(record) == guarantee
    with pytest.raises(ValueError, match="statement must be"):
        Guarantee.from_dict({**row.to_dict(), "max_rows_per_person": 3})
    older = row.to_dict()
    del older["max_rows_per_person"]
    older["statement"] = older["statement"].replace("; protects a row", "")
    assert Guarantee.from_dict(older) == row
    person = row.for_persons(3).to_dict()
    del person["max_rows_per_person"]
    with pytest.raises(ValueError, match="statement must be"):
        Guarantee.from_dict(person)


# The ledger.


def test_a_ledger_of_persons_takes_no_claims_for_rows(tmp_path):
    path = tmp_path / "persons.ledger"
    asked = {"workload": "marginals:1", "epsilon": 1.0}
    persons = {**asked, **PERSONS, "max_rows_per_person": 3}
    with Ledger(PureDP(2.0), adjacency=Adjacency.ADD_REMOVE, person="id", path=path) as ledger:
        gd.release(frame(3), SCHEMA, **persons, ledger=ledger)
        assert ledger.left()["epsilon"] == pytest.approx(1.0)
        of_rows = {**asked, "adjacency": Adjacency.ADD_REMOVE, "n": 8}
        with pytest.raises(ValueError, match=r"of a person by the column id, got add/remove$"):
            gd.release(frame(3), SCHEMA, **of_rows, ledger=ledger)
    with Ledger.existing(path) as ledger:
        assert ledger.adjacency is Adjacency.ADD_REMOVE
        assert "add/remove of a person" in repr(ledger)
        gd.release(frame(3), SCHEMA, **persons, ledger=ledger)
        with pytest.raises(gd.BudgetExhausted):
            gd.release(frame(3), SCHEMA, **persons, ledger=ledger)
    with pytest.raises(ValueError, match=r"by the column id, not 2-DP under add/remove$"):
        Ledger(PureDP(2.0), adjacency=Adjacency.ADD_REMOVE, path=path)
    rows = Ledger(PureDP(2.0), adjacency=Adjacency.ADD_REMOVE)
    with pytest.raises(ValueError, match="must be for add/remove, got add/remove of a person"):
        gd.release(frame(3), SCHEMA, **persons, ledger=rows)
    assert rows.spends() == []


def test_a_ledger_is_for_persons_of_one_column():
    """Persons of another column share rows: adding one would also change which rows are kept."""
    ledger = Ledger(PureDP(2.0), adjacency=Adjacency.ADD_REMOVE, person="home")
    persons = {"epsilon": 1.0, **PERSONS, "max_rows_per_person": 3}
    with pytest.raises(ValueError, match=r"person by the column home, got .* by the column id"):
        gd.release(frame(3), SCHEMA, "marginals:1", **persons, ledger=ledger)
    unnamed = Guarantee(PureDP(0.1), Adjacency.ADD_REMOVE, Exact()).for_persons(3)
    with pytest.raises(ValueError, match="name the column of the person"):
        ledger.spend(unnamed, "no column")
    assert ledger.spends() == []


def test_nothing_is_paid_for_wrong_arguments():
    ledger = Ledger(PureDP(2.0), adjacency=Adjacency.ADD_REMOVE, person="id")
    of_a = Ledger(PureDP(2.0), adjacency=Adjacency.ADD_REMOVE, person="a")
    asked = {"workload": "marginals:1", "epsilon": 1.0, "ledger": ledger}
    nameless = frame(3).assign(id=[None, *"qqrrr"])
    for records, wrong, message in (
        (frame(3), {"max_rows_per_person": 0}, "max_rows_per_person must be"),
        (frame(3), {"person": "a", "ledger": of_a}, "person must be no column"),
        (nameless, {}, "row 0, column 'id'"),
    ):
        with pytest.raises(ValueError, match=message):
            gd.release(records, SCHEMA, **asked | PERSONS | {"max_rows_per_person": 1} | wrong)
    with pytest.raises(ValueError, match="needs add/remove"):
        gd.release(frame(3), SCHEMA, "marginals:1", epsilon=1.0, person="id", max_rows_per_person=1)
    assert ledger.spends() == []


# The budget for an accuracy.

WORKLOAD = gd.workloads.MarginalTables({"region": 3, "smoker": 2}, k=1)
ERROR, WIDTH = gd.advice.RootMeanSquare(0.01), gd.advice.HalfWidth(0.03)


@pytest.mark.parametrize(("target", "build", "power"), [(WIDTH, PureDP, 1), (ERROR, ZCDP, 2)])
def test_budgets_of_persons(target, build, power):
    """The budget is k or k^2 times that of a row, and the impossible one stays below it."""
    k, asked = 7, {"n": 1000, "targets": [target], "privacy": build}
    row, single, found = (
        budget_for(WORKLOAD, **asked, adjacency=Adjacency.ADD_REMOVE, max_rows_per_person=rows)
        for rows in (None, 1, k)
    )
    assert (single.budget, single.impossible.budget) == (row.budget, row.impossible.budget)
    assert found.budget == pytest.approx(k**power * row.budget, rel=0.02)
    proved = found.mechanism.guarantee.for_persons(k).privacy
    assert proved.parameters() == pytest.approx(found.privacy.parameters(), rel=1e-12)
    assert row.impossible.budget < found.impossible.budget < found.budget


def test_a_budget_of_persons_needs_add_remove():
    with pytest.raises(ValueError, match="max_rows_per_person needs add/remove"):
        budget_for(WORKLOAD, n=1000, targets=[ERROR], max_rows_per_person=2)
