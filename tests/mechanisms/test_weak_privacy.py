"""An epsilon or rho above 10 gives one warning, where the library is called, but no simulation."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import geomdp as gd
from geomdp.mechanisms import AllParities, MultiplicativeWeights

WEAK, STRONG = gd.PureDP(10.5), gd.PureDP(10.0)
REALS = pd.DataFrame({"a": np.arange(8.0), "b": np.arange(8.0)})
BOUNDS = gd.data.Schema([gd.data.RealColumn(name, (0, 8)) for name in REALS])
CALLS: dict[str, Callable[[gd.PureDP, int | None], object]] = {
    "additive": lambda privacy, rng: gd.mechanisms.Laplace(
        gd.workloads.Histogram(2), n=2, privacy=privacy
    ).release([0, 1], rng),
    "smooth": lambda privacy, rng: gd.SmoothSummary(
        1, n=2, smoothness=2, privacy=privacy, degree=3
    ).release(np.zeros((2, 1)), rng),
    "sparse": lambda privacy, rng: gd.SparseProject(
        n=2, sparsity=1, queries=1, privacy=gd.ZCDP(privacy.epsilon), rows=64
    ).release([1, 2], rng),
    "iterative": lambda privacy, rng: gd.IterativeConstruction(
        MultiplicativeWeights(4), AllParities(2), n=10**6, privacy=privacy
    ).release(np.zeros(10**6, dtype=int), rng),
    "covariance": lambda privacy, rng: gd.tabulation.covariance(
        REALS, BOUNDS, privacy=privacy, rng=rng
    ),
    "tables": lambda privacy, rng: gd.release(
        pd.DataFrame({"x": [True, False]}), gd.data.Schema.from_dict({"x": bool}), "marginals:1",
        privacy=privacy, rng=rng,
    ),
    "threshold": lambda privacy, rng: gd.AboveThreshold(0.0, privacy=privacy, rng=rng),
    "online": lambda privacy, rng: gd.OnlineConstruction(
        MultiplicativeWeights(4), n=10**6, queries=2, privacy=privacy, rng=rng
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_only_unseeded_releases_with_a_large_epsilon_warn(
    name: str, recwarn: pytest.WarningsRecorder
) -> None:
    CALLS[name](WEAK, 0)
    CALLS[name](STRONG, None)
    assert not recwarn.list
    with pytest.warns(UserWarning, match=r"(epsilon|rho) 10\.5 protects little") as warned:
        CALLS[name](WEAK, None)
    assert [warning.filename for warning in warned] == [__file__]


def test_an_error_comes_before_the_warning() -> None:
    with pytest.raises(ValueError, match="records must number n = 3, got 2"):
        gd.mechanisms.Laplace(gd.workloads.Histogram(2), n=3, privacy=WEAK).release([0, 1])
