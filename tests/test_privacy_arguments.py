"""Every public function refuses a bad neighbour relation, guarantee or privacy parameter.

A wrong argument that is taken for a valid one can halve the noise: `SparseProject` once took the
text "replace_one" for add/remove. `CALLS` has a row for each public callable with such a parameter
(constructors have theirs in `tests.hostile.constructors`). A test fails if a callable has no row.
"""

import inspect
import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp import advice, audit, bodies, bounds, mechanisms, plotting, privacy, tabulation
from geomdp.advice.advisor import workload_hash
from geomdp.bodies.sensitivity import check_contains_neighbours, exact_noise_bodies
from geomdp.bounds import upper
from geomdp.bounds.upper.theorems import feasible_rows, second_moment_error
from geomdp.bounds.widths import InstanceOptimality
from geomdp.mechanisms import printed, strategies
from geomdp.mechanisms.additive_noise.strategy_mechanism import best_design
from geomdp.mechanisms.smooth_summary import UniformGaussian
from geomdp.mechanisms.strategies.design import Design, LaplaceCells, SimplexCells
from geomdp.mechanisms.strategies.histograms import PIdentity, SoftBins
from geomdp.mechanisms.strategies.tables import WeightedMarginals, WeightedSigns
from geomdp.noise.few_queries import LatticeBoxNoise, StaircaseNoise
from geomdp.noise.gaussian import proved_gaussian_scale, proved_shortcut_scale
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, PureDP
from geomdp.privacy.definitions import (
    convert_adjacency,
    pure_implying,
    zcdp_gaussian_scale,
)
from geomdp.privacy.ledger import Spend
from tests.hostile.constructors import CONSTRUCTORS
from tests.public_names import public_objects

PURE, RHO, DELTA = PureDP(1.0), ZCDP(0.5), ApproxDP(1.0, 1e-6)
REPLACE = Adjacency.REPLACE_ONE

#: For each parameter, arguments that must be refused. The texts for "adjacency" are values and a
#: name of the enum `Adjacency`, and a text that a caller might type.
NUMBERS: list[Any] = [0, -1.0, math.nan, math.inf, "1", None, True, 10**400]
BAD: dict[str, list[Any]] = {
    "adjacency": ["replace-one", "REPLACE_ONE", "replace_one", "add/remove", None, 1, Adjacency],
    "privacy": [1.0, "1-DP", PureDP],
    "budget": [1.0, "1-DP", None],
    "epsilon": NUMBERS,
    "delta": [*NUMBERS, 0.5],
    "rho": NUMBERS,
}

TABLES = gd.workloads.MarginalTables([2, 3, 2], 2)
SMALL = gd.workloads.Prefixes(6)
MARGINALS = gd.workloads.Marginals(3, 2)
SMOOTH = gd.workloads.SmoothQueries(2, degree=3)
FRAME = pd.DataFrame({"a": [True, False, True], "x": [0.1, 0.5, 0.9]})
SCHEMA = gd.data.Schema.from_dict({"a": bool, "x": {"bounds": [0, 1]}})
PLANNED = advice.Plan("laplace", workload_hash(SMALL), "1-DP", "replace-one", 10, {"epsilon": 1.0})
N = 10**4

OFFLINE: dict[str, Any] = {"n": 10, "privacy": PURE, "adjacency": REPLACE}
PROBLEM: dict[str, Any] = {"epsilon": 1.0, "alpha": 0.01, "adjacency": REPLACE}
RATES: dict[str, Any] = {"epsilon": 1.0, "alpha": 0.1, "constant": 1.0}
EACH: dict[str, Any] = {"queries": 5, "beta": 0.1}
NOISE: dict[str, Any] = {"workload": SMOOTH, "privacy": PURE, "adjacency": REPLACE}
CELLS: dict[str, Any] = {"cells": 3, "adjacency": REPLACE}
DESIGN: dict[str, Any] = {"workload": SMALL, "adjacency": REPLACE}
LOWER_BOUNDS = (
    bounds.packing_search, bounds.orthogonal_lines_bound, bounds.guessing_bound,
    bounds.query_lines_bound, advice.sample_complexity_bracket,
)  # fmt: skip
OF_COUNTS = (strategies.Haar, strategies.Tree, PIdentity, SoftBins)
ERRORS = (bounds.orthogonal_lines_error, bounds.additive_noise_error)


def halves(alpha: float) -> float:
    """A bound on the number of updates, as a function of the error `alpha`."""
    return 1 / alpha


