"""Exact vectors and noisy choices agree with mpmath, which is given the same uniform numbers."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest
from flint import ctx

from geomdp.mechanisms.additive_noise.sums import matrix_entries
from geomdp.noise import scalar
from geomdp.noise.differences import wishart_difference
from geomdp.noise.gaussian import isotropic
from geomdp.noise.points import scaled_variables
from geomdp.noise.rounding import (
    WORD_BITS,
    Draw,
    Undecided,
    UniformBits,
    gaussians,
    laplaces,
)
from geomdp.noise.scalar import EXPONENTIAL, GUMBEL, LAPLACE, exact_argmax, noisy_argmax
from tests.noise.exact.reference import REFERENCE_BITS, REFERENCE_WORDS, Reference, seeded

SCALES = [1.0, 2.0, 0.1]


def scaled(values):
    return [scale * x for scale, x in zip(SCALES, values, strict=True)]


def wishart(order, rate, centre):
    """The upper triangle of A_1 - A_2 - centre (r_1 - r_2) I, for Wishart matrices A_1 and A_2.

    r_i - tr A_i is exponential with the given rate. If `centre` is 0, the r_i are not drawn.
    """

    def entries(given):
        matrices = []
        for _ in range(2):
            factor = mpmath.zeros(order)
            for i in range(order):
                for j, x in enumerate(given.gaussians(i)):
                    factor[i, j] = x
                factor[i, i] = mpmath.sqrt(2 * given.half_gamma(order + 1 - i))
            matrices.append(factor * factor.T / (2 * rate))
        totals = [sum(matrix[i, i] for i in range(order)) for matrix in matrices]
        if centre:
            totals = [
                total - mpmath.log(u) / rate
                for total, u in zip(totals, given.uniforms(2), strict=True)
            ]
        moved = matrices[0] - matrices[1] - centre * (totals[0] - totals[1]) * mpmath.eye(order)
        return [moved[i, j] for i in range(order) for j in range(i, order)]

    return entries


def upper_triangle(given):
    x, y, z = given.gaussians(3)
    return [2 * x, 2 * y / mpmath.sqrt(2), 2 * z]


#: For each name, a function that builds the vector, and a function that computes it by mpmath.
CASES = {
    "scaled laplaces": (
        lambda: scaled_variables(laplaces, np.array(SCALES)),
        lambda r: scaled(r.laplaces(3)),
    ),
    "scaled gaussians": (
        lambda: scaled_variables(gaussians, np.array(SCALES)),
        lambda r: scaled(r.gaussians(3)),
    ),
    "gaussians": (lambda: isotropic(3, 0.1).balls, lambda r: [0.1 * x for x in r.gaussians(3)]),
    "times": (
        lambda: isotropic(2, 1.0).times(-7).balls,
        lambda r: [-7 * x for x in r.gaussians(2)],
    ),
    "entries": (lambda: matrix_entries(isotropic(3, 2.0).balls, 2), upper_triangle),
    "wishart": (lambda: wishart_difference(3, 0.3, 0.0), wishart(3, 0.3, 0)),
    "centred wishart": (lambda: wishart_difference(3, 0.3, 0.7), wishart(3, 0.3, 0.7)),
}


@pytest.mark.parametrize("name", CASES)
def test_vectors_are_those_of_the_same_numbers(name):
    build, expected = CASES[name]
    vector = build()
    for seed in range(2):
        with ctx.workprec(REFERENCE_WORDS * WORD_BITS), mpmath.workprec(REFERENCE_BITS):
            found = vector(Draw(UniformBits(seeded(seed)), REFERENCE_WORDS))
            exact = expected(Reference(seeded(seed)))
            for ball, value in zip(found, exact, strict=True):
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
    def refused(i):
        raise AssertionError(f"the exact score {i} was asked for")

    scores = np.array([0.0, 1e6, 0.0])
    for perturbation in (GUMBEL, EXPONENTIAL, LAPLACE):
        given = refused, 1.0, seeded(1)
        assert exact_argmax(scores, np.zeros(3), *given, perturbation=perturbation) == 1


def test_choices_use_gumbel_noise_if_none_is_named():
    for seed in range(20):
        scores = np.array(SCORES)
        found = noisy_argmax(scores, 2.0, seeded(seed))
        assert found == noisy_argmax(scores, 2.0, seeded(seed), perturbation=GUMBEL)
        none = np.zeros(5)
        assert found == exact_argmax(scores, none, SCORES.__getitem__, 2.0, seeded(seed))
