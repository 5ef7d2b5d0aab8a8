"""Two-way marginals by the second moment (JL-T23): the reduction, its bound and its privacy."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp._numerics.linalg import svec, unsvec
from geomdp.mechanisms import PairMarginals
from geomdp.privacy import ZCDP, ApproxDP, PureDP
from geomdp.workloads import Marginals, Parities
from tests.stats import mean_at_most

PURE = PureDP(1.0)
N = 20


@pytest.mark.parametrize("d", [2, 5, 12])
def test_bound_is_the_explicit_one(d):
    """The prediction is 0.6 to 1 times min(1, b), where b is the explicit bound of Theorem 23."""
    for n in (10, 1000, 10**6):
        predicted = PairMarginals(Marginals(d, 2), n=n, privacy=PURE).predicted_rmse
        least = min((d + 1) * math.sqrt(2 * d) / n, math.sqrt((4 * d + 3) / n))
        limit = min(1.0, math.sqrt(d / (d - 1)) * least)
        assert 0.6 * limit <= predicted.value <= limit * (1 + 1e-12)
    assert PairMarginals(Marginals(d, 2), n=1, privacy=PureDP(0.01)).predicted_rmse.value == 1


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [PURE, ZCDP(0.5), ApproxDP(1.0, 1e-6)])
def test_error_stays_below_the_bound(privacy):
    workload = Marginals(6, 2)
    mechanism = PairMarginals(workload, n=400, privacy=privacy)
    assert mechanism.guarantee.privacy == privacy
    for records in (np.zeros((400, 6), dtype=int), workload.universe.sample(400, 0)):
        truth, rng = workload.answers(records), np.random.default_rng(1)
        sums = mechanism.totals(records).sums
        squares = [np.mean((mechanism.privatise(sums, rng) - truth) ** 2) for _ in range(1000)]
        mean_at_most(np.array(squares), mechanism.predicted_rmse.value**2)


def test_counts_of_records_stand_for_the_records():
    """Counted records give the same sums as the rows of the table."""
    schema = gd.data.Schema.from_dict(dict.fromkeys("abcde", bool))
    workload = Marginals(5, 2)
    frame = pd.DataFrame(np.random.default_rng(4).random((50, 5)) < 0.4, columns=list("abcde"))
    counted = gd.data.count_records(gd.data.source_of(frame), schema, workload)
    rows = frame.to_numpy().astype(float)
    mechanism = PairMarginals(workload, n=50, privacy=PURE)
    for records in (counted, rows.astype(int)):
        measured, totals = mechanism.measured(records), mechanism.totals(records)
        assert measured.count == totals.count == 50
        np.testing.assert_array_equal(measured.sums, (rows.T @ rows)[np.triu_indices(5)])
        np.testing.assert_allclose(unsvec(totals.sums), rows.T @ rows / 5, rtol=1e-15)


def test_answers_are_clipped_to_shares():
    """For d = 4, a private matrix N can give answers d N_12 outside [0, 1], such as 2 and -2."""
    mechanism = PairMarginals(Marginals(4, 2), n=N, privacy=PURE)
    matrix = np.zeros((4, 4))
    for entry, answer in [(0.5, 1.0), (0.2, 0.8), (-0.5, 0.0)]:
        matrix[0, 1] = matrix[1, 0] = entry
        expected = [answer, 0, 0, 0, 0, 0]
        np.testing.assert_allclose(mechanism.process(svec(matrix)), expected, rtol=1e-15)


def test_bad_arguments():
    mechanism = PairMarginals(Marginals(4, 2), n=N, privacy=PURE)
    assert mechanism.with_workload(Marginals(5, 2)).workload.d == 5
    for workload in (Marginals(4, 3), Parities(4, 2)):
        with pytest.raises(ValueError, match=r"Marginals\(d, 2\)"):
            PairMarginals(workload, n=N, privacy=PURE)
        with pytest.raises(ValueError, match=r"Marginals\(d, 2\)"):
            mechanism.with_workload(workload)
