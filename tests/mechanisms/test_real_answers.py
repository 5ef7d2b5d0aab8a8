"""Unseeded releases of real answers: the answers of a record are rounded, then sums are exact."""

from __future__ import annotations

import itertools
import math
import os
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from geomdp._numerics.linalg import svec, unsvec
from geomdp.audit import audit
from geomdp.mechanisms import (
    JL,
    Ball,
    Coarse,
    Cone,
    Covariance,
    Ellipsoid,
    Gaussian,
    KNorm,
    Laplace,
    Matrix,
    PairMarginals,
    Projected,
    SecondMoment,
)
from geomdp.mechanisms.additive_noise import sums
from geomdp.mechanisms.additive_noise.certify import SLACK
from geomdp.mechanisms.additive_noise.sums import (
    Units,
    fixed_point,
    matrix_entries,
    units_of,
    whole_numbers,
)
from geomdp.mechanisms.base import l2_sensitivity, whole_square
from geomdp.mechanisms.covariance import _shares
from geomdp.mechanisms.second_moment import wishart_energy
from geomdp.noise.differences import wishart_difference
from geomdp.noise.rounding import exact_numbers
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, PureDP
from geomdp.privacy.guarantees import rounded_arithmetic
from geomdp.workloads import (
    BoxSecondMoment,
    Explicit,
    Histogram,
    LinearMap,
    Marginals,
    Means,
    Prefixes,
)
from geomdp.workloads import SecondMoment as Moments
from tests.noise.exact.reference import floats, seeded
from tests.stats import LEVEL, ks_same, mean_agrees

N = 128
ONE, GAUSS = PureDP(1.0), ZCDP(0.5)
REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE
REALS = Explicit(np.random.default_rng(0).uniform(-1, 1, (3, 7)))
STRETCHED = LinearMap(Marginals(3, 1), np.diag([1.0, 0.3, 0.07]))
SIMPLEX = Explicit(np.random.default_rng(1).uniform(-1, 1, (3, 4)))

#: Functions from an adjacency to a mechanism of real answers with exact unseeded releases.
ON_ELEMENTS = {
    "laplace": lambda a: Laplace(REALS, n=N, privacy=ONE, adjacency=a),
    "gaussian": lambda a: Gaussian(REALS, n=N, privacy=GAUSS, adjacency=a),
    "ball": lambda a: Ball(REALS, n=N, privacy=ONE, adjacency=a),
    "ellipsoid": lambda a: Ellipsoid(REALS, n=N, privacy=ONE, adjacency=a),
    "gaussian matrix": lambda a: Matrix(REALS, n=N, privacy=GAUSS, adjacency=a),
    "k-norm of a box": lambda a: KNorm(STRETCHED, n=N, privacy=ONE, adjacency=a),
    "k-norm of a simplex": lambda a: KNorm(SIMPLEX, n=N, privacy=ONE, adjacency=a),
    "cone of a box": lambda a: Cone(STRETCHED, n=N, privacy=ONE, adjacency=a),
    "cone of a simplex": lambda a: Cone(SIMPLEX, n=N, privacy=ONE, adjacency=a),
}
ON_RECORDS = {
    "laplace of means": lambda a: Laplace(Means(3), n=N, privacy=ONE, adjacency=a),
    "ball of means": lambda a: Ball(Means(3), n=N, privacy=ONE, adjacency=a),
    "gaussian of means": lambda a: Gaussian(Means(3), n=N, privacy=GAUSS, adjacency=a),
    "wishart": lambda a: Cone(Moments(3), n=N, privacy=ONE, adjacency=a),
    "gaussian moments": lambda a: Gaussian(Moments(3), n=N, privacy=GAUSS, adjacency=a),
    "ball of moments": lambda a: Ball(Moments(3), n=N, privacy=ONE, adjacency=a),
    "ellipsoid of moments": lambda a: Ellipsoid(Moments(3), n=N, privacy=ONE, adjacency=a),
    "gaussian matrix of moments": lambda a: Matrix(Moments(3), n=N, privacy=GAUSS, adjacency=a),
    "laplace of moments": lambda a: Laplace(Moments(2), n=N, privacy=ONE, adjacency=a),
    "cone of a cube": lambda a: Cone(BoxSecondMoment(2), n=N, privacy=ONE, adjacency=a),
}
ALL = ON_ELEMENTS | ON_RECORDS
#: Only for replace-one: under add/remove, the hull of K and -K is neither a box nor a simplex.
REPLACE_ONLY = {"k-norm of a box", "k-norm of a simplex"}
SETTINGS = [
    (name, a) for name in ALL for a in Adjacency if a is REPLACE or name not in REPLACE_ONLY
]


