"""Which brackets the table holds: standard workloads by epsilon and alpha, and random workloads."""

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
    """One row of the table."""

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
    """The main panels, and the two other kinds of error at the last epsilon and second alpha."""
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
    """One question about the root mean square for each workload and each weaker guarantee."""
    return tuple(
        Config(name, size, epsilon, alpha, Error.RMS, guarantee)
        for guarantee in (Guarantee.CONCENTRATED, Guarantee.APPROXIMATE)
        for name in queries
    )


def drawn(numbers: Sequence[int]) -> tuple[Config, ...]:
    """Random workloads with the questions that belong to them."""
    return tuple(Config(RANDOM, Size.SMALL, *random_question(draw), draw=draw) for draw in numbers)
