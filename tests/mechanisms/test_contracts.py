"""Every offline mechanism is private, predicts its error, and checks records before it draws."""

from __future__ import annotations

import inspect
from pathlib import Path as FilePath

import numpy as np
import pytest
from scipy.special import ndtr

import geomdp.mechanisms as mechanisms
from geomdp.audit import audit
from geomdp.mechanisms import JL, AdditiveMechanism, Coarse, Cone, Mechanism, PredictionKind
from geomdp.noise import KNormNoise, LaplaceNoise
from geomdp.noise.knorm import ball_rate
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Exact, Heuristic, PureDP
from geomdp.workloads import Explicit, Marginals, explicit_answers
from tests.mechanisms.catalogue import (
    ADDITIVE,
    ELSEWHERE,
    ENTRIES,
    MECHANISMS,
    OWN,
    POST_PROCESSED,
    RELEASES,
    REPLACE_ONLY,
    WITHOUT,
    WORKLOADS,
    N,
    build,
    fresh,
    home,
)
from tests.mechanisms.test_exact_table import moves as changes
from tests.noise.test_ball_rate import ball_delta
from tests.stats import MINIMUM_SAMPLES, mean_agrees, mean_at_most

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE


class Untouchable(np.random.Generator):
    """A generator that can be passed to functions, but fails the test if it draws."""

    def __init__(self):
        super().__init__(np.random.PCG64(0))

    def __getattribute__(self, name):
        # `numpy.random.default_rng` looks for `capsule` to recognise a bit generator.
        if not name.startswith("_") and name not in ("capsule", "bit_generator"):
            raise AssertionError(f"the generator was asked for {name}")
        return super().__getattribute__(name)


def records_at(workload, places):
    """`N` records at one element ("vertex"), or at a mix of ten elements ("mix")."""
    elements, rng = workload.universe.elements(), np.random.default_rng(5)
    few = [0] if places == "vertex" else rng.permutation(len(elements))[:10]
    return elements[rng.choice(few, N)]


def squared_errors(mechanism, records, trials, rng):
    """Mean squared error per query (trials,) of releases, which are exact if `rng` is None."""
    # A mechanism may read the sums of other queries than it answers (`Coarse`).
    sums = (mechanism.measured if rng is None else mechanism.totals)(records).sums
    truth = mechanism.workload.totals(records).sums / mechanism.n
    if rng is None:
        errors = np.array([mechanism.private(None)(sums) - truth for _ in range(trials)])
    elif isinstance(mechanism, AdditiveMechanism) and trials > 2000:
        errors = mechanism.noise.sample(rng, trials) / mechanism.n
    else:
        errors = np.array([mechanism.privatise(sums, rng) - truth for _ in range(trials)])
    return (errors**2).mean(axis=1)


