"""Noise in ball arithmetic has the law of the float64 samplers, rounded to a public grid."""

from __future__ import annotations

import inspect
import itertools

import mpmath
import numpy as np
import pytest
import scipy.sparse as sp
from flint import ctx

import geomdp.noise
from geomdp.bodies import (
    Ball,
    Box,
    CrossPolytope,
    Elliptope,
    LpBall,
    PsdBox,
    Simplex,
    SimplexDifference,
    Spectraplex,
    TableMoments,
    TriangulatedPolytope,
)
from geomdp.geometry.sampling.samplers import ChainSampler, ExactSampler
from geomdp.mechanisms.additive_noise.sums import matrix_entries
from geomdp.noise import (
    ConeNoise,
    GaussianNoise,
    KNormNoise,
    LaplaceNoise,
    Noise,
    PairedNoise,
    RecursiveNoise,
    scalar,
)
from geomdp.noise.differences import wishart_difference
from geomdp.noise.few_queries import GeometricNoise, LatticeBoxNoise, StaircaseNoise
from geomdp.noise.gaussian import isotropic
from geomdp.noise.knorm import MappedNoise, Part
from geomdp.noise.points import scaled_variables
from geomdp.noise.recursive import Variant, best_stop, decompose
from geomdp.noise.rounding import (
    WORD_BITS,
    Draw,
    NoExactPath,
    Rounded,
    Undecided,
    UniformBits,
    exact_numbers,
    gaussians,
    laplaces,
    public_grid,
)
from geomdp.noise.scalar import EXPONENTIAL, GUMBEL, LAPLACE, exact_argmax, noisy_argmax
from geomdp.workloads import MarginalTables
from geomdp.workloads.structure import table_contrasts
from tests.noise.exact.reference import REFERENCE_BITS, REFERENCE_WORDS, Reference, seeded
from tests.stats import LEVEL, ks_same, mean_agrees

DRAWS = 2000
#: Noise is rounded to multiples of 2^-30, which is too fine to affect the tests of laws.
GRID = 30

PAIRS = sp.csr_array(np.array([[1.0, -1, 0], [0.25, 0.5, -0.25], [0, 0, 1], [0, 0, 0]]))
TABLES = table_contrasts(MarginalTables([3, 2], 2))
CORNERS = np.vstack([np.zeros(3), np.eye(3)])


def knorm(body, epsilon=0.7):
    return KNormNoise(body, epsilon, ExactSampler(body))


def centred_cone(body, rate, matrix=None):
    return ConeNoise(body, rate, body.centroid(), matrix)


def noises():
    """Noises of every class. They are built at each call, so the tests run their constructors."""
    return {
        "laplace": LaplaceNoise(3, 1.5),
        "geometric": GeometricNoise([1.0, 2.0], 2.5),
        "lattice box": LatticeBoxNoise([1.0, 2.0], [1, 3], 1.5),
        "staircase": StaircaseNoise(2.0, 1.5),
        "gaussian": GaussianNoise(np.linalg.qr(np.arange(8.0).reshape(4, 2) ** 2)[0], 0.4),
        "ball": knorm(Ball(4, 2.0)),
        "cross-polytope": knorm(CrossPolytope(3, 2.0)),
        "l_3 ball": knorm(LpBall(3, 3)),
        "box": knorm(Box.centred(np.array([1.0, 0, 3.0]))),
        "simplex difference": knorm(SimplexDifference(CORNERS)),
        "elliptope cone": ConeNoise(Elliptope(3), 0.5, np.zeros(3), PAIRS),
        "wishart": centred_cone(Spectraplex(2), 0.5),
        "psd box cone": centred_cone(PsdBox(2), 1.0),
        "simplex cone with a count": ConeNoise(
            Simplex(np.eye(3)), 1.0, np.zeros(3), constant=np.array([1.0, 0, -0.5])
        ),
        "pair": PairedNoise(Elliptope(3), 0.8, PAIRS),
        "pair of cut tables": PairedNoise(
            TableMoments([2, 2], 0.0), 0.8, sp.csr_array(np.eye(3) + np.tri(3, 3, -1))
        ),
        "tables": ConeNoise(
            TableMoments([3, 2]), 1.0, np.zeros(5), TABLES.matrix, constant=TABLES.constant
        ),
        "pair of tables, cut": PairedNoise(TableMoments([3, 2], 0.05), 0.8, TABLES.matrix),
        "parts": MappedNoise(
            [
                Part(LaplaceNoise(2, 1.0), np.array([[1.0, 2], [3, 4], [0, 0.5]])),
                Part(LaplaceNoise(3, 0.5), sp.csr_array(np.eye(3))),
            ]
        ),
        "recursive": RecursiveNoise(
            best_stop(
                decompose(Box.centred(np.array([1.0, 5.0, 9.0])), Variant.INTRINSIC, exact=True)
            ),
            0.7,
        ),
    }


