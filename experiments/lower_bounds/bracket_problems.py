"""The problems of `bracket_table`: eight workloads in two sizes, three errors, three guarantees."""

import enum
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared.workloads import Kind


class Size(enum.StrEnum):
    """How large the workloads are."""

    SMALL = "small"
    STANDARD = "standard"


class Error(enum.StrEnum):
    """How the error is measured."""

    MEAN_L2 = "mean l2"
    RMS = "root mean square"
    WORST = "worst case"


class Guarantee(enum.StrEnum):
    """Which guarantee a mechanism must give; the parameters follow from one epsilon."""

    PURE = "pure"
    CONCENTRATED = "zero-concentrated"
    APPROXIMATE = "approximate"

    def privacy(self, epsilon: float) -> gd.privacy.Privacy:
        """epsilon-DP, or a weaker guarantee: (epsilon^2 / 2)-zCDP or (epsilon, 1e-6)-DP."""
        match self:
            case Guarantee.PURE:
                return gd.PureDP(epsilon)
            case Guarantee.CONCENTRATED:
                return gd.ZCDP(epsilon**2 / 2)
            case Guarantee.APPROXIMATE:
                return gd.ApproxDP(epsilon, DELTA)


#: delta of the approximate guarantee.
DELTA = 1e-6
#: Sizes of the workloads. The figure lists the workloads in this order, from top to bottom.
SIZES: dict[Size, dict[Kind, tuple[int, ...]]] = {
    Size.SMALL: {
        Kind.HISTOGRAM: (16,), Kind.PREFIXES: (16,), Kind.RANGES: (6,), Kind.MARGINALS_1: (6,),
        Kind.MARGINALS_2: (5,), Kind.PARITIES_2: (5,), Kind.SIGNS: (10, 40), Kind.MOMENTS: (2,),
    },
    Size.STANDARD: {
        Kind.HISTOGRAM: (64,), Kind.PREFIXES: (64,), Kind.RANGES: (16,), Kind.MARGINALS_1: (9,),
        Kind.MARGINALS_2: (8,), Kind.PARITIES_2: (8,), Kind.SIGNS: (30, 300), Kind.MOMENTS: (4,),
    },
}  # fmt: skip
QUERIES = tuple(SIZES[Size.STANDARD])
METRICS: dict[Error, gd.bounds.Metric] = {
    Error.MEAN_L2: gd.bounds.MeanL2(),
    Error.RMS: gd.bounds.RMS(),
    Error.WORST: gd.bounds.WorstCase(),
}


#: Public seed of all draws, and number of problems drawn.
SEED, COUNT = 17, 60
#: Values of epsilon. Successive problems of one kind take these values in turn.
EPSILONS = (0.02, 0.1, 0.3, 1.0, 3.0, 10.0)
#: Target errors are log-uniform between these two numbers.
ALPHAS = (0.01, 0.1)
#: Most elements of a universe, most columns of marginals and parities, and most queries of the
#: workloads `RandomSigns` and `Explicit`.
MOST_ELEMENTS, MOST_COLUMNS, MOST_QUERIES = 32, 5, 12


def _columns(rng: np.random.Generator) -> tuple[int, int]:
    """The number of columns d, and the number k <= 3 of columns in a query."""
    d = int(rng.integers(1, MOST_COLUMNS + 1))
    return d, int(rng.integers(1, min(d, 3) + 1))


def _shape(rng: np.random.Generator) -> tuple[int, int]:
    """Numbers of queries and of elements."""
    return int(rng.integers(1, MOST_QUERIES + 1)), int(rng.integers(4, MOST_ELEMENTS + 1))


#: Kinds of workloads. Successive draws take these kinds in turn.
KINDS: tuple[Callable[[np.random.Generator], gd.workloads.Workload], ...] = (
    lambda rng: gd.workloads.Histogram(int(rng.integers(2, MOST_ELEMENTS + 1))),
    lambda rng: gd.workloads.Prefixes(int(rng.integers(2, MOST_ELEMENTS + 1))),
    lambda rng: gd.workloads.Ranges(int(rng.integers(2, 9))),
    lambda rng: gd.workloads.Marginals(*_columns(rng)),
    lambda rng: gd.workloads.Parities(*_columns(rng)),
    lambda rng: gd.workloads.RandomSigns(*_shape(rng), rng=rng),
    lambda rng: gd.workloads.Explicit(rng.random(_shape(rng))),
)


def random_workload(draw: int) -> gd.workloads.Workload:
    """The workload with number `draw`, from 1 to `COUNT`; it is the same in every run."""
    rng = np.random.default_rng([SEED, draw])
    return KINDS[draw % len(KINDS)](rng)


def random_question(draw: int) -> tuple[float, float, Error]:
    """Epsilon, target error and kind of error of one draw."""
    rng = np.random.default_rng([SEED, draw, 1])
    alpha = math.exp(rng.uniform(math.log(ALPHAS[0]), math.log(ALPHAS[1])))
    epsilon = EPSILONS[(draw // len(KINDS)) % len(EPSILONS)]
    return epsilon, round(alpha, 4), [*Error][int(rng.integers(len(Error)))]


#: Name of the family of random workloads.
RANDOM = "random"


@dataclass(frozen=True)
class Config:
    """One row of the table: lower and upper bound on the number of records for one problem."""

    queries: str  # Family of the workload
    size: Size  # Size of the workload
    epsilon: float  # Privacy loss, from which the parameters of the guarantee follow
    alpha: float  # Target error per query
    error: Error  # How the error is measured
    guarantee: Guarantee = Guarantee.PURE  # Guarantee that a mechanism must give
    draw: int = 0  # Seed number of a random workload; 0 for a standard workload


def grid(
    size: Size,
    queries: Sequence[Kind],
    compared: Sequence[Kind],
    epsilons: tuple[float, ...],
    alphas: tuple[float, ...],
) -> tuple[Config, ...]:
    """Rows of standard workloads under pure differential privacy."""
    return (
        *ex.product(Config, queries, size, epsilons, alphas, Error.MEAN_L2),
        *ex.product(Config, compared, size, epsilons[-1], alphas[1], (Error.RMS, Error.WORST)),
    )


def weaker(size: Size, queries: Sequence[Kind], epsilon: float, alpha: float) -> tuple[Config, ...]:
    """One row in root mean square error for each workload and each guarantee weaker than pure."""
    return tuple(
        Config(name, size, epsilon, alpha, Error.RMS, guarantee)
        for guarantee in (Guarantee.CONCENTRATED, Guarantee.APPROXIMATE)
        for name in queries
    )


def drawn(numbers: Sequence[int]) -> tuple[Config, ...]:
    """One row for each random workload, with the values that `random_question` gives for it."""
    return tuple(Config(RANDOM, Size.SMALL, *random_question(draw), draw=draw) for draw in numbers)
