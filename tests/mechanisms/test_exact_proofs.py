"""Noise with float64 parameters is proved private for exact sums, in rational arithmetic.

Each kind of noise of the table of exact paths is checked against all changes of one record.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from geomdp.bodies import (
    Ball,
    Body,
    Box,
    CrossPolytope,
    Ellipsoid,
    LinearImage,
    LpBall,
    Product,
    Scaled,
    TriangulatedPolytope,
)
from geomdp.mechanisms import KNorm, Laplace, Recursive
from geomdp.mechanisms.additive_noise import sums
from geomdp.mechanisms.additive_noise.certify import (
    SLACK,
    Origin,
    _gauge_bound,
    core_holds,
    holds_as_given,
    is_upright_box,
    knorm,
    longest_difference,
    on_few_rows,
    proved_bound,
)
from geomdp.mechanisms.additive_noise.sums import Change, ExactSums
from geomdp.mechanisms.base import l2_sensitivity, whole_square
from geomdp.mechanisms.strategies.design import exact_loss
from geomdp.noise import KNormNoise, LaplaceNoise
from geomdp.noise.gaussian import proved_gaussian_scale
from geomdp.noise.rounding import exact_numbers
from geomdp.privacy import ZCDP, Adjacency, PureDP
from geomdp.workloads import Marginals
from tests.mechanisms.test_exact_table import (
    BODIES,
    GAUSSIANS,
    REALS,
    ROWS,
    STRATEGIES,
    built,
    moves,
)

N = 128
ONE, GAUSS = PureDP(1.0), ZCDP(0.5)
REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE


def answers_of(mechanism):
    """The answers of all elements, as whole numbers of the unit of the exact sums."""
    exact = mechanism.exact_path.sums
    if hasattr(exact, "rows"):
        return exact.rows
    return mechanism.workload.evaluate(mechanism.workload.universe.elements())


# Bodies and ellipsoids


def rational(matrix):
    return fmpq_mat([[fmpq(*float(x).as_integer_ratio()) for x in row] for row in matrix])


def pulled(matrix, move):
    """The solution x of `matrix` x = `move`, in rational arithmetic."""
    image = rational(matrix).inv() * fmpq_mat([[fmpq(int(x))] for x in move])
    return [Fraction(int(x.p), int(x.q)) for x in image.entries()]


def exact_gauge(body, move):
    """An upper bound on the gauge of the whole-number vector `move`."""
    match body:
        case LinearImage():
            return exact_core_gauge(body.body, pulled(body.matrix, move))
        case Ellipsoid():
            return exact_core_gauge(Ball(len(move), 1.0), pulled(body.root, move))
        case TriangulatedPolytope():
            rows = body.whole_cones
            whole = [int(x) for x in move]
            return max(
                Fraction(sum(a * x for a, x in zip(row, whole, strict=True)), b)
                for row, b in zip(rows.normals.tolist(), rows.offsets.tolist(), strict=True)
            )
        case _:
            return exact_core_gauge(body, [Fraction(int(x)) for x in move])


def exact_core_gauge(core, x):
    match core:
        case Box():
            return max(abs(v) / Fraction(u) for v, u in zip(x, core.upper.tolist(), strict=True))
        case Ball():
            square = sum(v * v for v in x) / Fraction(core.r) ** 2
            return Fraction(math.isqrt(math.ceil(square * 2**80)) + 1, 2**40)
        case CrossPolytope():
            return sum(abs(v) for v in x) / Fraction(core.r)
        case Product():
            found, start = Fraction(0), 0
            for factor in core.bodies:
                found = max(found, exact_core_gauge(factor, x[start : start + factor.dimension]))
                start += factor.dimension
            return found
    raise NotImplementedError


def own_gauge(noise, move):
    """A bound on the norm of `move` that the noise covers, in rational arithmetic."""
    if not isinstance(noise, KNormNoise):  # Gaussian noise, mapped by a root
        return exact_gauge(Ellipsoid(noise.parts[0].matrix), move)
    return max(exact_gauge(noise.body, move), exact_gauge(noise.body, -move))


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize(
    "name", [*BODIES, "ball of reals", "ellipsoid of reals", "k-norm of a stretched box"]
)
def test_certified_bodies_hold_all_differences_in_rational_arithmetic(name, adjacency):
    if name == "k-norm of a stretched box" and adjacency is ADD:
        pytest.skip("the body is not certified under add/remove")
    mechanism = built(name, adjacency)
    rows, answers = mechanism.exact_path.rows, answers_of(mechanism)
    if rows is None:
        noise = mechanism.noise.undivided if isinstance(mechanism, Recursive) else mechanism.noise
        assert holds_as_given(noise.body)
        found = moves(np.unique(answers, axis=0), adjacency)
        assert noise.body.gauge(found).max() == pytest.approx(1, abs=1e-12)
        return
    found = moves(np.unique(answers[:, rows.places], axis=0), adjacency)
    largest = max(own_gauge(rows.noise, move) for move in found)
    assert largest <= 1 + Fraction(1, 2**40)
    if mechanism.exact_path.slack == 0:
        assert largest == 1
    elif "ball" not in name:
        assert largest >= 1 - 3 * Fraction(SLACK)


CORES = {
    "box": lambda d: Box.centred(np.array([1.0, 2.0, 3.0]) * d),
    "ball": lambda d: Ball(3, math.sqrt(6) * d),
    "cross polytope": lambda d: CrossPolytope(3, 4.0 * d),
    "l_1.5 ball": lambda d: LpBall(1.5, 3, (1 + 2**1.5 + 1) ** (1 / 1.5) * d),
    "l_3 ball": lambda d: LpBall(3, 3, (1 + 8 + 1) ** (1 / 3) * d),
    "product": lambda d: Product([Ball(2, math.sqrt(5) * d), Box.centred(np.ones(1) * d)]),
}


@pytest.mark.parametrize("name", CORES)
@pytest.mark.parametrize("adjacency", Adjacency)
def test_what_sticks_out_by_a_millionth_is_refused(name, adjacency):
    """The largest difference, (1, 2, 1) or (1, 2, 3) for the box, is on the core's boundary."""
    points = np.array([[0.0, 0, 0], [1, 2, 1], [1, 1, 0]])
    if name == "box":
        points[1, 2] = 3
    root, core = np.eye(3) * (1 + SLACK), CORES[name]
    assert core_holds(root, core(1.0), points, adjacency)
    assert not core_holds(root, core(1 - 3e-6), points, adjacency)
    assert not core_holds(np.outer(root[:, 0], root[:, 0]), core(1.0), points, adjacency)


