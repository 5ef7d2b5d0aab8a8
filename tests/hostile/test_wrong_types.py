"""Arguments of a wrong type raise a ``ValueError`` that names the argument or its entries."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp import audit, bounds, mechanisms
from geomdp.audit.scores import fisher_score, null_space_score, outcome_score
from geomdp.data import Schema, count_records, encode, source_of
from geomdp.geometry import sampling
from geomdp.geometry.outer_slabs import refine_slabs
from geomdp.geometry.sampling.samplers import ChainSampler
from geomdp.mechanisms.additive_noise.strategy_mechanism import best_design, strategies_for
from geomdp.mechanisms.base import FixedDataset, predict_on_prior
from geomdp.mechanisms.strategies.design import LaplaceCells, SimplexCells
from geomdp.noise.knorm import MappedNoise
from geomdp.noise.tails import simultaneous_half_widths
from geomdp.plotting.pictures import slice_outline
from geomdp.tabulation.tasks import chosen_columns, parse_workload

TAKE_A_BODY: list[Callable[[object], object]] = [
    gd.geometry.Projector, refine_slabs, gd.geometry.second_moment, gd.geometry.volume_radius,
    gd.gaussian_width, gd.volume, gd.plotting.draw,
    lambda body: gd.project(body, [0.0, 0.0]),
    lambda body: gd.sample_uniform(body, 3),
    ChainSampler, sampling.ExactSampler,
    lambda body: gd.noise.ConeNoise(body, 1.0, np.zeros(2)),
    lambda body: gd.noise.KNormNoise(body, 1.0, sampling.ExactSampler(gd.bodies.Ball(2))),
    lambda body: gd.noise.PairedNoise(body, 1.0, np.eye(2)),
    lambda body: gd.plotting.draw_projection(body, [[1.0, 0.0]]),
    lambda body: gd.plotting.draw_shadow(body, np.eye(2)),
    lambda body: gd.plotting.draw_slice(body, [0.0, 0.0], np.eye(2)),
    lambda body: gd.plotting.shadow_outline(body, np.eye(2)),
    lambda body: slice_outline(body, np.zeros(2), np.eye(2)),
]  # fmt: skip


def test_other_arguments_are_named():
    for call, words in (
        (lambda: MappedNoise([1.0]), "parts must be a sequence of Part, got float"),
        (lambda: gd.noise.RecursiveNoise([1.0], 1.0), "levels must be a sequence of Level, got"),
        (lambda: parse_workload(5, {}), "workload must be text such as"),
        (lambda: Schema(("smoker",)), "columns must be declarations of columns, got 'smoker'"),
        (lambda: bounds.certify(["text"], **PROBLEM), "families must be a PackingFamily"),
        (lambda: bounds.certify(3, **PROBLEM), "families must be a list"),
        (lambda: bounds.packing_search(WORKLOAD, **PROBLEM, metric="l2"), "metric must be MeanL2"),
        (
            lambda: bounds.orthogonal_lines_error(WORKLOAD, 10, epsilon=1.0, metric="l2"),
            "metric must be MeanL2, RMS",
        ),
        (
            lambda: bounds.Bound(1.0, bounds.Side.LOWER, "a statement", "text"),
            "assumptions must be a tuple of sentences",
        ),
    ):
        with pytest.raises(ValueError, match=words):
            call()


WORKLOAD = gd.workloads.Histogram(3)
PURE = gd.PureDP(1.0)
LAPLACE = mechanisms.Laplace(WORKLOAD, n=3, privacy=PURE)
RECORDS = np.arange(3)
RULE = mechanisms.MultiplicativeWeights(3)
QUERIES = mechanisms.EnumeratedQueries([gd.workloads.DenseQuery([1.0, 0.0, 0.0])])
SCHEMA = Schema.from_dict({"smoker": bool})
SOURCE = source_of(pd.DataFrame({"smoker": [True]}))
SCALES = gd.AboveThreshold(0.0, privacy=PURE).scales
LAW = audit.SparseVectorLaw([0.0], SCALES, 1)
PROBLEM = {"epsilon": 1.0, "alpha": 0.1}

#: For each argument, calls that pass `wrong` as this argument.
CALLS = {
    "body": TAKE_A_BODY,
    "ledger": [
        lambda wrong: LAPLACE.release(RECORDS, ledger=wrong),
        lambda wrong: gd.AboveThreshold(0.0, privacy=PURE, ledger=wrong),
        lambda wrong: gd.OnlineConstruction(RULE, n=10**6, queries=1, privacy=PURE, ledger=wrong),
    ],
    "rule": [lambda wrong: gd.OnlineConstruction(wrong, n=10**6, queries=1, privacy=PURE),
             lambda wrong: gd.IterativeConstruction(wrong, QUERIES, n=10**6, privacy=PURE)],
    "distinguisher": [lambda wrong: gd.IterativeConstruction(RULE, wrong, n=10**6, privacy=PURE)],
    "design": [
        lambda wrong: gd.IterativeConstruction(RULE, QUERIES, n=10**6, privacy=PURE, design=wrong)
    ],
    "noise": [*(gd.noise.half_widths, simultaneous_half_widths, gd.plotting.draw_noise),
              lambda wrong: gd.SmoothSummary(1, n=100, smoothness=1, privacy=PURE, noise=wrong),
              lambda wrong: audit.audit_noise(wrong, WORKLOAD, LAPLACE.guarantee, trials=16)],
    "halfspace": [lambda wrong: gd.plotting.draw_hyperplane(wrong, None)],
    "schema": [lambda wrong: chosen_columns(wrong, None),
               lambda wrong: gd.SmoothSummary(1, n=100, smoothness=1, privacy=PURE, schema=wrong),
               lambda wrong: encode([], wrong, SCHEMA.universe()),
               lambda wrong: count_records(SOURCE, wrong, SCHEMA.workload("histogram"))],
    "source": [lambda wrong: count_records(wrong, SCHEMA, SCHEMA.workload("histogram"))],
    "workload": [
        lambda wrong: bounds.packing_search(wrong, **PROBLEM),
        lambda wrong: bounds.orthogonal_lines_bound(wrong, **PROBLEM),
        lambda wrong: bounds.query_lines_bound(wrong, **PROBLEM),
        lambda wrong: bounds.instance_optimality(wrong, **PROBLEM),
        lambda wrong: bounds.orthogonal_lines_error(wrong, 10, epsilon=1.0),
        lambda wrong: bounds.additive_noise_error(wrong, 10, epsilon=1.0),
        lambda wrong: bounds.Packing(wrong, np.arange(3), np.eye(3, dtype=np.int64)),
        lambda wrong: strategies_for(wrong, LaplaceCells()),
        lambda wrong: strategies_for(wrong, SimplexCells()),
        lambda wrong: count_records(SOURCE, SCHEMA, wrong),
        lambda wrong: audit.audit_noise(LAPLACE.noise, wrong, LAPLACE.guarantee, trials=16),
    ],
    "guarantee": [lambda wrong: audit.audit_noise(LAPLACE.noise, WORKLOAD, wrong, trials=16)],
    "mechanism": [lambda wrong: audit.audit_mechanism(wrong, trials=64),
                  lambda wrong: predict_on_prior(wrong, FixedDataset(RECORDS), 2)],
    "prior": [lambda wrong: predict_on_prior(LAPLACE, wrong, 2)],
    "pairs": [lambda wrong: audit.audit_pairs([wrong], PURE, trials=16)],
    "effort": [lambda wrong: bounds.packing_search(WORKLOAD, **PROBLEM, effort=wrong)],
    "elements": [lambda wrong: bounds.single_elements(WORKLOAD, wrong, np.arange(3), "by hand")],
    "metric": [lambda wrong: bounds.greedy_separated(np.eye(3), wrong, 0.5)],
    "first": [lambda wrong: audit.law_learner(wrong, LAW)],
    "second": [lambda wrong: audit.law_learner(LAW, wrong)],
    "scales": [lambda wrong: audit.SparseVectorLaw([0.0], wrong, 1)],
    "strategies": [lambda wrong: best_design([wrong], WORKLOAD, gd.Adjacency.REPLACE_ONE)],
    "advice": [gd.advice.plan_of],
    "learners": [lambda wrong: audit.audit_mechanism(LAPLACE, trials=64, learners=[wrong])],
}  # fmt: skip


@pytest.mark.parametrize("wrong", ["text", 3.5, object()], ids=["text", "number", "object"])
@pytest.mark.parametrize(
    ("name", "call"),
    [(name, call) for name, calls in CALLS.items() for call in calls],
    ids=[f"{name}-{i}" for name, calls in CALLS.items() for i in range(len(calls))],
)
def test_a_wrong_type_is_a_value_error_that_names_the_argument(name, call, wrong):
    with pytest.raises(ValueError, match=f"^{name} must be an? \\w+, got {type(wrong).__name__}"):
        call(wrong)


@pytest.mark.parametrize("wrong", ["1-DP", 1.0, None])
def test_a_claim_of_a_wrong_type_is_a_value_error(wrong):
    with pytest.raises(ValueError, match="guarantee must be PureDP, ApproxDP or ZCDP"):
        audit.audit(LAPLACE.noise.sample, LAPLACE.noise.sample, wrong, trials=4)


@pytest.mark.parametrize("call", [
    lambda wrong: gd.workloads.MarginalTables([wrong, 2], 1),
    lambda wrong: gd.bodies.TableMoments([2, wrong]),
    lambda wrong: gd.workloads.Histogram(wrong),
    lambda wrong: gd.bodies.TableMoments([2, 2], violation=wrong),
    lambda wrong: gd.PureDP(wrong),
])  # fmt: skip
@pytest.mark.parametrize(
    "wrong", [np.timedelta64(2), np.timedelta64(2, "s"), np.timedelta64("NaT")]
)
def test_durations_are_no_numbers(call, wrong):
    """In NumPy, the type of durations is a subclass of the signed integers."""
    with pytest.raises(ValueError, match="must be"):
        call(wrong)


def test_a_whole_number_far_below_zero_is_not_infinite():
    with pytest.raises(ValueError, match="violation"):
        gd.bodies.TableMoments([2, 2], violation=-(10**400))


@pytest.mark.parametrize("queries", ["1", [1.0], [None]])
def test_what_is_no_query_is_refused(queries):
    with pytest.raises(ValueError, match="every query must be a LinearQuery"):
        gd.mechanisms.EnumeratedQueries(queries)


@pytest.mark.parametrize("score", [fisher_score, null_space_score, outcome_score])
@pytest.mark.parametrize("wrong", ["text", 3.5, None], ids=["text", "number", "none"])
def test_outputs_of_a_wrong_type_are_a_value_error(score, wrong):
    with pytest.raises(ValueError, match="outputs must be an array"):
        score(np.zeros(4), wrong)
