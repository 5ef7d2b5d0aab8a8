"""Every public constructor with good arguments, and what kind of number each argument is.

A kind is "positive" (a real number above 0), "whole" (a whole number, at least 1) or "share" (a
real number above 0 and below 1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import geomdp as gd
from geomdp import bodies, mechanisms, noise, workloads
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.mechanisms.interactive.distinguishers import AllParities
from geomdp.mechanisms.interactive.updates import MultiplicativeWeights
from geomdp.privacy import (
    advanced_composition,
    group_privacy,
    largest_step_epsilon,
    shortcut_step_epsilon,
    zcdp_to_approx,
)
from geomdp.privacy.calibration import analytic_gaussian_scale, gaussian_delta, laplace_scale

PURE, CONCENTRATED, APPROXIMATE = gd.PureDP(1.0), gd.ZCDP(0.5), gd.ApproxDP(1.0, 1e-6)
CUBE = workloads.Marginals(3, 1)


@dataclass(frozen=True)
class Constructor:
    """A callable with good keyword arguments, and the kinds of those that are numbers."""

    build: Callable[..., Any]
    good: dict[str, Any]
    kinds: dict[str, str]


def of(build: Callable[..., Any], kinds: str, **good: Any) -> Constructor:
    """A row of the table: kinds as "name:kind name:kind"."""
    return Constructor(build, good, dict(pair.split(":") for pair in kinds.split()))


CONSTRUCTORS: dict[str, Constructor] = {
    # Privacy.
    "PureDP": of(gd.PureDP, "epsilon:positive", epsilon=1.0),
    "ApproxDP": of(gd.ApproxDP, "epsilon:positive delta:share", epsilon=1.0, delta=1e-6),
    "ZCDP": of(gd.ZCDP, "rho:positive", rho=0.5),
    "group_privacy": of(group_privacy, "size:whole", privacy=PURE, size=2),
    "advanced_composition": of(
        advanced_composition, "steps:whole slack_delta:share", step=PURE, steps=3, slack_delta=1e-6
    ),
    "largest_step_epsilon": of(largest_step_epsilon, "steps:whole", total=APPROXIMATE, steps=3),
    "shortcut_step_epsilon": of(shortcut_step_epsilon, "steps:whole", total=APPROXIMATE, steps=3),
    "zcdp_to_approx": of(zcdp_to_approx, "delta:share", privacy=CONCENTRATED, delta=1e-6),
    "laplace_scale": of(laplace_scale, "sensitivity:positive", sensitivity=1.0, privacy=PURE),
    "analytic_gaussian_scale": of(
        analytic_gaussian_scale, "sensitivity:positive", sensitivity=1.0, privacy=APPROXIMATE
    ),
    "gaussian_delta": of(
        gaussian_delta,
        "sensitivity:positive scale:positive epsilon:positive",
        sensitivity=1.0,
        scale=3.0,
        epsilon=1.0,
    ),
    # Noise.
    "LaplaceNoise": of(
        noise.LaplaceNoise, "dimension:whole scale:positive", dimension=3, scale=1.0
    ),
    "GaussianNoise": of(noise.GaussianNoise, "scale:positive", basis=np.eye(2), scale=1.0),
    "KNormNoise": of(
        noise.KNormNoise,
        "epsilon:positive",
        body=bodies.Ball(2, 1.0),
        epsilon=1.0,
        sampler=ExactSampler(bodies.Ball(2, 1.0)),
    ),
    "ConeNoise": of(
        noise.ConeNoise,
        "rate:positive",
        body=bodies.Simplex(np.eye(2)),
        rate=1.0,
        centre=np.zeros(2),
    ),
    # Bodies.
    "Ball": of(bodies.Ball, "m:whole r:positive", m=2, r=1.0),
    "CrossPolytope": of(
        bodies.CrossPolytope, "dimension:whole radius:positive", dimension=2, radius=1.0
    ),
    "LpBall": of(
        bodies.LpBall,
        "dimension:whole radius:positive exponent:positive",
        dimension=2,
        radius=1.0,
        exponent=3.0,
    ),
    "Elliptope": of(bodies.Elliptope, "order:whole", order=3),
    "Spectraplex": of(bodies.Spectraplex, "d:whole", d=3),
    "Scaled": of(bodies.Scaled, "factor:positive", body=bodies.Ball(2, 1.0), factor=2.0),
    # Workloads.
    "Marginals": of(workloads.Marginals, "d:whole k:whole", d=4, k=2),
    "Parities": of(workloads.Parities, "d:whole k:whole", d=4, k=2),
    "Prefixes": of(workloads.Prefixes, "N:whole", N=4),
    "Ranges": of(workloads.Ranges, "N:whole", N=4),
    "Histogram": of(workloads.Histogram, "N:whole", N=4),
    "SecondMoment": of(workloads.SecondMoment, "d:whole", d=3),
    "MarginalTables": of(workloads.MarginalTables, "k:whole", columns=[2, 3], k=1),
    # Mechanisms.
    **{
        kind.__name__: of(kind, "n:whole", workload=CUBE, n=10, privacy=privacy)
        for kind, privacy in (
            (mechanisms.Laplace, PURE),
            (mechanisms.Ball, PURE),
            (mechanisms.Ellipsoid, PURE),
            (mechanisms.KNorm, PURE),
            (mechanisms.Cone, PURE),
            (mechanisms.Matrix, PURE),
            (mechanisms.Recursive, PURE),
            (mechanisms.Gaussian, CONCENTRATED),
        )
    },
    "mechanisms.SecondMoment": of(
        mechanisms.SecondMoment, "n:whole", workload=workloads.SecondMoment(2), n=10, privacy=PURE
    ),
    "Covariance": of(
        mechanisms.Covariance,
        "n:whole mean_share:share",
        workload=workloads.SecondMoment(2),
        n=10,
        privacy=PURE,
        mean_share=0.5,
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
        rule=gd.SparseMultiplicativeWeights(1),
        n=10**6,
        queries=5,
        privacy=PURE,
        beta=0.1,
    ),
    "IterativeConstruction": of(
        gd.IterativeConstruction,
        "n:whole beta:share",
        rule=MultiplicativeWeights(4),
        distinguisher=AllParities(2),
        n=10**7,
        privacy=PURE,
        beta=0.1,
    ),
    "MultiplicativeWeights": of(MultiplicativeWeights, "size:whole", size=4),
    "AllParities": of(AllParities, "d:whole", d=3),
}
