"""Privacy parameters and answers at the limits of their ranges are taken, and refused beyond."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import geomdp as gd
from geomdp import mechanisms, workloads
from geomdp.mechanisms.base import LARGEST_ANSWER, LEAST_ANSWER
from geomdp.privacy import ZCDP, ApproxDP, Ledger, Privacy, PureDP
from geomdp.privacy.definitions import LARGEST_LOSS, LEAST_LOSS
from tests.hostile.constructors import CONSTRUCTORS

ABSURD = (5e-324, 1e-300, 1e-100, 0.99 * LEAST_LOSS, 1.01 * LARGEST_LOSS, 1e100, 1e300)
KINDS = {
    name: row.build
    for name, row in CONSTRUCTORS.items()
    if isinstance(row.build, type) and row.build.__module__.startswith("geomdp.mechanisms.")
    and "privacy" in row.good
}  # fmt: skip
#: Additive mechanisms, each with the guarantees that the tests use.
ADDITIVE: dict[str, tuple[Any, tuple[Privacy, ...]]] = {
    "Laplace": (mechanisms.Laplace, (PureDP(1.0), ZCDP(0.5))),
    "Ball": (mechanisms.Ball, (PureDP(1.0), ApproxDP(1.0, 1e-6))),
    "Ellipsoid": (mechanisms.Ellipsoid, (PureDP(1.0), ApproxDP(1.0, 1e-6))),
    "KNorm": (mechanisms.KNorm, (PureDP(1.0),)),
    "Recursive": (mechanisms.Recursive, (PureDP(1.0),)),
    "Hierarchical": (mechanisms.Hierarchical, (PureDP(1.0),)),
    "Matrix": (mechanisms.Matrix, (PureDP(1.0), ZCDP(0.5))),
    "Gaussian": (mechanisms.Gaussian, (ZCDP(0.5), ApproxDP(1.0, 1e-6))),
}
PAIRS = [(name, privacy) for name, (_, kinds) in ADDITIVE.items() for privacy in kinds]
SQUARE = np.array([[0.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]])
N = 6


def with_loss(privacy: Privacy, loss: float) -> Privacy:
    """The same definition of privacy with another epsilon or rho."""
    return replace(privacy, **{"rho" if isinstance(privacy, ZCDP) else "epsilon": loss})


def test_every_mechanism_with_a_constructor_is_tried():
    tried = {name.removeprefix("mechanisms.") for name in KINDS}
    assert {"Laplace", "ReportNoisyMax", "Covariance", "SmoothSummary", "SparseProject"} < tried
    assert {"NumericSparse", "OnlineConstruction", "IterativeConstruction"} < tried
    assert "AboveThreshold" in tried


@pytest.mark.parametrize("loss", ABSURD)
@pytest.mark.parametrize("name", KINDS)
def test_absurd_losses_are_refused_with_the_range(name, loss):
    good = CONSTRUCTORS[name].good
    with pytest.raises(ValueError, match=r"of a mechanism must be from 1e-12 to 1e\+12, got"):
        KINDS[name](**(good | {"privacy": with_loss(good["privacy"], loss)}))


@pytest.mark.parametrize("size", [1e-300, 0.49 * LEAST_ANSWER, 1.01 * LARGEST_ANSWER, 8e307])
@pytest.mark.parametrize(("name", "privacy"), PAIRS)
def test_absurd_answers_are_refused_with_the_range(name, privacy, size):
    with pytest.raises(ValueError, match=r"l1 norm from 1e-60 to 1e\+60, got .*another unit"):
        ADDITIVE[name][0](workloads.Explicit(size * SQUARE), n=N, privacy=privacy)


@pytest.mark.parametrize("size", [LEAST_ANSWER, LARGEST_ANSWER / 2])
@pytest.mark.parametrize("loss", [LEAST_LOSS, LARGEST_LOSS])
@pytest.mark.parametrize(("name", "privacy"), PAIRS)
def test_answers_at_the_ends_of_the_range_are_taken(name, privacy, loss, size):
    workload = workloads.Explicit(size * SQUARE)
    mechanism = ADDITIVE[name][0](workload, n=N, privacy=with_loss(privacy, loss))
    predicted = mechanism.predicted_rmse.value
    assert 0 < predicted < math.inf
    for rng in (None, 0):
        assert np.isfinite(mechanism.release(np.zeros(N, dtype=int), rng=rng).answers).all()


def test_nothing_is_spent_on_an_absurd_scale():
    with Ledger(PureDP(1e13)) as ledger:
        for loss in (1e-300, 1e13):
            with pytest.raises(ValueError, match="must be from 1e-12"):
                gd.AboveThreshold(0.0, privacy=PureDP(loss), ledger=ledger)
        assert not ledger.spends()
