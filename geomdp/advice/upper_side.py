"""The upper side of a bracket: the numbers of records that the mechanisms of this library need."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from geomdp._numerics.bisection import least_whole
from geomdp.advice.candidates import CANDIDATES
from geomdp.advice.comparison.error_limits import ErrorLimit, error_limit
from geomdp.advice.comparison.post_processing import MAX_PROJECTED_UNIVERSE
from geomdp.advice.comparison.trials import Trials
from geomdp.advice.setting import THOROUGH, Setting
from geomdp.advice.steps import PROJECTED
from geomdp.bodies import Body, sensitivity_polytope
from geomdp.bounds import Bound, Metric, Side, WorstCase
from geomdp.mechanisms import (
    AdditiveMechanism,
    Mechanism,
    PredictionKind,
    SecondMoment,
)
from geomdp.mechanisms.few_queries.lattice_mechanism import InexactSumsError
from geomdp.privacy import Adjacency, Privacy
from geomdp.workloads import Workload

#: A mechanism that needs more records than this gives no bound. float64 holds all whole numbers up
#: to this limit exactly.
MOST_RECORDS = 1 << 53
#: Largest number k of queries for which the range of each query is computed. For `WorstCase`, the
#: ranges give the best constant answer. This takes k breadths of the sensitivity polytope.
MAX_COORDINATES = 1 << 12


def upper_bounds(
    workload: Workload, *, privacy: Privacy, alpha: float, metric: Metric, adjacency: Adjacency
) -> tuple[list[Bound], dict[str, str]]:
    """Upper bounds from every mechanism, best first, and the reasons why others give none.

    Certificates are mechanisms for the stated number of records; a constant answer has none. JL
    mechanisms are left out, because their proved error is only an average over the random map. Up
    to rounding, the error of additive noise is proportional to 1/n, so one division mostly gives
    the least n; else bisection does.
    """
    setting = Setting(workload, 1, privacy, adjacency, True, THOROUGH)
    constant = _constant_answer(workload, metric)
    words = f"{metric.name} at most {alpha} under {privacy} ({adjacency.value})"
    found, refused = [], {}
    if constant.value <= alpha:
        found.append(Bound(1.0, Side.UPPER, f"a constant answer has {words}: {constant.reason}"))
    else:
        refused["a constant answer"] = f"its error is {constant.value:.4g}: {constant.reason}"
    built, left_out = _built(setting)
    for name, mechanism in built.items():
        try:
            n = _least_records(mechanism, alpha, metric)
        except InexactSumsError as reason:
            left_out[name] = str(reason)
            continue
        if n is None:
            left_out[name] = f"it needs more than {MOST_RECORDS} records"
            continue
        winner = mechanism.with_n(n)
        limit, given = error_limit(metric, winner), winner.guarantee.privacy
        calibrated = "" if given == privacy else f", calibrated for {given},"
        shown = f"{name}{calibrated} has {words} on every data set of {n} records"
        assumptions = (_simulation(len(built)),) if limit.simulated else ()
        found.append(
            Bound(float(n), Side.UPPER, f"{shown}, by {limit.reason}", assumptions, winner)
        )
    refused |= left_out
    return sorted(found, key=lambda bound: bound.value), refused


def _simulation(compared: int) -> str:
    """The assumption of a bound from public draws; `compared` is the number of mechanisms."""
    return (
        "a mean over the noise is replaced by an upper confidence limit from public draws. The "
        "limit is asymptotic. It fails with probability 1e-6 for one mechanism, and "
        f"{compared} mechanisms are compared"
    )


def _built(setting: Setting) -> tuple[dict[str, Mechanism], dict[str, str]]:
    """Mechanisms with exact samplers, by name, and the reasons why the others are left out.

    On finite universes above `MAX_PROJECTED_UNIVERSE`, at most two noises are projected: the best
    with the guarantee asked, and the best with a stronger one.
    """
    trials = Trials(setting)
    for row in CANDIDATES:
        if PROJECTED in row.steps:
            trials.attempt(row)
    noises = trials.built.copy()
    size = setting.workload.universe.size
    if noises and size is not None and size > MAX_PROJECTED_UNIVERSE:
        groups = [
            [t for t in noises if t.candidate.is_stronger(setting) is s] for s in (False, True)
        ]
        noises = [min(each, key=lambda trial: trial.prediction.value) for each in groups if each]
    for noisy in noises:
        assert isinstance(noisy.mechanism, AdditiveMechanism)
        trials.attempt_after(noisy, PROJECTED, partial(PROJECTED.kind, noisy.mechanism))
    trials.attempt(next(row for row in CANDIDATES if row.kind is SecondMoment))
    built, refused = {}, trials.refused
    for trial in trials.built:
        if not trial.exact:
            refused[trial.name] = "its sampler is not exact"
        elif trial.prediction.kind is PredictionKind.PRIOR:
            refused[trial.name] = "its error is known on a prior only"
        else:
            built[trial.name] = trial.mechanism
    return built, refused


def _least_records(mechanism: Mechanism, alpha: float, metric: Metric) -> int | None:
    """The least n for which the error limit is at most alpha; None if above `MOST_RECORDS`."""

    def enough(n: int) -> bool:
        return error_limit(metric, mechanism.with_n(n)).value <= alpha

    high = 1
    if isinstance(mechanism, AdditiveMechanism):
        # Without rounding of answers, the error for n records is the error for 1 record divided by
        # n. The factor 1 - 1e-12 makes up for rounding errors of the quotient. The result may then
        # be too small, so it is checked.
        exact = error_limit(metric, mechanism.with_n(1)).value / alpha
        if not exact <= MOST_RECORDS:
            return None
        high = max(1, math.ceil(exact * (1 - 1e-12)))
        for n in (high, high + 1):
            if enough(n):
                return n
    while not enough(high):
        high *= 2
        if high > MOST_RECORDS:
            return None
    return least_whole(enough, high // 2, high)


def _constant_answer(workload: Workload, metric: Metric) -> ErrorLimit:
    """An upper bound on the error of the best constant answer."""
    hull, diameter, k = workload.affine_hull(), workload.l2_diameter(), workload.n_queries
    K = sensitivity_polytope(workload)
    if isinstance(metric, WorstCase):
        size = workload.universe.size
        if k > MAX_COORDINATES or (size is not None and size > MAX_PROJECTED_UNIVERSE):
            return ErrorLimit(diameter, "the l2 diameter of the answers", simulated=False)
        axes = np.eye(k)
        half = float(K.breadth(axes).max()) / 2
        return ErrorLimit(half, "half the widest range of a query", simulated=False)
    r = hull.dimension
    radius, reason = (
        diameter * math.sqrt(r / (2 * (r + 1))),
        "the radius of a ball around the answers (Jung)",
    )
    if K.implements(Body.vertex_list):
        points = K.vertex_list()
        middle = (points.max(axis=0) + points.min(axis=0)) / 2
        listed = float(np.linalg.norm(points - middle, axis=1).max())
        if listed < radius:
            radius, reason = (
                listed,
                "the largest distance of an answer from the middle of all ranges",
            )
    return ErrorLimit(radius / math.sqrt(k), reason, simulated=False)
