"""The setting of a comparison of mechanisms: the question, costs, and what applies to it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from geomdp._validation import positive
from geomdp.bodies import NuclearBall, Scaled, SpectraplexDifference, neighbour_body
from geomdp.bodies.base import Body
from geomdp.bodies.relaxations import MappedElliptope
from geomdp.bodies.sensitivity import WorkloadPolytope
from geomdp.mechanisms import (
    AdditiveMechanism,
    Geometric,
    KNorm,
    Laplace,
    LatticeBox,
    Mechanism,
    Recursive,
)
from geomdp.mechanisms.additive_noise.cone import MAX_TRIPLES, MAX_WORK, cone_lift
from geomdp.mechanisms.additive_noise.few_queries import InexactSumsError
from geomdp.mechanisms.additive_noise.sums import MAX_ANSWERS, Change
from geomdp.mechanisms.projected import reachable_body
from geomdp.noise import KNormNoise
from geomdp.noise.base import Noise
from geomdp.noise.few_queries import MOST_COORDINATES
from geomdp.noise.knorm import MappedNoise
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Privacy, PureDP
from geomdp.privacy.definitions import pure_implying
from geomdp.workloads import Histogram, Marginals, MarginalTables, Parities, Workload
from geomdp.workloads.base import MAX_SCORES
from geomdp.workloads.structure import pair_levels
from geomdp.workloads.tables import ProductQueries, TableQueries, cells_of

Made = TypeVar("Made", bound=Mechanism)

#: Number of operations of a fast transform that one core can do in a second.
OPERATIONS_A_SECOND = 1 << 30


class InapplicableError(ValueError):
    """A candidate does not apply to the setting, or cannot be the best. The message says why."""


class UntriedError(InapplicableError):
    """Set-up or use of a candidate would cost too much. The candidate might still be the best."""


@dataclass(frozen=True)
class Budget:
    """The limit on the bytes and the operations of each set-up, prediction or projection.

    Costs are formulas, so the speed of a machine does not change the advice. Work is counted in
    operations of a fast transform, of which a core does 10^9 to 2 * 10^9 per second.
    """

    memory: float
    work: float

    @classmethod
    def of_seconds(cls, effort: float) -> Budget:
        """One GiB of memory, and the operations that one core does in about `effort` seconds."""
        return cls(memory=2.0**30, work=positive(effort, "effort") * OPERATIONS_A_SECOND)


#: Default limit on the predicted work for one candidate, in seconds.
DEFAULT_EFFORT = 2.0
DEFAULT_BUDGET = Budget.of_seconds(DEFAULT_EFFORT)
#: Budget for `sample_complexity_bracket` and for error curves. Their users can wait longer.
THOROUGH = Budget.of_seconds(4 * DEFAULT_EFFORT)
#: Budget for a mechanism that was asked for by name.
UNLIMITED = Budget(memory=math.inf, work=math.inf)


@dataclass(frozen=True)
class Setting:
    """The public question that the advisor answers, and the `least` prediction so far.

    Under add/remove, `n` is the declared public number that sums are divided by.
    """

    workload: Workload
    n: int
    privacy: Privacy
    adjacency: Adjacency
    exact_only: bool
    budget: Budget = DEFAULT_BUDGET
    least: float = math.inf

    @property
    def pure(self) -> PureDP:
        """The weakest pure privacy that implies the guarantee by the rules of `pure_implying`."""
        return pure_implying(self.privacy)

    def made(self, kind: Callable[..., Made], **options: object) -> Made:
        """The mechanism of the class `kind` for this setting."""
        try:
            return kind(
                self.workload, n=self.n, privacy=self.privacy, adjacency=self.adjacency, **options
            )
        except InexactSumsError as reason:  # noise on whole numbers needs exact sums
            raise InapplicableError(str(reason)) from None

    def check_public_count(self) -> None:
        """Raise `InapplicableError` if a candidate gains only where the number of records is n."""
        if self.adjacency is not Adjacency.REPLACE_ONE:
            raise InapplicableError(
                "under add/remove the number of records is private, and no bound on its error for "
                "every number of records is below that of the noise alone"
            )

    def check_floor(self, what: str, floor: float) -> None:
        """Raise `InapplicableError` if `floor`, a lower bound per query, is not below `least`."""
        if floor >= self.least:
            raise InapplicableError(
                f"it cannot be the best: its {what} is {floor:.4g} or more per query, and the "
                f"predicted error of another mechanism is {self.least:.4g}"
            )

    def check_cost(self, what: str, *, memory: float = 0.0, work: float = 0.0) -> None:
        """Raise `UntriedError` if `what` needs more memory or work than the budget allows."""
        if memory > self.budget.memory:
            raise UntriedError(
                f"its {what} would take too much memory: {memory / 2**30:.3g} GiB, the limit is "
                f"{self.budget.memory / 2**30:.3g} GiB"
            )
        if work > self.budget.work:
            raise UntriedError(
                f"its {what} would take too long: {work:.2g} operations, the limit is "
                f"{self.budget.work:.2g}"
            )


# The cost of set-ups, predictions and draws, by formulas from the sizes of a workload or body

#: Number of operations of a matrix product that take as long as one operation of a fast transform.
PRODUCT_SPEED = 8
#: Operations of one support value of the elliptope (the set of correlation matrices), divided by
#: the cube of the order of the matrices. A value takes 0.1 s at order 101.
ELLIPTOPE_OPERATIONS = 60
#: Cost of a projection on the convex hull of listed answers: the number of products with the matrix
#: of all answers, and the number of exchanges per dimension. An exchange adds an answer to the
#: current convex combination or removes one.
LISTED_PRODUCTS, EXCHANGES = 15, 3
#: A projection by an oracle of extreme answers is slower for small noise: if the noise has the
#: share t of the diameter of the answers, below this constant, the cost is taken as proportional to
#: 1 / t. For 45 tables with 241,920 kinds of records, it took 2 s for t = 0.06 and 20 s for t =
#: 0.006.
SMALL_NOISE = 0.05


def breadth_work(workload: Workload) -> float:
    """Operations to compute h(u) + h(-u) for the body of the answers, with support function h.

    They are 0 for closed forms, and if the universe is infinite or above `MAX_SCORES`, where an
    error comes before any work.
    """
    size, m = workload.universe.size, workload.n_queries
    if size is None:
        return 0.0
    body = reachable_body(workload)
    if isinstance(body, MappedElliptope) and isinstance(workload, MarginalTables):
        return 2.0 * ELLIPTOPE_OPERATIONS * (len(workload.levels) + 1) ** 3
    if size > MAX_SCORES:
        return 0.0
    if isinstance(body, WorkloadPolytope):
        return 2.0 * size * max(1.0, math.log2(size))
    return size * m / PRODUCT_SPEED if body.implements(Body.vertex_list) else 0.0


def projection_work(workload: Workload, spread: float) -> float:
    """Operations of one projection; `spread` is the root mean squared noise over the diameter."""
    body = reachable_body(workload)
    if body.implements(Body.project):
        order = len(workload.levels) + 1 if isinstance(workload, MarginalTables) else 1
        relaxed = isinstance(body, MappedElliptope)
        # A projection on a mapped elliptope costs about ten support values.
        return 10.0 * ELLIPTOPE_OPERATIONS * order**3 if relaxed else 0.0
    m, r = workload.n_queries, workload.affine_hull().dimension
    if body.implements(Body.vertex_list):
        products = LISTED_PRODUCTS * breadth_work(workload)
        return products + EXCHANGES * 2.0 * m * r**2 / PRODUCT_SPEED
    calls = breadth_work(workload) / 2 * r  # of the oracle, each at half the cost of a breadth
    exchanges = 2.0 * m * r**2  # r of them, of 2 m r operations each
    return (calls + exchanges) * max(1.0, SMALL_NOISE / spread)


def axes_work(workload: Workload) -> float:
    """m r^2, the operations to find r axes in R^m; r is the dimension of the hull of all Q(x)."""
    return float(workload.n_queries) * workload.affine_hull().dimension ** 2


#: Seconds for a draw of eigenvalues by coupling from the past (an exact sampler), divided by the
#: cube of the order of the matrix. Measured: 3 ms at order 10, 0.13 s at 31, 2.9 s at 101.
COUPLING_SECONDS = 3e-6


def draw_seconds(noise: Noise) -> float:
    """Approximate seconds that coupling from the past takes per draw; 0 for all other noise."""
    if isinstance(noise, MappedNoise):
        return sum(draw_seconds(part.noise) for part in noise.parts)
    return COUPLING_SECONDS * _order(noise.body) ** 3 if isinstance(noise, KNormNoise) else 0.0


def _order(body: Body) -> int:
    """Order d of the matrices of a body sampled by coupling from the past; 0 for other bodies."""
    if isinstance(body, Scaled):
        return _order(body.body)
    return body.d if isinstance(body, SpectraplexDifference | NuclearBall) else 0


# When candidates apply, and when they differ from others

#: An outer slab body (an intersection of slabs around a body) is refined up to this dimension of
#: the answers' hull, and this product of the dimension and the size of the universe. Measured: 7 s
#: for 1024 elements in dimension 55, and 60 s for 1600 in dimension 132.
MAX_REFINED_DIMENSION, MAX_REFINED = 100, 150_000
#: Largest dimension in which the best ellipsoid is computed numerically. Measured: 3 s in dimension
#: 200 (random signs on 1000 elements), 9 s in dimension 255 (prefix sums).
MAX_ELLIPSOID_DIMENSION = 200
#: Operations of the set-ups of a ball or an ellipsoid, of the bodies of `knorm_exact`, and of the
#: levels of `recursive`, divided by `axes_work`. For all pair tables of 40 binary columns,
#: `axes_work` is 2 * 10^9, and the three set-ups took 1.4 s, 2.8 s and 7 s.
BALL_SHARE, BODIES_SHARE, LEVELS_SHARE = 0.8, 1.6, 4.0

#: Geometric noise is compared only if the error of Laplace noise is larger by at least this share.
SAME_ERROR = 1e-4


def requires(holds: Callable[[Workload], bool], why: str) -> Callable[[Setting], None]:
    """A check that raises `InapplicableError` unless the workload `holds`."""

    def check(setting: Setting) -> None:
        if not holds(setting.workload):
            raise InapplicableError(why)

    return check


check_whole = requires(
    lambda workload: workload.whole_answers, "the answers are not known to be whole numbers"
)


def geometric_differs(setting: Setting) -> None:
    check_whole(setting)
    if isinstance(setting.privacy, ApproxDP):
        setting = replace(setting, privacy=setting.pure)
    least = setting.made(Geometric).predicted_rmse.value
    if setting.made(Laplace).predicted_rmse.value < least * (1 + SAME_ERROR):
        raise InapplicableError("its error is not 0.01% below that of Laplace")


def is_rho_of_line(setting: Setting) -> bool:
    """Whether zCDP is asked for cells on a line, where the noise of a ball is Laplace noise."""
    workload, small = setting.workload, setting.workload.n_queries <= MOST_COORDINATES
    cells = small and isinstance(workload, TableQueries | Histogram)
    return cells and isinstance(setting.privacy, ZCDP) and workload.affine_hull().dimension == 1


def check_lattice_box(setting: Setting) -> None:
    if setting.workload.n_queries > MOST_COORDINATES:
        raise InapplicableError(f"it is made for at most {MOST_COORDINATES} queries")
    check_whole(setting)
    if Change(setting.workload, setting.adjacency).lattice is None:
        raise InapplicableError(
            f"it must list all answers, but there are more than {MAX_ANSWERS}, or one is above 2^52"
        )


def lattice_box_differs(setting: Setting) -> None:
    check_lattice_box(setting)
    noise = replace(setting, privacy=setting.pure).made(LatticeBox).noise
    if noise.dimension == 1 and noise.counts[0] == 1:
        raise InapplicableError(
            "one record changes the query by at most one unit, so it is Geometric"
        )


#: Costs of Gaussian noise on residuals, differences of counts along columns of a table: bytes per
#: cell of a table and per set of columns within a table, and operations per cell and per set. The
#: set-up takes a second for all 3-way tables of 100 binary columns, with 1.3 million cells.
RESIDUAL_BYTES, CELL_OPERATIONS, SUBSET_OPERATIONS = 48, 40, 300


def check_residual_gaussian(setting: Setting) -> None:
    workload = setting.workload
    if not isinstance(workload, TableQueries | ProductQueries):
        raise InapplicableError("the queries are not those of tables of columns")
    cells = workload.n_queries
    subsets = sum(2 ** len(table) for table in cells_of(workload).tables)
    work = CELL_OPERATIONS * cells + SUBSET_OPERATIONS * subsets
    setting.check_cost("set-up", memory=float(RESIDUAL_BYTES * (cells + subsets)), work=float(work))


#: Number of draws from which the second moment of the body of `TightCone` is simulated.
MOMENT_DRAWS = 1024
#: Operations of a draw from the body of `TightCone`, divided by L^2 P, for L levels of all columns
#: together and P = L minus the number of columns: 1.5 ms for 10 columns with 40 levels in all.
TRY_OPERATIONS = 34
#: Bytes of an entry of a sparse matrix that is filled from lists.
LISTED_ENTRY = 64


def check_cone(setting: Setting) -> None:
    levels = pair_levels(setting.workload)
    if levels is not None and max(levels) > 2:
        # Only tables with a column of more than two levels (values) need a moment body. The body of
        # all other tables is an elliptope (a set of correlation matrices).
        _check_moment_body(setting, levels)
    if cone_lift(setting.workload) is None:
        raise InapplicableError("no body with an exact sampler is known to contain the answers")


def check_tight_cone(setting: Setting) -> None:
    levels = pair_levels(setting.workload)
    if levels is None:
        raise InapplicableError("the answers are not linear in tables of two columns")
    _check_moment_body(setting, levels)
    work = sum(levels) ** 2 * (sum(levels) - len(levels))
    # An event says that a column has a certain level. The two events of a column with two levels
    # are complements, so only one event is counted.
    events = [count if count > 2 else 1 for count in levels]
    triples = sum(a * b * c for a, b, c in itertools.combinations(events, 3))
    if work <= MAX_WORK and triples <= MAX_TRIPLES:  # else nothing cuts the body
        setting.check_cost("second moment", work=float(MOMENT_DRAWS * TRY_OPERATIONS * work))


def _check_moment_body(setting: Setting, levels: tuple[int, ...]) -> None:
    """Check the memory for a basis of the contrasts of columns, and their map to pair tables."""
    own = [count - 1 for count in levels]
    contrasts = sum(own) + (sum(own) ** 2 - sum(q * q for q in own)) // 2
    # A cell of a table depends on all contrasts of the table.
    entries = sum(math.prod(table) ** 2 for table in itertools.combinations(levels, 2))
    setting.check_cost("moment body", memory=float(8 * contrasts**2 + LISTED_ENTRY * entries))


def knorm_exact(setting: Setting) -> AdditiveMechanism:
    """K-norm noise of the best body with an exact sampler."""
    setting.check_cost("set-up", work=BODIES_SHARE * axes_work(setting.workload))
    return replace(setting, privacy=setting.pure).made(KNorm, exact=True)


def check_knorm(setting: Setting) -> None:
    if neighbour_body(setting.workload, setting.adjacency).implements(Body.sample_uniform):
        return
    # Take the dimension from the workload, which often knows it in closed form. Computing the
    # dimension from the points of the body would take seconds.
    size, dimension = setting.workload.universe.size, setting.workload.affine_hull().dimension
    large = size is None or size * dimension > MAX_REFINED
    if large or dimension > MAX_REFINED_DIMENSION:
        raise UntriedError(
            f"its outer slab body would take too long to refine: the universe has "
            f"{size or 'infinitely many'} elements and the answers have dimension {dimension}; "
            f"the limit is {MAX_REFINED} for the product and {MAX_REFINED_DIMENSION} for the "
            "dimension"
        )


#: Operations to refine an outer body of slabs (`SlabBody`), divided by N r^2 for N elements and a
#: hull of dimension r. Measured: 7 s for N = 1024 and r = 55, and 22 s for N = 2000 and r = 64.
SLAB_OPERATIONS = 2500


def knorm_differs(setting: Setting) -> None:
    if setting.exact_only:
        raise InapplicableError(
            "if its sampler is exact, KNorm(exact=True) is no worse; if not, exact_only excludes it"
        )
    if neighbour_body(setting.workload, setting.adjacency).implements(Body.sample_uniform):
        raise InapplicableError("its body has an exact sampler, so KNorm(exact=True) is no worse")
    if not isinstance(setting.privacy, PureDP):
        size = setting.workload.universe.size
        elements = math.inf if size is None else float(size)
        work = SLAB_OPERATIONS * elements * setting.workload.affine_hull().dimension ** 2
        setting.check_cost("outer slab body", work=work)


def check_ellipsoid(setting: Setting) -> None:
    dimension = setting.workload.affine_hull().dimension
    # For tables, marginals and parities, symmetry gives the best ellipsoid in closed form.
    symmetric = isinstance(setting.workload, MarginalTables | Marginals | Parities)
    if dimension > MAX_ELLIPSOID_DIMENSION and not symmetric:
        raise UntriedError(
            "the best ellipsoid would take too long to find: the answers have dimension "
            f"{dimension}, and the limit is {MAX_ELLIPSOID_DIMENSION}"
        )


def recursive(setting: Setting) -> Mechanism:
    """Hardt-Talwar noise of the best body with an exact sampler, in two or more levels."""
    mechanism = setting.made(Recursive)
    if len(mechanism.noise.levels) == 1:
        raise InapplicableError(
            "its recursion would have only one level, so it is KNorm(exact=True)"
        )
    return mechanism


def pure_matrix_differs(setting: Setting) -> None:
    if isinstance(setting.privacy, PureDP):
        raise InapplicableError("for pure privacy, it is the same as Matrix")
