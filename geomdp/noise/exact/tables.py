"""Uniform points of the moment body of tables; if the body is cut, by rejection.

The construction is that of `geomdp.bodies.conic.table_draws`, here in ball arithmetic (`arb`): each
number is an interval that holds the exact value. A column of l levels is a set of l orthogonal
vectors y_a in R^(1 + P), where P is the sum of l - 1 over the columns. The squared length and the
first coordinate of y_a are both the share m_a of the level. The inner products of the vectors of
two columns are the two-way table of the columns.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from flint import arb

from geomdp.bodies.conic.table_draws import violations
from geomdp.noise.exact.linear import gram
from geomdp.noise.exact.uniforms import Draw, Undecided
from geomdp.noise.exact.variates import Vector, ball_sum, bartlett_row, dirichlet

#: Violations are first computed in float64 if all entries have at most this radius.
ENTRY_RADIUS = 2.0**-50


def table_contrasts(levels: Sequence[int], limit: float, draw: Draw) -> Vector:
    """A uniform point of `TableMoments(levels, limit)`, in the coordinates of that body."""
    return _coordinates(_accepted(levels, limit, draw))


def table_cells(levels: Sequence[int], limit: float, draw: Draw) -> Vector:
    """A uniform point of `TableMoments(levels, limit)`, given by the cells of its tables.

    Cells are the shares m_i of the columns in turn, then the tables M_ij row by row for i < j.
    """
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
    """The vectors of each column, for a uniform point of the cut body, by rejection.

    Points of the uncut body are drawn until the total violation of one is at most the limit. A
    further column can only increase the violation of the columns drawn so far, so most points are
    rejected early.
    """
    while True:
        columns = _columns(levels, limit, draw)
        if columns is not None:
            return columns


def _columns(levels: Sequence[int], limit: float, draw: Draw) -> list[list[Vector]] | None:
    """The vectors of each column; None as soon as the violation exceeds the limit."""
    order = sum(levels) - len(levels)
    columns: list[list[Vector]] = []
    cut = None if math.isinf(limit) else _Cut(limit)
    first = 0
    for count in levels:
        rows = [bartlett_row(place, order, draw) for place in range(first, first + count - 1)]
        first += count - 1
        # The Dirichlet law has parameters (P - q) / 2 + 1 for q = count - 1 and P = order;
        # `dirichlet` takes twice that.
        shares = dirichlet(count, order - count + 3, draw)
        columns.append(_vectors(shares, _orthonormal(rows, order)))
        if cut is not None and not cut.allows(columns[-1]):
            return None
    return columns


def _orthonormal(rows: list[Vector], width: int) -> list[Vector]:
    """Orthonormal rows by Gram-Schmidt, after zeros are appended to give all rows one width."""
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
    """y_a = (m_a, row a of C Q), where Q has orthonormal rows and C C^T = diag(m) - m m^T.

    m are the `shares`, and Q is the `frame`. C is the Cholesky factor, which follows from
    conditional variances: let t_k = m_k + m_(k+1) + ...; column k of C is (m_k t_(k+1) / t_k)^(1/2)
    in row k and -m_a (m_k / (t_k t_(k+1)))^(1/2) in rows a > k.
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
    """The weighted sum of the first rows; rows beyond the number of weights are left out."""
    chosen = rows[: len(weights)]
    return [
        ball_sum([weight * x for weight, x in zip(weights, entries, strict=True)])
        for entries in zip(*chosen, strict=True)
    ]


def _coordinates(columns: list[list[Vector]]) -> Vector:
    """H_i^T m_i for columns i in turn, then H_i^T M_ij H_j row by row for i < j.

    H_i are the Helmert contrasts of column i.
    """
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


class _Cut:
    """Whether the violation of the columns so far is at most the limit.

    The answer decides which random numbers are read next. It must therefore be the answer for the
    exact vectors, whatever the precision of the balls. Float64 is used if its proved error cannot
    change the answer; if the balls are too wide to decide, `Undecided` asks for more bits.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._starts = [0]
        self._vectors: list[Vector] = []
        self._floats: list[list[float]] = []
        self._widest = 0.0

    def allows(self, column: list[Vector]) -> bool:
        """Add one column, and say whether the violation is still at most the limit."""
        self._starts.append(self._starts[-1] + len(column))
        self._vectors += column
        self._floats += [[float(entry) for entry in vector] for vector in column]
        radii = [float(entry.rad()) for vector in column for entry in vector]
        self._widest = max(self._widest, *radii)
        guess = self._float_comparison()
        if guess is not None:
            return guess
        total = _violation(gram(self._vectors), self._starts)
        if total <= self._limit:
            return True
        if total > self._limit:
            return False
        raise Undecided

    def _float_comparison(self) -> bool | None:
        """The comparison in float64, or None if its error leaves both answers possible.

        Vectors have w entries and length at most 1. If radii are at most 2^-50, the floats have an
        error of at most 2^-49, and inner products one of at most w 2^-47, rounding included. Each
        of N inequalities adds 6 inner products and has an error of at most w 2^-44. The sum of N
        values of at most 4 has a rounding error of at most N^2 2^-51.
        """
        if self._widest > ENTRY_RADIUS:
            return None
        entries = np.array(self._floats)
        cells = entries @ entries.T
        total = float(violations(cells[None], np.array(self._starts, dtype=np.int64))[0])
        count = self._starts[-1] ** 2 + 4 * math.comb(self._starts[-1], 3)
        error = count * entries.shape[1] * 2.0**-44 + count**2 * 2.0**-51
        # `not >` also leaves a NaN undecided.
        if not abs(total - self._limit) > error:
            return None
        return total < self._limit


def _violation(cells: list[Vector], starts: list[int]) -> arb:
    """Total violation of the cell and triangle inequalities, as in `table_draws.violations`."""
    columns = [range(a, b) for a, b in itertools.pairwise(starts)]
    missing = [-cells[a][b] for i, j in itertools.combinations(columns, 2) for a in i for b in j]
    # Use one event of a column of two levels: the other is its complement, for which the four
    # inequalities are the same in another order.
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
