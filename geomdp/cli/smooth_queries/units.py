"""Conversion of smooth queries: from the units of the columns to units of the cube [-1, 1]^d."""

from __future__ import annotations

import itertools
import math

import numpy as np

from geomdp._typing import FloatArray
from geomdp.data import Schema
from geomdp.workloads.smooth import (
    ClosedForm,
    GaussianMixture,
    Logistic,
    Polynomial,
    SoftRange,
    Waves,
)

#: Largest number of terms in the expansion of one polynomial, before equal monomials are added.
MAX_TERMS = 10_000


def in_cube(query: ClosedForm, schema: Schema) -> ClosedForm:
    """A query on the cube with the same values as `query` on the columns of `schema`.

    A point x represents y_i = c_i + r_i x_i, for the middle c_i and half width r_i of the bounds.
    Widths and bandwidths are in units of the cube. ``ValueError`` for another number of variables,
    a kind that cannot be converted, or polynomials of more than 10,000 terms.
    """
    bounds = np.array([column.bounds for column in schema.real_columns])
    middle, half = bounds.mean(axis=1), np.diff(bounds, axis=1)[:, 0] / 2
    if query.dimension != len(bounds):
        raise ValueError(f"a query must have {len(bounds)} variables, got {query.dimension}")
    match query:
        case GaussianMixture():
            centres = (query.centres - middle) / half
            return GaussianMixture(centres, query.weights, query.bandwidth)
        case Logistic():
            bias = query.bias + float(query.weights @ middle)
            return Logistic(query.weights * half, bias)
        case Waves():
            phases = query.phases + query.frequencies @ middle
            return Waves(query.frequencies * half, query.amplitudes, phases)
        case SoftRange():
            low, high = (query.low - middle) / half, (query.high - middle) / half
            return SoftRange(low, high, query.width)
        case Polynomial():
            return _expanded(query, middle, half)
        case _:
            raise ValueError(f"{type(query).__name__} cannot be given in units of the columns")


def _expanded(query: Polynomial, middle: FloatArray, half: FloatArray) -> Polynomial:
    """The polynomial sum_j a_j prod_i (c_i + r_i x_i)^(e_ji) of `query`, as monomials in x."""
    exponents = query.exponents.astype(np.int64)
    if sum(math.prod(row) for row in (exponents + 1).tolist()) > MAX_TERMS:
        raise ValueError(f"a polynomial must expand to at most {MAX_TERMS} monomials")
    terms: dict[tuple[int, ...], float] = {}
    for powers, coefficient in zip(exponents.tolist(), query.coefficients.tolist(), strict=True):
        for chosen in itertools.product(*(range(power + 1) for power in powers)):
            factors = [
                math.comb(power, k) * r**k * c ** (power - k)
                for power, k, c, r in zip(powers, chosen, middle, half, strict=True)
            ]
            terms[chosen] = terms.get(chosen, 0.0) + coefficient * math.prod(factors)
    return Polynomial(np.array(list(terms)), np.array(list(terms.values())))
