"""Check of certificate steps (rungs) that bound the average error of guessing an element.

Take elements x_1, ..., x_M and a number t of copies. For n >= t records let X_i have t copies of
x_i and n - t copies of a fixed element. Let epsilon be the privacy loss of one replaced record. The
densities f_i of an output differ by a factor of at most R = e^(epsilon t). Shifted and scaled, the
output is an estimate v of the answer a_i of x_i. Let r_i = ||v - a_i||. The error for X_i is
t r_i / n. If for a uniform prior on i, the mean of r_i^p is at least lambda^p for every v, an error
alpha is excluded for all n with t <= n < t lambda / alpha. Scale the f_i to numbers between 1 and
R. It is enough that sum_i f_i (r_i^p - lambda^p) >= 0 for every v. Let any two answers be at least
gamma apart, and let distances be computed again from the answers.

Separated elements: lambda^p = min((gamma / sqrt 2)^p, G M / (M - 1 + R)), where the norm is the
root mean square and G is the minimum over v of (r_1^p + ... + r_M^p) / M. The bound also holds for
the largest error. Proof. The sum is at least

    sum_i (r_i^p - lambda^p) - (R - 1) sum_i max(0, lambda^p - r_i^p).

The first sum is at least M (G - lambda^p). The second is over the s elements with r_i < lambda. The
sum of their r_i^2 is at least that of the squared distances of their a_i from the mean of these,
which is at least (s - 1) gamma^2 / 2 >= (s - 1) lambda^2. So for p = 2 the second sum is at most
lambda^2. For p = 1 it is at most lambda, because lambda - r <= (lambda^2 - r^2) / lambda.

Distant elements: let d_ij = ||a_i - a_j||, and D the least over i of the mean of d_ij over the
other M - 1 elements j. lambda is the smaller of gamma / 2 and

    D (M - 1) / (M - 1 + R)  for p = 1,     D (R (M - 1))^(1/2) / (M - 1 + R)  for p = 2.

Proof. Since r_i + r_j >= d_ij >= 2 lambda, at most one r_i is below lambda. Let r = r_i be this
distance. The other terms are at least 0, because r_j >= d_ij - r >= lambda. So the sum is at least

    R (r^p - lambda^p) + sum over j other than i of ((d_ij - r)^p - lambda^p)
      >= R r^p + (M - 1) (D - r)^p - (M - 1 + R) lambda^p,

because (d - r)^p is convex and increasing in d >= r, and D >= gamma > r. For p = 1 this is linear
in r, and at least 0 at r = 0 and r = lambda. For p = 2 the least value of R r^2 + (M - 1) (D - r)^2
over all r is R (M - 1) D^2 / (M - 1 + R).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from geomdp.bounds.checker.listed import UNIT, answers_of
from geomdp.bounds.checker.norms import MEASURES, Measure, Norm
from geomdp.bounds.checker.values import (
    Part,
    excluded_records,
    require,
    require_at_most,
    rounded_down,
)
from geomdp.bounds.checker.verified import Verified

Vectors = npt.NDArray[np.float64]

#: The types of families with elements that are far apart.
TYPES = ("separated elements", "distant elements")
#: Largest privacy loss of all copies together. Its exponential is in the range of float64.
MOST_LOG_RATIO = 600.0
#: The norm for distances between separated elements: the root mean square of the entries.
EUCLIDEAN = MEASURES["root mean squared error per query"].norm


def verify_guesses(
    rung: Part, alpha: float, epsilon: float, measure: Measure
) -> tuple[Verified, int, int]:
    """Check a rung; return the result, and the first and last n that it excludes."""
    family = rung.part("family")
    answers, subject, queries, conditions = answers_of(family)
    require(len(answers) >= 2, "there are fewer than 2 elements")
    # A difference of two answers is computed, squared and added.
    family.work.spend(4 * answers.size * len(answers) + 50_000 * len(answers))
    copies, scale = rung.whole("copies"), rung.number("scale")
    require(epsilon * copies <= MOST_LOG_RATIO, "epsilon of all copies is above 600")
    proved = _separated if family.word("type") == "separated elements" else _distant
    least = copies * proved(rung, answers, math.exp(epsilon * copies), measure)
    require_at_most(scale, least * (1 - 1e-12), "scale")
    first, last = excluded_records(rung, copies, scale / alpha)
    verified = (
        f"{len(answers)} elements with answers at least {rounded_down(rung.number('separation'))} "
        f"apart, and the average error of guessing which of them a data set of {copies} "
        f"cop{'ies' if copies > 1 else 'y'} holds",
    )
    return (
        Verified(subject=subject, queries=queries, verified=verified, conditions=conditions),
        first,
        last,
    )


def _separated(rung: Part, answers: Vectors, ratio: float, measure: Measure) -> float:
    """The checked number lambda for elements with answers far apart in root mean square."""
    count, k = answers.shape
    separation = _separation(rung, answers, EUCLIDEAN)
    centre, spread = rung.part("family").array("centre", axes=1), rung.number("spread")
    require(len(centre) == k, f"centre does not have {k} entries")
    # Rounding errors of `_spread` are relative to the largest distance from the centre.
    steps = answers - centre
    slack = _rounding(answers) * float(EUCLIDEAN(steps).max()) ** measure.moment
    power = max(0.0, _spread(steps, separation, measure.moment) - slack)
    require_at_most(spread, power ** (1 / measure.moment) * (1 - UNIT), "spread")
    share = count / (count - 1 + ratio)
    return min(separation / math.sqrt(2), spread * float(share ** (1 / measure.moment)))


def _distant(rung: Part, answers: Vectors, ratio: float, measure: Measure) -> float:
    """The checked number lambda for elements with answers far apart in the norm of `measure`."""
    others, distance = len(answers) - 1, rung.number("distance")
    separation = _separation(rung, answers, measure.norm)
    found = min(float(measure.norm(answers - answer).sum()) for answer in answers) / others
    require_at_most(distance, found * (1 - _rounding(answers)), "distance")
    # The formulas for the two moments differ only in `share`.
    share = others if measure.moment == 1 else math.sqrt(others) * math.sqrt(ratio)
    return min(separation / 2, distance * share / (others + ratio))


def _separation(rung: Part, answers: Vectors, norm: Norm) -> float:
    """The separation that the rung states, after a check that no two answers are closer."""
    closest = min(float(norm(answers[:i] - answers[i]).min()) for i in range(1, len(answers)))
    separation = rung.number("separation")
    require_at_most(separation, closest * (1 - _rounding(answers)), "separation")
    return separation


def _rounding(answers: Vectors) -> float:
    """Bound on the relative error of a distance, or mean distance, of exact answers."""
    # The answers are exact: they are the floats of the file, or whole numbers. So each entry of a
    # difference has a relative error of one rounding, however close the two answers are. Squares
    # that underflow do not matter, because no distance below `LEAST` is accepted.
    operations: int = 2 * answers.shape[1] + len(answers) + 8
    return operations * UNIT


def _spread(steps: Vectors, separation: float, moment: int) -> float:
    """A lower bound on the mean over i of ||a_i - v||^p, for every v and p = `moment`."""
    if moment == 2:
        return float(((steps - steps.mean(axis=0)) ** 2).mean(axis=1).mean())
    # Let z_i, the `directions`, be vectors of length at most 1 that add up to 0. For any v, the
    # mean of ||a_i - v|| is at least the mean of <z_i, a_i - v>, which equals the mean of <z_i, a_i
    # - c> for any centre c. A best v is in the convex hull of the answers, so no farther from c
    # than the farthest answer. Therefore rounding errors, also of the sum of the z_i, are relative
    # to this distance.
    lengths = EUCLIDEAN(steps)
    directions = steps / np.maximum(lengths, separation / 2)[:, None]
    directions = directions - directions.mean(axis=0)
    longest = max(1.0, float(EUCLIDEAN(directions).max()))
    return float((directions * steps).mean(axis=1).mean()) / longest
