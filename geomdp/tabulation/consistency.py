"""Make noisy answers consistent: tables have no negative cells, add up, and agree.

This is post-processing (GEN-2). A projection on a convex set that contains the true answers takes
no answers farther from them, up to what an inexact projection adds.
"""

from __future__ import annotations

import enum
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.linalg import conjugate_gradients, significant
from geomdp._typing import BoolArray, FloatArray
from geomdp.bodies.base import nearest_in_simplex
from geomdp.data.schema import Table, places_of
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
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.mechanisms.projected import (
    is_relaxed,
    reachable_body,
    relative_tolerance,
    squared_noise_limit,
    tried_projector,
    upper_limit,
)
from geomdp.privacy import Adjacency
from geomdp.tabulation.entropic import Chosen, Fits, JointTables, cost_of
from geomdp.tabulation.possible import Possible
from geomdp.tabulation.tasks import Task

#: Largest size of a universe for which answers other than cells of tables are projected on the
#: sensitivity polytope, in about a hundred steps of 20 ms for this size.
MAX_ELEMENTS = 1 << 20
#: Largest cost of one pass over the joint table (`cost_of`) for which tables are fitted: for 2-way
#: tables, about 2^22 cells, or 40 ms. All fits take 200 to 400 passes, some 3000 above 2^12 cells.
MAX_COST = 4e8
#: Tables are not fitted if the noise of a cell is below this share of the mean cell.
LEAST_NOISE = 0.02
#: Largest number of possible cells whose hull is computed, in half a minute.
MAX_LISTED = 1 << 12
#: Duality gap of projections on polytopes, divided by the mean squared noise. It adds at most twice
#: itself to the squared error, and can be larger for tiny noise (`relative_tolerance`).
GAP_SHARE = 1e-3
#: Largest gap, divided by the squared diameter; it counts for noise above 3% of the diameter.
LARGEST_TOLERANCE = 1e-6


class Form(enum.StrEnum):
    """Properties of the answers of a release. The value of a member states them in words."""

    NOISY = "additive: answers are unbiased; shares may be negative and tables may disagree"
    ATTAINABLE = "consistent: moved to the nearest answers that records can have"
    CONSISTENT = "consistent: no cell is negative, each table adds up, tables agree"
    FITTED = "consistent: tables are those of one distribution, the entropic fit to noisy answers"
    ANY_TOTAL = (
        "consistent: no cell is negative, tables agree, and each adds up to one estimated total"
    )
    EACH_TABLE = "no cell is negative and each table adds up; tables may disagree on shared columns"
    NON_NEGATIVE = "no cell is negative; tables may disagree"
    OWN = "answers are as the mechanism released them"


#: The forms of tables of which each adds up to 1 under replace-one.
ADDING_UP = (Form.CONSISTENT, Form.FITTED, Form.EACH_TABLE)


