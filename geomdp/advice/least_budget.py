"""The least budget that meets targets of accuracy, and a budget with which nothing can meet them.

The error of additive noise is proportional to a power of the budget, so one prediction gives the
least budget. Elsewhere (projections of few records, whole noise) the search goes on by bisection.
"""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import listed, require_type, whole
from geomdp.advice.advisor import Advice, Plan, advise, plan_of
from geomdp.advice.candidates import candidate_named
from geomdp.advice.setting import UNLIMITED, HalfWidth, RootMeanSquare, Setting, Target
from geomdp.bodies import sensitivity_polytope
from geomdp.bounds import RMS, ConfidentAnswers, SideConditionError, WorstCase
from geomdp.bounds.certificates import Rung, covering_bound
from geomdp.bounds.guessing import farthest_elements, guess_rungs
from geomdp.bounds.lines import line_rungs
from geomdp.bounds.problem import CHANGES, Problem
from geomdp.mechanisms import Mechanism
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.mechanisms.base import l1_sensitivity
from geomdp.privacy import ZCDP, Adjacency, Exact, Guarantee, Privacy, PureDP, member_privacy
from geomdp.privacy.definitions import check_privacy, printed_down
from geomdp.workloads import ChosenTables, Explicit, MarginalTables, Workload
from geomdp.workloads.tables import ProductQueries, TableQueries, cells_of

if TYPE_CHECKING:
    import pandas as pd


class Asked(NamedTuple):
    """What is asked for: `privacy` makes a definition, for persons of `rows` rows if not None."""

    workload: Workload
    n: int
    targets: tuple[Target, ...]
    privacy: Callable[[float], Privacy]
    adjacency: Adjacency
    exact_only: bool
    rows: int | None = None

    @property
    def group(self) -> int:
        return self.rows or 1

    @property
    def power(self) -> float:
        """p: errors of additive noise are about proportional to budget^-p."""
        return 0.5 if isinstance(self.privacy(1.0), ZCDP) else 1.0

    def advice(self, workload: Workload, budget: float) -> Advice:
        n, adjacency, exact = self.n, self.adjacency, self.exact_only
        privacy = member_privacy(self.privacy(budget), self.group)
        return advise(workload, n=n, privacy=privacy, adjacency=adjacency, exact_only=exact)

    def setting(self, workload: Workload, budget: float) -> Setting:
        """For a mechanism that was chosen already, at any cost."""
        privacy = member_privacy(self.privacy(budget), self.group)
        return Setting(workload, self.n, privacy, self.adjacency, self.exact_only, UNLIMITED)

    def ratio(self, mechanism: Mechanism) -> float:
        """The largest error, divided by its limit; at most 1 if all targets are met."""
        return max(target.error(mechanism) / target.limit for target in self.targets)


# The lower side: budgets that are proved to be too small


@dataclass(frozen=True)
class Impossible:
    """A budget with which, and below which, no mechanism meets a target.

    Parameters
    ----------
    budget : float
        The epsilon, or the rho of zCDP.
    target : RootMeanSquare, HalfWidth or LargestError
        The target.
    statement : str
        What is proved.
    certificate : Certificate or ConfidentAnswers
        The proof. A `Certificate` can be saved for `check_certificate`.

    Examples
    --------
    >>> import geomdp as gd
    >>> target = gd.advice.HalfWidth(0.01)
    >>> found = gd.budget_for(gd.workloads.Histogram(4), n=1000, targets=[target])
    >>> print(found.impossible.statement)
    2 data sets of 1000 records with 21 different records have answers more than 0.02 apart
    """

    budget: float
    target: Target
    statement: str
    certificate: object


