"""Small random problems for brackets: lower and upper bounds on the sample complexity."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

import geomdp as gd
from experiments.lower_bounds.bracket_problems import Error

#: Public seed of all draws, and number of problems drawn.
SEED, COUNT = 17, 60
#: Values of epsilon. Successive problems of one kind take these values in turn.
EPSILONS = (0.02, 0.1, 0.3, 1.0, 3.0, 10.0)
#: Target errors are log-uniform between these two numbers.
ALPHAS = (0.01, 0.1)
#: A universe has at most `ELEMENTS` elements. Marginals and parities have at most `COLUMNS`
#: columns. The workloads `RandomSigns` and `Explicit` have at most `QUERIES` queries.
ELEMENTS, COLUMNS, QUERIES = 32, 5, 12


def _columns(rng: np.random.Generator) -> tuple[int, int]:
    """The number of columns d, and the number k <= 3 of columns in a query."""
    d = int(rng.integers(1, COLUMNS + 1))
    return d, int(rng.integers(1, min(d, 3) + 1))


def _shape(rng: np.random.Generator) -> tuple[int, int]:
    """Numbers of queries and of elements."""
    return int(rng.integers(1, QUERIES + 1)), int(rng.integers(4, ELEMENTS + 1))


#: Kinds of workloads. Successive draws take these kinds in turn.
KINDS: tuple[Callable[[np.random.Generator], gd.workloads.Workload], ...] = (
    lambda rng: gd.workloads.Histogram(int(rng.integers(2, ELEMENTS + 1))),
    lambda rng: gd.workloads.Prefixes(int(rng.integers(2, ELEMENTS + 1))),
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
    """Epsilon, target error and kind of error of one draw.

    Over all draws, every kind of workload is combined with every epsilon.
    """
    rng = np.random.default_rng([SEED, draw, 1])
    alpha = math.exp(rng.uniform(math.log(ALPHAS[0]), math.log(ALPHAS[1])))
    epsilon = EPSILONS[(draw // len(KINDS)) % len(EPSILONS)]
    return epsilon, round(alpha, 4), [*Error][int(rng.integers(len(Error)))]
