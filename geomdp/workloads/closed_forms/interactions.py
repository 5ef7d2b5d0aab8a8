"""Interactions of columns (analysis of variance): orthogonal blocks of marginal tables.

Q(x) holds the weighted cells of the tables for a record x. It is a sum with one part for each set S
of columns. The part of S depends on x only through the columns in S. In a table T that does not
contain S, the part is 0. In any other table, the part is the weight w_T times a tensor product with
one factor for each column i of T. Let l_i be the number of levels of column i. If i is in S, the
factor is e_(x_i) - 1/l_i, where e_j is unit vector j. If i is not in S, the factor is the constant
vector 1/l_i. The parts of different sets are orthogonal. If some table contains S, the parts of S
for all x span a space of dimension prod (l_i - 1). Let
c_S^2 = sum over tables T that contain S of w_T^2 prod over i in T - S of 1/l_i. Then

    ||part(x) - part(x')||^2 = 2 c_S^2 (prod (1 - 1/l_i) - prod (1[x_i = x'_i] - 1/l_i)),
    ||part(x)||^2 = c_S^2 prod (1 - 1/l_i)   for all x.

Products without a range are over i in S. The first expression depends on x and x' only through the
set of columns of S in which x and x' agree. So the largest value of this expression is found by
trying all subsets of S.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from geomdp._typing import FloatArray
from geomdp.workloads.base import Block
from geomdp.workloads.finite import zero_sum_basis


def interaction_block(
    levels: Sequence[int],
    places: Mapping[tuple[int, ...], slice],
    weights: FloatArray,
    S: tuple[int, ...],
) -> Block:
    """The block of columns S; `places` and `weights` give the cells and weight of each table."""
    contrasts: FloatArray = np.ones((1, 1))
    for i in S:
        contrasts = np.kron(contrasts, zero_sum_basis(levels[i])).astype(np.float64)
    rank = contrasts.shape[1]
    basis = np.zeros((max(place.stop for place in places.values()), rank))
    squared_scale = 0.0
    for (table, place), weight in zip(places.items(), weights, strict=True):
        if not set(S) <= set(table):
            continue
        constant = 1 / math.prod(levels[i] for i in table if i not in S)
        # Columns of the table that are not in S become axes of length 1. Values are repeated along
        # these axes.
        axes = [levels[i] if i in S else 1 for i in table]
        spread = np.broadcast_to(
            contrasts.reshape(*axes, rank), (*(levels[i] for i in table), rank)
        )
        basis[place] = weight * constant * spread.reshape(-1, rank)
        squared_scale += weight**2 * constant
    shares = [1 / levels[i] for i in S]
    same = math.prod(1 - share for share in shares)
    apart = min(
        math.prod(agree - share for agree, share in zip(pattern, shares, strict=True))
        for pattern in itertools.product((0, 1), repeat=len(S))
        if not all(pattern)
    )
    basis /= math.sqrt(squared_scale)
    diameter = math.sqrt(2 * squared_scale * (same - apart))
    return Block(basis, diameter, math.sqrt(squared_scale * same))
