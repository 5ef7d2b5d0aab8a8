"""Build the candidates, note the reason for each candidate left out, and rank the others."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from geomdp import mechanisms
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp.advice.candidates import (
    CANDIDATES,
    FITTED,
    PROJECTED,
    SHRUNK,
    WIDTH_DIRECTIONS,
    Candidate,
    Guarantees,
    Step,
)
from geomdp.advice.setting import (
    OPERATIONS_A_SECOND,
    PRODUCT_SPEED,
    InapplicableError,
    Setting,
    UntriedError,
    axes_work,
    breadth_work,
    draw_seconds,
    projection_work,
)
from geomdp.bodies import MissingOracle
from geomdp.bounds.problem import CHANGES
from geomdp.mechanisms import AdditiveMechanism, Mechanism, Prediction, PredictionKind, Projected
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.mechanisms.additive_noise.knorm import is_around_differences_alone
from geomdp.mechanisms.base import FixedDataset, predict_on_prior
from geomdp.mechanisms.projected import (
    MAX_DRAWS,
    MAX_NUMBERS,
    MIN_DRAWS,
    Fitted,
    reachable_body,
    tried_projector,
)
from geomdp.noise import GaussianNoise
from geomdp.privacy import ZCDP, ApproxDP, Exact, PureDP, gaussian_scale
from geomdp.privacy.guarantees import SamplerStatus
from geomdp.workloads import Marginals, Parities, Workload, WorkloadSizeError
from geomdp.workloads.tables import ProductQueries, TableQueries

# Building the mechanism of each candidate

#: Work of the set-ups of all purely private noises for tables, divided by `axes_work`. By default
#: they are tried beside Gaussian noise for pair tables of up to 28 binary columns, in 1.2 s.
PURE_TABLES_SHARE = 8.0
#: Errors of a set-up after which a mechanism cannot release.
CANNOT_RELEASE = (WorkloadSizeError, MissingOracle, MemoryError)


def _why(reason: Exception) -> str:
    """The reason in words, of which a ``MemoryError`` has none."""
    memory = "its set-up does not fit into the memory of this machine"
    return memory if isinstance(reason, MemoryError) else str(reason)


@dataclass(frozen=True)
class Built:
    """A candidate that applies, with its prediction and the `seconds` of set-up and prediction."""

    candidate: Candidate
    step: Step | None
    mechanism: Mechanism
    prediction: Prediction
    sampler: SamplerStatus
    seconds: float
    #: The error on uniform data, or NaN.
    simulated: float = math.nan

    @property
    def name(self) -> str:
        return _name(self.candidate, self.step)

    @property
    def exact(self) -> bool:
        return self.sampler == Exact()

    @property
    def noise(self) -> AdditiveMechanism | None:
        """The additive mechanism before post-processing, if it answers the same workload."""
        return additive_within(self.mechanism)


def _name(candidate: Candidate, step: Step | None) -> str:
    return candidate.name if step is None else f"{step.name}({candidate.name})"


@dataclass
class Trials:
    """The candidates that apply to a setting, in the order of trial, and why others are `refused`,
    of which those `untried` may apply, but cost too much to try.
    """

    setting: Setting
    built: list[Built] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    untried: set[str] = field(default_factory=set)

    @property
    def least(self) -> float:
        """The least prediction so far; inf if there is none."""
        return min((trial.prediction.value for trial in self.built), default=math.inf)

    def attempt(self, candidate: Candidate, floor: float | None = None) -> None:
        """Build a candidate; with a `floor` of its prediction, not if it is stronger than asked and
        cannot be the best, or would take long for tables of many columns.
        """
        known = replace(self.setting, least=self.least)

        def build() -> Mechanism:
            if floor is not None and candidate.is_stronger(known):
                known.check_floor("error", floor)
                if isinstance(known.workload, TableQueries | ProductQueries | Marginals | Parities):
                    known.check_cost("set-up", work=PURE_TABLES_SHARE * axes_work(known.workload))
            return candidate.compared(known)

        self.record(candidate, None, build)

    def record(
        self, candidate: Candidate, step: Step | None, build: Callable[[], Mechanism]
    ) -> None:
        """Build a candidate and predict its error, or note why it is left out."""
        start, name = time.perf_counter(), _name(candidate, step)
        try:
            mechanism = build()
            prediction, sampler = mechanism.predicted_rmse, mechanism.sampler
        except (InapplicableError, *CANNOT_RELEASE) as reason:
            self.refused[name] = _why(reason)
            # The estimates of cost do not cover all memory. The others must still be compared.
            if isinstance(reason, UntriedError | MemoryError):
                self.untried.add(name)
            return
        seconds = time.perf_counter() - start
        self.built.append(Built(candidate, step, mechanism, prediction, sampler, seconds))


# Shrunk and projected noise, after a check of the time that they would take

#: Largest universe for which the noise of every additive mechanism may be projected. Above it, only
#: the best noise is projected if support functions have no closed form and are slow.
MAX_PROJECTED_UNIVERSE = 1 << 14
#: Most seconds of the public draws of noise that bound the error after projection.
MAX_DRAWING_SECONDS = 2.5


def shrunk(noisy: Built, setting: Setting) -> Mechanism:
    _check_projection(noisy, setting)
    return SHRUNK.after(noisy.mechanism)


def projected(noisy: Built, setting: Setting, *, wanted: bool) -> Mechanism:
    """Build projected noise, or raise an error if it is not wanted, too slow or useless."""
    inner = noisy.mechanism
    assert isinstance(inner, AdditiveMechanism)
    if not wanted:
        raise UntriedError(
            f"the bound on its error would take long: records have {setting.workload.universe.size}"
            f" possible values, and with more than {MAX_PROJECTED_UNIVERSE} only the noise with "
            "the least predicted error is projected"
        )
    _check_projection(noisy, setting)
    seconds = draw_seconds(inner.noise)
    if seconds * MAX_DRAWS > MAX_DRAWING_SECONDS:
        raise UntriedError(
            f"the bound on its error would take long: it averages over {MAX_DRAWS} draws of the "
            f"noise, each of which would take about {seconds:.2g} s"
        )
    per_draw = breadth_work(setting.workload) + seconds * OPERATIONS_A_SECOND
    # The bound for Gaussian noise is a Gaussian width, a mean over a fixed number of directions.
    fixed = isinstance(inner.noise, GaussianNoise)
    sampled = min(MAX_DRAWS, max(MIN_DRAWS, MAX_NUMBERS // inner.noise.dimension))
    draws = WIDTH_DIRECTIONS if fixed else sampled
    affordable = draws if per_draw == 0 else int(setting.budget.work / per_draw)
    averaged = draws if fixed else max(MIN_DRAWS, min(draws, affordable))
    setting.check_cost("bound", work=averaged * per_draw)
    return Projected(inner, draws=max(MIN_DRAWS, min(MAX_DRAWS, affordable)))


def _check_projection(noisy: Built, setting: Setting) -> None:
    """Raise an error if projections are useless, impossible or would take too long."""
    workload = setting.workload
    if workload.l2_diameter() == 0:
        raise InapplicableError(f"all data sets of {setting.n} records have the same answers")
    setting.check_public_count()
    tried_projector(reachable_body(workload), setting.adjacency)
    work = projection_work(workload, _spread(noisy.mechanism))
    setting.check_cost("projection in each release", work=work)


# A lower bound on the error of all purely private noise, from the error of Gaussian noise.
#
# Let D be the set of all differences of the sums of neighbours. Let Z be noise that is added to
# sums of answers and makes them epsilon-DP. Take any w in D, any direction u, and a = <u, w> > 0.
# The laws of <u, Z> and <u, Z> + a have a density ratio between e^-epsilon and e^epsilon. Divide
# <u, Z> by a, and split it into a whole number and the fractional part. Given the fractional part,
# the whole number k has probabilities p(k) with p(k + 1) / p(k) in [q, 1 / q] for q = e^-epsilon.
# Among all such p and for every centre c, the means of (k - c)^2 and of |k - c| are least for p(k)
# proportional to q^|k| and c = 0: geometric noise. (To prove it, shift k so that |c| <= 1/2, and
# let V be the claimed least mean. The sums over i >= 0 of q^i ((d + i)^2 - V) and of
# q^i (d + i - V) are at least 0 for every d >= 1/2. So a tail of p with a given first probability
# adds least to the mean minus V if the tail falls by the factor q in each step.) Hence
#
#     Var <u, Z> >= <u, w>^2 / (2 sinh(epsilon / 2)^2),      E |<u, Z>| >= |<u, w>| / sinh(epsilon).
#
# The first inequality for all u says that the ellipsoid
# {v : v^T Cov(Z)^-1 v <= 2 sinh(epsilon/2)^2} contains D. Let T be the least trace of S over all
# ellipsoids {v : v^T S^-1 v <= 1} that contain D. Then E ||Z||^2 >= T / (2 sinh(epsilon / 2)^2).
# The best Gaussian noise has E ||Z||^2 = T sigma^2, where sigma is its scale for sensitivity 1.
# Under rho-zCDP, sigma^2 = 1 / (2 rho). So no epsilon-DP noise is better if sinh(epsilon / 2)^2 is
# at most rho. For rho = epsilon tanh(epsilon / 2), as for any epsilon-DP mechanism, this holds for
# rho up to 1.73. The epsilon of Laplace and geometric noise is larger: see `most_epsilon`.
#
# Ghosh-Roughgarden-Sundararajan 2012 and Geng-Viswanath 2016 for one query; formula sheet JL-ELL,
# JL-GAUSS, JL-L13b, X-TANH. The bound for many queries is derived here.

#: The error of every Gaussian noise is at least this share of the error of the best one found: the
#: trace of the ellipsoid of `Matrix` exceeds the least trace by 0.5% at most.
OPTIMAL = 0.995
#: For a larger epsilon no bound is stated, because sinh(2 epsilon) could overflow.
MOST_EPSILON = 300.0
#: Number of random elements of the universe. Their answers are compared in pairs.
ELEMENTS = 64


def pure_noise_floor(trials: Trials, epsilon: float) -> float:
    """A lower bound, per query, on predictions of epsilon-DP noise, projected or not; 0 if none.

    For the noise Z on the sums of m answers over n records and the hull K of all answers, with
    support function h_K, a prediction of `Projected` is at least (s / m)^(1/2), where s is the
    least of E ||Z||^2 / n^2, E h_K(Z) / n and the squared diameter of K (JL-L13, JL-L13b). For any
    q, q' in K, E h_K(Z) >= E |<Z, q - q'>| / 2. The inequalities above bound both means. Under
    add/remove, q - q' is a sum of two differences of neighbours, so epsilon counts twice.
    """
    setting = trials.setting
    if isinstance(setting.privacy, PureDP) or epsilon > MOST_EPSILON:
        return 0.0
    gaussian = min((t.prediction.value for t in trials.built if _is_optimal(t)), default=0.0)
    unit = gaussian / gaussian_scale(1.0, setting.privacy)
    noise = OPTIMAL * unit / (math.sqrt(2) * math.sinh(epsilon / 2))
    if noise < trials.least:
        return noise  # The other terms can only lower the result further.
    from scipy.spatial.distance import cdist  # slow import

    workload, m = setting.workload, setting.workload.n_queries
    elements = workload.universe.sample(ELEMENTS, np.random.default_rng(PUBLIC_SEED))
    answers = workload.evaluate(elements)
    widest = float(cdist(answers, answers, "sqeuclidean").max())
    support = widest / (2 * math.sinh(CHANGES[setting.adjacency] * epsilon))
    squares = (m * noise**2, support / setting.n, workload.l2_diameter() ** 2)
    return math.sqrt(min(squares) / m)


def _is_optimal(trial: Built) -> bool:
    """Whether `trial` is Gaussian noise alone, and none has less than `OPTIMAL` times its error."""
    if trial.step is not None or trial.prediction.kind is not PredictionKind.EXACT:
        return False
    match trial.mechanism:
        case mechanisms.Matrix(privacy=ZCDP() | ApproxDP(), workload=workload, adjacency=adjacency):
            # If there are too many differences to list, the ellipsoid is searched only in a family
            # that is easy to compute.
            return is_around_differences_alone(workload, adjacency)
        case mechanisms.ResidualGaussian(is_best=is_best):
            return is_best
    return False


# The ranking by predicted error, with the rules for candidates that tie

#: Two predictions tie if their difference is at most the share `TIE` of the smaller one, which
#: covers the duality gap of projections, plus `TIE_STANDARD_ERRORS` standard errors of the
#: difference.
TIE, TIE_STANDARD_ERRORS = 1e-5, 3.0
#: Shrinking is advised only if the prediction falls by more than this share. Shrinking has a bias,
#: so its error is near its bound for many data sets; the error of a projection is below for most.
WORTHWHILE = 0.01


def ready_to_release(trials: Trials) -> list[Built]:
    """The ranking, without candidates that cannot release; the first candidate is set up."""
    while ranked := rank(trials.built):
        leader = ranked[0]
        try:
            leader.mechanism.set_up()
        except CANNOT_RELEASE as reason:
            why = _why(reason)
        else:
            # After set-up, the prediction can differ by rounding from that of the ranking.
            own = leader.mechanism.predicted_rmse
            ready = replace(leader, prediction=own, sampler=leader.mechanism.sampler)
            return [ready, *ranked[1:]]
        trials.built.remove(leader)
        trials.refused[leader.name] = why
    return []


def rank(built: list[Built]) -> list[Built]:
    """The candidates by prediction, but first the one that the rules of `advise` find."""
    if not built:
        return []
    first = min((trial.prediction for trial in built), key=lambda prediction: prediction.value)

    def ties(prediction: Prediction) -> bool:
        stderr = math.hypot(prediction.stderr, first.stderr)
        return prediction.value <= first.value * (1 + TIE) + TIE_STANDARD_ERRORS * stderr

    tied = [trial for trial in built if ties(trial.prediction)]
    leader = min(tied, key=lambda trial: not trial.exact)  # the first, so the simplest
    rivals = [trial for trial in tied if trial.exact == leader.exact]
    if len(rivals) > 1:
        rivals = [trial for trial in rivals if _is_rounded(trial.mechanism)] or rivals
        leader = rivals[0]
    noise = _with_step(built, leader, None)
    limit = leader.prediction.value * (1 + WORTHWHILE)
    if leader.step is SHRUNK and noise is not None and noise.prediction.value <= limit:
        leader = noise
    if leader.step is None:
        # If several noises tie, choose the noise with the lowest error bound after a projection.
        equal = [leader, *(t for t in rivals if t.step is None)]
        projected = [found for t in equal if (found := _with_step(built, t, PROJECTED))]
        leader = min(projected, key=lambda trial: trial.prediction.value, default=leader)
    rest = sorted(built, key=lambda trial: trial.prediction.value)
    return [leader, *(trial for trial in rest if trial is not leader)]


def _with_step(built: list[Built], trial: Built, step: Step | None) -> Built | None:
    """The built candidate, if any, that applies `step` after the noise of `trial`."""
    same = (other for other in built if other.candidate is trial.candidate)
    return next((other for other in same if other.step is step), None)


def _is_rounded(mechanism: Mechanism) -> bool:
    """Whether unseeded releases round noise correctly; False if the mechanism cannot be set up."""
    try:
        return mechanism.grid is not None
    except CANNOT_RELEASE:
        return False


# Noise alone, then post-processed noise, then mechanisms with a geometry that depends on n


def try_for_every_n(setting: Setting) -> Trials:
    """Try all noise whose geometry does not depend on n: alone, the best shrunk, then projected."""
    workload, trials = setting.workload, Trials(setting)
    slow = (workload.universe.size or 0) > MAX_PROJECTED_UNIVERSE and breadth_work(workload) > 0
    # Noise that is provably not the best for n records is not the best for more records either.
    floors: dict[Guarantees, float] = {}
    for candidate in sorted(CANDIDATES, key=lambda each: each.is_stronger(setting)):
        guarantees = candidate.guarantees
        if candidate.is_stronger(setting) and guarantees not in floors:
            floors[guarantees] = pure_noise_floor(trials, guarantees.most_epsilon(setting))
        if not candidate.depends_on_n:
            trials.attempt(candidate, floors.get(guarantees))
    noises = [trial for trial in rank(trials.built) if PROJECTED in trial.candidate.steps]
    # Only the best noise is shrunk: the prediction of shrunk noise grows with that of the noise.
    for noisy in noises[:1]:
        trials.record(noisy.candidate, SHRUNK, partial(shrunk, noisy, setting))
    for noisy in noises:
        build = partial(projected, noisy, setting, wanted=noisy is noises[0] or not slow)
        trials.record(noisy.candidate, PROJECTED, build)
    return trials


def try_all(setting: Setting) -> Trials:
    """Try all candidates. Some that provably cannot be the best are left out without a set-up."""
    trials = try_for_every_n(setting)
    for candidate in CANDIDATES:
        if candidate.depends_on_n:
            trials.attempt(candidate, floor=0.0)
    return trials


# A fit in place of a projection, if it errs less in simulations on public data sets.
# Proved bounds cannot: the bound of a fit is mostly twice that of a projection, but its real error
# is mostly smaller.

#: A fit is simulated only if the root mean squared length of the noise is at least this share of
#: the diameter of the answers. For less noise, it gained less than 1% on uniform data.
FEW = 0.05
#: Least and largest number of simulated releases of a mechanism on each data set; more than the
#: least if all take at most `QUICK` operations, a quarter of a second.
LEAST_RELEASES, MOST_RELEASES, QUICK = 8, 16, OPERATIONS_A_SECOND / 4
#: Number of elements in the data set of several elements.
FEW_ELEMENTS = 10
#: For each of `public_datasets`, the largest error with which the fit is advised, divided by the
#: error of the first candidate. On data of few elements, chance moves the ratio by about 5%. For
#: prefix sums on such data, the error of the fit can really be larger, by 10% to 20%.
LIMITS = (1 - WORTHWHILE, 1.05, 1.05)


def with_fit(ranked: list[Built], trials: Trials) -> list[Built]:
    """The ranking, with the fit of the best noise in front if it errs less on public data."""
    leader, setting = ranked[0], trials.setting
    if leader.step is None or FITTED not in leader.candidate.steps:
        return ranked
    trials.record(leader.candidate, FITTED, partial(_fitted, leader, ranked, setting))
    fit = next((trial for trial in trials.built if trial.step is FITTED), None)
    if fit is None:
        return ranked
    assert leader.noise is not None  # `_fitted` needs it
    work = _work(leader.noise)
    affordable = int(QUICK / work) if work > 0 else LEAST_RELEASES
    releases = max(LEAST_RELEASES, min(MOST_RELEASES, affordable))
    uniform, *few = public_datasets(setting.workload, setting.n)
    fit = replace(fit, simulated=_error(fit, uniform, releases))
    leader = replace(leader, simulated=_error(leader, uniform, releases))
    wins = fit.simulated <= leader.simulated * LIMITS[0] and all(
        _error(fit, prior, releases) <= _error(leader, prior, releases) * limit
        for prior, limit in zip(few, LIMITS[1:], strict=True)
    )
    first, second = (fit, leader) if wins else (leader, fit)
    rest = sorted([second, *ranked[1:]], key=lambda trial: trial.prediction.value)
    return [first, *rest]


def public_datasets(workload: Workload, n: int) -> list[FixedDataset]:
    """Three public data sets of n records: uniform, ten elements, and the farthest of the ten."""
    rng = np.random.default_rng(PUBLIC_SEED)
    uniform = workload.universe.sample(n, rng)
    elements = workload.universe.sample(FEW_ELEMENTS, rng)
    answers = workload.evaluate(elements)
    farthest = int(np.argmax(((answers - answers.mean(axis=0)) ** 2).sum(axis=1)))
    chosen = (elements[np.arange(n) % FEW_ELEMENTS], elements[np.full(n, farthest)])
    return [FixedDataset(uniform), *(FixedDataset(records) for records in chosen)]


def _error(trial: Built, prior: FixedDataset, releases: int) -> float:
    """Simulated root mean squared error per query. One seed gives all mechanisms the same noise."""
    return predict_on_prior(trial.mechanism, prior, releases, rng=PUBLIC_SEED).value


def _spread(noise: Mechanism) -> float:
    """Root mean squared length of the noise, divided by the diameter of the answers."""
    workload = noise.workload
    return noise.predicted_rmse.value * math.sqrt(workload.n_queries) / workload.l2_diameter()


def _work(noise: AdditiveMechanism) -> float:
    """Operations of two projections for the fit and one for the first candidate, per data set."""
    draws = 2 * draw_seconds(noise.noise) * OPERATIONS_A_SECOND
    return len(LIMITS) * (3 * projection_work(noise.workload, _spread(noise)) + draws)


def _fitted(leader: Built, ranked: list[Built], setting: Setting) -> Fitted:
    """The fit after the noise of `leader`, set up; `InapplicableError` if it is not possible."""
    noise = leader.noise
    assert noise is not None
    same = (trial for trial in ranked if trial.candidate is leader.candidate)
    nearest = next((trial.mechanism for trial in same if trial.step is PROJECTED), None)
    if not isinstance(nearest, Projected):
        raise InapplicableError(
            "its bound is twice that of the projection, and the projection is left out"
        )
    if not leader.exact:
        raise InapplicableError(
            "its bound is twice that of the projection, and a simulation compares only fits of "
            "noise with an exact sampler"
        )
    spread = _spread(noise)
    if spread < FEW:
        raise InapplicableError(
            f"its bound is twice that of the projection, and with {setting.n} records a fit gains "
            f"little: the noise is {spread:.2g} times the diameter of the answers, less than {FEW}"
        )
    _check_simulation(noise, setting)
    fit = Fitted.after(nearest)
    fit.set_up()
    return fit


def _check_simulation(noise: AdditiveMechanism, setting: Setting) -> None:
    workload, m = setting.workload, setting.workload.n_queries
    record = workload.universe.sample(1, np.random.default_rng(PUBLIC_SEED))
    # Three matrices have at most m^2 entries. Eigenvectors of order r take about 10 r^3 operations.
    r = workload.affine_hull().dimension
    axes = (2.0 * m * m * r + 10.0 * r**3) / PRODUCT_SPEED
    setting.check_cost("norm", memory=24.0 * m * m, work=axes)
    releases = LEAST_RELEASES * _work(noise)
    counting = 2.0 * len(LIMITS) * setting.n * m / PRODUCT_SPEED
    setting.check_cost(
        "simulation", memory=4.0 * setting.n * record.nbytes, work=releases + counting
    )


def ranking(setting: Setting) -> tuple[list[Built], Trials]:
    """The candidates that can release, the best first, and the trials of all."""
    trials = try_all(setting)
    ranked = ready_to_release(trials)
    return (with_fit(ranked, trials) if ranked else []), trials
