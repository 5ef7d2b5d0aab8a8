"""The coarse mechanism: its net, the two terms of its error, ties, and the sums it releases."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geomdp.bodies import sensitivity_polytope
from geomdp.geometry import gaussian_width
from geomdp.mechanisms import JL, Ball, Coarse, KNorm, Laplace, PredictionKind, Projected
from geomdp.mechanisms.additive_noise.sums import MAX_CHECKED
from geomdp.privacy import PureDP
from geomdp.workloads import (
    Explicit,
    Marginals,
    MarginalTables,
    Prefixes,
    SecondMoment,
    explicit_answers,
)
from geomdp.workloads.explicit import Coarsened
from tests.stats import mean_at_most

PURE = PureDP(1.0)
Q = Prefixes(64)


def knorm(workload, n=50):
    return KNorm(workload, n=n, privacy=PURE, exact=True)


@pytest.mark.parametrize("radius", [0.1, 0.25, 0.4])
def test_net_is_separated_and_maximal(radius):
    """Points of the net are at least radius sqrt(m) apart (JL-A2)."""
    mechanism = Coarse(knorm(Q), radius)
    apart = np.linalg.norm(mechanism.net[:, None] - mechanism.net, axis=2)
    np.fill_diagonal(apart, np.inf)
    assert apart.min() >= radius * math.sqrt(Q.n_queries)
    answers = explicit_answers(Q)
    distances = np.linalg.norm(answers[:, None] - mechanism.net, axis=2).min(axis=1)
    assert mechanism.rounding == pytest.approx(distances.max() / math.sqrt(Q.n_queries))
    assert mechanism.rounding < radius
    # Equation (22) of JL-A2: means over any records also move by at most `rounding`.
    records = Q.universe.sample(50, 0)
    moved = mechanism.inner.workload.answers(records) - Q.answers(records)
    assert np.sqrt(np.mean(moved**2)) <= mechanism.rounding * (1 + 1e-12)


def test_a_fine_net_changes_nothing_and_a_coarse_one_has_a_smaller_body():
    fine = Coarse(Projected(knorm(Q)), 1e-3)
    assert fine.rounding == 0
    assert fine.predicted_rmse.value == pytest.approx(Projected(knorm(Q)).predicted_rmse.value)
    coarse = Coarse(Projected(knorm(Q)), 0.3)
    assert coarse.inner.workload.affine_hull().dimension == len(coarse.net) - 1 < 63
    widths = [
        gaussian_width(sensitivity_polytope(workload), rng=0).value
        for workload in (coarse.inner.workload, Q)
    ]
    assert widths[0] < widths[1]


def test_gains_where_records_are_few_and_loses_where_they_are_many():
    def ratio(n):
        plain = knorm(Q, n)
        return Coarse(plain, 0.3).predicted_rmse.value / plain.predicted_rmse.value

    assert ratio(10) < 0.7
    assert ratio(10**5) > 1


@pytest.mark.statistical
@pytest.mark.parametrize("rows", [None, 2])
def test_error_stays_below_the_sum_of_both_terms(rows):
    workload, n = Prefixes(16), 30
    inner = Ball(workload, n=n, privacy=PURE)
    mechanism = Coarse(Projected(inner) if rows is None else JL(inner, rows, rng=0), 0.3)
    assert mechanism.predicted_rmse.kind is PredictionKind.UPPER_BOUND
    records = workload.universe.sample(n, 1)
    truth, rng = workload.answers(records), np.random.default_rng(2)
    errors = [np.mean((mechanism.release(records, rng).answers - truth) ** 2) for _ in range(1000)]
    mean_at_most(np.array(errors), mechanism.predicted_rmse.value**2)


def test_answers_of_a_record_do_not_depend_on_its_company():
    """Ties are broken once, so the centre of a record does not depend on the other records."""
    workload = MarginalTables([2, 3, 2], 2)
    coarse = Coarsened(workload, explicit_answers(workload)[::5])
    elements = workload.universe.elements()
    together = coarse.evaluate(elements)
    apart = np.vstack([coarse.evaluate(element[None]) for element in elements])
    shuffled = np.random.default_rng(0).permutation(len(elements))
    np.testing.assert_array_equal(together, apart)
    np.testing.assert_array_equal(together[shuffled], coarse.evaluate(elements[shuffled]))


def test_sums_are_those_of_points_of_the_net():
    """The noise hides changes between points of the net only, so no other sums may be released."""
    mechanism = Coarse(knorm(Q), 0.3)
    records = Q.universe.sample(50, 0)
    for each in records:
        sums = mechanism.totals(each[None]).sums
        assert np.abs(mechanism.net - sums).max(axis=1).min() == 0
    totals = mechanism.totals(records)
    np.testing.assert_allclose(totals.sums, mechanism.inner.workload.evaluate(records).sum(axis=0))
    assert np.abs(totals.sums - Q.totals(records).sums).max() >= 1


def test_bad_arguments():
    with pytest.raises(ValueError, match="inner must be a mechanism"):
        Coarse(Q, 0.1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="two points in the net: it must be at most about 1, got"):
        Coarse(knorm(Explicit([[0.0, 1.0], [0.0, 1.0]])), 3.0)
    with pytest.raises(ValueError, match="infinitely many"):
        Coarse(Ball(SecondMoment(2), n=5, privacy=PURE), 0.1)
    with pytest.raises(ValueError, match="at least one row"):
        Coarsened(Marginals(3, 2), np.zeros((0, 3)))


def test_coarse_of_coarse_sums_answers_that_the_noise_hides():
    # The answers lie on a circle. The inner net has two opposite points, at the l1 distance 2, and
    # the outer net points at distances up to 2 sqrt(2). Noise is calibrated to the inner net.
    angles = np.linspace(0, 2 * np.pi, MAX_CHECKED + 1, endpoint=False)
    answers = np.stack([np.cos(angles), np.sin(angles)])
    answers[:, 0] *= 1.01
    laplace = Laplace(Explicit(answers), n=1, privacy=PURE)
    twice = Coarse(Coarse(laplace, radius=1.2), radius=0.1)
    assert twice.grid is None  # without a seed, noise in float64 is added to `totals`
    sums = np.array([twice.totals(np.array([x])).sums for x in range(0, len(angles), 64)])
    change = np.abs(sums[:, None] - sums).sum(axis=2).max()
    # At epsilon = 1 the scale of the noise is the largest change that it hides.
    assert change <= twice.inner.inner.noise.scale * (1 + 1e-9)
