"""Candidates that first reduce the answers, to fewer dimensions or to a few points (a net).

If the error of the reduction alone is not below the least so far, nothing else is set up.
"""

from __future__ import annotations

import math

import numpy as np

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.advice.builders import knorm_exact
from geomdp.advice.costs import PRODUCT_SPEED, WIDTH_DIRECTIONS, breadth_work
from geomdp.advice.setting import InapplicableError, Setting, UntriedError
from geomdp.bodies import sensitivity_polytope
from geomdp.geometry.farthest_points import farthest_points
from geomdp.mechanisms import JL, AutoDimension, Coarse, Gaussian, Mechanism, Projected
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.post_processed.jl import best_dimension, distortion_bound, width_limit
from geomdp.mechanisms.post_processed.support_bound import MAX_DRAWS
from geomdp.privacy import PureDP
from geomdp.workloads import Workload, WorkloadSizeError, explicit_answers

#: Largest number of points of a net. With more points, the noise would hardly be smaller than for
#: all answers.
MAX_NET = 32
#: Number of random elements that are drawn before all answers are listed. Their answers give a
#: lower bound on the rounding error of every net. If there are many queries, fewer elements are
#: drawn, so that the number of their answers is at most `SAMPLED_ANSWERS` (32 MB).
SAMPLED, SAMPLED_ANSWERS = 1 << 9, 1 << 22
#: Largest dimension of the answers' hull for which JL is tried. About ten maps are tried. In this
#: dimension, the set-up of the noise for one map takes tenths of a second.
MAX_JL_DIMENSION = 512


def jl(setting: Setting) -> Mechanism:
    """`JL` with exact K-norm noise, and with the number of rows that has the least prediction.

    The result has a new map, because the error bound does not hold for the best of several maps.
    """
    setting.check_public_count()
    workload, effective = setting.workload, setting.workload.affine_hull().dimension
    if effective < 2:
        raise InapplicableError("the answers have one dimension, which cannot be reduced")
    theorem = math.ceil(setting.pure.epsilon * setting.n)
    sizes = {*AutoDimension().tried(effective), *([theorem] if theorem < effective else [])}
    diameter, root = workload.l2_diameter(), math.sqrt(workload.n_queries)
    # The distortion grows with the Gaussian width of the set of answers. Try width 0 first, because
    # estimating the width is slow.
    setting.check_floor("distortion alone", distortion_bound(0.0, diameter, max(sizes)) / root)
    if effective > MAX_JL_DIMENSION:
        raise UntriedError(f"its maps would take too long in dimension {effective}")
    supports = WIDTH_DIRECTIONS + MAX_DRAWS * len(sizes)
    setting.check_cost("distortion", work=supports * breadth_work(workload))
    width = width_limit(sensitivity_polytope(workload))
    setting.check_floor("distortion alone", distortion_bound(width, diameter, max(sizes)) / root)
    inner = knorm_exact(setting)
    rng = np.random.default_rng(PUBLIC_SEED)
    able = [
        rows
        for rows in sorted(sizes, reverse=True)
        if distortion_bound(width, diameter, rows) / root < setting.least
    ]
    # All trial maps and the new map are successive draws of one generator.
    return JL(inner, best_dimension(inner, dict.fromkeys(able, rng)), rng)


def coarse(setting: Setting) -> Mechanism:
    """Projected noise on answers rounded to the best net of 2, 4, ... up to `MAX_NET` points."""
    setting.check_public_count()
    workload = setting.workload
    size, root = workload.universe.size, math.sqrt(workload.n_queries)
    if size is None or size > SAMPLED:
        setting.check_floor("rounding alone", _rounding_floor(workload) / root)
    if size is not None:
        work = size * workload.n_queries * (MAX_NET + 1) / PRODUCT_SPEED
        setting.check_cost("net", work=work)
    points = farthest_points(explicit_answers(workload), _lengths, most=MAX_NET + 1)
    # The first s points are at least radii[s - 1] apart. Every answer is within radii[s] of one of
    # the first s points. `Coarse` builds its net for a given separation of the points. With a
    # separation between radii[s] and radii[s - 1], it finds the net of the first s points. This
    # needs radii[s] < radii[s - 1]. For each power of 2, take the largest such s up to this power.
    drops = np.flatnonzero(points.radii[2:] < points.radii[1:-1]) + 2
    powers = (1 << i for i in range(1, MAX_NET.bit_length()))
    sizes = sorted({int(drops[drops <= power].max(initial=0)) for power in powers} - {0})
    if not sizes:
        raise InapplicableError(f"its net would hold more than {MAX_NET} answers, or all of them")
    # Check the error of rounding before the noise is set up.
    setting.check_floor("rounding alone", points.radii[sizes[-1]] / root)
    trials = [
        Coarse(Projected(inner), (points.radii[size - 1] + points.radii[size]) / 2 / root)
        for inner in _exact_noises(setting)
        for size in reversed(sizes)
        if points.radii[size] / root < setting.least
    ]
    return min(trials, key=lambda trial: trial.predicted_rmse.value)


def _rounding_floor(workload: Workload) -> float:
    """A lower bound, for every net of `MAX_NET` points, on the largest distance of an answer to it.

    Of 33 answers that are pairwise t apart, two have the same nearest point in a net of 32, and one
    of them is at least t / 2 away from it. The bound is 0 if the search finds fewer different
    answers.
    """
    count = min(SAMPLED, SAMPLED_ANSWERS // workload.n_queries)
    if count <= MAX_NET:
        return 0.0
    elements = workload.universe.sample(count, np.random.default_rng(PUBLIC_SEED))
    found = farthest_points(workload.evaluate(elements), _lengths, most=MAX_NET + 1)
    return float(found.radii[MAX_NET]) / 2 if len(found.radii) > MAX_NET else 0.0


def _exact_noises(setting: Setting) -> list[AdditiveMechanism]:
    """Exact K-norm noise, unless it costs too much, and Gaussian noise unless privacy is pure."""
    if isinstance(setting.privacy, PureDP):
        return [knorm_exact(setting)]
    gaussian = Gaussian(
        setting.workload, n=setting.n, privacy=setting.privacy, adjacency=setting.adjacency
    )
    try:
        return [gaussian, knorm_exact(setting)]
    except (UntriedError, WorkloadSizeError):
        return [gaussian]


def _lengths(rows: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.norm(rows, axis=1))
