"""Convex bodies, their methods (called verbs), and the derivation of verbs that a body lacks.

A body implements the verbs for which it has an efficient algorithm. `Body` derives the others. If
the table lists several sources, `Body` uses the first source that the body has. If the body has no
source, the verb raises `MissingOracle`:

================  =============================================================================
verb              derived from
================  =============================================================================
support           `extreme_point`: <u, x*(u)>
breadth           `support` at u and -u
contains          `gauge` <= 1, if 0 is in the relative interior; `project`: distance 0
gauge             `facets`
separate          `facets`; `project`: the halfspace at the nearest point
chord             `contains`: bisection up to the length 2 `radius`, to 1e-12 of this length
radius            `support` along the axes: half diagonal of a box centred at 0 (an upper bound)
half_diameter     `radius`, if symmetric; `vertex_list`; `breadth` along the axes (an upper bound)
gaussian_width    `width_rule`: the width of a simpler body
affine_hull       no other verb: the default is the whole space
centroid          0, if symmetric
cvxpy_constraints `vertex_list`: convex weights
================  =============================================================================

`difference`, `symmetric_hull`, `linear_image`, `gaussian_width`, `largest_gauge` and `gauge_bound`
are closed forms and return None if no closed form is known. The remaining verbs, such as `project`
and `volume`, are never derived.

Points and directions are the rows of float64 arrays (b, m). A verb with such an argument returns
numbers as an array (b,) and points as an array (b, m), one for each row. Only `separate` takes a
single point (m,).
"""

from __future__ import annotations

import abc
import functools
import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull, row_blocks
from geomdp._typing import BoolArray, FloatArray
from geomdp._validation import batch, finite_array, real_number, vector

#: Default tolerance of `contains`: for the gauge, or for the distance divided by the radius.
MEMBERSHIP_TOLERANCE = 1e-9
#: Bisection for an end of a chord stops when the end is known to within this share of an upper
#: bound on the chord's length.
BISECTION_TOLERANCE = 1e-12
#: `half_diameter_of` compares all pairs of points if the comparison takes at most this many
#: multiplications.
PAIRS_WORK = 10**8


class MissingOracle(TypeError):  # noqa: N818 (a name given by the design)
    """A body was asked for a verb that it does not implement and that cannot be derived.

    Examples
    --------
    >>> import geomdp as gd
    >>> try:
    ...     gd.bodies.LpBall(exponent=3, dimension=2).project([[1.0, 1.0]])
    ... except gd.MissingOracle as error:
    ...     print(error)
    LpBall has no project: it would need a closed form (see geomdp.project)
    """

    def __init__(self, body: object, verb: str, needed: str) -> None:
        super().__init__(f"{type(body).__name__} has no {verb}: it would need {needed}")


@dataclass(frozen=True)
class Halfspace:
    """The set {x : <normal, x> <= offset} in R^m.

    Parameters
    ----------
    normal : (m,) array
        Any vector but 0; its length is not normalised.
    offset : float
        Largest inner product of `normal` with points of the halfspace.

    Examples
    --------
    >>> import geomdp as gd
    >>> found = gd.bodies.Ball(2).separate([3.0, 4.0])
    >>> found.normal.round(6).tolist(), round(found.offset, 6)
    ([2.4, 3.2], 4.0)
    """

    normal: FloatArray
    offset: float


@dataclass(frozen=True)
class Facets:
    """Where rays from 0 through points leave a body K, with a supporting halfspace at each exit."""

    gauges: FloatArray
    normals: FloatArray


class _Cvxpy:
    """The package cvxpy, imported at its first use, because it is slow to import."""

    def __getattr__(self, name: str) -> Any:
        import cvxpy

        return getattr(cvxpy, name)


cp: Any = _Cvxpy()

#: A method of `Body`, such as `Body.chord`.
Verb = Callable[..., Any]

#: A function that maps directions (b, m) to values (b,) of a support function.
SupportFunction = Callable[[FloatArray], FloatArray]
#: Generous bound on the rounding error of a few float64 operations on numbers of modulus 1. It is
#: thousands of units in the last place (2e-16).
ROUNDING = 1e-12


def freeze(body: object, name: str, ndim: int) -> FloatArray:
    """Replace the field `name` of a dataclass by a read-only copy, checked to be finite."""
    array = finite_array(getattr(body, name), name, ndim).copy()
    array.setflags(write=False)
    object.__setattr__(body, name, array)
    return array


