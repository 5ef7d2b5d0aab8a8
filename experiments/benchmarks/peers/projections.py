"""Nearest points and gauges of the convex hull conv(v_i) of vertices v_i, by general solvers."""

import cvxpy as cp
import numpy as np
import numpy.typing as npt
import quadprog
from scipy.optimize import linprog

Array = npt.NDArray[np.float64]


def nearest_by_quadprog(vertices: Array, target: Array) -> Array | None:
    """The point y of conv(v_i) nearest to the target b; None if b is in conv(v_i).

    The rows of `vertices` are the v_i. The dual form is min {|w|^2 / 2 : <w, v_i - b> >= 1} with
    y = b + w / |w|^2. The formula sheet (X-MNP) names this program as the peer to beat: its
    variable w has as many entries as there are dimensions, not vertices.
    """
    dimension = len(target)
    rows = np.ascontiguousarray((vertices - target).T)
    try:
        normal = quadprog.solve_qp(
            np.eye(dimension), np.zeros(dimension), rows, np.ones(len(vertices))
        )[0]
    except ValueError as error:
        if "inconsistent" in str(error):
            return None
        raise
    return target + normal / float(normal @ normal)


def nearest_by_scs(vertices: Array, target: Array) -> Array:
    """The nearest point by the solver SCS at the default tolerances that CVXPY sets for SCS."""
    weights = cp.Variable(len(vertices), nonneg=True)
    objective = cp.Minimize(cp.sum_squares(vertices.T @ weights - target))
    cp.Problem(objective, [cp.sum(weights) == 1]).solve(solver=cp.SCS)
    shares = np.maximum(np.asarray(weights.value), 0)
    return np.asarray(shares @ vertices / shares.sum())


def separator_by_linprog(vertices: Array, point: Array) -> tuple[float, Array]:
    """The gauge of a point p about the mean c of the vertices v_i, and the z that attains it.

    The gauge is max {<z, p - c> : <z, v_i - c> <= 1 for all i}.
    """
    centre = vertices.mean(axis=0)
    result = linprog(
        centre - point, A_ub=vertices - centre, b_ub=np.ones(len(vertices)), bounds=(None, None)
    )
    return -float(result.fun), np.asarray(result.x)
