"""Check of the rungs that use orthogonal lines: lengths and risks are computed again.

Take i pairs of elements (x_j, x'_j). Let w_j be the difference of their answers, and
delta_j = <u_j, w_j> for orthonormal vectors u_1..u_i. Let T_1..T_i be numbers of steps, and b a
number of copies. For 0 <= t_j <= T_j let X(t) be a data set of n >= b sum_j T_j records with b t_j
copies of x_j and b (T_j - t_j) copies of x'_j for every j; all others are copies of a fixed
element. Then n Q(X(t)) = constant + b sum_j t_j w_j for the k answers Q.

Fix all entries of t except t_j. Then n <u_j, M(X(t))>, less the part of n <u_j, Q(X(t))> that does
not depend on t_j, is an estimate of b t_j delta_j by a mechanism M. Data sets of t_j and t_j + 1
are b replacements apart. For independent priors, the p-th moment of its error, in units of
b delta_j, is at least the risk lambda_j for all values of the other entries. The errors add up:

    max_X E ||n (M(X) - Q(X))||_2^2  >=  b^2 sum_j lambda_j delta_j^2              (p = 2),
    max_X E ||n (M(X) - Q(X))||_2    >=  b (sum_j (lambda_j delta_j)^2)^(1/2)      (p = 1).

For the second inequality, use ||e||_2 >= sum_j a_j |<u_j, e>| for the vector a of norm 1 with a_j
proportional to lambda_j delta_j. Let C be the square root of the first right side divided by k for
p = 2, and the second divided by sqrt(k) for p = 1. No mechanism with the guarantee has an error
below C / n on all these data sets: alpha is excluded for all n with b sum_j T_j <= n < C / alpha.

The largest error over all queries is at least that over any k' of them, and so at least their
Euclidean norm divided by sqrt(k'). So the bound for k' queries holds, with k' in place of k in C.
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
    """Check a rung; return the result, and the first and last n that it excludes."""
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
    """The answers to all queries or, for the largest error only, to those that the file lists."""
    if "queries" not in family.values:
        return answers
    require(measure.largest, "lines for some of the queries bound only the largest error")
    queries = family.whole_array("queries", axes=1)
    inside = queries.min() >= 0 and queries.max() < answers.shape[1]
    require(bool(inside), f"queries are not numbers from 0 to {answers.shape[1] - 1}")
    require(bool((np.diff(queries) > 0).all()), "queries are not in increasing order")
    return np.asarray(answers[:, queries])


def _lengths(family: Part, answers: Vector) -> Vector:
    """Lengths |<u_j, w_j>|; the u_j are the columns of the polar factor of the weighted w_j."""
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
    """Check all risks in the file; return the risk by the number of steps of `changes` changes."""
    if guarantee.is_pure:
        return _risks(rung, guarantee.epsilon * changes, moment)
    found = [verify_risk(line, guarantee, changes, moment) for line in rung.parts("known")]
    require(len(dict(found)) == len(found), "a number of steps has two risks")
    return dict(found)


def _risks(rung: Part, epsilon: float, moment: int) -> dict[int, float]:
    """Check all risks in the file, for pure privacy; return the risk by the number of steps."""
    return dict(verify_allowances(line, epsilon, 0.0, moment) for line in rung.parts("known"))
