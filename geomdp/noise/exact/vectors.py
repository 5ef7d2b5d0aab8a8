"""Noise as functions of uniform numbers in ball arithmetic, by the type of the noise."""

from __future__ import annotations

from functools import singledispatch

from flint import arb

from geomdp._typing import FloatArray
from geomdp.bodies.symmetrised import Shifted
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.noise.base import Noise
from geomdp.noise.differences import ConeNoise, PairedNoise
from geomdp.noise.exact.points import Computable, NoExactPath, lift_of, uniform_point
from geomdp.noise.exact.tables import residual_answers
from geomdp.noise.exact.variates import (
    Draw,
    Vector,
    bartlett_factor,
    box_multiples,
    dyadic,
    exponentials,
    gamma,
    gaussians,
    geometric_differences,
    gram,
    laplaces,
    linear_map,
    staircase,
)
from geomdp.noise.few_queries import GeometricNoise, LatticeBoxNoise, StaircaseNoise
from geomdp.noise.gaussian import GaussianNoise, ResidualNoise
from geomdp.noise.knorm import KNormNoise, LaplaceNoise
from geomdp.noise.mapped import MappedNoise
from geomdp.noise.recursive import RecursiveNoise


@singledispatch
def noise_vector(noise: Noise) -> Computable:
    """The noise Z on sums as a function of uniform numbers.

    For independent uniform numbers, Z has the distribution that the class of `noise` states.
    ``NoExactPath``, if the noise or its body has no sampler in balls, is raised before any draw.
    """
    raise NoExactPath(noise, "no sampler in ball arithmetic is written for it")


@noise_vector.register
def _laplace(noise: LaplaceNoise) -> Computable:
    scale = arb(noise.scale)
    return lambda draw: [scale * x for x in laplaces(noise.dimension, draw)]


@noise_vector.register
def _geometric(noise: GeometricNoise) -> Computable:
    scale, units = arb(noise.scale), dyadic(noise.units)

    def vector(draw: Draw) -> Vector:
        # The quotients are rounded, so they are computed again at every precision.
        steps = geometric_differences([scale / unit for unit in units], draw)
        return [unit * step for unit, step in zip(units, steps, strict=True)]

    return vector


@noise_vector.register
def _lattice_box(noise: LatticeBoxNoise) -> Computable:
    coefficients, units, epsilon = noise.coefficients, dyadic(noise.units), arb(noise.epsilon)

    def vector(draw: Draw) -> Vector:
        steps = box_multiples(coefficients, noise.counts, epsilon, draw)
        return [unit * step for unit, step in zip(units, steps, strict=True)]

    return vector


@noise_vector.register
def _staircase(noise: StaircaseNoise) -> Computable:
    width, epsilon, share = arb(noise.width), arb(noise.epsilon), arb(noise.share)
    return lambda draw: [width * staircase(epsilon, share, draw)]


def gaussian_vector(dimension: int, scale: float) -> Computable:
    """Independent Gaussian variables as a function of uniform numbers.

    `scale` is the standard deviation of each of the `dimension` variables, taken as an exact
    number.
    """
    factor = arb(scale)
    return lambda draw: [factor * x for x in gaussians(dimension, draw)]


def scaled_laplaces(scales: FloatArray) -> Computable:
    """Independent Laplace variables as a function of uniform numbers.

    `scales` (m,) are the scales of the variables, taken as exact numbers.
    """
    factors = dyadic(scales)
    return lambda draw: [b * x for b, x in zip(factors, laplaces(len(factors), draw), strict=True)]


def scaled_gaussians(deviations: FloatArray) -> Computable:
    """Independent Gaussian variables of different scales as a function of uniform numbers.

    `deviations` (m,) are the standard deviations of the variables, taken as exact numbers.
    """
    factors = dyadic(deviations)
    return lambda draw: [s * x for s, x in zip(factors, gaussians(len(factors), draw), strict=True)]


@noise_vector.register
def _gaussian(noise: GaussianNoise) -> Computable:
    scale, rank = arb(noise.scale), noise.effective_dimension
    to_answers = linear_map(noise.basis)
    return lambda draw: to_answers([scale * x for x in gaussians(rank, draw)])


@noise_vector.register
def _knorm(noise: KNormNoise) -> Computable:
    if not isinstance(noise.uniform, ExactSampler):
        raise NoExactPath(noise, "its uniform points come from a Markov chain")
    point, epsilon = uniform_point(noise.uniform.body), arb(noise.epsilon)
    shape = noise.effective_dimension + 1

    def vector(draw: Draw) -> Vector:
        radius = gamma(shape, draw) / epsilon
        return [radius * x for x in point(draw)]

    return vector


