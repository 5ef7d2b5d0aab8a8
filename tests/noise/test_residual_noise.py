"""Noise on residuals of tables: comparison with mpmath, and a scale for each set of columns."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from geomdp.noise import gaussian
from geomdp.noise.gaussian import ResidualNoise, near_residuals, residual_numbers, residual_vector
from geomdp.noise.rounding import Draw, Numbers, Rounded, UniformBits
from geomdp.workloads import MarginalTables
from geomdp.workloads.structure import Column, Residuals, categories
from tests.noise.exact.reference import REFERENCE_BITS, Reference, nearest, seeded

#: The residuals of the number of records, of three columns and of three pairs of columns have
#: 1 + 4 + 5 coordinates.
RESIDUALS = Residuals(MarginalTables([2, 3, 2], 2))
SCALES = np.array([0.0, 2.0, 3.0, 0.7, 1.5, 0.9, 4.0])

#: A column of four levels whose noise is a triangular matrix times three variables.
ROOTED = Column(4, root=np.array([[1.0, 0, 0], [0.3, 1.1, 0], [1 / 3, -0.7, 1e-3]]))


def check_against_mpmath(kinds, widths, coordinates) -> None:
    """The noise is equal to `coordinates` of Gaussian variables, rounded by mpmath at 400 bits.

    There is an array of `widths` variables for each scale.
    """
    scales, grid = np.array([0.7, 12.5]), 11
    vector, near = residual_vector(kinds, scales), near_residuals(kinds, scales)
    for seed in range(5):
        with mpmath.workprec(REFERENCE_BITS):
            drawn = np.array(Reference(seeded(seed)).gaussians(2 * math.prod(widths)), dtype=object)
            drawn = [mpf(x) * own for x, own in zip(scales, drawn.reshape(2, *widths), strict=True)]
            expected = nearest([x for own in drawn for x in coordinates(own).ravel()], grid)
        assert Rounded([Numbers(vector, near)], grid).draw(seeded(seed)) == expected
        assert Rounded([Numbers(vector)], grid).draw(seeded(seed)) == expected


def differences(cells):
    """The first cell of each row minus every other."""
    return cells[:, :1] - cells[:, 1:]


def test_the_noise_is_that_of_the_proof():
    """The columns have 2, 3 and 4 levels: 3 x 4 variables give 2 x 3 coordinates."""
    kinds = tuple(map(categories, (2, 3, 4)))
    check_against_mpmath(kinds, (3, 4), lambda cells: differences(differences(cells.T).T))


def test_the_noise_of_a_column_with_a_root_is_that_of_the_proof() -> None:
    """The columns have 4, 2 and 3 levels: 3 x 3 variables give 3 x 2 coordinates."""
    root = np.array([[mpf(x) for x in row] for row in ROOTED.root.tolist()], dtype=object)
    kinds = (ROOTED, categories(2), categories(3))
    check_against_mpmath(kinds, (3, 3), lambda cells: differences(root @ cells))


@pytest.mark.parametrize("scales", [[-1.0] + [1.0] * 6, [math.nan] * 7, [0.0] * 7])
def test_scales_must_be_at_least_0_and_one_above_it(scales: list[float]) -> None:
    with pytest.raises(ValueError, match="scales"):
        ResidualNoise(RESIDUALS, np.array(scales))
    noise = ResidualNoise(RESIDUALS, np.array([0.0] * 6 + [1.0]))
    assert repr(noise) == "ResidualNoise(on 1 sets of columns, in R^16)"
    assert noise.second_moment().value > 0


@pytest.mark.parametrize("rooted", [False, True])
def test_float_errors_are_proved(rooted):
    """The exact value differs from the float value by at most the stated error."""
    first = ROOTED if rooted else categories(3)
    kinds, scales = (first, categories(5)), np.array([1.0, 1e-3, 1e3])
    near, exact = near_residuals(kinds, scales), residual_vector(kinds, scales)
    for seed in range(20):
        bits = UniformBits(seeded(seed))
        values, errors = near.evaluate(bits.first_words(near.count))
        for value, error, ball in zip(values, errors, exact(Draw(bits, 3)), strict=True):
            assert abs(float(ball.mid()) - value) <= error
            assert error <= 1e-9


@pytest.mark.parametrize("block", [1, 3, gaussian.BLOCK])
def test_each_set_of_columns_has_a_scale_of_its_own(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the same bits, doubling the scale of a set doubles the noise of this set only."""
    monkeypatch.setattr(gaussian, "BLOCK", block)

    def draw(scales: np.ndarray, grid: int = 30) -> np.ndarray:
        return np.array(
            Rounded(residual_numbers(ResidualNoise(RESIDUALS, scales)), grid).draw(seeded(7))
        )

    once = draw(SCALES)
    assert len(once) == RESIDUALS.dimension
    np.testing.assert_array_equal(draw(2 * SCALES, 29), once)
    for group in RESIDUALS.groups:
        for i in range(group.count):
            own = np.zeros(RESIDUALS.dimension, dtype=bool)
            own[group.start + i * group.size : group.start + (i + 1) * group.size] = True
            changed = np.where(np.arange(len(SCALES)) == group.first + i, 2 * SCALES, SCALES)
            found = draw(changed)
            np.testing.assert_array_equal(found[~own], once[~own])
            assert (np.abs(found[own] - 2 * once[own]) <= 1).all()
            assert (once[own] == 0).all() == (SCALES[group.first + i] == 0)


def test_density_ratios_are_those_of_a_gaussian_with_the_covariance() -> None:
    """The log-density at x is -<x, S^+ x> / 2 plus a constant.

    S^+ is the pseudo-inverse of the covariance S, and x is in the span of the noise.
    """
    noise, rng = ResidualNoise(RESIDUALS, SCALES), np.random.default_rng(1)
    inverse = np.linalg.pinv(noise.covariance(), rcond=1e-10, hermitian=True)
    points, shifts = noise.sample(rng, 20), noise.sample(rng, 20)
    losses = [((x @ inverse) * x).sum(axis=1) / 2 for x in (points, points - shifts)]
    found = noise.log_density_ratio(points, shifts)
    np.testing.assert_allclose(found, losses[1] - losses[0], rtol=1e-8, atol=1e-10)
