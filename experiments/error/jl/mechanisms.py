"""The mechanisms whose errors under pure DP are compared: additive, projected, and JL."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from functools import cache

import numpy as np

import geomdp as gd
from experiments.shared.records import Queries, workload

EPSILON = 1.0


class Family(enum.StrEnum):
    """Mechanisms, in the order of the legend."""

    LAPLACE = "Laplace"
    BALL = "ball"
    KNORM = "K-norm"
    PROJECTED = "projected K-norm"
    JL = "JL"


ADDITIVE = (Family.LAPLACE, Family.BALL, Family.KNORM)


def rows_of_map(n: int) -> int:
    """Number of rows of the JL map, (epsilon n)^(2/3) rounded up."""
    return math.ceil(math.pow(EPSILON * n, 2 / 3))


@cache
def additive(queries: Queries, family: Family) -> gd.mechanisms.AdditiveMechanism:
    """Additive mechanism for n = 1; its `with_n` changes n without a new set-up."""
    privacy = gd.PureDP(EPSILON)
    Q = workload(queries)
    builders: dict[Family, Callable[[], gd.mechanisms.AdditiveMechanism]] = {
        Family.LAPLACE: lambda: gd.mechanisms.Laplace(Q, n=1, privacy=privacy),
        Family.BALL: lambda: gd.mechanisms.Ball(Q, n=1, privacy=privacy),
        Family.KNORM: lambda: gd.mechanisms.KNorm(Q, n=1, privacy=privacy, exact=True),
    }
    return builders[family]()


@cache
def projected(queries: Queries) -> gd.mechanisms.Projected:
    """Projected K-norm noise for one record."""
    return gd.mechanisms.Projected(additive(queries, Family.KNORM))


def mechanism(
    queries: Queries, family: Family, n: int, rng: np.random.Generator
) -> gd.mechanisms.Mechanism:
    """The mechanism for n records; `rng` draws the public JL map, anew for each trial."""
    if family is Family.JL:
        inner = additive(queries, Family.BALL).with_n(n)
        return gd.mechanisms.JL(inner, rows_of_map(n), rng=rng)
    if family is Family.PROJECTED:
        return projected(queries).with_n(n)
    return additive(queries, family).with_n(n)