@pytest.fixture(params=sorted(noises()), scope="module")
def noise(request):
    return noises()[request.param]


@pytest.fixture(scope="module")
def draws(noise):
    """Draws that two tests share. Each test still has its stated level."""
    return rounded(noise, DRAWS, seed=1)


def rounded(noise, n, seed, grid=GRID):
    entropy, prepared = seeded(seed), Rounded.of(noise, grid)
    return np.array([prepared.draw(entropy) for _ in range(n)], dtype=float) / 2**grid


def test_every_exported_noise_has_an_exact_path_that_is_tested():
    exported = [getattr(geomdp.noise, name) for name in geomdp.noise.__all__]
    classes = {item for item in exported if inspect.isclass(item) and hasattr(item, "sample")}
    registered = set(exact_numbers.registry) - {object}
    assert registered >= classes - {Noise}
    assert registered == {type(noise) for noise in noises().values()}


@pytest.mark.statistical
def test_rounded_noise_has_the_law_of_the_float64_sampler(noise, draws):
    assert draws.shape == (DRAWS, noise.dimension)
    others = noise.sample(np.random.default_rng(2), 40_000)
    mixed = np.random.default_rng(3).standard_normal(noise.dimension)
    for direction in (*np.eye(noise.dimension), mixed):
        ks_same(draws @ direction, others @ direction, level=LEVEL / (noise.dimension + 1))


@pytest.mark.statistical
def test_rounded_noise_has_mean_zero_and_the_stated_covariance(noise, draws):
    mean_agrees(draws, np.zeros(noise.dimension), level=LEVEL / 2)
    if noise.second_moment().samples == 0:
        products = draws[:, :, None] * draws[:, None, :]
        mean_agrees(products, noise.covariance(), level=LEVEL / 2)


def test_every_precision_encloses_the_same_value(noise):
    """A sampler makes the same decisions, and reads the same numbers, at every precision."""
    vector = exact_numbers(noise).balls
    for seed in range(30):
        bits = UniformBits(seeded(seed))
        boxes = []
        for words in (2, 3, 6):
            with ctx.workprec(words * WORD_BITS):
                boxes.append(vector(Draw(bits, words)))
        for balls in zip(*boxes, strict=True):
            assert all(a.overlaps(b) for a, b in itertools.combinations(balls, 2))


def test_the_public_grid_is_a_fraction_of_the_least_deviation(noise):
    grid = public_grid(noise)
    deviations = np.sqrt(noise.variances())
    least = deviations[deviations > 0].min()
    assert grid >= 0  # so whole numbers, such as true counts, lie on the grid
    assert 2.0**-grid <= min(1.0, least / 1024)
    assert grid == 0 or 2.0 ** -(grid - 1) > least / 1024
    assert public_grid(LaplaceNoise(2, 1e9)) == 0


def test_noise_without_a_path_says_why_before_any_bit_is_drawn():
    def no_bits(_):
        raise AssertionError("no bits may be drawn")

    halves = 0.5 * np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    cube = Box.centred(np.ones(2))
    for noise, reason in (
        (knorm(TriangulatedPolytope(halves)), "an entry of a vertex is not a whole number"),
        (KNormNoise(cube, 1.0, ChainSampler(cube)), "Markov chain"),
        (object(), "no sampler in ball arithmetic"),
    ):
        with pytest.raises(NoExactPath, match=reason):
            Rounded.of(noise, 10).draw(no_bits)


# Vectors and choices are those of mpmath, given the same uniform numbers


SCALES = [1.0, 2.0, 0.1]


def scaled(values):
    return [scale * x for scale, x in zip(SCALES, values, strict=True)]


