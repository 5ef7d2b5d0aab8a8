"""Marginals and parities: definitions, packed totals, extreme answers and diameters."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp.workloads import Marginals, Parities, explicit_answers


@given(d=st.integers(1, 7), data=st.data())
def test_definitions(d, data):
    k = data.draw(st.integers(1, d))
    records = np.random.default_rng(d).integers(0, 2, (10, d))
    subsets = list(combinations(range(d), k))
    marginals = [[all(x[i] for i in S) for S in subsets] for x in records]
    parities = [[(-1) ** sum(x[i] for i in S) for S in subsets] for x in records]
    np.testing.assert_array_equal(Marginals(d, k).evaluate(records), marginals)
    np.testing.assert_array_equal(Parities(d, k).evaluate(records), parities)
    assert [tuple(S) for S in Marginals(d, k).subsets] == subsets


@pytest.mark.parametrize("family", [Marginals, Parities])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000, 70_000])
def test_packed_totals_are_exact(family, n):
    workload = family(6, 3)
    records = workload.universe.sample(n, rng=n)
    totals = workload.totals(records)
    assert totals.count == n
    np.testing.assert_array_equal(totals.sums, workload.evaluate(records).sum(axis=0))


def test_packed_totals_with_many_queries():
    workload = Marginals(24, 3)  # 2024 queries, two groups of packed queries
    records = workload.universe.sample(100, rng=0)
    np.testing.assert_array_equal(
        workload.totals(records).sums, workload.evaluate(records).sum(axis=0)
    )


@pytest.mark.parametrize("k", [2, 3])  # pairs are enumerated, and larger sets are transformed
@pytest.mark.parametrize("family", [Marginals, Parities])
def test_extreme_answers_at_size(family, k):
    workload = family(14, k)
    rng = np.random.default_rng(3)
    directions = rng.normal(size=(5, workload.n_queries))
    answers = explicit_answers(workload)
    best = answers[(directions @ answers.T).argmax(axis=1)]
    np.testing.assert_array_equal(workload.extreme_answers(directions), best)


@pytest.mark.parametrize("family", [Marginals, Parities])
def test_limit_of_the_enumeration_and_the_transform(family):
    for k in (2, 3):
        with pytest.raises(ValueError, match=r"d must be at most 24 .* got 25"):
            family(25, k).extreme_answers(np.zeros((1, math.comb(25, k))))
    # For k = 1, the signs of a direction determine the answers, so d can be large.
    directions = np.random.default_rng(0).normal(size=(3, 200))
    answers = family(200, 1).extreme_answers(directions)
    low = 0 if family is Marginals else -1
    np.testing.assert_array_equal(answers, np.where(directions > 0, 1, low))


def test_known_diameter_of_parities():
    # If half of the attributes change, a parity changes unless both of its attributes are in the
    # same half.
    changed = math.comb(10, 2) - 2 * math.comb(5, 2)
    assert Parities(10, 2).l1_diameter() == 2 * changed
    assert Parities(10, 2).l2_diameter() == 2 * math.sqrt(changed)


def test_labels():
    assert Marginals(3, 2).labels() == ["x0&x1", "x0&x2", "x1&x2"]
    assert Parities(3, 2).labels() == ["parity(x0,x1)", "parity(x0,x2)", "parity(x1,x2)"]


@pytest.mark.parametrize("family", [Marginals, Parities])
@pytest.mark.parametrize(
    ("d", "k", "message"),
    [(0, 1, "d must"), (3, 0, "k must"), (3, 4, "at most 3, got 4"), (3, 1.5, "k must")],
)
def test_bad_parameters(family, d, k, message):
    with pytest.raises(ValueError, match=message):
        family(d, k)
