"""Constructors of bounds and metrics, and of the codes, packings and lines for lower bounds."""

from __future__ import annotations

import numpy as np

from geomdp import bounds, workloads
from tests.hostile.constructors.row import Constructor, of

CODE = bounds.ReedSolomon(13, 4, 2)
BITS = bounds.greedy_code(8, 2)

BOUNDS: dict[str, Constructor] = {
    "Bound": of(
        bounds.Bound,
        "side:object",
        value=3.5,
        side=bounds.Side.LOWER,
        statement="a statement",
        assumptions=(),
    ),
    "Problem": of(
        bounds.Problem,
        "epsilon:positive alpha:positive metric:object adjacency:object",
        epsilon=1.0,
        alpha=0.1,
        metric=bounds.MeanL2(),
        adjacency=bounds.Problem(1.0, 0.1).adjacency,
    ),
    **{
        kind.__name__: of(kind, "separation:positive", separation=4.0)
        for kind in (bounds.MeanL2, bounds.RMS, bounds.WorstCase)
    },
    "Effort": of(
        bounds.Effort,
        "elements:whole pool:whole datasets:whole",
        elements=8,
        pool=4,
        datasets=4,
        exchanges=2,
    ),
    "LinearCode": of(bounds.LinearCode, "generators:matrix", generators=np.eye(3, dtype=np.int64)),
    "ReedSolomon": of(bounds.ReedSolomon, "prime:whole", prime=13, length=4, degree=2),
    "ReedSolomonSets": of(bounds.ReedSolomonSets, "code:object", code=CODE),
    "Singletons": of(bounds.Singletons, "log_count:positive", log_count=2.5),
    "RandomSignSets": of(
        bounds.RandomSignSets,
        "queries:whole sets:object failure:share",
        queries=500,
        sets=bounds.Singletons(2.5),
        failure=1e-6,
        seed=0,
    ),
    "CodeWords": of(
        bounds.CodeWords,
        "attributes:whole outer:object inner:object",
        attributes=20,
        outer=bounds.ReedSolomon(31, 3, 2),
        inner=bounds.greedy_code(6, 1),
    ),
    "MarginalBlocks": of(
        bounds.MarginalBlocks,
        "attributes:whole width:whole part:whole code:object functions:object",
        attributes=12,
        width=2,
        part=4,
        code=BITS,
        functions=bounds.ReedSolomon(7, 3, 2),
    ),
    "Packing": of(
        bounds.Packing,
        "workload:object datasets:matrix",
        workload=workloads.Histogram(3),
        elements=np.arange(3),
        datasets=np.arange(3)[:, None],
        origin="listed",
    ),
}
