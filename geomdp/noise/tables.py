"""Uniform points of `TableMoments`: by rejection if the body is cut.

Many tries are evaluated in float64, with bounds on the errors. Refused tries are skipped, and ball
arithmetic decides those that the bounds leave open.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb

from geomdp._numerics.linalg import row_blocks
from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp.bodies import TableMoments
from geomdp.noise.points import (
    ball_sum,
    bartlett_row,
    combined,
    dirichlet,
    dot,
    gram,
    uniform_point,
)
from geomdp.noise.rounding import (
    FUNCTION_ERROR,
    Computable,
    Draw,
    Near,
    Vector,
    decided_below,
    logarithm,
    sine_cosine,
)

# Violations of cell and triangle inequalities by matrices of tables, in float64 or in balls.
# An event is a level of a column, and a cell is the share of records in two events. Cells must be
# at least 0, and triangle inequalities relate the shares of three events and of their pairs.

#: Number of pairs (triple of events, matrix) that are evaluated in one step: ten arrays of 256 KiB.
BLOCK = 1 << 15


def total_violation(cells: FloatArray, starts: IntArray) -> FloatArray:
    """Total violation (b,) of the cell and triangle inequalities by matrices `cells` (b, L, L).

    Block (i, j) of the L events is a two-way table, and the diagonal holds their shares; the rest
    of diagonal blocks is not read. `starts` holds the first event of each column, and then L.
    """
    # Store the b values of each entry next to each other in memory, so that reading them is fast.
    entries = np.ascontiguousarray(cells.transpose(1, 2, 0))
    pairs, triples = inequalities(tuple(starts))
    total = np.maximum(-entries[*pairs], 0.0).sum(axis=0)
    for part in row_blocks(triples.shape[1], len(cells), BLOCK):
        first, *others = _triangles(entries, triples[:, part])
        amounts = np.maximum(first, 0.0)
        for other in others:
            amounts += np.maximum(other, 0.0)
        total += amounts.sum(axis=0)
    return np.asarray(total)


def _triangles(entries: npt.NDArray[Any], triples: IntArray) -> tuple[npt.NDArray[Any], ...]:
    """By how much `entries` (L, L, b) violate the four triangle inequalities of `triples`."""
    a, b, c = triples
    ab, ac, bc = entries[a, b], entries[a, c], entries[b, c]
    aa, bb, cc = entries[a, a], entries[b, b], entries[c, c]
    both = ab + ac + bc
    return aa + bb + cc - 1 - both, both - 2 * bc - aa, both - 2 * ac - bb, both - 2 * ab - cc


@functools.lru_cache(maxsize=16)
def inequalities(starts: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """The cells (2, c) of tables and the triples (3, t) of events with an inequality."""
    column = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    # Of two levels, the first is enough: its complement has the same inequalities.
    chosen = np.repeat(np.diff(starts) != 2, np.diff(starts))
    chosen[list(starts[:-1])] = True
    events = [np.flatnonzero(chosen & (column == i)) for i in range(len(starts) - 1)]
    blocks = [
        np.stack(np.meshgrid(*three, indexing="ij")).reshape(3, -1)
        for three in itertools.combinations(events, 3)
    ]
    triples = np.concatenate([np.empty((3, 0), dtype=np.int64), *blocks], axis=1)
    return np.array(np.nonzero(column[:, None] < column)), triples


# Many tries of rejection sampling in float64, with bounds on the errors.
# The bound for each step is at least twice its rounding error, in any order of summation. This
# covers products of errors, as every error is below `LARGEST_ERROR`; else the total error is set to
# infinity.

#: Logarithms are taken of uniform numbers U. A try with U or 1 - U below the first number stays
#: open, or with a product of such U below the second, because it may underflow.
LEAST_UNIFORM, LEAST_PRODUCT = 2.0**-30, 2.0**-1000
#: Largest error of an intermediate result, see above.
LARGEST_ERROR = 2.0**-20


@dataclass(frozen=True, eq=False)
class Tries:
    """The total violations of b tries, and bounds on their errors, both of shape (b,)."""

    violation: FloatArray
    error: FloatArray

    def refused(self, limit: float) -> BoolArray:
        """Whether the total violation of each try is certainly above `limit`."""
        return self.violation - self.error > limit

    def accepted(self, limit: float) -> BoolArray:
        """Whether the total violation of each try is certainly below `limit`."""
        return self.violation + self.error < limit


@dataclass(frozen=True)
class TryShape:
    """The random variables of a try for columns of `levels`, in the order of `_columns`."""

    levels: tuple[int, ...]

    @property
    def order(self) -> int:
        """P, the sum of (levels - 1) over the columns."""
        return sum(self.levels) - len(self.levels)

    @cached_property
    def starts(self) -> IntArray:
        """Index of the first event (level) of each column, and then the number of events."""
        return np.cumsum([0, *self.levels]).astype(np.int64)

    @cached_property
    def _places(self) -> Places:
        places, first = Places(), 0
        for count in self.levels:
            for row in range(first, first + count - 1):
                places.add_row(row, self.order)
            for _ in range(count):
                places.add_half_gamma(self.order - count + 3, places.parts)
            first += count - 1
        return places

    @property
    def numbers(self) -> int:
        return self._places.count

    # Uniform numbers near 0 or 1 may give infinities and NaN here. Such tries stay open.
    @np.errstate(all="ignore")
    def evaluate(self, uniforms: FloatArray) -> Tries:
        """Evaluate b `uniforms` (b, numbers), exact up to relative 2^-53 and absolute 2^-62."""
        places = self._places
        variables = Variables(uniforms, places)
        rows, row_error = variables.rows(self.order)
        parts, parts_error = variables.half_gammas(places.parts)
        count = len(uniforms)
        vectors = np.empty((count, int(self.starts[-1]), self.order + 1))
        error = np.zeros(count)
        first = 0
        for low, high in itertools.pairwise(self.starts.tolist()):
            frame, frame_error = _orthonormal(rows[:, first : first + high - low - 1], row_error)
            first += high - low - 1
            own = slice(low, high)
            found = _vectors(parts[:, own], parts_error[:, own], frame, frame_error)
            vectors[:, own], error = found[0], np.maximum(error, found[1])
        # Vectors have length at most 1.
        cells = vectors @ vectors.transpose(0, 2, 1)
        cell_error = 3 * error + (self.order + 1) * 2.0**-50
        # Each inequality is a sum of at most six cells and a constant, and at most 4 in modulus.
        pairs, triples = inequalities(tuple(self.starts))
        terms = pairs.shape[1] + 4 * triples.shape[1]
        total_error = 7 * terms * cell_error + terms**2 * 2.0**-50
        # `<=` is False for NaN, so a NaN leaves the try open, too.
        total_error[~(np.maximum(error, variables.open) <= LARGEST_ERROR)] = math.inf
        return Tries(total_violation(cells, self.starts), total_error)


try_shape = functools.lru_cache(maxsize=16)(TryShape)


class Places:
    """For each variable of a try, the positions of its numbers in the list of uniform numbers."""

    def __init__(self) -> None:
        self.count = 0
        #: For each pair of Gaussian variables: the row, the position in the row, and the positions
        #: of two uniform numbers, for the radius and the angle.
        self.pairs: list[tuple[int, int, int, int]] = []
        #: Gamma variables for chi variables, and for shares: the position of the first uniform
        #: number of each, and twice its shape.
        self.chi: list[tuple[int, int]] = []
        self.parts: list[tuple[int, int]] = []

    def add_row(self, row: int, order: int) -> None:
        """Add the numbers of `points.bartlett_row`."""
        pairs = (row + 1) // 2
        radii = range(self.count, self.count + pairs)
        self.pairs += [(row, 2 * i, radius, radius + pairs) for i, radius in enumerate(radii)]
        self.count += 2 * pairs
        self.add_half_gamma(order + 1 - row, self.chi)

    def add_half_gamma(self, twice_shape: int, group: list[tuple[int, int]]) -> None:
        """Add a variable of `points.half_gamma`, which is exponential for `twice_shape` = 2."""
        group.append((self.count, twice_shape))
        self.count += twice_shape // 2 + 2 * (twice_shape % 2)


class Variables:
    def __init__(self, uniforms: FloatArray, places: Places) -> None:
        self._uniforms, self._places = uniforms, places
        logged = np.zeros(uniforms.shape[1], dtype=bool)
        logged[[radius for *_, radius, _ in places.pairs]] = True
        for start, twice in places.chi + places.parts:
            logged[start : start + twice // 2 + twice % 2] = True
        used = uniforms[:, logged]
        least = used.min(axis=1)
        #: (b,): 1 if a logarithm of a number too near to 0 or 1 leaves the try open, else 0.
        self.open = ((least < LEAST_UNIFORM) | (used.max(axis=1) > 1 - LEAST_UNIFORM)) * 1.0
        #: (b, 1): bounds on the relative errors of the numbers whose logarithms are taken.
        self._relative = (2.0**-52 + 2.0**-61 / np.maximum(least, LEAST_UNIFORM))[:, None]

    def _exponentials(self, products: FloatArray, factors: FloatArray | float) -> Near:
        """-ln of products of `factors` uniform numbers, with bounds on the absolute errors."""
        values = -logarithm(products)
        errors = 2 * factors * self._relative + 2 * FUNCTION_ERROR * values
        return values, np.where(products >= LEAST_PRODUCT, errors, math.inf)

    def half_gammas(self, group: list[tuple[int, int]]) -> Near:
        """The gamma variables of a group, and bounds on their absolute errors, both (b, k)."""
        counts = np.array([twice // 2 for _, twice in group])
        chosen = np.concatenate([np.arange(start, start + twice // 2) for start, twice in group])
        products = np.multiply.reduceat(
            self._uniforms[:, chosen], np.cumsum(counts) - counts, axis=1
        )
        values, errors = self._exponentials(products, counts)
        odd = [i for i, (_, twice) in enumerate(group) if twice % 2]
        if odd:
            last = np.array([group[i][0] + group[i][1] // 2 for i in odd])
            more, more_error = self._exponentials(self._uniforms[:, last], 1)
            _, cosine = sine_cosine(self._uniforms[:, last + 1])
            values[:, odd] += more * cosine**2
            # Angles have errors of at most 2^-52 turns, so cosines have errors of at most 2^-45.
            errors[:, odd] += more_error + more * 2.0**-43
        return values, errors

    def rows(self, order: int) -> Near:
        """Rows of `points.bartlett_row` (b, P, P), and bounds (b,) on the lengths of errors."""
        rows = np.zeros((len(self._uniforms), order, order))
        error = np.zeros(len(self._uniforms))
        if self._places.pairs:
            row, place, radius, angle = np.array(self._places.pairs).T
            squares, squares_error = self._exponentials(self._uniforms[:, radius], 1)
            lengths = np.sqrt(2 * squares)
            sine, cosine = sine_cosine(self._uniforms[:, angle])
            rows[:, row, place] = lengths * sine
            rows[:, row, place + 1] = lengths * cosine
            error = (2 * squares_error / lengths + lengths * 2.0**-43).max(axis=1)
        chi, chi_error = self.half_gammas(self._places.chi)
        diagonal = np.sqrt(2 * chi)
        # A row with an odd number of variables got one too many, which is overwritten here.
        places = np.arange(order)
        rows[:, places, places] = diagonal
        error = 2 * math.sqrt(order) * error
        error += (4 * chi_error / diagonal + diagonal * 2.0**-51).max(axis=1)
        return rows, error


def factor_places(order: int) -> Places:
    """The numbers of `points.bartlett_factor`, a factor (P, P) for P = `order`, in their order."""
    places = Places()
    for row in range(order):
        places.add_row(row, order)
    return places


def near_correlations(uniforms: FloatArray, order: int) -> Near:
    """Products (b, P, P) of the unit rows of Bartlett's factors, and bounds (b,) on their errors.

    `uniforms` (b, numbers) are as for `TryShape.evaluate`.
    """
    variables = Variables(uniforms, factor_places(order))
    rows, error = variables.rows(order)
    lengths = np.sqrt((rows**2).sum(axis=2))
    units = rows / lengths[:, :, None]
    # If x has an error e, then x / |x| has an error of at most 2 |e| / |x|, besides roundings.
    moved = 2 * error / lengths.min(axis=1) * (1 + 2.0**-30)
    off = moved + (order + 8) * 2.0**-52
    # The bound covers inner products of two unit vectors with errors `off`, and rounded sums.
    wrong = (2 * off + off**2) * (1 + 2.0**-30) + (order + 8) * 2.0**-52
    wrong[~(np.maximum(error, variables.open) <= LARGEST_ERROR)] = math.inf
    return units @ units.transpose(0, 2, 1), wrong


def _orthonormal(rows: FloatArray, error: FloatArray) -> Near:
    """Orthonormal rows (b, q, P) by Gram-Schmidt, and a bound (b,) on the sum of their errors.

    Let e be the error of a row r plus ||r|| times the errors of earlier unit vectors. After their
    projections are subtracted, the length is l and the error at most e, then e / (l - e) after
    division.
    """
    frame = np.empty_like(rows)
    wrong = np.zeros(len(rows))
    width = rows.shape[2]
    for k in range(rows.shape[1]):
        rest = rows[:, k]
        size = np.sqrt((rest**2).sum(axis=1))
        for j in range(k):
            rest = rest - (frame[:, j] * rest).sum(axis=1)[:, None] * frame[:, j]
        length = np.sqrt((rest**2).sum(axis=1))
        frame[:, k] = rest / length[:, None]
        own = 2 * error + size * (1.01 * wrong + (k + 1) * (width + 4) * 2.0**-49)
        # An error of half the length or more leaves the try open.
        own = np.where(own < length / 2, own / (length - own), math.inf)
        wrong = wrong + own + (width + 4) * 2.0**-50
    return frame, wrong


def _vectors(
    parts: FloatArray, parts_error: FloatArray, frame: FloatArray, frame_error: FloatArray
) -> Near:
    """Vectors (b, l, 1 + P) for the l levels of a column, and error bounds (b,).

    The entries of C are products of shares and of roots of quotients of sums of shares, so relative
    errors add up. In row a, the sum of |C_ak| over the q columns is at most q^(1/2) / 2.
    """
    count = parts.shape[1]
    relative = 3 * (parts_error / parts).max(axis=1) + (count + 2) * 2.0**-50
    shares = parts / parts.sum(axis=1)[:, None]
    tails = np.cumsum(shares[:, ::-1], axis=1)[:, ::-1]
    factor = np.zeros((len(parts), count, count - 1))
    for k in range(count - 1):
        after = tails[:, k + 1]
        factor[:, k, k] = np.sqrt(shares[:, k] * after / tails[:, k])
        lower = np.sqrt(shares[:, k] / (tails[:, k] * after))
        factor[:, k + 1 :, k] = -shares[:, k + 1 :] * lower[:, None]
    entries = 4 * relative + (count + 4) * 2.0**-50
    error = relative + frame_error + count * entries + (count + 2) * 2.0**-50
    return np.concatenate([shares[:, :, None], factor @ frame], axis=2), error


# Uniform points in ball arithmetic.
# A column of l levels is represented by l orthogonal vectors y_a in R^(1 + P), with P the sum of
# l - 1 over all columns. The squared length and the first coordinate of y_a are both the share m_a
# of the level. The inner products of the vectors of two columns form their two-way table.

#: Number of tries that are evaluated together: in the first batch, and in each later batch.
FIRST_TRIES, MORE_TRIES = 16, 64
#: Balls alone decide tries with at most this many uniform numbers. Float64 is no slower, but reads
#: the bits in another order, so the draws from given bits would change.
FEW_NUMBERS = 64


@uniform_point.register
def _table_moments(body: TableMoments) -> Computable:
    """H_i^T m_i for each column i, then H_i^T M_ij H_j row by row for i < j."""

    def point(draw: Draw) -> Vector:
        columns = _accepted(body.levels, body.violation, draw)
        return _moments([[combined(row, own) for row in _helmert(len(own))] for own in columns])

    return point


def table_cells(levels: Sequence[int], limit: float, draw: Draw) -> Vector:
    """The shares m_i of the levels of each column i of a uniform point of `TableMoments`, then the
    cells of the tables M_ij for i < j, row by row.
    """
    return _moments(_accepted(levels, limit, draw))


def _moments(columns: list[list[Vector]]) -> Vector:
    """First coordinates of all vectors, then inner products of the vectors of two columns."""
    vectors = [vector for column in columns for vector in column]
    products = gram(vectors)
    starts = [0, *itertools.accumulate(map(len, columns))]
    own = itertools.combinations([range(a, b) for a, b in itertools.pairwise(starts)], 2)
    pairs = (products[a][b] for first, second in own for a in first for b in second)
    return [*(vector[0] for vector in vectors), *pairs]


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
        columns.append(_level_balls(shares, _orthonormal_balls(rows, order)))
    return columns


def _orthonormal_balls(rows: list[Vector], width: int) -> list[Vector]:
    """Append zeros to rows up to length `width`, and orthonormalise the rows by Gram-Schmidt."""
    frame: list[Vector] = []
    for row in rows:
        rest = [*row, *[arb(0)] * (width - len(row))]
        for unit in frame:
            overlap = dot(unit, rest)
            rest = [x - overlap * e for x, e in zip(rest, unit, strict=True)]
        length = dot(rest, rest).sqrt()
        frame.append([x / length for x in rest])
    return frame


def _level_balls(shares: Vector, frame: list[Vector]) -> list[Vector]:
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
        vectors.append([share, *combined(weights, frame)])
    return vectors


def _helmert(levels: int) -> list[Vector]:
    """Weights of the Helmert contrasts: (1, .., 1, -j, 0, ..) / (j (j + 1))^(1/2) for j >= 1."""
    entries = [(j, 1 / arb(j * (j + 1)).sqrt()) for j in range(1, levels)]
    return [[*[entry] * j, -j * entry] for j, entry in entries]


def _is_within(columns: list[list[Vector]], limit: float) -> bool:
    """Whether the exact point is within the limit (later draws depend on this), or `Undecided`."""
    starts = [0, *itertools.accumulate(map(len, columns))]
    total = _violation(gram([vector for column in columns for vector in column]), starts)
    return not decided_below(arb(limit), total)


def _violation(cells: list[Vector], starts: list[int]) -> arb:
    """`total_violation` in balls, for inner products `cells` of all levels."""
    entries = np.array(cells, dtype=object)
    pairs, triples = inequalities(tuple(starts))
    missing = np.concatenate([-entries[*pairs], *_triangles(entries, triples)])
    return ball_sum(value.nonnegative_part() for value in missing)
