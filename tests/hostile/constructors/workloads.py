"""Constructors of workloads, universes, queries and filters."""

from __future__ import annotations

import numpy as np

from geomdp import workloads
from geomdp.workloads import smooth
from tests.hostile.constructors.row import Constructor, of

CUBE = workloads.Marginals(3, 1)
SPARSE = workloads.SparseQuery((0, 1), np.ones(2))

WORKLOADS: dict[str, Constructor] = {
    "Marginals": of(workloads.Marginals, "d:whole k:whole", d=4, k=2),
    "Parities": of(workloads.Parities, "d:whole k:whole", d=4, k=2),
    "Prefixes": of(workloads.Prefixes, "N:whole", N=4),
    "Ranges": of(workloads.Ranges, "N:whole", N=4),
    "Histogram": of(workloads.Histogram, "N:whole", N=4),
    "workloads.SecondMoment": of(workloads.SecondMoment, "d:whole", d=3),
    "BoxSecondMoment": of(workloads.BoxSecondMoment, "d:whole", d=3),
    "Means": of(workloads.Means, "d:whole", d=3),
    "MarginalTables": of(workloads.MarginalTables, "k:whole", columns=[2, 3], k=1),
    "ChosenTables": of(
        workloads.ChosenTables,
        columns={"a": 2, "b": 3},
        tables=[("a",), ("b",)],
        weights=[1.0, 2.0],
    ),
    "ProductQueries": of(
        workloads.ProductQueries,
        columns={"a": 2, "b": 3},
        tables=[("a",), ("b",)],
        queries={"b": workloads.Prefixes(3)},
        weights=[1.0, 2.0],
    ),
    "Explicit": of(workloads.Explicit, "matrix:matrix", matrix=np.eye(3)),
    "RandomSigns": of(workloads.RandomSigns, "m:whole N:whole", m=3, N=4, rng=0),
    "LinearMap": of(
        workloads.LinearMap, "workload:object matrix:matrix", workload=CUBE, matrix=np.ones((1, 3))
    ),
    "DenseQuery": of(workloads.DenseQuery, "values:vector", values=np.ones(3)),
    "SparseQuery": of(workloads.SparseQuery, "values:vector", support=(0, 1), values=np.ones(2)),
    "SparseQueries": of(workloads.SparseQueries, "queries:object", queries=[SPARSE]),
    "BooleanCube": of(workloads.BooleanCube, "d:whole", d=3),
    "CategoricalProduct": of(workloads.CategoricalProduct, columns=[2, 3]),
    "SymmetricCube": of(workloads.SymmetricCube, "d:whole", d=3),
    "UnitBall": of(workloads.UnitBall, "d:whole", d=3),
    "SmoothQueries": of(
        workloads.SmoothQueries,
        "d:whole degree:whole tolerance:positive",
        d=1,
        degree=4,
        tolerance=1e-9,
    ),
    "GaussianMixture": of(
        smooth.GaussianMixture,
        "centres:matrix weights:vector bandwidth:positive",
        centres=np.zeros((1, 2)),
        weights=np.ones(1),
        bandwidth=0.5,
    ),
    "Jackson": of(smooth.Jackson, "smoothness:whole", smoothness=2),
    "Logistic": of(smooth.Logistic, "weights:vector", weights=np.ones(2), bias=0.0),
    "Polynomial": of(
        smooth.Polynomial,
        "exponents:matrix coefficients:vector",
        exponents=np.ones((1, 2)),
        coefficients=np.ones(1),
    ),
    "Shrinkage": of(smooth.Shrinkage, "n:whole", noise_std=np.ones(3), n=5, decay=1.0),
    "SoftRange": of(
        smooth.SoftRange,
        "low:vector high:vector width:positive",
        low=-np.ones(2),
        high=np.ones(2),
        width=0.5,
    ),
    "StatedSmoothness": of(
        smooth.StatedSmoothness,
        "d:whole smoothness:whole",
        function=lambda points: points[:, 0],
        d=1,
        smoothness=2,
        bound=1.0,
    ),
    "Waves": of(
        smooth.Waves,
        "frequencies:matrix amplitudes:vector phases:vector",
        frequencies=np.ones((1, 2)),
        amplitudes=np.ones(1),
        phases=np.zeros(1),
    ),
}