#: A prediction or bound this far below its limit says little about the budget to try next.
SMALL = 0.01
#: The first budget for which lower bounds on the number of records are computed, the largest number
#: of budgets, and the relative accuracy of the result.
FIRST, LOWER_STEPS, LOWER_ACCURACY = 0.25, 8, 0.01
#: Except under zCDP, the bounds need linear programs for one step of a line, of about this epsilon.
#: Budgets that divide it share them, so the largest is taken that is at most this share smaller.
STEP_EPSILON, STEP_SHARE = 0.25, 0.1
#: Ranges of answers are computed for at most this many queries, and at most 2^1000 elements count.
MOST_RANGES, MOST_ELEMENTS = 256, 1 << 1000
#: Relative margin by which distances of answers are rounded down.
MARGIN = 1e-9


def impossible_budget(asked: Asked, target: Target) -> Impossible | None:
    """The largest budget that is proved to be too small for a target; None if none is."""
    if isinstance(asked.workload, ProductQueries):  # errors are those of answers without weights
        asked = asked._replace(workload=asked.workload.alone())
    if isinstance(target, RootMeanSquare):
        return _too_few_records(asked, target)
    if isinstance(target, HalfWidth):
        return _too_close(asked, target, 2, _largest_range(asked.workload, target))
    workload, place = asked.workload, target.queries(asked.workload)
    if isinstance(workload, TableQueries):
        # Records that differ in a column differ by 1 in cells of all tables with this column.
        shown = [t for t, own in enumerate(workload.slices) if _overlap(own, place)]
        columns = {i for t in shown for i in workload.tables[t]}
        kinds = math.prod(workload.levels[i] for i in columns)
        if place.stop - place.start == 1:
            kinds = min(kinds, 2)
        return _too_close(asked, target, min(kinds, MOST_ELEMENTS), 1.0)
    if place.stop - place.start < workload.n_queries:
        return _too_close(asked, target, 2, _largest_range(workload, target))
    spread = farthest_elements(workload, WorstCase())
    found = [_too_close(asked, target, M, float(spread.radii[M - 1])) for M in spread.counts]
    return max(filter(None, found), key=lambda each: each.budget, default=None)


def _overlap(own: slice, place: slice) -> bool:
    return bool(own.start < place.stop and place.start < own.stop)


def _too_close(asked: Asked, target: Target, data_sets: int, distance: float) -> Impossible | None:
    """From data sets with r copies of one of M elements whose answers are `distance` apart, as few
    persons' as can be: the answers of two data sets are r `distance` / n apart.
    """
    apart = 2 * target.limit
    if data_sets < 2 or not distance * (1 - MARGIN) > apart:
        return None
    records = math.floor(apart * asked.n / (distance * (1 - MARGIN))) + 1
    if records > asked.n:
        return None
    persons = math.ceil(records / asked.group)
    proof = ConfidentAnswers(data_sets, persons * CHANGES[asked.adjacency])
    budget = proof.least_budget(asked.privacy(1.0))
    if budget <= 0:  # delta alone allows the answers
        return None
    statement = (
        f"{data_sets if data_sets < 10**6 else f'{data_sets:.3g}'} data sets of {asked.n} records "
        f"with {records} different records have answers more than {apart:g} apart"
    )
    if asked.group > 1:
        statement += f", and these are records of {persons} persons"
    return Impossible(budget, target, statement, proof)


def _largest_range(workload: Workload, target: Target) -> float:
    """The largest difference of the answers of two records to one of the queries."""
    place = target.queries(workload)
    if isinstance(workload, TableQueries):
        tables = zip(workload.tables, workload.slices, strict=True)
        return float(any(_overlap(own, place) and max(workload.shape(t)) > 1 for t, own in tables))
    numbers = np.arange(workload.n_queries)[place][:MOST_RANGES]
    axes = np.zeros((len(numbers), workload.n_queries))
    axes[np.arange(len(numbers)), numbers] = 1.0
    return float(sensitivity_polytope(workload).breadth(axes).max())