def test_every_exported_mechanism_is_in_the_catalogue():
    exported = {
        item
        for item in map(mechanisms.__dict__.get, mechanisms.__all__)
        if inspect.isclass(item) and issubclass(item, Mechanism) and not inspect.isabstract(item)
    }
    here = {entry.kind for entry in (MECHANISMS | OWN).values()}
    assert exported == here | set(ELSEWHERE)
    assert all(FilePath(__file__).with_name(file).exists() for file in ELSEWHERE.values())


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("name", ADDITIVE)
def test_noise_moves_the_sums_wherever_a_record_can_move_them(name, adjacency):
    """A direction without noise, like that of the number of records, would be published exactly."""
    mechanism = build(name, home(name), adjacency)
    moves = changes(explicit_answers(mechanism.workload), adjacency)
    basis = np.linalg.svd(moves)[2][: np.linalg.matrix_rank(moves)]
    variances = np.linalg.eigvalsh(basis @ mechanism.noise.covariance() @ basis.T)
    assert variances[0] > 1e-4 * variances[-1]


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.parametrize("name", [name for name in ADDITIVE if ADDITIVE[name].density])
def test_no_difference_of_neighbours_exceeds_the_budget(name, workload, adjacency):
    """Under pure DP, the density ratio of two neighbours never exceeds e^epsilon (JL-L14).

    Gaussian noise of standard deviation sigma, moved by v, is judged by s = |v| / sigma. Its rho is
    s^2 / 2, and its delta at epsilon is Phi(s/2 - eps/s) - e^eps Phi(-s/2 - eps/s) (Balle-Wang).
    The rho of Laplace noise is the sum of x + e^-x - 1 for x = |v_i| over the scale (X-TANH).
    For the noise of an ellipsoid, delta is integrated.
    """
    workload = WORKLOADS[workload]
    noise = build(name, workload, adjacency).noise
    moves = changes(explicit_answers(workload), adjacency)
    privacy = MECHANISMS[name].privacy
    points = noise.sample(np.random.default_rng(1), len(moves))
    ratios = noise.log_density_ratio(points, moves)
    # For K-norm noise and a move v, the log-ratio is largest at -v, where it is epsilon times the
    # gauge of v.
    along = noise.log_density_ratio(-moves, moves)
    match privacy:
        case PureDP(epsilon=epsilon):
            assert max(np.abs(ratios).max(), along.max()) <= epsilon * (1 + 1e-9)
        case ZCDP(rho=rho) if isinstance(noise, LaplaceNoise):
            x = np.abs(moves) / noise.scale
            assert (x + np.expm1(-x)).sum(axis=1).max() <= rho * (1 + 1e-9)
        # For Gaussian noise, s^2 / 2 is log f(0) - log f(-v), where f is its density.
        case ZCDP(rho=rho):
            at_zero = noise.log_density_ratio(np.zeros_like(moves), moves)
            assert at_zero.max() <= rho * (1 + 1e-9)
        case ApproxDP(epsilon=epsilon, delta=delta) if isinstance(noise, KNormNoise):
            # The noise of an ellipsoid: a linear map makes it that of a ball (X-ED).
            rate, dimension = noise.epsilon, noise.effective_dimension
            assert along.max() <= rate * (1 + 1e-9)
            assert ball_delta(dimension, rate, epsilon) <= delta
        case ApproxDP(epsilon=epsilon, delta=delta):
            at_zero = noise.log_density_ratio(np.zeros_like(moves), moves)
            s = np.sqrt(2 * at_zero[at_zero > 0])
            spent = ndtr(s / 2 - epsilon / s) - np.exp(epsilon) * ndtr(-s / 2 - epsilon / s)
            assert spent.max() <= delta * (1 + 1e-9)


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "workload", "adjacency", "exact"),
    [
        (name, workload, adjacency, False)
        for name, entry in ADDITIVE.items()
        for workload in dict.fromkeys(["one-way marginals", "flat", entry.home])
        if entry.density or workload != "flat"
        for adjacency in Adjacency
    ]
    + [(name, "one-way marginals", ADD, True) for name in ADDITIVE if name not in WITHOUT],
)
def test_exact_predictions_are_equalities(name, workload, adjacency, exact):
    """In float64, `squared_errors` draws the noise itself, so the records do not matter.

    Laws of exact releases under replace-one are in test_exact_table.py and test_few_queries.py.
    """
    mechanism = build(name, WORKLOADS[workload], adjacency)
    predicted = mechanism.predicted_rmse
    assert predicted.kind is PredictionKind.EXACT
    records = records_at(mechanism.workload, "mix")
    if exact:  # each release takes a millisecond
        squares = squared_errors(mechanism, records, MINIMUM_SAMPLES, None)
    else:
        trials = 2500 if isinstance(mechanism.guarantee.sampler, Heuristic) else 10_000
        squares = squared_errors(mechanism, records, trials, rng(name, "mix"))
    if predicted.stderr == 0:
        mean_agrees(squares, predicted.value**2)
    else:
        # Both sides are estimated. Their difference may be six standard errors, which a normal
        # variable exceeds with probability 2e-9.
        difference = squares.mean() - predicted.value**2
        stderr = np.hypot(
            squares.std() / len(squares) ** 0.5, 2 * predicted.value * predicted.stderr
        )
        assert abs(difference) <= 6 * stderr


#: Mechanisms whose prediction is itself a simulation.
ESTIMATED = {"KNorm", "TightCone"}


@pytest.mark.statistical
@pytest.mark.parametrize("name", [name for name in ADDITIVE if name not in ESTIMATED])
def test_exact_predictions_under_add_remove_are_errors_against_sums_over_n(name):
    """The number of records may differ from the declared n, as the truth is a sum divided by n."""
    mechanism = build(name, home(name), Adjacency.ADD_REMOVE)
    records = np.repeat(home(name).universe.elements_at(np.array([0])), 3 * N, axis=0)
    totals = home(name).totals(records)
    source = rng(name, "add")
    trials = MINIMUM_SAMPLES
    released = np.array([mechanism.release(records, rng=source).answers for _ in range(trials)])
    squares = ((released - totals.sums / mechanism.n) ** 2).mean(axis=1)
    mean_agrees(squares, mechanism.predicted_rmse.value**2)


