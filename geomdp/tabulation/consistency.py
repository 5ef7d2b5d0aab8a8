"""Make noisy answers consistent: tables have no negative cells, add up, and agree.

This is post-processing (GEN-2). A projection on a convex set that contains the true answers takes
no answers farther from them, up to what an inexact projection adds.
"""

from __future__ import annotations

import enum
import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bodies.norm_balls.positive_parts import nearest_in_simplex
from geomdp.geometry.projection.projector import ConeProjector, Projector
from geomdp.mechanisms import (
    AdditiveMechanism,
    Fitted,
    Mechanism,
    Prediction,
    PredictionKind,
    Projected,
    Release,
    Shrunk,
)
from geomdp.mechanisms.post_processed.projected import (
    is_relaxed,
    reachable_body,
    relative_tolerance,
    squared_noise_limit,
    tried_projector,
)
from geomdp.privacy import Adjacency
from geomdp.tabulation.local_polytope import LocalPolytope, fits
from geomdp.tabulation.tasks import Task

#: Largest size of a universe for which answers other than cells of tables are projected on the
#: sensitivity polytope. A projection takes about a hundred steps. A step computes a score for every
#: element, in about 20 ms for the largest size.
MAX_ELEMENTS = 1 << 20
#: Duality gap of the projection on the sensitivity polytope, divided by the mean squared noise. A
#: duality gap adds at most twice the gap to the squared error. `relative_tolerance` explains why
#: the gap can be larger for tiny noise.
GAP_SHARE = 1e-3
#: Largest duality gap, divided by the squared diameter of the polytope. The limit applies if the
#: root mean squared noise is above 3% of the diameter.
LARGEST_TOLERANCE = 1e-6


class Form(enum.StrEnum):
    """Properties of the answers of a release. The value of a member states them in words.

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.tabulation.Form.NON_NEGATIVE)
    no cell is negative; tables may disagree
    """

    NOISY = "additive: answers are unbiased; shares may be negative and tables may disagree"
    ATTAINABLE = "consistent: moved to the nearest answers that records can have"
    CONSISTENT = "consistent: no cell is negative, each table adds up, tables agree"
    ANY_TOTAL = (
        "consistent: no cell is negative, tables agree, and each adds up to one estimated total"
    )
    EACH_TABLE = "no cell is negative and each table adds up; tables may disagree on shared columns"
    NON_NEGATIVE = "no cell is negative; tables may disagree"
    OWN = "answers are as the mechanism released them"


