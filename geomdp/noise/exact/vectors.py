"""Noise as computable vectors, by the type of the noise."""

from __future__ import annotations

from functools import singledispatch

import numpy as np
from flint import arb

from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.noise.base import Noise
from geomdp.noise.cone import ConeNoise
from geomdp.noise.exact.linear import dyadic, linear_map
from geomdp.noise.exact.missing import NoExactPath
from geomdp.noise.exact.points import Computable, uniform_point
from geomdp.noise.exact.uniforms import Draw
from geomdp.noise.exact.variates import Vector, gamma, gaussians, laplaces
from geomdp.noise.gaussian import GaussianNoise
from geomdp.noise.knorm import KNormNoise
from geomdp.noise.laplace import LaplaceNoise
from geomdp.noise.mapped import MappedNoise
from geomdp.noise.paired import PairedNoise
from geomdp.noise.recursive import RecursiveNoise


@singledispatch
def noise_vector(noise: Noise) -> Computable:
    """The noise Z on sums as a function of uniform numbers, with the law that its class states.

    What depends on the noise alone is prepared at this call, so that errors come before any draw.

    Raises
    ------
    NoExactPath
        If the noise, or a body it is made of, has no computable sampler in this room.
    """
    raise NoExactPath(noise, "no sampler in ball arithmetic is written for it")


@noise_vector.register
def _laplace(noise: LaplaceNoise) -> Computable:
    scale = arb(noise.scale)
    return lambda draw: [scale * x for x in laplaces(noise.dimension, draw)]


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
    point, rate = uniform_point(noise.body), arb(noise.rate)
    centre = dyadic(noise.centre)
    shape = noise.effective_dimension + 1
    to_answers = None if noise.matrix is None else linear_map(noise.matrix)
    constant = dyadic(np.zeros(noise.dimension) if noise.constant is None else noise.constant)

    def vector(draw: Draw) -> Vector:
        first, second = gamma(shape, draw) / rate, gamma(shape, draw) / rate
        change = first - second
        moved = [
            first * a - second * b - change * c
            for a, b, c in zip(point(draw), point(draw), centre, strict=True)
        ]
        answers = moved if to_answers is None else to_answers(moved)
        return [x + change * c for x, c in zip(answers, constant, strict=True)]

    return vector


@noise_vector.register
def _paired(noise: PairedNoise) -> Computable:
    point, epsilon = uniform_point(noise.body), arb(noise.epsilon)
    to_answers = linear_map(noise.matrix)

    def vector(draw: Draw) -> Vector:
        radius = gamma(2 * noise.body.dimension + 1, draw) / epsilon
        return to_answers([radius * (a - b) for a, b in zip(point(draw), point(draw), strict=True)])

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