@pytest.fixture(params=SETTINGS, ids=str)
def mechanism(request):
    name, adjacency = request.param
    return ALL[name](adjacency)


def records_of(mechanism, n=N):
    return mechanism.workload.universe.sample(n, 3)


def test_the_record_names_grid_and_slack(mechanism):
    mechanism.set_up()
    release = mechanism.release(records_of(mechanism))
    slack = mechanism.exact_path.slack
    assert release.guarantee.arithmetic == rounded_arithmetic(mechanism.grid, slack)
    assert mechanism.release(records_of(mechanism), rng=0).guarantee.seeded


def silent(mechanism):
    """Noise of zero for every measured answer."""
    return [0] * len(mechanism.exact_path.rounded.draw())


def test_without_noise_answers_are_those_of_the_records(mechanism):
    """Rounding of answers and changes of basis in float64 change a mean by less than 1e-7."""
    mechanism.set_up()
    records = records_of(mechanism)
    sums = mechanism.measured(records).sums
    answers = mechanism.exact_path.means(sums, silent(mechanism), N)
    np.testing.assert_allclose(answers, mechanism.workload.answers(records), rtol=0, atol=1e-7)


def whole_sums(mechanism, sums):
    """The measured sums as whole multiples of the grid."""
    path = mechanism.exact_path
    if isinstance(path.sums, Units):
        rows = sums if path.rows is None else sums[path.rows.places]
        return [int(x) << path.rounded.grid for x in rows]
    return whole_numbers(sums)


def check_only_noisy_sums_are_read(mechanism, answers):
    """If the noise makes up for the change of one record, the answers are equal bit by bit."""
    records = records_of(mechanism)
    other = records.copy()
    other[0] = records_of(mechanism, N + 5)[-1]
    first, second = (mechanism.measured(each).sums for each in (records, other))
    pairs = zip(whole_sums(mechanism, first), whole_sums(mechanism, second), strict=True)
    gaps = [a - b for a, b in pairs]
    assert any(gaps)
    rng = np.random.default_rng(0)
    for bits in range(4, 100, 6):
        noise = [int(x) << max(bits - 60, 0) for x in rng.integers(-(2**60), 2**60, len(gaps))]
        moved = [j + gap for j, gap in zip(noise, gaps, strict=True)]
        np.testing.assert_array_equal(answers(first, noise, 100), answers(second, moved, 100))


def test_only_noisy_sums_are_read(mechanism):
    mechanism.set_up()
    check_only_noisy_sums_are_read(mechanism, mechanism.exact_path.means)


@pytest.mark.parametrize("name", ["laplace", "wishart"])
def test_truths_in_float64_are_caught(name):
    mechanism = ALL[name](REPLACE)
    mechanism.set_up()

    def defect(sums, multiples, n):
        """Divide noise and truth by n separately, and add them in float64."""
        truth = mechanism.exact_path.means(sums, [0] * len(multiples), n)
        noise = mechanism.exact_path.means(0 * sums, multiples, n)
        return truth + noise

    with pytest.raises(AssertionError):
        check_only_noisy_sums_are_read(mechanism, defect)


