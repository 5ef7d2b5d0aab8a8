"""Uniform points of a body: exact samplers, hit-and-run kernels, chains and their diagnostics."""

from geomdp.geometry.sampling.chains import Chains, Mixing, measure_mixing, run_chains
from geomdp.geometry.sampling.diagnostics import bulk_ess, diagnose, split_r_hat
from geomdp.geometry.sampling.john import round_by_ellipsoid
from geomdp.geometry.sampling.kernels import CoordinateHitAndRun, HitAndRun, Kernel
from geomdp.geometry.sampling.rejection import RejectionSampler
from geomdp.geometry.sampling.rounding import round_walk
from geomdp.geometry.sampling.samplers import (
    ChainSampler,
    ExactSampler,
    UniformSampler,
    sample_uniform,
)

__all__ = [
    "ChainSampler",
    "Chains",
    "CoordinateHitAndRun",
    "ExactSampler",
    "HitAndRun",
    "Kernel",
    "Mixing",
    "RejectionSampler",
    "UniformSampler",
    "bulk_ess",
    "diagnose",
    "measure_mixing",
    "round_by_ellipsoid",
    "round_walk",
    "run_chains",
    "sample_uniform",
    "split_r_hat",
]