class Consistency:
    """The last step of a release: move the answers of a mechanism to consistent answers.

    Under replace-one, noisy tables become a mean of the entropic fits of `Fits`, unless `unfitted`
    says why not. Else, answers are moved to the nearest point of a polytope that contains the true
    means of n records, or of the cone over it under add/remove. Tables that share columns have
    their `LocalPolytope`; other tables, or those with too many cells, have the product of their
    simplices (under add/remove, negative cells become 0). Other answers have the hull K of the
    answers of single records, unless the universe has more than 2^20 elements or the mechanism is
    not additive or projects on K itself.
    """

    def __init__(
        self, task: Task, mechanism: Mechanism, adjacency: Adjacency, *, projected: bool = False
    ) -> None:
        self.task, self.adjacency = task, adjacency
        if task.possible is not None:
            # The answers of the measured tables must not be moved before those asked are.
            mechanism = additive_within(mechanism) or mechanism
        #: Why tables are not fitted; empty if they are.
        self.unfitted = "the answers are projected" if projected else ""
        self._fits = None if projected else self._possible_fits(mechanism)
        #: The mechanism to release with. Fits need its noisy answers, not answers that it projects.
        self.mechanism = self._fits.mechanism if self._fits else mechanism
        # All work on public inputs is done here, so that errors in it come before the release.
        self._form, self._project = self._projection()

    def _possible_fits(self, mechanism: Mechanism) -> Fits | None:
        """Fits to the noise in `mechanism`, or None, with the reason in `unfitted`."""
        additive = additive_within(mechanism)
        if additive is None or not self.task.tables:
            self.unfitted = "the queries are no cells of tables, or the noise is not additive"
            return None
        if self.adjacency is Adjacency.ADD_REMOVE:
            self.unfitted = "add/remove does not make the number of records public"
            return None
        weights, possible = self.task.table_weights, self.task.possible
        noise, count = additive.predicted_rmse, self.task.workload.n_queries
        if possible is not None:
            noise, count = self.task.predicted(additive), int(possible.live.sum())
        if upper_limit(noise) < LEAST_NOISE * sum(weights) / count:
            self.unfitted = (
                f"the noise is below {LEAST_NOISE:.0%} of the mean cell, where a fit hardly helps "
                "(a smaller epsilon or more columns change this)"
            )
            return None
        if cost_of(self.task.tables if possible is None else possible.model.tables) > MAX_COST:
            self.unfitted = "the columns have too many combinations of levels"
            return None
        own = None if possible is None else possible.noise(additive)
        found = Fits(JointTables(self.task.tables, weights, possible), additive, own)
        if not found.shows_noise:
            self.unfitted = "the noise on some column is nearly always 0"
        return found if found.shows_noise else None

    @property
    def fits(self) -> bool:
        """Whether a fit is tried. It is found, unless the search for it does not converge."""
        return self._fits is not None

    def _projection(self) -> tuple[Form, Callable[[Release], Nearest] | None]:
        """Properties of projected answers, and the projection; None leaves answers as they are."""
        task, mechanism, possible = self.task, self.mechanism, self.task.possible
        known = self.adjacency is Adjacency.REPLACE_ONE
        consistent = Form.CONSISTENT if known else Form.ANY_TOTAL
        if isinstance(mechanism, Projected | Fitted | Shrunk) and not is_relaxed(task.workload):
            return consistent if task.tables else Form.ATTAINABLE, None  # it projects itself
        if not task.tables:
            size = task.workload.universe.size
            if not isinstance(mechanism, AdditiveMechanism):
                return Form.OWN, None
            if size is None or size > MAX_ELEMENTS:
                return Form.NOISY, None
            return Form.ATTAINABLE, self._on_polytope(mechanism)
        if possible is None:
            together = task.tables_share_columns and fits(task.tables)
        else:
            together = possible.live.sum() <= MAX_LISTED and fits(possible.model.tables)
        if together:
            polytope = LocalPolytope(task.tables, task.table_weights, self.adjacency, possible)
            return consistent, lambda noisy: polytope.nearest(
                noisy.answers, GAP_SHARE * (noisy.predicted_rmse.value**2 * len(noisy.answers))
            )
        if not known:
            return Form.NON_NEGATIVE, lambda noisy: Nearest(np.maximum(noisy.answers, 0.0), 0.0)
        return Form.EACH_TABLE if task.tables_share_columns else consistent, self._on_simplices

    def _on_polytope(self, mechanism: AdditiveMechanism) -> Callable[[Release], Nearest]:
        """The projection on K, or on the cone over it."""
        projector = tried_projector(reachable_body(self.task.workload), self.adjacency)
        projector.prepare()
        energy, scale = squared_noise_limit(mechanism), self.task.workload.l2_diameter()
        tolerance = relative_tolerance(energy, scale, share=GAP_SHARE, largest=LARGEST_TOLERANCE)
        gap = 2 * tolerance * scale**2
        return lambda noisy: Nearest(projector.nearest(noisy.answers, tol=tolerance).point, gap)

    def _on_simplices(self, noisy: Release) -> Nearest:
        """Each table, moved to the nearest one that adds up to its weight."""
        possible, weights = self.task.possible, self.task.table_weights
        live = np.ones(len(noisy.answers), bool) if possible is None else possible.live
        ends = np.cumsum([live[place].sum() for place in places_of(self.task.tables)])
        parts = zip(np.split(noisy.answers, ends[:-1]), weights, strict=True)
        return Nearest(np.concatenate([nearest_in_simplex(p[None], w)[0] for p, w in parts]), 0.0)

    def applied(self, released: Release) -> tuple[Release, Form, Chosen | None]:
        """Consistent answers to the task, with a prediction of their error, from answers to its
        workload; what holds for them; and the fit, if there is one.
        """
        possible = self.task.possible
        if possible is not None:
            released = possible.released(released, self.mechanism)
        form, fit = self._form, None if self._fits is None else self._fits.best(released.answers)
        if fit is not None:
            released, form = replace(released, answers=fit.answers), Form.FITTED
        elif self._project is not None:
            answers, gap = self._project(released)
            bound = _at_most(released, gap)
            released = replace(released, answers=answers, predicted_rmse=bound)
        if self._fits is not None:
            released = replace(released, predicted_rmse=self._fits.predicted_rmse)
        return released if possible is None else possible.spread_release(released), form, fit


