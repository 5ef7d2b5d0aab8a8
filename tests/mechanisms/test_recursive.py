"""The recursive mechanism: never worse than K-norm, privacy of its levels, claims and bad input."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp import sample_uniform
from geomdp.advice import advise
from geomdp.audit import audit
from geomdp.bodies import Box, SlabBody, neighbour_body
from geomdp.bodies.sensitivity import exact_noise_bodies
from geomdp.mechanisms import KNorm, Recursive
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.noise.recursive import Variant
from geomdp.privacy import Adjacency, Exact, Heuristic, PureDP
from geomdp.workloads import Explicit, LinearMap, Marginals, Prefixes
from tests.mechanisms.catalogue import WORKLOADS

PURE = PureDP(1.0)
DECAY = 2.0 ** -np.arange(16)
STRETCHED = LinearMap(Marginals(16, 1), np.diag(DECAY))


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("name", WORKLOADS)
def test_never_worse_than_the_k_norm_of_the_best_exact_body(name, adjacency) -> None:
    setting = {"n": 20, "privacy": PURE, "adjacency": adjacency}
    recursive = Recursive(WORKLOADS[name], **setting)
    plain = KNorm(WORKLOADS[name], exact=True, **setting)
    assert recursive.guarantee.sampler == Exact()
    assert recursive.predicted_rmse.value <= plain.predicted_rmse.value * (1 + 1e-12)
    if len(recursive.noise.levels) == 1:
        assert recursive.predicted_rmse.value == pytest.approx(
            plain.predicted_rmse.value, rel=1e-12
        )


@pytest.mark.statistical
@pytest.mark.parametrize("variant", Variant)
@pytest.mark.parametrize("factor", [1.0, 2.0])
def test_audit_of_claim_and_of_half_the_noise(variant, factor) -> None:
    """The audit does not refute 1-DP. It refutes 1-DP for noise of half the scale."""
    workload = WORKLOADS["stretched"]
    mechanism = Recursive(workload, n=20, privacy=PureDP(factor), variant=variant)
    assert len(mechanism.noise.levels) == 2
    # The sums of these two neighbours are as far apart as possible in every level of the noise.
    first, second = np.zeros(4), np.array([1.0, 0.3, 0.1, 0.03])
    reference = Recursive(workload, n=20, privacy=PURE, variant=Variant.INTRINSIC).noise

    def score(outputs):
        shifts = np.broadcast_to(second, outputs.shape)
        # The ratio is constant on regions up to float64 errors. Rounding removes these errors.
        return np.round(reference.log_density_ratio(outputs, shifts), 9)

    found = audit(
        lambda trials, rng: first + mechanism.noise.sample(rng, trials),
        lambda trials, rng: second + mechanism.noise.sample(rng, trials),
        PURE,
        trials=200_000,
        score=score,
        rng=3,
    )
    assert found.refuted is (factor == 2.0)


@pytest.mark.statistical
def test_a_body_of_ones_own_drawn_by_chains_is_heuristic() -> None:
    """A box that is given as slabs has a level of two dimensions that Markov chains sample."""
    workload = LinearMap(Marginals(3, 1), np.diag([1.0, 0.1, 0.01]))
    slabs = SlabBody(np.eye(3), np.array([1.0, 0.1, 0.01]))
    mechanism = Recursive(workload, n=10, privacy=PURE, body=slabs)
    exact = Recursive(workload, n=10, privacy=PURE, body=Box.centred([1.0, 0.1, 0.01]))
    assert isinstance(mechanism.guarantee.sampler, Heuristic)
    assert str(mechanism.guarantee).startswith("heuristic")
    assert str(exact.guarantee).startswith("1-DP, replace-one")
    estimated = mechanism.predicted_rmse
    assert 0 < estimated.stderr < 0.02 * estimated.value
    # Both mechanisms find the same levels, up to the errors of estimated axes.
    assert estimated.value == pytest.approx(exact.predicted_rmse.value, rel=0.05)
    with pytest.raises(ValueError, match="built with a `body`"):
        mechanism.with_workload(workload)


def test_bad_parameters() -> None:
    with pytest.raises(ValueError, match="variant"):
        Recursive(Prefixes(4), n=7, privacy=PURE, variant="A")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="body must contain all differences"):
        Recursive(Marginals(2, 1), n=7, privacy=PURE, body=Box.centred([1.0, 0.9]))


def test_advice_names_it_only_where_it_splits() -> None:
    chosen = advise(STRETCHED, n=100, privacy=PURE, exact_only=True)
    rows = chosen.table.set_index("mechanism")
    assert rows.predicted_rmse["Recursive"] < 0.5 * rows.predicted_rmse["KNorm(exact=True)"]
    assert isinstance(additive_within(chosen.best), Recursive)
    other = advise(Marginals(3, 1), n=100, privacy=PURE, exact_only=True).table
    assert "only one level" in other.set_index("mechanism").why["Recursive"]


@pytest.mark.parametrize("adjacency", Adjacency)
def test_spoiled_simplices_anywhere(monkeypatch, adjacency) -> None:
    def spoiled(points):
        raise ArithmeticError("simplices have another volume than their hull")

    workload = Explicit(np.random.default_rng(1).standard_normal((2, 6)))
    monkeypatch.setattr("geomdp.bodies.vpolytope.triangulate", spoiled)
    assert "triangulated neighbour body" not in {
        named.name for named in exact_noise_bodies(workload, adjacency)
    }
    polygon = neighbour_body(workload, adjacency)
    assert sample_uniform(polygon, 8, rng=0).points.shape == (8, 2)
    setting = {"n": 10, "privacy": PURE, "adjacency": adjacency}
    for mechanism in (KNorm(workload, exact=True, **setting), Recursive(workload, **setting)):
        assert mechanism.guarantee.sampler == Exact()
