"""Uniform points of `TableMoments`, by rejection if the body is cut.

A column of l levels is represented by l orthogonal vectors y_a in R^(1 + P), with P the sum of
l - 1 over all columns. The squared length and the first coordinate of y_a are both the share m_a of
the level. The inner products of the vectors of two columns form their two-way table.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from flint import arb

from geomdp.noise.exact.linear import gram
from geomdp.noise.exact.tables.tries import try_shape
from geomdp.noise.exact.uniforms import Draw, Undecided
from geomdp.noise.exact.variates import Vector, ball_sum, bartlett_row, dirichlet

#: Number of tries that are evaluated together: in the first batch, and in each later batch. If the
#: cut leaves a hundredth of the volume, a point takes a hundred tries on average. If the cut leaves
#: most of the volume, a point takes fewer than two tries on average.
FIRST_TRIES, MORE_TRIES = 16, 64
#: For tries with at most this many uniform numbers, balls are faster than arrays of float64.
FEW_NUMBERS = 64


def table_contrasts(levels: Sequence[int], limit: float, draw: Draw) -> Vector:
    """A uniform point of `TableMoments(levels, limit)`, in the coordinates of that body."""
    return _coordinates(_accepted(levels, limit, draw))


def table_cells(levels: Sequence[int], limit: float, draw: Draw) -> Vector:
    """The cells of a uniform point of `TableMoments(levels, limit)`, in the order of `CellMap`."""
    columns = _accepted(levels, limit, draw)
    products = gram([vector for column in columns for vector in column])
    starts = [0, *itertools.accumulate(map(len, columns))]
    events = [range(a, b) for a, b in itertools.pairwise(starts)]
    shares = [vector[0] for column in columns for vector in column]
    return [
        *shares,
        *(products[a][b] for i, j in itertools.combinations(events, 2) for a in i for b in j),
    ]


def _accepted(levels: Sequence[int], limit: float, draw: Draw) -> list[list[Vector]]:
    """The vectors of each column, for the first try that violates the cut by at most `limit`."""
    if math.isinf(limit):
        return _columns(levels, draw)
    shape = try_shape(tuple(levels))
    while shape.numbers <= FEW_NUMBERS:
        columns = _columns(levels, draw)
        if _is_within(columns, limit):
            return columns
    count = FIRST_TRIES
    while True:
        uniforms = draw.leading(count * shape.numbers).reshape(count, shape.numbers)
        tries = shape.evaluate(uniforms)
        certain = tries.accepted(limit)
        for place in np.flatnonzero(~tries.refused(limit)).tolist():
            columns = _columns(levels, draw.ahead(place * shape.numbers))
            if certain[place] or _is_within(columns, limit):
                draw.skip((place + 1) * shape.numbers)
                return columns
        draw.skip(count * shape.numbers)
        count = MORE_TRIES


def _columns(levels: Sequence[int], draw: Draw) -> list[list[Vector]]:
    order = sum(levels) - len(levels)
    columns: list[list[Vector]] = []
    first = 0
    for count in levels:
        rows = [bartlett_row(place, order, draw) for place in range(first, first + count - 1)]
        first += count - 1
        # The Dirichlet distribution has parameters (P - q) / 2 + 1 for q = count - 1 and P = order.
        # `dirichlet` takes twice this number.
        shares = dirichlet(count, order - count + 3, draw)
        columns.append(_vectors(shares, _orthonormal(rows, order)))
    return columns


def _orthonormal(rows: list[Vector], width: int) -> list[Vector]:
    """Append zeros to rows up to length `width`, and orthonormalise the rows by Gram-Schmidt."""
    frame: list[Vector] = []
    for row in rows:
        rest = [*row, *[arb(0)] * (width - len(row))]
        for unit in frame:
            overlap = _inner(unit, rest)
            rest = [x - overlap * e for x, e in zip(rest, unit, strict=True)]
        length = _inner(rest, rest).sqrt()
        frame.append([x / length for x in rest])
    return frame


def _vectors(shares: Vector, frame: list[Vector]) -> list[Vector]:
    """y_a = (m_a, row a of C Q) for shares m and orthonormal rows Q, with C C^T = diag(m) - m m^T.

    With t_k = m_k + m_(k+1) + ..., column k of the Cholesky factor C is (m_k t_(k+1) / t_k)^(1/2)
    in row k, and -m_a (m_k / (t_k t_(k+1)))^(1/2) in rows a > k.
    """
    tails = list(itertools.accumulate(reversed(shares)))[::-1]
    vectors = []
    for a, share in enumerate(shares):
        weights = [-share * (shares[k] / (tails[k] * tails[k + 1])).sqrt() for k in range(a)]
        if a < len(frame):
            weights.append((share * tails[a + 1] / tails[a]).sqrt())
        vectors.append([share, *_combined(weights, frame)])
    return vectors


def _combined(weights: Vector, rows: list[Vector]) -> Vector:
    chosen = rows[: len(weights)]
    return [
        ball_sum([weight * x for weight, x in zip(weights, entries, strict=True)])
        for entries in zip(*chosen, strict=True)
    ]


def _coordinates(columns: list[list[Vector]]) -> Vector:
    """H_i^T m_i for each column i, then H_i^T M_ij H_j row by row for i < j, as in `CellMap`."""
    contrasts = [
        _combined(weights, vectors) for vectors in columns for weights in _helmert(vectors)
    ]
    products = gram(contrasts)
    sizes = [len(vectors) - 1 for vectors in columns]
    ends = list(itertools.accumulate(sizes))
    owns = [range(end - size, end) for end, size in zip(ends, sizes, strict=True)]
    pairs = [
        products[a][b]
        for first, second in itertools.combinations(owns, 2)
        for a in first
        for b in second
    ]
    return [*(row[0] for row in contrasts), *pairs]


def _helmert(vectors: list[Vector]) -> list[Vector]:
    """Weights of the Helmert contrasts: (1, .., 1, -j, 0, ..) / (j (j + 1))^(1/2) for j >= 1."""
    contrasts = []
    for j in range(1, len(vectors)):
        entry = 1 / arb(j * (j + 1)).sqrt()
        contrasts.append([*[entry] * j, -j * entry])
    return contrasts


def _is_within(columns: list[list[Vector]], limit: float) -> bool:
    """Whether the exact point is within the limit (later draws depend on this), or `Undecided`."""
    starts = [0, *itertools.accumulate(map(len, columns))]
    total = _violation(gram([vector for column in columns for vector in column]), starts)
    if total <= limit:
        return True
    if total > limit:
        return False
    raise Undecided


def _violation(cells: list[Vector], starts: list[int]) -> arb:
    """Total violation, as in `table_draws.violations`, for inner products `cells` of all levels."""
    columns = [range(a, b) for a, b in itertools.pairwise(starts)]
    missing = [-cells[a][b] for i, j in itertools.combinations(columns, 2) for a in i for b in j]
    # An event is a level of a column. Use only one event of a column with two levels. The other
    # event is its complement, which has the same four inequalities in another order.
    events = [column[:1] if len(column) == 2 else column for column in columns]
    for chosen in itertools.combinations(events, 3):
        for a, b, c in itertools.product(*chosen):
            ab, ac, bc = cells[a][b], cells[a][c], cells[b][c]
            missing += [
                cells[a][a] + cells[b][b] + cells[c][c] - 1 - ab - ac - bc,
                ab + ac - bc - cells[a][a],
                ab + bc - ac - cells[b][b],
                ac + bc - ab - cells[c][c],
            ]
    return ball_sum([value.nonnegative_part() for value in missing])


def _inner(first: Vector, second: Vector) -> arb:
    return ball_sum([a * b for a, b in zip(first, second, strict=True)])