def moves(mechanism):
    """All changes of rounded sums between neighbours, as lists of whole multiples of the unit."""
    rows = [[int(x) for x in row] for row in units_of(mechanism.workload).rows.tolist()]
    if mechanism.adjacency is ADD:
        return rows
    return [[x - y for x, y in zip(a, b, strict=True)] for a, b in itertools.permutations(rows, 2)]


@pytest.mark.parametrize("adjacency", Adjacency)
def test_laplace_scales_cover_the_rounded_answers(adjacency, monkeypatch):
    mechanism = ON_ELEMENTS["laplace"](adjacency)
    seen = []
    monkeypatch.setattr(
        sums, "exact_numbers", lambda noise: seen.append(noise.scale) or exact_numbers(noise)
    )
    vars(mechanism).pop("exact_path")
    assert mechanism.exact_path is not None
    (scale,) = seen
    longest = max(sum(map(abs, move)) for move in moves(mechanism))
    assert Fraction(scale) * Fraction(ONE.epsilon) >= longest
    assert Fraction(scale) * Fraction(ONE.epsilon) <= longest * (1 + Fraction(1, 10**9))


def test_scales_of_unrounded_answers_do_not_cover_the_rounded_ones():
    """Rounding can move answers apart, so sensitivities must be those of the rounded answers."""
    short = 0
    for seed in range(20):
        workload = Explicit(np.random.default_rng(seed).uniform(-1, 1, (3, 7)))
        mechanism = Laplace(workload, n=N, privacy=ONE)
        longest = max(sum(map(abs, move)) for move in moves(mechanism))
        scale = Fraction(mechanism.noise.scale) * Fraction(units_of(workload).factor)
        short += scale < longest
    assert short > 0


@pytest.mark.parametrize("privacy", [GAUSS, ApproxDP(1.0, 1e-6)], ids=str)
@pytest.mark.parametrize("adjacency", Adjacency)
def test_gaussian_scales_cover_the_rounded_answers(adjacency, privacy):
    mechanism = Gaussian(REALS, n=N, privacy=privacy, adjacency=adjacency)
    longest = max(sum(x * x for x in move) for move in moves(mechanism))
    square = whole_square(l2_sensitivity(units_of(REALS).answers, adjacency))
    assert longest <= square <= longest * (1 + Fraction(1, 10**8))


def test_bodies_hold_the_rounded_answers():
    """Rational arithmetic shows that the body contains all differences, with a small margin."""
    mechanism = ON_ELEMENTS["k-norm of a box"](REPLACE)
    rows = mechanism.exact_path.rows
    image = rows.noise.body
    inverse = fmpq_mat([[fmpq(*x.as_integer_ratio()) for x in r] for r in image.matrix.tolist()])
    longest = fmpq(0)
    for move in moves(mechanism):
        pulled = (inverse.inv() * fmpq_mat([[move[int(j)]] for j in rows.places])).entries()
        sides = [fmpq(*x.as_integer_ratio()) for x in image.body.upper.tolist()]
        longest = max(longest, *(abs(x) / u for x, u in zip(pulled, sides, strict=True)))
    assert 1 - 3 * fmpq(1, 10**6) <= longest <= 1


@pytest.mark.statistical
@pytest.mark.parametrize("name", sorted(ALL))
def test_releases_have_the_law_of_seeded_ones(name, monkeypatch):
    mechanism = ALL[name](REPLACE)
    mechanism.set_up()
    monkeypatch.setattr(os, "urandom", seeded(5))
    records = records_of(mechanism)
    sums, truth = mechanism.measured(records).sums, mechanism.workload.answers(records)
    answers = np.array([mechanism.draw(None)(sums) for _ in range(1000)])
    mean_agrees(((answers - truth) ** 2).mean(axis=1), mechanism.predicted_rmse.value**2)
    others = truth + mechanism.noise.sample(np.random.default_rng(1), 20_000) / N
    for j in range(len(truth)):
        ks_same(answers[:, j], others[:, j], level=LEVEL / len(truth))


# Second moments.