def check_all_above_0(values: FloatArray, name: str) -> None:
    if not values.size:
        raise ValueError(f"{name} must hold at least one number above 0, got none")
    if (values <= 0).any():
        first = int(np.argmax(values <= 0))
        raise ValueError(f"{name} must be above 0, got {values[first]} at index {first}")


def off_span(vectors: FloatArray, basis: FloatArray, scale: float = 0.0) -> BoolArray:
    """Whether each row of `vectors` is off the span of the orthonormal `basis` by 1e-9 of its norm
    and `ROUNDING` times `scale`, the size of the numbers it was computed from.
    """
    if basis.shape[0] == basis.shape[1]:
        return np.zeros(len(vectors), dtype=bool)
    residual = np.linalg.norm(vectors - (vectors @ basis) @ basis.T, axis=1)
    slack = np.maximum(RANK_TOLERANCE * np.linalg.norm(vectors, axis=1), ROUNDING * scale)
    return np.asarray(residual > slack)


def off_hull(points: FloatArray, hull: AffineHull, slack: float) -> BoolArray:
    """Whether each row of `points` is farther than `slack` from the affine subspace `hull`."""
    if hull.ambient == hull.dimension:
        return np.zeros(len(points), dtype=bool)
    return np.asarray(hull.residual(points) > slack)


def holds_origin(hull: AffineHull, scale: float) -> bool:
    """Whether the affine subspace `hull` contains 0, up to rounding relative to `scale`."""
    residual = float(hull.residual(np.zeros((1, hull.ambient)))[0])
    return residual <= RANK_TOLERANCE * scale


def facets_of_rows(points: FloatArray, rows: FloatArray, outside: BoolArray) -> Facets:
    """Facets at `points` of {x : rows @ x <= 1}, with the gauge inf where `outside`."""
    if len(rows) == 0:  # a single point
        rows = np.zeros((1, points.shape[1]))
    ratios = points @ rows.T
    gauges = np.where(outside, np.inf, np.maximum(ratios.max(axis=1), 0.0))
    return Facets(gauges, rows[ratios.argmax(axis=1)])


def ratio_test(
    room: FloatArray, slopes: FloatArray, outside: BoolArray
) -> tuple[FloatArray, FloatArray]:
    """Ends lo, hi (b,) of {t : t slopes <= room} for `room` >= 0 (b, F); both 0 if `outside`."""
    ends = []
    for way in (-slopes, slopes):
        times = np.divide(room, way, out=np.full(room.shape, np.inf), where=way > 0)
        ends.append(np.where(outside, 0.0, times.min(axis=1, initial=np.inf)))
    return -ends[0], ends[1]


# Projections on simplices, by sorting.


def nearest_in_corner(values: FloatArray, level: float) -> FloatArray:
    """The points of {x >= 0, sum x <= level} nearest to the rows of `values` (b, k)."""
    nearest = np.maximum(values, 0.0)
    outside = nearest.sum(axis=1) > level
    if outside.any():
        nearest[outside] = nearest_in_simplex(values[outside], level)
    return nearest


def nearest_in_simplex(values: FloatArray, level: float) -> FloatArray:
    """The points of {x >= 0, sum x = level} nearest to `values` (b, k), at O(k log k) a row."""
    ordered = -np.sort(-values, axis=1)
    counts = np.arange(1, values.shape[1] + 1)
    shifts = (np.cumsum(ordered, axis=1) - level) / counts
    # The largest value is kept, also if a tiny `level` is lost in rounding.
    kept = np.maximum((ordered > shifts).sum(axis=1), 1)
    tau = np.take_along_axis(shifts, kept[:, None] - 1, axis=1)
    return np.asarray(np.maximum(values - tau, 0.0))


def check_arguments(cls: type) -> None:
    """Wrap the methods that `cls` itself defines, so that a call checks its arguments first."""
    for name in _ARGUMENTS:
        if name in vars(cls):
            setattr(cls, name, _checked(vars(cls)[name], name))


