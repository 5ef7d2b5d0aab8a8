"""Sums of Chebyshev moments agree with direct cosines, and do not depend on the chunks."""

import itertools

import numpy as np
import pytest

from geomdp.workloads.smooth.moments import (
    LocalExpansions,
    Recurrences,
    angle_error,
    moment_transform,
)
from tests.workloads.smooth.forms import cosines


def cloud(n: int, d: int, seed: int) -> np.ndarray:
    """Random points of [-1, 1]^d, after up to `n` points with all coordinates in {-1, 0, 1}."""
    points = np.random.default_rng(seed).uniform(-1, 1, (n, d))
    special = np.array(list(itertools.product([-1.0, 0.0, 1.0], repeat=d)))
    points[: len(special)] = special[:n]
    return points


@pytest.mark.parametrize("d", [1, 2, 3])
def test_chunks_may_reuse_their_memory(d):
    """Some readers of files write every chunk to the same buffer."""
    points, buffer = cloud(3000, d, 5), np.empty((700, d))
    transform = moment_transform(d, 4, 1e-9)

    def refilled():
        for start in range(0, len(points), 700):
            part = points[start : start + 700]
            buffer[: len(part)] = part
            yield buffer[: len(part)]

    count, sums = transform.sums(refilled())
    assert count == len(points)
    np.testing.assert_array_equal(sums, transform.sums([points])[1])


CASES = [
    pytest.param(1, 2, 1e-6, LocalExpansions, id="one variable, two degrees"),
    pytest.param(1, 64, 1e-9, LocalExpansions, id="one variable"),
    pytest.param(2, 3, 1e-7, Recurrences, id="two variables, few degrees"),
    pytest.param(2, 32, 2e-6, LocalExpansions, id="two variables"),
    pytest.param(2, 12, 1e-12, LocalExpansions, id="two variables, precise"),
    pytest.param(3, 12, 1e-4, LocalExpansions, id="three variables"),
    pytest.param(3, 12, 1e-10, Recurrences, id="three variables, precise"),
    pytest.param(3, 5, 1e-6, Recurrences, id="three variables, few degrees"),
    pytest.param(4, 4, 1e-6, Recurrences, id="four variables"),
    pytest.param(6, 2, 1e-6, Recurrences, id="six variables"),
    pytest.param(1, 5, 1e-16, Recurrences, id="beyond what expansions can do"),
]


@pytest.mark.parametrize(("d", "size", "tolerance", "kind"), CASES)
def test_sums_are_those_of_direct_cosines(d, size, tolerance, kind):
    transform = moment_transform(d, size, tolerance)
    assert type(transform) is kind
    if kind is not Recurrences:
        assert (transform.errors <= tolerance).all()
    points = cloud(2000, d, seed=1)
    count, sums = transform.sums([points])
    direct = cosines(points, size).sum(axis=0)
    assert count == 2000
    bounds = transform.errors + transform.rounding(2000) + angle_error(d, size)
    assert (np.abs(sums - direct) <= 2000 * bounds).all()


@pytest.mark.parametrize(("d", "size", "tolerance", "kind"), CASES)
def test_each_record_is_within_the_stated_error(d, size, tolerance, kind):
    """Privacy and accuracy need the error bound for each single record, not only for sums."""
    transform = moment_transform(d, size, tolerance)
    points = cloud(12 if kind is LocalExpansions and d == 3 else 40, d, seed=2)
    direct = cosines(points, size)
    found = np.array([transform.sums([points[i : i + 1]])[1] for i in range(len(points))])
    bounds = transform.errors + transform.rounding(1) + angle_error(d, size)
    assert (np.abs(found - direct) <= bounds).all()


@pytest.mark.parametrize(
    ("d", "size", "n"), [(1, 9, 40_000), (2, 8, 40_000), (3, 11, 3000), (3, 4, 9000), (4, 3, 9000)]
)
def test_chunks_change_nothing_at_all(d, size, n):
    transform = moment_transform(d, size, 1e-8)
    points = cloud(n, d, seed=4)
    whole = transform.sums([points])
    cuts = [0, 1, 1, 17, n // 3, n // 3 + 5, n - 1, n]
    pieces = (points[a:b] for a, b in itertools.pairwise(cuts))
    count, sums = transform.sums(pieces)
    assert count == whole[0] == n
    np.testing.assert_array_equal(sums, whole[1])


def test_many_tables_are_added_without_losing_digits():
    """The sum of 200 tables of one block of records each agrees with extended precision."""
    transform = Recurrences(1, 3)
    points = cloud(200 * transform.rows, 1, seed=5)
    sums = transform.sums([points])[1]
    exact = cosines(points, 3).astype(np.longdouble).sum(axis=0)
    n = len(points)
    assert (np.abs(sums - exact) <= n * (transform.errors + transform.rounding(n))).all()
    assert transform.rounding(10**9) < 1.1 * transform.rounding(10**6)
