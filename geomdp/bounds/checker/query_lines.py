"""Check of the rungs that use lines along single queries: their bounds are computed again.

Take g pairs of elements (x_j, x'_j) and g queries q_j. The answers of x_j and x'_j to q_j differ by
at least delta > 0, and those of x_i and x'_i, i > j, are the same. A data set of n >= b g T records
has b t_j copies of x_j and b (T - t_j) copies of x'_j for every j, 0 <= t_j <= T, and copies of a
fixed element. The answer to q_j depends on t_1, ..., t_j only.

Take the same prior on each t_j, independently. Let e_j be n times the absolute error for q_j, and
s > 0. Given an output and t_1, ..., t_{j-1}, e_j < s only if t_j is in an open interval of length
2 s / (b delta) or less, which has at most m whole numbers: m is its length rounded up. By
`_least_tail`, t_j is outside any m consecutive numbers with a probability of at least p(m). This is
also true for the mean over t_{j+1}, ..., t_g, because the mean of private densities is private. For
j = g, then j = g - 1, and so on: all g errors are below s with a probability of at most
(1 - p(m))^g. Integrate one minus this number over s: n times the mean of the largest error is, on
some of these data sets, at least

    C = (b delta / 2) sum_{m=1}^T (1 - (1 - p(m))^g).

An error alpha is excluded for all n with b g T <= n < C / alpha.
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
    """Check a rung; return the result, and the first and last n that it excludes."""
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
    """The least difference of a pair's answers to its own query, and the number of pairs."""
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
    """The least posterior probability that t is outside a window of `width` numbers."""
    # Let W be the numbers from l to r, x = f_l and y = f_r for the output densities f_t, and q =
    # e^-epsilon. The ratio of the masses outside and inside W is smallest if f_t is as small as
    # possible outside, x q^(l - t) for t < l and y q^(t - r) for t > r, and as large as possible
    # inside, the smaller one of x q^(l - t) and y q^(t - r). The mass outside is linear in (x, y),
    # that inside is concave and piecewise linear. So the ratio is smallest where two pieces meet,
    # at some `peak` in W, and f_t is proportional to q^|t - peak|.
    numbers, least = np.arange(len(prior)), 1.0
    for peak in range(len(prior)):
        masses = prior * np.exp(-epsilon * np.abs(numbers - peak))
        # The prior has the sum 1 and the line loses at most `MOST_LOSS`. So the sum of the masses
        # is at least e^-600, and masses that underflow are too small to matter.
        total = float(masses.sum())
        before = np.concatenate([[0.0], np.cumsum(masses)])[: len(prior) - width + 1]
        after = np.concatenate([np.cumsum(masses[::-1])[::-1], [0.0]])[width:]
        least = min(least, float((before + after).min()) / total)
    return least
