"""A plan builds the advised mechanism, and refuses another workload, privacy or adjacency."""

from __future__ import annotations

import json

import pytest

from geomdp.advice import advise, load_plan, save_plan
from geomdp.advice.advisor import plan_of
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, PureDP
from geomdp.workloads import MarginalTables, Prefixes, RandomSigns, SecondMoment

WORKLOADS = [
    MarginalTables([2, 3, 2], 2),
    Prefixes(16),
    RandomSigns(6, 20, 0),
    SecondMoment(3),
]


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("privacy", [PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-9)], ids=str)
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
    more = load_plan(path)(workload, n=800, privacy=privacy, adjacency=adjacency)
    assert type(more) is type(advice.best)
    assert more.n == 800
    assert more.guarantee == advice.best.guarantee
    assert more.predicted_rmse.value < built.predicted_rmse.value


@pytest.fixture(scope="module")
def plan():
    return plan_of(advise(Prefixes(16), n=200, privacy=PureDP(1.0)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"workload": Prefixes(17)}, "workload must be the one that was planned for"),
        ({"privacy": PureDP(2.0)}, r"privacy must be the one .* 1-DP, got 2-DP"),
        ({"adjacency": Adjacency.ADD_REMOVE}, "adjacency must be the one"),
    ],
)
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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n": 0}, "n must be"),
        ({"n": "5"}, "must hold a plan with"),
        ({"extra": 1}, "must hold a plan with"),
        ({"mechanism": None}, "must hold a plan with"),
        ({"weights": 1.0}, "must hold a plan with"),
        ({"parameters": {"epsilon": "1"}}, "must hold a plan with"),
        ({"mechanism": "projected-jl"}, "plan must name a mechanism, got 'projected-jl'"),
    ],
)
def test_edited_plans_are_refused(plan, change, message, tmp_path):
    path = tmp_path / "plan.json"
    save_plan(plan, path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        load_plan(path)(Prefixes(16), n=200, privacy=PureDP(1.0))
