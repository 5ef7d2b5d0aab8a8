"""The upper side of a bracket: the numbers of records that the mechanisms of this library need."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial, singledispatch

import numpy as np

from geomdp._numerics.bisection import least_whole
from geomdp.advice.candidates import CANDIDATES
from geomdp.advice.comparison.post_processing import MAX_PROJECTED_UNIVERSE
from geomdp.advice.comparison.trials import Trials
from geomdp.advice.setting import THOROUGH, Setting
from geomdp.advice.steps import PROJECTED
from geomdp.bodies import Body, sensitivity_polytope
from geomdp.bounds import RMS, Bound, MeanL2, Metric, Side, WorstCase
from geomdp.mechanisms import (
    AdditiveMechanism,
    Mechanism,
    PredictionKind,
    Projected,
    SecondMoment,
)
from geomdp.mechanisms.post_processed.projected import STANDARD_ERRORS, squared_noise_limit
from geomdp.noise import (
    GeometricNoise,
    KNormNoise,
    LaplaceNoise,
    LatticeBoxNoise,
    StaircaseNoise,
)
from geomdp.noise.maxima import expected_maximum
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import Workload

#: A mechanism that needs more records than this gives no bound. float64 holds all whole numbers up
#: to this limit exactly.
MOST_RECORDS = 1 << 53
#: A prediction that is below all bounds in closed form by more than this share comes from a
#: simulated bound. Smaller differences can come from the duality gap that predictions of
#: projections include.
TELLS_APART = 1e-5
#: Largest number k of queries for which the range of each query is computed, to find the best
#: constant answer. This takes k breadths of the sensitivity polytope.
MAX_COORDINATES = 1 << 12


@dataclass(frozen=True)
class ErrorLimit:
    """An upper bound on the error of a mechanism for all data sets of n records.

    Parameters
    ----------
    value : float
        The bound, per query.
    reason : str
        What proves the bound.
    simulated : bool
        Whether the bound uses an upper confidence limit from public draws.
    """

    value: float
    reason: str
    simulated: bool


def upper_bounds(
    workload: Workload, *, epsilon: float, alpha: float, metric: Metric, adjacency: Adjacency
) -> tuple[list[Bound], dict[str, str]]:
    """Upper bounds on the sample complexity from every mechanism that applies, best first.

    The function tries a constant answer, and every additive mechanism with an exact sampler, alone
    and projected on the sensitivity polytope. For the workload `SecondMoment`, it also tries the
    mechanism of this name. It leaves out JL mechanisms. Their proved error is an average over the
    random map, and their geometry depends on n. The geometry of each mechanism is computed once and
    used for all n. The error of additive noise is proportional to 1/n, so one division gives the
    least n. For other mechanisms, bisection finds the least n.

    Parameters
    ----------
    workload : Workload
        k queries.
    epsilon : float
        Privacy loss of pure differential privacy.
    alpha : float
        Target error per query.
    metric : Metric
        `MeanL2`, `RMS` or `WorstCase`.
    adjacency : Adjacency
        Neighbour relation.

    Returns
    -------
    list of Bound
        One bound per mechanism. The statement names the mechanism. The certificate is the mechanism
        itself, built for the number of records of the bound. A constant answer has no certificate.
        The list is empty if no mechanism reaches `alpha`.
    dict of str to str
        For each other mechanism that was tried, the reason why it gives no bound.

    Raises
    ------
    ValueError
        If `metric` is none of the three.
    """
    setting = Setting(workload, 1, PureDP(epsilon), adjacency, True, THOROUGH)
    built, refused = _built(setting)
    constant = _constant_answer(workload, metric)
    words = f"{metric.name} at most {alpha:g} under {epsilon:g}-DP ({adjacency.value})"
    found = []
    if constant.value <= alpha:
        found.append(Bound(1.0, Side.UPPER, f"a constant answer has {words}: {constant.reason}"))
    else:
        refused["a constant answer"] = f"its error is {constant.value:.4g}: {constant.reason}"
    for name, mechanism in built.items():
        n = _least_records(mechanism, alpha, metric)
        if n is None:
            refused[name] = f"it needs more than {MOST_RECORDS} records"
            continue
        winner = mechanism.with_n(n)
        limit = error_limit(metric, winner)
        statement = f"{name} has {words} on every data set of {n} records, by {limit.reason}"
        assumptions = (_SIMULATED,) if limit.simulated else ()
        found.append(Bound(float(n), Side.UPPER, statement, assumptions, winner))
    return sorted(found, key=lambda bound: bound.value), refused


_SIMULATED = (
    "a mean over the noise enters through an upper confidence limit at level 1e-6 from public "
    "draws (asymptotic)"
)


def _built(setting: Setting) -> tuple[dict[str, Mechanism], dict[str, str]]:
    """Mechanisms with exact samplers, by name, and the reasons why the others are left out.

    On universes larger than `MAX_PROJECTED_UNIVERSE`, a projection is tried only for the noise with
    the least predicted error.
    """
    trials = Trials(setting)
    for row in CANDIDATES:
        if PROJECTED in row.steps:
            trials.attempt(row)
    noises = trials.built.copy()
    size = setting.workload.universe.size
    if noises and size is not None and size > MAX_PROJECTED_UNIVERSE:
        noises = [min(noises, key=lambda trial: trial.prediction.value)]
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
        # The error for n records is the error for 1 record divided by n. The factor 1 - 1e-12 makes
        # up for rounding errors of the quotient. The result may then be one record too small, so it
        # is checked.
        exact = error_limit(metric, mechanism.with_n(1)).value / alpha
        if not exact <= MOST_RECORDS:
            return None
        high = max(1, math.ceil(exact * (1 - 1e-12)))
        return high if enough(high) else high + 1
    while not enough(high):
        high *= 2
        if high > MOST_RECORDS:
            return None
    return least_whole(enough, high // 2, high)


@singledispatch
def error_limit(metric: Metric, mechanism: Mechanism) -> ErrorLimit:
    """Upper bound on the error of `mechanism` in `metric`, for every data set of n records.

    Parameters
    ----------
    metric : MeanL2, RMS or WorstCase
        How the error is measured.
    mechanism : Mechanism
        A mechanism for n records, with an exact sampler.

    Returns
    -------
    ErrorLimit

    Raises
    ------
    ValueError
        If `metric` is none of the three.

    References
    ----------
    Formula sheet JL-DEF, JL-KN, JL-L13, JL-L13b.
    """
    del mechanism
    raise ValueError(f"metric must be MeanL2, RMS or WorstCase, got {metric!r}")


@error_limit.register
def _(metric: RMS, mechanism: Mechanism) -> ErrorLimit:
    del metric
    prediction = mechanism.predicted_rmse
    value = prediction.value + STANDARD_ERRORS * prediction.stderr
    return ErrorLimit(value, prediction.source, prediction.stderr > 0 or _simulated(mechanism))


@error_limit.register
def _(metric: MeanL2, mechanism: Mechanism) -> ErrorLimit:
    """Bound on the mean l2 error Y, from the bound on its root mean square: E Y <= (E Y^2)^(1/2).

    K-norm noise of a body K of dimension r is R U, with a uniform point U of K and an independent
    radius R. Since (E R)^2 = (r + 1) / (r + 2) E R^2, the bound is multiplied by
    ((r + 1) / (r + 2))^(1/2). Noises for few queries bound E ||Z||_2 themselves.
    """
    del metric
    limit = error_limit(RMS(), mechanism)
    if not isinstance(mechanism, AdditiveMechanism):
        return limit
    noise = mechanism.noise
    if isinstance(noise, GeometricNoise | LatticeBoxNoise | StaircaseNoise):
        length = noise.mean_length() / math.sqrt(mechanism.workload.n_queries) / mechanism.n
        return ErrorLimit(length, "the expected length of its noise", simulated=False)
    if isinstance(noise, KNormNoise):
        r = noise.effective_dimension
    elif isinstance(noise, LaplaceNoise):
        r = noise.dimension
    else:
        return limit
    reason = f"{limit.reason} and the mean of its radius (JL-KN)"
    return ErrorLimit(limit.value * math.sqrt((r + 1) / (r + 2)), reason, limit.simulated)


@error_limit.register
def _(metric: WorstCase, mechanism: Mechanism) -> ErrorLimit:
    """The smaller of two bounds on the expected largest error of a query.

    The first bound is the root mean squared l2 norm of the error. The second bound, for additive
    noise only, is a bound on the expected largest coordinate of the noise.
    """
    del metric
    root = error_limit(RMS(), mechanism)
    value = root.value * math.sqrt(mechanism.workload.n_queries)
    euclidean = ErrorLimit(value, f"{root.reason}, in l2 norm", root.simulated)
    if not isinstance(mechanism, AdditiveMechanism):
        return euclidean
    largest = expected_maximum(mechanism.noise) / mechanism.n
    if largest > euclidean.value:
        return euclidean
    return ErrorLimit(largest, "the expected largest coordinate of its noise", simulated=False)


def _simulated(mechanism: Mechanism) -> bool:
    """Whether the prediction of a projection uses a simulated mean of a support function.

    The prediction is the least of a simulated bound and several bounds in closed form. If the
    prediction is below all closed forms, it is the simulated bound.
    """
    if not isinstance(mechanism, Projected):
        return False
    others = mechanism.workload.l2_diameter() ** 2
    if mechanism.inner.predicted_rmse.stderr == 0:
        others = min(squared_noise_limit(mechanism.inner), others)
    closed = math.sqrt(others / mechanism.workload.n_queries)
    return mechanism.predicted_rmse.value < closed * (1 - TELLS_APART)


def _constant_answer(workload: Workload, metric: Metric) -> ErrorLimit:
    """The error of the best known answer that does not depend on the records."""
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
    radius, reason = diameter * math.sqrt(r / (2 * (r + 1))), "a ball around the answers (Jung)"
    if K.implements(Body.vertex_list):
        points = K.vertex_list()
        middle = (points.max(axis=0) + points.min(axis=0)) / 2
        listed = float(np.linalg.norm(points - middle, axis=1).max())
        if listed < radius:
            radius, reason = listed, "largest distance of an answer from the middle of all ranges"
    return ErrorLimit(radius / math.sqrt(k), reason, simulated=False)
