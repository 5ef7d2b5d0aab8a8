"""Worst neighbours of an additive mechanism: the changes of the sums that its noise hides least."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np

from geomdp._typing import FloatArray
from geomdp.audit.scores import ROUNDING
from geomdp.privacy import Adjacency

#: Steps of the search from each start. Each step is a vertex that increases a convex function; on
#: polytopes of a few dozen dimensions the search ends after three or four.
STEPS = 8
#: Random starts, besides one for every direction of least noise and every coordinate.
STARTS = 32
#: Most coordinates, and most directions of noise, from which the search starts.
MOST_AXES = 64


@runtime_checkable
class Answers(Protocol):
    """What the search needs of a workload: the answers of one record that reach farthest."""

    @property
    def n_queries(self) -> int:
        """Number of queries m."""

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """Rows Q(x*) (b, m), x* maximising <direction, Q(x)> for each row of (b, m)."""


def farthest_changes(workload: Answers, adjacency: Adjacency, directions: FloatArray) -> FloatArray:
    """Changes v (b, m) of the sums between neighbours, each maximising <direction, v>.

    They are vertices of the neighbour body: differences Q(x) - Q(x') under replace-one, and
    Q(x) or -Q(x) under add/remove.
    """
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
    """Up to `count` different changes of the sums between neighbours that noise hides least.

    With S the covariance of the noise, estimated from `draws` (N, m), the search maximises the
    convex function <v, S^+ v> over the neighbour body, by steps to the vertex farthest along its
    gradient, from many starts. Changes that leave the span of the noise come first: no noise hides
    them. If the noise spans fewer dimensions than it should, directions in which it does not vary
    are among the starts.

    Returns
    -------
    array (c, m)
        1 <= c <= `count` changes, none of them 0, the worst first.

    Raises
    ------
    ValueError
        If every change is 0: a constant workload.
    """
    m = workload.n_queries
    axes, deviations = _axes(draws)
    floor = ROUNDING * max(float(np.abs(draws).max()), 1.0)
    varies = deviations > floor
    weights = np.where(varies, 1 / np.where(varies, deviations, 1.0), 0.0)
    still = axes[~varies]
    starts = np.concatenate(
        [
            still[:MOST_AXES],
            rng.standard_normal((STARTS if len(still) else 0, len(still))) @ still,
            # Axes come in decreasing order of noise.
            axes[varies][::-1][:MOST_AXES],
            np.eye(m)[rng.permutation(m)[:MOST_AXES]],
            (rng.standard_normal((STARTS, m)) * weights) @ axes,
        ]
    )
    found = [farthest_changes(workload, adjacency, starts)]
    for _ in range(STEPS):
        gradients = ((found[-1] @ axes.T) * weights**2) @ axes
        found.append(farthest_changes(workload, adjacency, gradients))
    changes = np.concatenate([found[0], found[1], found[-1]])
    changes = changes[np.abs(changes).max(axis=1) > 0]
    # v and -v are one pair of inputs in two orders, and an audit tests both.
    first = changes[np.arange(len(changes)), (changes != 0).argmax(axis=1)]
    changes = np.unique(changes * np.sign(first)[:, None], axis=0)
    if not len(changes):
        raise ValueError("workload must not be constant: all neighbours have the same answers")
    outside = np.linalg.norm(changes @ still.T, axis=1)
    outside[outside <= floor] = 0.0
    hidden = (((changes @ axes.T) * weights) ** 2).sum(axis=1)
    order = np.lexsort((-hidden, -outside))
    return changes[order[:count]]


def _axes(draws: FloatArray) -> tuple[FloatArray, FloatArray]:
    """All principal axes (m, m) of the noise, as rows, and the standard deviations along them."""
    residuals = (draws - draws.mean(axis=0)) / np.sqrt(max(len(draws) - 1, 1))
    triangle = np.linalg.qr(residuals, mode="r")
    _, deviations, axes = np.linalg.svd(triangle, full_matrices=True)
    return axes, np.concatenate([deviations, np.zeros(len(axes) - len(deviations))])