#: Valid calls, with the parameters about privacy given by keyword.
CALLS: list[partial[Any]] = [
    *(partial(row.build, **row.good) for row in CONSTRUCTORS.values()),
    partial(Spend, "label", privacy=PURE),
    partial(privacy.gaussian_scale, 1.0, privacy=RHO),
    partial(zcdp_gaussian_scale, 1.0, privacy=RHO),
    partial(convert_adjacency, privacy=PURE, source=REPLACE, target=REPLACE),
    partial(privacy.pure_to_zcdp, privacy=PURE),
    partial(pure_implying, privacy=RHO),
    partial(privacy.zcdp_to_approx_optimal_order, privacy=RHO, delta=1e-6),
    partial(proved_gaussian_scale, 1, privacy=RHO),
    partial(proved_shortcut_scale, 1, privacy=DELTA, steps=2),
    partial(gd.budget_for, SMALL, n=10, targets=[advice.HalfWidth(0.1)], adjacency=REPLACE),
    partial(LatticeBoxNoise, [1.0], [1], epsilon=1.0),
    partial(StaircaseNoise, 1.0, epsilon=1.0),
    partial(mechanisms.GaussianRows().sigma, privacy=RHO, sensitivity=1.0, rows=64),
    partial(mechanisms.LaplaceRows().sigma, privacy=DELTA, sensitivity=1.0, rows=64),
    partial(mechanisms.UniformLaplace().calibrate, **NOISE),
    partial(mechanisms.UniformLaplace().sensitivity, SMOOTH, adjacency=REPLACE),
    partial(mechanisms.WeightedLaplace(2.0).calibrate, **NOISE),
    partial(mechanisms.WeightedLaplace(2.0).sensitivity, SMOOTH, adjacency=REPLACE),
    partial(UniformGaussian().calibrate, **NOISE | {"privacy": RHO}),
    *(partial(kind().variance, **CELLS) for kind in (LaplaceCells, SimplexCells)),
    *(partial(kind().noise, **CELLS, epsilon=1.0) for kind in (LaplaceCells, SimplexCells)),
    *(partial(kind().design, **DESIGN) for kind in OF_COUNTS),
    partial(WeightedMarginals().design, TABLES, adjacency=REPLACE),
    partial(WeightedSigns().design, MARGINALS, adjacency=REPLACE),
    partial(best_design, [strategies.Haar()], **DESIGN),
    partial(Design, "none", 1.0, np.zeros((1, 1)), adjacency=REPLACE, measure=list),
    partial(strategies.Haar().design(SMALL, REPLACE).noise, epsilon=1.0),
    partial(bodies.neighbour_body, SMALL, adjacency=REPLACE),
    partial(exact_noise_bodies, SMALL, adjacency=REPLACE),
    partial(check_contains_neighbours, bodies.Ball(6, 9.0), SMALL, adjacency=REPLACE),
    partial(advice.advise, SMALL, **OFFLINE),
    partial(PLANNED, SMALL, **OFFLINE),
    partial(advice.error_table, SMALL, ns=[10, 20], privacy=PURE, adjacency=REPLACE),
    partial(plotting.error_curve, SMALL, ns=[10, 20], privacy=PURE, adjacency=REPLACE),
    *(partial(prove, SMALL, **PROBLEM) for prove in LOWER_BOUNDS),
    *(partial(error, SMALL, 10, epsilon=1.0, adjacency=REPLACE) for error in ERRORS),
    *(partial(error, SMALL, 10, privacy=RHO, adjacency=REPLACE) for error in ERRORS),
    partial(tabulation.release, FRAME, SCHEMA, "marginals:1", privacy=PURE, adjacency=REPLACE),
    partial(tabulation.release, FRAME, SCHEMA, "marginals:1", epsilon=1.0),
    partial(tabulation.covariance, FRAME, SCHEMA, privacy=PURE, adjacency=REPLACE),
    partial(bounds.certify, [], **PROBLEM),
    partial(bounds.marginal_bound, 6, 2, **PROBLEM),
    partial(bounds.random_sign_bound, 100, 20.0, **PROBLEM),
    partial(bounds.instance_optimality, SMALL, epsilon=1.0, alpha=0.1),
    partial(bounds.private_line, 2, epsilon=1.0, moment=1),
    partial(bounds.orthogonal_lines_bound, SMALL, privacy=RHO, alpha=0.01, adjacency=REPLACE),
    partial(bounds.Problem, None, 0.1, privacy=RHO, adjacency=REPLACE),
    partial(advice.sample_complexity_bracket, SMALL, alpha=0.1, privacy=RHO, adjacency=REPLACE),
    partial(upper.above_threshold, epsilon=1.0, **EACH),
    partial(upper.sparse, privacy=PURE, cutoff=2, **EACH),
    partial(upper.numeric_sparse, privacy=PURE, cutoff=2, **EACH),
    partial(printed.printed_shortcut_step, epsilon=1.0, slack_delta=0.1, steps=5),
    partial(printed.printed_smooth_scale, 1, 5, n=10, epsilon=1.0),
    partial(upper.numeric_sparse_printed, privacy=DELTA, cutoff=2, **EACH),
    partial(upper.online_accuracy, halves, n=N, privacy=DELTA, **EACH),
    partial(upper.iterative_accuracy, halves, n=N, privacy=PURE, **EACH),
    partial(upper.paper_accuracy, privacy=DELTA, n=N, sparsity=2, **EACH),
    partial(feasible_rows, n=N, epsilon=1.0),
    partial(upper.smooth_accuracy, 2, 2, n=N, epsilon=1.0, constant=1.0),
    partial(upper.bounded_queries, 5, 9, **RATES),
    partial(upper.from_width, 1.0, 5, **RATES),
    partial(upper.monotone_marginals, 5, 2, **RATES),
    partial(upper.small_db, 5, 9, **RATES),
    partial(upper.older_projection, 5, 9, **RATES),
    partial(upper.ball_bounded, 5, epsilon=1.0, alpha=0.1),
    partial(upper.second_moments, 5, epsilon=1.0, alpha=0.1),
    partial(upper.two_way_marginals, 5, epsilon=1.0, alpha=0.1),
    partial(upper.gaussian_projection, 9, rho=1.0, alpha=0.1),
    partial(second_moment_error, 5, n=N, epsilon=1.0),
    partial(upper.covariance_error, 5, n=N, epsilon=1.0),
    partial(upper.two_way_marginals_error, 5, n=N, epsilon=1.0),
    partial(upper.jl_mechanism_error, 1.0, 5, 2, n=N, epsilon=1.0, distortion=1.0, noise=1.0),
    partial(upper.jl_mechanism_rows, 5, n=N, epsilon=1.0),
]
#: Classes of results and plans. No noise is calibrated to their fields, so they need no row.
RESULTS = {
    advice.Impossible, advice.LeastBudget, advice.Plan, audit.AuditResult, InstanceOptimality,
}  # fmt: skip
#: Functions whose `privacy` makes a definition from a number: see the test of it.
MAKERS = {gd.budget_for: {"privacy"}}


