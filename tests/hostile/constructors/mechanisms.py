"""Constructors of mechanisms, and of the rules, noises and strategies that they are given."""

from __future__ import annotations

import numpy as np

import geomdp as gd
from geomdp import mechanisms, workloads
from geomdp.bodies.cvx_body import cosine_moment_body
from geomdp.mechanisms import strategies
from geomdp.mechanisms.strategies.design import LaplaceCells
from tests.hostile.constructors.row import Constructor, of

PURE, CONCENTRATED, APPROXIMATE = gd.PureDP(1.0), gd.ZCDP(0.5), gd.ApproxDP(1.0, 1e-6)
CUBE = workloads.Marginals(3, 1)
LAPLACE = mechanisms.Laplace(CUBE, n=10, privacy=PURE)
CELLS = LaplaceCells()

#: Mechanisms that are built from a workload, a number of records and a definition of privacy.
PLAIN = (
    (mechanisms.Laplace, PURE),
    (mechanisms.Ball, PURE),
    (mechanisms.Ellipsoid, PURE),
    (mechanisms.KNorm, PURE),
    (mechanisms.Cone, PURE),
    (mechanisms.TightCone, PURE),
    (mechanisms.Spectral, PURE),
    (mechanisms.Matrix, PURE),
    (mechanisms.Hierarchical, PURE),
    (mechanisms.Recursive, PURE),
    (mechanisms.ReportNoisyMax, PURE),
    (mechanisms.PermuteAndFlip, PURE),
    (mechanisms.ExponentialMechanism, PURE),
    (mechanisms.Geometric, PURE),
    (mechanisms.LatticeBox, PURE),
    (mechanisms.Gaussian, CONCENTRATED),
)

MECHANISMS: dict[str, Constructor] = {
    **{
        f"mechanisms.{kind.__name__}": of(
            kind, "workload:object n:whole privacy:object", workload=CUBE, n=10, privacy=privacy
        )
        for kind, privacy in PLAIN
    },
    "Staircase": of(
        mechanisms.Staircase,
        "workload:object n:whole privacy:object",
        workload=workloads.Explicit([[0.0, 1.0]]),
        n=10,
        privacy=PURE,
    ),
    "mechanisms.SecondMoment": of(
        mechanisms.SecondMoment, "n:whole", workload=workloads.SecondMoment(2), n=10, privacy=PURE
    ),
    "Covariance": of(
        mechanisms.Covariance,
        "n:whole",
        workload=workloads.SecondMoment(2),
        n=10,
        privacy=PURE,
    ),
    "SmoothSummary": of(
        gd.SmoothSummary,
        "n:whole smoothness:whole",
        d=1,
        n=1000,
        smoothness=2,
        privacy=PURE,
        degree=3,
    ),
    "SparseProject": of(
        gd.SparseProject,
        "n:whole sparsity:whole queries:whole beta:share",
        n=100,
        sparsity=2,
        queries=3,
        privacy=CONCENTRATED,
        rows=64,
        beta=0.1,
    ),
    "AboveThreshold": of(
        gd.AboveThreshold, "sensitivity:positive", threshold=0.0, privacy=PURE, sensitivity=1.0
    ),
    "Sparse": of(
        gd.Sparse,
        "sensitivity:positive cutoff:whole",
        threshold=0.0,
        privacy=PURE,
        sensitivity=1.0,
        cutoff=2,
    ),
    "NumericSparse": of(gd.NumericSparse, "cutoff:whole", threshold=0.0, privacy=PURE, cutoff=2),
    "OnlineConstruction": of(
        gd.OnlineConstruction,
        "n:whole queries:whole beta:share",
        rule=mechanisms.SparseMultiplicativeWeights(1),
        n=10**6,
        queries=5,
        privacy=PURE,
        beta=0.1,
    ),
    "IterativeConstruction": of(
        gd.IterativeConstruction,
        "n:whole beta:share",
        rule=mechanisms.MultiplicativeWeights(4),
        distinguisher=mechanisms.AllParities(2),
        n=10**7,
        privacy=PURE,
        beta=0.1,
    ),
    "MultiplicativeWeights": of(mechanisms.MultiplicativeWeights, "size:whole", size=4),
    "AllParities": of(mechanisms.AllParities, "d:whole", d=3),
    "ResidualGaussian": of(
        mechanisms.ResidualGaussian,
        "workload:object n:whole privacy:object",
        workload=workloads.MarginalTables([2, 3], 1),
        n=10,
        privacy=CONCENTRATED,
    ),
    "PairMarginals": of(
        mechanisms.PairMarginals,
        "workload:object n:whole privacy:object",
        workload=workloads.Marginals(4, 2),
        n=10,
        privacy=PURE,
    ),
    "Coarse": of(mechanisms.Coarse, "inner:object radius:positive", inner=LAPLACE, radius=0.1),
    "Fitted": of(mechanisms.Fitted, "inner:object", inner=LAPLACE),
    "Projected": of(mechanisms.Projected, "inner:object draws:whole", inner=LAPLACE, draws=8),
    "Shrunk": of(
        mechanisms.Shrunk,
        "inner:object",
        inner=mechanisms.Laplace(workloads.Histogram(3), n=10, privacy=PURE),
    ),
    "JL": of(mechanisms.JL, "inner:object dimension:whole", inner=LAPLACE, dimension=2, rng=0),
    "PrintedNumericSparse": of(
        mechanisms.PrintedNumericSparse,
        "cutoff:whole privacy:object sensitivity:positive",
        threshold=0.0,
        cutoff=2,
        privacy=APPROXIMATE,
        sensitivity=1.0,
    ),
    "EnumeratedQueries": of(
        mechanisms.EnumeratedQueries,
        "queries:object",
        queries=[workloads.DenseQuery(np.array([0.0, 1.0]))],
    ),
    "Median": of(mechanisms.Median, "candidates:matrix", candidates=np.eye(3), fineness=1.0),
    "Perceptron": of(mechanisms.Perceptron, "size:whole", size=4),
    "SparseMultiplicativeWeights": of(
        mechanisms.SparseMultiplicativeWeights, "sparsity:whole", sparsity=2
    ),
    "WeightedLaplace": of(mechanisms.WeightedLaplace, "smoothness:positive", smoothness=2.0),
    "MomentProjection": of(
        mechanisms.MomentProjection,
        "body:object",
        deviations=np.array([0.0, 1.0, 1.0]),
        body=cosine_moment_body(np.ones(3)),
    ),
    "Prediction": of(
        mechanisms.Prediction,
        value=1.0,
        kind=mechanisms.PredictionKind.EXACT,
        source="why",
        stderr=0.0,
    ),
    "PIdentity": of(strategies.PIdentity, rows=2),
    "SoftBins": of(strategies.SoftBins, "cells:object", bins=2, cells=CELLS),
    "Tree": of(strategies.Tree, "cells:object", cells=CELLS),
    "WeightedMarginals": of(strategies.WeightedMarginals, "cells:object", cells=CELLS),
}
