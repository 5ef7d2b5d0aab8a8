"""CVXPY problems that are solved for many parameter values, and bodies projected on by them."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from geomdp._typing import BoolArray, FloatArray
from geomdp.bodies.base import Body
from geomdp.bodies.linear_programs import SolverError
from geomdp.bodies.oracles import Halfspace

#: Accuracy of points found by conic programs, whose residuals are 1e-8 or less.
CONIC_TOLERANCE = 1e-6

#: Residuals at which Clarabel stops.
CLARABEL_SETTINGS = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
#: Residuals at which SCS stops; its default is 1e-4.
SCS_SETTINGS = {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 100_000}


class KeptProblem:
    """A parametrised CVXPY problem, compiled once and solved for many parameter values.

    If Clarabel makes no further progress, it may stop at residuals of `reduced`.
    """

    def __init__(
        self,
        objective: Any,
        constraints: list[Any],
        parameters: list[Any],
        wanted: Any,
        solver: str,
        reduced: float = 1e-8,
    ) -> None:
        import cvxpy as cp

        self._problem = cp.Problem(objective, constraints)
        self._parameters = parameters
        self._wanted = wanted
        self._solver = solver
        names = ("reduced_tol_gap_abs", "reduced_tol_gap_rel", "reduced_tol_feas")
        known: dict[str, dict[str, Any]] = {
            cp.CLARABEL: CLARABEL_SETTINGS | dict.fromkeys(names, reduced),
            cp.SCS: SCS_SETTINGS,
        }
        self._settings = dict(known.get(solver, {}))
        # Clarabel reports "inaccurate" if it stops at the reduced residuals allowed above.
        self._accepted = (
            (cp.OPTIMAL, cp.OPTIMAL_INACCURATE) if solver == cp.CLARABEL else (cp.OPTIMAL,)
        )

    def solve(self, *values: FloatArray) -> tuple[str, Any]:
        """Status (optimal, infeasible or unbounded) and, if optimal, the value wanted."""
        import cvxpy as cp

        for parameter, value in zip(self._parameters, values, strict=True):
            parameter.value = value
        try:
            with warnings.catch_warnings():
                # The status is checked below.
                warnings.filterwarnings("ignore", message="Solution may be inaccurate")
                self._problem.solve(solver=self._solver, **self._settings)
        except cp.error.SolverError as error:
            raise SolverError(f"{self._solver} failed: {error}") from error
        status = self._problem.status
        if status in self._accepted:
            return "optimal", self._wanted.value
        if status in (cp.INFEASIBLE, cp.UNBOUNDED):
            return status, None
        raise SolverError(f"{self._solver} stopped with status {status}")


class ConicBody(Body):
    """A body whose projection is a conic program, from which membership and separation follow."""

    def contains(self, points: FloatArray, tolerance: float = CONIC_TOLERANCE) -> BoolArray:
        """Whether the distance is at most `tolerance`, at least 1e-6, times the radius."""
        distances = np.linalg.norm(points - self.project(points), axis=1)
        return np.asarray(distances <= max(tolerance, CONIC_TOLERANCE) * self.radius())

    def separate(self, point: FloatArray) -> Halfspace | None:
        """The halfspace at the nearest point, moved out to the support function."""
        normal = point - self.project(point[None])[0]
        if np.linalg.norm(normal) <= CONIC_TOLERANCE * self.radius():
            return None
        return Halfspace(normal, float(self.support(normal[None])[0]))