def label(call: partial[Any]) -> str:
    return getattr(call.func, "__qualname__", type(call.func).__name__)


CASES = [
    pytest.param(call, name, id=f"{label(call)}-{name}")
    for call in CALLS
    for name in BAD
    if name in call.keywords
]


@pytest.mark.parametrize(("call", "name"), CASES)
def test_bad_arguments_about_privacy_are_refused(call, name):
    for bad in BAD[name]:
        with pytest.raises(ValueError, match=name):
            call(**{name: bad})


@pytest.mark.parametrize("bad", [1.0, "1-DP", gd.PureDP(1.0), gd.ApproxDP, None])
def test_a_least_budget_needs_what_makes_a_definition(bad):
    with pytest.raises(ValueError, match="privacy must make a definition of privacy from a number"):
        gd.budget_for(SMALL, n=10, targets=[advice.HalfWidth(0.1)], privacy=bad)


@pytest.mark.parametrize("bad", BAD["adjacency"])
@pytest.mark.parametrize("name", ["source", "target"])
def test_conversions_need_two_neighbour_relations(name, bad):
    good = {"source": REPLACE, "target": REPLACE}
    with pytest.raises(ValueError, match="adjacency"):
        convert_adjacency(PURE, **good | {name: bad})
    with pytest.raises(ValueError, match="adjacency"):
        convert_adjacency(PURE, bad, bad)


SEEDED = [call for call in CALLS if "rng" in inspect.signature(call.func).parameters]


@pytest.mark.parametrize("call", [pytest.param(call, id=label(call)) for call in SEEDED])
@pytest.mark.parametrize("bad", ["seed", -1, 1.5])
def test_bad_seeds_are_refused_before_a_ledger_pays(call, bad):
    with pytest.raises((TypeError, ValueError)):
        call(rng=bad)
    if "ledger" in inspect.signature(call.func).parameters:
        ledger = gd.Ledger(call.keywords.get("privacy", PURE))  # it could pay for the whole call
        with pytest.raises((TypeError, ValueError)):
            call(rng=bad, ledger=ledger)
        assert not ledger.spends()


def parameters(function: Any) -> set[str]:
    try:
        return set(inspect.signature(function).parameters) & set(BAD)
    except ValueError:  # no signature
        return set()


def test_every_public_callable_has_a_row():
    covered: dict[Any, set[str]] = {}
    for call in CALLS:
        covered.setdefault(call.func, set()).update(set(call.keywords) & set(BAD))
    missing = {
        f"{value.__name__}({name})"
        for value in public_objects().values()
        if value not in RESULTS and not inspect.isabstract(value)
        for name in parameters(value) - covered.get(value, set()) - MAKERS.get(value, set())
    }
    assert not missing
