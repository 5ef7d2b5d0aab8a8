"""Chords of conv(+-v_i) by linear programs: scipy's `linprog`, and HiGHS models that are kept."""

import time
from dataclasses import dataclass
from typing import Any

import highspy
import hopsy
import numpy as np
import numpy.typing as npt
from scipy.linalg import eigh
from scipy.optimize import linprog

import geomdp as gd
from geomdp._numerics.linalg import unsvec

Array = npt.NDArray[np.float64]

#: Feasibility tolerance of HiGHS, near the smallest that HiGHS accepts.
TOLERANCE = 1e-9
#: HiGHS's numbers for its dual and its primal simplex method.
DUAL, PRIMAL = 1, 4


def program(vertices: Array) -> Array:
    """Matrix of the equations for p + t u in conv(+-v_i); the last column, for t, is left at 0.

    The equations are sum (a_i - b_i) v_i - t u = p and sum (a_i + b_i) = 1, for unknown numbers t
    and a_i, b_i >= 0.
    """
    count, dimension = vertices.shape
    rows = np.zeros((dimension + 1, 2 * count + 1))
    rows[:dimension, :count], rows[:dimension, count:-1] = vertices.T, -vertices.T
    rows[dimension, :-1] = 1
    return rows


def chord_by_linprog(vertices: Array, point: Array, direction: Array) -> tuple[float, float]:
    """The least and largest t with `point` + t `direction` in the body, each by a new program."""
    rows = program(vertices)
    rows[:-1, -1] = -direction
    limits = [(0.0, None)] * (rows.shape[1] - 1) + [(None, None)]
    ends = []
    for sign in (1.0, -1.0):
        costs = np.append(np.zeros(rows.shape[1] - 1), sign)
        result = linprog(costs, A_eq=rows, b_eq=np.append(point, 1.0), bounds=limits)
        ends.append(sign * float(result.fun))
    return ends[0], ends[1]


class KeptColumns:
    """One HiGHS model with a column per signed vertex, re-solved from its last basis.

    The vertices v_i are the rows of `vertices` (N, m); `strategy` is `DUAL` or `PRIMAL`.
    """

    def __init__(self, vertices: Array, strategy: int) -> None:
        rows = program(vertices)
        self._dimension, self._time = vertices.shape[1], rows.shape[1] - 1
        rows[:-1, -1] = 1.0  # `chord` writes the direction, with sign -, into this column
        lower = np.append(np.zeros(self._time), -highspy.kHighsInf)
        sides = np.append(np.zeros(self._dimension), 1.0)
        self._model = kept_model(rows, lower, sides, sides, strategy)

    def chord(self, point: Array, direction: Array) -> tuple[float, float]:
        """The least and largest t with `point` + t `direction` in the body, by two solves."""
        for row in range(self._dimension):
            self._model.changeCoeff(row, self._time, -direction[row])
        rows = np.arange(self._dimension, dtype=np.int32)
        self._model.changeRowsBounds(self._dimension, rows, point, point)
        ends = []
        for sign in (1.0, -1.0):
            self._model.changeColCost(self._time, sign)
            self._model.run()
            ends.append(sign * float(self._model.getInfo().objective_function_value))
        return ends[0], ends[1]


class KeptRows:
    """The dual model, with a row per signed vertex, re-solved from its last basis.

    For a point p and a direction u, the largest t with p + t u in conv(+-v_i) is
    min {s - <z, p> : |<z, v_i>| <= s for all i, <z, u> = 1}.
    `vertices` and `strategy` are as in `KeptColumns`.
    """

    def __init__(self, vertices: Array, strategy: int) -> None:
        self._count, self._dimension = vertices.shape
        rows = np.full((2 * self._count + 1, self._dimension + 1), -1.0)
        rows[: self._count, :-1], rows[self._count : -1, :-1] = vertices, -vertices
        rows[-1, :-1], rows[-1, -1] = 1.0, 0.0
        lower = np.append(np.full(self._dimension, -highspy.kHighsInf), 0.0)
        least = np.append(np.full(2 * self._count, -highspy.kHighsInf), 1.0)
        most = np.append(np.zeros(2 * self._count), 1.0)
        self._model = kept_model(rows, lower, least, most, strategy)
        self._model.changeColCost(self._dimension, 1.0)

    def chord(self, point: Array, direction: Array) -> tuple[float, float]:
        """The least and largest t with `point` + t `direction` in the body, by two solves."""
        columns = np.arange(self._dimension, dtype=np.int32)
        self._model.changeColsCost(self._dimension, columns, -point)
        ends = []
        for sign in (-1.0, 1.0):
            for column in range(self._dimension):
                self._model.changeCoeff(2 * self._count, column, sign * direction[column])
            self._model.run()
            ends.append(sign * float(self._model.getInfo().objective_function_value))
        return ends[0], ends[1]


