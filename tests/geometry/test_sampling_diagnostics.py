"""Diagnostics agree with arviz, reveal known faults of chains, and refuse bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from geomdp._typing import FloatArray
from geomdp.geometry.sampling import bulk_ess, split_r_hat

with warnings.catch_warnings():
    # arviz announces its next version on import.
    warnings.simplefilter("ignore")
    import arviz


def autoregressive(chains: int, draws: int, phi: float, seed: int) -> FloatArray:
    """Coordinates 0 to 4 of x_t = phi x_(t-1) + e_t. One chain is shifted in 3, one scaled in 4."""
    noise = np.random.default_rng(seed).standard_normal((chains, draws, 5))
    values = noise.copy()
    for t in range(1, draws):
        values[:, t] = phi * values[:, t - 1] + noise[:, t]
    values[0, :, 3] += 1
    values[-1, :, 4] *= 3
    values[:, :, 2] = np.round(values[:, :, 2])  # rounding makes ties
    return values


@pytest.mark.parametrize("phi", [-0.9, -0.5, 0.0, 0.5, 0.95])
@pytest.mark.parametrize(
    ("chains", "draws"),
    [(2, 4), (2, 5), (2, 6), (2, 7), (2, 8), (2, 9), (4, 10), (3, 11), (8, 50), (4, 333)],
)
def test_agrees_with_arviz(chains, draws, phi):
    values = autoregressive(chains, draws, phi, seed=chains * draws)
    columns = [values[:, :, k] for k in range(5)]
    np.testing.assert_allclose(split_r_hat(values), [arviz.rhat(c) for c in columns], rtol=1e-12)
    np.testing.assert_allclose(bulk_ess(values), [arviz.ess(c) for c in columns], rtol=1e-10)


def test_one_chain_has_an_effective_size():
    values = autoregressive(1, 100, 0.5, seed=1)
    expected = [arviz.ess(values[:, :, k]) for k in range(5)]
    np.testing.assert_allclose(bulk_ess(values), expected, rtol=1e-10)


def test_independent_draws_pass_and_faults_show():
    rng = np.random.default_rng(2)
    good = rng.standard_normal((8, 500, 1))
    shifted, spread, drifting = good.copy(), good.copy(), good.copy()
    shifted[0] += 1
    spread[0] *= 4
    drifting += np.linspace(0, 2, 500)[:, None]
    assert split_r_hat(good)[0] < 1.01
    for bad in (shifted, spread, drifting):
        assert split_r_hat(bad)[0] > 1.04
    assert bulk_ess(good)[0] > 3000
    assert bulk_ess(drifting)[0] < 500


def test_chains_that_stand_still():
    stuck = np.tile(np.arange(3.0)[:, None, None], (1, 10, 2))
    stuck[:, :, 1] = 5.0
    r_hat = split_r_hat(stuck)
    assert r_hat[0] == np.inf
    assert np.isnan(r_hat[1])
    assert bulk_ess(stuck)[1] == 30


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ((1, 10, 2), "at least 2 chains of at least 4 draws, got 1 chains of 10"),
        ((3, 3, 2), "at least 2 chains of at least 4 draws, got 3 chains of 3"),
        ((3, 10), "draws must have 3 axes"),
    ],
)
def test_too_little_to_judge(shape, message):
    with pytest.raises(ValueError, match=message):
        split_r_hat(np.zeros(shape))


def test_draws_must_be_finite():
    values = autoregressive(2, 10, 0.0, seed=4)
    values[1, 2, 3] = np.nan
    with pytest.raises(ValueError, match="draws must be finite"):
        bulk_ess(values)