def _at_most(released: Release, gap: float) -> Prediction:
    """Upper bound (unless simulated) on the error of noise and an inexact projection that adds at
    most `gap` to the squared distance; it allows at least 2 `GAP_SHARE` times the mean squared
    noise, far more than the N / n times larger gap for N > n records under add/remove.
    """
    noise = released.predicted_rmse
    allowed = max(2 * GAP_SHARE * noise.value**2, gap / len(released.answers))
    value = math.hypot(noise.value, math.sqrt(allowed))
    words = f"the gap of the projection adds at most {allowed:.2g} to the squared error"
    source = f"{noise.source}; {words}"
    kind = PredictionKind.UPPER_BOUND if noise.kind is PredictionKind.EXACT else noise.kind
    return Prediction(value, kind, source, noise.stderr)


def whole_counts(answers: FloatArray, n: int, task: Task, form: Form) -> FloatArray:
    """The answers times n, rounded to whole numbers (m,), each by less than 1; if tables add up,
    all are rounded down, and then those with the largest remainders up. Tables that are sums of
    cells of another one, which refines them, become those sums, which can differ by more.
    """
    counts = answers * n
    # Without 1e-9, rounding down would take 1 from a whole count with a small rounding error.
    rounded = np.floor(counts + 1e-9) if form in ADDING_UP else np.rint(counts)
    for place in places_of(task.tables) if form in ADDING_UP else ():
        missing = n - int(rounded[place].sum())
        remainders = counts[place] - rounded[place]
        rounded[place][np.argsort(-remainders, kind="stable")[:missing]] += 1
    for coarse, fine, sums in task.possible.refined(task.tables) if task.possible else ():
        rounded[coarse] = sums @ rounded[fine]
    return rounded


# The local polytope of tables: no cell is negative, each table adds up to 1, and tables agree.
#
# Tables agree if their marginals on shared columns are equal. Cells of a table with a weight are
# multiplied by it. The polytope contains the sensitivity polytope, and can be larger: each of the
# three tables of three binary columns can say that its columns always differ, but three binary
# values cannot. Under add/remove, the totals of all tables are equal but free: the set is a cone.


#: Largest number of nonzero entries of the basis, by an upper bound: 25 MB, and as much for its
#: transpose. A projection took 4 s for all 3-way tables of 5 columns of 10 levels, with 1.25
#: million.
MAX_BASIS_ENTRIES = 1 << 21
#: The penalty s of the first round of `LocalPolytope.nearest`, its growth from round to round, and
#: its largest value: at 1e4, rounding errors prevent convergence; at 100, rounds are too many.
FIRST_PENALTY, GROWTH, LARGEST_PENALTY = 1.0, 3.0, 1e3
#: Largest number of rounds of `LocalPolytope.nearest` (10 to 30 suffice), of Newton steps in a
#: round (1 to 10), and of conjugate gradient steps for one Newton step (20 to 40).
MAX_ROUNDS, MAX_STEPS, MAX_PRODUCTS = 100, 100, 2000
#: Let e be the largest modulus of an entry of the centre or of t_0 in `LocalPolytope.nearest`. The
#: rounds end when no cell is negative and cells with a positive multiplier are 0, both up to
#: `PRECISION` times e. Newton's method ends when no entry of the gradient is above e times the
#: larger of `PRECISION` and `ROUNDING` * s, because the penalty s multiplies the rounding errors of
#: cells.
PRECISION, ROUNDING = 1e-13, 1e-15


class Nearest(NamedTuple):
    """The nearest point `answers` (m,) up to `gap`: ||answers - x||^2 <= ||y - x||^2 + gap for the
    projected y and all x of the polytope (in the cone N / n times gap for x of total N / n > 1).
    """

    answers: FloatArray
    gap: float


