"""Releases keep the noisy values from which post-processing computed the answers."""

from __future__ import annotations

import numpy as np
import pytest

import geomdp as gd
from geomdp._numerics.linalg import svec
from geomdp.mechanisms import Mechanism

PURE, N = gd.PureDP(1.0), 40
PREFIXES = gd.workloads.Prefixes(6)
ELEMENTS = np.arange(N) % 6
LAPLACE = gd.mechanisms.Laplace(PREFIXES, n=N, privacy=PURE)
POINTS = np.random.default_rng(0).uniform(-0.5, 0.5, (N, 3))

#: Post-processed mechanisms with their records.
PROCESSED: dict[str, tuple[Mechanism, np.ndarray]] = {
    "projected": (gd.mechanisms.Projected(LAPLACE), ELEMENTS),
    "fitted": (gd.mechanisms.Fitted(LAPLACE), ELEMENTS),
    "shrunk": (gd.mechanisms.Shrunk(LAPLACE), ELEMENTS),
    "JL": (gd.mechanisms.JL(LAPLACE, 3, rng=0), ELEMENTS),
    "second moment": (
        gd.mechanisms.SecondMoment(gd.workloads.SecondMoment(3), n=N, privacy=PURE),
        POINTS,
    ),
}


@pytest.mark.parametrize("seed", [0, None])
@pytest.mark.parametrize("name", list(PROCESSED))
def test_answers_are_the_processed_noisy_values(name: str, seed: int | None) -> None:
    mechanism, records = PROCESSED[name]
    release = mechanism.release(records, rng=seed)
    assert release.noisy is not None
    np.testing.assert_array_equal(mechanism.process(release.noisy), release.answers)
    again = mechanism.release(records, rng=1)
    assert again.noisy is not None
    assert (again.noisy != release.noisy).any()


def test_noisy_values_are_those_of_the_inner_mechanism() -> None:
    alone = LAPLACE.release(ELEMENTS, rng=3)
    np.testing.assert_array_equal(alone.answers, alone.noisy)
    for kind in (gd.mechanisms.Projected, gd.mechanisms.Fitted, gd.mechanisms.Shrunk):
        release = kind(LAPLACE).release(ELEMENTS, rng=3)
        np.testing.assert_array_equal(release.noisy, alone.answers)


@pytest.mark.parametrize("seed", [0, None])
def test_a_covariance_keeps_its_noisy_moments(seed: int | None) -> None:
    """`noisy` has the mean, then the second moments. For a large epsilon, both are nearly exact."""
    workload = gd.workloads.SecondMoment(3)
    precise = gd.mechanisms.Covariance(workload, n=N, privacy=gd.PureDP(1e9))
    release = precise.release(POINTS, rng=seed)
    assert release.noisy is not None
    true = np.concatenate([POINTS.mean(axis=0), svec((POINTS.T @ POINTS)[None])[0] / N])
    np.testing.assert_allclose(release.noisy, true, atol=1e-6)
    noisy = gd.mechanisms.Covariance(workload, n=N, privacy=PURE).release(POINTS, rng=seed).noisy
    assert noisy is not None
    assert (noisy != true).all()
