"""Lower bounds on the sample complexity, from packings, guesses and lines, alone and combined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from geomdp._typing import RandomState
from geomdp.bounds import (
    Bound,
    Certificate,
    Effort,
    Side,
    SideConditionError,
    WorstCase,
    guessing_bound,
    marginal_bound,
    orthogonal_lines_bound,
    packing_search,
    query_lines_bound,
)
from geomdp.bounds.certificates import Rung, covering_bound
from geomdp.bounds.guessing import guess_rungs
from geomdp.bounds.orthogonal_lines import line_rungs
from geomdp.bounds.packings import DEFAULT_EFFORT
from geomdp.bounds.problem import Problem
from geomdp.bounds.query_lines import query_line_rungs
from geomdp.workloads import Marginals, Workload, WorkloadSizeError

#: A method that proves lower bounds. It takes a workload, copies of the question (see `_forms`) and
#: a random generator, and returns a bound. It raises `SideConditionError` if it does not apply, or
#: `WorkloadSizeError` if the workload is too large.
Argument = Callable[[Workload, tuple[Problem, ...], np.random.Generator], Bound]

#: Separation factors c that are tried besides the factor of the metric. For the target error alpha,
#: the answers of packed data sets are at least c alpha apart. Every factor gives a valid bound on
#: the same sample complexity. A bound from M data sets is proportional to (ln(M - 1) + log odds(c))
#: / c. Here log odds(c) is the property `log_odds` of the metric for the factor c. The best c is 4
#: for about 8 data sets (for `RMS`, 2 sqrt(2) for about 56 data sets). It is larger for fewer data
#: sets, and tends to 2 for many data sets.
FACTORS = (2.125, 2.25, 2.5, 2.75, 3.0, 3.5, 5.0)

#: Effort of a search among data sets of one element. Random multisets of elements are drawn only if
#: there are fewer elements than `pool`, so `pool` has its smallest possible value, 3.
SINGLE_ELEMENTS = Effort(pool=3, exchanges=0)
#: The first search with each separation factor uses at most `FORM_ANSWERS` answers (elements times
#: queries). The later search with the best factor uses at most `BEST_ANSWERS`. A packing of 2^11
#: data sets then takes seconds on one core. If there are many queries, few elements are searched,
#: but up to `LEAST_ELEMENTS` elements are always allowed.
FORM_ANSWERS, BEST_ANSWERS, LEAST_ELEMENTS = 1 << 18, 1 << 21, 1 << 8


def lower_bounds(
    workload: Workload, question: Problem, rng: RandomState
) -> tuple[list[Bound], dict[str, str]]:
    """Lower bounds from every method, best first, and the reasons why others do not apply."""
    generator = np.random.default_rng(rng)
    questions = _forms(question)
    found: list[Bound] = []
    refused: dict[str, str] = {}
    for name, argue in ARGUMENTS.items():
        try:
            found.append(argue(workload, questions, generator))
        except (SideConditionError, WorkloadSizeError) as reason:
            refused[name] = str(reason)
    found.sort(key=lambda bound: -bound.value)
    if not found:
        return [Bound(0.0, Side.LOWER, "n >= 1, as no argument proves more")], refused
    other: list[Rung] = [*line_rungs(workload, question)]
    if question.epsilon is not None:
        other += guess_rungs(workload, question)
        if isinstance(question.metric, WorstCase):
            other += query_line_rungs(workload, question)
    together = _together(found, other)
    return ([together, *found] if together.value > found[0].value else found), refused


def _forms(question: Problem) -> tuple[Problem, ...]:
    """Copies of the question: first with its own separation factor, then with each of `FACTORS`."""
    factors = dict.fromkeys((question.metric.separation, *FACTORS))
    metrics = [replace(question.metric, separation=factor) for factor in factors]
    return tuple(replace(question, metric=metric) for metric in metrics)


def _together(bounds: list[Bound], other: Sequence[Rung]) -> Bound:
    """The best bound from combining packings of several bounds with `other` excluded ranges.

    Packings are combined only if they have the same separation factor; `other` ranges have none.
    """
    rungs: dict[Problem, list[Rung]] = {}
    for bound in bounds:
        assert isinstance(bound.certificate, Certificate)
        own = rungs.setdefault(bound.certificate.problem, list(other))
        own += bound.certificate.rungs
    covering = [covering_bound(parts, asked) for asked, parts in rungs.items()]
    return max(covering, key=lambda bound: bound.value)


def _search(workload: Workload, questions: tuple[Problem, ...], rng: np.random.Generator) -> Bound:
    """Search packings of single elements for every separation factor, then of multisets for two."""

    def search(question: Problem, effort: Effort) -> Bound:
        return packing_search(
            workload,
            epsilon=question.pure_epsilon,
            alpha=question.alpha,
            metric=question.metric,
            adjacency=question.adjacency,
            effort=effort,
            rng=rng,
        )

    single = _within(FORM_ANSWERS, workload, SINGLE_ELEMENTS)
    full = _within(BEST_ANSWERS, workload, DEFAULT_EFFORT)
    try:
        first = _best(questions, lambda question: search(question, single))
    except SideConditionError:
        return search(questions[0], full)
    assert isinstance(first.certificate, Certificate)
    best = first.certificate.problem
    try:
        # The best factor and the factor of the question are often the same.
        again = tuple(dict.fromkeys((best, questions[0])))
        further = _best(again, lambda question: search(question, full))
    except SideConditionError:
        return first
    return max(first, further, key=lambda bound: bound.value)


def _within(answers: int, workload: Workload, effort: Effort) -> Effort:
    """`effort` for at most `answers` answers, but `LEAST_ELEMENTS` elements are always allowed."""
    most = max(LEAST_ELEMENTS, answers // workload.n_queries)
    return replace(effort, elements=min(effort.elements, most))


def _marginal_blocks(
    workload: Workload, questions: tuple[Problem, ...], rng: np.random.Generator
) -> Bound:
    """The bound from codes and Hadamard blocks (JL-T25), for `Marginals` only."""
    del rng
    if not isinstance(workload, Marginals):
        raise SideConditionError(
            "it applies only to `Marginals`, that is, to monotone conjunctions"
        )
    return _best(
        questions,
        lambda question: marginal_bound(
            workload.d,
            workload.k,
            epsilon=question.pure_epsilon,
            alpha=question.alpha,
            metric=question.metric,
            adjacency=question.adjacency,
        ),
    )


def _guesses(workload: Workload, questions: tuple[Problem, ...], rng: np.random.Generator) -> Bound:
    """The bound from guesses. They have no separation factor, so the first question is enough."""
    del rng
    question = questions[0]
    return guessing_bound(
        workload,
        epsilon=question.pure_epsilon,
        alpha=question.alpha,
        metric=question.metric,
        adjacency=question.adjacency,
    )


def _lines(workload: Workload, questions: tuple[Problem, ...], rng: np.random.Generator) -> Bound:
    """The bound from orthogonal lines, for every guarantee."""
    del rng
    question = questions[0]
    return orthogonal_lines_bound(
        workload,
        privacy=question.guarantee,
        alpha=question.alpha,
        metric=question.metric,
        adjacency=question.adjacency,
    )


def _query_lines(
    workload: Workload, questions: tuple[Problem, ...], rng: np.random.Generator
) -> Bound:
    """The bound from lines along single queries, for the largest error and pure privacy."""
    del rng
    question = questions[0]
    if not isinstance(question.metric, WorstCase):
        raise SideConditionError("it bounds only the largest error over the queries")
    return query_lines_bound(
        workload,
        epsilon=question.pure_epsilon,
        alpha=question.alpha,
        adjacency=question.adjacency,
    )


def _best(questions: tuple[Problem, ...], argue: Callable[[Problem], Bound]) -> Bound:
    """The largest bound over all separation factors; raises the last error if all fail."""
    found: list[Bound] = []
    errors: list[SideConditionError] = []
    for question in questions:
        try:
            found.append(argue(question))
        except SideConditionError as error:
            errors.append(error)
    if not found:
        raise errors[-1]
    return max(found, key=lambda bound: bound.value)


#: All methods that prove lower bounds, by name.
ARGUMENTS: dict[str, Argument] = {
    "search over elements and multisets (JL-L6, JL-L7)": _search,
    "codes and Hadamard blocks (JL-T25)": _marginal_blocks,
    "orthogonal lines": _lines,
    "lines along single queries": _query_lines,
    "guesses between separated elements": _guesses,
}