def wishart(order, rate, centre):
    """The upper triangle of A_1 - A_2 - centre (r_1 - r_2) I, for Wishart matrices A_1 and A_2.

    r_i - tr A_i is exponential with the given rate. If `centre` is 0, the r_i are not drawn.
    """

    def entries(given):
        moved = (given.wishart(order) - given.wishart(order)) / (2 * mpmath.mpf(rate))
        if centre:
            first, second = given.uniforms(2)
            change = moved.trace() - (mpmath.log(first) - mpmath.log(second)) / rate
            moved = moved - mpmath.mpf(centre) * change * np.eye(order, dtype=int)
        return moved[np.triu_indices(order)].tolist()

    return entries


def upper_triangle(given):
    x, y, z = given.gaussians(3)
    return [2 * x, 2 * y / mpmath.sqrt(2), 2 * z]


#: For each name, a vector, and a function that computes it by mpmath.
CASES = {
    "laplaces": (scaled_variables(laplaces, np.array(SCALES)), lambda r: scaled(r.laplaces(3))),
    "gaussians": (scaled_variables(gaussians, np.array(SCALES)), lambda r: scaled(r.gaussians(3))),
    "times": (
        isotropic(2, 0.1).times(-7).balls,
        lambda r: [-7 * mpmath.mpf(0.1) * x for x in r.gaussians(2)],
    ),
    "entries": (matrix_entries(isotropic(3, 2.0).balls, 2), upper_triangle),
    "wishart": (wishart_difference(3, 0.3, 0.0), wishart(3, 0.3, 0)),
    "centred wishart": (wishart_difference(3, 0.3, 0.7), wishart(3, 0.3, 0.7)),
}


@pytest.mark.parametrize("name", CASES)
def test_vectors_are_those_of_the_same_numbers(name):
    vector, expected = CASES[name]
    for seed in range(2):
        with ctx.workprec(REFERENCE_WORDS * WORD_BITS), mpmath.workprec(REFERENCE_BITS):
            found = vector(Draw(UniformBits(seeded(seed)), REFERENCE_WORDS))
            for ball, value in zip(found, expected(Reference(seeded(seed))), strict=True):
                assert abs(mpmath.mpf(ball.mid().str(100, radius=False)) - value) < 1e-80
                assert ball.rad() < 1e-80


SCORES = [0.0, 1.5, -1.0, 3.0, 2.9]
PERTURBATIONS = {
    "gumbel": (GUMBEL, lambda r: [-mpmath.log(-mpmath.log(u)) for u in r.uniforms(5)]),
    "exponential": (EXPONENTIAL, lambda r: [-mpmath.log(u) for u in r.uniforms(5)]),
    "laplace": (LAPLACE, lambda r: r.laplaces(5)),
}


def undecided(*_):
    raise Undecided


@pytest.mark.parametrize("by_balls", [False, True], ids=["as it is", "balls alone"])
@pytest.mark.parametrize("name", PERTURBATIONS)
def test_choices_are_those_of_the_same_numbers(name, by_balls, monkeypatch):
    if by_balls:
        monkeypatch.setattr(scalar, "_by_floats", undecided)
    perturbation, reference = PERTURBATIONS[name]
    rough = np.round(SCORES) + 0.25
    errors = np.abs(rough - SCORES)
    for seed, scale in itertools.product(range(20), (0.7, 3.0)):
        with mpmath.workprec(REFERENCE_BITS):
            keys = [
                x / mpmath.mpf(scale) + z
                for x, z in zip(SCORES, reference(Reference(seeded(seed))), strict=True)
            ]
            best = keys.index(max(keys))
        given = scale, seeded(seed)
        assert noisy_argmax(np.array(SCORES), *given, perturbation=perturbation) == best
        given = scale, seeded(seed)
        found = exact_argmax(rough, errors, SCORES.__getitem__, *given, perturbation=perturbation)
        assert found == best


def test_exact_scores_are_not_asked_for_if_float64_decides():
    scores, refused = np.array([0.0, 1e6, 0.0]), [].__getitem__  # has no scores to give
    for perturbation in (GUMBEL, EXPONENTIAL, LAPLACE):
        given = refused, 1.0, seeded(1)
        assert exact_argmax(scores, np.zeros(3), *given, perturbation=perturbation) == 1
