import sys

import numpy as np
import pytest

from geomdp.data import (
    BooleanColumn,
    CategoricalColumn,
    NumericColumn,
    encode,
    fair_affairs,
    rand_health_insurance,
)
from geomdp.workloads import MarginalTables

SAMPLES = [(rand_health_insurance, 20_190, 10), (fair_affairs, 6_366, 9)]


@pytest.mark.parametrize(("load", "rows", "columns"), SAMPLES)
def test_every_record_fits_the_declared_schema(load, rows, columns):
    sample = load()
    assert sample.frame.shape == (rows, columns)
    assert list(sample.frame.columns) == list(sample.schema.names)
    universe = sample.schema.universe()
    (codes,) = encode(sample.frame, sample.schema, universe)
    assert codes.shape == (rows, columns)
    for name, column in zip(universe.names, codes.T, strict=True):
        counts = np.bincount(column, minlength=universe.columns[name])
        # Every declared level occurs in some record. Other levels would be harmless, but useless.
        assert (counts > 0).all(), name


@pytest.mark.parametrize(("load", "rows", "columns"), SAMPLES)
def test_marginals_of_a_sample_are_the_frequencies_of_its_bins(load, rows, columns):
    sample = load()
    workload = MarginalTables(sample.schema.levels, 1)
    answers = workload.answers(encode(sample.frame, sample.schema, workload.universe))
    expected = []
    for column in sample.schema.discrete_columns:
        values = sample.frame[column.name]
        match column:
            case NumericColumn(edges=edges):
                expected.append(np.histogram(values, edges)[0])
            case CategoricalColumn(categories=categories):
                expected.append([(values == float(text)).sum() for text in categories])
            case BooleanColumn():
                expected.append([(values == 0).sum(), (values == 1).sum()])
    np.testing.assert_allclose(answers, np.concatenate(expected) / rows, rtol=1e-15)


@pytest.mark.parametrize("load", [rand_health_insurance, fair_affairs])
def test_a_missing_statsmodels_names_the_extra(monkeypatch, load):
    for name in [name for name in sys.modules if name.split(".")[0] == "statsmodels"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "statsmodels", None)
    with pytest.raises(ImportError, match=r"geomdp\[samples\]"):
        load()