@pytest.mark.statistical
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("d", [1, 2, 5])
def test_wishart_noise_is_cone_noise_of_the_spectraplex(d, centred):
    noise = Cone(Moments(d), n=N, privacy=PureDP(1.3), adjacency=REPLACE if centred else ADD).noise
    drawn = floats(wishart_difference(d, noise.rate, float(noise.centre[0])), 2000, seed=d)
    stretch = svec(np.ones((d, d)))
    squares = ((drawn * stretch) ** 2).sum(axis=1)
    mean_agrees(squares, wishart_energy(d, noise.rate, centred=centred))
    others = noise.sample(np.random.default_rng(2), 20_000)
    for j in range(len(stretch)):
        ks_same(drawn[:, j] * stretch[j], others[:, j], level=LEVEL / len(stretch))
    trace = unsvec(drawn * stretch).trace(axis1=1, axis2=2)
    ks_same(trace, unsvec(others).trace(axis1=1, axis2=2))
    # Noise that is drawn through uniform points of the body has the same distribution.
    generic = floats(matrix_entries(exact_numbers(noise).balls, d), 500, seed=d + 10)
    ks_same(generic[:, 0], others[:, 0])


def audited_for(epsilon):
    """Audit Wishart noise for `epsilon` against 1-DP; one record changes from axis 1 to axis 2."""
    mechanism = Cone(Moments(2), n=N, privacy=PureDP(epsilon))
    mechanism.set_up()
    base = np.zeros((N, 2))
    first, second = base.copy(), base.copy()
    first[0], second[0] = (1.0, 0.0), (0.0, 1.0)

    def sampler(records):
        sums = mechanism.measured(records).sums
        return lambda trials, _: np.array([mechanism.draw(None)(sums) for _ in range(trials)])

    return audit(
        sampler(first),
        sampler(second),
        ONE,
        trials=3000,
        score=lambda outputs: outputs[:, 0] - outputs[:, 2],
        rng=7,
    )


@pytest.mark.statistical
def test_an_audit_of_exact_second_moments(monkeypatch):
    monkeypatch.setattr(os, "urandom", seeded(4))
    assert not audited_for(1.0).refuted
    assert audited_for(3.0).refuted


@pytest.mark.parametrize("privacy", [ONE, GAUSS, ApproxDP(1.0, 1e-6)], ids=str)
@pytest.mark.parametrize("kind", [SecondMoment, Covariance])
def test_second_moments_without_a_seed(kind, privacy, monkeypatch):
    """The answer is psd with a trace of at most 1."""
    mechanism = kind(Moments(3), n=N, privacy=privacy)
    monkeypatch.setattr(os, "urandom", seeded(9))
    release = mechanism.release(Moments(3).universe.sample(N, 0))
    assert release.guarantee.arithmetic == rounded_arithmetic(80)
    values = np.linalg.eigvalsh(unsvec(release.answers))
    assert values.min() >= -1e-12
    assert values.sum() <= 1 + 1e-12


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [ONE, GAUSS], ids=str)
def test_exact_covariances_err_as_little_as_seeded_ones(privacy, monkeypatch):
    monkeypatch.setattr(os, "urandom", seeded(6))
    mechanism = Covariance(Moments(2), n=N, privacy=privacy)
    records = Moments(2).universe.sample(N, 0)
    exact = np.array([mechanism.release(records).answers for _ in range(600)])
    rng = np.random.default_rng(8)
    fast = np.array([mechanism.release(records, rng=rng).answers for _ in range(3000)])
    for j in range(3):
        ks_same(exact[:, j], fast[:, j], level=LEVEL / 3)


