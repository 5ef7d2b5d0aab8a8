"""Texts of mechanisms and releases are short, and claim a guarantee only if it is proved."""

from __future__ import annotations

import json

import numpy as np
import pytest

from geomdp.mechanisms import (
    Covariance,
    KNorm,
    Laplace,
    Matrix,
    Prediction,
    PredictionKind,
    Projected,
    Release,
)
from geomdp.mechanisms import base as base_module
from geomdp.privacy import Adjacency, Exact, Guarantee, PureDP
from geomdp.workloads import Explicit, MarginalTables, SecondMoment
from tests.mechanisms.catalogue import MECHANISMS, WORKLOADS

PURE = PureDP(1.0)
TABLES = MarginalTables([2, 3, 2], 2)


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_says_what_it_is_in_a_line(name):
    entry = MECHANISMS[name]
    mechanism = entry.build(WORKLOADS[entry.home], 20, entry.privacy, Adjacency.REPLACE_ONE)
    said = repr(mechanism)
    assert said.startswith(type(mechanism).__name__ + "(")
    assert len(said) < 200
    assert "\n" not in said
    assert " at 0x" not in said
    assert "n=20" in said
    assert f"{entry.privacy}, replace-one" in said


def test_the_line_of_a_mechanism():
    laplace = Laplace(TABLES, n=5000, privacy=PURE)
    line = "Laplace(MarginalTables of 3 columns, k=2; 16 queries; n=5000; 1-DP, replace-one)"
    assert repr(laplace) == line
    assert repr(Projected(laplace)) == f"Projected({line})"
    wide = MarginalTables([2] * 60, 1)
    assert "of 60 columns" in repr(Laplace(wide, n=10, privacy=PURE))


def test_nothing_is_claimed_before_the_sampler_is_known_nor_for_a_heuristic_one():
    mechanism = KNorm(TABLES, n=10, privacy=PURE)
    assert repr(mechanism).endswith("target 1-DP, replace-one; not set up)")
    assert "noise" not in vars(mechanism)
    mechanism.set_up()
    assert repr(mechanism).endswith("heuristic, target 1-DP, replace-one)")
    matrix = Matrix(TABLES, n=10, privacy=PURE)
    matrix.set_up()
    assert repr(matrix).endswith("n=10; 1-DP, replace-one)")


def test_large_workloads_are_not_written_out():
    workload = Explicit(np.random.default_rng(0).standard_normal((300, 400)))
    assert len(repr(Laplace(workload, n=10, privacy=PURE))) < 120


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (PredictionKind.EXACT, "rmse 0.125"),
        (PredictionKind.UPPER_BOUND, "rmse at most 0.125"),
        (PredictionKind.PRIOR, "rmse 0.125 on a prior"),
    ],
)
def test_a_prediction_says_what_it_is(kind, text):
    prediction = Prediction(0.125, kind, "none")
    assert str(prediction) == text
    assert float(prediction) == 0.125


class TestRelease:
    release = Laplace(TABLES, n=20, privacy=PURE).release(TABLES.universe.sample(20, 0))

    def test_text(self):
        text = repr(self.release)
        assert text.startswith("Release(16 answers: ")
        assert f"{self.release.answers[0]:.4g}, " in text
        assert text.endswith("...; 1-DP, replace-one; predicted rmse 0.4243)")
        assert "seeded: no privacy claim" in repr(
            Laplace(TABLES, n=1, privacy=PURE).release(TABLES.universe.sample(1, 0), rng=0)
        )

    def test_table_of_a_notebook(self):
        table = self.release._repr_html_()
        assert str(self.release.guarantee) in table
        assert f"<td>{TABLES.labels()[0]}</td><td>{self.release.answers[0]:.4g}</td>" in table
        assert table.count("<tr>") == 11
        assert "and 6 more answers" in table

    def test_table_of_all_answers(self, monkeypatch):
        """Rows have labels if there are at most `MAX_LABELLED` answers, and numbers otherwise."""
        workload = MarginalTables([2], 1)
        release = Laplace(workload, n=5, privacy=PURE).release(workload.universe.sample(5, 0))
        for most, labels in ((2, workload.labels()), (1, range(2))):
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

    def test_labels_are_escaped_and_optional(self):
        columns = MarginalTables({"<b>": 2, "c": 2}, 1)
        release = Laplace(columns, n=5, privacy=PURE).release(columns.universe.sample(5, 0))
        assert "&lt;b&gt;" in release._repr_html_()
        guarantee = Guarantee(PURE, Adjacency.REPLACE_ONE, Exact())
        bare = Release(np.zeros(2), guarantee, Prediction(0.1, PredictionKind.UPPER_BOUND, "none"))
        assert "<td>0</td><td>0</td>" in bare._repr_html_()
        assert repr(bare).endswith("predicted rmse at most 0.1)")

    def test_covariances_too(self):
        covariance = Covariance(SecondMoment(2), n=4, privacy=PURE)
        assert "<table>" in covariance.release(np.zeros((4, 2)), rng=0)._repr_html_()
