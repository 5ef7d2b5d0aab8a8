"""Search for the changes of the sums between neighbours that additive noise hides least."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from geomdp._typing import FloatArray
from geomdp.audit.scores import ROUNDING
from geomdp.privacy import Adjacency

#: Number of steps of the search of `worst_changes` from each start. Up to rounding, a step never
#: decreases the convex function that is maximised. In a few dozen dimensions, the search usually no
#: longer moves after three or four steps.
STEPS = 8
#: Number of random starts. If the noise is 0 in some directions, another 32 random starts lie in
#: the span of these directions. The search also starts from principal axes of the noise and from
#: coordinate axes.
STARTS = 32
#: Largest number of axes of each kind from which the search starts.
MOST_AXES = 64


@runtime_checkable
class Answers(Protocol):
    """The part of a workload that the search needs: the extreme answers of one record."""

    @property
    def n_queries(self) -> int:
        """Number of queries m."""

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """Answers (b, m) of records x that maximise <u, answers of x> for each direction u."""


def farthest_changes(workload: Answers, adjacency: Adjacency, directions: FloatArray) -> FloatArray:
    """Changes v (b, m) between neighbours that maximise <u, v>, for each row u of `directions`."""
    up, down = workload.extreme_answers(directions), workload.extreme_answers(-directions)
    if adjacency is Adjacency.REPLACE_ONE:
        return np.asarray(up - down)
    added = np.einsum("bm,bm->b", directions, up)
    removed = -np.einsum("bm,bm->b", directions, down)
    return np.where((added >= removed)[:, None], up, -down)


def worst_changes(
    workload: Answers,
    adjacency: Adjacency,
    draws: FloatArray,
    count: int,
    rng: np.random.Generator,
) -> FloatArray:
    """Search for up to `count` changes (c, m) between neighbours that noise hides least, none 0.

    It maximises <v, S^+ v>, for the covariance S of `draws` (N, m), by steps to vertices that are
    farthest along the gradient. Changes outside the span of the noise come first, as none hides
    them.
    """
    m = workload.n_queries
    # In units of the rounding errors of each coordinate, a coordinate with large noise hides
    # nothing in the others.
    units = ROUNDING * np.maximum(np.abs(draws).max(axis=0), 1.0)
    axes, deviations = _axes(draws / units)
    varies = deviations > 1
    weights = np.where(varies, 1 / np.where(varies, deviations, 1.0), 0.0)
    still = axes[~varies]
    starts = np.concatenate(
        [
            still[:MOST_AXES],
            rng.standard_normal((STARTS if len(still) else 0, len(still))) @ still,
            # `_axes` lists the axes by decreasing noise, so start from the last axes.
            axes[varies][::-1][:MOST_AXES],
            np.eye(m)[rng.permutation(m)[:MOST_AXES]],
            (rng.standard_normal((STARTS, m)) * weights) @ axes,
        ]
    )
    found = [farthest_changes(workload, adjacency, starts / units)]
    for _ in range(STEPS):
        gradients = (((found[-1] / units) @ axes.T) * weights**2) @ axes
        found.append(farthest_changes(workload, adjacency, gradients / units))
    changes = np.concatenate([found[0], found[1], found[-1]])
    changes = changes[np.abs(changes).max(axis=1) > 0]
    # v and -v belong to the same two inputs in two orders. An audit tests both orders, so only one
    # of v and -v is kept.
    first = changes[np.arange(len(changes)), (changes != 0).argmax(axis=1)]
    changes = np.unique(changes * np.sign(first)[:, None], axis=0)
    if not len(changes):
        raise ValueError("workload must not be constant: all neighbours have the same answers")
    outside = np.linalg.norm((changes / units) @ still.T, axis=1)
    outside[outside <= 1] = 0.0
    hidden = ((((changes / units) @ axes.T) * weights) ** 2).sum(axis=1)
    order = np.lexsort((-hidden, -outside))
    return changes[order[:count]]


def _axes(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """All principal axes (m, m) of the noise, as rows, and the standard deviations along them."""
    residuals = (draws - draws.mean(axis=0)) / np.sqrt(max(len(draws) - 1, 1))
    triangle = np.linalg.qr(residuals, mode="r")
    _, deviations, axes = np.linalg.svd(triangle, full_matrices=True)
    return axes, np.concatenate([deviations, np.zeros(len(axes) - len(deviations))])