def kept_model(rows: Array, lower: Array, least: Array, most: Array, strategy: int) -> Any:
    """A silent HiGHS model of {least <= rows @ x <= most, x >= lower} without costs."""
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = rows.shape
    program.col_cost_ = np.zeros(rows.shape[1])
    program.col_lower_ = lower
    program.col_upper_ = np.full(rows.shape[1], highspy.kHighsInf)
    # A bound of plus or minus `kHighsInf`, which is the infinity of float64, is no bound.
    program.row_lower_, program.row_upper_ = least, most
    program.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    used = rows.T != 0
    program.a_matrix_.start_ = np.append(0, np.cumsum(used.sum(axis=1))).astype(np.int32)
    program.a_matrix_.index_ = np.nonzero(used)[1].astype(np.int32)
    program.a_matrix_.value_ = rows.T[used]
    model = highspy.Highs()
    for option, value in {
        "output_flag": False,
        "presolve": "off",
        "solver": "simplex",
        "parallel": "off",
        "simplex_strategy": strategy,
        "primal_feasibility_tolerance": TOLERANCE,
        "dual_feasibility_tolerance": TOLERANCE,
    }.items():
        model.setOptionValue(option, value)
    model.passModel(program)
    return model


@dataclass(frozen=True)
class EigenvalueChords(gd.bodies.Body):
    """The spectraplex {M psd, tr M <= 1} with exact chords, but without the other oracles."""

    inner: gd.bodies.Spectraplex  # The body

    @property
    def dimension(self) -> int:
        """Dimension d (d + 1) / 2."""
        return self.inner.dimension

    def chord(self, points: Array, directions: Array) -> tuple[Array, Array]:
        """Ends (lo, hi) of each chord: there an eigenvalue reaches 0 or the trace reaches 1."""
        low, high = np.empty(len(points)), np.empty(len(points))
        for k, (M, D) in enumerate(zip(unsvec(points), unsvec(directions), strict=True)):
            # For positive definite M, M + t D is psd iff 1 + t lambda >= 0 for every eigenvalue
            # lambda of M^-1 D.
            slopes = eigh(D, M, eigvals_only=True)
            room, rise = 1 - np.trace(M), np.trace(D)
            ends = np.append(-1 / slopes[slopes != 0], room / rise if rise else [])
            low[k], high[k] = ends[ends < 0].max(), ends[ends > 0].min()
        return low, high


#: hopsy's walks for uniform sampling that accept every or nearly every step.
PROPOSALS = {
    "hopsy, coordinate hit-and-run": hopsy.UniformCoordinateHitAndRunProposal,
    "hopsy, hit-and-run": hopsy.UniformHitAndRunProposal,
    "hopsy, billiard walk": hopsy.BilliardWalkProposal,
}
CHAINS = 4


def hopsy_draws(
    normals: Array, offsets: Array, method: str, draws: int, thinning: int, *, rounded: bool
) -> tuple[Array, float]:
    """States (chains, draws, m) of walks on {x : normals @ x <= offsets}, and the seconds taken.

    The polytope must contain 0 in its interior. If `rounded`, hopsy first rounds the polytope. Each
    walk begins with ``draws // 5`` states that are discarded. Rounding and discarded states are not
    timed.
    """
    problem = hopsy.Problem(normals, offsets)
    start = np.zeros(normals.shape[1])
    if rounded:
        problem = hopsy.round(problem)
        start = hopsy.transform(problem, [start])[0]
    chains = [
        hopsy.MarkovChain(problem, PROPOSALS[method], starting_point=start) for _ in range(CHAINS)
    ]
    generators = [hopsy.RandomNumberGenerator(seed) for seed in range(CHAINS)]
    hopsy.sample(chains, generators, n_samples=draws // 5, thinning=thinning, n_procs=1)
    began = time.process_time()
    _, states = hopsy.sample(chains, generators, n_samples=draws, thinning=thinning, n_procs=1)
    return np.asarray(states), time.process_time() - began