def test_shares_of_the_budget_never_exceed_it():
    """Exact sums of the shares are at most the budget; shares rounded to nearest can exceed it."""
    exceeded = 0
    for share in (0.1, 0.3, 0.5, 0.7, 1 / 3, 0.95):
        for epsilon in (0.1, 0.7, 1.0, 1.1, 3.3):
            rest, part = _shares(PureDP(epsilon), share)
            assert Fraction(rest.epsilon) + Fraction(part.epsilon) <= Fraction(epsilon)
            assert rest.epsilon == pytest.approx((1 - share) * epsilon, rel=1e-15)
            plain = Fraction((1 - share) * epsilon) + Fraction(share * epsilon)
            exceeded += plain > Fraction(epsilon)
    assert exceeded > 0


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [ONE, GAUSS], ids=str)
def test_pair_marginals_round_noise_on_counts(privacy, monkeypatch):
    workload = Marginals(4, 2)
    mechanism = PairMarginals(workload, n=400, privacy=privacy)
    records = workload.universe.sample(400, 0)
    assert mechanism.release(records).guarantee.arithmetic == rounded_arithmetic(mechanism.grid)
    monkeypatch.setattr(os, "urandom", seeded(7))
    exact = np.array([mechanism.release(records).answers for _ in range(600)])
    rng = np.random.default_rng(9)
    fast = np.array([mechanism.release(records, rng=rng).answers for _ in range(3000)])
    for j in range(workload.n_queries):
        ks_same(exact[:, j], fast[:, j], level=LEVEL / workload.n_queries)


def test_pair_counts_are_those_of_the_records():
    workload = Marginals(3, 2)
    mechanism = PairMarginals(workload, n=50, privacy=ONE)
    records = workload.universe.sample(50, 0)
    pairs = (records.T @ records)[np.triu_indices(3)]
    np.testing.assert_array_equal(mechanism.measured(records).sums, pairs)
    assert mechanism.with_n(2**53).grid is None


# Post-processing of real answers.


@pytest.mark.parametrize(
    "mechanism",
    [
        JL(Ball(Prefixes(6), n=N, privacy=ONE), 2, rng=1),
        JL(Gaussian(Marginals(4, 1), n=N, privacy=GAUSS), 2, rng=1),
        Coarse(Ball(Prefixes(6), n=N, privacy=ONE), 0.2),
        Coarse(Projected(Laplace(Histogram(4), n=N, privacy=ONE)), 0.2),
    ],
    ids=repr,
)
def test_maps_and_nets_of_answers_are_measured_exactly(mechanism):
    records = mechanism.workload.universe.sample(N, 2)
    release = mechanism.release(records)
    assert "correctly rounded" in release.guarantee.arithmetic
    limit = 6 * mechanism.predicted_rmse.value * math.sqrt(len(release.answers))
    assert np.abs(release.answers - mechanism.workload.answers(records)).max() <= limit


def test_records_are_rounded_by_themselves():
    """The same record gives the same whole numbers wherever it stands."""
    mechanism = ON_RECORDS["wishart"](REPLACE)
    mechanism.set_up()
    records = records_of(mechanism)
    turned = mechanism.measured(records[::-1].copy()).sums
    np.testing.assert_array_equal(mechanism.measured(records).sums, turned)
    chunks = mechanism.measured(iter(np.array_split(records, 9))).sums
    np.testing.assert_array_equal(mechanism.measured(records).sums, chunks)
    assert (np.abs(fixed_point(records)) <= 2.0**40).all()


@pytest.mark.parametrize(
    "mechanism",
    [
        Matrix(Moments(3), n=5, privacy=ZCDP(0.5)),
        Ellipsoid(Moments(3), n=5, privacy=PureDP(1.0)),
        Ball(Moments(3), n=5, privacy=PureDP(1.0)),
    ],
)
def test_noise_on_real_records_is_larger_by_the_slack(mechanism, monkeypatch):
    """The slack covers rounding errors in the axes, so it must enlarge the noise."""
    given = []
    monkeypatch.setattr(
        sums, "exact_numbers", lambda noise: given.append(noise) or exact_numbers(noise)
    )
    assert mechanism.exact_path is not None
    (noise,) = given
    ratio = noise.second_moment().value / mechanism.noise.second_moment().value
    assert ratio == pytest.approx((1 + SLACK) ** 2, rel=SLACK / 100)
