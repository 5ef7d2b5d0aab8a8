"""Lower and upper bounds on the number of records that the best mechanism needs."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from geomdp import bounds
from geomdp._numerics.linalg import least_whole
from geomdp._typing import RandomState
from geomdp.advice.candidates import CANDIDATES, PROJECTED
from geomdp.advice.comparison import MAX_PROJECTED_UNIVERSE, Trials
from geomdp.advice.setting import THOROUGH, Setting
from geomdp.bodies import Body, CrossPolytope, sensitivity_polytope
from geomdp.bounds import RMS, Bound, Certificate, MeanL2, Metric, Side, WorstCase
from geomdp.bounds.certificates import Rung, covering_bound
from geomdp.bounds.guessing import guess_rungs
from geomdp.bounds.lines import line_rungs, query_line_rungs
from geomdp.bounds.packings import DEFAULT_EFFORT
from geomdp.bounds.problem import MEAN_L2, Problem
from geomdp.mechanisms import AdditiveMechanism, Mechanism, PredictionKind, Projected, SecondMoment
from geomdp.mechanisms.additive_noise.base import InexactSumsError
from geomdp.mechanisms.base import l1_sensitivity
from geomdp.mechanisms.projected import STANDARD_ERRORS, expected_support_bound, squared_noise_limit
from geomdp.noise import GaussianNoise, KNormNoise, LaplaceNoise
from geomdp.noise.base import KnownSizes, Noise
from geomdp.noise.tails import expected_maximum, is_log_concave
from geomdp.privacy import Adjacency, Privacy
from geomdp.workloads import Marginals, Workload, WorkloadSizeError

if TYPE_CHECKING:
    import pandas as pd


# The lower side, by packings, guesses and lines, alone and combined

#: Separation factors c that are tried besides the factor of the metric: answers of packed data sets
#: are at least c alpha apart. M data sets give a bound proportional to (ln(M - 1) + log_odds) / c.
FACTORS = (2.125, 2.25, 2.5, 2.75, 3.0, 3.5, 5.0)

#: Effort of a search among data sets of one element: with the smallest `pool`, no random multisets
#: of elements are drawn.
SINGLE_ELEMENTS = bounds.Effort(pool=3, exchanges=0)
#: Largest numbers of answers (elements times queries) in the first search with each separation
#: factor, and in the later search with the best one, where a packing of 2^11 data sets takes
#: seconds; and a number of elements that is always allowed.
FORM_ANSWERS, BEST_ANSWERS, LEAST_ELEMENTS = 1 << 18, 1 << 21, 1 << 8


def lower_bounds(
    workload: Workload, question: Problem, rng: RandomState
) -> tuple[list[Bound], dict[str, str]]:
    """Lower bounds from every method, best first, and the reasons why others do not apply."""
    found: list[Bound] = []
    refused: dict[str, str] = {}
    for name, argue in _arguments(workload, question, np.random.default_rng(rng)).items():
        try:
            found.append(argue())
        except (bounds.SideConditionError, WorkloadSizeError) as reason:
            refused[name] = str(reason)
    found.sort(key=lambda bound: -bound.value)
    if not found:
        return [Bound(0.0, Side.LOWER, "n >= 1, as no argument proves more")], refused
    other = line_rungs(workload, question)
    if question.epsilon is not None:
        other += guess_rungs(workload, question)
        if isinstance(question.metric, WorstCase):
            other += query_line_rungs(workload, question)
    together = _together(found, other)
    return ([together, *found] if together.value > found[0].value else found), refused


def _arguments(
    workload: Workload, question: Problem, rng: np.random.Generator
) -> dict[str, Callable[[], Bound]]:
    """All methods that prove lower bounds, by name. They raise an error if they do not apply."""
    alpha, metric, adjacency = question.alpha, question.metric, question.adjacency
    # The question with its own separation factor, then with each of the others.
    factors = dict.fromkeys((metric.separation, *FACTORS))
    metrics = (replace(metric, separation=factor) for factor in factors)
    forms = tuple(replace(question, metric=own) for own in metrics)

    def codes() -> Bound:
        if not isinstance(workload, Marginals):
            why = "it applies only to `Marginals`, that is, to monotone conjunctions"
            raise bounds.SideConditionError(why)
        d, k = workload.d, workload.k
        return _best(forms, lambda form: bounds.marginal_bound(d, k, **_pure(form)))

    def query_lines() -> Bound:
        if not isinstance(metric, WorstCase):
            raise bounds.SideConditionError("it bounds only the largest error over the queries")
        epsilon = question.pure_epsilon
        return bounds.query_lines_bound(workload, epsilon=epsilon, alpha=alpha, adjacency=adjacency)

    return {
        "search over elements and multisets (JL-L6, JL-L7)": lambda: _search(workload, forms, rng),
        "codes and Hadamard blocks (JL-T25)": codes,
        "orthogonal lines": lambda: bounds.orthogonal_lines_bound(
            workload, privacy=question.guarantee, alpha=alpha, metric=metric, adjacency=adjacency
        ),
        "lines along single queries": query_lines,
        "guesses between separated elements": lambda: bounds.guessing_bound(
            workload, **_pure(question)
        ),
    }


def _pure(question: Problem) -> dict[str, Any]:
    """Arguments of a bound for pure privacy; `SideConditionError` for any other guarantee."""
    own = {"alpha": question.alpha, "metric": question.metric, "adjacency": question.adjacency}
    return {"epsilon": question.pure_epsilon, **own}


def _best(questions: tuple[Problem, ...], argue: Callable[[Problem], Bound]) -> Bound:
    """The largest bound over all separation factors; raises the last error if all fail."""
    found, errors = [], []
    for question in questions:
        try:
            found.append(argue(question))
        except bounds.SideConditionError as error:
            errors.append(error)
    if not found:
        raise errors[-1]
    return max(found, key=lambda bound: bound.value)


def _search(workload: Workload, questions: tuple[Problem, ...], rng: np.random.Generator) -> Bound:
    """Search packings of single elements for every separation factor, then of multisets for two."""

    def search(question: Problem, answers: int, effort: bounds.Effort) -> Bound:
        elements = max(LEAST_ELEMENTS, answers // workload.n_queries)
        effort = replace(effort, elements=min(effort.elements, elements))
        return bounds.packing_search(workload, **_pure(question), effort=effort, rng=rng)

    try:
        first = _best(questions, lambda form: search(form, FORM_ANSWERS, SINGLE_ELEMENTS))
    except bounds.SideConditionError:
        return search(questions[0], BEST_ANSWERS, DEFAULT_EFFORT)
    assert isinstance(first.certificate, Certificate)
    # The best factor and the factor of the question are often the same.
    again = tuple(dict.fromkeys((first.certificate.problem, questions[0])))
    try:
        further = _best(again, lambda form: search(form, BEST_ANSWERS, DEFAULT_EFFORT))
    except bounds.SideConditionError:
        return first
    return max(first, further, key=lambda bound: bound.value)


def _together(found: list[Bound], other: Sequence[Rung]) -> Bound:
    """The best bound from packings of one separation factor and `other` excluded ranges."""
    rungs: dict[Problem, list[Rung]] = {}
    for bound in found:
        assert isinstance(bound.certificate, Certificate)
        own = rungs.setdefault(bound.certificate.problem, list(other))
        own += bound.certificate.rungs
    covering = [covering_bound(parts, asked) for asked, parts in rungs.items()]
    return max(covering, key=lambda bound: bound.value)


# Upper bounds on the error of a mechanism in three measures, for every data set of n records

#: Bounds whose ratio differs from 1 by less count as equal: predictions include a duality gap.
TELLS_APART = 1e-5
#: Largest number of draws for the expected largest coordinate of a noise. The confidence limit is
#: then 1% to 3% above the mean.
MAXIMUM_DRAWS = 2048


@dataclass(frozen=True)
class ErrorLimit:
    """An upper bound on the error per query for all data sets of n records, and its reason; if it
    is `simulated`, it uses an upper confidence limit from public draws.
    """

    value: float
    reason: str
    simulated: bool = False


def error_limit(metric: Metric, mechanism: Mechanism) -> ErrorLimit:
    """Upper bound on the error, if the sampler is exact (JL-DEF, JL-KN, JL-L13, JL-L13b)."""
    match metric:
        case RMS():
            return _root_limit(mechanism)
        case MeanL2():
            return _mean_limit(mechanism)
        case WorstCase():
            return _largest_limit(mechanism)
    raise ValueError(f"metric must be MeanL2, RMS or WorstCase, got {metric!r}")


def _root_limit(mechanism: Mechanism) -> ErrorLimit:
    prediction = mechanism.predicted_rmse
    value = prediction.value + STANDARD_ERRORS * prediction.stderr
    return ErrorLimit(value, prediction.source, prediction.stderr > 0 or _simulated(mechanism))


def _mean_limit(mechanism: Mechanism) -> ErrorLimit:
    """Bound on E Y for the l2 error Y, from a bound on its root mean square (E Y^2)^(1/2) >= E Y.

    K-norm noise in dimension r is R U for a uniform point U of the body and an independent radius R
    with (E R)^2 = (r + 1) / (r + 2) E R^2. A `KnownSizes` noise states a bound itself.
    """
    limit = _root_limit(mechanism)
    if not isinstance(mechanism, AdditiveMechanism):
        return limit
    noise = mechanism.noise
    if isinstance(noise, KnownSizes):
        rounding = float(np.linalg.norm(mechanism.answer_rounding))
        length = noise.mean_length() / mechanism.n + rounding
        length /= math.sqrt(mechanism.workload.n_queries)
        return ErrorLimit(length, "the expected length of its noise")
    # If it is not exact, the bound includes rounding of answers, which has no random radius.
    exact = mechanism.predicted_rmse.kind is PredictionKind.EXACT
    if not (exact and isinstance(noise, KNormNoise | LaplaceNoise)):
        return limit
    r = noise.effective_dimension if isinstance(noise, KNormNoise) else noise.dimension
    reason = f"{limit.reason} and the mean of its radius (JL-KN)"
    return ErrorLimit(limit.value * math.sqrt((r + 1) / (r + 2)), reason, limit.simulated)


def _largest_limit(mechanism: Mechanism) -> ErrorLimit:
    """The root mean squared l2 norm of the error or, if less, the largest noise expected."""
    root = _root_limit(mechanism)
    value = root.value * math.sqrt(mechanism.workload.n_queries)
    euclidean = ErrorLimit(value, f"{root.reason}, in l2 norm", root.simulated)
    if not isinstance(mechanism, AdditiveMechanism):
        return euclidean
    # Every noise can be hashed: by its identity, or as a frozen dataclass of numbers.
    noise = _largest_noise(mechanism.noise)  # type: ignore[arg-type]
    largest = noise.value / mechanism.n + float(mechanism.answer_rounding.max())
    return euclidean if largest > euclidean.value else replace(noise, value=largest)


@lru_cache(maxsize=64)
def _largest_noise(noise: Noise) -> ErrorLimit:
    """Upper bound on E max over i of |Z_i| for the noise Z on sums, before the division by n.

    It is the smaller of a proved bound (alone for Gaussian noise, where the other can be too small,
    and for Laplace noise, where it is exact) and `expected_support_bound`, as the largest |z_i| is
    the support function of the cross-polytope at z: a confidence limit by Student's t for
    log-concave noise. Let Y be the largest |Z_i|, and q = Pr[Y > t]. Then E Y - E min(Y, t) is at
    most 2 t q / ln(1 / q) (Guedon 1999), 0.3% of t for q = 14 / 2048; for larger q, 2048 draws are
    all below t with probability less than 1e-6.
    """
    proved = expected_maximum(noise)
    limit = ErrorLimit(proved, "the expected largest coordinate of its noise")
    known = isinstance(noise, KnownSizes)
    exact = isinstance(noise, LaplaceNoise | GaussianNoise)
    if exact or not (known or is_log_concave(noise)):
        return limit
    drawn = expected_support_bound(noise, CrossPolytope(noise.dimension, 1.0), MAXIMUM_DRAWS)
    if drawn.value >= proved * (1 - TELLS_APART):
        return limit
    reason = f"the largest coordinate of its noise, {drawn.source}"
    return ErrorLimit(drawn.value, reason, simulated=not known)


def _simulated(mechanism: Mechanism) -> bool:
    """Whether the bound of a projection uses E h_K(Z), or a length with a standard error."""
    if not isinstance(mechanism, Projected):
        return False
    others = mechanism.workload.l2_diameter() ** 2
    if mechanism.inner.predicted_rmse.stderr == 0:
        others = min(squared_noise_limit(mechanism.inner), others)
    closed = math.sqrt(others / mechanism.workload.n_queries)
    return mechanism.predicted_rmse.value < closed * (1 - TELLS_APART)


# The upper side

#: A mechanism that needs more records gives no bound: float64 holds no larger number exactly.
MOST_RECORDS = 1 << 53
#: Largest number k of queries for which the range of each query is computed, by k breadths.
MAX_COORDINATES = 1 << 12
#: The assumption of a bound from public draws, with the number of mechanisms that are compared.
SIMULATED = (
    "a mean over the noise is replaced by an upper confidence limit from public draws. The limit "
    "is asymptotic. It fails with probability 1e-6 for one mechanism, and {} mechanisms are "
    "compared"
)


def upper_bounds(workload: Workload, question: Problem) -> tuple[list[Bound], dict[str, str]]:
    """Upper bounds from every mechanism, best first, and the reasons why others give none: the
    proved error of JL mechanisms, for example, is only an average over the random map.
    """
    privacy, alpha, metric = question.guarantee, question.alpha, question.metric
    adjacency = question.adjacency
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
        assumed = (SIMULATED.format(len(built)),) if limit.simulated else ()
        found.append(Bound(float(n), Side.UPPER, f"{shown}, by {limit.reason}", assumed, winner))
    refused |= left_out
    return sorted(found, key=lambda bound: bound.value), refused


def _built(setting: Setting) -> tuple[dict[str, Mechanism], dict[str, str]]:
    """Mechanisms with exact samplers, by name, and the reasons why the others are left out."""
    trials = Trials(setting)
    for row in CANDIDATES:
        if PROJECTED in row.steps:
            trials.attempt(row)
    noises = trials.built.copy()
    size = setting.workload.universe.size
    if noises and size is not None and size > MAX_PROJECTED_UNIVERSE:
        # Project the best noise with the guarantee asked, and the best with a stronger one.
        groups = [
            [t for t in noises if t.candidate.is_stronger(setting) is s] for s in (False, True)
        ]
        noises = [min(each, key=lambda trial: trial.prediction.value) for each in groups if each]
    for noisy in noises:
        trials.record(noisy.candidate, PROJECTED, partial(PROJECTED.after, noisy.mechanism))
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
            return ErrorLimit(diameter, "the l2 diameter of the answers")
        half = float(K.breadth(np.eye(k)).max()) / 2
        return ErrorLimit(half, "half the widest range of a query")
    r = hull.dimension
    radius = diameter * math.sqrt(r / (2 * (r + 1)))
    reason = "the radius of a ball around the answers (Jung)"
    if K.implements(Body.vertex_list):
        points = K.vertex_list()
        middle = (points.max(axis=0) + points.min(axis=0)) / 2
        listed = float(np.linalg.norm(points - middle, axis=1).max())
        if listed < radius:
            radius = listed
            reason = "the largest distance of an answer from the middle of all ranges"
    return ErrorLimit(radius / math.sqrt(k), reason)


# Both sides


@dataclass(frozen=True, repr=False)
class Bracket:
    """Lower and upper bound on the sample complexity sc of a workload: lower < sc <= upper.

    sc is the least n for which some mechanism with the guarantee, known or unknown, has error at
    most alpha on every data set of n records.

    Parameters
    ----------
    lower : Bound
        The largest lower bound. Its certificate lists packings, elements far apart or lines, which
        together exclude every number of records up to the bound; None if only sc >= 1 is proved.
    upper : Bound
        The smallest upper bound. Its certificate is a mechanism built for this number of records;
        None if a constant answer is accurate enough.
    question : Problem
        Guarantee, target error, metric and neighbour relation.
    lower_candidates, upper_candidates : tuple of Bound
        All bounds that were proved, best first.
    refused : dict of str to str
        For every method of proof or mechanism that gives no bound here, the reason why.

    Examples
    --------
    >>> import geomdp as gd
    >>> bracket = gd.sample_complexity_bracket(gd.workloads.Histogram(4), epsilon=1.0, alpha=0.01)
    >>> print(bracket)
    98 < sc <= 184, 1-DP (replace-one) and mean l2 error per query at most 0.01 (ratio 1.86)
    >>> bracket.upper.certificate.n
    184
    """

    lower: Bound
    upper: Bound
    question: Problem
    lower_candidates: tuple[Bound, ...]
    upper_candidates: tuple[Bound, ...]
    refused: dict[str, str]

    @property
    def gap(self) -> float:
        """The largest sc that the bracket allows, divided by the smallest; at least 1."""
        return self.upper.records / (self.lower.records + 1)

    @property
    def table(self) -> pd.DataFrame:
        """One row per bound or failed method, with columns side, records, statement, assumptions.

        Lower bounds come first, then upper bounds, both from best to worst, and then the methods
        and mechanisms that give no bound, with the side "none".
        """
        from geomdp.advice.printed_table import PrintedTable

        rows = [
            (bound.side.value, bound.records, bound.statement, "; ".join(bound.assumptions))
            for bound in (*self.lower_candidates, *self.upper_candidates)
        ]
        rows += [("none", math.nan, f"{name}: {why}", "") for name, why in self.refused.items()]
        return PrintedTable(rows, columns=["side", "records", "statement", "assumptions"])

    def __repr__(self) -> str:
        return f"Bracket({self})"

    def _repr_html_(self) -> str:
        proved = self.table[self.table["side"] != "none"]
        records = [b.records_text for b in (*self.lower_candidates, *self.upper_candidates)]
        shown = proved[["side", "records", "statement"]].assign(records=records)
        return f"<p>{html.escape(str(self))}</p>" + shown.to_html(index=False)

    def __str__(self) -> str:
        low, high = self.lower.records_text, self.upper.records_text
        return f"{low} < sc <= {high}, {self.question} (ratio {self.gap:.3g})"


def sample_complexity_bracket(
    workload: Workload,
    epsilon: float | None = None,
    alpha: float | None = None,
    metric: Metric = MEAN_L2,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    rng: RandomState = 0,
    *,
    privacy: Privacy | None = None,
) -> Bracket:
    """Certified lower and upper bounds on the sample complexity of a workload.

    The lower bound comes from packings of data sets (JL-L6, JL-L7), `geomdp.bounds.guessing_bound`,
    `geomdp.bounds.orthogonal_lines_bound` (the only argument under zCDP and (epsilon, delta)-DP)
    and, for the largest error over the queries, `geomdp.bounds.query_lines_bound`. The upper bound
    comes from the mechanisms of this library with an exact sampler and a proved error, the largest
    over all data sets of n records. Their guarantee may be a pure one that implies the one asked.

    Parameters
    ----------
    workload : Workload
        k queries, on a universe of any size.
    epsilon : float, optional
        Privacy loss of pure differential privacy, above 0. Give either `epsilon` or `privacy`.
    alpha : float
        Target error per query, above 0; required.
    metric : MeanL2, RMS or WorstCase
        How the error is measured.
    adjacency : Adjacency
        Neighbour relation. Under add/remove, sums are divided by a declared n. The error must be at
        most alpha on data sets of exactly n records, and may be larger on others.
    rng : Generator, int or None
        Randomness of the search for packings. Other seeds can find other bounds, all proved.
    privacy : PureDP, ApproxDP or ZCDP, optional
        The guarantee, instead of `epsilon`.

    Raises
    ------
    ValueError
        If a parameter is out of range, or if neighbours always have the same sums of answers. Also
        if every mechanism needs more than 2^53 records, because alpha is small.

    Notes
    -----
    Not used are volume bounds, which bound the largest error over data sets of all sizes (JL-VR),
    and Markov chains, averages over a random map and simulations, which prove nothing. A mean over
    the noise may be an upper confidence limit from public draws, which the assumptions then state.

    Nikolov 2022, Lemmas 6 and 7; formula sheet JL-DEF, JL-L6, JL-L7.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(4)
    >>> print(gd.sample_complexity_bracket(workload, alpha=0.01, privacy=gd.ZCDP(0.5)))
    59 < sc <= 123, 0.5-zCDP (replace-one) and mean l2 error per query at most 0.01 (ratio 2.05)
    """
    if alpha is None:
        raise ValueError("alpha must be a finite number above 0, got None")
    question = Problem(epsilon, alpha, metric, adjacency, privacy)
    l1_sensitivity(workload, adjacency)  # raises an error if it is 0
    below, no_packing = lower_bounds(workload, question, rng)
    above, no_mechanism = upper_bounds(workload, question)
    if not above:
        raise ValueError(
            f"alpha must be larger, got {alpha!r}: every mechanism needs more than "
            f"{MOST_RECORDS} records"
        )
    refused = no_packing | no_mechanism
    return Bracket(below[0], above[0], question, tuple(below), tuple(above), refused)
