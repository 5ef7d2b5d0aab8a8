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
    require_close,
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
    family.work.spend(2 * answers.size * len(answers))
    copies, scale = rung.whole("copies"), rung.number("scale")
    require(epsilon * copies <= MOST_LOG_RATIO, "epsilon of all copies is above 600")
    proved = _separated if family.word("type") == "separated elements" else _distant
    least = copies * proved(rung, answers, math.exp(epsilon * copies), measure)
    require_close(scale, least, "scale")
    require(scale <= least * (1 - 1e-12), f"scale is {least:.15g} up to rounding, not {scale:.15g}")
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
    points, slack, largest = answers / math.sqrt(k), _slack(answers), _largest(answers)
    centre, spread = rung.part("family").array("centre", axes=1), rung.number("spread")
    require(len(centre) == k, f"centre does not have {k} entries")
    require(bool((np.abs(centre) <= largest).all()), "centre is outside the range of the answers")
    squared = measure.moment == 2
    found = _mean_square(points) if squared else _mean_distance(points, centre / math.sqrt(k))
    require_close(spread, found, "spread")
    require(0 < spread <= found - slack * largest, f"spread is {found:.15g} up to rounding")
    power: float = spread * count / (count - 1 + ratio)
    return min(separation / math.sqrt(2), math.sqrt(power) if squared else power)


def _distant(rung: Part, answers: Vectors, ratio: float, measure: Measure) -> float:
    """The checked number lambda for elements with answers far apart in the norm of `measure`."""
    others, distance = len(answers) - 1, rung.number("distance")
    separation = _separation(rung, answers, measure.norm)
    found = min(float(measure.norm(answers - answer).sum()) for answer in answers) / others
    require_close(distance, found, "distance")
    require(distance <= found - _slack(answers), f"distance is {found:.15g} up to rounding")
    # `distant_elements` proves a formula for each moment. The formulas differ only in `share`.
    share = others if measure.moment == 1 else math.sqrt(others) * math.sqrt(ratio)
    return min(separation / 2, distance * share / (others + ratio))


def _separation(rung: Part, answers: Vectors, norm: Norm) -> float:
    """The separation that the rung states, after a check that no two answers are closer."""
    closest = min(float(norm(answers[:i] - answers[i]).min()) for i in range(1, len(answers)))
    separation = rung.number("separation")
    require_close(separation, closest, "separation")
    above = f"separation is {closest:.15g} up to rounding"
    require(0 < separation <= closest - _slack(answers), above)
    return separation


def _slack(answers: Vectors) -> float:
    """Bound on the rounding error of a distance, or of a mean of distances."""
    operations: int = 2 * answers.shape[1] + len(answers) + 8
    return operations * UNIT * _largest(answers)


def _largest(answers: Vectors) -> float:
    """The larger of 1 and the largest absolute value of an entry of `answers`."""
    return max(1.0, float(np.abs(answers).max()))


def _mean_square(points: Vectors) -> float:
    """Least mean squared distance of `points` (M, k) from a vector, attained at their mean."""
    return float(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean())


def _mean_distance(points: Vectors, centre: Vectors) -> float:
    """A lower bound on the mean distance of any vector from `points` (M, k).

    Let a_i be the points, and z_i vectors of length at most 1 that add up to 0. For any v, the mean
    of ||a_i - v|| is at least the mean of <z_i, a_i - v>. The latter equals the mean of
    <z_i, a_i - centre>, because the z_i add up to 0. Any centre proves a bound.
    """
    steps = points - centre
    lengths = np.linalg.norm(steps, axis=1, keepdims=True)
    directions = np.divide(steps, lengths, out=np.zeros_like(steps), where=lengths > 1e-9)
    directions = directions - directions.mean(axis=0)
    longest = max(1.0, float(np.linalg.norm(directions, axis=1).max()))
    return float(np.einsum("ij,ij->i", directions, steps).mean()) / longest
