"""The setting of a comparison of mechanisms: the question, and the limit on costs."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

from geomdp._validation import positive
from geomdp.bodies import NuclearBall, Scaled, SpectraplexDifference
from geomdp.bodies.base import Body
from geomdp.bodies.conic.elliptope import MappedElliptope
from geomdp.bodies.sensitivity import WorkloadPolytope
from geomdp.mechanisms.additive_noise.cone import MAX_TRIPLES, MAX_WORK
from geomdp.mechanisms.projected import MAX_DRAWS, MAX_NUMBERS, MIN_DRAWS, reachable_body
from geomdp.noise import GaussianNoise, KNormNoise
from geomdp.noise.base import Noise
from geomdp.noise.mapped import MappedNoise
from geomdp.privacy import Adjacency, Privacy, PureDP
from geomdp.privacy.definitions import pure_implying
from geomdp.workloads import Marginals, MarginalTables, Parities, Workload
from geomdp.workloads.base import MAX_SCORES
from geomdp.workloads.tables import TableQueries

#: Number of operations of a fast transform that one core can do in a second.
OPERATIONS_A_SECOND = 1 << 30


class InapplicableError(ValueError):
    """A candidate does not apply to the setting, or cannot be the best. The message says why."""


class UntriedError(InapplicableError):
    """Set-up or use of a candidate would cost too much. The candidate might still be the best."""


@dataclass(frozen=True)
class Budget:
    """The limit on the bytes and the operations of each set-up, prediction or projection.

    Costs are formulas, so the speed of a machine does not change the advice. The unit of work is an
    operation of a fast transform, 10^9 to 2 * 10^9 per second; one of a matrix product counts 1/8.
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
#: Number of random directions over which `gaussian_width` averages.
WIDTH_DIRECTIONS = 4096
#: Operations of one support value of the elliptope (the set of correlation matrices), divided by
#: the cube of the order of the matrices. A value takes 0.1 s at order 101.
ELLIPTOPE_OPERATIONS = 60
#: Bytes of an entry of a sparse matrix that is filled from lists.
LISTED_ENTRY = 64
#: Residuals are differences of counts along columns of a table. The set-up of Gaussian noise on
#: residuals takes `RESIDUAL_BYTES` per cell of a table and per set of columns within a table,
#: `CELL_OPERATIONS` per cell and `SUBSET_OPERATIONS` per set. The set-up takes a second for all
#: 3-way tables of 100 binary columns: 1.3 million cells, and the same number of sets.
RESIDUAL_BYTES, CELL_OPERATIONS, SUBSET_OPERATIONS = 48, 40, 300
#: Number of draws from which the second moment of the body of `TightCone` is simulated.
MOMENT_DRAWS = 1024
#: Operations of a draw from the body of `TightCone`, divided by L^2 P, for L levels of all columns
#: together and P = L minus the number of columns: 1.5 ms for 10 columns with 40 levels in all.
TRY_OPERATIONS = 34
#: Work of the set-ups of all purely private noises for tables, divided by `axes_work`. By default
#: they are tried beside Gaussian noise for all pair tables of up to 28 binary columns, where they
#: take 1.2 s. They would take 2 s for 40 columns and 13 s for 100, where Gaussian noise is better.
PURE_TABLES_SHARE = 8.0
#: Operations to refine an outer body of slabs (`SlabBody`), divided by N r^2 for N elements and a
#: hull of dimension r. Measured: 7 s for N = 1024 and r = 55, and 22 s for N = 2000 and r = 64.
SLAB_OPERATIONS = 2500
#: Cost of a projection on the convex hull of listed answers: the number of products with the matrix
#: of all answers, and the number of exchanges per dimension. An exchange adds an answer to the
#: current convex combination or removes one.
LISTED_PRODUCTS, EXCHANGES = 15, 3
#: A projection by an oracle of extreme answers is slower for small noise. If the length of the
#: noise is the share t of the diameter of the answers, below this constant, the cost is taken as
#: proportional to 1 / t. For 45 pair tables of 10 columns with 241,920 kinds of records, it took 2
#: s for t = 0.06, 5 s for t = 0.03 and t = 0.01, and 20 s for t = 0.006.
SMALL_NOISE = 0.05


def breadth_work(workload: Workload) -> float:
    """Operations to compute h(u) + h(-u) for the body of the answers, with support function h.

    2 N log2 N if a transform scores all N elements, N m / 8 if answers are listed, 0 for closed
    forms and for universes that are infinite or above `MAX_SCORES` (an error comes before any work
    there).
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


def pure_tables_work(workload: Workload) -> float:
    """Work of the set-ups of all purely private noises for tables; 0 for other workloads."""
    if isinstance(workload, TableQueries | Marginals | Parities):
        return PURE_TABLES_SHARE * axes_work(workload)
    return 0.0


def slabs_work(workload: Workload) -> float:
    """Operations to refine an outer slab body of K-norm noise; inf for an infinite universe."""
    size = math.inf if workload.universe.size is None else float(workload.universe.size)
    return SLAB_OPERATIONS * size * workload.affine_hull().dimension ** 2


def support_draws(noise: Noise) -> int:
    """Number of draws of noise. A mean over these draws bounds the error of a projection."""
    if isinstance(noise, GaussianNoise):
        return WIDTH_DIRECTIONS
    return min(MAX_DRAWS, max(MIN_DRAWS, MAX_NUMBERS // noise.dimension))


def residual_costs(workload: TableQueries) -> dict[str, float]:
    """Memory and work of Gaussian noise on residuals of tables, and of answers from them."""
    cells, subsets = workload.n_queries, sum(2 ** len(table) for table in workload.tables)
    return {
        "memory": float(RESIDUAL_BYTES * (cells + subsets)),
        "work": float(CELL_OPERATIONS * cells + SUBSET_OPERATIONS * subsets),
    }


def table_levels(workload: Workload) -> tuple[int, ...] | None:
    """Levels of each column of a workload linear in tables of two columns; None if not applicable.

    For `Parities`, the columns are the d - 1 products of the first sign and another sign.
    """
    match workload:
        case MarginalTables(k=1 | 2):
            varying = tuple(count for count in workload.levels if count > 1)
            return varying or None
        case Marginals(k=1 | 2):
            return (2,) * workload.d
        case Parities(k=2):
            return (2,) * (workload.d - 1)
        case _:
            return None


def contrast_memory(levels: tuple[int, ...]) -> float:
    """Bytes of a basis of the contrasts of columns, and of their map to pair tables."""
    own = [count - 1 for count in levels]
    contrasts = sum(own) + (sum(own) ** 2 - sum(q * q for q in own)) // 2
    # A cell of a table depends on all contrasts of the table.
    entries = sum(math.prod(table) ** 2 for table in itertools.combinations(levels, 2))
    return float(8 * contrasts**2 + LISTED_ENTRY * entries)


def tight_draws_work(levels: tuple[int, ...]) -> float:
    """Operations of the draws for the moment of the body of `TightCone`; 0 if nothing cuts it."""
    work = sum(levels) ** 2 * (sum(levels) - len(levels))
    # An event says that a column has a certain level. The two events of a column with two levels
    # are complements, so only one event is counted.
    events = [count if count > 2 else 1 for count in levels]
    triples = sum(a * b * c for a, b, c in itertools.combinations(events, 3))
    is_cut = work <= MAX_WORK and triples <= MAX_TRIPLES
    return float(MOMENT_DRAWS * TRY_OPERATIONS * work) if is_cut else 0.0


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