def test_bodies_without_a_proof_are_refused():
    points = np.zeros((2, 3))
    one_sided = Box(np.array([-1.0, -9, -9]), np.full(3, 9.0))
    for core in (one_sided, Scaled(Ball(3, 1.0), 9.0)):
        assert not core_holds(np.eye(3), core, points, REPLACE)


@pytest.mark.parametrize(
    ("name", "origin"),
    [("ball of tables", Origin.BALL), ("ellipsoid of tables", Origin.SOLVER)],
)
def test_an_ellipsoid_that_misses_a_difference_is_refused(name, origin):
    mechanism = built(name, REPLACE)

    def rows(factor):
        smaller = knorm(Ellipsoid(mechanism.noise.body.root * factor), 1.0)
        sums = ExactSums(mechanism.workload)
        return on_few_rows(smaller, sums, mechanism.change, origin)

    assert rows(1.0) is not None
    assert rows(0.99) is None


def test_a_polytope_that_misses_a_difference_is_refused():
    workload = Marginals(3, 2)
    full = KNorm(workload, n=N, privacy=ONE, exact=True).noise.body

    def rows(body):
        change = Change(workload, REPLACE)
        return on_few_rows(knorm(body, 1.0), ExactSums(workload), change, Origin.CHANGES)

    assert rows(full) is not None
    length = np.abs(full.vertices).sum(axis=1)
    outer = full.vertices[length > length.max() - 1e-6][0]
    near = np.abs(np.abs(full.vertices @ outer) - outer @ outer) < 1e-6
    smaller = TriangulatedPolytope(full.vertices[~near])
    assert rows(smaller) is None
    assert rows(TriangulatedPolytope(full.vertices * 0.999)) is None


