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

    The bounds of column i have the middle c_i and the half width r_i. A point x of the cube
    therefore represents the values y_i = c_i + r_i x_i.

    A bandwidth, or the width of the edge of a soft range, is one number for all columns. Such a
    number is not converted, because it is in units of the cube, in which every half width is 1.

    Raises
    ------
    ValueError
        If the number of variables is not the number of columns. If this kind of query cannot be
        converted. If the expansion of a polynomial has more than 10,000 terms, before terms with
        equal exponents are added.
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
    """The polynomial sum_j a_j prod_i (c_i + r_i x_i)^(e_ji), as a sum of monomials in x.

    The a_j and e_ji are the coefficients and exponents of `query`.
    """
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
