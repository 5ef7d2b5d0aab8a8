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


def test_a_plan_is_for_one_question():
    workload = Prefixes(16)
    plan = plan_of(advise(workload, n=200, privacy=PureDP(1.0)))
    with pytest.raises(ValueError, match="workload must be the one that was planned for"):
        plan(Prefixes(17), n=200, privacy=PureDP(1.0))
    with pytest.raises(ValueError, match=r"privacy must be the one .* 1-DP, got 2-DP"):
        plan(workload, n=200, privacy=PureDP(2.0))
    with pytest.raises(ValueError, match="adjacency must be the one"):
        plan(workload, n=200, privacy=PureDP(1.0), adjacency=Adjacency.ADD_REMOVE)


def test_a_plan_is_not_overwritten(tmp_path):
    plan = plan_of(advise(Prefixes(4), n=20, privacy=PureDP(1.0)))
    path = tmp_path / "plan.json"
    save_plan(plan, path)
    with pytest.raises(FileExistsError):
        save_plan(plan, path)
    assert load_plan(path) == plan


@pytest.mark.parametrize("change", [{"n": 0}, {"n": "5"}, {"extra": 1}, {"mechanism": None}])
def test_other_files_are_refused(change, tmp_path):
    path = tmp_path / "plan.json"
    save_plan(plan_of(advise(Prefixes(4), n=20, privacy=PureDP(1.0))), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match="must"):
        load_plan(path)
    path.write_text("{")
    with pytest.raises(ValueError, match="must hold a plan as JSON"):
        load_plan(path)


def test_an_unknown_mechanism_is_refused(tmp_path):
    path, workload = tmp_path / "plan.json", Prefixes(4)
    save_plan(plan_of(advise(workload, n=20, privacy=PureDP(1.0))), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"mechanism": "projected-jl"}))
    with pytest.raises(ValueError, match="plan must name a mechanism, got 'projected-jl'"):
        load_plan(path)(workload, n=20, privacy=PureDP(1.0))
