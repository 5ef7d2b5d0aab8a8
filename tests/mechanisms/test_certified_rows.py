"""Ellipsoid noise on a few answers that determine all answers, with a proof for all pairs."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from geomdp.bodies import Ball as BallBody
from geomdp.bodies import Ellipsoid as EllipsoidBody
from geomdp.mechanisms import Ball, Ellipsoid, Matrix
from geomdp.mechanisms.additive_noise.certify import (
    SLACK,
    Origin,
    core_holds,
    few_rows,
    knorm,
)
from geomdp.mechanisms.additive_noise.sums import Change, ExactSums
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, PureDP
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, rounded_arithmetic
from geomdp.workloads import LinearMap, Marginals, MarginalTables, Prefixes, Ranges
from tests.stats import LEVEL, ks_same, mean_agrees

N = 128
WORKLOADS = [MarginalTables([2, 3], 2), Marginals(4, 2), Prefixes(5), Ranges(4)]
KINDS = [
    (Ball, PureDP(0.8)),
    (Ellipsoid, PureDP(0.8)),
    (Matrix, ZCDP(0.3)),
    (Matrix, ApproxDP(0.8, 1e-6)),
]


@pytest.fixture(params=WORKLOADS, ids=repr)
def workload(request):
    return request.param


@pytest.fixture(params=KINDS, ids=str)
def mechanism(request, workload):
    kind, privacy = request.param
    return kind(workload, n=N, privacy=privacy)


def rational(matrix):
    return fmpq_mat([[fmpq(*float(x).as_integer_ratio()) for x in row] for row in matrix])


def longest_square(root, points, adjacency):
    """The largest ||root^-1 v||^2 over differences v of neighbours, in rational arithmetic."""
    inverse = rational(root).inv()
    pairs = itertools.combinations(points, 2)
    moves = points if adjacency is Adjacency.ADD_REMOVE else [a - b for a, b in pairs]
    squares = []
    for move in moves:
        image = inverse * fmpq_mat([[int(x)] for x in move])
        squares.append(sum((x * x for x in image.entries()), start=fmpq(0)))
    found = max(squares)
    return Fraction(int(found.p), int(found.q))


def own_root(rows):
    """The root (r, r) of the ellipsoid that defines the noise on the rows."""
    noise = rows.noise
    return noise.body.root if hasattr(noise, "body") else noise.parts[0].matrix


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(("kind", "privacy"), KINDS[1:3], ids=str)
def test_ellipsoids_hold_all_differences_in_rational_arithmetic(workload, kind, privacy, adjacency):
    mechanism = kind(workload, n=N, privacy=privacy, adjacency=adjacency)
    rows = mechanism.exact_path.rows
    points = workload.evaluate(workload.universe.elements())[:, rows.places]
    longest = longest_square(own_root(rows), points, adjacency)
    assert longest <= 1
    assert longest >= 1 - 3 * Fraction(SLACK)


@pytest.mark.parametrize("adjacency", Adjacency)
def test_what_sticks_out_is_refused(workload, adjacency):
    rows = Ellipsoid(workload, n=N, privacy=PureDP(1.0), adjacency=adjacency).exact_path.rows
    root, ball = own_root(rows), BallBody(len(rows.places), 1.0)
    points = workload.evaluate(workload.universe.elements())[:, rows.places]
    assert core_holds(root, ball, points, adjacency)
    assert not core_holds(root * (1 - 3e-6), ball, points, adjacency)
    assert not core_holds(np.outer(root[:, 0], root[:, 0]), ball, points, adjacency)


def test_the_record_names_grid_and_slack(mechanism):
    release = mechanism.release(mechanism.workload.universe.sample(N, 3))
    assert release.guarantee.arithmetic == rounded_arithmetic(mechanism.grid, SLACK)
    assert "slack of 1e-06" in str(release.guarantee)


def test_answers_follow_from_the_rows(mechanism):
    records = mechanism.workload.universe.sample(N, 3)
    mechanism.set_up()
    path = mechanism.exact_path
    zeros = [0] * len(path.rows.places)
    answers = path.means(mechanism.measured(records).sums, zeros, N)
    np.testing.assert_allclose(answers, mechanism.workload.answers(records), rtol=0, atol=1e-13)


def check_only_noisy_rows_are_read(mechanism, release):
    """Check that two data sets get equal answers if noise cancels their difference on the rows."""
    elements = mechanism.workload.universe.elements()
    first, second = (mechanism.measured(elements[[i] * N]).sums for i in (0, -1))
    places, unit = mechanism.exact_path.rows.places, 1 << mechanism.grid
    gaps = [int(a - b) * unit for a, b in zip(first[places], second[places], strict=True)]
    rng = np.random.default_rng(0)
    for bits in range(4, 62):
        noise = [int(j) for j in rng.integers(-(2**bits), 2**bits, len(places))]
        moved = [j + gap for j, gap in zip(noise, gaps, strict=True)]
        np.testing.assert_array_equal(release(first, noise, 100), release(second, moved, 100))


def test_only_noisy_rows_are_read(mechanism):
    # If n were a power of two, divisions by n would be exact, so that the defect would not round
    # sums of a few bits.
    mechanism = mechanism.with_n(100)
    check_only_noisy_rows_are_read(mechanism, mechanism.exact_path.means)

    def defect(sums, multiples, n):
        """The planted defect: exact answers plus the lifted noise, in float64."""
        noise = np.array(multiples, dtype=float) / (1 << mechanism.grid) / n
        return sums / n + mechanism.exact_path.rows.lift @ noise

    with pytest.raises(AssertionError):
        check_only_noisy_rows_are_read(mechanism, defect)


@pytest.mark.statistical
@pytest.mark.parametrize(("kind", "privacy"), KINDS, ids=str)
def test_releases_have_the_law_of_seeded_ones(kind, privacy):
    workload = MarginalTables([2, 3], 2)
    mechanism = kind(workload, n=N, privacy=privacy)
    mechanism.set_up()
    sums = workload.totals(workload.universe.sample(N, 3)).sums
    answers = np.array([mechanism.draw(None)(sums) for _ in range(1500)])
    mean_agrees(((answers - sums / N) ** 2).mean(axis=1), mechanism.predicted_rmse.value**2)
    others = (sums + mechanism.noise.sample(np.random.default_rng(1), 20_000)) / N
    for j in range(len(sums)):
        ks_same(answers[:, j], others[:, j], level=LEVEL / len(sums))


def test_without_a_proof_noise_keeps_its_caveat():
    for mechanism in (
        Ball(MarginalTables([2] * 13, 2), n=N, privacy=PureDP(1.0)),
        Ellipsoid(LinearMap(Marginals(13, 1), np.eye(13) / 2), n=N, privacy=PureDP(1.0)),
        Ball(Prefixes(4), n=2**53, privacy=PureDP(1.0)),
    ):
        assert mechanism.grid is None
        assert mechanism.guarantee.arithmetic == FLOAT64_CAVEAT
    small = knorm(EllipsoidBody(1e-3 * np.eye(3)[:, :2]), 1.0)
    change = Change(Prefixes(3), Adjacency.REPLACE_ONE)
    assert few_rows(small, ExactSums(Prefixes(3)), change, Origin.SOLVER) is None