class LocalPolytope:
    """The nonnegative answers in the affine hull of weighted tables (add/remove: linear span)."""

    def __init__(
        self,
        tables: Sequence[Table],
        weights: Sequence[float],
        adjacency: Adjacency,
        possible: Possible | None = None,
    ) -> None:
        self.weights = tuple(weights)
        #: An upper bound on the distance of two points of total 1.
        self._reach = math.sqrt(2 * sum(weight**2 for weight in self.weights))
        if possible is not None:
            tables, weights = possible.model.tables, [1.0] * len(possible.model.tables)
        sizes = [table.n_cells for table in tables]
        #: The answers if records are spread evenly over all combinations of levels: no cell is 0.
        self.centre = np.repeat(np.array(weights) / sizes, sizes)
        self._basis = _interactions(tables, weights, whole=adjacency is Adjacency.ADD_REMOVE)
        if possible is not None:
            # The possible cells, with their weights, are sums of the cells of the model.
            self.centre = np.asarray(possible.model.matrix @ self.centre)
            spread = (possible.model.matrix @ self._basis).toarray()
            squares, turned = np.linalg.eigh(spread @ spread.T)
            self._basis = sp.csr_array(turned[:, significant(squares)])
        self._transpose = sp.csr_array(self._basis.T)

    @property
    def dimension(self) -> int:
        """Dimension of the hull of the tables."""
        return int(self._basis.shape[1])

    def nearest(self, answers: FloatArray, tolerance: float = 0.0) -> Nearest:
        """The point of the polytope nearest to `answers` (m,), by the method of multipliers.

        It stops at a gap of at most `tolerance`, or when rounding errors prevent progress.

        Points of the hull are c + B t for orthonormal columns of B. Each round solves, for
        multipliers l >= 0, a penalty s and the coordinates t_0 of the nearest point of the hull,

            minimise over t  ||t - t_0||^2 / 2 + ||(l - s (c + B t))_+||^2 / (2 s)

        and replaces l by (l - s (c + B t))_+, until no cell is negative and cells with a positive
        multiplier are 0. Newton's method uses conjugate gradients on I + s B_A^T B_A, of condition
        number at most 1 + s, for the rows B_A of B of cells with l - s (c + B t) > 0.
        """
        start = self._transpose @ (answers - self.centre)
        scale = max(float(np.abs(start).max(initial=0.0)), float(self.centre.max()))
        multipliers, place, penalty = np.zeros(len(answers)), start, FIRST_PENALTY
        # A gradient of this size contributes a hundredth of the tolerance to the gap.
        loose = 0.01 * tolerance / self._reach / math.sqrt(max(self.dimension, 1))
        for _ in range(MAX_ROUNDS):
            least = max(max(PRECISION, ROUNDING * penalty) * scale, loose)
            place = self._minimised(place, start, multipliers, penalty, least)
            multipliers = np.maximum(multipliers - penalty * self._cells(place), 0.0)
            place = start + self._transpose @ multipliers
            cells = self._cells(place)
            found = self._inside(start, multipliers, cells)
            if found.gap <= tolerance:
                return found
            # At the solution no cell is negative, and cells with a positive multiplier are 0.
            if np.abs(np.minimum(cells, multipliers)).max() <= PRECISION * scale:
                break
            penalty = min(GROWTH * penalty, LARGEST_PENALTY)
        return found

    def _cells(self, place: FloatArray) -> FloatArray:
        """The cells c + B t for the coordinates t = `place`."""
        return np.asarray(self.centre + self._basis @ place)

    def _minimised(
        self,
        place: FloatArray,
        start: FloatArray,
        multipliers: FloatArray,
        penalty: float,
        least: float,
    ) -> FloatArray:
        """The minimiser of one round, by Newton's method with a line search, from `place`."""

        def value_and_parts(at: FloatArray) -> tuple[float, FloatArray]:
            parts = np.maximum(multipliers - penalty * self._cells(at), 0.0)
            return float((at - start) @ (at - start) + parts @ parts / penalty) / 2, parts

        value, parts = value_and_parts(place)
        for _ in range(MAX_STEPS):
            gradient = place - start - self._transpose @ parts
            if np.abs(gradient).max(initial=0.0) <= least:
                break
            step = self._newton_step(gradient, parts > 0, penalty, 0.1 * least)
            slope, length = float(gradient @ step), 1.0
            while True:
                moved = place + length * step
                new_value, new_parts = value_and_parts(moved)
                # The last digits of the value are rounding errors, so allow for them.
                if new_value <= value + 1e-4 * length * slope + 1e-15 * value:
                    break
                length /= 2
                if length < 1e-6:
                    return place
            place, value, parts = moved, new_value, new_parts
        return place

    def _newton_step(
        self, gradient: FloatArray, active: BoolArray, penalty: float, least: float
    ) -> FloatArray:
        """Newton's step -(I + s B_A^T B_A)^-1 g for the gradient g, by conjugate gradients."""

        def product(direction: FloatArray) -> FloatArray:
            curved = np.where(active, self._basis @ direction, 0.0)
            return np.asarray(direction + penalty * (self._transpose @ curved))

        # Two digits of the step suffice: more take longer than the steps that they save.
        goal = max(1e-2 * math.sqrt(float(gradient @ gradient)), least)
        return conjugate_gradients(product, -gradient, goal, MAX_PRODUCTS)

    def _inside(self, start: FloatArray, multipliers: FloatArray, cells: FloatArray) -> Nearest:
        """The cells, moved towards the centre until none is negative, and the gap."""
        below = cells < 0
        shares = -cells[below] / (self.centre[below] - cells[below])
        moved = cells + float(shares.max(initial=0.0)) * (self.centre - cells)
        answers = np.maximum(moved, 0.0)
        # For the projected point y, the result p with coordinates t, and each x of the polytope,
        # <y - p, x - p> <= <l, p> + |t_0 + B^T l - t| |x - p|. The gap is twice the right-hand
        # side, with an upper bound on |x - p| for x of total 1.
        place = self._transpose @ (answers - self.centre)
        apart = float(np.linalg.norm(start + self._transpose @ multipliers - place))
        lengths = sum(weight**2 for weight in self.weights)
        distance = math.sqrt(lengths + max(lengths, float(answers @ answers)))
        return Nearest(answers, 2 * (float(multipliers @ answers) + apart * distance))


