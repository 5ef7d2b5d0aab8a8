"""Polytopes given by inequalities, and their linear programs, as HiGHS models that are kept and
solved again from a warm start.

The support function of the polytope {z : columns^T z <= costs} at y is

    value(y) = min {costs @ w : columns @ w = y, w >= 0} = max {<y, z> : columns^T z <= costs}

For costs 1, it is the gauge of y in the hull of 0 and the columns. The optimal basis of one solve
stays dual feasible for every y, so a later solve usually takes only a few pivots.
"""

from __future__ import annotations

import abc
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy
import scipy.sparse as sp

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp._typing import BoolArray, FloatArray
from geomdp.bodies.base import (
    MEMBERSHIP_TOLERANCE,
    Body,
    Facets,
    SupportFunction,
    check_all_above_0,
    cp,
    facets_of_rows,
    freeze,
    holds_origin,
    off_hull,
    off_span,
    ratio_test,
)

#: Feasibility tolerance of HiGHS, on data scaled to size 1 (at least 1e-10 is accepted).
LP_TOLERANCE = 1e-9


class SolverError(RuntimeError):
    """A solver stopped before it reached the required accuracy.

    Examples
    --------
    >>> import geomdp as gd
    >>> issubclass(gd.bodies.SolverError, RuntimeError)
    True
    """


