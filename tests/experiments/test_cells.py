"""Cells: what hashes and seeds depend on, and which values a configuration may hold."""

from __future__ import annotations

import enum
from dataclasses import dataclass, make_dataclass

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from experiments.engine.cells import Cell, Outcome, Sweep, configuration_fields, plain
from tests.stats import ks_uniform


@dataclass(frozen=True)
class Config:
    n: int
    epsilon: float = 1.0
    name: str = "a"


class Colour(enum.StrEnum):
    RED = "red"


def test_hash_ignores_the_order_of_fields_but_not_their_values() -> None:
    forward = make_dataclass("forward", [("a", int), ("b", float)], frozen=True)
    backward = make_dataclass("backward", [("b", float), ("a", int)], frozen=True)
    first = Cell(forward(1, 2.0), 0, 0).configuration_hash
    assert first == Cell(backward(2.0, 1), 0, 0).configuration_hash
    assert first != Cell(forward(2, 1.0), 0, 0).configuration_hash


def test_hash_and_seed_are_stable_over_versions_of_the_engine() -> None:
    # These values are recorded. If they change, no stored result is found, and figures change.
    cell = Cell(Config(10), trial=3, sweep_seed=5)
    assert cell.configuration_hash == (
        "b1a9d6680f699543263a1702c2e876a7d18e6cdffdf82f3ac6af2546cab772aa"
    )
    assert cell.seed == 0xE1FD2AA89271F634AC3AAFAB115627BE


def test_seeds_differ_over_configurations_trials_and_sweeps() -> None:
    cells = [
        Cell(Config(n), trial, sweep_seed)
        for n in range(10)
        for trial in range(10)
        for sweep_seed in (0, 1, 2**40, 2**64)
    ]
    assert len({cell.seed for cell in cells}) == len(cells)


def test_seeds_do_not_depend_on_the_other_cells_of_the_sweep() -> None:
    small = Sweep((Config(2),), trials=1, seed=3)
    large = Sweep((Config(1), Config(2), Config(3)), trials=2, seed=3)
    assert small.cells()[0].seed in {cell.seed for cell in large.cells()}


@pytest.mark.statistical
def test_seeds_are_spread_over_all_128_bits() -> None:
    seeds = [Cell(Config(n), trial, 0).seed for n in range(100) for trial in range(20)]
    ks_uniform([seed / 2**128 for seed in seeds])
    ks_uniform([(seed % 2**64) / 2**64 for seed in seeds])


@pytest.mark.statistical
def test_first_draws_of_neighbouring_cells_are_uncorrelated() -> None:
    draws = np.array(
        [
            [np.random.default_rng(Cell(Config(n), trial, 0).seed).random() for trial in (0, 1)]
            for n in range(1000)
        ]
    )
    assert scipy.stats.pearsonr(*draws.T).pvalue > 1e-6


@given(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text())
def test_fields_keep_their_values(n: int, epsilon: float, name: str) -> None:
    assert configuration_fields(Config(n, epsilon, name)) == {
        "n": n,
        "epsilon": epsilon,
        "name": name,
    }


def test_numpy_scalars_and_string_enumerations_become_plain() -> None:
    for value, expected in [
        (np.float64(0.5), float),
        (np.int64(3), int),
        (np.bool_(True), bool),
        (Colour.RED, str),
    ]:
        result = plain(value, "x")
        assert type(result) is expected
        assert result == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), np.float64("-inf")])
def test_numbers_that_are_not_finite_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="x must be finite"):
        plain(value, "x")


@pytest.mark.parametrize("value", [(1, 2), [1], {"a": 1}, np.zeros(2), object()])
def test_other_values_are_refused(value: object) -> None:
    with pytest.raises(TypeError, match="x must be a string, number, boolean or None"):
        plain(value, "x")


def test_configurations_must_be_frozen_dataclass_instances() -> None:
    thawed = make_dataclass("thawed", [("n", int)])
    with pytest.raises(TypeError, match="frozen"):
        configuration_fields(thawed(1))
    with pytest.raises(TypeError, match="dataclass instance"):
        configuration_fields(Config)  # type: ignore[arg-type]


def test_sweeps_check_their_parts() -> None:
    with pytest.raises(ValueError, match="at least 1 configuration"):
        Sweep((), 1, 0)
    with pytest.raises(ValueError, match="trials must be at least 1, got 0"):
        Sweep((Config(1),), 0, 0)
    with pytest.raises(ValueError, match="seed must be at least 0, got -1"):
        Sweep((Config(1),), 1, -1)
    with pytest.raises(ValueError, match="must differ"):
        Sweep((Config(1), Config(1, 1.0)), 1, 0)
    reserved = make_dataclass("reserved", [("trial", int)], frozen=True)
    with pytest.raises(ValueError, match="'trial'"):
        Sweep((reserved(1),), 1, 0)


def test_cells_come_in_order() -> None:
    cells = Sweep((Config(2), Config(1)), 2, 0).cells()
    assert [(cell.configuration.n, cell.trial) for cell in cells] == [
        (2, 0),
        (2, 1),
        (1, 0),
        (1, 1),
    ]


def test_an_outcome_holds_rows_or_a_traceback() -> None:
    cell = Cell(Config(1), 0, 0)
    assert not Outcome(cell, 0.1, ({"x": 1},), None).failed
    assert Outcome(cell, 0.1, None, "no").failed
    for rows, failure in [(None, None), (({"x": 1},), "no")]:
        with pytest.raises(ValueError, match="either rows or a traceback"):
            Outcome(cell, 0.1, rows, failure)
