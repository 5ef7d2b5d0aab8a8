"""Gaussian noise on the residuals of tables, as functions of uniform numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from geomdp._typing import FloatArray
from geomdp.noise.exact.linear import dyadic
from geomdp.noise.exact.near import Near, NearVector, Words, near_gaussians, rounding_error
from geomdp.noise.exact.uniforms import Draw
from geomdp.noise.exact.variates import Vector, gaussians
from geomdp.noise.residual import ResidualNoise, drawn_size, to_coordinates


def residual_answers(noise: ResidualNoise) -> Callable[[Draw], Vector]:
    """A function of uniform numbers that gives the noise on the cells of all tables."""
    groups = noise.residuals.groups
    parts = [residual_vector(group.shape, noise.scales[group.numbers]) for group in groups]

    def vector(draw: Draw) -> Vector:
        coordinates = [value for part in parts for value in part(draw)]
        return list(noise.residuals.to_answers(np.array([coordinates], dtype=object))[0])

    return vector


def residual_vector(shape: tuple[int, ...], scales: FloatArray) -> Callable[[Draw], Vector]:
    """Noise on the coordinates of residuals of one shape; `scales` has one entry per residual."""
    size = drawn_size(shape)
    factors = dyadic(np.repeat(scales, size))

    def vector(draw: Draw) -> Vector:
        values = zip(factors, gaussians(len(factors), draw), strict=True)
        drawn = np.array([factor * g for factor, g in values], dtype=object)
        return list(to_coordinates(drawn.reshape(-1, size), shape).ravel())

    return vector


def near_residuals(shape: tuple[int, ...], scales: FloatArray) -> NearVector:
    size = drawn_size(shape)
    factors = np.repeat(scales, size)
    standard = near_gaussians(len(factors), 1.0)

    def evaluate(words: Words) -> Near:
        values, errors = standard.evaluate(words)
        values = factors * values
        errors = factors * errors * (1 + 2.0**-40) + rounding_error(values)
        cells = values.reshape(-1, *(levels for levels in shape if levels > 2))
        off = errors.reshape(cells.shape)
        for axis in range(1, cells.ndim):
            first, rest = np.split(cells, [1], axis=axis)
            one, others = np.split(off, [1], axis=axis)
            cells = first - rest
            off = (one + others) * (1 + 2.0**-40) + rounding_error(cells)
        return cells.ravel(), off.ravel()

    return NearVector(standard.count, evaluate)
