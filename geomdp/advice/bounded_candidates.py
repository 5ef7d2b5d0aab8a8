"""Candidates that may be left out once others are known: their error has a cheap lower limit.

Both go through a public reduction of the answers whose share of the error is known before anything
else is set up. Where that alone is not below the least prediction so far, they cannot win.
"""

from __future__ import annotations

import math

import numpy as np

from geomdp._seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.advice.candidates import (
    InapplicableError,
    Question,
    UntriedError,
    gaussian,
    knorm_exact,
)
from geomdp.bodies import sensitivity_polytope
from geomdp.geometry.farthest_points import farthest_points
from geomdp.mechanisms import JL, AutoDimension, Coarse, Mechanism, Projected
from geomdp.mechanisms.post_processed.jl import distortion_bound, width_limit
from geomdp.privacy import PureDP
from geomdp.workloads import explicit_answers

#: Most points of an advised net: noise for more of them is hardly less than for all answers.
MAX_NET = 32
#: Largest effective dimension in which JL is tried: noise for each of ten or so maps then takes
#: tenths of a second.
MAX_JL_DIMENSION = 512


def jl(question: Question, limit: float = math.inf) -> Mechanism:
    """JL around exact K-norm noise, with the number of rows that has the least prediction.

    Tried are those of `AutoDimension` and ceil(epsilon n) (JL-T21), from the largest down as long
    as the distortion alone, which grows as rows get fewer, is below `limit`.

    Raises
    ------
    InapplicableError
        If none is.
    """
    workload, inner = question.workload, knorm_exact(question)
    effective = workload.affine_hull().dimension
    if effective < 2:
        raise InapplicableError("answers move in one dimension, of which there is no smaller one")
    theorem = math.ceil(question.pure.epsilon * question.n)
    sizes = {*AutoDimension().tried(effective), *([theorem] if theorem < effective else [])}
    width, diameter = width_limit(sensitivity_polytope(workload)), workload.l2_diameter()

    def distortion(rows: int) -> float:
        return distortion_bound(width, diameter, rows) / math.sqrt(workload.n_queries)

    _check("distortion", distortion(max(sizes)), limit)
    if effective > MAX_JL_DIMENSION:
        raise UntriedError(f"its maps would take long in dimension {effective}")
    best: JL | None = None
    for rows in sorted(sizes, reverse=True):
        if distortion(rows) >= limit:
            break
        trial = JL(inner, rows, rng=PUBLIC_SEED)
        if best is None or trial.predicted_rmse.value < best.predicted_rmse.value:
            best = trial
    assert best is not None
    return best


def coarse(question: Question, limit: float = math.inf) -> Mechanism:
    """Answers rounded to the best net of 2, 4, ... or `MAX_NET`, or so, then projected noise.

    Raises
    ------
    InapplicableError
        If the rounding alone is not below `limit` for any of them, or no net is smaller than the
        set of answers.
    """
    answers = explicit_answers(question.workload)
    points = farthest_points(answers, _lengths, most=MAX_NET + 1)
    root = math.sqrt(question.workload.n_queries)
    # A net of s points is had at any separation between the s-th distance and the next; below
    # every power of 2 the largest such s.
    drops = np.flatnonzero(points.radii[2:] < points.radii[1:-1]) + 2
    powers = (1 << i for i in range(1, MAX_NET.bit_length()))
    sizes = sorted({int(drops[drops <= power].max(initial=0)) for power in powers} - {0})
    if not sizes:
        raise InapplicableError(f"its net would hold more than {MAX_NET} answers, or all of them")
    # Checked before the noise is set up.
    _check("rounding", points.radii[sizes[-1]] / root, limit)
    inner = knorm_exact(question) if isinstance(question.privacy, PureDP) else gaussian(question)
    best: Coarse | None = None
    for size in reversed(sizes):
        if points.radii[size] / root >= limit:
            break
        trial = Coarse(Projected(inner), (points.radii[size - 1] + points.radii[size]) / 2 / root)
        if best is None or trial.predicted_rmse.value < best.predicted_rmse.value:
            best = trial
    assert best is not None
    return best


def _check(what: str, floor: float, limit: float) -> None:
    if floor >= limit:
        raise InapplicableError(
            f"it cannot be the best: its {what} alone is {floor:.4g} or more, above the least error"
        )


def _lengths(rows: FloatArray) -> FloatArray:
    """Euclidean norms (b,) of rows (b, m)."""
    return np.asarray(np.linalg.norm(rows, axis=1))
