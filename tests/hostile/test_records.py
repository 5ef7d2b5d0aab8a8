"""Mechanisms refuse bad records and bad answers before any budget is spent."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import geomdp as gd
from geomdp import mechanisms, workloads
from geomdp.mechanisms.interactive.iterative import AllParities
from geomdp.mechanisms.interactive.updates import MultiplicativeWeights
from geomdp.privacy import ZCDP, ApproxDP, Ledger, PureDP

N = 6
PURE = PureDP(1.0)
LARGE = 10**6

#: For each name, a mechanism and records that it accepts.
MECHANISMS: dict[str, tuple[Any, Any]] = {
    "bits": (mechanisms.Laplace(workloads.Marginals(3, 1), n=N, privacy=PURE),
             np.zeros((N, 3), dtype=int)),
    "codes": (mechanisms.Laplace(workloads.Histogram(4), n=N, privacy=PURE),
              np.zeros(N, dtype=int)),
    "levels": (mechanisms.Laplace(workloads.MarginalTables([2, 3], 1), n=N, privacy=PURE),
               np.zeros((N, 2), dtype=int)),
    "ball": (mechanisms.Covariance(workloads.SecondMoment(2), n=N, privacy=PURE), np.zeros((N, 2))),
    "cube": (gd.SmoothSummary(2, n=N, smoothness=2, privacy=PURE, degree=3), np.zeros((N, 2))),
    "elements": (gd.SparseProject(n=N, sparsity=1, queries=1, privacy=ZCDP(0.5), rows=64, rng=0),
                 list(range(N))),
    "many codes": (gd.IterativeConstruction(MultiplicativeWeights(4), AllParities(2), n=LARGE,
                                            privacy=ApproxDP(1.0, 1e-6)),
                   np.zeros(LARGE, dtype=int)),
}  # fmt: skip

SHAPES: dict[str, Any] = {
    "none": None,
    "a number": 3,
    "text": "records",
    "empty list": [],
    "empty array": np.zeros((0, 2)),
    "no columns": np.zeros((N, 0)),
    "one axis too many": np.zeros((N, 2, 2)),
    "four columns": np.zeros((N, 4)),
    "ragged": [[0, 0], [0], [0, 0, 0], [0, 0], [0, 0], [0, 0]],
    "nested objects": [[{}, {}]] * N,
    "dict": {"a": [0] * N},
    "set": {0, 1},
    "mixed types": [[0, "a"], [1, None], [0, 0], [0, 0], [0, 0], [0, 0]],
    "bytes": b"\0" * N,
    "structured": np.zeros(N, dtype=[("a", int), ("b", int)]),
    "dates": np.zeros((N, 2), dtype="datetime64[s]"),
    "complex": np.zeros((N, 2), dtype=complex),
    "object array": np.array([[None, 0]] * N, dtype=object),
    "frame with a column twice": pd.DataFrame(np.zeros((N, 2)), columns=["a", "a"]),
    "frame of text": pd.DataFrame({"a": ["x"] * N, "b": ["y"] * N}),
    "frame of objects": pd.DataFrame({"a": [[]] * N, "b": [{}] * N}),
    "masked": np.ma.masked_array(np.zeros((N, 2)), mask=True),
}


def refused(name: str, records: Any, budget: Any = None) -> None:
    mechanism, _ = MECHANISMS[name]
    with Ledger(budget or mechanism.guarantee.privacy) as ledger:
        with pytest.raises((ValueError, TypeError), match=r"."):
            mechanism.release(records, ledger=ledger)
        assert ledger.spends() == []


@pytest.mark.parametrize("name", MECHANISMS)
def test_good_records_are_taken(name):
    mechanism, records = MECHANISMS[name]
    with Ledger(
        mechanism.guarantee.privacy if name != "many codes" else mechanism.privacy
    ) as ledger:
        mechanism.release(records, ledger=ledger)
        assert len(ledger.spends()) == 1


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ["bits", "levels", "ball", "cube"])
def test_records_of_another_shape_or_type_are_refused(name, shape):
    refused(name, SHAPES[shape])


@pytest.mark.parametrize("name", ["codes", "elements"])
@pytest.mark.parametrize(
    "records",
    [None, 3, "text", np.zeros((N, 2)), [0.5] * N, [math.nan] * N, [None] * N, [[[0]]] * N, [],
     [-1] * N, [10**400] * N, [Fraction(1, 2)] * N, [{}] * N, np.full(N, np.inf), np.full(N, -1)],
    ids=str,
)  # fmt: skip
def test_codes_and_elements_of_another_kind_are_refused(name, records):
    refused(name, records)


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        (name, bad)
        for name in ("bits", "codes", "levels", "ball", "cube")
        for bad in (math.nan, math.inf, -math.inf, 1e308, -1e308, 2.0**63, -1.5, 1.5, 1.001)
    ]
    # The number -1 lies in the ball and in the cube.
    + [(name, -1.0) for name in ("bits", "codes", "levels")],
)
@pytest.mark.parametrize("row", [0, N - 1])
def test_one_bad_number_is_named_by_its_row_and_not_shown(name, bad, row):
    mechanism, good = MECHANISMS[name]
    records = np.asarray(good, dtype=float).copy()
    records[row if records.ndim == 1 else (row, -1)] = bad
    with Ledger(PURE) as ledger:
        with pytest.raises(ValueError, match=rf"\brow {row}\b") as caught:
            mechanism.release(records, ledger=ledger)
        assert ledger.spends() == []
    assert str(bad) not in str(caught.value)
    assert f"{bad:g}" not in str(caught.value)


NUMBERS = st.floats(width=64) | st.sampled_from([math.nan, math.inf, -math.inf, 5e-324, 1e308])


@given(hnp.arrays(np.float64, st.tuples(st.integers(0, 8), st.integers(0, 4)), elements=NUMBERS))
@pytest.mark.parametrize("name", ["bits", "levels", "ball", "cube"])
def test_any_array_is_released_or_refused_before_payment(name, records):
    mechanism, good = MECHANISMS[name]
    with Ledger(PURE) as ledger:
        try:
            mechanism.release(records, ledger=ledger)
        except ValueError:
            assert ledger.spends() == []
        else:
            assert records.shape == good.shape
            assert np.isfinite(records).all()
            assert len(ledger.spends()) == 1


@given(st.lists(st.lists(st.none() | st.booleans() | st.integers() | NUMBERS | st.text(max_size=3),
                         max_size=4), max_size=7))  # fmt: skip
def test_any_nested_list_is_released_or_refused_before_payment(records):
    mechanism, _ = MECHANISMS["bits"]
    with Ledger(PURE) as ledger:
        try:
            mechanism.release(records, ledger=ledger)
        except (ValueError, TypeError):
            assert ledger.spends() == []


@pytest.mark.parametrize(
    "answer", [None, "1", math.nan, math.inf, -math.inf, 1j, [1], np.array([1.0, 2.0]), 2**1024]
)
def test_answers_to_sparse_vector_that_are_no_numbers_cost_nothing(answer):
    stream = gd.NumericSparse(0.0, cutoff=1, privacy=PURE, rng=0)
    state = stream._noise._rng.bit_generator.state  # type: ignore[attr-defined]
    for ask in (stream.ask, lambda value: stream.ask_many([0.0, value])):
        with pytest.raises((ValueError, TypeError), match=r"."):
            ask(answer)
    assert len(stream.transcript) == 0
    assert stream._noise._rng.bit_generator.state == state  # type: ignore[attr-defined]
