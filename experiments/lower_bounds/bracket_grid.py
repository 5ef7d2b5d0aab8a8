"""The rows of `bracket_table`: for each, a workload, an epsilon and a target error alpha."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from experiments.lower_bounds.bracket_problems import Error, Guarantee, Size
from experiments.lower_bounds.random_workloads import random_question
from experiments.shared.workloads import Kind

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
    """Rows of standard workloads under pure differential privacy.

    There is a row in mean l2 error for each of `queries` at each epsilon and alpha. The two other
    kinds of error have a row for each of `compared`, at the last epsilon and the second alpha.
    """
    main = [
        Config(name, size, epsilon, alpha, Error.MEAN_L2)
        for name in queries
        for epsilon in epsilons
        for alpha in alphas
    ]
    others = [
        Config(name, size, epsilons[-1], alphas[1], error)
        for name in compared
        for error in (Error.RMS, Error.WORST)
    ]
    return (*main, *others)


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