def _too_few_records(asked: Asked, target: RootMeanSquare) -> Impossible | None:
    """From lower bounds on the number of records for the error `target.limit`, which exceed n; with
    k > 1 rows of a person, for n / k persons who each have k equal rows.
    """
    workload, best, budget = _queries_alone(asked.workload, target), None, FIRST
    persons = asked.n // (rows := asked.group)
    if workload.l2_diameter() == 0 or persons == 0:
        return None
    # Sums are divided by n, which may exceed the number of rows.
    spare = asked.n / (rows * persons)
    limit = target.limit * (spare * (1 + MARGIN) if spare > 1 else 1)
    equal = f"with {rows} equal rows of each person, as records: " if rows > 1 else ""
    for _ in range(LOWER_STEPS):
        problem = Problem(None, limit, RMS(), asked.adjacency, asked.privacy(budget))
        rungs: list[Rung] = line_rungs(workload, problem)
        if problem.epsilon is not None:
            rungs += guess_rungs(workload, problem)
        try:
            bound = covering_bound(rungs, problem)
        except SideConditionError:
            share = 0.0
        else:
            share = bound.records / persons
            if share >= 1 and (best is None or budget > best.budget):
                best = Impossible(budget, target, equal + bound.statement, bound.certificate)
        # Bounds on the number of records are nearly proportional to budget^-power.
        guess = budget * max(share, SMALL) ** (1 / asked.power) * (1 - LOWER_ACCURACY)
        if guess < LEAST or (best is not None and guess <= best.budget * (1 + STEP_SHARE)):
            break
        budget = _cheap(guess, asked)
    return best


def _cheap(budget: float, asked: Asked) -> float:
    """`budget`, or a slightly smaller one that shares linear programs with others."""
    step = STEP_EPSILON / CHANGES[asked.adjacency]
    if isinstance(asked.privacy(budget), ZCDP) or budget >= step:
        return budget
    shared = step / math.ceil(step / budget)
    return shared if shared >= budget * (1 - STEP_SHARE) else budget


def _queries_alone(workload: Workload, target: Target) -> Workload:
    """The queries of a target as a workload of their own, without weights."""
    place = target.queries(workload)
    if isinstance(workload, TableQueries):
        columns = workload.universe.columns
        if target.over is None:
            alike = (workload.table_weights == 1).all()
            return workload if alike else ChosenTables(columns, _names(workload))
        if not isinstance(target.over, int):
            return MarginalTables(
                {name: columns[name] for name in columns if name in target.over}, len(target.over)
            )
        return Explicit(np.array([[0.0, _largest_range(workload, target)]]))
    if target.over is None:
        return workload
    if isinstance(workload, ProductQueries) and not isinstance(target.over, int):
        return workload.alone([target.over])
    axis = np.zeros((1, workload.n_queries))
    axis[0, place] = 1.0
    body = sensitivity_polytope(workload)
    ends = [-float(body.support(-axis)[0]), float(body.support(axis)[0])]
    return Explicit(np.array([ends]))


# The upper side: the least budget with which the advised mechanism meets all targets

#: With this share of the returned budget, the advised mechanism misses a target.
SHARE = 0.99
#: Range of budgets that are tried.
LEAST, LARGEST = 1e-6, 1e6
#: Relative margin that covers rounding errors where an error is proportional to a power.
ROUNDED = 1e-9
#: Number of times that the weights of tables are changed, and the largest of these whole numbers.
ROUNDS, MOST_WEIGHT = 6, 64
#: Power of the ratios in a round. Of tables without common columns, 2 is the step to the solution.
STEP = 1.5


