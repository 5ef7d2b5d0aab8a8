"""What the advisor is asked: the setting, what it may cost to compare, and targets of accuracy."""

from __future__ import annotations

import abc
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, TypeVar

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import is_whole, positive, whole
from geomdp.bodies import NuclearBall, Scaled, SpectraplexDifference
from geomdp.bodies.base import Body
from geomdp.bodies.relaxations import MappedElliptope
from geomdp.bodies.sensitivity import WorkloadPolytope
from geomdp.mechanisms import AdditiveMechanism, Mechanism
from geomdp.mechanisms.additive_noise.base import InexactSumsError, additive_within
from geomdp.mechanisms.projected import reachable_body
from geomdp.noise import KNormNoise, half_widths
from geomdp.noise.base import Noise
from geomdp.noise.knorm import MappedNoise
from geomdp.noise.tails import largest_half_width
from geomdp.privacy import Adjacency, Privacy, PureDP
from geomdp.privacy.definitions import pure_implying
from geomdp.workloads import MarginalTables, Workload
from geomdp.workloads.base import MAX_SCORES
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
    """The limit on the bytes and the operations (of a fast transform) of each set-up, prediction or
    projection. Costs are formulas, so the speed of a machine does not change the advice.
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
    """The public question that the advisor answers, and the `least` prediction so far."""

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
#: Operations of one support value of the elliptope, divided by the cube of the order of its
#: matrices.
ELLIPTOPE_OPERATIONS = 60
#: Cost of a projection on the convex hull of listed answers: the number of products with the matrix
#: of all answers, and the number of exchanges per dimension, of an answer in a convex combination.
LISTED_PRODUCTS, EXCHANGES = 15, 3
#: A projection by an oracle of extreme answers takes a time proportional to 1 / t if the noise is a
#: share t of the diameter of the answers below this constant.
SMALL_NOISE = 0.05


def breadth_work(workload: Workload) -> float:
    """Operations to compute h(u) + h(-u) for the body of the answers, with support function h; 0
    for closed forms, and if the universe is infinite or above `MAX_SCORES`, where an error comes.
    """
    size = workload.universe.size
    if size is None:
        return 0.0
    body = reachable_body(workload)
    if isinstance(body, MappedElliptope) and isinstance(workload, MarginalTables):
        return 2.0 * ELLIPTOPE_OPERATIONS * (len(workload.levels) + 1) ** 3
    if size > MAX_SCORES:
        return 0.0
    if isinstance(body, WorkloadPolytope):
        return 2.0 * size * max(1.0, math.log2(size))
    listed = body.implements(Body.vertex_list)
    return size * workload.n_queries / PRODUCT_SPEED if listed else 0.0


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


#: Seconds for a draw of eigenvalues by coupling from the past, divided by the cube of the order.
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


# Targets of accuracy: how an error is measured, over which queries, and how large it may be

#: Probability of an interval, and of a largest error.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Target(abc.ABC):
    """A limit on an error of mean answers; for tables, of shares without the weights of tables.

    Parameters
    ----------
    limit : float
        Largest error allowed, above 0.
    over : sequence of str, int or None
        The columns of a table of the workload, the number of a query, or None for all queries.

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.advice.HalfWidth(0.02, ["region"]))
    half-width of 95% intervals of region at most 0.02
    """

    limit: float
    over: Sequence[str] | int | None = None

    #: The error in words.
    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", positive(self.limit, "limit"))
        if self.over is None:
            return
        if is_whole(self.over):
            object.__setattr__(self, "over", whole(int(self.over), "over", minimum=0))
        elif isinstance(self.over, Sequence) and not isinstance(self.over, str):
            object.__setattr__(self, "over", tuple(self.over))
        else:
            raise ValueError(
                "over must be the columns of a table, the number of a query, or None, "
                f"got {self.over!r}"
            )

    def __str__(self) -> str:
        return f"{self.name} of {self.place} at most {self.limit:g}"

    @property
    def place(self) -> str:
        """The queries in words."""
        if self.over is None:
            return "all queries"
        return f"query {self.over}" if isinstance(self.over, int) else " x ".join(self.over)

    def queries(self, workload: Workload) -> slice:
        """The numbers of the queries; ``ValueError`` if the workload does not have them."""
        m = workload.n_queries
        if self.over is None:
            return slice(0, m)
        if isinstance(self.over, int):
            first = whole(self.over, "over", minimum=0, maximum=m - 1)
            return slice(first, first + 1)
        if isinstance(workload, TableQueries | ProductQueries):
            names = cells_of(workload).universe.names
            tables = cells_of(workload).tables
            for table, place in zip(tables, workload.slices, strict=True):
                if sorted(names[i] for i in table) == sorted(self.over):
                    return place
        raise ValueError(f"over must be the columns of a table of the workload, got {self.over!r}")

    @abc.abstractmethod
    def error(self, mechanism: Mechanism) -> float:
        """The predicted error of `mechanism`; ``ValueError`` if it has no noise of a known law."""

    def _noisy(self, mechanism: Mechanism) -> tuple[AdditiveMechanism, slice, FloatArray]:
        """The noise before post-processing, the numbers of the queries, and their divisors."""
        noisy, place = additive_within(mechanism), self.queries(mechanism.workload)
        if noisy is None:
            raise ValueError(
                f"targets must be root mean squared errors of all queries, got '{self}': the "
                f"advised mechanism {type(mechanism).__name__} adds no noise of a known law"
            )
        return noisy, place, query_weights(mechanism.workload)[place]


def query_weights(workload: Workload) -> FloatArray:
    """The factors (m,) of the answers: the weights of tables, else 1."""
    if isinstance(workload, TableQueries | ProductQueries):
        return workload.weights
    return np.ones(workload.n_queries)


class RootMeanSquare(Target):
    """Limit on the root mean squared error per query.

    Over all queries of equal weight it is the `predicted_rmse` of the mechanism, a bound for every
    data set. For others it is the error of the noisy answers, `Release.noisy`, without weights: a
    projection lowers the total error, but can raise the error of a table. Parameters and errors are
    those of `Target`.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(4)
    >>> laplace = gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0))
    >>> round(gd.advice.RootMeanSquare(0.1).error(laplace), 4)  # sqrt(2) 2 / 100
    0.0283
    """

    name = "root mean squared error"

    def error(self, mechanism: Mechanism) -> float:
        weights = query_weights(mechanism.workload)
        if self.over is None and np.ptp(weights) == 0:
            return mechanism.predicted_rmse.value / float(weights[0])
        noisy, place, divisors = self._noisy(mechanism)
        squares = noisy.noise.variances()[place] / noisy.n**2 + noisy.answer_rounding[place] ** 2
        return math.sqrt(float((squares / divisors**2).mean()))


class HalfWidth(Target):
    """Limit on the half-width of the 95% interval of each query, around its noisy answer.

    Parameters and errors are those of `Target`.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(4)
    >>> laplace = gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0))
    >>> round(gd.advice.HalfWidth(0.1).error(laplace), 4)  # 2 ln(20) / 100
    0.0599
    """

    name = "half-width of 95% intervals"

    def error(self, mechanism: Mechanism) -> float:
        noisy, place, divisors = self._noisy(mechanism)
        return float((_reach(noisy)[place] / divisors).max())


@lru_cache(maxsize=4)
def _reach(noisy: AdditiveMechanism) -> FloatArray:
    """Half-widths (m,) of the intervals of all queries, which can take many public draws."""
    return half_widths(noisy.noise, CONFIDENCE) / noisy.n + noisy.answer_rounding


class LargestError(Target):
    """Limit on the largest error over the queries, which the noisy answers keep in 95% of releases.

    Parameters and errors are those of `Target`.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(4)
    >>> laplace = gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0))
    >>> round(gd.advice.LargestError(0.1).error(laplace), 4)
    0.0873
    """

    name = "largest error with probability 0.95"

    def error(self, mechanism: Mechanism) -> float:
        noisy, place, divisors = self._noisy(mechanism)
        reach = largest_half_width(noisy.noise, CONFIDENCE, place, divisors) / noisy.n
        return reach + float((noisy.answer_rounding[place] / divisors).max())