@noise_vector.register
def _cone(noise: ConeNoise) -> Computable:
    body = Shifted(noise.body, -noise.centre) if noise.centre.any() else noise.body
    lift, rate = lift_of(body, noise.matrix, noise.constant), arb(noise.rate)
    shape = noise.effective_dimension + 1

    def vector(draw: Draw) -> Vector:
        first, second = gamma(shape, draw) / rate, gamma(shape, draw) / rate
        one, two = lift.point(draw), lift.point(draw)
        moved = [first * a - second * b for a, b in zip(one, two, strict=True)]
        return lift.answers(moved, first - second)

    return vector


@noise_vector.register
def _paired(noise: PairedNoise) -> Computable:
    lift, epsilon = lift_of(noise.body, noise.matrix), arb(noise.epsilon)
    shape = 2 * noise.body.dimension + 1

    def vector(draw: Draw) -> Vector:
        radius = gamma(shape, draw) / epsilon
        one, two = lift.point(draw), lift.point(draw)
        return lift.answers([radius * (a - b) for a, b in zip(one, two, strict=True)], arb(0))

    return vector


@noise_vector.register
def _mapped(noise: MappedNoise) -> Computable:
    parts = [(noise_vector(part.noise), linear_map(part.matrix)) for part in noise.parts]

    def vector(draw: Draw) -> Vector:
        summands = [to_answers(inner(draw)) for inner, to_answers in parts]
        return [sum(entries, start=arb(0)) for entries in zip(*summands, strict=True)]

    return vector


@noise_vector.register
def _recursive(noise: RecursiveNoise) -> Computable:
    parts = [
        (noise_vector(part), linear_map(level.keep), linear_map(level.basis))
        for part, level in zip(noise.parts, noise.levels, strict=True)
    ]

    def vector(draw: Draw) -> Vector:
        summands = [outer(keep(inner(draw))) for inner, keep, outer in parts]
        return [sum(entries, start=arb(0)) for entries in zip(*summands, strict=True)]

    return vector


@noise_vector.register
def _residual(noise: ResidualNoise) -> Computable:
    return residual_answers(noise)


# Noise on matrix entries, whose sums can be exact; svec coordinates have factors sqrt(2)


def matrix_entries(on_svec: Computable, order: int) -> Computable:
    """Convert a vector in svec coordinates to matrix entries: the upper triangle, row by row.

    Entries of `on_svec` off the diagonal are divided by sqrt(2). `order` is the number of rows.
    """
    diagonal = [i == j for i in range(order) for j in range(i, order)]

    def entries(draw: Draw) -> Vector:
        root = arb(2).sqrt()
        pairs = zip(diagonal, on_svec(draw), strict=True)
        return [x if on_it else x / root for on_it, x in pairs]

    return entries


def times(factor: int, vector: Computable) -> Computable:
    """A random vector multiplied by a whole number.

    `factor` multiplies every entry of `vector`, a function for `RoundedVector`, as is the result.
    """
    return lambda draw: [factor * x for x in vector(draw)]


def wishart_difference(order: int, rate: float, centre: float) -> Computable:
    """Cone noise over {M psd, tr M <= 1}: the upper triangle of A_1 - A_2 - centre (r_1 - r_2) I.

    The pairs (A_i, r_i) are independent, with density proportional to e^(-rate r) on the cone {A
    psd, r >= tr A}. So A has density proportional to e^(-rate tr A), the law of G G^T / (2 rate)
    for a standard Gaussian G of shape (d, d + 1), and r - tr A is exponential with rate `rate`
    (JL-WIS, X-CONE). If `centre` is 0, the r_i are not drawn.
    """
    exact_rate, exact_centre = arb(rate), arb(centre)

    def wishart(draw: Draw) -> tuple[list[Vector], arb]:
        matrix = gram(bartlett_factor(order, draw))
        trace = sum((matrix[i][i] for i in range(order)), start=arb(0))
        return matrix, trace

    def entries(draw: Draw) -> Vector:
        (first, one), (second, two) = wishart(draw), wishart(draw)
        # The matrices, the traces and `shift` are the quantities of the docstring, multiplied by
        # 2 * rate. The division at the end removes this factor.
        shift = arb(0)
        if centre:
            above, below = exponentials(2, draw)
            shift = exact_centre * (one - two + 2 * (above - below))
        return [
            (first[i][j] - second[i][j] - (shift if i == j else 0)) / (2 * exact_rate)
            for i in range(order)
            for j in range(i, order)
        ]

    return entries
