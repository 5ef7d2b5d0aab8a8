"""A plan builds the advised mechanism, and refuses another workload, privacy or adjacency."""

import json
import re
from dataclasses import replace

import pandas as pd
import pytest

import geomdp as gd
from geomdp.advice import advise, load_plan, save_plan
from geomdp.advice.advisor import plan_of
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, PureDP
from geomdp.workloads import MarginalTables, Prefixes, RandomSigns, SecondMoment

WORKLOADS = [MarginalTables([2, 3, 2], 2), Prefixes(16), RandomSigns(6, 20, 0), SecondMoment(3)]


@pytest.mark.parametrize(("privacy", "adjacency"), [
    (PureDP(1.0), Adjacency.REPLACE_ONE),
    (ZCDP(0.5), Adjacency.ADD_REMOVE),
    (ApproxDP(1.0, 1e-9), Adjacency.REPLACE_ONE),
])  # fmt: skip
@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
def test_a_saved_plan_builds_what_was_advised(workload, privacy, adjacency, tmp_path):
    setting = {"n": 200, "privacy": privacy, "adjacency": adjacency}
    advice = advise(workload, **setting, exact_only=True)
    path = tmp_path / "plan.json"
    save_plan(plan_of(advice), path)
    built = load_plan(path)(workload, **setting)
    assert type(built) is type(advice.best)
    assert built.guarantee == advice.best.guarantee
    assert built.predicted_rmse == advice.best.predicted_rmse
    # The plan also builds the mechanism for more records. The predicted error is then smaller.
    with pytest.warns(UserWarning, match="made for 200 records, and there are 800: .* 0.25 times"):
        more = load_plan(path)(workload, n=800, privacy=privacy, adjacency=adjacency)
    assert type(more) is type(advice.best)
    assert more.n == 800
    assert more.guarantee == advice.best.guarantee
    assert more.predicted_rmse.value < built.predicted_rmse.value


@pytest.fixture(scope="module")
def plan():
    return plan_of(advise(Prefixes(16), n=200, privacy=PureDP(1.0)))


@pytest.mark.parametrize(("change", "message"), [
    ({"workload": Prefixes(17)}, "workload must be the one that was planned for"),
    ({"privacy": PureDP(2.0)}, r"privacy must be the one .* 1-DP, got 2-DP"),
    ({"adjacency": Adjacency.ADD_REMOVE}, "adjacency must be the one"),
])  # fmt: skip
def test_a_plan_is_for_one_question(plan, change, message):
    asked = {"workload": Prefixes(16), "n": 200, "privacy": PureDP(1.0)} | change
    with pytest.raises(ValueError, match=message):
        plan(asked.pop("workload"), **asked)


def test_a_plan_is_not_overwritten(plan, tmp_path):
    path = tmp_path / "plan.json"
    save_plan(plan, path)
    with pytest.raises(FileExistsError):
        save_plan(plan, path)
    assert load_plan(path) == plan
    path.write_text("{")
    with pytest.raises(ValueError, match="must hold a plan as JSON"):
        load_plan(path)


@pytest.mark.parametrize(("change", "message"), [
    ({"n": 0}, "n must be"),
    ({"n": "5"}, "must hold a plan with"),
    ({"extra": 1}, "must hold a plan with"),
    ({"mechanism": None}, "must hold a plan with"),
    ({"weights": 1.0}, "must hold a plan with"),
    ({"max_rows_per_person": 2.0}, "must hold a plan with"),
    ({"parameters": {"epsilon": "1"}}, "must hold a plan with"),
    ({"mechanism": "projected-jl"}, "plan must name a mechanism, got 'projected-jl'"),
])  # fmt: skip
def test_edited_plans_are_refused(plan, change, message, tmp_path):
    path = tmp_path / "plan.json"
    save_plan(plan, path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        load_plan(path)(Prefixes(16), n=200, privacy=PureDP(1.0))


@pytest.mark.parametrize(("n", "factor"), [(89, "1.12"), (90, ""), (110, ""), (111, "0.901")])
def test_a_plan_for_another_number_of_records_warns_with_the_factor(n, factor, recwarn):
    """The noise of a mean is that of a sum, divided by n."""
    plan = plan_of(advise(Prefixes(16), n=100, privacy=PureDP(1.0)))
    built = plan(Prefixes(16), n=n, privacy=PureDP(1.0))
    assert built.n == n
    said = [str(each.message) for each in recwarn]
    assert len(said) == bool(factor)
    assert all(f"for 100 records, and there are {n}: " in each for each in said)
    assert all(f"is {factor} times that planned" in each for each in said)


SCHEMA = gd.data.Schema.from_dict({"region": ["north", "south"], "smoker": bool})
FRAME = pd.DataFrame({"region": ["north", "south"] * 50, "smoker": [True, False] * 50})


@pytest.mark.parametrize(("planned", "given"), [(None, None), (None, 1), (1, None), (4, 4), (4, 5)])
def test_a_plan_for_persons_releases_with_as_many_rows_only(planned, given, tmp_path):
    frame = FRAME.assign(person=[f"p{i}" for i in range(100)])
    workload, add_remove = SCHEMA.workload("marginals", k=1), {"adjacency": Adjacency.ADD_REMOVE}
    target = [gd.advice.RootMeanSquare(0.1)]
    persons = {"max_rows_per_person": planned}
    found = gd.budget_for(workload, n=100, targets=target, **add_remove, **persons)
    row = gd.privacy.member_privacy(found.privacy, planned or 1)
    save_plan(found.plan, tmp_path / "p.json")
    named = "person" if given else None
    ledger = gd.privacy.Ledger(PureDP(100.0), **add_remove, person=named)
    asked = {"mechanism": load_plan(tmp_path / "p.json"), "n": 100, **add_remove, "ledger": ledger}
    # The privacy of a row is the planned one, so that only the number of rows can be wrong.
    asked["privacy"] = gd.privacy.group_privacy(row, given or 1)
    asked |= {"max_rows_per_person": given, "person": named}
    if given == planned:
        released = gd.release(frame, SCHEMA, "marginals:1", **asked)
        assert released.guarantee.max_rows_per_person == planned
        assert len(ledger.spends()) == 1
    else:
        said = f"max_rows_per_person must be that of the plan, {planned}, got {given}"
        with pytest.raises(ValueError, match=said):
            gd.release("no such file.csv", SCHEMA, "marginals:1", **asked)
        assert ledger.spends() == []
    advice = advise(workload, n=100, privacy=row, **add_remove)
    same = plan_of(advice, max_rows_per_person=planned)
    assert replace(same, mechanism=found.plan.mechanism) == found.plan


def test_persons_need_add_remove():
    with pytest.raises(ValueError, match="add/remove"):
        plan_of(advise(Prefixes(16), n=200, privacy=PureDP(1.0)), max_rows_per_person=2)


def test_a_budget_without_what_is_impossible_has_no_plan_for_it():
    """`budget_for` sees a workload, not the schema, so its plan can be for too many cells."""
    schema = SCHEMA.declare(impossible=[{"region": ["south"], "smoker": ["true"]}])
    target = [gd.advice.RootMeanSquare(0.1)]
    found = gd.budget_for(schema.workload("marginals", k=2), n=100, targets=target)
    with pytest.raises(ValueError, match="for the schema without what it declares") as refused:
        gd.release(FRAME, schema, "marginals:2", privacy=found.privacy, mechanism=found.plan)
    assert not re.search("[0-9a-f]{64}", str(refused.value))
