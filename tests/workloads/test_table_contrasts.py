"""Answers to workloads of tables are affine functions of contrasts of levels.

A contrast combines the indicators of levels with coefficients that add up to 0.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from geomdp.workloads import Marginals, MarginalTables, Parities, Prefixes, explicit_answers
from geomdp.workloads.finite import zero_sum_basis
from geomdp.workloads.structure import table_contrasts


@pytest.mark.parametrize(
    ("workload", "levels"),
    [
        (MarginalTables([2, 3, 4], 2), (2, 3, 4)),
        (MarginalTables([5, 1, 3], 2), (5, 3)),
        (MarginalTables([1, 4], 2), (4,)),
        (MarginalTables([3, 2], 1), (3, 2)),
        (Marginals(4, 2), (2,) * 4),
        (Marginals(3, 1), (2,) * 3),
    ],
)
def test_answers_are_the_stated_function(workload, levels) -> None:
    found = table_contrasts(workload)
    assert found.levels == levels
    elements = workload.universe.elements().astype(int)
    sizes = elements.max(axis=0) + 1
    parts = [zero_sum_basis(n)[elements[:, i]] for i, n in enumerate(sizes) if n > 1]
    pairs = [
        (a[:, :, None] * b[:, None, :]).reshape(len(elements), -1)
        for a, b in itertools.combinations(parts, 2)
    ]
    rebuilt = found.constant + (found.matrix @ np.hstack([*parts, *pairs]).T).T
    np.testing.assert_allclose(rebuilt, explicit_answers(workload), atol=1e-12)


def test_products_of_signs_are_those_of_products_with_the_first() -> None:
    workload = Parities(4, 2)
    found = table_contrasts(workload)
    assert found.levels == (2, 2, 2)
    signs = 1.0 - 2.0 * workload.universe.elements()
    first = signs[:, :1] * signs[:, 1:] / np.sqrt(2)
    i, j = np.triu_indices(3, 1)
    points = np.hstack([first, first[:, i] * first[:, j]])
    rebuilt = (found.matrix @ points.T).T
    np.testing.assert_allclose(rebuilt, explicit_answers(workload), atol=1e-12)
    assert not found.constant.any()


def test_other_workloads_have_none() -> None:
    assert table_contrasts(Parities(4, 3)) is None
    assert table_contrasts(Prefixes(4)) is None
    assert table_contrasts(Marginals(4, 3)) is None
    assert table_contrasts(MarginalTables([2, 3, 2], 3)) is None
    assert table_contrasts(MarginalTables([1, 1], 2)) is None
