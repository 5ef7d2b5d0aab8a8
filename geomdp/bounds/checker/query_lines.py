"""Check of the rungs that use lines along single queries: their bounds are computed again.

`geomdp.bounds.lines.query_lines` and `geomdp.bounds.lines.tail_risk` explain the proof and its
notation.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from geomdp.bounds.checker.listed import MOST_ANSWERS, answers_of
from geomdp.bounds.checker.norms import Measure
from geomdp.bounds.checker.values import (
    Part,
    excluded_records,
    require,
    require_at_most,
    require_close,
    rounded_down,
)
from geomdp.bounds.checker.verified import Verified

Vector = npt.NDArray[np.float64]

#: Largest number of steps of a line, and largest privacy loss of a line.
MOST_STEPS, MOST_LOSS = 1000, 600.0
#: Relative rounding error allowed for C, the field `scale` of a rung. It is below 1e-10, the share
#: by which this package makes C smaller before it writes a file.
ROUNDING = 1e-11


def verify_query_lines(
    rung: Part, alpha: float, epsilon: float, measure: Measure
) -> tuple[Verified, int, int]:
    """Check a rung (one step of a certificate) that uses lines along single queries.

    Returns the result of the check, and the first and last number of records that the rung
    excludes. `epsilon` is the privacy loss of replacing one record.
    """
    require(measure.largest, "query lines bound only the largest error")
    family = rung.part("family")
    answers, subject, queries, conditions = answers_of(family)
    length, count = _length(family, answers)
    prior, steps, copies = rung.array("prior", axes=1), rung.whole("steps"), rung.whole("copies")
    require(len(prior) == steps + 1, f"the prior does not have {steps + 1} entries")
    require(bool((prior >= 0).all()), "the prior is negative")
    # The sum must be 1. With a tiny sum, products of the prior with factors e^-epsilon would be
    # rounded to multiples of 5e-324.
    require_close(math.fsum(prior.tolist()), 1.0, "the sum of the prior")
    require(steps <= MOST_STEPS, f"a line has more than {MOST_STEPS} steps")
    require(epsilon * copies * steps <= MOST_LOSS, "the steps of a line lose too much privacy")
    family.work.spend(20 * steps**3 + 50_000 * steps**2)
    largest = math.fsum(
        -math.expm1(count * math.log1p(-_least_tail(prior, epsilon * copies, width)))
        for width in range(1, steps + 1)
    )
    found, scale = copies * length / 2 * largest, rung.number("scale")
    require_at_most(scale, found * (1 - ROUNDING), "scale")
    first, last = excluded_records(rung, copies * steps * count, scale / alpha)
    verified = (
        f"{count} lines along one query each, with answers at least {rounded_down(length)} apart, "
        f"and the largest error of independent guesses on them",
    )
    return (
        Verified(subject=subject, queries=queries, verified=verified, conditions=conditions),
        first,
        last,
    )


def _length(family: Part, answers: Vector) -> tuple[float, int]:
    """The least difference between a pair's answers to its own query, and the number of pairs.

    Both elements of a pair must have the same float64 answer to the query of every earlier pair.
    """
    pairs, queries = family.whole_array("pairs", axes=2), family.whole_array("queries", axes=1)
    inside = pairs.min() >= 0 and pairs.max() < len(answers)
    require(bool(inside) and pairs.shape[1] == 2, "pairs name elements that are not listed")
    require(len(queries) == len(pairs), "there is not one query for each pair")
    known = queries.min() >= 0 and queries.max() < answers.shape[1]
    require(bool(known), f"queries are not numbers from 0 to {answers.shape[1] - 1}")
    require(len(pairs) * answers.shape[1] <= MOST_ANSWERS, "there are too many answers of pairs")
    family.work.spend(10 * len(pairs) * (len(pairs) + answers.shape[1]) + 50_000 * len(pairs))
    first, second = answers[pairs[:, 0]], answers[pairs[:, 1]]
    for line in range(len(pairs)):
        before = queries[:line]
        unchanged = bool((first[line, before] == second[line, before]).all())
        require(unchanged, f"line {line} changes the query of an earlier line")
    own = np.arange(len(pairs))
    lengths = np.abs(first[own, queries] - second[own, queries])
    require(bool((lengths > 0).all()), "a line does not change its own query")
    return float(lengths.min()), len(pairs)


def _least_tail(prior: Vector, epsilon: float, width: int) -> float:
    """The least posterior probability that t lies outside a window of `width` numbers.

    The number t is the position on a line, and a window is a list of consecutive numbers. The
    minimum is over all windows and over all posteriors that are possible if a step of the line
    loses `epsilon`. The least probability is attained at a posterior that is proportional to the
    masses prior_t e^(-epsilon |t - peak|), for one of the numbers as `peak`. The prior has the sum
    1, and the line loses at most `MOST_LOSS`. So the sum of the masses is at least e^-600, and
    masses that underflow are too small to matter.
    """
    numbers, least = np.arange(len(prior)), 1.0
    for peak in range(len(prior)):
        masses = prior * np.exp(-epsilon * np.abs(numbers - peak))
        total = float(masses.sum())
        before = np.concatenate([[0.0], np.cumsum(masses)])[: len(prior) - width + 1]
        after = np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])[width:]
        least = min(least, float((before + after).min()) / total)
    return least
