"""Johnson-Lindenstrauss maps: moments, the exact width identity and the distortion bound."""

import math

import numpy as np
import pytest

from geomdp.bodies.balls import mean_gaussian_norm
from geomdp.geometry import GaussianMap, JLLaw, RademacherMap, SparseMap
from geomdp.geometry.jl import jl_map
from tests.stats import mean_agrees, mean_at_most

LAWS = [GaussianMap(), RademacherMap(), SparseMap(), SparseMap(0.1)]


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_maps_follow_their_seed_and_refuse_bad_sizes(law) -> None:
    assert isinstance(law, JLLaw)
    assert law.draw(3, 7, rng=0).shape == (3, 7)
    assert np.array_equal(law.draw(3, 7, rng=0), law.draw(3, 7, rng=np.random.default_rng(0)))
    for name, shape in (("k", (0, 3)), ("m", (3, 0))):
        with pytest.raises(ValueError, match=f"{name} must be"):
            law.draw(*shape)


@pytest.mark.statistical
def test_gaussian_entries_have_variance_one_over_k() -> None:
    entries = jl_map(50, 200, rng=2).ravel()
    mean_agrees(entries, 0.0, level=5e-7)
    mean_agrees(entries**2, 1 / 50, level=5e-7)


def test_sign_entries_have_one_modulus() -> None:
    entries = RademacherMap().draw(9, 5, rng=3)
    assert set(np.unique(entries)) == {-1 / 3, 1 / 3}


@pytest.mark.statistical
@pytest.mark.parametrize("k", [1, 4, 30])
def test_expected_width_of_the_image_is_exact(k: int) -> None:
    # JL-L12: E w(A S) = (mu_k / sqrt k) w(S) for a Gaussian map A. Here w is the Gaussian width,
    # mu_k is the mean norm of a Gaussian vector g in R^k, S = {0, 1}^5 and w(S) = 5 / sqrt(2 pi).
    # The maximum of <g, A x> over x in S is the sum of the positive parts of A^T g.
    rng = np.random.default_rng(4)
    values = np.array(
        [np.maximum(jl_map(k, 5, rng).T @ rng.standard_normal(k), 0).sum() for _ in range(20_000)]
    )
    mean_agrees(values, mean_gaussian_norm(k) / math.sqrt(k) * 5 / math.sqrt(2 * math.pi))


@pytest.mark.statistical
def test_distortion_stays_below_its_bound() -> None:
    # JL-T9: for a set S of Gaussian width w(S), the largest distortion of a distance in S is on
    # average at most 6.5 w(S) / sqrt k. Here S is a set of 30 vectors of signs.
    rng = np.random.default_rng(5)
    signs = rng.choice([-1.0, 1.0], (30, 20))
    pairs = np.triu_indices(30, 1)
    edges = signs[pairs[0]] - signs[pairs[1]]
    lengths = np.linalg.norm(edges, axis=1)
    width = float((rng.standard_normal((20_000, 20)) @ signs.T).max(axis=1).mean())
    k = 25
    worst = [
        np.abs(np.linalg.norm(edges @ jl_map(k, 20, rng).T, axis=1) - lengths).max()
        for _ in range(1000)
    ]
    mean_at_most(worst, 6.5 * width / math.sqrt(k))


@pytest.mark.statistical
def test_sparse_entries() -> None:
    entries = SparseMap(0.2).draw(50, 400, rng=6)
    assert set(np.unique(entries)) == {-1 / math.sqrt(10), 0.0, 1 / math.sqrt(10)}
    mean_agrees((entries != 0).ravel().astype(float), 0.2, level=5e-7)
    mean_agrees(entries.ravel(), 0.0, level=5e-7)
    assert np.array_equal(np.abs(SparseMap(1.0).draw(4, 9, rng=0)), np.full((4, 9), 0.5))


@pytest.mark.statistical
@pytest.mark.parametrize("law", LAWS, ids=str)
def test_rows_are_isotropic_and_independent(law: JLLaw) -> None:
    """JL-D8: rows A_i, A_j of A have E A_i A_i^T = I / k and E A_i A_j^T = 0; here A is 2 x 5."""
    rng = np.random.default_rng(7)
    draws = np.array([law.draw(2, 5, rng).ravel() for _ in range(8000)])
    for i in range(10):
        for j in range(i):
            mean_agrees(draws[:, i] * draws[:, j], 0.0, level=1e-8)
        if not isinstance(law, RademacherMap):  # the squares of signs do not vary
            mean_agrees(draws[:, i] ** 2, 1 / 2, level=1e-8)
