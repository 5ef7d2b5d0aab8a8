"""Uniform points of the moment body of tables, by rejection where the body is cut.

The construction is that of `geomdp.bodies.conic.table_draws`, in balls: a column of l levels is l
orthogonal vectors y_a in R^(1 + P) whose squared lengths and first coordinates are its shares m_a;
inner products of vectors of two columns are their two-way table.
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

#: Largest radius of an entry for which violations are first computed in float64.
ENTRY_RADIUS = 2.0**-50


def table_contrasts(levels: Sequence[int], limit: float, draw: Draw) -> Vector:
    """A uniform point of `TableMoments(levels, limit)`, in its coordinates."""
    return _coordinates(_accepted(levels, limit, draw))


def table_cells(levels: Sequence[int], limit: float, draw: Draw) -> Vector:
    """The same point by its cells: shares m_i of columns in turn, then M_ij by rows for i < j."""
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
    """The vectors of each column of a point of the cut body, by rejection.

    Draws from the body that is not cut until the total violation is at most the limit. What the
    columns drawn so far violate only grows with further columns, so most draws are refused early.
    """
    while True:
        columns = _columns(levels, limit, draw)
        if columns is not None:
            return columns


def _columns(levels: Sequence[int], limit: float, draw: Draw) -> list[list[Vector]] | None:
    """The vectors of each column; None once the violation is above the limit."""
    order = sum(levels) - len(levels)
    columns: list[list[Vector]] = []
    cut = None if math.isinf(limit) else _Cut(limit)
    first = 0
    for count in levels:
        rows = [bartlett_row(place, order, draw) for place in range(first, first + count - 1)]
        first += count - 1
        # The parameter of the Dirichlet law is (P - q) / 2 + 1 for q = count - 1.
        shares = dirichlet(count, order - count + 3, draw)
        columns.append(_vectors(shares, _orthonormal(rows, order)))
        if cut is not None and not cut.allows(columns[-1]):
            return None
    return columns


def _orthonormal(rows: list[Vector], width: int) -> list[Vector]:
    """Gram-Schmidt of rows, filled up with zeros to one width."""
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
    """y_a = (m_a, row a of C Q) with orthonormal rows Q and C C^T = diag(m) - m m^T.

    Conditional variances give C: with t_k = m_k + m_(k+1) + ..., its column k is
    (m_k t_(k+1) / t_k)^(1/2) at k and -m_a (m_k / (t_k t_(k+1)))^(1/2) at a > k.
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
    """The sum of weighted rows, of which those without a weight are left out."""
    chosen = rows[: len(weights)]
    return [
        ball_sum([weight * x for weight, x in zip(weights, entries, strict=True)])
        for entries in zip(*chosen, strict=True)
    ]


def _coordinates(columns: list[list[Vector]]) -> Vector:
    """H_i^T m_i for columns i in turn, then H_i^T M_ij H_j row by row for i < j."""
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

    The answer is that of the exact vectors, at every precision, as it decides which numbers are
    read next. Float64 is used where its proved error cannot change the answer.
    """

    def __init__(self, limit: float) -> None:
        self._limit = limit
        self._starts = [0]
        self._vectors: list[Vector] = []
        self._floats: list[list[float]] = []
        self._widest = 0.0

    def allows(self, column: list[Vector]) -> bool:
        """The answer with one more column."""
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

        Vectors have length at most 1 and w entries. With radii of at most 2^-50 their floats are
        off by at most 2^-49, so that inner products are off by at most w 2^-47 with their rounding.
        Each of N inequalities adds 6 of them and is off by at most w 2^-44; adding N values of at
        most 4 rounds by at most N^2 2^-51.
        """
        if self._widest > ENTRY_RADIUS:
            return None
        entries = np.array(self._floats)
        cells = entries @ entries.T
        total = float(violations(cells[None], np.array(self._starts, dtype=np.int64))[0])
        count = self._starts[-1] ** 2 + 4 * math.comb(self._starts[-1], 3)
        error = count * entries.shape[1] * 2.0**-44 + count**2 * 2.0**-51
        # Written so that a total that is no number is left undecided.
        if not abs(total - self._limit) > error:
            return None
        return total < self._limit


def _violation(cells: list[Vector], starts: list[int]) -> arb:
    """The sum of what cell and triangle inequalities miss, of the events `table_draws` counts."""
    columns = [range(a, b) for a, b in itertools.pairwise(starts)]
    missing = [-cells[a][b] for i, j in itertools.combinations(columns, 2) for a in i for b in j]
    # Of two levels one is the complement of the other, which permutes the four inequalities.
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