def rng(*key):
    return np.random.default_rng([sum(map(ord, part)) for part in key])


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("workload", "data"), [("tables", "vertex"), ("tables", "mix"), ("flat", "mix")]
)
@pytest.mark.parametrize("name", POST_PROCESSED)
def test_upper_bounds_hold_for_every_data_set(name, workload, data):
    """Exact releases have the same law, as they are computed from the noisy answers alone."""
    mechanism = build(name, WORKLOADS[workload])
    assert mechanism.predicted_rmse.kind is PredictionKind.UPPER_BOUND
    records = records_at(mechanism.workload, data)
    for n in (N, 20 * N) if data == "vertex" else (N,):
        bigger = mechanism.with_n(n)
        copies = np.concatenate([records] * (n // N))
        squares = squared_errors(bigger, copies, 1000, rng(name, data))
        mean_at_most(squares, bigger.predicted_rmse.value**2)


@pytest.mark.parametrize("name", REPLACE_ONLY)
def test_mechanisms_without_a_bound_under_add_remove_are_refused(name):
    with pytest.raises(ValueError, match=r"needs replace-one, .* so no error bound holds"):
        build(name, home(name), ADD)


@pytest.mark.parametrize(("name", "adjacency"), RELEASES)
def test_releases_state_the_claim_and_depend_on_seed_and_records_alone(name, adjacency):
    mechanism = build(name, home(name), adjacency)
    guarantee, text = mechanism.guarantee, str(mechanism.guarantee)
    assert (guarantee.privacy, guarantee.adjacency) == (ENTRIES[name].privacy, adjacency)
    heuristic = isinstance(guarantee.sampler, Heuristic)
    assert heuristic or guarantee.sampler == Exact()
    assert text.startswith("heuristic" if heuristic else str(guarantee.privacy))
    assert adjacency.value in text
    records = mechanism.workload.universe.sample(N, 0)
    seeded = mechanism.release(records, rng=3)
    assert str(seeded.guarantee) == "seeded: no privacy claim"
    assert seeded.predicted_rmse == mechanism.predicted_rmse
    np.testing.assert_array_equal(mechanism.release(records, rng=3).answers, seeded.answers)
    chunks = mechanism.release(iter(np.array_split(records, 3)), rng=3).answers
    np.testing.assert_allclose(chunks, seeded.answers, rtol=1e-12, atol=1e-12)
    unseeded = mechanism.release(records)
    assert unseeded.guarantee == guarantee
    assert (unseeded.answers != seeded.answers).any()


def innermost(mechanism):
    """The additive mechanism inside a post-processed mechanism, or else the mechanism itself."""
    while hasattr(mechanism, "inner"):
        mechanism = mechanism.inner
    return mechanism


@pytest.mark.parametrize("name", MECHANISMS | OWN)
def test_with_n_shares_geometry_and_scales_the_noise(name):
    mechanism = build(name, home(name))
    twin = mechanism.with_n(10 * N)
    assert (mechanism.n, twin.n) == (N, 10 * N)
    assert twin.guarantee == mechanism.guarantee
    inner, twin_inner = innermost(mechanism), innermost(twin)
    assert twin_inner.noise is inner.noise
    np.testing.assert_allclose(
        twin_inner.predicted_rmse.value, inner.predicted_rmse.value / 10, rtol=1e-12
    )
    direct = fresh(name, home(name), n=10 * N)
    assert twin.predicted_rmse == direct.predicted_rmse
    records = home(name).universe.sample(10 * N, 1)
    answers = [mechanism.release(records, rng=3).answers for mechanism in (twin, direct)]
    np.testing.assert_array_equal(*answers)
    with pytest.raises(ValueError, match="n must be"):
        mechanism.with_n(0)


@pytest.mark.parametrize("name", MECHANISMS | OWN)
def test_nothing_is_left_to_set_up_once_the_ledger_has_paid(name):
    M = fresh(name, home(name))
    release_begins = (M.predicted_rmse, M.set_up(), M.totals(home(name).universe.sample(N, 0)))
    before = parts(M)
    M.privatise(release_begins[2].sums, np.random.default_rng(0))
    assert parts(M) == before


def parts(value: object, path: str = "M") -> dict[str, set[str]]:
    """Attributes of a mechanism and of the mechanisms inside it. Each cached result adds one."""
    found = {path: set(vars(value))}
    for key, inner in vars(value).items():
        if isinstance(inner, Mechanism):
            found |= parts(inner, f"{path}.{key}")
    return found


@pytest.mark.parametrize("adjacency", Adjacency)
# `Cone` accepts constant answers: it needs noise only if the number of records is private.
@pytest.mark.parametrize("name", [name for name in MECHANISMS if MECHANISMS[name].kind is not Cone])
def test_constant_workloads_are_refused(name, adjacency):
    constant = Explicit(np.zeros((3, 4)))
    with pytest.raises(ValueError, match=r"workload|dimension"):
        build(name, constant, adjacency)


#: The body is a square. Audits are sharp in low dimension, and projections have a closed form.
AUDITED = Marginals(2, 1)


def neighbours(mechanism):
    """Sums of two neighbouring data sets near the centre, with the largest privacy loss."""
    base, far = np.full(2, N / 2), np.ones(2)
    if isinstance(mechanism, JL):
        # The difference of corners that the random projection stretches most.
        far = np.where(mechanism.matrix[0] > 0, 1.0, -1.0)
    if mechanism.guarantee.adjacency is ADD:
        return base, base + far
    return base - far / 2, base + far / 2


def sampler(mechanism, sums):
    if isinstance(mechanism, AdditiveMechanism):
        return lambda trials, rng: sums + mechanism.noise.sample(rng, trials)
    return lambda trials, rng: np.array([mechanism.privatise(sums, rng) for _ in range(trials)])


#: Post-processed mechanisms that add noise to other sums than those of the queries. All others
#: compute their answers from the noisy answers of an audited mechanism, see `tests/laws`.
OTHER_SUMS = [name for name, entry in POST_PROCESSED.items() if entry.kind in (JL, Coarse)]


def audited(name, adjacency, claim, privacy):
    """Build the mechanism for `privacy`, and audit it against `claim` on its worst neighbours."""
    entry = MECHANISMS[name]
    mechanism = entry.build(AUDITED, N, privacy, adjacency)
    first, second = neighbours(mechanism)
    # The draws with which audits with a learned score refute half the noise.
    score, trials = None, 4000 if isinstance(mechanism, JL) else 8000
    if isinstance(mechanism, AdditiveMechanism):
        trials = 6000 if isinstance(mechanism.guarantee.sampler, Heuristic) else 200_000
    if entry.density and isinstance(mechanism, AdditiveMechanism):

        def score(outputs):
            shifts = np.broadcast_to(second - first, outputs.shape)
            ratios = mechanism.noise.log_density_ratio(outputs - first, shifts)
            # The ratio is constant on whole regions, up to rounding errors. These errors could tell
            # the inputs apart (SAM-6), which is not tested here.
            return np.round(ratios, 9)

    return audit(
        sampler(mechanism, first),
        sampler(mechanism, second),
        claim,
        trials=trials,
        score=score,
        rng=11,
    )


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "adjacency"),
    [(name, adjacency) for name in ADDITIVE for adjacency in Adjacency]
    + [(name, REPLACE) for name in OTHER_SUMS],
)
def test_audit_does_not_refute_the_claim(name, adjacency):
    """Exact releases have the same laws, see test_exact_table.py."""
    claim = MECHANISMS[name].privacy
    assert not audited(name, adjacency, claim, claim).refuted


def with_less_noise(claim, factor):
    """The guarantee for which a mechanism draws noise of a scale divided by `factor`."""
    match claim:
        case PureDP(epsilon=epsilon):
            return PureDP(factor * epsilon)
        case ZCDP(rho=rho):
            return ZCDP(factor**2 * rho)
        case ApproxDP():  # the noise of balls and ellipsoids in the plane of `AUDITED`
            return PureDP(factor * ball_rate(2, claim))


@pytest.mark.statistical
@pytest.mark.parametrize(
    "name", [name for name in [*ADDITIVE, *OTHER_SUMS] if name != "Gaussian approximate"]
)
def test_audit_refutes_half_the_noise(name):
    claim = MECHANISMS[name].privacy
    assert audited(name, REPLACE, claim, with_less_noise(claim, 2)).refuted
