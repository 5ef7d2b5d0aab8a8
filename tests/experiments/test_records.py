"""Records of the shared problems are in the universe; the chance of a large value is exact."""

from decimal import Decimal, localcontext

import numpy as np
import pytest

from experiments.privacy.corrected import chance_of_a_large_value
from experiments.shared.rand_sample import real_sample
from experiments.shared.records import Data, Queries, dimension, draw_records, workload


@pytest.mark.parametrize("queries", Queries)
@pytest.mark.parametrize("data", [Data.UNIFORM, Data.VERTEX, Data.MIX, Data.CENTRE])
@pytest.mark.parametrize("n", [7, 2500])
def test_records_fit_the_universe(queries, data, n):
    records = draw_records(queries, data, n, np.random.default_rng(0))
    assert len(workload(queries).universe.validate(records)) == n


@pytest.mark.parametrize(("data", "distinct"), [(Data.VERTEX, 1), (Data.MIX, 10)])
@pytest.mark.parametrize("queries", Queries)
def test_few_elements_occur_equally_often(queries, data, distinct):
    records = draw_records(queries, data, 100, np.random.default_rng(1))
    _, counts = np.unique(records, axis=0, return_counts=True)
    assert counts.tolist() == [100 // distinct] * distinct


@pytest.mark.parametrize("queries", Queries)
def test_the_centre_is_the_mean_of_all_elements(queries):
    Q = workload(queries)
    everything = Q.universe.elements(0, Q.universe.size)
    records = draw_records(queries, Data.CENTRE, 2 * len(everything), np.random.default_rng(2))
    np.testing.assert_allclose(Q.answers(records), Q.answers(everything), atol=1e-14)


def test_the_real_sample_is_drawn_without_replacement():
    sample = real_sample()
    assert sample.shape == (20190, 10)
    everything = draw_records(Queries.MARGINALS, Data.REAL, 20190, np.random.default_rng(3))
    np.testing.assert_array_equal(everything.sum(axis=0), sample.sum(axis=0))
    # Both levels of every column occur.
    assert set(np.unique(sample)) == {0, 1}
    assert sample.mean(axis=0).min() > 0.01
    assert sample.mean(axis=0).max() < 0.99


def test_dimensions():
    assert [dimension(queries) for queries in Queries] == [55, 200]


@pytest.mark.parametrize("count", [1, 3, 1000])
@pytest.mark.parametrize("deviation", [1e-300, 1e-17, 1e-3, 0.5, 0.7, 1.0, 30.0, 600.0])
def test_the_chance_is_that_of_the_definition(deviation, count):
    with localcontext() as context:
        context.prec = 800  # 1 - e^(-deviation) starts with at most 299 zeros after the point
        exact = 1 - (1 - (-Decimal(deviation)).exp()) ** count
    # The tolerance allows for six float64 operations with relative errors of at most 2^-52. It also
    # allows for a relative error of 2^-52 in the exponent of e^(-deviation), which gives the power
    # a relative error of `deviation` 2^-52.
    error = 2.0**-52 * (6 + deviation)
    assert chance_of_a_large_value(2 * deviation, 2.0, count) == pytest.approx(
        float(exact), rel=error, abs=0
    )