@pytest.mark.parametrize(
    "body",
    [
        Box.centred(np.array([1.0, 1.5])),
        Ball(2, 1.5),
        CrossPolytope(2, 2.0),
        LpBall(3, 2, 1.3),
        Ellipsoid(np.array([[1.8, 0.2], [0.0, 1.7]])),
        TriangulatedPolytope(2 * np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])),
        LinearImage(np.array([[0.6, -0.8], [0.8, 0.6]]), Product([Ball(1, 1.5), Ball(1, 1.5)])),
        Scaled(CrossPolytope(2), 2.0),
    ],
    ids=repr,
)
@pytest.mark.parametrize("kind", [KNorm, Recursive])
def test_bodies_of_the_caller_are_certified_too(kind, body):
    mechanism = kind(Marginals(2, 1), n=N, privacy=ONE, body=body)
    exact = kind is KNorm or mechanism.noise.undivided is not None
    assert (mechanism.grid is not None) == exact
    if exact:
        answers = mechanism.release(mechanism.workload.universe.sample(N, 1)).answers
        assert np.isfinite(answers).all()


@pytest.mark.parametrize(
    ("matrix", "upright"),
    [(np.diag([2.0, -1.0]), True), ([[1.0], [1.0]], False), ([[1.0, 1.0]], False)],
)
def test_the_image_of_a_box_is_upright_if_no_axis_meets_another(matrix, upright):
    """The image is known to be upright if no row and no column has two entries other than 0."""
    matrix = np.array(matrix)
    cube = Box.centred(np.ones(matrix.shape[1]))
    assert is_upright_box(Scaled(LinearImage(matrix, cube), 3.0)) is upright


# Margins of these proofs cover the rounding errors of float64


@pytest.mark.parametrize("rank", [1, 3, 50])
def test_the_exact_distance_is_below_its_proved_bound(rank: int) -> None:
    """Both points move apart by the error. About half of the computed distances are too small."""
    rng = np.random.default_rng(rank)
    error, below = 2.0**-40, 0
    for _ in range(200):
        images = rng.normal(size=(2, rank))
        first, second = ([Fraction(x) for x in row] for row in images.tolist())
        square = sum((a - b) ** 2 for a, b in zip(first, second, strict=True))
        longest = longest_difference(images, REPLACE)
        assert square <= Fraction(proved_bound(longest, 0.0, rank)) ** 2
        # The root is rounded down, by less than 2^-120.
        exact = Fraction(math.isqrt(int(square * 4**120)), 2**120) + 2 * Fraction(error)
        assert exact <= Fraction(proved_bound(longest, error, rank))
        below += Fraction(longest) + 2 * Fraction(error) < exact
    assert below > 0  # without a margin the bound fails


def inner_radius(body: Body) -> float:
    """The least distance from 0 to the boundary over directions that include the nearest ones."""
    signs = np.array([[1.0, 1, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1], *np.eye(3)])
    directions = signs / np.linalg.norm(signs, axis=1)[:, None]
    return float(1 / body.gauge(directions).max())


@pytest.mark.parametrize("name", CORES)
@pytest.mark.parametrize("adjacency", Adjacency)
def test_a_bound_on_gauges_is_above_the_gauge_by_its_margin(
    name: str, adjacency: Adjacency
) -> None:
    """The margin of 1e-10 covers the errors of powers and quotients.

    Both points can move by an error, along the direction in which the body is thinnest.
    """
    body, point = CORES[name](0.7), np.array([[0.3, -0.7, 0.2]])
    gauge = float(body.gauge(point)[0])
    bound = _gauge_bound(body, np.vstack([point, 0 * point]), 0.0, adjacency)
    assert gauge * (1 + 0.99e-10) <= bound <= gauge * (1 + 1.01e-10)
    most = 2 * 0.1 / inner_radius(body)
    bound = _gauge_bound(body, np.zeros((2, 3)), 0.1, adjacency)
    assert most * (1 + 0.99e-3) <= bound <= most * (1 + 1.01e-3)


