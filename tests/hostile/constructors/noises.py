"""Constructors of noises, and of objects that audits take as arguments."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

import geomdp as gd
from geomdp import audit, bodies, noise
from geomdp.audit.scores import fisher_score
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.noise.recursive import stopped
from geomdp.workloads.structure import Residuals
from tests.hostile.constructors.row import Constructor, of

BALL = bodies.Ball(2, 1.0)
LAPLACE = noise.LaplaceNoise(2, 1.0)
LEVELS = stopped(
    noise.decompose(bodies.Box.centred([1.0, 2.0]), noise.Variant.PROJECTED, exact=True)
)
RESIDUALS = Residuals(gd.workloads.MarginalTables([2, 3], 1))
SCALES = np.ones(3)
PAIR = audit.Pair("a pair", LAPLACE.sample, LAPLACE.sample)

NOISES: dict[str, Constructor] = {
    "LaplaceNoise": of(
        noise.LaplaceNoise, "dimension:whole scale:positive", dimension=3, scale=1.0
    ),
    "GaussianNoise": of(
        noise.GaussianNoise, "basis:matrix scale:positive", basis=np.eye(2), scale=1.0
    ),
    "KNormNoise": of(
        noise.KNormNoise,
        "body:object epsilon:positive sampler:object",
        body=BALL,
        epsilon=1.0,
        sampler=ExactSampler(BALL),
    ),
    "ConeNoise": of(
        noise.ConeNoise,
        "body:object rate:positive centre:vector",
        body=bodies.Simplex(np.eye(2)),
        rate=1.0,
        centre=np.zeros(2),
        matrix=sp.csr_array(np.eye(2)),
        constant=np.zeros(2),
    ),
    "PairedNoise": of(
        noise.PairedNoise,
        "body:object epsilon:positive matrix:object",
        body=bodies.Box.centred([1.0, 1.0]),
        epsilon=1.0,
        matrix=sp.csr_array(np.eye(2)),
    ),
    "RecursiveNoise": of(
        noise.RecursiveNoise, "levels:object epsilon:positive", levels=LEVELS[-1], epsilon=1.0
    ),
    "noise.Part": of(
        noise.Part, "noise:object matrix:object", noise=LAPLACE, matrix=np.eye(2), energy=1.0
    ),
    "SparseVectorLaw": of(
        audit.SparseVectorLaw,
        "truths:vector scales:object cutoff:whole",
        truths=np.zeros(2),
        scales=gd.AboveThreshold(0.0, privacy=gd.PureDP(1.0)).scales,
        cutoff=1,
    ),
    "Learner": of(audit.Learner, name="a score", learn=fisher_score),
    "audit.Pair": of(
        audit.Pair,
        name="a pair",
        sample_a=LAPLACE.sample,
        sample_b=LAPLACE.sample,
        learners=PAIR.learners,
    ),
}