def least_budget(asked: Asked, workload: Workload, start: float) -> tuple[float, Advice]:
    """The least budget, up to one per cent, and the advice there."""
    budget, low, high = start, 0.0, math.inf
    found: tuple[float, Advice] | None = None
    while True:
        if not LEAST <= budget <= LARGEST:
            said = "any budget meets them" if budget < LEAST else "no budget that was tried does"
            raise ValueError(
                f"targets must be met by a budget from {LEAST:g} to {LARGEST:g}, got "
                f"{'; '.join(map(str, asked.targets))}: {said}"
            )
        advice = asked.advice(workload, budget)
        ratio = asked.ratio(advice.best)
        if ratio <= 1:
            high, found = budget, (budget, advice)
            low = low if low < high else 0.0
        elif found is not None and budget == high * SHARE:
            return found
        else:
            low = max(low, budget)
        guess = budget * max(ratio, SMALL) ** (1 / asked.power) * (1 + ROUNDED)
        if low >= high * SHARE or guess >= high * SHARE:
            budget = high * SHARE
        elif guess > low * (1 + ROUNDED):
            budget = guess
        else:
            budget = 2 * low if found is None else math.sqrt(low * high)


def weighted_tables(
    asked: Asked, workload: TableQueries, budget: float, advised: Mechanism
) -> ChosenTables:
    """The tables with the weights, of several rounds at `budget`, whose largest ratio of errors is
    the least; a weight grows with the ratio of its table, first for the mechanism `advised`.
    """
    columns, tables = workload.universe.columns, _names(workload)
    weights: FloatArray = workload.table_weights
    best, least, row = None, math.inf, None
    for _ in range(ROUNDS):
        weights = weights * _table_ratios(asked, advised) ** STEP
        weights = np.maximum(1.0, np.rint(MOST_WEIGHT * weights / weights.max()))
        tried = ChosenTables(columns, tables, weights.tolist())
        if row is None:
            advice = asked.advice(tried, budget)
            row, advised = candidate_named(advice.flag)[1], advice.best
        else:  # its noise, without a projection, whose set-up can take seconds
            advised = row.built(asked.setting(tried, budget))
        ratio = asked.ratio(advised)
        if best is None or ratio < least:
            best, least = tried, ratio
    assert best is not None
    return best


def _table_ratios(asked: Asked, mechanism: Mechanism) -> FloatArray:
    """For each table, the largest error of a target for its cells, divided by the limit."""
    workload = mechanism.workload
    assert isinstance(workload, TableQueries)
    tables = _names(workload)
    ratios = np.zeros(len(tables))
    for target in asked.targets:
        place = target.queries(workload)
        for t, own in enumerate(workload.slices):
            if _overlap(own, place):
                whole_table = target.over is None and not isinstance(target, RootMeanSquare)
                here = type(target)(target.limit, tables[t]) if whole_table else target
                ratios[t] = max(ratios[t], here.error(mechanism) / target.limit)
    return ratios


def _names(workload: TableQueries) -> list[tuple[str, ...]]:
    """The names of the columns of each table."""
    names = workload.universe.names
    return [tuple(names[i] for i in table) for table in workload.tables]


class TableErrors(NamedTuple):
    """Predicted errors of one table."""

    table: str
    weight: float
    rmse: float
    half_width: float


