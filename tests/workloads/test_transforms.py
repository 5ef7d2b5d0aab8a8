"""Fast transforms, compared with the sums that define them."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from geomdp.workloads import CategoricalProduct
from geomdp.workloads.compiled_loops import corner_sum, walsh_hadamard


@given(d=st.integers(0, 8), b=st.integers(0, 3))
def test_walsh_hadamard_matrix(d, b):
    values = np.random.default_rng(d).normal(size=(b, 2**d))
    numbers = np.arange(2**d)
    signs = 1 - 2 * (np.bitwise_count(numbers[:, None] & numbers) % 2).astype(float)
    transformed = values.copy()
    walsh_hadamard(transformed)
    np.testing.assert_allclose(transformed, values @ signs, rtol=0, atol=1e-12)
    walsh_hadamard(transformed)  # its own inverse up to the factor 2^d
    np.testing.assert_allclose(transformed, values * 2**d, rtol=0, atol=1e-11)


@given(levels=st.lists(st.integers(1, 4), min_size=1, max_size=5), b=st.integers(0, 3))
def test_corner_sum(levels, b):
    elements = CategoricalProduct(levels).elements()
    values = np.random.default_rng(len(levels)).normal(size=(b, len(elements)))
    below = ((elements[:, None] == 0) | (elements[:, None] == elements)).all(axis=2)
    transformed = values.copy()
    corner_sum(transformed, np.array(levels))
    np.testing.assert_allclose(transformed, values @ below, rtol=0, atol=1e-12)