def _checked(verb: Verb, name: str) -> Verb:
    signature = inspect.signature(verb)

    @functools.wraps(verb)
    def call(body: Any, *arguments: Any, **named: Any) -> Any:
        if named:
            # Put named arguments into the order of the parameters, so that they are checked too.
            arguments = signature.bind(body, *arguments, **named).args[1:]
        checks = zip(_ARGUMENTS[name], arguments, strict=False)
        checked = [_CHECKS[kind](value, body.dimension, kind) for kind, value in checks]
        if name in ("gauge", "facets") and not body._has_gauge:
            raise ValueError(f"{body!r} has no gauge, because 0 is not in its relative interior")
        if name == "chord":
            _check_rays(*checked)
        return verb(body, *checked, *arguments[len(checked) :])

    return call


def _tolerance(value: float, _: int, name: str) -> float:
    if not 0 <= real_number(value) < math.inf:  # also refuses NaN
        raise ValueError(f"{name} must be finite and at least 0, got {value!r}")
    return value


def _check_rays(points: FloatArray, directions: FloatArray) -> None:
    if points.shape != directions.shape:
        shapes = f"{points.shape} and {directions.shape}"
        raise ValueError(f"points and directions must have the same shape, got {shapes}")
    zero = ~directions.any(axis=1)
    if zero.any():
        raise ValueError(f"directions must not be 0, got 0 in row {int(np.argmax(zero))}")


#: For each method of `Body` whose arguments are checked, what they are.
_ARGUMENTS = {
    "support": ("directions",),
    "breadth": ("directions",),
    "extreme_point": ("directions",),
    "gauge": ("points",),
    "facets": ("points",),
    "contains": ("points", "tolerance"),
    "project": ("points",),
    "separate": ("point",),
    "chord": ("points", "directions"),
}
#: The check of each kind of argument.
_CHECKS: dict[str, Callable[[Any, int, str], Any]] = {
    "points": batch,
    "directions": batch,
    "point": vector,
    "tolerance": _tolerance,
}


