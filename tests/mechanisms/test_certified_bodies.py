"""K-norm and recursive noise of float64 bodies that are proved to contain all differences."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from geomdp.bodies import (
    Ball,
    Box,
    CrossPolytope,
    Ellipsoid,
    LinearImage,
    LpBall,
    Product,
    Scaled,
    TriangulatedPolytope,
)
from geomdp.mechanisms import KNorm, Recursive
from geomdp.mechanisms.additive_noise.certify import (
    SLACK,
    Origin,
    core_holds,
    few_rows,
    holds_as_given,
    knorm,
)
from geomdp.mechanisms.additive_noise.sums import Change, ExactSums
from geomdp.privacy import Adjacency, PureDP
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, rounded_arithmetic
from geomdp.workloads import Explicit, Marginals, MarginalTables, Prefixes, RandomSigns
from tests.stats import LEVEL, ks_same, mean_agrees

N = 128
ONE = PureDP(1.0)
WORKLOADS = {
    "box": Marginals(3, 1),
    "triangulated": Marginals(3, 2),
    "signs": RandomSigns(3, 9, 3),
    "blocks": MarginalTables([2, 3], 2),
    "blocks of three": MarginalTables([2, 3, 2], 2),
    "prefixes": Prefixes(4),
    "one-way tables": MarginalTables([2, 3, 2], 1),
}
SETTINGS = list(itertools.product([KNorm, Recursive], sorted(WORKLOADS), Adjacency))


def built(kind, workload, adjacency, privacy=ONE):
    exact = {"exact": True} if kind is KNorm else {}
    return kind(workload, n=N, privacy=privacy, adjacency=adjacency, **exact)


@pytest.fixture(params=SETTINGS, ids=lambda s: f"{s[0].__name__}, {s[1]}, {s[2].value}")
def mechanism(request):
    kind, name, adjacency = request.param
    return built(kind, WORKLOADS[name], adjacency)


def test_the_record_names_grid_and_slack(mechanism):
    release = mechanism.release(mechanism.workload.universe.sample(N, 3))
    slack = mechanism.exact_path.slack
    assert release.guarantee.arithmetic == rounded_arithmetic(mechanism.grid, slack)


def moves(points, adjacency):
    pairs = itertools.combinations(points, 2)
    return points if adjacency is Adjacency.ADD_REMOVE else [a - b for a, b in pairs]


def rational(matrix):
    return fmpq_mat([[fmpq(*float(x).as_integer_ratio()) for x in row] for row in matrix])


def as_fraction(x):
    return Fraction(int(x.p), int(x.q))


def exact_gauge(body, move):
    """An upper bound on the gauge of the whole-number vector `move`, in rational arithmetic."""
    match body:
        case LinearImage():
            image = rational(body.matrix).inv() * fmpq_mat([[fmpq(int(x))] for x in move])
            return exact_core_gauge(body.body, [as_fraction(x) for x in image.entries()])
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


def test_certified_bodies_hold_all_differences_in_rational_arithmetic(mechanism):
    rows = mechanism.exact_path.rows
    if rows is None:
        noise = mechanism.noise.undivided if isinstance(mechanism, Recursive) else mechanism.noise
        assert holds_as_given(noise.body)
        answers = mechanism.workload.evaluate(mechanism.workload.universe.elements())
        found = np.array(moves(np.unique(answers, axis=0), mechanism.adjacency))
        assert noise.body.gauge(found).max() == pytest.approx(1, abs=1e-12)
        return
    points = mechanism.workload.evaluate(mechanism.workload.universe.elements())[:, rows.places]
    found = moves(np.unique(points, axis=0), mechanism.adjacency)
    gauges = [max(exact_gauge(rows.noise.body, v), exact_gauge(rows.noise.body, -v)) for v in found]
    assert max(gauges) <= 1 + Fraction(1, 2**40)
    if rows.slack == 0:
        assert max(gauges) == 1


CORES = {
    "box": lambda d: Box.centred(np.array([1.0, 2.0, 3.0]) * d),
    "ball": lambda d: Ball(3, math.sqrt(6) * d),
    "cross polytope": lambda d: CrossPolytope(3, 4.0 * d),
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
        assert not core_holds(np.eye(3), core, points, Adjacency.REPLACE_ONE)


def test_a_polytope_that_misses_a_difference_is_refused():
    workload = Marginals(3, 2)
    full = KNorm(workload, n=N, privacy=ONE, exact=True).noise.body

    def rows(body):
        change = Change(workload, Adjacency.REPLACE_ONE)
        return few_rows(knorm(body, 1.0), ExactSums(workload), change, Origin.CHANGES)

    assert rows(full) is not None
    length = np.abs(full.vertices).sum(axis=1)
    outer = full.vertices[length > length.max() - 1e-6][0]
    near = np.abs(np.abs(full.vertices @ outer) - outer @ outer) < 1e-6
    smaller = TriangulatedPolytope(full.vertices[~near])
    assert rows(smaller) is None
    assert rows(TriangulatedPolytope(full.vertices * 0.999)) is None


@pytest.mark.statistical
@pytest.mark.parametrize("kind", [KNorm, Recursive])
@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_releases_have_the_law_of_seeded_ones(kind, name):
    workload = WORKLOADS[name]
    mechanism = built(kind, workload, Adjacency.REPLACE_ONE)
    mechanism.set_up()
    sums = workload.totals(workload.universe.sample(N, 3)).sums
    answers = np.array([mechanism.draw(None)(sums) for _ in range(1000)])
    others = (sums + mechanism.noise.sample(np.random.default_rng(1), 20_000)) / N
    if mechanism.predicted_rmse.stderr == 0:
        mean_agrees(((answers - sums / N) ** 2).mean(axis=1), mechanism.predicted_rmse.value**2)
    mixed = np.random.default_rng(2).standard_normal(len(sums))
    for direction in (*np.eye(len(sums)), mixed):
        # Round, because constant answers can still differ in their last bits.
        first, second = np.round(answers @ direction, 9), np.round(others @ direction, 9)
        ks_same(first, second, level=LEVEL / (len(sums) + 1))


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
    "build",
    [
        lambda: KNorm(MarginalTables([2] * 13, 2), n=N, privacy=ONE, exact=True),
        lambda: Recursive(Explicit([[0.5, 1.0, 0.0]]), n=N, privacy=ONE),
    ],
    ids=["large universe", "recursive on fractions"],
)
def test_without_a_proof_noise_keeps_its_caveat(build):
    mechanism = build()
    assert mechanism.grid is None
    assert mechanism.guarantee.arithmetic == FLOAT64_CAVEAT
