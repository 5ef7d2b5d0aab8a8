"""Unseeded sparse projections: rounded noise is added to the whole numbers T^(1/2) A D.

A is the random sign matrix with T rows and entries +-T^(-1/2). D is the histogram of the records.
"""

from __future__ import annotations

import math
import os
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from geomdp.mechanisms import GaussianRows, LaplaceRows, SparseProject
from geomdp.mechanisms.sparse_project import ROWS, RoundedRows
from geomdp.noise.gaussian import proved_shortcut_scale
from geomdp.privacy import ZCDP, ApproxDP, shortcut_step_epsilon
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, rounded_arithmetic
from tests.noise.exact.reference import REFERENCE_BITS, Reference, nearest, seeded
from tests.stats import LEVEL, ks_same, mean_agrees

APPROX = ApproxDP(0.9, 1e-5)
SETTINGS = [(GaussianRows(), ZCDP(0.4)), (GaussianRows(), APPROX), (LaplaceRows(), APPROX)]
RECORDS = [3, 3, 5, 9, 2**40]


@pytest.fixture(params=SETTINGS, ids=str)
def project(request):
    noise, privacy = request.param
    return SparseProject(
        n=len(RECORDS), sparsity=1, queries=1, privacy=privacy, rows=128, noise=noise, rng=1
    )


def whole_sums(project, records):
    """T^(1/2) A D, as the sum of a column of T^(1/2) A for each record."""
    return np.rint(project.signs.columns(np.array(records)).sum(axis=0) * math.sqrt(128))


def test_the_vector_is_the_exact_sum_of_whole_numbers_and_rounded_noise(project, monkeypatch):
    """The expected vector is computed by mpmath at 400 bits."""
    scale = project.noise.proved_scale(project.guarantee.privacy, 2, 128)
    kind = "laplaces" if isinstance(project.noise, LaplaceRows) else "gaussians"
    with mpmath.workprec(REFERENCE_BITS):
        draws = [mpf(scale) * z for z in getattr(Reference(seeded(1)), kind)(128)]
        multiples = nearest(draws, project.grid)
    unit, sums = 1 << project.grid, whole_sums(project, RECORDS).tolist()
    pairs = zip(sums, multiples, strict=True)
    expected = [float(Fraction(int(s) * unit + j, unit)) for s, j in pairs]
    # Compilation may ask the operating system for bits. The lines above compiled all functions.
    monkeypatch.setattr(os, "urandom", seeded(1))
    found = project.release(RECORDS).vector
    np.testing.assert_array_equal(found, np.array(expected) / math.sqrt(128))


def test_the_record_names_the_grid_and_a_seeded_one_does_not(project):
    assert project.release(RECORDS).guarantee == project.guarantee
    assert project.guarantee.arithmetic == rounded_arithmetic(project.grid)
    assert project.release(RECORDS, rng=0).guarantee.arithmetic == FLOAT64_CAVEAT


@pytest.mark.statistical
def test_releases_have_the_law_of_seeded_ones(project):
    truth = whole_sums(project, RECORDS) / math.sqrt(128)
    found = np.array([project.release(RECORDS).vector for _ in range(1500)])
    rng = np.random.default_rng(2)
    others = np.array([project.release(RECORDS, rng=rng).vector for _ in range(1500)])
    mean_agrees((found - truth) ** 2, np.full(128, project.sigma**2))
    for row in range(0, 128, 16):
        ks_same(found[:, row], others[:, row], level=LEVEL / 8)
    # The noise on consecutive rows is uncorrelated.
    mean_agrees((found - truth)[:, 1:] * (found - truth)[:, :-1], np.zeros(127))


def check_scales_suffice(change):
    """Check scales for zCDP with exact rationals, and Laplace scales with mpmath at 400 bits."""
    rng = np.random.default_rng(0)
    for _ in range(200):
        rows, rho = 1 << int(rng.integers(6, 25)), float(10 ** rng.uniform(-3, 1))
        scale = GaussianRows().proved_scale(ZCDP(rho), change, rows)
        assert 2 * Fraction(rho) * Fraction(scale) ** 2 >= 4 * rows
        privacy = ApproxDP(float(rng.uniform(0.01, 1)), float(10 ** rng.uniform(-12, -1)))
        scale = LaplaceRows().proved_scale(privacy, change, rows)
        with mpmath.workprec(REFERENCE_BITS):
            step = mpf(privacy.epsilon) / mpmath.sqrt(-8 * rows * mpmath.log(mpf(privacy.delta)))
            assert mpf(scale) * step >= 2
            assert mpf(scale) * step <= 2 * (1 + 1e-14)


def test_scales_are_proved_and_half_the_change_is_caught():
    check_scales_suffice(2)
    with pytest.raises(AssertionError):
        check_scales_suffice(1)


def test_a_shortcut_rounded_to_nearest_is_not_enough():
    """Some scales rounded to nearest are too small, and only there the proved scale is larger.

    The least scale that is enough is computed by mpmath at 400 bits.
    """
    rng = np.random.default_rng(1)
    short = 0
    for _ in range(200):
        privacy = ApproxDP(float(rng.uniform(0.01, 1)), float(10 ** rng.uniform(-12, -1)))
        nearest_scale = 1 / shortcut_step_epsilon(privacy, 64)
        proved = proved_shortcut_scale(1, privacy, 64)
        with mpmath.workprec(REFERENCE_BITS):
            least = mpmath.sqrt(-8 * 64 * mpmath.log(mpf(privacy.delta))) / mpf(privacy.epsilon)
            assert mpf(proved) >= least
            if mpf(nearest_scale) >= least:
                assert proved == nearest_scale
            else:
                assert proved <= nearest_scale * (1 + 1e-15)
                short += 1
    assert short > 0


def test_a_record_moves_every_whole_number_by_one():
    project = SparseProject(n=3, sparsity=1, queries=1, privacy=ZCDP(0.5), rows=256, rng=0)
    sums = [project._sums(records)[1] for records in ([1, 2, 3], [1, 2], [1, 2, 8])]
    assert (sums[0] == np.rint(sums[0])).all()
    assert (np.abs(sums[0] - sums[1]) == 1).all()
    assert np.abs(sums[0] - sums[2]).max() == 2


def check_parts_are_independent(rounded):
    first, second = rounded.draw()
    assert len(first) == len(second) == ROWS
    assert (first == second).mean() < 0.1


def test_parts_of_many_rows_are_drawn_anew(monkeypatch):
    check_parts_are_independent(RoundedRows(GaussianRows(), ZCDP(0.5), 2, 2 * ROWS))

    class Shared(RoundedRows):
        """A planted defect: all parts share one draw."""

        def draw(self):
            return [np.array(self._part.draw())] * (self._rows // ROWS)

    with pytest.raises(AssertionError):
        check_parts_are_independent(Shared(GaussianRows(), ZCDP(0.5), 2, 2 * ROWS))


def test_neighbours_reach_the_same_vectors():
    """If the noise cancels the difference of two sums, the released floats are equal."""
    rounded = RoundedRows(GaussianRows(), ZCDP(0.5), 1, 64)
    first, second = np.arange(64.0), np.arange(64.0) + 1
    unit = 1 << rounded.grid
    for bits in range(4, 60):
        noise = np.random.default_rng(bits).integers(-(2**bits), 2**bits, 64)
        np.testing.assert_array_equal(
            rounded.released(first, [noise]), rounded.released(second, [noise - unit])
        )
