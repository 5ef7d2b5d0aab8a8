"""The Jackson-type operator agrees with tables of the formula sheet and with quadrature."""

import math

import numpy as np
import pytest

from geomdp.workloads.smooth import Jackson
from geomdp.workloads.smooth.evaluation import (
    jackson_multiplier,
    kernel_coefficients,
    kernel_moment,
    kernel_orders,
)


@pytest.mark.parametrize(
    ("smoothness", "kernel", "multiplier"),
    [
        (1, [1, 2 / 3, 1 / 6, 0], [1, 7 / 6, 1 / 3, 0]),
        (2, [1, 3 / 4, 3 / 10, 1 / 20], [1, 7 / 5, 9 / 10, 3 / 20]),
    ],
)
def test_tables(smoothness, kernel, multiplier):
    np.testing.assert_allclose(kernel_coefficients(smoothness, 4), kernel, rtol=1e-14)
    np.testing.assert_allclose(jackson_multiplier(smoothness, 4), multiplier, rtol=1e-14)


def kernel_values(smoothness, size, angles):
    """The kernel H without its constant factor, at angles in [-pi, pi] other than 0."""
    r, terms = kernel_orders(smoothness, size)
    return (np.sin(terms * angles / 2) / np.sin(angles / 2)) ** (2 * r)


@pytest.mark.parametrize(("smoothness", "size"), [(1, 4), (1, 9), (2, 4), (3, 13), (5, 17)])
def test_multiplier_is_the_operator_by_direct_quadrature(smoothness, size):
    """Sums over equal steps integrate trigonometric polynomials exactly; no step is at s = 0."""
    count = 512
    steps = 2 * np.pi * (np.arange(count) + 0.5) / count - np.pi
    kernel = kernel_values(smoothness, size, steps)
    kernel /= kernel.sum()
    where = np.array([0.0, 0.3, 1.1, 2.0, 3.0])
    multiplier = jackson_multiplier(smoothness, size)
    for degree in range(size):
        image = sum(
            (-1) ** (k + 1)
            * math.comb(smoothness + 1, k)
            * np.cos(degree * (where[:, None] + k * steps))
            @ kernel
            for k in range(1, smoothness + 2)
        )
        np.testing.assert_allclose(image, multiplier[degree] * np.cos(degree * where), atol=1e-12)


def test_no_degree_beyond_the_moments():
    """For size t, the kernel has degree at most t - 1, and is constant if t <= r (DISC-16)."""
    for smoothness in range(1, 9):
        r, _ = kernel_orders(smoothness, 1)
        assert r == math.ceil((smoothness + 3) / 2)
        for size in range(1, 30):
            r, terms = kernel_orders(smoothness, size)
            assert r * (terms - 1) <= size - 1
            assert len(jackson_multiplier(smoothness, size)) == size
        np.testing.assert_array_equal(jackson_multiplier(smoothness, r), np.eye(r)[0])


def test_moments_of_the_kernel():
    steps = (np.arange(4096) + 0.5) * np.pi / 4096
    kernel = kernel_values(3, 13, steps)
    # The midpoint rule is not exact, because the periodic continuation of |s|^3 has a kink at pi.
    assert kernel_moment(3, 13) == pytest.approx(kernel @ steps**3 / kernel.sum(), rel=1e-6)


@pytest.mark.parametrize("smoothness", [0, 31, 1.5, None])
def test_errors(smoothness):
    with pytest.raises(ValueError, match="smoothness must be a whole number"):
        Jackson(smoothness)
    with pytest.raises(ValueError, match="smoothness must be a whole number"):
        jackson_multiplier(smoothness, 4)