# Scales of Laplace and Gaussian noise


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("name", [*GAUSSIANS, "gaussian of reals"])
def test_whole_squares_hold_every_change(name, adjacency):
    mechanism = built(name, adjacency)
    exact = mechanism.exact_path.sums
    squares = [sum(int(x) ** 2 for x in move) for move in moves(answers_of(mechanism), adjacency)]
    whole = exact.answers if name == "gaussian of reals" else exact.workload
    square = whole_square(l2_sensitivity(whole, adjacency))
    assert max(squares) <= square <= max(squares) * (1 + Fraction(1, 10**8))
    if name != "gaussian of reals":
        assert mechanism.noise.scale == proved_gaussian_scale(square, mechanism.privacy)


def rounded_noise(mechanism, monkeypatch):
    """The noise that the exact path of a mechanism rounds."""
    given = []
    monkeypatch.setattr(
        sums, "exact_numbers", lambda noise: given.append(noise) or exact_numbers(noise)
    )
    vars(mechanism).pop("exact_path", None)
    assert mechanism.exact_path is not None
    (noise,) = given
    return noise


@pytest.mark.parametrize("adjacency", Adjacency)
def test_laplace_scales_cover_the_rounded_answers(adjacency, monkeypatch):
    mechanism = Laplace(REALS, n=N, privacy=ONE, adjacency=adjacency)
    scale = Fraction(rounded_noise(mechanism, monkeypatch).scale)
    longest = max(
        sum(abs(int(x)) for x in move) for move in moves(answers_of(mechanism), adjacency)
    )
    assert longest <= scale <= longest * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize(
    "name", ["laplace of moments", "matrix of moments", "ellipsoid of moments", "ball of moments"]
)
def test_noise_on_real_records_is_larger_by_the_slack(name, monkeypatch):
    """The slack covers rounding errors in the axes, so it must enlarge the noise."""
    mechanism = ROWS[name](REPLACE)
    noise = rounded_noise(mechanism, monkeypatch)
    assert mechanism.exact_path.slack == SLACK
    ratio = noise.second_moment().value / mechanism.noise.second_moment().value
    assert ratio == pytest.approx((1 + SLACK) ** 2, rel=SLACK / 100)


# Measurements of a strategy


def lengths_and_rate(noise, changes):
    """Norms (b,) of `changes` (b, p), and the privacy loss of the noise for a change of norm 1."""
    if isinstance(noise, LaplaceNoise):
        return np.abs(changes).sum(axis=1), 1 / Fraction(noise.scale)
    assert isinstance(noise, KNormNoise)
    return np.maximum(changes, 0).sum(axis=1), Fraction(noise.epsilon)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("name", STRATEGIES)
def test_no_pair_of_neighbours_costs_more_than_epsilon_in_exact_arithmetic(name, adjacency):
    """The norms of all changes are sums of multiples of 2^-24, so they are exact in float64."""
    mechanism = built(name, adjacency)
    elements = mechanism.workload.universe.elements()
    own = [mechanism.measured(elements[i : i + 1]).sums for i in range(len(elements))]
    changes = moves(np.array(own), adjacency)
    parts, start = mechanism.exact_path.sums.measurements, 0
    spent = [Fraction(0)] * len(changes)
    for part, drawn in zip(parts, mechanism.noise.parts, strict=True):
        stop = start + drawn.noise.dimension
        # The measurements of a record are at most 1, and multiples of a unit.
        assert np.abs(np.array(own)[:, start:stop]).max() <= 1
        assert (changes[:, start:stop] * part.unit % 1 == 0).all()
        lengths, rate = lengths_and_rate(drawn.noise, changes[:, start:stop])
        spent = [a + Fraction(b) * rate for a, b in zip(spent, lengths.tolist(), strict=True)]
        start = stop
    epsilon = Fraction(mechanism.privacy.epsilon)
    claimed = exact_loss(parts, [part.noise for part in mechanism.noise.parts])
    assert max(spent) <= claimed <= epsilon
    assert claimed >= epsilon * (1 - Fraction(1, 2**45))
