"""The advisor: ranks mechanisms by predicted error before any record is seen, and says why."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import html
import json
import math
import os
import warnings
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._validation import plural, require_type, whole
from geomdp.advice.candidates import FITTED, PROJECTED, candidate_named
from geomdp.advice.comparison import TIE, WORTHWHILE, Built, Trials, ranking
from geomdp.advice.setting import (
    DEFAULT_EFFORT,
    UNLIMITED,
    Budget,
    InapplicableError,
    Setting,
    draw_seconds,
)
from geomdp.mechanisms import AdditiveMechanism, Mechanism, PredictionKind
from geomdp.mechanisms.base import l1_sensitivity
from geomdp.mechanisms.strategies.residual_scales import least_energy, strategy_columns
from geomdp.privacy import Adjacency, Privacy, PureDP
from geomdp.privacy.definitions import check_privacy, checked_adjacency, gaussian_scale
from geomdp.workloads import ProductQueries, Workload, WorkloadSizeError, explicit_answers
from geomdp.workloads.structure import Residuals

if TYPE_CHECKING:
    import pandas as pd


# The sentences that explain the choice

KINDS = {
    PredictionKind.EXACT: "the same for every data set",
    PredictionKind.UPPER_BOUND: "an upper bound over all data sets",
    PredictionKind.PRIOR: "simulated on a prior",
}
#: With noise above this share of the diameter of the answers, the advice says that records are few.
DROWNED = 0.5
#: Predictions with a smaller relative difference, printed as 0.0%, are called the same.
SAME = 5e-4
#: Untried candidates are named if there are at most this many. For more, only the number is given.
NAMED = 3


def reasons(ranked: list[Built], trials: Trials) -> list[str]:
    """The sentences about the best candidate, the first of `ranked`."""
    best, proved, said = ranked[0], ranked, []
    if best.step is FITTED:
        rival = next(trial for trial in ranked[1:] if not math.isnan(trial.simulated))
        proved = [rival, *(trial for trial in ranked[1:] if trial is not rival), best]
        said.append(
            f"{best.name} is advised because it errs less than {rival.name} in simulated releases "
            f"on uniform data, {best.simulated:.4g} per query instead of {rival.simulated:.4g}, "
            "and not clearly more on public data with one or ten different records. Its predicted "
            f"error is {best.prediction.value:.4g} ({KINDS[best.prediction.kind]})."
        )
    said.append(
        f"{proved[0].name} has the least predicted error, {proved[0].prediction.value:.4g} per "
        f"query ({KINDS[proved[0].prediction.kind]}), of {len(ranked)} mechanisms that apply"
        f"{_aside(proved)}."
    )
    said.append(best.candidate.suits)
    noise = best.noise
    if noise is not None:
        said.append(_regime(best, noise, trials))
        said += _above_bound(noise)
    said += _comparison(proved)
    guarantee, asked = best.mechanism.guarantee, trials.setting.privacy
    enough = f" It implies {asked}, which was asked for."
    implied = best.exact and guarantee.privacy != asked
    said.append(f"Every release will state this guarantee: {guarantee}.{enough if implied else ''}")
    if not best.exact:
        exact = next((trial for trial in ranked if trial.exact), None)
        if exact is not None:
            said.append(
                f"Its sampler is heuristic, so a release carries no guarantee. The best mechanism "
                f"with an exact sampler is {exact.name}, with a predicted error of "
                f"{exact.prediction.value:.4g} (ask for exact_only)."
            )
    seconds = 0.0 if noise is None else draw_seconds(noise.noise)
    if seconds >= 0.1:
        said.append(f"A release draws noise for about {seconds:.1g} s.")
    untried = sorted(trials.untried)
    if untried:
        named = ", ".join(untried) if len(untried) <= NAMED else f"{len(untried)} mechanisms"
        said.append(f"Not tried, because they would cost too much (see the table): {named}.")
    return said


def _aside(ranked: list[Built]) -> str:
    """A remark on another candidate with a slightly lower prediction; empty if there is none."""
    best = ranked[0].prediction.value
    others = (trial for trial in ranked[1:] if trial.candidate is not ranked[0].candidate)
    lower = next((trial for trial in others if trial.prediction.value < best * (1 - TIE)), None)
    if lower is None:
        return ""
    gain = 1 - lower.prediction.value / best
    return (
        f", except for {lower.name}: its prediction is {gain:.1%} lower, too little to count "
        "(predictions are uncertain, and the simplest mechanism with an exact sampler is advised)"
    )


def _regime(best: Built, noise: AdditiveMechanism, trials: Trials) -> str:
    """Sentences on the noise relative to the diameter of the answers, and on post-processing."""
    setting = trials.setting
    workload = setting.workload
    widest = workload.l2_diameter() / math.sqrt(workload.n_queries)
    alone = noise.predicted_rmse.value
    sizes = f"With {setting.n} records the noise alone is {alone:.4g} per query"
    with suppress(WorkloadSizeError):  # too large to find the dimension
        dimension = plural(workload.affine_hull().dimension, "dimension")
        answers = plural(workload.n_queries, "answer")
        sizes = f"The workload has {answers}, in {dimension}. {sizes}"
    if widest == 0:  # under add/remove, answers tell the number of records
        return f"{sizes}; all data sets of {setting.n} records have the same answers."
    sizes += (
        f", which is {alone / widest:.2g} times the largest difference between the answers of two "
        f"data sets ({widest:.4g} per query)"
    )
    if noise is best.mechanism:
        why = trials.refused.get(f"{PROJECTED.name}({best.name})", "no projection was tried")
        return (
            f"{sizes}. Moving answers to the nearest attainable ones never adds error on "
            f"{setting.n} records, but {PROJECTED.name}({best.name}) is left out: {why}."
        )
    # A mechanism that has no `step`, but does more than add noise, projects the answers itself.
    does = (best.step or PROJECTED).does
    does = does[0].upper() + does[1:]
    if best.step is FITTED:
        return f"{sizes}. {does} removes some of the error on most data sets."
    gain = 1 - best.prediction.value / alone
    if gain < WORTHWHILE:
        return f"{sizes}. {does} never adds error, and removes some of it on most data sets."
    drowned = " There are few records for this many queries." if alone > DROWNED * widest else ""
    return f"{sizes}. {does} removes at least {gain:.0%} of the error on every data set.{drowned}"


def _above_bound(noise: AdditiveMechanism) -> list[str]:
    """A sentence on the SVD bound, for Gaussian noise on products of queries if it is known."""
    workload, privacy = noise.workload, noise.privacy
    if not isinstance(workload, ProductQueries) or isinstance(privacy, PureDP):
        return []
    residuals = Residuals(workload, strategy_columns(workload))
    least = least_energy(residuals, noise.guarantee.adjacency)
    if least is None:
        return []
    bound = gaussian_scale(1.0, privacy) * math.sqrt(least / workload.n_queries) / noise.n
    return [
        f"The noise alone is {noise.predicted_rmse.value / bound:.4g} times the SVD bound "
        f"({bound:.4g} per query), below which no linear mechanism with Gaussian noise and without "
        "bias can err."
    ]


def _comparison(ranked: list[Built]) -> list[str]:
    best = ranked[0]
    others = (trial for trial in ranked[1:] if trial.candidate is not best.candidate)
    second = next((trial for trial in others if trial.prediction.value > 0), None)
    if second is None:
        return []
    ratio = second.prediction.value / best.prediction.value
    if abs(ratio - 1) < SAME:
        more = "the same up to rounding"
    elif ratio < 2:
        more = f"{abs(ratio - 1):.1%} {'more' if ratio > 1 else 'less'}"
    else:
        more = f"{ratio:.2g} times as much"
    return [f"Next is {second.name}, with predicted error {second.prediction.value:.4g} ({more})."]


# The table of all candidates, with a prediction or the reason for leaving the candidate out


class Row(NamedTuple):
    """One candidate, with a value for each of `COLUMNS`; only `mechanism` and `why` if left out."""

    mechanism: str
    predicted_rmse: float = math.nan
    kind: str = ""
    simulated_rmse: float = math.nan
    sampler: str = ""
    seconds: float = math.nan
    why: str = ""

    @property
    def applies(self) -> bool:
        """Whether the candidate has a prediction."""
        return not math.isnan(self.predicted_rmse)


COLUMNS = ["set-up seconds" if name == "seconds" else name for name in Row._fields]


# The advice

#: A notebook shows this many reasons, and these columns of the table.
REASONS_SHOWN, SHOWN = 3, ["mechanism", "predicted_rmse", "kind", "sampler"]


@dataclass(frozen=True, repr=False)
class Advice:
    """The best mechanism for a setting, with the comparison that led to it.

    Parameters
    ----------
    best : Mechanism
        The best mechanism, built and ready to release.
    rows : tuple of tuples
        The rows of `table`.
    reasons : list of str
        Sentences that give the reasons for the choice.
    flag : str
        Name of the best mechanism on the command line.
    asked : PureDP, ApproxDP or ZCDP
        The guarantee that was asked for. The guarantee of `best` is this one, or pure privacy that
        implies it.

    Examples
    --------
    >>> import geomdp as gd
    >>> advice = gd.advise(gd.workloads.Prefixes(8), n=1000, privacy=gd.PureDP(1.0))
    >>> print(advice.reasons[0].partition(",")[0])
    Projected(KNorm(exact=True)) has the least predicted error
    >>> advice.table.columns.tolist()
    ['mechanism', 'predicted_rmse', 'kind', 'simulated_rmse', 'sampler', 'set-up seconds', 'why']
    """

    best: Mechanism
    rows: tuple[Row, ...]
    reasons: list[str]
    flag: str
    asked: Privacy

    @cached_property
    def table(self) -> pd.DataFrame:
        """One row per candidate, best first.

        simulated_rmse is the error on uniform data in simulated releases, NaN if there were none.
        The column why gives the source of the prediction, or the reason why predicted_rmse is NaN.
        """
        from geomdp.advice.printed_table import PrintedTable  # pandas: a slow import

        return PrintedTable(list(self.rows), columns=COLUMNS)

    def __repr__(self) -> str:
        return f"Advice({self.reasons[0]})"

    def _repr_html_(self) -> str:
        said = "".join(f"<p>{html.escape(reason)}</p>" for reason in self.reasons[:REASONS_SHOWN])
        rows = self.table[self.table["predicted_rmse"].notna()]
        return said + rows[SHOWN].to_html(index=False, float_format="{:.4g}".format)


def advise(
    workload: Workload,
    *,
    n: int,
    privacy: Privacy,
    exact_only: bool = False,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    effort: float = DEFAULT_EFFORT,
) -> Advice:
    """Find the mechanism with the least predicted error for a workload.

    The candidates are all additive noises of `geomdp.mechanisms`, each alone and followed by a
    projection on the attainable answers; the best noise followed by shrinking (`Shrunk`); `JL`;
    `Coarse`, for at most 512 kinds of records; and `SecondMoment` and `PairMarginals`, for the
    workloads they are made for. If the guarantee asked is not pure, purely private noise has the
    largest epsilon that implies it (`pure_implying`), which its releases state, or a rate of its
    own. Such noise is left out if the best Gaussian noise provably errs less, and for tables of
    many columns, where its set-up takes long.

    The candidate with the least prediction wins. Others tie with it if their predictions exceed it
    by at most a relative 1e-5 plus three standard errors. Among candidates that tie, an exact
    sampler decides first, then correct rounding of the noise in unseeded releases, then simplicity.
    If the winner is noise alone, its projection is advised, unless it is left out: on data sets of
    n records, it increases the error at most by rounding, below 1e-6 of the diameter of the
    answers. Shrinking is advised only if it lowers the prediction by more than 1%.

    One choice is made by simulation. The proved bound of a fit (`Fitted`) is up to twice that of a
    projection, although its real error is mostly smaller. If the winner projects or shrinks noise
    with an exact sampler, and the noise is at least 5% of the diameter of the answers, the fit is
    simulated with a fixed seed on three public data sets of n records: uniform data, ten elements,
    and copies of one element. It is advised if its error is lower by at least 1% on uniform data,
    and larger by at most 5% (to allow for chance) on the two others. On other data it can err more:
    for tables of independent columns, up to 4% more was measured.

    A candidate is left out, with the reason in the table, if it does not apply, cannot make a
    release, cannot be the best by a lower bound, or would take more than 1 GiB of memory or longer
    than `effort`. Costs are computed from the sizes of the workload, so the advice does not depend
    on the speed of the machine. It depends on public arguments only, and costs no privacy.

    Parameters
    ----------
    workload : Workload
        m queries.
    n : int
        Number of records. Under add/remove, the declared public number by which sums are divided.
    privacy : PureDP, ApproxDP or ZCDP
        The guarantee that the mechanism must have. The mechanism may have a stronger guarantee.
    exact_only : bool
        Whether mechanisms with a heuristic sampler, which have no guarantee, are left out.
    adjacency : Adjacency
        Neighbour relation.
    effort : float
        Limit on predicted work in seconds, above 0. It applies to the set-up and prediction of each
        candidate, and to one projection.

    Raises
    ------
    ValueError
        If n, privacy, adjacency or effort is invalid, if neighbours always have the same sums of
        answers, or if every mechanism is left out.

    Examples
    --------
    >>> import geomdp as gd
    >>> advice = gd.advise(gd.workloads.Prefixes(8), n=1000, privacy=gd.PureDP(1.0))
    >>> advice.best
    Projected(KNorm(Prefixes(N=8); 8 queries; n=1000; 1-DP, replace-one))
    >>> round(advice.best.predicted_rmse.value, 3)
    0.003
    """
    check_privacy(privacy)
    adjacency = checked_adjacency(adjacency)
    budget = Budget.of_seconds(effort)
    setting = Setting(workload, whole(n, "n"), privacy, adjacency, exact_only, budget)
    l1_sensitivity(workload, adjacency)  # raises an error if it is 0
    ranked, trials = ranking(setting)
    if not ranked:
        why = "; ".join(f"{name}: {reason}" for name, reason in trials.refused.items())
        raise ValueError(
            f"workload must be one that some mechanism can answer under {privacy} "
            f"({adjacency.value}); every mechanism was left out: {why}"
        )
    first, said = ranked[0], reasons(ranked, trials)
    flag = (first.step.prefix if first.step else "") + first.candidate.flag
    rows = []
    for trial in ranked:
        predicted, sampler = trial.prediction, str(trial.sampler)
        found = (predicted.value, predicted.kind.value, trial.simulated, sampler, trial.seconds)
        rows.append(Row(trial.name, *found, predicted.source))
    rows += [Row(name, why=why) for name, why in trials.refused.items()]
    return Advice(first.mechanism, tuple(rows), said, flag, privacy)


#: A hash of all answers identifies a workload with at most `HASHED` of them; else the answers of at
#: most `ELEMENTS` elements are hashed.
HASHED, ELEMENTS = 1 << 22, 64


@dataclass(frozen=True)
class Plan:
    """The mechanism that answers a workload, chosen before any record was seen.

    ``gd.release(records, schema, "marginals:2", epsilon=1.0, mechanism=plan)`` takes it for the
    class of a mechanism. It stores no noise: calling it builds the mechanism.

    Parameters
    ----------
    mechanism : str
        Name of the mechanism, as the flag `--mechanism` takes it.
    workload : str
        Hash of the queries.
    privacy : str
        The guarantee that was asked for, in words. The mechanism can have a stronger one.
    adjacency : str
        Neighbour relation.
    n : int
        Number of records for which the mechanism was chosen. For another number, its guarantee and
        prediction hold too, with a ``UserWarning`` if the numbers differ by more than 10%.
    parameters : dict of str to float
        The parameters of the guarantee, without rounding.
    weights : list of float or None
        The weight of each table, for a plan of `LeastBudget`; None if those asked for are kept.
    max_rows_per_person : int or None
        The number that `release` must be given, too; `privacy` is that of a row.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload, privacy = gd.workloads.Prefixes(8), gd.PureDP(1.0)
    >>> plan = gd.advice.plan_of(gd.advise(workload, n=1000, privacy=privacy))
    >>> plan(workload, n=1100, privacy=privacy).n
    1100
    """

    mechanism: str
    workload: str
    privacy: str
    adjacency: str
    n: int
    parameters: dict[str, float] = field(hash=False)
    weights: list[float] | None = field(default=None, hash=False)
    max_rows_per_person: int | None = None

    def __call__(
        self,
        workload: Workload,
        *,
        n: int,
        privacy: Privacy,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
    ) -> Mechanism:
        """Build the mechanism of the plan for `n` records.

        ``ValueError`` if the workload, the guarantee or the neighbour relation differs from the
        plan, or the plan names no mechanism of this package, or one that does not apply.
        """
        if workload_hash(workload) != self.workload:
            raise ValueError(
                "workload must be the one that was planned for: the plan is for other queries, for "
                "other weights of tables, or for the schema without what it declares impossible"
            )
        asked = {"privacy": str(privacy), "adjacency": checked_adjacency(adjacency).value}
        for name, value in asked.items():
            if value != getattr(self, name):
                raise ValueError(
                    f"{name} must be the one that was planned for, {getattr(self, name)}, "
                    f"got {value}"
                )
        step, row = candidate_named(self.mechanism)
        if row is None or (step is not None and step not in row.steps):
            raise ValueError(f"plan must name a mechanism, got {self.mechanism!r}")
        n = whole(n, "n")
        if 10 * abs(n - self.n) > self.n:
            said = f"the plan was made for {self.n} records, and there are {n}: noise of shares"
            warnings.warn(f"{said} and means is {self.n / n:.3g} times that planned", stacklevel=2)
        # The cost of the set-up has no limit, because the mechanism was already chosen.
        setting = Setting(workload, n, privacy, adjacency, False, UNLIMITED)
        try:
            return row.built(setting, step)
        except InapplicableError as error:
            raise ValueError(f"{self.mechanism} does not apply: {error}") from error


def plan_of(advice: Advice, max_rows_per_person: int | None = None) -> Plan:
    """The plan for the mechanism that `advise` found best.

    For a release with `max_rows_per_person`, give it here, and `member_privacy` to `advise`.

    Examples
    --------
    >>> import geomdp as gd
    >>> advice = gd.advise(gd.workloads.Prefixes(8), n=1000, privacy=gd.PureDP(1.0))
    >>> plan = gd.advice.plan_of(advice)
    >>> plan.mechanism, plan.privacy, plan.adjacency
    ('projected-knorm-exact', '1-DP', 'replace-one')
    """
    require_type(advice, Advice, "advice")
    best = advice.best
    best.guarantee.for_persons(max_rows_per_person)  # raises an error if it is invalid
    return Plan(
        mechanism=advice.flag,
        workload=workload_hash(best.workload),
        privacy=str(advice.asked),
        adjacency=best.guarantee.adjacency.value,
        n=best.n,
        parameters=advice.asked.parameters(),
        max_rows_per_person=max_rows_per_person,
    )


def save_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write a plan to a new file as JSON; ``FileExistsError`` if the file exists.

    Examples
    --------
    >>> import geomdp as gd
    >>> advice = gd.advise(gd.workloads.Prefixes(8), n=1000, privacy=gd.PureDP(1.0))
    >>> gd.advice.save_plan(gd.advice.plan_of(advice), "plan.json")
    """
    with Path(path).open("x", encoding="utf-8") as file:
        json.dump(dataclasses.asdict(plan), file, indent=2)
        file.write("\n")


