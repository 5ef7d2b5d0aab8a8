"""Chaining and packing bounds satisfy Lemma 27 and Theorem 4 of Nikolov (2022)."""

import math

import numpy as np
import pytest

from geomdp import workloads
from geomdp.bodies import VPolytope
from geomdp.bounds import SideConditionError
from geomdp.bounds.widths import instance_optimality
from geomdp.geometry import gaussian_width

WORKLOADS = [
    workloads.Histogram(40),
    workloads.Prefixes(64),
    workloads.Marginals(6, 2),
    workloads.Marginals(8, 1),
    workloads.Parities(6, 2),
    workloads.RandomSigns(30, 200, 0),
    workloads.Explicit(np.random.default_rng(1).normal(size=(3, 150))),
]


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("workload", WORKLOADS, ids=repr)
def test_chaining_bounds_the_width_and_packings_bound_the_chain(workload, epsilon):
    alpha = workload.l2_diameter() / math.sqrt(workload.n_queries) / 12
    found = instance_optimality(workload, epsilon=epsilon, alpha=alpha)
    assert [scale.level for scale in found.scales] == [1, 2, 3, 4]
    counts = [scale.count for scale in found.scales]
    assert (np.diff(counts) >= 0).all()
    # Every answer is within alpha * root of a point of the net. So the width of the net is at least
    # the width of all answers minus alpha * root * E||g||. For standard Gaussian g, E||g|| <= root.
    body = VPolytope(workloads.explicit_answers(workload))
    root = math.sqrt(workload.n_queries)
    width = gaussian_width(body, rng=0, level=1e-6)
    assert found.width >= (width.interval[0] - alpha * root * math.sqrt(workload.n_queries)) / root
    if counts[-1] == len(np.unique(body.vertices, axis=0)):
        assert found.width * root >= width.interval[0]
    assert found.upper <= found.limit


def test_a_segment_by_hand():
    """For two answers, both scales have 2 points, and packings of 2 data sets exclude no n."""
    found = instance_optimality(workloads.Explicit(np.array([[0.0, 1.0]])), epsilon=1.0, alpha=0.3)
    assert [scale.count for scale in found.scales] == [2, 2]
    links = [2 * 0.5 * math.sqrt(2 * math.log(2)), 2 * 0.25 * math.sqrt(2 * math.log(2))]
    np.testing.assert_allclose([scale.chaining for scale in found.scales], links, rtol=1e-12)
    assert found.lower == 0
    np.testing.assert_allclose(found.upper, sum(links) ** 2 / 0.09, rtol=1e-12)
    # With s = 0 and D = 1, the limit is 8 (sqrt(0.3) / (sqrt(2) - 1) + 0.3 + 1.3 c)^2 / 0.09 for
    # c = sqrt(1 + ln 2).
    chain = math.sqrt(0.3) / (math.sqrt(2) - 1) + 0.3 + 1.3 * math.sqrt(1 + math.log(2))
    np.testing.assert_allclose(found.limit, 8 * chain**2 / 0.09, rtol=1e-12)


def test_the_packing_at_one_scale_is_lemma_7():
    """For 64 unit vectors, T < ln 63 / epsilon copies exclude n <= T sqrt(2/64) / alpha."""
    alpha = 0.9 * math.sqrt(2 / 64)
    found = instance_optimality(workloads.Histogram(64), epsilon=0.1, alpha=alpha)
    assert [scale.count for scale in found.scales] == [64]
    copies = math.ceil(math.log(63) / 0.1) - 1
    assert found.lower == math.floor(copies / 0.9)


@pytest.mark.parametrize(("workload", "alpha", "error", "message"), [
    (workloads.Histogram(9), 0.5, SideConditionError, "alpha must be below the diameter 0.471405"),
    (workloads.Means(3), 0.1, workloads.WorkloadSizeError, "at most 2\\^26 answers"),
    (workloads.Histogram(9), 0.0, ValueError, "alpha must be a finite number above 0"),
])  # fmt: skip
def test_side_conditions_are_named(workload, alpha, error, message):
    with pytest.raises(error, match=message):
        instance_optimality(workload, epsilon=1.0, alpha=alpha)
