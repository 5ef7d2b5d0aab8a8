"""CVXPY problems that are solved for many parameter values."""

from __future__ import annotations

import warnings
from typing import Any

from geomdp._typing import FloatArray
from geomdp.bodies.linear_programs import SolverError

#: Tolerances for the duality gap and for the constraints at which the solver Clarabel stops.
CLARABEL_SETTINGS = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
#: Residuals at which the solver SCS stops, and its largest number of iterations. By default, CVXPY
#: lets SCS stop at residuals of 1e-5, which is too early for the accuracy of `CvxBody`.
SCS_SETTINGS = {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 100_000}


class KeptProblem:
    """A parametrised CVXPY problem, compiled once and solved for many parameter values."""

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
        self._settings: dict[str, Any] = {}
        self._accepted = [cp.OPTIMAL]
        if solver == cp.CLARABEL:
            names = ("reduced_tol_gap_abs", "reduced_tol_gap_rel", "reduced_tol_feas")
            self._settings = CLARABEL_SETTINGS | dict.fromkeys(names, reduced)
            # The status of a solution that meets only the reduced tolerances.
            self._accepted.append(cp.OPTIMAL_INACCURATE)
        elif solver == cp.SCS:
            self._settings = dict(SCS_SETTINGS)

    def solve(self, *values: FloatArray) -> tuple[str, Any]:
        """Status, and the value of `wanted` if optimal; ``SolverError`` for a failed solve."""
        import cvxpy as cp

        for parameter, value in zip(self._parameters, values, strict=True):
            parameter.value = value
        try:
            with warnings.catch_warnings():
                # The warning is not needed, because the status is checked below.
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
