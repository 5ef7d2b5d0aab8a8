"""Audits of mechanisms: they find the worst neighbours and refute only claims of faulty noise."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from geomdp import audit, mechanisms
from geomdp.audit.mechanism import farthest_changes, worst_changes
from geomdp.noise import LaplaceNoise
from geomdp.privacy import ZCDP, Adjacency, Exact, Guarantee, PureDP
from geomdp.workloads import Explicit, Marginals, Prefixes, explicit_answers

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
ONE = PureDP(1.0)
SQUARE = Marginals(2, 1)


@dataclass(frozen=True)
class Changed:
    """Noise whose draws are changed."""

    noise: LaplaceNoise
    change: Callable

    def sample(self, rng, size):
        return self.change(self.noise.sample(rng, size))


def audited(mechanism, change, trials, seed):
    return audit.audit_noise(
        Changed(mechanism.noise, change),
        mechanism.workload,
        mechanism.guarantee,
        trials=trials,
        density=audit.stated_density(mechanism.noise),
        rng=seed,
    )


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("workload", [SQUARE, Prefixes(5), Marginals(3, 2)], ids=repr)
def test_changes_are_vertices_of_the_neighbour_body(workload, adjacency):
    directions = np.random.default_rng(0).standard_normal((50, workload.n_queries))
    found = farthest_changes(workload, adjacency, directions)
    answers = explicit_answers(workload)
    if adjacency is REPLACE:
        all_changes = (answers[:, None] - answers[None]).reshape(-1, workload.n_queries)
    else:
        all_changes = np.concatenate([answers, -answers])
    best = (directions @ all_changes.T).max(axis=1)
    np.testing.assert_allclose((directions * found).sum(axis=1), best, rtol=1e-12)
    assert all((np.abs(all_changes - change).max(axis=1) < 1e-12).any() for change in found)


def test_the_worst_change_comes_first():
    """The second query has 100 times less noise, so the two worst changes move its answer."""
    rng = np.random.default_rng(0)
    draws = rng.standard_normal((5000, 2)) * [1.0, 0.01]
    changes = worst_changes(SQUARE, REPLACE, draws, 3, rng)
    assert (changes[:2, 1] != 0).all()
    # If both queries get the same draw, noise hides equal changes of both answers, but no others.
    shared = draws[:, [0, 0]]
    assert np.ptp(worst_changes(SQUARE, REPLACE, shared, 3, rng)[0]) > 0
    with pytest.raises(ValueError, match="workload must not be constant"):
        worst_changes(Explicit(np.zeros((2, 3))), REPLACE, draws, 3, rng)


FAULTS = {
    "no noise": lambda draws: 0 * draws,
    "dead coordinate": lambda draws: draws * [1.0, 0.0],
    "shared draw": lambda draws: draws[:, [1, 1]],
    "wrong subspace": lambda draws: draws @ [[0.36, 0.48], [0.48, 0.64]],
    "two thirds": lambda draws: draws * (2 / 3),
}
KINDS = {
    "Laplace": (mechanisms.Laplace, ONE),
    "KNorm": (lambda *args, **settings: mechanisms.KNorm(*args, exact=True, **settings), ONE),
    "Recursive": (mechanisms.Recursive, ONE),
    "Gaussian": (mechanisms.Gaussian, ZCDP(0.5)),
}


def built(name, adjacency):
    kind, privacy = KINDS[name]
    return kind(SQUARE, n=10, privacy=privacy, adjacency=adjacency)


@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_planted_faults_are_refuted(name, fault, adjacency):
    trials = 100_000 if fault == "two thirds" else 3000
    assert audited(built(name, adjacency), FAULTS[fault], trials, seed=1).refuted


@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_correct_noise_is_not_refuted(name, adjacency, seed):
    found = audit.audit_mechanism(built(name, adjacency), trials=40_000, rng=seed)
    assert not found.refuted
    # For pure noise, the audit proves a privacy loss above 0.6 of the claimed epsilon = 1.
    assert found.epsilon_lower_bound > (0.6 if name != "Gaussian" else 0.3)
    assert "sums that differ by" in found.pair


@pytest.mark.statistical
def test_a_millionth_of_the_noise_in_a_long_workload():
    """Noise that is 0 or a millionth of its size on only one of 45 queries is refuted."""
    M = mechanisms.Laplace(Marginals(10, 2), n=10, privacy=ONE)
    alive = np.ones(M.workload.n_queries)
    alive[7] = 0
    found = audited(M, lambda draws: draws * alive, 2000, seed=0)
    assert found.refuted
    assert "nearer to the first mean" in found.event
    alive[7] = 1e-6
    assert audited(M, lambda draws: draws * alive, 2000, seed=0).refuted
    assert not audited(M, lambda draws: draws, 2000, seed=0).refuted


@pytest.mark.statistical
@pytest.mark.parametrize("factor", [1.0, 0.4])
def test_noise_without_density_is_audited_by_a_classifier(factor):
    M = mechanisms.Cone(SQUARE, n=10, privacy=ONE)
    assert audit.stated_density(M.noise) is None
    found = audit.audit_noise(
        Changed(M.noise, lambda draws: factor * draws),
        M.workload,
        M.guarantee,
        trials=20_000,
        learners=(audit.CLASSIFIER,),
        rng=0,
    )
    assert found.refuted is (factor < 1)


class Leaky(mechanisms.Projected):
    """Claims the guarantee of its noise but skips the noise of the second answer."""

    def privatise(self, sums, rng):
        noise = self.inner.noise.sample(rng, 1)[0] * [1.0, 0.0]
        return self.process((sums + noise) / self.n)


@pytest.mark.statistical
@pytest.mark.parametrize("adjacency", Adjacency)
def test_other_mechanisms_run_on_neighbouring_records(adjacency):
    inner = mechanisms.Laplace(SQUARE, n=10, privacy=ONE, adjacency=adjacency)
    found = audit.audit_mechanism(mechanisms.Projected(inner), trials=2000, rng=0)
    assert not found.refuted
    assert found.pair.startswith("record")
    assert audit.audit_mechanism(Leaky(inner), trials=2000, rng=0).refuted


@pytest.mark.statistical
def test_sums_that_are_not_the_answers():
    M = mechanisms.PairMarginals(Marginals(3, 2), n=10, privacy=ONE)
    assert not audit.audit_mechanism(
        M, trials=1000, without_density=(audit.CLASSIFIER,), rng=0
    ).refuted


def test_input_is_checked():
    M = mechanisms.Laplace(SQUARE, n=10, privacy=ONE)
    with pytest.raises(ValueError, match="trials must be a whole number, at least 16"):
        audit.audit_mechanism(M, trials=15)
    with pytest.raises(ValueError, match="level must be above 0"):
        audit.audit_mechanism(M, trials=100, level=0.0)
    large = mechanisms.Laplace(Prefixes(3000), n=10, privacy=ONE)
    with pytest.raises(ValueError, match=r"number of queries must be .* at most 2048, got 3000"):
        audit.audit_mechanism(large, trials=100)
    guarantee = Guarantee(ONE, REPLACE, Exact())
    with pytest.raises(ValueError, match=r"draws of shape \(50, 2\), got \(50, 3\)"):
        audit.audit_noise(LaplaceNoise(3, 1.0), SQUARE, guarantee, trials=100)
