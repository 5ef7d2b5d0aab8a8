"""Every object prints as one short line, which claims a guarantee only if it is proved."""

from __future__ import annotations

import html
import json
from collections.abc import Callable

import numpy as np
import pytest

import geomdp as gd
from geomdp.audit import audit
from geomdp.mechanisms import (
    AllParities,
    Covariance,
    EnumeratedQueries,
    KNorm,
    Laplace,
    Median,
    MomentProjection,
    MultiplicativeWeights,
    Perceptron,
    Prediction,
    PredictionKind,
    Projected,
    Release,
    SparseMultiplicativeWeights,
)
from geomdp.mechanisms import base as base_module
from geomdp.mechanisms.base import short_claim
from geomdp.privacy import Adjacency, Exact, Guarantee, PureDP
from geomdp.workloads import Explicit, Histogram, MarginalTables, SecondMoment
from geomdp.workloads.base import DenseQuery
from tests.mechanisms.catalogue import ENTRIES, fresh, home

PURE = PureDP(1.0)
TABLES = MarginalTables([2, 3, 2], 2)


@pytest.mark.parametrize("name", ENTRIES)
def test_a_mechanism_says_what_it_is_in_a_line(name):
    entry = ENTRIES[name]
    mechanism = fresh(name, home(name))
    said = repr(mechanism)
    assert said.startswith(type(mechanism).__name__ + "(")
    assert len(said) < 200
    assert "\n" not in said
    assert " at 0x" not in said
    assert "n=20" in said
    assert f"{entry.privacy}, replace-one" in said
    if hasattr(mechanism, "set_up"):
        mechanism.set_up()
        assert short_claim(mechanism.guarantee) in repr(mechanism)


def test_the_line_of_a_mechanism(monkeypatch):
    laplace = Laplace(TABLES, n=5000, privacy=PURE)
    line = "Laplace(MarginalTables of 3 columns, k=2; 16 queries; n=5000; 1-DP, replace-one)"
    assert repr(laplace) == line
    assert repr(Projected(laplace)) == f"Projected({line})"
    large = Explicit(np.random.default_rng(0).standard_normal((300, 400)))
    assert len(repr(Laplace(large, n=10, privacy=PURE))) < 120
    # The type stands for a workload that needs more words.
    monkeypatch.setattr(base_module, "LONGEST", len(repr(large)))
    assert repr(Laplace(large, n=10, privacy=PURE)).startswith(f"Laplace({large!r}; 300 queries")
    monkeypatch.setattr(base_module, "LONGEST", len(repr(large)) - 1)
    assert repr(Laplace(large, n=10, privacy=PURE)).startswith("Laplace(Explicit; 300 queries")


def test_nothing_is_claimed_before_the_sampler_is_known_nor_for_a_heuristic_one():
    mechanism = KNorm(TABLES, n=10, privacy=PURE)
    assert repr(mechanism).endswith("target 1-DP, replace-one; not set up)")
    assert "noise" not in vars(mechanism)
    mechanism.set_up()
    assert repr(mechanism).endswith("heuristic, target 1-DP, replace-one)")


def test_a_prediction_says_what_it_is():
    texts = ["rmse 0.125", "rmse at most 0.125", "rmse 0.125 on a prior"]
    kinds = [PredictionKind.EXACT, PredictionKind.UPPER_BOUND, PredictionKind.PRIOR]
    assert [str(Prediction(0.125, kind, "none")) for kind in kinds] == texts
    assert float(Prediction(0.125, kinds[0], "none")) == 0.125


