"""Linear programs of polytopes, as HiGHS models that are kept and solved again from a warm start.

The support function of the polytope {z : columns^T z <= costs} at y is

    value(y) = min {costs @ w : columns @ w = y, w >= 0} = max {<y, z> : columns^T z <= costs}

For costs 1, it is the gauge of y in the hull of 0 and the columns. The optimal basis of one solve
stays dual feasible for every y, so a later solve usually takes only a few pivots.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from geomdp._numerics.linalg import RANK_TOLERANCE
from geomdp._typing import BoolArray, FloatArray

#: Feasibility tolerance of the solver HiGHS, on data scaled to size 1. It equals
#: `MEMBERSHIP_TOLERANCE`. The smallest tolerance that HiGHS accepts is 1e-10.
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
    """The program min {costs @ w : columns @ w = y, w >= 0}, solved for many y, and its dual.

    Columns (r, N), costs (N,) and y are divided by their largest moduli, so programs of bodies of
    any size are solved to the same relative accuracy.
    """

    def __init__(self, columns: FloatArray, costs: FloatArray) -> None:
        self._columns = columns
        self._costs = costs
        self._column_size = float(np.abs(columns).max(initial=0.0)) or 1.0
        self._cost_size = float(np.abs(costs).max(initial=0.0)) or 1.0
        self._model: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_model": None}

    def solve(self, targets: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (b,) and duals z (b, r) for right-hand sides y (b, r); inf and 0 if infeasible,
        and `SolverError` if unbounded below or if HiGHS stops without a proof.
        """
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
    used = columns.T != 0
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    program.a_matrix_.start_ = np.concatenate([[0], np.cumsum(used.sum(axis=1))]).astype(np.int32)
    program.a_matrix_.index_ = np.nonzero(used)[1].astype(np.int32)
    program.a_matrix_.value_ = columns.T[used]
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("presolve", "off")
    model.setOptionValue("solver", "simplex")
    model.setOptionValue("parallel", "off")
    model.setOptionValue("primal_feasibility_tolerance", LP_TOLERANCE)
    model.setOptionValue("dual_feasibility_tolerance", LP_TOLERANCE)
    model.passModel(program)
    return model


def origin_depth(points: FloatArray) -> float:
    """The largest N s with sum_i a_i p_i = 0, sum a = 1, a >= s, for `points` p_i (N, r); else 0.

    It is above 0 iff 0 is in the interior of the hull, relative to the linear span. If the hull
    contains a ball about 0 in this span, of q times the largest norm, it is at least q / (1 + q).
    """
    if points.shape[1] == 0:
        return 1.0
    size = float(np.abs(points).max()) or 1.0
    lifted = np.hstack([points / size, np.ones((len(points), 1))])
    # Write a = b + s with b >= 0. Then N s is an additional variable. Its column is the mean of all
    # other columns.
    columns = np.vstack([lifted, lifted.mean(axis=0)]).T
    costs = np.append(np.zeros(len(points)), -1.0)
    target = np.append(np.zeros(points.shape[1]), 1.0)
    value = ConicProgram(columns, costs).solve(target[None])[0][0]
    return 0.0 if np.isinf(value) else max(0.0, -float(value))


def surround(normals: FloatArray) -> bool:
    """Whether 0 is an interior point of the hull of unit vectors `normals` (N, m); exactly then,
    every non-empty set {x : normals @ x <= offsets} is bounded.
    """
    spans = np.linalg.matrix_rank(normals, tol=RANK_TOLERANCE) == normals.shape[1]
    return bool(spans and origin_depth(normals) > RANK_TOLERANCE)


def near_rows(normals: FloatArray, offsets: FloatArray) -> BoolArray:
    """Which rows (N,) of {x : normals @ x <= offsets} to keep; the others are redundant.

    A row with a unit normal is redundant if its offset is above the norm of every point of the
    bounded set P of the rows nearest to 0. If P is empty, its rows alone are kept.
    """
    order = np.argsort(np.abs(offsets), kind="stable")
    count = min(len(order), normals.shape[1] + 1)
    while not surround(normals[order[:count]]):
        if count == len(order):
            return np.ones(count, dtype=bool)
        count = min(2 * count, len(order))
    first = np.zeros(len(order), dtype=bool)
    first[order[:count]] = True
    size = float(np.abs(offsets[first]).max()) or 1.0
    if slack_rows(normals[first], offsets[first] / size) is None:
        return first
    program = ConicProgram(np.ascontiguousarray(normals[first].T), offsets[first] / size)
    axes = np.eye(normals.shape[1])
    corner = np.maximum(program.solve(axes)[0], program.solve(-axes)[0])
    # No point of P is farther from 0 than this corner of a box. 1e-6 is far above the solver's
    # error.
    return np.asarray(offsets <= size * np.linalg.norm(corner) * (1 + 1e-6))


def slack_rows(normals: FloatArray, offsets: FloatArray) -> tuple[FloatArray, BoolArray] | None:
    """A point in the relative interior of {x : normals @ x <= offsets}, and which rows are slack.

    Both come from max {sum s : normals @ x + s <= tau offsets, 0 <= s <= 1, 1 <= tau <= 1e9}, for
    rows and offsets of size about 1. Sets thinner than about 1e-9 count as flat. None for an empty
    set.
    """
    from scipy.optimize import linprog

    count, dimension = normals.shape
    parts = [sp.csr_array(normals), sp.eye_array(count), sp.csr_array(-offsets[:, None])]
    rows = sp.hstack(parts, format="csr")
    costs = np.concatenate([np.zeros(dimension), -np.ones(count), [0.0]])
    limits = [(None, None)] * dimension + [(0.0, 1.0)] * count + [(1.0, 1e9)]
    result = linprog(costs, A_ub=rows, b_ub=np.zeros(count), bounds=limits, method="highs")
    if result.status == 2:
        return None
    if result.status != 0:
        raise SolverError(f"HiGHS stopped with status {result.status}: {result.message}")
    # At the optimum s is 0 or 1 up to the solver's tolerance, unless the set is nearly flat.
    solution: FloatArray = np.asarray(result.x)
    return solution[:dimension] / solution[-1], solution[dimension:-1] > 1 / 2
