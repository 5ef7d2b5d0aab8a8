"""Make noisy answers consistent: tables have no negative cells, add up, and agree.

Only noisy answers are read, so this step costs no privacy (post-processing, GEN-2). Every
projection is on a convex set that contains the true answers. So exactly projected answers are never
farther from the true answers than the noisy answers are. An inexact projection can add a little to
this distance.
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

    For means of n records (replace-one), the answers are moved to the nearest point of a polytope
    that contains the true answers. Under add/remove, answers are sums divided by a declared n,
    which need not be the number of records. They are moved to the nearest point of the cone of all
    multiples of the polytope, which contains the true answers of any number of records:

    * For tables that share columns, the polytope is their `LocalPolytope`: no cell is negative,
      each table adds up, and tables agree on shared columns. Some points of this polytope are not
      the tables of any records. But the projection is fast for any number of columns. The
      alternative is the sensitivity polytope K, the convex hull of the answers of single records.
      On all 2-way tables of the sample data ``rand``, a projection on the local polytope takes
      milliseconds, and a projection on K takes 2 seconds. At epsilon 1 both polytopes give the same
      error. At epsilon 0.1 the error with the local polytope is 6% larger.
    * For tables without shared columns, the polytope is the product of the simplices of the tables.
      The same holds for tables with too many cells for the local polytope. Under add/remove,
      negative cells of such tables are replaced by 0, and nothing else is changed.
    * For other answers, the polytope is K. These answers are not moved if the universe is infinite
      or has more than 2^20 elements, or if the mechanism is not an `AdditiveMechanism`.

    Parameters
    ----------
    task : Task
        The queries.
    mechanism : Mechanism
        The mechanism that releases the answers. Answers of a `Projected`, `Fitted` or `Shrunk`
        mechanism that projects on K are not changed.
    adjacency : Adjacency
        Neighbour relation.
    """

    def __init__(self, task: Task, mechanism: Mechanism, adjacency: Adjacency) -> None:
        self.task, self.mechanism, self.adjacency = task, mechanism, adjacency

    @cached_property
    def form(self) -> Form:
        """Properties of the answers that are returned."""
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
        """Whether all tables are moved in one projection. The tables then agree."""
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
        """The local polytope of all tables; None if the tables are not moved together."""
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

    The result is an upper bound, unless the prediction in `released` is a simulation. `gap` bounds
    what an inexact projection adds to the squared distance from the true answers. The result allows
    at least 2 `GAP_SHARE` times the mean squared noise for the gap. For N > n records under
    add/remove, the gap can be N / n times as large. This is far below the allowance.
    """
    noise = released.predicted_rmse
    allowed = max(2 * GAP_SHARE * noise.value**2, gap / len(released.answers))
    value = math.hypot(noise.value, math.sqrt(allowed))
    words = f"the gap of the projection adds at most {allowed:.2g} to the squared error"
    source = f"{noise.source}; {words}"
    kind = PredictionKind.UPPER_BOUND if noise.kind is PredictionKind.EXACT else noise.kind
    return Prediction(value, kind, source, noise.stderr)


def whole_counts(answers: FloatArray, n: int, task: Task, form: Form) -> FloatArray:
    """The answers times n, rounded to whole numbers (m,).

    If `form` says that each table adds up, the whole counts of each table add up to n. For this,
    all counts are rounded down. Then the counts with the largest remainders are rounded up. Each
    count changes by less than 1. For any other `form`, each count is rounded to the nearest whole
    number.
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