class TestRelease:
    release = Laplace(TABLES, n=20, privacy=PURE).release(TABLES.universe.sample(20, 0))

    def test_text_and_table_of_a_notebook(self):
        text, first = repr(self.release), f"{self.release.answers[0]:.4g}"
        assert text.startswith(f"Release(16 answers: {first}, ")
        assert text.endswith("...; 1-DP, replace-one; predicted rmse 0.4243)")
        four = Laplace(Histogram(4), n=2, privacy=PURE).release([0, 1])
        assert "..." not in repr(four)
        table = self.release._repr_html_()
        assert f"<td>{TABLES.labels()[0]}</td><td>{first}</td>" in table
        assert table.count("<tr>") == 11
        assert "and 6 more answers" in table

    def test_the_text_of_a_simulation_claims_nothing(self):
        simulated = Laplace(TABLES, n=20, privacy=PURE).release(TABLES.universe.sample(20, 0), 0)
        assert "; seeded: no privacy claim; predicted" in repr(simulated)

    def test_table_of_all_answers(self, monkeypatch):
        """Rows have labels if there are at most `MAX_LABELLED` answers, and numbers otherwise."""
        workload = MarginalTables({"<b>": 2}, 1)
        release = Laplace(workload, n=5, privacy=PURE).release(workload.universe.sample(5, 0))
        for most, labels in ((2, map(html.escape, workload.labels())), (1, range(2))):
            monkeypatch.setattr(base_module, "MAX_LABELLED", most)
            rows = [
                f"<tr><td>{label}</td><td>{answer:.4g}</td></tr>"
                for label, answer in zip(labels, release.answers, strict=True)
            ]
            assert release._repr_html_() == (
                f"<p><b>{release.guarantee}</b><br>predicted {release.predicted_rmse}</p>"
                f"<table><tr><th>query</th><th>answer</th></tr>{''.join(rows)}</table>"
            )

    def test_json_holds_answers_privacy_and_prediction(self):
        predicted = self.release.predicted_rmse
        assert self.release.to_json().startswith('{\n  "answers": [\n    ')
        # The record says whether there was a seed, but does not contain the seed.
        assert json.loads(self.release.to_json()) == {
            "answers": self.release.answers.tolist(),
            "guarantee": self.release.guarantee.to_dict(),
            "predicted_rmse": {
                "value": predicted.value,
                "kind": "exact",
                "source": predicted.source,
                "stderr": 0.0,
            },
        }

    def test_labels_are_optional(self):
        guarantee = Guarantee(PURE, Adjacency.REPLACE_ONE, Exact())
        bare = Release(np.zeros(2), guarantee, Prediction(0.1, PredictionKind.UPPER_BOUND, "none"))
        assert "<td>0</td><td>0</td>" in bare._repr_html_()
        covariance = Covariance(SecondMoment(2), n=4, privacy=PURE)
        assert "<table>" in covariance.release(np.zeros((4, 2)), rng=0)._repr_html_()


def smooth() -> gd.SmoothSummary:
    return gd.SmoothSummary(1, n=1000, smoothness=2, privacy=PURE, degree=4)


def sparse() -> gd.SparseProject:
    return gd.SparseProject(n=3, sparsity=1, queries=1, privacy=gd.ZCDP(0.5), rows=64, rng=0)


def online() -> gd.OnlineConstruction:
    return gd.OnlineConstruction(
        SparseMultiplicativeWeights(1), n=10**8, queries=5, privacy=PURE, rng=0
    )


def iterative() -> gd.IterativeConstruction:
    rule = MultiplicativeWeights(4)
    return gd.IterativeConstruction(rule, AllParities(2), n=10**6, privacy=PURE, beta=0.5)


OBJECTS: dict[str, Callable[[], object]] = {
    "Guarantee(": lambda: Guarantee(PURE, gd.Adjacency.REPLACE_ONE, Exact()),
    "Ledger(": lambda: gd.Ledger(PURE),
    "AuditResult(": lambda: audit(
        lambda trials, rng: rng.laplace(size=trials),
        lambda trials, rng: rng.laplace(size=trials),
        PURE, trials=100, rng=0,
    ),
    "SmoothSummary(": smooth,
    "SmoothRelease(": lambda: smooth().release(np.zeros((1000, 1)), rng=0),
    "MomentProjection(": lambda: MomentProjection.semidefinite(np.ones(4)),
    "SparseProject(": sparse,
    "SparseSummary(": lambda: sparse().release([1, 2, 3], rng=0),
    "HashedSigns(": lambda: sparse().signs,
    "OnlineConstruction(": online,
    "SlotHypothesis(": lambda: online().hypothesis,
    "IterativeConstruction(": iterative,
    "IterativeRelease(": lambda: iterative().release(np.zeros(10**6, dtype=int), rng=0),
    "EnumeratedQueries(": lambda: EnumeratedQueries([DenseQuery(np.ones(2))]),
    "AllParities(": lambda: AllParities(2),
    "WeightedHypothesis(": lambda: MultiplicativeWeights(4).start(0.1),
    "LinearHypothesis(": lambda: Perceptron(4).start(0.1),
    "Median(": lambda: Median(np.eye(3), fineness=1.0),
    "MedianHypothesis(": lambda: Median(np.eye(3), fineness=1.0).start(0.1),
}  # fmt: skip


@pytest.mark.parametrize("start", OBJECTS)
def test_repr_is_one_short_line_without_arrays_or_addresses(start: str) -> None:
    text = repr(OBJECTS[start]())
    assert text.startswith(start)
    assert len(text) < 200
    for unwanted in ("\n", "array(", "object at 0x"):
        assert unwanted not in text
