"""Large linear functions of answers over universes too big to scan, by coordinate ascent."""

from __future__ import annotations

import numpy as np

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import batch, whole
from geomdp.workloads import Workload
from geomdp.workloads.universe.universes import BooleanCube, CategoricalProduct


def local_maxima(
    workload: Workload, directions: FloatArray, rng: np.random.Generator, starts: int = 8
) -> FloatArray:
    """Answers Q(x) of elements whose <u, Q(x)> no change of a single attribute raises.

    From `starts` uniform elements attributes are changed in turn, each to its best level, until a
    whole round changes nothing; the best end counts. A lower bound on the support function of the
    sensitivity polytope, and an element that attains it.

    Parameters
    ----------
    workload : Workload
        Q on a `BooleanCube` or a `CategoricalProduct`, of any size.
    directions : (b, m) array
        Directions u.
    rng : Generator
        Draws the starts.
    starts : int
        Number of starts, at least 1.

    Returns
    -------
    (b, m) array
        One answer vector for each direction.

    Raises
    ------
    ValueError
        For another universe, or directions that are not finite or not (b, m).

    Notes
    -----
    A round evaluates Q on `starts` times the sum of the numbers of levels elements; some five
    to ten rounds are usual.
    """
    directions = batch(directions, workload.n_queries, "directions")
    starts, levels = whole(starts, "starts"), _levels(workload)
    found = np.empty(directions.shape)
    for row, direction in enumerate(directions):
        elements = np.column_stack([rng.integers(0, size, starts) for size in levels])
        best = _ascend(workload, direction, elements, levels)
        found[row] = workload.evaluate(best[None])[0]
    return found


def _levels(workload: Workload) -> tuple[int, ...]:
    """Number of levels of each attribute."""
    universe = workload.universe
    if isinstance(universe, BooleanCube):
        return (2,) * universe.d
    if isinstance(universe, CategoricalProduct):
        return tuple(universe.columns.values())
    raise ValueError(
        "workload must be on a BooleanCube or a CategoricalProduct for local search, got "
        f"{universe!r}"
    )


def _ascend(
    workload: Workload, direction: FloatArray, elements: IntArray, levels: tuple[int, ...]
) -> IntArray:
    """The best of the local maxima reached from rows of `elements` (starts, d), in place."""
    scores = workload.evaluate(elements) @ direction
    # Gains below rounding of a score would change attributes to and fro for ever.
    slack = 1e-12 * float(np.abs(direction).sum()) * workload.l2_radius()
    while True:
        before = scores.copy()
        for column, size in enumerate(levels):
            trials = np.repeat(elements, size, axis=0)
            trials[:, column] = np.tile(np.arange(size), len(elements))
            values = (workload.evaluate(trials) @ direction).reshape(-1, size)
            best = values.argmax(axis=1)
            gained = values.max(axis=1) > scores + slack
            elements[gained, column] = best[gained]
            scores[gained] = values.max(axis=1)[gained]
        if (scores == before).all():
            return np.asarray(elements[scores.argmax()])
