"""Check of certificate steps (rungs) that bound the average error of guessing an element.

The answers of the elements are far apart. `geomdp.bounds.packings.guessing` explains the argument
and its notation. Two modules beside it, `separated_elements` and `distant_elements`, prove formulas
for lambda, a lower bound on the average error of an estimate of the answers of an unknown element.
Here every distance is computed again from the answers of the elements.
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
    """Check a rung (one step of a certificate) that uses separated or distant elements.

    Returns the result of the check, and the first and last number of records that the rung
    excludes. `epsilon` is the privacy loss of replacing one record.
    """
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
    # `distant_elements` proves a formula for each moment. The formulas differ only in `share`.
    share = others if measure.moment == 1 else math.sqrt(others) * math.sqrt(ratio)
    return min(separation / 2, distance * share / (others + ratio))


def _separation(rung: Part, answers: Vectors, norm: Norm) -> float:
    """The separation that the rung states, after a check that no two answers are closer."""
    closest = min(float(norm(answers[:i] - answers[i]).min()) for i in range(1, len(answers)))
    separation = rung.number("separation")
    require_at_most(separation, closest * (1 - _rounding(answers)), "separation")
    return separation


def _rounding(answers: Vectors) -> float:
    """Bound on the relative rounding error of a distance, or of a mean of distances.

    The answers are exact: they are the floats of the file, or whole numbers. So each entry of a
    difference has a relative error of one rounding, however close the two answers are. Squares that
    underflow do not matter, because no distance below `LEAST` is accepted.
    """
    operations: int = 2 * answers.shape[1] + len(answers) + 8
    return operations * UNIT


def _spread(steps: Vectors, separation: float, moment: int) -> float:
    """A lower bound on the mean over answers a_i of ||a_i - v||^p, for every v and p = `moment`.

    `steps` (M, k) are the answers minus a centre c; any c proves a bound. For p = 2 the best v is
    the mean of the answers. For p = 1 let z_i be vectors of length at most 1 that add up to 0. For
    any v, the mean of ||a_i - v|| is at least the mean of <z_i, a_i - v>. The latter equals the
    mean of <z_i, a_i - c>, because the z_i add up to 0. Here z_i is a_i - c, divided by its length
    or by half of the `separation`, minus the mean of these vectors.

    A best v is in the convex hull of the answers, so no farther from c than the farthest answer.
    Therefore rounding errors, also of the sum of the z_i, are relative to this distance.
    """
    if moment == 2:
        return float(((steps - steps.mean(axis=0)) ** 2).mean(axis=1).mean())
    lengths = EUCLIDEAN(steps)
    directions = steps / np.maximum(lengths, separation / 2)[:, None]
    directions = directions - directions.mean(axis=0)
    longest = max(1.0, float(EUCLIDEAN(directions).max()))
    return float((directions * steps).mean(axis=1).mean()) / longest