@dataclass(frozen=True, repr=False)
class LeastBudget:
    """The least budget for targets of accuracy, the mechanism that meets them, and what cannot.

    Parameters
    ----------
    budget : float
        The least epsilon (rho for zCDP), at most 1% too large. `advise` for `workload` with
        `privacy` finds a mechanism that meets all targets, and with 0.99 of the budget one that
        does not.
    privacy : PureDP, ApproxDP or ZCDP
        The definition of privacy with this budget.
    workload : Workload
        The queries. Tables with unequal targets may have other weights than those asked for.
    advice : Advice
        The advice for this workload.
    binding : RootMeanSquare, HalfWidth or LargestError
        The target that needs the budget.
    impossible : Impossible or None
        The largest budget that is proved to be too small for every mechanism; None if no budget is.
    asked : tuple
        What was asked for.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.MarginalTables({"region": 3, "smoker": 2, "age": 5}, k=2)
    >>> target = gd.advice.RootMeanSquare(0.01)
    >>> found = gd.budget_for(workload, n=1000, targets=[target], privacy=gd.ZCDP)
    >>> round(found.budget, 4)
    0.0193
    >>> round(found.impossible.budget / found.budget, 1)  # no mechanism needs less than this share
    0.6
    >>> found.table[["table", "rmse"]].round(4).values.tolist()
    [['region x smoker', 0.0116], ['region x age', 0.0092], ['smoker x age', 0.0102]]
    """

    budget: float
    privacy: Privacy
    workload: Workload
    advice: Advice
    binding: Target
    impossible: Impossible | None
    asked: Asked

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that meets all targets, ready to release."""
        return self.advice.best

    @property
    def name(self) -> str:
        """The name of the mechanism."""
        return self.advice.rows[0].mechanism

    @property
    def weights(self) -> list[float] | None:
        """The weight of each table if they differ from those asked for, for `release`."""
        if self.workload is self.asked.workload or not isinstance(self.workload, TableQueries):
            return None
        return [float(weight) for weight in self.workload.table_weights]

    @property
    def plan(self) -> Plan:
        """The mechanism, budget and weights, to save, or for the argument `mechanism` of `release`.

        ``gd.release(records, schema, "marginals:2", privacy=found.privacy, weights=found.weights,
        mechanism=found.plan)`` releases what was found.
        """
        return replace(plan_of(self.advice, self.asked.rows), weights=self.weights)

    @property
    def excluded(self) -> str:
        """The budgets that are proved to be too small, in words."""
        if (low := self.impossible) is None:
            return "no budget is proved to be too small for every mechanism"
        least = printed_down(low.budget)
        ratio = self.budget / low.budget
        return f"{self.parameter} {least} or less, for every mechanism (ratio {ratio:.3g})"

    @property
    def table(self) -> pd.DataFrame:
        """`predictions` as a data frame."""
        from geomdp.advice.printed_table import PrintedTable

        return PrintedTable(self.predictions(), columns=TableErrors._fields)

    def predictions(self) -> list[TableErrors]:
        """Errors of each table, or of all queries together: rmse, and largest half-width of 95%.

        They are errors of shares without weights, and of the noisy answers. Of a mechanism without
        additive noise, only the rmse of all queries is known.
        """
        workload, mechanism = self.workload, self.mechanism
        if additive_within(mechanism) is None:
            return [TableErrors("all queries", 1.0, mechanism.predicted_rmse.value, math.nan)]
        places: list[tuple[tuple[str, ...] | None, float]] = [(None, 1.0)]
        if isinstance(workload, TableQueries | ProductQueries):
            cells = cells_of(workload)
            places = list(zip(_names(cells), cells.table_weights.tolist(), strict=True))
        return [
            TableErrors(
                "all queries" if over is None else " x ".join(over),
                weight,
                RootMeanSquare(1.0, over).error(mechanism),
                HalfWidth(1.0, over).error(mechanism),
            )
            for over, weight in places
        ]

    def errors(self, budget: float | None = None) -> list[tuple[Target, float]]:
        """Each target with the predicted error; at another `budget`, of the same mechanism."""
        mechanism = self.mechanism
        if budget is not None:
            step, row = candidate_named(self.advice.flag)
            assert row is not None  # the flag of the advice names a candidate
            mechanism = row.built(self.asked.setting(self.workload, budget), step)
        return [(target, target.error(mechanism)) for target in self.asked.targets]

    @property
    def parameter(self) -> str:
        """The name of the budget: epsilon or rho."""
        return "rho" if isinstance(self.privacy, ZCDP) else "epsilon"

    def __repr__(self) -> str:
        return f"LeastBudget({self})"

    def __str__(self) -> str:
        count = len(self.asked.targets)
        said = "meets: " if count == 1 else f"meets {count} targets, of which binds: "
        return f"{self.privacy} {said}{self.binding}; impossible: {self.excluded}"

    def _repr_html_(self) -> str:
        rows = self.table.to_html(index=False, float_format="{:.4g}".format)
        return f"<p>{html.escape(str(self))}</p>{rows}"


def budget_for(
    workload: Workload,
    *,
    n: int,
    targets: Sequence[Target],
    privacy: Callable[[float], Privacy] = PureDP,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
    exact_only: bool = True,
    max_rows_per_person: int | None = None,
) -> LeastBudget:
    """The least budget with which the advised mechanism meets all targets, from public numbers.

    For tables with targets of their own or for single cells, weights of the tables are sought that
    need less budget. The weights are kept if they do. A proof gives a budget that is too small for
    every mechanism: for root mean squared errors the arguments of `sample_complexity_bracket`
    without its packings, for others `geomdp.bounds.ConfidentAnswers`.

    Parameters
    ----------
    workload : Workload
        m queries.
    n : int
        Number of records. Under add/remove, the declared public number by which sums are divided.
    targets : sequence of RootMeanSquare, HalfWidth and LargestError
        At least one limit, of mean answers. All must be met.
    privacy : callable
        The definition of privacy, as a function of epsilon or rho: `PureDP`, `ZCDP`, or
        ``functools.partial(gd.ApproxDP, delta=1e-6)``.
    adjacency : Adjacency
        Neighbour relation.
    exact_only : bool
        Whether mechanisms with a heuristic sampler, which have no guarantee, are left out.
    max_rows_per_person : int, optional
        If given, the budget is for persons of whom at most this many rows are counted, as in
        `geomdp.release`, and needs add/remove. The mechanism has `member_privacy` for a row.

    Raises
    ------
    ValueError
        If an argument is invalid, if any budget from 1e-6 on meets the targets or none up to 1e6
        does, or if a target asks for more than the root mean squared error of all queries and the
        advised mechanism adds no noise of a known law.

    Notes
    -----
    Cost: 3 to 20 times that of `advise`. Formula sheet X-BUDGET.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(4)
    >>> targets = [gd.advice.HalfWidth(0.02), gd.advice.LargestError(0.03, over=0)]
    >>> print(gd.budget_for(workload, n=1000, targets=targets, privacy=gd.ZCDP).privacy)
    0.00720274-zCDP
    """
    checked = tuple(listed(targets, "targets"))
    if not checked:
        raise ValueError("targets must hold at least 1 target, got 0")
    for target in checked:
        require_type(target, Target, "each of targets")
        target.queries(workload)
    try:
        check_privacy(privacy(1.0))
    except (TypeError, ValueError) as error:
        raise ValueError(
            "privacy must make a definition of privacy from a number, such as gd.PureDP, gd.ZCDP "
            f"or functools.partial(gd.ApproxDP, delta=1e-6), got {privacy!r}"
        ) from error
    rows = max_rows_per_person
    Guarantee(privacy(1.0), adjacency, Exact(), max_rows_per_person=rows)
    asked = Asked(workload, whole(n, "n"), checked, privacy, adjacency, exact_only, rows)
    l1_sensitivity(workload, adjacency)  # raises an error if it is 0
    budget, advice = least_budget(asked, workload, 1.0)
    totals = all(isinstance(t, RootMeanSquare) and t.over is None for t in checked)
    if isinstance(workload, TableQueries) and len(workload.tables) > 1 and not totals:
        weighted = weighted_tables(asked, workload, budget, advice.best)
        less = least_budget(asked, weighted, budget)
        if less[0] < budget:
            (budget, advice), workload = less, weighted
    binding = max(checked, key=lambda target: target.error(advice.best) / target.limit)
    proved = [impossible_budget(asked, target) for target in checked]
    low = max(filter(None, proved), key=lambda each: each.budget, default=None)
    return LeastBudget(budget, privacy(budget), workload, advice, binding, low, asked)
