"""Cells of a sweep: one configuration and one trial each, with a hash and a seed."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    C = TypeVar("C", bound=DataclassInstance)
else:
    C = TypeVar("C")

Scalar = str | int | float | bool | None
#: One row of a result: the value of each column by its name.
Row = dict[str, Scalar]
#: The rows of a cell, one by one or in a list.
Rows = Iterable[Row]

#: Number of 32-bit words in a configuration hash (SHA-256).
HASH_WORDS = 8


def configuration_fields(configuration: DataclassInstance) -> Row:
    """Fields of a frozen dataclass as plain values, in order."""
    if not dataclasses.is_dataclass(configuration) or isinstance(configuration, type):
        raise TypeError(f"configuration must be a dataclass instance, got {configuration!r}")
    if not configuration.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        raise TypeError(f"configuration must be frozen, got {type(configuration).__name__}")
    return {
        field.name: plain(getattr(configuration, field.name), field.name)
        for field in dataclasses.fields(configuration)
    }


def plain(value: object, name: str) -> Scalar:
    """A JSON scalar equal to `value`, which may be a NumPy scalar or a string enumeration."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite, got {value!r}")
        return float(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError(f"{name} must be a string, number, boolean or None, got {value!r}")


@dataclass(frozen=True)
class Cell(Generic[C]):
    """One trial of one configuration."""

    configuration: C  # What to compute
    trial: int  # Number of the repetition, from 0
    sweep_seed: int  # Seed of the sweep the cell belongs to

    @cached_property
    def configuration_hash(self) -> str:
        """SHA-256 of the fields in a canonical form, which does not depend on their order."""
        fields = configuration_fields(self.configuration)
        canonical = json.dumps(fields, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(canonical.encode()).hexdigest()

    @cached_property
    def seed(self) -> int:
        """A 128-bit seed derived from (sweep seed, configuration hash, trial) alone.

        The seed depends neither on the other cells of the sweep nor on the order in which cells
        run. ``np.random.default_rng(seed)`` recreates the generator that the cell was given.
        """
        digest = bytes.fromhex(self.configuration_hash)
        words = np.frombuffer(digest, dtype=">u4").tolist()
        assert len(words) == HASH_WORDS
        sequence = np.random.SeedSequence(self.sweep_seed, spawn_key=(*words, self.trial))
        low, high = sequence.generate_state(2, np.uint64).tolist()
        return int(low) | int(high) << 64

    @property
    def key(self) -> tuple[str, int, int]:
        """Configuration hash, trial and sweep seed, which together identify a cell of a script."""
        return (self.configuration_hash, self.trial, self.sweep_seed)


@dataclass(frozen=True)
class Sweep(Generic[C]):
    """A list of configurations, each run `trials` times."""

    configurations: tuple[C, ...]  # All different
    trials: int = 1  # Independent repetitions of each configuration, at least 1
    seed: int = 0  # Non-negative seed from which every cell derives its own

    def __post_init__(self) -> None:
        if not self.configurations:
            raise ValueError("configurations must hold at least 1 configuration, got 0")
        if self.trials < 1:
            raise ValueError(f"trials must be at least 1, got {self.trials}")
        if self.seed < 0:
            raise ValueError(f"seed must be at least 0, got {self.seed}")
        seen: dict[str, C] = {}
        for configuration in self.configurations:
            digest = Cell(configuration, 0, self.seed).configuration_hash
            if "trial" in configuration_fields(configuration):
                raise ValueError("configurations must not have a field named 'trial'")
            if digest in seen:
                raise ValueError(f"configurations must differ, got {configuration!r} twice")
            seen[digest] = configuration

    def cells(self) -> tuple[Cell[C], ...]:
        """All cells: configurations in their order, trials of one configuration together."""
        return tuple(
            Cell(configuration, trial, self.seed)
            for configuration in self.configurations
            for trial in range(self.trials)
        )


def product(kind: Callable[..., C], *values: Any, **named: Any) -> tuple[C, ...]:
    """A configuration for each choice from the collections among the values, in their order."""
    axes = [
        value if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
        for value in (*values, *named.values())
    ]
    return tuple(
        kind(*choice[: len(values)], **dict(zip(named, choice[len(values) :], strict=True)))
        for choice in itertools.product(*axes)
    )


@dataclass(frozen=True)
class Outcome(Generic[C]):
    """Result of one cell: its rows, or the traceback of its failure."""

    cell: Cell[C]  # The cell that was run
    seconds: float  # Wall-clock time it took
    rows: tuple[Row, ...] | None  # The result; None for a failed cell
    traceback: str | None  # How the cell failed; None for a completed cell

    def __post_init__(self) -> None:
        if (self.rows is None) == (self.traceback is None):
            raise ValueError("an outcome must hold either rows or a traceback")

    @property
    def failed(self) -> bool:
        """Whether the cell ended in a traceback."""
        return self.traceback is not None
