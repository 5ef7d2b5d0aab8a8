"""Constructors of bounds, targets, metrics, and of codes, packings and lines for lower bounds."""

from __future__ import annotations

import numpy as np

from geomdp import advice, bounds, workloads
from geomdp.bounds.code_packings import greedy_code
from tests.hostile.constructors.row import Constructor, of

CODE = bounds.ReedSolomon(13, 4, 2)
BITS = greedy_code(8, 2)

BOUNDS: dict[str, Constructor] = {
    **{
        kind.__name__: of(kind, "limit:positive", limit=0.1, over=["a", "b"])
        for kind in (advice.RootMeanSquare, advice.HalfWidth, advice.LargestError)
    },
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
    "Packing": of(
        bounds.Packing,
        "workload:object datasets:matrix",
        workload=workloads.Histogram(3),
        elements=np.arange(3),
        datasets=np.arange(3)[:, None],
        origin="listed",
    ),
}
