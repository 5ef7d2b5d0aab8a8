"""Bodies described by CVXPY constraints, such as Chebyshev moments; problems solved repeatedly."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp._numerics.linalg import AffineHull
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import finite_array, whole
from geomdp.bodies.base import Body, Halfspace, check_all_above_0, cp
from geomdp.bodies.linear_programs import SolverError
from geomdp.bodies.vpolytope import VPolytope

#: Relative accuracy of points found by conic programs. With Clarabel or SCS, the residuals of
#: these programs are at most 1e-8.
CONIC_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False, init=False)
class CvxBody(Body):
    """The body {x in R^m : x satisfies the constraints build(x)}, written in CVXPY.

    Support, extreme points, projection, separation and gauge solve one conic program for each row,
    and chords two. A program is compiled once, with the row as parameter. The first gauge, chord,
    membership test or separation also computes the radius, by 2 m programs, and the affine hull
    takes at most 2 m + 1. Results are accurate to about 1e-6 relative to the size of the body.

    Parameters
    ----------
    dimension : int
        Dimension m of the space.
    build : callable
        Takes a `cvxpy.Variable` of shape (m,) and returns a list of convex constraints on it
        (auxiliary variables are allowed). `build` is called once at construction, later once for
        each kind of program, and at each call of `cvxpy_constraints`.
    solver : str, optional
        A CVXPY solver constant, `cvxpy.CLARABEL` by default; `cvxpy.SCS` is faster and less
        accurate on large semidefinite bodies.

    Raises
    ------
    ValueError
        At construction: if `build` does not return a list of constraints. At use: if a conic
        program shows that the body is empty or unbounded.
    SolverError
        If the solver stops without an accurate answer.

    Examples
    --------
    >>> import cvxpy as cp
    >>> import geomdp as gd
    >>> half_disc = gd.bodies.CvxBody(2, lambda x: [cp.norm(x, 2) <= 1, x[0] >= 0])
    >>> half_disc.support([[1.0, 0.0]]).round(4).tolist()
    [1.0]
    """

    m: int
    build: Callable[[Any], list[Any]]
    solver: str

    def __init__(
        self, dimension: int, build: Callable[[Any], list[Any]], solver: str | None = None
    ) -> None:
        object.__setattr__(self, "m", whole(dimension, "dimension"))
        if not callable(build):
            raise ValueError(f"build must be a function of a variable, got {build!r}")
        object.__setattr__(self, "build", build)
        object.__setattr__(self, "solver", cp.CLARABEL if solver is None else solver)
        solvers = cp.installed_solvers()
        if self.solver not in solvers:
            raise ValueError(f"solver must be one of {', '.join(solvers)}, got {solver!r}")
        self._constraints(cp.Variable(self.m))

    def _summary(self) -> str:
        return f"by {self.solver}"

    def _constraints(self, variable: Any) -> list[Any]:
        constraints = self.build(variable)
        if not isinstance(constraints, list) or not all(
            isinstance(each, cp.constraints.constraint.Constraint) for each in constraints
        ):
            raise ValueError(f"build must return a list of CVXPY constraints, got {constraints!r}")
        return constraints

    @property
    def dimension(self) -> int:
        return self.m

    def _kept(self, objective: Any, point: Any, parameter: Any) -> KeptProblem:
        """The program with this objective over the body; its solution is the `point` (m,)."""
        constraints = self._constraints(point)
        return KeptProblem(objective, constraints, [parameter], lambda: point.value, self.solver)

    @cached_property
    def _highest(self) -> KeptProblem:
        """The program that maximises <u, x> over the body, for a parameter u."""
        point, direction = cp.Variable(self.m), cp.Parameter(self.m)
        return self._kept(cp.Maximize(direction @ point), point, direction)

    @cached_property
    def _nearest(self) -> KeptProblem:
        """The program that minimises ||x - y||^2 over x in the body, for a parameter y."""
        point, target = cp.Variable(self.m), cp.Parameter(self.m)
        return self._kept(cp.Minimize(cp.sum_squares(point - target)), point, target)

    @cached_property
    def _farthest(self) -> KeptProblem:
        """The program that maximises t with x + t u in the body, for parameters x and u."""
        point, time = cp.Variable(self.m), cp.Variable()
        start, direction = cp.Parameter(self.m), cp.Parameter(self.m)
        constraints = [*self._constraints(point), point == start + time * direction]
        wanted = [start, direction], lambda: time.value
        return KeptProblem(cp.Maximize(time), constraints, *wanted, self.solver)

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        # Directions are scaled to length 1, because solvers stop at an absolute error.
        lengths = [np.linalg.norm(direction) or 1.0 for direction in directions]
        scaled = zip(directions, lengths, strict=True)
        found = [self._solved(self._highest, u / s) for u, s in scaled]
        return np.array(found).reshape(directions.shape)

    def _solved(self, problem: KeptProblem, value: FloatArray) -> FloatArray:
        """The solution (m,); ``ValueError`` if there is none, as the body is empty or unbounded."""
        status, solution = problem.solve(value)
        if status != "optimal":
            what = "empty" if status == "infeasible" else "unbounded"
            raise ValueError(f"{self!r} is {what}: its constraints do not describe a body")
        return np.asarray(solution)

    def project(self, points: FloatArray) -> FloatArray:
        found = [self._solved(self._nearest, point) for point in points]
        return np.array(found).reshape(points.shape)

    def contains(self, points: FloatArray, tolerance: float = CONIC_TOLERANCE) -> BoolArray:
        """Whether the distance to the body is at most max(`tolerance`, 1e-6) times its radius."""
        distances = np.linalg.norm(points - self.project(points), axis=1)
        return np.asarray(distances <= max(tolerance, CONIC_TOLERANCE) * self.radius())

    def separate(self, point: FloatArray) -> Halfspace | None:
        normal = point - self.project(point[None])[0]
        if np.linalg.norm(normal) <= CONIC_TOLERANCE * self.radius():
            return None
        return Halfspace(normal, float(self.support(normal[None])[0]))

    def gauge(self, points: FloatArray) -> FloatArray:
        """inf for some x if 0 is on the boundary."""
        gauges = np.zeros(len(points))
        lengths = np.linalg.norm(points, axis=1) / self.radius()
        for i in np.flatnonzero(lengths > 0):
            # The direction has the length of the radius, so the ray leaves K at some t in [0, 1].
            time = self._time(np.zeros(self.m), points[i] / lengths[i])
            gauges[i] = lengths[i] / time if time > CONIC_TOLERANCE else np.inf
        return gauges

    @cached_property
    def _has_gauge(self) -> bool:
        """One conic program, or 2 m + 1 if no radius is known yet."""
        return bool(self.contains(np.zeros((1, self.m)))[0])

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """An end is 0 if the solver finds no point of the line in the body."""
        lengths = np.linalg.norm(directions, axis=1) / self.radius()
        ways = directions / lengths[:, None]
        rays = list(zip(points, ways, strict=True))
        low, high = (np.array([self._time(x, s * u) for x, u in rays]) for s in (-1.0, 1.0))
        return -low / lengths, high / lengths

    def _time(self, point: FloatArray, direction: FloatArray) -> float:
        status, time = self._farthest.solve(point, direction)
        if status == "infeasible":
            return 0.0
        if status != "optimal":
            raise ValueError(f"{self!r} is unbounded: its constraints do not describe a body")
        return max(0.0, float(time))

    @cached_property
    def _hull(self) -> AffineHull:
        """Almost surely, differences of known extreme points span it."""
        rng = np.random.default_rng(PUBLIC_SEED)
        basis = np.zeros((self.m, 0))
        offset = self.extreme_point(np.ones((1, self.m)))[0]
        while basis.shape[1] < self.m:
            normal = rng.standard_normal(self.m)
            normal -= basis @ (basis.T @ normal)
            normal /= np.linalg.norm(normal)
            ends = self.extreme_point(np.stack([normal, -normal]))
            span = ends[0] - ends[1]
            if normal @ span <= CONIC_TOLERANCE * self.radius():
                return AffineHull(offset, basis)
            span -= basis @ (basis.T @ span)
            basis = np.column_stack([basis, span / np.linalg.norm(span)])
        return AffineHull.whole_space(self.m)

    def affine_hull(self) -> AffineHull:
        """Widths below 1e-6 of the radius count as 0."""
        return self._hull

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        point = cp.Variable(self.m)
        return [point == variable, *self._constraints(point)]

    def __getstate__(self) -> dict[str, Any]:
        """Without compiled programs, which contain the state of a solver."""
        return {"m": self.m, "build": self.build, "solver": self.solver}


#: Tolerances for the duality gap and the constraints at which Clarabel stops.
CLARABEL_SETTINGS = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}
#: Residuals at which SCS stops (the default 1e-5 of CVXPY is too early), and most iterations.
SCS_SETTINGS = {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iters": 100_000}


class KeptProblem:
    """A parametrised CVXPY problem, compiled once and solved for many parameter values."""

    def __init__(
        self,
        objective: Any,
        constraints: list[Any],
        parameters: list[Any],
        wanted: Callable[[], Any],
        solver: str,
        reduced: float = 1e-8,
    ) -> None:
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
        """Status, and what `wanted` returns if optimal; ``SolverError`` for a failed solve."""
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
            return "optimal", self._wanted()
        if status in (cp.INFEASIBLE, cp.UNBOUNDED):
            return status, None
        raise SolverError(f"{self._solver} stopped with status {status}")


# Chebyshev product moments M_m = E prod_i T_{m_i}(x_i), m in {0..t-1}^d in row-major order, without
# M_0 = 1. Coordinates are M_m / s_m, so projection is least squares in M with weights 1 / s_m^2.

#: Largest value of (number of grid points) x (number of moments): 2^25 float64 are 256 MB.
MAX_ENTRIES = 1 << 25


def cosine_moment_body(scales: npt.ArrayLike) -> CvxBody:
    """All vectors (t - 1,) of M_m / s_m of distributions on [-1, 1], by two psd constraints."""
    # For x = cos(a), M_k is E cos(k a). These are moments if and only if the Toeplitz matrix
    # (M_|i-j|) of order t is psd (Caratheodory 1911, Toeplitz 1911). It does not change if rows and
    # columns are reversed, so it is psd if and only if two blocks are, with the entries
    # E cos(i a) cos(j a) and E sin(i a) sin(j a); i and j run over {0, 1, ..} for odd t and over
    # {1/2, 3/2, ..} for even t, up to (t - 1) / 2.
    scales = finite_array(scales, "scales", ndim=1)
    check_all_above_0(scales, "scales")
    # Both blocks are singular on the moment curve, where Clarabel often stops too early.
    return CvxBody(len(scales), partial(_semidefinite, scales), cp.SCS)


def _semidefinite(scales: FloatArray, variable: Any) -> list[Any]:
    """The semidefinite constraints on `variable`, the vector (t - 1,) of M_m / s_m."""
    size = len(scales) + 1
    constraints = []
    for sign in (1.0, -1.0):
        entries, order = _products(size, sign)
        if order:
            affine = entries[:, 0] + (entries[:, 1:] * scales) @ variable
            constraints.append(cp.reshape(affine, (order, order), order="C") >> 0)
    return constraints


def _products(size: int, sign: float) -> tuple[FloatArray, int]:
    """Coefficients of M_0..M_{t-1} in twice each entry of the block of `sign`, and its order."""
    # `doubled` holds the numbers 2 i; the row of sin(0 a) would be 0, so it is left out.
    doubled = np.arange((size - 1) % 2, size, 2)
    if sign < 0:
        doubled = doubled[doubled > 0]
    first, second = np.meshgrid(doubled, doubled, indexing="ij")
    rows = np.arange(first.size)
    entries = np.zeros((first.size, size))
    np.add.at(entries, (rows, np.abs(first - second).ravel() // 2), 1.0)
    np.add.at(entries, (rows, (first + second).ravel() // 2), sign)
    return entries, len(doubled)


def grid_moment_body(scales: npt.ArrayLike, per_axis: int) -> VPolytope:
    """Moment vectors of distributions on a grid of equally spaced angles.

    Grid points have coordinates cos(pi j / (G - 1)), j = 0..G-1. The body lies inside the body of
    the moments of all distributions on the cube. For each of these moment vectors, it has a vector
    with entries for m that differ by at most (h^2 / 8) sum_i m_i^2, where h = pi / (G - 1), by
    linear interpolation between grid angles.

    Parameters
    ----------
    scales : (t,) * d array
        s_m > 0 for m != 0, t >= 2; s_0 must be finite, but is not used. The coordinates are M_m /
        s_m, with Chebyshev moments M_m = E prod_i T_{m_i}(x_i).
    per_axis : int
        G >= 2, the number of grid angles in each variable. The body is the hull of G^d points.

    Returns
    -------
    VPolytope
        The body in R^(t^d - 1).

    Raises
    ------
    ValueError
        For arguments that are not as stated, and if the moments of all grid points are more than
        2^25 numbers.

    Examples
    --------
    >>> import geomdp as gd
    >>> body = gd.bodies.grid_moment_body([1.0, 1.0, 1.0], per_axis=3)
    >>> body
    VPolytope(3 points in R^2)
    >>> body.vertices.round(6).tolist()
    [[1.0, 1.0], [0.0, -1.0], [-1.0, 1.0]]
    """
    scales = finite_array(scales, "scales", np.ndim(scales))
    if scales.ndim == 0 or len(scales) < 2 or set(scales.shape) != {len(scales)}:
        raise ValueError(f"scales must have shape (t,) * d, t >= 2, got {scales.shape}")
    check_all_above_0(scales.ravel()[1:], "scales after the first")
    per_axis = whole(per_axis, "per_axis", minimum=2)
    size, dimension = len(scales), scales.ndim
    if scales.size * per_axis**dimension > MAX_ENTRIES:
        raise ValueError(
            f"per_axis^d times the number of moments must be at most {MAX_ENTRIES}, got "
            f"{per_axis}^{dimension} times {scales.size}"
        )
    angles = np.linspace(0, math.pi, per_axis)
    waves = np.cos(np.multiply.outer(angles, np.arange(size)))
    products = reduce(np.kron, [waves] * dimension)
    return VPolytope(products[:, 1:] / scales.ravel()[1:])