class ConicProgram:
    """min {costs @ w : columns @ w = y, w >= 0} for many y, and its dual, in numbers of size 1."""

    def __init__(self, columns: FloatArray, costs: FloatArray) -> None:
        self._columns = columns
        self._costs = costs
        self._column_size = float(np.abs(columns).max(initial=0.0)) or 1.0
        self._cost_size = float(np.abs(costs).max(initial=0.0)) or 1.0
        self._model: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_model": None}

    def solve(self, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (b,) and duals z (b, r) for targets y (b, r); inf and 0 if infeasible."""
        values = np.zeros(len(targets))
        duals = np.zeros(targets.shape)
        sizes = np.abs(targets).max(axis=1, initial=0.0)
        for i in np.flatnonzero(sizes > 0):
            value, dual = self._solve_one(targets[i] / sizes[i])
            values[i], duals[i] = value * sizes[i], dual
        return values, duals

    def _solve_one(self, target: FloatArray) -> tuple[float, FloatArray]:
        import highspy

        if self._model is None:
            columns, costs = self._columns / self._column_size, self._costs / self._cost_size
            self._model = _kept_model(columns, costs)
        model = self._model
        rows = np.arange(len(target), dtype=np.int32)
        model.changeRowsBounds(len(target), rows, target, target)
        model.run()
        status = model.getModelStatus()
        if status == highspy.HighsModelStatus.kInfeasible:
            return np.inf, np.zeros(len(target))
        if status != highspy.HighsModelStatus.kOptimal:
            raise SolverError(f"HiGHS stopped with status {model.modelStatusToString(status)}")
        scale = self._cost_size / self._column_size
        dual = np.array(model.getSolution().row_dual) * scale
        return model.getInfo().objective_function_value * scale, dual


def _kept_model(columns: FloatArray, costs: FloatArray) -> Any:
    """A HiGHS model of min {costs @ w : columns @ w = 0, w >= 0}."""
    import highspy

    rows, count = columns.shape
    program = highspy.HighsLp()
    program.num_col_, program.num_row_ = count, rows
    program.col_cost_ = costs
    program.col_lower_, program.col_upper_ = np.zeros(count), np.full(count, highspy.kHighsInf)
    program.row_lower_, program.row_upper_ = np.zeros(rows), np.zeros(rows)
    entries = sp.csc_array(columns)
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_, program.a_matrix_.index_ = entries.indptr, entries.indices
    program.a_matrix_.value_ = entries.data
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    for name, value in (("presolve", "off"), ("solver", "simplex"), ("parallel", "off")):
        model.setOptionValue(name, value)
    for name in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
        model.setOptionValue(name, LP_TOLERANCE)
    model.passModel(program)
    return model


def origin_depth(points: FloatArray) -> float:
    """The largest N s with sum_i a_i p_i = 0, sum a = 1, a >= s, for `points` p_i (N, r); else 0.
    It is above 0 iff 0 is in the interior of the hull, relative to the linear span.
    """
    if points.shape[1] == 0:
        return 1.0
    size = float(np.abs(points).max()) or 1.0
    lifted = np.hstack([points / size, np.ones((len(points), 1))])
    # With a = b + s, b >= 0, N s is an additional variable whose column is the mean of the others.
    columns = np.vstack([lifted, lifted.mean(axis=0)]).T
    costs = np.append(np.zeros(len(points)), -1.0)
    target = np.append(np.zeros(points.shape[1]), 1.0)
    value = ConicProgram(columns, costs).solve(target[None])[0][0]
    return 0.0 if np.isinf(value) else max(0.0, -float(value))


def surround(normals: FloatArray) -> bool:
    """Whether 0 is inside the hull of unit `normals`: all {normals @ x <= offsets} are bounded."""
    spans = np.linalg.matrix_rank(normals, tol=RANK_TOLERANCE) == normals.shape[1]
    return bool(spans and origin_depth(normals) > RANK_TOLERANCE)


def slack_rows(normals: FloatArray, offsets: FloatArray) -> tuple[FloatArray, BoolArray] | None:
    """A point in the relative interior of {x : normals @ x <= offsets}, and which rows are slack,
    for rows and offsets of size about 1; None if empty. Sets thinner than about 1e-9 count as flat.
    """
    # max {sum s : normals @ x + s <= tau offsets, 0 <= s <= 1, 1 <= tau <= 1e9}
    count, dimension = normals.shape
    parts = [sp.csr_array(normals), sp.eye_array(count), sp.csr_array(-offsets[:, None])]
    rows = sp.hstack(parts, format="csr")
    costs = np.concatenate([np.zeros(dimension), -np.ones(count), [0.0]])
    limits = [(None, None)] * dimension + [(0.0, 1.0)] * count + [(1.0, 1e9)]
    zeros = np.zeros(count)
    result = scipy.optimize.linprog(costs, rows, zeros, bounds=limits, method="highs")
    if result.status == 2:
        return None
    if result.status != 0:
        raise SolverError(f"HiGHS stopped with status {result.status}: {result.message}")
    # At the optimum s is 0 or 1 up to the solver's tolerance, unless the set is nearly flat.
    solution: FloatArray = np.asarray(result.x)
    return solution[:dimension] / solution[-1], solution[dimension:-1] > 1 / 2


# Polytopes given by inequalities.

#: In linear programs, a row whose hyperplane is farther from 0 than this number times the median
#: distance is divided by the excess, because far rows would set the scale of the tolerances.
FAR = 1e3


def freeze_rows(body: Body, first: str, second: str) -> None:
    """`freeze` the fields `first` (F, m) and `second` (F,); no row may be 0."""
    rows, values = freeze(body, first, ndim=2), freeze(body, second, ndim=1)
    if 0 in rows.shape or len(rows) != len(values):
        raise ValueError(
            f"{first} and {second} must have shapes (F, m) and (F,), F, m >= 1, got {rows.shape} "
            f"and {values.shape}"
        )
    zero = ~rows.any(axis=1)
    if zero.any():
        raise ValueError(f"{first} must not be 0, got 0 in row {int(np.argmax(zero))}")


class ByInequalities(Body):
    """Base class of polytopes given by inequalities; linear programs give support and vertices."""

    @property
    @abc.abstractmethod
    def _program(self) -> ConicProgram:
        """The dual program of max <u, x>; each solve starts from the last basis of the solver."""

    def support(self, directions: FloatArray) -> FloatArray:
        return self._program.solve(directions)[0]

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """A vertex that attains the support function; u = 0 is replaced by e_1."""
        directions = directions.copy()
        directions[~directions.any(axis=1), 0] = 1.0
        return self._program.solve(directions)[1]


@dataclass(frozen=True, eq=False)
class HPolytope(ByInequalities):
    """The polytope {x in R^m : normals @ x <= offsets}, given by F inequalities.

    Support and extreme points solve linear programs with m rows and F columns, each started from
    the solution for the previous direction. Gauge, facets, membership and chords have closed forms,
    O(F m) per point. At first use, two linear programs check that the set is bounded and not empty,
    and find its affine hull.

    Parameters
    ----------
    normals : (F, m) array
        Finite; no row is 0.
    offsets : (F,) array
        Finite right-hand sides.

    Raises
    ------
    ValueError
        At first use, for instance in `support` or `contains`: if the set is empty or unbounded.

    Examples
    --------
    >>> import geomdp as gd
    >>> triangle = gd.bodies.HPolytope([[-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]], [1.0, 1.0, 1.0])
    >>> triangle.support([[1.0, 0.0]]).round(6).tolist()
    [2.0]
    """

    normals: FloatArray
    offsets: FloatArray

    def __post_init__(self) -> None:
        freeze_rows(self, "normals", "offsets")

    def _summary(self) -> str:
        return f"{len(self.normals)} inequalities"

    @property
    def dimension(self) -> int:
        return int(self.normals.shape[1])

    @cached_property
    def symmetric(self) -> bool:
        """Whether for each row (normal, offset) there is a row that equals (-normal, offset)."""
        ours = np.column_stack([self.normals, self.offsets]) + 0.0
        theirs = np.column_stack([-self.normals, self.offsets]) + 0.0
        return np.array_equal(np.unique(ours, axis=0), np.unique(theirs, axis=0))

    @cached_property
    def _units(self) -> tuple[FloatArray, FloatArray]:
        """Normals scaled to length 1, and their offsets."""
        lengths = np.linalg.norm(self.normals, axis=1)
        return self.normals / lengths[:, None], self.offsets / lengths

    @cached_property
    def _balanced(self) -> tuple[FloatArray, FloatArray]:
        """The same rows with offsets of similar sizes: rows beyond `FAR` are divided."""
        units, offsets = self._units
        excess = np.abs(offsets) / (FAR * np.median(np.abs(offsets)) or np.inf)
        shares = 1 / np.maximum(excess, 1.0)
        return units * shares[:, None], offsets * shares

    @cached_property
    def _shape(self) -> tuple[AffineHull, FloatArray, FloatArray]:
        """Affine hull; units and offsets of strict rows; ``ValueError`` if empty or unbounded."""
        units, offsets = self._units
        if not surround(units):
            raise ValueError(f"{self!r} is empty or unbounded: 0 is not inside the normals' hull")
        rows, heights = self._balanced
        size = float(np.abs(heights).max()) or 1.0
        found = slack_rows(rows, heights / size)
        if found is None:
            raise ValueError(f"{self!r} is empty")
        point, slack = found
        basis = scipy.linalg.null_space(units[~slack], rcond=RANK_TOLERANCE)
        if slack.all():
            basis = np.eye(self.dimension)
        hull = AffineHull(point * size, np.ascontiguousarray(basis))
        return hull, units[slack], offsets[slack]

    @cached_property
    def _scale(self) -> float:
        """Norm of an inner point plus a reach of the hull's axes: at most twice the largest norm of
        a point, and not changed by redundant rows.
        """
        hull, rows, offsets = self._shape
        slopes = np.abs(rows @ hull.basis)
        room = np.broadcast_to((offsets - rows @ hull.offset)[:, None], slopes.shape)
        times = np.divide(room, slopes, out=np.full(slopes.shape, np.inf), where=slopes > 0)
        reach = times.min(axis=0, initial=np.inf)
        return float(np.linalg.norm(hull.offset) + reach.max(initial=0.0))

    @cached_property
    def _has_gauge(self) -> bool:
        hull, _, offsets = self._shape
        inside = (offsets > RANK_TOLERANCE * self._scale).all()
        return bool(inside and holds_origin(hull, self._scale))

    @cached_property
    def _program(self) -> ConicProgram:
        """The dual program: h(u) = min {offsets @ w : normals^T w = u, w >= 0}."""
        self._shape  # noqa: B018 (raises for an empty or unbounded set)
        units, offsets = self._balanced
        return ConicProgram(np.ascontiguousarray(units.T), offsets)

    def facets(self, points: FloatArray) -> Facets:
        """For each point, the row a_i / b_i, no equality, with the largest inner product."""
        hull, rows, offsets = self._shape
        outside = off_span(points, hull.basis, self._scale)
        return facets_of_rows(points, rows / offsets[:, None], outside)

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether each inequality, with a unit normal, holds up to `tolerance` times the scale."""
        hull, rows, offsets = self._shape
        inside = (points @ rows.T <= offsets + tolerance * self._scale).all(axis=1)
        flat = max(tolerance, RANK_TOLERANCE) * self._scale
        return np.asarray(inside & ~off_hull(points, hull, flat))

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        hull, rows, offsets = self._shape
        room = np.maximum(offsets - points @ rows.T, 0.0)
        return ratio_test(room, directions @ rows.T, off_span(directions, hull.basis))

    def affine_hull(self) -> AffineHull:
        """The solutions of <a_i, x> = b_i for those rows i that are equalities on the whole set."""
        return self._shape[0]

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        return [self.normals @ variable <= self.offsets]

    def largest_gauge(self, support: SupportFunction) -> float | None:
        """None if some offset is at most 0."""
        if (self.offsets <= 0).any():
            return None
        return float(support(self.normals / self.offsets[:, None]).max())


@dataclass(frozen=True, eq=False)
class SlabBody(ByInequalities):
    """The symmetric body {y in R^r : |<z_j, y>| <= w_j for j = 1, ..., F}.

    Gauge, facets and chords have closed forms, O(F r) per point. Support and extreme points solve
    linear programs with r rows and 2 F columns, each started from the previous solution.

    Parameters
    ----------
    directions : (F, r) array
        Finite rows z_j that span R^r. No row is 0.
    widths : (F,) array
        Finite half-widths w_j > 0. If w_j >= h_K(z_j) for all j, where h_K is the support function
        of a symmetric body K, then this body contains K (X-OUT).

    Raises
    ------
    ValueError
        At first use: if the directions do not span R^r.

    Examples
    --------
    >>> import geomdp as gd
    >>> hexagon = gd.bodies.SlabBody([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], [1.0, 1.0, 1.0])
    >>> hexagon.gauge([[1.0, 1.0], [1.0, -1.0]]).tolist()
    [2.0, 1.0]
    """

    directions: FloatArray
    widths: FloatArray

    symmetric = True

    def __post_init__(self) -> None:
        freeze_rows(self, "directions", "widths")
        check_all_above_0(self.widths, "widths")

    def _summary(self) -> str:
        return f"{len(self.widths)} slabs"

    @property
    def dimension(self) -> int:
        return int(self.directions.shape[1])

    @cached_property
    def normals(self) -> FloatArray:
        """Rows z_j / w_j (F, r), so that the body is {y : |normals @ y| <= 1}."""
        normals = self.directions / self.widths[:, None]
        units = self.directions / np.linalg.norm(self.directions, axis=1, keepdims=True)
        rank = np.linalg.matrix_rank(units, tol=RANK_TOLERANCE)
        if rank < self.dimension:
            raise ValueError(f"{self!r} is unbounded: its directions span only {rank} dimensions")
        normals.setflags(write=False)
        return normals

    @cached_property
    def _program(self) -> ConicProgram:
        """The dual of max <u, y>: min {sum a + sum b : normals^T (a - b) = u, a >= 0, b >= 0}."""
        columns = np.vstack([self.normals, -self.normals]).T
        return ConicProgram(np.ascontiguousarray(columns), np.ones(columns.shape[1]))

    def facets(self, points: FloatArray) -> Facets:
        """Normals +-z_j / w_j of the slabs with the largest |<z_j, y>| / w_j."""
        ratios = points @ self.normals.T
        winners = np.abs(ratios).argmax(axis=1)
        top = np.take_along_axis(ratios, winners[:, None], axis=1)
        return Facets(np.abs(top[:, 0]), np.copysign(1.0, top) * self.normals[winners])

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        heights = np.clip(points @ self.normals.T, -1.0, 1.0)
        slopes = directions @ self.normals.T
        room = np.hstack([1 - heights, 1 + heights])
        return ratio_test(room, np.hstack([slopes, -slopes]), np.zeros(len(points), dtype=bool))

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        return [cp.abs(self.normals @ variable) <= 1]

    def largest_gauge(self, support: SupportFunction) -> float:
        return float(support(np.array(self.normals)).max())
