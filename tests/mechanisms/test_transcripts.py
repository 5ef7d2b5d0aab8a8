"""The hypothesis follows from the public queries and answers alone."""

from __future__ import annotations

import numpy as np

from geomdp.mechanisms.interactive.iterative import EnumeratedQueries, IterativeConstruction
from geomdp.mechanisms.interactive.online import OnlineConstruction
from geomdp.mechanisms.interactive.updates import MultiplicativeWeights, SparseMultiplicativeWeights
from geomdp.privacy import ApproxDP
from geomdp.workloads.single_queries import DenseQuery, conjunctions
from tests.mechanisms.replayed import replay

APPROX = ApproxDP(1.0, 1e-6)


def test_online_replay_from_the_public_record_alone() -> None:
    n, queries = 400_000, conjunctions(5, 2)
    rule = SparseMultiplicativeWeights(4)
    online = OnlineConstruction(rule, n=n, queries=len(queries), privacy=APPROX, rng=3)
    for i, query in enumerate(queries):
        online.ask_truth(query, float(i % 2))
    assert 0 < online.updates < len(queries)
    rebuilt = replay(rule, online.alpha, online.exchanges)
    for query in queries:
        assert rebuilt.evaluate(query) == online.hypothesis.evaluate(query)


def test_iterative_replay_from_the_public_record_alone() -> None:
    n, queries = 20_000_000, [DenseQuery(row) for row in np.eye(8)[:, :8]]
    records = np.repeat(np.arange(2, dtype=np.int8), n // 2)
    rule = MultiplicativeWeights(8)
    construction = IterativeConstruction(rule, EnumeratedQueries(queries), n=n, privacy=APPROX)
    release = construction.release(records, rng=0)
    assert any(answer.above for _, answer in release.exchanges)
    rebuilt = replay(rule, construction.alpha / 2, release.exchanges)
    for query in queries:
        assert rebuilt.evaluate(query) == release.hypothesis.evaluate(query)