def load_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan from a file that `save_plan` wrote; ``ValueError`` if the file holds no plan.

    Examples
    --------
    >>> import geomdp as gd
    >>> advice = gd.advise(gd.workloads.Prefixes(8), n=1000, privacy=gd.PureDP(1.0))
    >>> plan = gd.advice.plan_of(advice)
    >>> gd.advice.save_plan(plan, "plan.json")
    >>> gd.advice.load_plan("plan.json") == plan
    True
    """
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # ValueError also for very long numbers
        raise ValueError(f"{path} must hold a plan as JSON: {error}") from error
    kinds: dict[str, Any] = dict.fromkeys(("mechanism", "workload", "privacy", "adjacency"), str)
    kinds |= {"n": int, "parameters": dict, "weights": list | None}
    kinds["max_rows_per_person"] = int | None
    if (
        not isinstance(found, dict)
        or found.keys() != kinds.keys()
        or not all(isinstance(found[name], kind) for name, kind in kinds.items())
        or not all(isinstance(value, float) for value in found["parameters"].values())
    ):
        raise ValueError(f"{path} must hold a plan with {', '.join(kinds)}, got {found!r}")
    return replace(Plan(**found), n=whole(found["n"], "n"))


@functools.lru_cache(maxsize=2)
def workload_hash(workload: Workload) -> str:
    """Hash of the type, the universe and the answers of all, or of 64 publicly drawn, elements."""
    universe, m = workload.universe, workload.n_queries
    digest = hashlib.sha256(f"{type(workload).__name__} {m} {universe!r}".encode())
    if universe.size is not None and universe.size * m <= HASHED:
        answers = explicit_answers(workload)
    else:
        count = max(1, min(ELEMENTS, HASHED // m))
        answers = workload.evaluate(universe.sample(count, np.random.default_rng(PUBLIC_SEED)))
    digest.update(np.ascontiguousarray(answers).tobytes())
    return digest.hexdigest()