def fits(tables: Sequence[Table]) -> bool:
    """Whether the basis has at most `MAX_BASIS_ENTRIES` nonzero entries, by an upper bound."""
    counts = [[len(levels) for levels in table.levels] for table in tables]
    bounds = (math.prod(n * (1 + math.ceil(math.log2(n))) for n in each) for each in counts)
    return sum(bounds) <= MAX_BASIS_ENTRIES


def _interactions(
    tables: Sequence[Table], weights: Sequence[float], *, whole: bool
) -> sp.csr_array:
    """Orthonormal basis (m, r) of the directions of the hull: interactions of sets of columns.

    For each nonempty set S of columns in some table (with `whole`, also the empty set), products of
    contrasts of the columns of S are spread evenly over the other columns of every table T that
    contains S, and multiplied by the weight w_T; their squared length is first the sum of w_T^2 /
    k_T, for the number k_T of combinations of levels of the columns of T outside S.
    """
    starts: dict[tuple[str, ...], int] = {}
    lengths: dict[tuple[str, ...], float] = {}
    total, first = 0, 0
    placed = []
    for table, weight in zip(tables, weights, strict=True):
        counts = tuple(len(levels) for levels in table.levels)
        for chosen, block in _blocks(counts):
            names = tuple(itertools.compress(table.columns, chosen))
            if not (names or whole):
                continue
            if names not in starts:
                starts[names], lengths[names] = total, 0.0
                total += block.shape[1]
            rest = math.prod(n for n, own in zip(counts, chosen, strict=True) if not own)
            lengths[names] += weight**2 / rest
            placed.append((first, names, weight, block))
        first += table.n_cells
    rows, columns, values = [], [], []
    for start, names, weight, block in placed:
        rows.append(start + block.row)
        columns.append(starts[names] + block.col)
        values.append(weight / math.sqrt(lengths[names]) * block.data)
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    return sp.csr_array(entries, shape=(first, total))


@functools.lru_cache(maxsize=64)
def _blocks(counts: tuple[int, ...]) -> list[tuple[tuple[bool, ...], sp.coo_array]]:
    """For each set of columns of a table: a mask of the set, and the interactions."""
    found = []
    for chosen in itertools.product((False, True), repeat=len(counts)):
        block = sp.coo_array(np.ones((1, 1)))
        for count, own in zip(counts, chosen, strict=True):
            factor = _contrasts(count) if own else sp.coo_array(np.full((count, 1), 1 / count))
            block = sp.coo_array(sp.kron(block, factor))
        found.append((chosen, block))
    return found


def _contrasts(count: int) -> sp.coo_array:
    """The Haar basis (n, n - 1) of {v : sum of v = 0}, with about n log2 n nonzero entries."""
    basis, column, waiting = np.zeros((count, count - 1)), 0, [(0, count)]
    while waiting:
        start, stop = waiting.pop()
        middle = (start + stop) // 2
        if middle == start:
            continue
        left, right = middle - start, stop - middle
        basis[start:middle, column] = math.sqrt(right / (left * (left + right)))
        basis[middle:stop, column] = -math.sqrt(left / (right * (left + right)))
        column += 1
        waiting += [(start, middle), (middle, stop)]
    return sp.coo_array(basis)
