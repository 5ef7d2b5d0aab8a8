"""Check of the rungs that use orthogonal lines: lengths and risks are computed again.

`geomdp.bounds.lines.orthogonal_lines` and `geomdp.bounds.lines.bayes_risk` explain the proof and
its notation.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from geomdp.bounds.checker.allowances import verify_allowances
from geomdp.bounds.checker.guarantees import Guarantee
from geomdp.bounds.checker.listed import MOST_ANSWERS, answers_of
from geomdp.bounds.checker.norms import Measure
from geomdp.bounds.checker.steps import verify_risk
from geomdp.bounds.checker.values import (
    Part,
    excluded_records,
    require,
    require_at_most,
    rounded_down,
    rounded_up,
)
from geomdp.bounds.checker.verified import Verified

Vector = npt.NDArray[np.float64]

#: `_lengths` leaves out eigenvectors with eigenvalues below this share of the largest eigenvalue.
LEAST_EIGENVALUE = 1e-9


def verify_lines(
    rung: Part, alpha: float, guarantee: Guarantee, changes: int, measure: Measure
) -> tuple[Verified, int, int]:
    """Check a rung (one step of a certificate) that uses orthogonal lines.

    Returns the result of the check, and the first and last number of records that the rung
    excludes. Replacing one record takes `changes` changes, each of which leads to a neighbouring
    data set.
    """
    family, moment = rung.part("family"), measure.moment
    answers, subject, queries, conditions = answers_of(family)
    answers = _bounded_queries(family, answers, measure)
    lengths = _lengths(family, answers)
    steps, copies = rung.whole_array("steps", axes=1), rung.whole("copies")
    require(
        len(steps) == len(lengths),
        f"the entry 'steps' must have one number for each of {len(lengths)} lines",
    )
    require(bool(steps.min() >= 1), "a line has no step")
    risks = _known_risks(rung, guarantee, copies * changes, moment)
    require(
        sorted(risks) == sorted(set(steps.tolist())),
        "the entry 'known' must have one risk for each value in 'steps'",
    )
    squares = sum(
        length**2 * risks[count] ** (2 / moment)
        for count, length in zip(steps.tolist(), lengths.tolist(), strict=True)
    )
    found = copies * math.sqrt(squares / answers.shape[1])
    scale = rung.number("scale")
    require_at_most(scale, found * (1 - 1e-10), "scale")
    first, last = excluded_records(rung, copies * int(steps.sum()), scale / alpha)
    shortest, longest = rounded_down(float(lengths.min())), rounded_up(float(lengths.max()))
    return (
        Verified(
            subject=subject,
            queries=queries,
            verified=(
                f"{len(steps)} orthogonal lines with answers {shortest} to {longest} "
                f"apart, and the Bayes risk of the steps on one line",
            ),
            conditions=conditions,
        ),
        first,
        last,
    )


def _bounded_queries(family: Part, answers: Vector, measure: Measure) -> Vector:
    """The answers to the queries whose errors the lines bound: all, or those that the file lists.

    The largest error over some of the queries is at most the largest error over all of them. This
    is not true of the other measures of error.
    """
    if "queries" not in family.values:
        return answers
    require(measure.largest, "lines for some of the queries bound only the largest error")
    queries = family.whole_array("queries", axes=1)
    inside = queries.min() >= 0 and queries.max() < answers.shape[1]
    require(bool(inside), f"queries are not numbers from 0 to {answers.shape[1] - 1}")
    require(bool((np.diff(queries) > 0).all()), "queries are not in increasing order")
    return np.asarray(answers[:, queries])


def _lengths(family: Part, answers: Vector) -> Vector:
    """|<u_j, w_j>| for differences w_j of answers and vectors u_j.

    The weighted w_j are the columns of a matrix. The u_j are the columns of its polar factor. They
    are orthonormal if no eigenvalue is left out.
    """
    pairs, weights = family.whole_array("pairs", axes=2), family.array("weights", axes=1)
    inside = pairs.min() >= 0 and pairs.max() < len(answers)
    require(bool(inside) and pairs.shape[1] == 2, "pairs name elements that are not listed")
    require(
        len(weights) == len(pairs) and bool((weights > 0).all()),
        "weights are not one number above 0 per pair",
    )
    require(len(pairs) <= answers.shape[1], "there are more lines than queries")
    require(answers[0].size * len(pairs) <= MOST_ANSWERS, "there are too many answers of pairs")
    family.work.spend(len(pairs) ** 2 * (answers.shape[1] + 10 * len(pairs)))
    family.work.spend(20 * answers[0].size * len(pairs))
    differences = answers[pairs[:, 0]] - answers[pairs[:, 1]]
    scaled = differences * (weights / weights.max())[:, None]
    values, vectors = np.linalg.eigh(scaled @ scaled.T)
    require(bool(values[-1] > 0), "all differences are 0")
    kept = values > LEAST_EIGENVALUE * values[-1]
    axes = (vectors[:, kept] / np.sqrt(values[kept])).T @ scaled
    # Rounding makes axes of small eigenvalues less accurately orthonormal. One Newton step for the
    # polar factor corrects them.
    axes = 1.5 * axes - 0.5 * (axes @ axes.T) @ axes
    frame = vectors[:, kept] @ axes
    # The bound holds for any u_j if the matrix of the u_j has operator norm at most 1. The result
    # is divided by this norm. So the weights and the rounding of the steps above need no check.
    norm = math.sqrt(float(np.linalg.eigvalsh(frame @ frame.T)[-1]))
    return np.asarray(np.abs(np.einsum("jk,jk->j", frame, differences)) / norm)


def _known_risks(rung: Part, guarantee: Guarantee, changes: int, moment: int) -> dict[int, float]:
    """Check all risks in the file; return the risk for each number of steps of a line.

    One step takes `changes` changes, each to a neighbouring data set.
    """
    if guarantee.is_pure:
        return _risks(rung, guarantee.epsilon * changes, moment)
    found = [verify_risk(line, guarantee, changes, moment) for line in rung.parts("known")]
    require(len(dict(found)) == len(found), "a number of steps has two risks")
    return dict(found)


def _risks(rung: Part, epsilon: float, moment: int) -> dict[int, float]:
    """Check all risks in the file; return the risk for each number of steps. Pure privacy only."""
    return dict(verify_allowances(line, epsilon, 0.0, moment) for line in rung.parts("known"))
