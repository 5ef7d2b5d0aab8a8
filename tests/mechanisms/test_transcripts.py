"""Transcripts: export with the queries, and replay on the public record alone."""

from __future__ import annotations

import json

import numpy as np
import pytest

from geomdp.mechanisms.interactive.distinguishers import EnumeratedQueries
from geomdp.mechanisms.interactive.iterative import IterativeConstruction
from geomdp.mechanisms.interactive.online import OnlineConstruction, replay
from geomdp.mechanisms.interactive.transcript import (
    Answer,
    exchanges_from_json_lines,
    exchanges_to_json_lines,
)
from geomdp.mechanisms.interactive.updates import MultiplicativeWeights, SparseMultiplicativeWeights
from geomdp.privacy import ApproxDP
from geomdp.workloads.single_queries.single_query import DenseQuery, SparseQuery, conjunctions

APPROX = ApproxDP(1.0, 1e-6)


def test_online_replay_from_the_exported_file_alone() -> None:
    n, queries = 400_000, conjunctions(5, 2)
    rule = SparseMultiplicativeWeights(4)
    online = OnlineConstruction(rule, n=n, queries=len(queries), privacy=APPROX, rng=3)
    for i, query in enumerate(queries):
        online.ask_truth(query, float(i % 2))
    assert 0 < online.updates < len(queries)
    text = online.to_json_lines()
    rebuilt = replay(rule, online.alpha, exchanges_from_json_lines(text))
    for query in queries:
        assert rebuilt.evaluate(query) == online.hypothesis.evaluate(query)
    first = json.loads(text.splitlines()[0])
    assert first["query"]["support"] == list(queries[0].support)
    assert "truth" not in text


def test_iterative_replay_from_the_exported_file_alone() -> None:
    n, queries = 20_000_000, [DenseQuery(row) for row in np.eye(8)[:, :8]]
    records = np.repeat(np.arange(2, dtype=np.int8), n // 2)
    rule = MultiplicativeWeights(8)
    construction = IterativeConstruction(rule, EnumeratedQueries(queries), n=n, privacy=APPROX)
    release = construction.release(records, rng=0)
    assert any(answer.above for _, answer in release.exchanges)
    exchanges = exchanges_from_json_lines(release.to_json_lines())
    rebuilt = replay(rule, construction.alpha / 2, exchanges)
    for query in queries:
        assert rebuilt.evaluate(query) == release.hypothesis.evaluate(query)


def test_exchanges_survive_json() -> None:
    exchanges = [
        (SparseQuery.counting(["a", ("b", 2)]), Answer(True, 0.1 + 0.2)),
        (DenseQuery(np.array([0.5, 1.0])), Answer(False, None)),
    ]
    back = exchanges_from_json_lines(exchanges_to_json_lines(exchanges))
    assert [answer for _, answer in back] == [answer for _, answer in exchanges]
    assert back[0][0].support == ("a", ("b", 2))


@pytest.mark.parametrize(
    "text",
    ["not json\n", "{}\n", '{"index": 1, "query": {}, "above": true, "value": null}\n', "3\n"],
)
def test_bad_lines_are_named(text: str) -> None:
    with pytest.raises(ValueError, match="line 1 is not an exchange"):
        exchanges_from_json_lines(text)


def test_queries_that_json_cannot_hold() -> None:
    with pytest.raises(ValueError, match="to be written as JSON, got float"):
        exchanges_to_json_lines([(SparseQuery.counting([0.5]), Answer(False, 0.0))])