class Consistency:
    """The last step of a release: move the answers of a mechanism to consistent answers.

    Means of n records (replace-one) are moved to the nearest point of a polytope that contains the
    true answers. Under add/remove, where n is only declared, it is the cone of all multiples of it:

    * for tables that share columns, their `LocalPolytope`. A projection on it is faster than one on
      the hull K of the answers of single records, and errs about as much;
    * for other tables, or with too many cells, the product of their simplices (under add/remove,
      negative cells become 0);
    * for other answers K, unless the universe has more than 2^20 elements, the mechanism is no
      `AdditiveMechanism`, or it projects on K itself.
    """

    def __init__(self, task: Task, mechanism: Mechanism, adjacency: Adjacency) -> None:
        self.task, self.mechanism, self.adjacency = task, mechanism, adjacency

    @cached_property
    def form(self) -> Form:
        known = self.adjacency is Adjacency.REPLACE_ONE
        consistent = Form.CONSISTENT if known else Form.ANY_TOTAL
        if self._projects_itself:
            return consistent if self.task.tables else Form.ATTAINABLE
        if not self.task.tables:
            if self._is_projected_on_polytope:
                return Form.ATTAINABLE
            return Form.NOISY if self._is_additive else Form.OWN
        if self._is_projected_together:
            return consistent
        if not known:
            return Form.NON_NEGATIVE
        return Form.EACH_TABLE if self.task.tables_share_columns else Form.CONSISTENT

    @property
    def _is_additive(self) -> bool:
        return isinstance(self.mechanism, AdditiveMechanism)

    @property
    def _projects_itself(self) -> bool:
        own = isinstance(self.mechanism, Projected | Fitted | Shrunk)
        return own and not is_relaxed(self.task.workload)

    @property
    def _is_projected_on_polytope(self) -> bool:
        """Whether the answers are projected on K. Cells of tables are never projected on K."""
        size = self.task.workload.universe.size
        reachable = size is not None and size <= MAX_ELEMENTS and not self.task.tables
        return self._is_additive and reachable

    @property
    def _is_projected_together(self) -> bool:
        if self._projects_itself:
            return False
        return self.task.tables_share_columns and fits(self.task.tables)

    @cached_property
    def _projector(self) -> Projector | ConeProjector | None:
        """The projector on K or the cone over it; None if the answers are not projected there."""
        if not self._is_projected_on_polytope:
            return None
        return tried_projector(reachable_body(self.task.workload), self.adjacency)

    @cached_property
    def _local_polytope(self) -> LocalPolytope | None:
        if not self._is_projected_together:
            return None
        weights = [weight for _, weight in self._places]
        return LocalPolytope(self.task.tables, weights, self.adjacency)

    @property
    def _places(self) -> list[tuple[slice, float]]:
        """For each table, the slice of the answers that holds the cells, and the weight."""
        found, start = [], 0
        for table in self.task.tables:
            weight = 1.0 if self.task.weights is None else float(self.task.weights[start])
            found.append((slice(start, start + table.n_cells), weight))
            start += table.n_cells
        return found

    def set_up(self) -> None:
        """Do all work on public inputs, so that errors in this work come before the release."""
        if self._projector is not None:
            self._projector.prepare()
        _ = self._local_polytope

    def applied(self, released: Release) -> Release:
        """The release with consistent answers; `_at_most` predicts their error."""
        if self._projects_itself:
            return released
        if self._projector is not None:
            assert isinstance(self.mechanism, AdditiveMechanism)
            energy = squared_noise_limit(self.mechanism)
            scale = self.task.workload.l2_diameter()
            tolerance = relative_tolerance(
                energy, scale, share=GAP_SHARE, largest=LARGEST_TOLERANCE
            )
            point = self._projector.nearest(released.answers, tol=tolerance).point
            bound = _at_most(released, 2 * tolerance * scale**2)
            return replace(released, answers=point, predicted_rmse=bound)
        if not self.task.tables:
            return released
        if self._local_polytope is not None:
            found = self._local_polytope.nearest(released.answers)
            moved, gap = found.answers, found.gap
        else:
            moved, gap = np.concatenate(self._moved_tables(released.answers)), 0.0
        return replace(released, answers=moved, predicted_rmse=_at_most(released, gap))

    def _moved_tables(self, answers: FloatArray) -> list[FloatArray]:
        """The nearest point of each table's simplex; max(answers, 0) under add/remove."""
        if self.adjacency is not Adjacency.REPLACE_ONE:
            return [np.maximum(answers, 0.0)]
        return [nearest_in_simplex(answers[place][None], w)[0] for place, w in self._places]


def _at_most(released: Release, gap: float = 0.0) -> Prediction:
    """Prediction of the error that the noise and an inexact projection cause together.

    It is an upper bound, unless `released` has a simulation. `gap` bounds what the projection adds
    to the squared distance; the result allows at least 2 `GAP_SHARE` times the mean squared noise
    for it, far more than the N / n times larger gap for N > n records under add/remove.
    """
    noise = released.predicted_rmse
    allowed = max(2 * GAP_SHARE * noise.value**2, gap / len(released.answers))
    value = math.hypot(noise.value, math.sqrt(allowed))
    words = f"the gap of the projection adds at most {allowed:.2g} to the squared error"
    source = f"{noise.source}; {words}"
    kind = PredictionKind.UPPER_BOUND if noise.kind is PredictionKind.EXACT else noise.kind
    return Prediction(value, kind, source, noise.stderr)


def whole_counts(answers: FloatArray, n: int, task: Task, form: Form) -> FloatArray:
    """The answers times n, rounded to whole numbers (m,); each changes by less than 1.

    If `form` says that each table adds up, its counts add up to n: all are rounded down, and then
    those with the largest remainders up.
    """
    counts = answers * n
    if form not in (Form.CONSISTENT, Form.EACH_TABLE):
        return np.rint(counts)
    # Without 1e-9, rounding down would take 1 from a whole count with a small rounding error.
    rounded, start = np.floor(counts + 1e-9), 0
    for table in task.tables:
        place = slice(start, start + table.n_cells)
        missing = n - int(rounded[place].sum())
        remainders = counts[place] - rounded[place]
        rounded[place][np.argsort(-remainders, kind="stable")[:missing]] += 1
        start = place.stop
    return rounded
