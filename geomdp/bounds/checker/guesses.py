"""Check of the rungs that use the average error over separated elements.

`geomdp.bounds.packings.guessing` explains the proof and its notation. Here every distance is
computed again from the answers of the elements.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from geomdp.bounds.checker.listed import UNIT, answers_of
from geomdp.bounds.checker.values import Part, require, require_close, rounded_down
from geomdp.bounds.checker.verified import Verified

Vectors = npt.NDArray[np.float64]

#: Largest privacy loss of all copies together. Its exponential is in the range of float64.
MOST_LOG_RATIO = 600.0


def verify_guesses(
    rung: Part, alpha: float, epsilon: float, moment: int
) -> tuple[Verified, int, int]:
    """Check a rung (one step of a certificate) that uses separated elements.

    Returns the result of the check, and the first and last number of records that the rung
    excludes. `epsilon` is the privacy loss of replacing one record. `moment` is 2 for a root mean
    squared error and 1 for other errors.
    """
    family = rung.part("family")
    answers, subject, queries, conditions = answers_of(family)
    count, k = answers.shape
    require(count >= 2, "there are fewer than 2 elements")
    family.work.spend(2 * count**2 * k)
    points = answers / math.sqrt(k)
    closest = min(
        float(np.linalg.norm(points[:i] - points[i], axis=1).min()) for i in range(1, count)
    )
    largest = max(1.0, float(np.abs(answers).max()))
    slack = (2 * k + count + 8) * UNIT * largest
    separation, spread = rung.number("separation"), rung.number("spread")
    require_close(separation, closest, "separation")
    require(separation <= closest - slack, f"separation is {closest:.15g} up to rounding")
    centre = family.array("centre", axes=1)
    require(len(centre) == k, f"centre does not have {k} entries")
    require(bool((np.abs(centre) <= largest).all()), "centre is outside the range of the answers")
    found = _mean_square(points) if moment == 2 else _mean_distance(points, centre / math.sqrt(k))
    require_close(spread, found, "spread")
    require(0 < spread <= found - slack * largest, f"spread is {found:.15g} up to rounding")
    copies, scale = rung.whole("copies"), rung.number("scale")
    require(epsilon * copies <= MOST_LOG_RATIO, "epsilon of all copies is above 600")
    power = spread * count / (count - 1 + math.exp(epsilon * copies))
    least = copies * min(separation / math.sqrt(2), power ** (1 / moment))
    require_close(scale, least, "scale")
    require(scale <= least * (1 - 1e-12), f"scale is {least:.15g} up to rounding, not {scale:.15g}")
    first, last = rung.whole("first"), rung.whole("last")
    require(first == copies, f"first is {copies}, the file says {first}")
    reach = scale / alpha
    require(math.isfinite(reach), "alpha is too small for float64")
    require(last <= reach * (1 + 1e-15), f"last is {math.floor(reach)}, the file says {last}")
    require(last + 1 > reach * (1 - 1e-10), f"last is {math.floor(reach)}, not {last}")
    verified = (
        f"{count} elements with answers at least {rounded_down(separation)} apart, and the average "
        f"error of a guess between data sets of {copies} cop{'ies' if copies > 1 else 'y'} of one "
        "of them",
    )
    return (
        Verified(subject=subject, queries=queries, verified=verified, conditions=conditions),
        first,
        last,
    )


def _mean_square(points: Vectors) -> float:
    """The least mean squared distance of one vector from all `points` (M, k)."""
    return float(((points - points.mean(axis=0)) ** 2).sum(axis=1).mean())


def _mean_distance(points: Vectors, centre: Vectors) -> float:
    """A lower bound on the mean distance of any vector from `points` (M, k).

    Let a_i be the points, and z_i vectors of sum 0 and length at most 1. For any v, the mean of
    ||a_i - v|| is at least the mean of <z_i, a_i - v>. This is the mean of <z_i, a_i - centre>,
    because the z_i sum to 0. Any centre proves a bound.
    """
    steps = points - centre
    lengths = np.linalg.norm(steps, axis=1, keepdims=True)
    directions = np.divide(steps, lengths, out=np.zeros_like(steps), where=lengths > 1e-9)
    directions = directions - directions.mean(axis=0)
    longest = max(1.0, float(np.linalg.norm(directions, axis=1).max()))
    return float(np.einsum("ij,ij->i", directions, steps).mean()) / longest
