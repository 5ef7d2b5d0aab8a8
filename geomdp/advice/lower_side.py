"""The lower side of a bracket: the packings and lines that apply to a workload, chained."""

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
    marginal_bound,
    orthogonal_lines_bound,
    packing_search,
)
from geomdp.bounds.certificates.certificate import covering_bound
from geomdp.bounds.certificates.problem import Problem
from geomdp.bounds.certificates.rung import ExcludedRange
from geomdp.bounds.lines.bounds import line_rungs
from geomdp.bounds.packings.search import DEFAULT_EFFORT
from geomdp.workloads import Marginals, Workload, WorkloadSizeError

#: One argument: a bound for a workload and one question in several forms, or `SideConditionError`.
Argument = Callable[[Workload, tuple[Problem, ...], np.random.Generator], Bound]

#: Separation factors c tried besides that of the metric; all prove the same statement. A bound from
#: M data sets is proportional to (ln(M - 1) + log odds(c)) / c. It is largest near c = 4 (2 sqrt(2)
#: for `RMS`) for few data sets, and at a smaller c, down to 2, for many.
FACTORS = (2.125, 2.25, 2.5, 2.75, 3.0, 3.5, 5.0)

#: A search that leaves multisets out: no pool, no exchanges.
SINGLE_ELEMENTS = Effort(pool=3, exchanges=0)
#: Most answers searched for each separation factor, and for the best one: a packing of 2^11 data
#: sets then takes seconds on one core. Workloads of many queries have few elements searched, but at
#: least 2^8.
FORM_ANSWERS, BEST_ANSWERS, LEAST_ELEMENTS = 1 << 18, 1 << 21, 1 << 8


def lower_bounds(
    workload: Workload, question: Problem, rng: RandomState
) -> tuple[list[Bound], dict[str, str]]:
    """Lower bounds on the sample complexity from every argument that applies, best first.

    Parameters
    ----------
    workload : Workload
        k queries.
    question : Problem
        Privacy, error, metric and neighbour relation.
    rng : Generator, int or None
        Randomness of the searches.

    Returns
    -------
    list of Bound
        The best chain of all packings found, then each argument by itself; n >= 1, which needs no
        argument, where none proves anything.
    dict of str to str
        Why the others prove nothing.
    """
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
    together = _together(found, line_rungs(workload, question))
    return ([together, *found] if together.value > found[0].value else found), refused


def _forms(question: Problem) -> tuple[Problem, ...]:
    """The question with its own separation factor, and with each of `FACTORS`."""
    factors = dict.fromkeys((question.metric.separation, *FACTORS))
    metrics = [replace(question.metric, separation=factor) for factor in factors]
    return tuple(replace(question, metric=metric) for metric in metrics)


def _together(bounds: list[Bound], lines: Sequence[ExcludedRange]) -> Bound:
    """The best covering by packings and lines from several bounds.

    Its packings have the same separation factor. Lines need none and join packings of any.
    """
    rungs: dict[Problem, list[ExcludedRange]] = {}
    for bound in bounds:
        assert isinstance(bound.certificate, Certificate)
        own = rungs.setdefault(bound.certificate.problem, list(lines))
        own += bound.certificate.rungs
    covering = [covering_bound(parts, asked) for asked, parts in rungs.items()]
    return max(covering, key=lambda bound: bound.value)


def _search(workload: Workload, questions: tuple[Problem, ...], rng: np.random.Generator) -> Bound:
    """Packings of single elements for every separation factor, of multisets for the best one."""

    def search(question: Problem, effort: Effort) -> Bound:
        return packing_search(
            workload,
            epsilon=question.epsilon,
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
    further = _best((best, questions[0]), lambda question: search(question, full))
    return max(first, further, key=lambda bound: bound.value)


def _within(answers: int, workload: Workload, effort: Effort) -> Effort:
    """`effort` with as many elements as have that many answers."""
    most = max(LEAST_ELEMENTS, answers // workload.n_queries)
    return replace(effort, elements=min(effort.elements, most))


def _marginal_blocks(
    workload: Workload, questions: tuple[Problem, ...], rng: np.random.Generator
) -> Bound:
    """Theorem 25, for the workload it speaks of."""
    del rng
    if not isinstance(workload, Marginals):
        raise SideConditionError("it is for monotone conjunctions, `Marginals`, alone")
    return _best(
        questions,
        lambda question: marginal_bound(
            workload.d,
            workload.k,
            epsilon=question.epsilon,
            alpha=question.alpha,
            metric=question.metric,
            adjacency=question.adjacency,
        ),
    )


def _lines(workload: Workload, questions: tuple[Problem, ...], rng: np.random.Generator) -> Bound:
    """Orthogonal lines; their bound has no separation factor."""
    del rng
    question = questions[0]
    return orthogonal_lines_bound(
        workload,
        epsilon=question.epsilon,
        alpha=question.alpha,
        metric=question.metric,
        adjacency=question.adjacency,
    )


def _best(questions: tuple[Problem, ...], argue: Callable[[Problem], Bound]) -> Bound:
    """The largest bound over all separation factors; raises the last error if there is none."""
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


#: All arguments by name.
ARGUMENTS: dict[str, Argument] = {
    "search over elements and multisets (JL-L6, JL-L7)": _search,
    "codes and Hadamard blocks (JL-T25)": _marginal_blocks,
    "orthogonal lines": _lines,
}
