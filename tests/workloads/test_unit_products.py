"""Characters of groups, and tables as linear functions of their products."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp._linalg import svec
from geomdp.workloads import Marginals, MarginalTables, explicit_answers
from geomdp.workloads.unit_products import characters, unit_products


@pytest.mark.parametrize("levels", [1, 2, 3, 4, 5, 6, 8, 12])
def test_characters_tell_levels_apart(levels) -> None:
    vectors = characters(levels)
    assert sum(vector.shape[1] for vector in vectors) == levels - 1
    for vector in vectors:
        np.testing.assert_allclose(np.linalg.norm(vector, axis=1), 1, rtol=1e-12)
    gram = sum((v.shape[1] * v @ v.T for v in vectors), np.ones((levels, levels)))
    np.testing.assert_allclose(gram / levels, np.eye(levels), atol=1e-12)
    signs = sum(vector.shape[1] == 1 for vector in vectors)
    assert signs == (levels & -levels) - 1  # the largest power of 2 in `levels`, less 1


@pytest.mark.parametrize(("columns", "k"), [([2, 3, 4], 2), ([5, 1, 6], 2), ([3, 2], 1), ([4], 1)])
def test_answers_are_the_stated_function(columns, k) -> None:
    workload = MarginalTables(columns, k)
    products = unit_products(workload)
    elements = workload.universe.elements()
    vectors = [np.ones((len(elements), 1))]
    for column, levels in enumerate(columns):
        vectors += [vector[elements[:, column]] for vector in characters(levels)]
    assert products.sizes == tuple(vector.shape[1] for vector in vectors)
    z = np.hstack(vectors)
    moments = svec(z[:, :, None] * z[:, None, :])
    rebuilt = products.constant + (products.matrix @ moments.T).T
    np.testing.assert_allclose(rebuilt, explicit_answers(workload), atol=1e-12)


def test_other_workloads_have_none() -> None:
    assert unit_products(Marginals(3, 2)) is None
    assert unit_products(MarginalTables([2, 3, 2], 3)) is None
