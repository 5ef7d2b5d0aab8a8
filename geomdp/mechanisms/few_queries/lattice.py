"""Units of queries, and the largest changes of their sums in these units."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp.mechanisms.sensitivity import checked_workload
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload, explicit_answers

#: Largest number of answers that are listed: N m for N elements and m queries.
MAX_ANSWERS = 1 << 22
#: The difference of two whole numbers with modulus below this number has modulus below 2^53.
#: Therefore differences, and all units that divide them, are exact in float64.
LARGEST_ANSWER = 2.0**52


@dataclass(frozen=True, eq=False)
class Lattice:
    """Units (m,) that divide all changes of the sums, and the largest changes (m,) in units."""

    units: FloatArray = field(repr=False)
    counts: IntArray = field(repr=False)


def listed_lattice(workload: Workload, adjacency: Adjacency) -> Lattice | None:
    """The lattice with the largest units, from all answers; None if they are too many or large."""
    if not checked_workload(workload).whole_answers:
        raise ValueError(
            f"workload must have whole numbers as answers, got {workload!r}: if its answers are "
            "multiples of a unit, divide the queries by that unit"
        )
    size = workload.universe.size
    if size is None or size * workload.n_queries > MAX_ANSWERS:
        return None
    answers = explicit_answers(workload)
    if np.abs(answers).max() >= LARGEST_ANSWER:
        return None
    rows = answers.astype(np.int64)
    if adjacency is Adjacency.REPLACE_ONE:
        divisors = np.gcd.reduce(rows - rows[0], axis=0)
        largest = rows.max(axis=0) - rows.min(axis=0)
    else:
        divisors, largest = np.gcd.reduce(rows, axis=0), np.abs(rows).max(axis=0)
    units = np.maximum(1, divisors)
    return Lattice(units.astype(np.float64), largest // units)
