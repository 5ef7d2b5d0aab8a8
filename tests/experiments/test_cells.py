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


def test_hash_ignores_the_order_of_fields_but_not_their_values():
    forward = make_dataclass("forward", [("a", int), ("b", float)], frozen=True)
    backward = make_dataclass("backward", [("b", float), ("a", int)], frozen=True)
    first = Cell(forward(1, 2.0), 0, 0).configuration_hash
    assert first == Cell(backward(2.0, 1), 0, 0).configuration_hash
    assert first != Cell(forward(2, 1.0), 0, 0).configuration_hash


def test_hash_and_seed_are_stable_over_versions_of_the_engine():
    # These values are recorded. If they change, no stored result is found, and figures change.
    cell = Cell(Config(10), trial=3, sweep_seed=5)
    recorded = "b1a9d6680f699543263a1702c2e876a7d18e6cdffdf82f3ac6af2546cab772aa"
    assert cell.configuration_hash == recorded
    assert cell.seed == 0xE1FD2AA89271F634AC3AAFAB115627BE


def test_seeds_differ_over_configurations_trials_and_sweeps_and_over_nothing_else():
    sweeps, trials = (0, 1, 2**40, 2**64), range(10)
    cells = [Cell(Config(n), t, sweep) for n in range(10) for t in trials for sweep in sweeps]
    assert len({cell.seed for cell in cells}) == len(cells)
    small = Sweep((Config(2),), trials=1, seed=3)
    large = Sweep((Config(1), Config(2), Config(3)), trials=2, seed=3)
    assert small.cells()[0].seed in {cell.seed for cell in large.cells()}


@pytest.mark.statistical
def test_seeds_are_spread_over_all_bits_and_first_draws_are_uncorrelated():
    seeds = [Cell(Config(n), trial, 0).seed for n in range(100) for trial in range(20)]
    ks_uniform([seed / 2**128 for seed in seeds])
    ks_uniform([(seed % 2**64) / 2**64 for seed in seeds])
    cells = [[Cell(Config(n), trial, 0) for trial in (0, 1)] for n in range(1000)]
    draws = np.array([[np.random.default_rng(c.seed).random() for c in pair] for pair in cells])
    assert scipy.stats.pearsonr(*draws.T).pvalue > 1e-6


@given(st.integers(), st.floats(allow_nan=False, allow_infinity=False), st.text())
def test_fields_keep_their_values(n, epsilon, name):
    fields = {"n": n, "epsilon": epsilon, "name": name}
    assert configuration_fields(Config(n, epsilon, name)) == fields


@pytest.mark.parametrize(
    ("value", "kind"),
    [(np.float64(0.5), float), (np.int64(3), int), (np.bool_(True), bool), (Colour.RED, str)],
)
def test_numpy_scalars_and_string_enumerations_become_plain(value, kind):
    assert type(plain(value, "x")) is kind
    assert plain(value, "x") == value


REFUSED = "x must be a string, number, boolean or None"


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        *(
            (value, ValueError, "x must be finite")
            for value in (np.nan, np.inf, np.float64("-inf"))
        ),
        *((value, TypeError, REFUSED) for value in ((1, 2), [1], {"a": 1}, np.zeros(2), object())),
    ],
)
def test_other_values_are_refused(value, error, message):
    with pytest.raises(error, match=message):
        plain(value, "x")


def test_configurations_must_be_frozen_dataclass_instances():
    thawed = make_dataclass("thawed", [("n", int)])
    for wrong, message in ((thawed(1), "frozen"), (Config, "dataclass instance")):
        with pytest.raises(TypeError, match=message):
            configuration_fields(wrong)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (((), 1, 0), "at least 1 configuration"),
        (((Config(1),), 0, 0), "trials must be at least 1, got 0"),
        (((Config(1),), 1, -1), "seed must be at least 0, got -1"),
        (((Config(1), Config(1, 1.0)), 1, 0), "must differ"),
        (((make_dataclass("own", [("trial", int)], frozen=True)(1),), 1, 0), "'trial'"),
    ],
)
def test_sweeps_check_their_parts(parts, message):
    with pytest.raises(ValueError, match=message):
        Sweep(*parts)


def test_cells_come_in_order():
    cells = Sweep((Config(2), Config(1)), 2, 0).cells()
    order = [(cell.configuration.n, cell.trial) for cell in cells]
    assert order == [(2, 0), (2, 1), (1, 0), (1, 1)]


def test_an_outcome_holds_rows_or_a_traceback():
    cell = Cell(Config(1), 0, 0)
    assert not Outcome(cell, 0.1, ({"x": 1},), None).failed
    assert Outcome(cell, 0.1, None, "no").failed
    for rows, failure in [(None, None), (({"x": 1},), "no")]:
        with pytest.raises(ValueError, match="either rows or a traceback"):
            Outcome(cell, 0.1, rows, failure)
