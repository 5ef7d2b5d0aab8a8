"""Histogram, prefixes and ranges against their query matrices."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp.workloads import Histogram, Prefixes, Ranges, explicit_answers
from geomdp.workloads.finite import zero_sum_basis


@given(N=st.integers(1, 12))
def test_definitions(N):
    elements = range(N)
    intervals = [(a, b) for a in elements for b in range(a, N)]
    np.testing.assert_array_equal(explicit_answers(Histogram(N)), np.eye(N))
    prefixes = [[x <= t for t in elements] for x in elements]
    np.testing.assert_array_equal(explicit_answers(Prefixes(N)), prefixes)
    ranges = [[a <= x <= b for a, b in intervals] for x in elements]
    np.testing.assert_array_equal(explicit_answers(Ranges(N)), ranges)


@given(N=st.integers(1, 40))
def test_diameters_of_ranges(N):
    answers = explicit_answers(Ranges(N))
    apart = np.abs(answers[:, None] - answers).sum(axis=2).max()
    assert Ranges(N).l1_diameter() == apart
    assert Ranges(N).l1_radius() == answers.sum(axis=1).max()


def test_totals_count_large_inputs():
    records = np.arange(3_000_000) % 7
    counts = np.bincount(records)
    np.testing.assert_array_equal(Histogram(7).totals(records).sums, counts)
    np.testing.assert_array_equal(Prefixes(7).totals(records).sums, np.cumsum(counts))
    expected = [counts[a : b + 1].sum() for a in range(7) for b in range(a, 7)]
    np.testing.assert_array_equal(Ranges(7).totals(records).sums, expected)


def test_ranges_never_build_their_matrix():
    # The 2000 x 2 million matrix would take 32 GB.
    workload = Ranges(2000)
    records = np.array([0, 1999, 1000])
    answers = workload.answers(records)
    assert answers.shape == (2_001_000,)
    assert answers[1999] == 1  # the whole line
    direction = np.zeros((1, workload.n_queries))
    direction[0, 0] = 1  # the interval [0, 0]
    np.testing.assert_array_equal(
        workload.extreme_answers(direction), workload.evaluate(np.array([0]))
    )
    with pytest.raises(ValueError, match="N must be at most 511 for an affine hull, got 2000"):
        workload.affine_hull()


@pytest.mark.parametrize("size", [1, 2, 5])
def test_zero_sum_basis(size):
    basis = zero_sum_basis(size)
    assert basis.shape == (size, size - 1)
    np.testing.assert_allclose(basis.T @ basis, np.eye(size - 1), rtol=0, atol=1e-15)
    np.testing.assert_allclose(basis.sum(axis=0), 0, rtol=0, atol=1e-15)


def test_labels():
    assert Histogram(2).labels() == ["x=0", "x=1"]
    assert Prefixes(2).labels() == ["x<=0", "x<=1"]
    assert Ranges(2).labels() == ["0<=x<=0", "0<=x<=1", "1<=x<=1"]


@pytest.mark.parametrize("family", [Histogram, Prefixes, Ranges])
@pytest.mark.parametrize("N", [0, -3, 2.0, True])
def test_bad_size(family, N):
    with pytest.raises(ValueError, match="N must be a whole number, at least 1"):
        family(N)