class Body(abc.ABC):
    """A non-empty, closed, bounded convex set in R^m.

    Concrete bodies are frozen dataclasses that override the verbs for which they have an efficient
    algorithm; `implements` tells which. To modify a body, wrap it; do not inherit from a concrete
    body. A constructor raises ``ValueError`` for an argument of a wrong type, or outside the range
    that its description states. Arguments of verbs are checked too: points and directions must be
    finite and of the right shape. Directions of `chord` must not be 0. For `gauge` and `facets`, 0
    must be in the body, for most bodies in its relative interior.

    Examples
    --------
    >>> import geomdp as gd
    >>> K = gd.bodies.Box.centred([1.0, 2.0])
    >>> K.support([[1.0, 0.0], [1.0, 1.0]]).tolist()
    [1.0, 3.0]
    >>> K.contains([[0.5, 0.5], [1.5, 0.0]]).tolist()
    [True, False]
    >>> K.implements(gd.bodies.Body.volume)
    True
    """

    def __init_subclass__(cls) -> None:
        check_arguments(cls)
        # If a class has no `__repr__`, `dataclass` generates a `__repr__` that prints all arrays.
        if "__repr__" not in vars(cls):
            cls.__repr__ = Body.__repr__  # type: ignore[method-assign]

    def __repr__(self) -> str:
        words = f"{self._summary()} in R^{self.dimension}"
        return f"{type(self).__name__}({words.lstrip()})"

    def _summary(self) -> str:
        """Text that `repr` shows before the dimension: numbers and inner bodies, but no arrays."""
        return ""

    @property
    @abc.abstractmethod
    def dimension(self) -> int:
        """Dimension m of the surrounding space."""

    @property
    def effective_dimension(self) -> int:
        """Dimension of the affine hull."""
        return self.affine_hull().dimension if self.implements(Body.affine_hull) else self.dimension

    @property
    def symmetric(self) -> bool:
        """Whether the construction of the body K shows that K = -K."""
        return False

    def implements(self, verb: Verb) -> bool:
        """Whether the body has its own version of `verb`, a method of `Body`.

        Derived verbs do not count, except `support` from extreme points, `gauge` from facets, and
        `cvxpy_constraints` from listed vertices. `gauge` and `facets` do not count for a body
        without a gauge, for example because 0 is outside the body. Wrappers ask their inner bodies.
        """
        if verb in (Body.gauge, Body.facets) and not self._has_gauge:
            return False
        if getattr(type(self), verb.__name__) is not verb:
            return True
        sources: dict[Verb, Verb] = {
            Body.support: Body.extreme_point,
            Body.gauge: Body.facets,
            Body.cvxpy_constraints: Body.vertex_list,
        }
        return verb in sources and self.implements(sources[verb])

    @property
    def _has_gauge(self) -> bool:
        """Whether 0 is in the body, for most bodies in its relative interior."""
        return True

    @property
    def has_membership(self) -> bool:
        """Whether `contains` is the body's own or can be derived."""
        return any(self.implements(v) for v in (Body.contains, Body.gauge, Body.project))

    def support(self, directions: FloatArray) -> FloatArray:
        """Support function h(u) = max over x in K of <u, x>, for each row u of `directions`."""
        if not self.implements(Body.extreme_point):
            raise MissingOracle(self, "support", "extreme_point")
        return np.asarray(np.einsum("bm,bm->b", directions, self.extreme_point(directions)))

    def breadth(self, directions: FloatArray) -> FloatArray:
        """h(u) + h(-u) = max - min over x in K of <u, x>, for each row u of `directions`."""
        above = self.support(directions)
        return above + (above if self.symmetric else self.support(-directions))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        """A point x of K that maximises <u, x>, for each row u of `directions`."""
        del directions
        raise MissingOracle(self, "extreme_point", "a method of its own")

    def gauge(self, points: FloatArray) -> FloatArray:
        """Gauge ||x||_K = min{t >= 0 : x in tK} of each row x of `points`; inf if no t exists."""
        if self.implements(Body.facets):
            return self.facets(points).gauges
        raise MissingOracle(self, "gauge", "facets")

    def contains(self, points: FloatArray, tolerance: float = MEMBERSHIP_TOLERANCE) -> BoolArray:
        """Whether each row of `points` is in K, up to `tolerance` relative to the size of K."""
        if self.implements(Body.gauge):
            return np.asarray(self.gauge(points) <= 1 + tolerance)
        if self.implements(Body.project):
            distance = np.linalg.norm(points - self.project(points), axis=1)
            return np.asarray(distance <= tolerance * self.radius())
        raise MissingOracle(self, "contains", "gauge or project")

    def separate(self, point: FloatArray) -> Halfspace | None:
        """A halfspace that contains K but not `point`; None if `point` is in K."""
        slack = MEMBERSHIP_TOLERANCE * self.radius()
        if self.implements(Body.facets):
            basis = self.affine_hull().basis
            residual = point - basis @ (basis.T @ point)
            if np.linalg.norm(residual) > slack:  # the point is outside the span
                return Halfspace(residual, 0.0)
            found = self.facets((point - residual)[None])
            inside = found.gauges[0] <= 1 + MEMBERSHIP_TOLERANCE
            return None if inside else Halfspace(found.normals[0], 1.0)
        if self.implements(Body.project):
            nearest = self.project(point[None])[0]
            normal = point - nearest
            inside = np.linalg.norm(normal) <= slack
            return None if inside else Halfspace(normal, float(normal @ nearest))
        raise MissingOracle(self, "separate", "facets or project")

    def facets(self, points: FloatArray) -> Facets:
        """Where the ray from 0 through each row of `points` leaves K; see `Facets`."""
        del points
        raise MissingOracle(self, "facets", "a method of its own")

    def chord(self, points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Ends (lo, hi) of {t : x + t u in K} for x in K, u != 0; 0 if u leaves the affine hull."""
        if not self.has_membership:
            raise MissingOracle(self, "chord", "contains, gauge or project")
        reach = 2 * self.radius() / np.linalg.norm(directions, axis=1)
        ends = [self._ends(points, sign * directions, reach) for sign in (-1.0, 1.0)]
        return -ends[0], ends[1]

    def _ends(self, points: FloatArray, directions: FloatArray, reach: FloatArray) -> FloatArray:
        low, high = np.zeros(len(points)), reach
        while ((high - low) > BISECTION_TOLERANCE * reach).any():
            middle = (low + high) / 2
            inside = self.contains(points + middle[:, None] * directions, tolerance=0.0)
            low, high = np.where(inside, middle, low), np.where(inside, high, middle)
        return low

    def project(self, points: FloatArray) -> FloatArray:
        """The point of K that is nearest to each row of `points` in Euclidean norm."""
        del points
        raise MissingOracle(self, "project", "a closed form (see geomdp.project)")

    def radius(self) -> float:
        """An upper bound on max over x in K of ||x||_2; the maximum itself if it is cheap."""
        return self._bounding_radius

    @cached_property
    def _bounding_radius(self) -> float:
        """Half the diagonal of the smallest box around K that is centred at 0."""
        axes = np.eye(self.dimension)
        corner = self.support(axes)
        opposite = corner if self.symmetric else self.support(-axes)
        return float(np.linalg.norm(np.maximum(corner, opposite)))

    def half_diameter(self) -> float:
        """An upper bound on max over x, y in K of ||x - y||_2 / 2; the maximum if it is cheap."""
        if self.symmetric:
            return self.radius()
        if self.implements(Body.vertex_list):
            return half_diameter_of(self.vertex_list())
        m = self.dimension
        axes = (np.eye(rows.stop - rows.start, m, k=rows.start) for rows in row_blocks(m, m))
        squares = sum(float((self.breadth(part) ** 2).sum()) for part in axes)
        return min(self.radius(), math.sqrt(squares) / 2)

    def affine_hull(self) -> AffineHull:
        """Affine hull of K; by default the whole space."""
        return AffineHull.whole_space(self.dimension)

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Independent points (n, m), exactly uniform on K (within its affine hull)."""
        del n, rng
        raise MissingOracle(self, "sample_uniform", "an exact sampler (see geomdp.sample_uniform)")

    def centroid(self) -> FloatArray:
        """E[x] (m,) for x uniform on K (within its affine hull), in closed form."""
        if not self.symmetric:
            raise MissingOracle(self, "centroid", "a closed form")
        return np.zeros(self.dimension)

    def second_moment(self) -> FloatArray:
        """E[x x^T] (m, m) for x uniform on K (within its affine hull), in closed form."""
        raise MissingOracle(self, "second_moment", "a closed form")

    def volume(self) -> float:
        """Volume of K within its affine hull, in closed form."""
        raise MissingOracle(self, "volume", "a closed form (see geomdp.volume)")

    def vertex_list(self) -> FloatArray:
        """Points (N, m) with convex hull K, if K stores or can list such points."""
        raise MissingOracle(self, "vertex_list", "a list of points whose hull it is")

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        """CVXPY constraints that hold iff `variable`, an expression of shape (m,), lies in K."""
        points = self.vertex_list()
        weights = cp.Variable(len(points), nonneg=True)
        return [variable == points.T @ weights, cp.sum(weights) == 1]

    def difference(self) -> Body | None:
        """K - K in closed form; None if none is known (see `bodies.difference_body`)."""
        return None

    def symmetric_hull(self) -> Body | None:
        """Hull of K and -K in closed form; None if none is known (see `bodies.symmetric_hull`)."""
        return None

    def linear_image(self, matrix: FloatArray) -> Body | None:
        """{matrix @ x : x in K} in closed form; None if none is known."""
        del matrix
        return None

    def gaussian_width(self) -> float | None:
        """E max over x in K of <g, x> for g ~ N(0, I_m); None if there is no closed form."""
        factor, simpler = self.width_rule()
        width = None if simpler is self else simpler.gaussian_width()
        return None if width is None else factor * width

    def width_rule(self) -> tuple[float, Body]:
        """(c, L) with Gaussian width w(K) = c w(L) for a simpler L; (1, K) if none is known."""
        return 1.0, self

    def largest_gauge(self, support: SupportFunction) -> float | None:
        """Largest gauge of K on the symmetric set in its span with the support function `support`.

        None unless K is bounded by listed hyperplanes, or a product or an image of such bodies.
        """
        del support
        return None

    def gauge_bound(self, l1: float, l2: float) -> float | None:
        """Bound on ||x||_K for x in span K, ||x||_1 <= l1 and ||x||_2 <= l2; None if unknown."""
        del l1, l2
        return None


check_arguments(Body)  # `__init_subclass__` makes this call for subclasses


def half_diameter_of(points: FloatArray) -> float:
    """Half the largest distance between two points, or an upper bound for too many pairs."""
    centred = points - points.mean(axis=0)
    squares = np.einsum("nm,nm->n", centred, centred)
    if len(points) * points.size > PAIRS_WORK:
        return math.sqrt(squares.max())
    largest = (squares[:, None] + squares - 2 * centred @ centred.T).max()
    return math.sqrt(max(largest, 0.0)) / 2


def checked_body(body: object) -> Body:
    """Return `body`; ``ValueError`` if it is not a `Body`."""
    if not isinstance(body, Body):
        raise ValueError(f"body must be a Body, got {type(body).__name__}")
    return body
