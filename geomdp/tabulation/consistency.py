"""Noisy answers made consistent: the nearest ones that some records could have.

All of it reads noisy answers only, so it costs no privacy (post-processing, GEN-2). The true
answers are in every set projected on here, so no projection moves the answers further from them.
"""

from __future__ import annotations

import enum
import math
from dataclasses import replace
from functools import cached_property

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bodies.norm_balls.positive_parts import nearest_in_simplex
from geomdp.geometry.projection.projector import Projector
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
    LEAST_TOLERANCE,
    is_relaxed,
    reachable_body,
    squared_noise_limit,
)
from geomdp.privacy import Adjacency
from geomdp.tabulation.specs import Task

#: Largest universe on whose sensitivity polytope answers are projected; each of the some hundred
#: steps scores all its elements, in some 20 ms at this size.
MAX_ELEMENTS = 1 << 20
#: Share of the mean squared noise that the gap of the projection may add to the squared error.
GAP_SHARE = 1e-3
#: Largest relative tolerance of the projection, for noise that is larger than the answers.
LARGEST_TOLERANCE = 1e-6


class Form(enum.StrEnum):
    """What holds of the answers of a release; each value says it in words."""

    NOISY = "additive: unbiased; nothing is moved, so shares may be negative and tables disagree"
    ATTAINABLE = "consistent: moved to the nearest answers that records can have"
    CONSISTENT = "consistent: no cell is negative, each table adds up, tables agree"
    EACH_TABLE = "no cell is negative and each table adds up; tables may disagree on shared columns"
    NON_NEGATIVE = "no cell is negative; tables may disagree"
    OWN = "as the mechanism gives them"


class Consistency:
    """The last step of a release: moves the answers of a mechanism to consistent ones.

    For means of n records (replace-one) the answers are moved to the nearest point of the
    sensitivity polytope K; a polytope of more than 2^20 elements is replaced by the larger product
    of the simplices of its tables. Under add/remove the declared n need not be the number of
    records, so cells are only kept from being negative.

    Parameters
    ----------
    task : Task
        The queries.
    mechanism : Mechanism
        What releases. An additive mechanism is followed by a projection; another one has its own.
    adjacency : Adjacency
        Neighbour relation.
    """

    def __init__(self, task: Task, mechanism: Mechanism, adjacency: Adjacency) -> None:
        self.task, self.mechanism, self.adjacency = task, mechanism, adjacency

    @cached_property
    def form(self) -> Form:
        """What holds of the answers it returns."""
        cells = bool(self.task.tables)
        if self._projects_itself:
            return Form.CONSISTENT if cells else Form.ATTAINABLE
        if self.adjacency is Adjacency.REPLACE_ONE and self._is_additive and self._is_reachable:
            return Form.CONSISTENT if cells else Form.ATTAINABLE
        if not cells:
            return Form.NOISY if self._is_additive else Form.OWN
        if self.adjacency is not Adjacency.REPLACE_ONE:
            return Form.NON_NEGATIVE
        return Form.CONSISTENT if self._tables_share_nothing else Form.EACH_TABLE

    @property
    def _is_additive(self) -> bool:
        return isinstance(self.mechanism, AdditiveMechanism)

    @property
    def _projects_itself(self) -> bool:
        own = isinstance(self.mechanism, Projected | Fitted | Shrunk)
        return own and not is_relaxed(self.task.workload)

    @property
    def _is_reachable(self) -> bool:
        size = self.task.workload.universe.size
        # A product of simplices needs no search.
        return size is not None and size <= MAX_ELEMENTS and not self._tables_share_nothing

    @property
    def _tables_share_nothing(self) -> bool:
        """Whether K is the product of the simplices of the tables."""
        return bool(self.task.tables) and not self.task.tables_share_columns

    @cached_property
    def _projector(self) -> Projector | None:
        """On K; None where the answers are not projected on it."""
        wanted = self._is_additive and self._is_reachable
        if not wanted or self.adjacency is not Adjacency.REPLACE_ONE:
            return None
        return Projector(reachable_body(self.task.workload))

    def set_up(self) -> None:
        """Do the public work, so that nothing is left to fail after the release."""
        _ = self._projector

    def applied(self, released: Release) -> Release:
        """The release with consistent answers; its error is at most that of the noise."""
        if self._projects_itself:
            return released
        if self._projector is not None:
            assert isinstance(self.mechanism, AdditiveMechanism)
            energy = squared_noise_limit(self.mechanism)
            share = GAP_SHARE * energy / self.task.workload.l2_diameter() ** 2
            tolerance = min(max(share, LEAST_TOLERANCE), LARGEST_TOLERANCE)
            point = self._projector.nearest(released.answers, tol=tolerance).point
            return replace(released, answers=point, predicted_rmse=_at_most(released))
        if not self.task.tables:
            return released
        moved = np.concatenate([*self._moved_tables(released.answers)])
        return replace(released, answers=moved, predicted_rmse=_at_most(released))

    def _moved_tables(self, answers: FloatArray) -> list[FloatArray]:
        """The nearest cells of each table on its own."""
        weights = np.ones(len(answers)) if self.task.weights is None else self.task.weights
        moved, start = [], 0
        for table in self.task.tables:
            stop = start + table.n_cells
            cells, weight = answers[start:stop], float(weights[start])
            if self.adjacency is Adjacency.REPLACE_ONE:
                moved.append(nearest_in_simplex(cells[None], weight)[0])
            else:
                moved.append(np.maximum(cells, 0.0))
            start = stop
        return moved


def _at_most(released: Release) -> Prediction:
    """The prediction of the noise as an upper bound, with the gap of the projection."""
    noise = released.predicted_rmse
    value = noise.value * math.sqrt(1 + 2 * GAP_SHARE)
    source = f"{noise.source}; projecting adds none, and its gap at most {2 * GAP_SHARE:g} of it"
    kind = PredictionKind.UPPER_BOUND if noise.kind is PredictionKind.EXACT else noise.kind
    return Prediction(value, kind, source, noise.stderr)


def whole_counts(answers: FloatArray, n: int, task: Task, form: Form) -> FloatArray:
    """The answers times n as whole numbers (m,), as near as they can be.

    Where each table adds up, so do its whole counts, to n: all are rounded down, then the largest
    remainders up. Each moves by less than 1. Otherwise each is rounded by itself.
    """
    counts = answers * n
    if form not in (Form.CONSISTENT, Form.EACH_TABLE):
        return np.rint(counts)
    rounded, start = np.floor(counts + 1e-9), 0
    for table in task.tables:
        place = slice(start, start + table.n_cells)
        missing = n - int(rounded[place].sum())
        remainders = counts[place] - rounded[place]
        rounded[place][np.argsort(-remainders, kind="stable")[:missing]] += 1
        start = place.stop
    return rounded
