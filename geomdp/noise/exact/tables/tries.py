"""Evaluate many tries of rejection sampling in float64, with bounds on the errors.

Refused tries are skipped, and ball arithmetic decides those that the bounds leave open (`points`).
The bound for each step is at least twice its rounding error, in any order of summation. This covers
products of errors, as every error is below 2^-20; else the total error is set to infinity.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from geomdp._typing import BoolArray, FloatArray, IntArray
from geomdp.noise.exact.float_functions import FUNCTION_ERROR, logarithm, sine_cosine
from geomdp.noise.exact.tables.violations import inequality_count, total_violation

#: Logarithms are taken of uniform numbers U. A try with U or 1 - U below this number stays open.
LEAST_UNIFORM = 2.0**-30
#: Largest error of an intermediate result; see the docstring of this module.
LARGEST_ERROR = 2.0**-20
#: A try with a product of uniform numbers below this number stays open, because the product may
#: underflow.
LEAST_PRODUCT = 2.0**-1000


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
    """The random variables of a try for columns of `levels`, in the order of `points._columns`."""

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
    def _places(self) -> _Places:
        places, first = _Places(), 0
        for count in self.levels:
            for row in range(first, first + count - 1):
                places.add_gaussians(row)
                places.add_half_gamma(self.order + 1 - row, places.chi)
            for _ in range(count):
                places.add_half_gamma(self.order - count + 3, places.parts)
            first += count - 1
        return places

    @property
    def numbers(self) -> int:
        return self._places.count

    def evaluate(self, uniforms: FloatArray) -> Tries:
        """Evaluate b `uniforms` (b, numbers), exact up to relative 2^-53 and absolute 2^-62."""
        # Uniform numbers near 0 or 1 may give infinities and NaN here. Such tries stay open.
        with np.errstate(all="ignore"):
            return self._evaluate(uniforms)

    def _evaluate(self, uniforms: FloatArray) -> Tries:
        places = self._places
        variables = _Variables(uniforms, places)
        rows, row_error = variables.rows(self.order)
        parts, parts_error = variables.half_gammas(places.parts)
        count = len(uniforms)
        vectors = np.empty((count, int(self.starts[-1]), self.order + 1))
        error = np.zeros(count)
        first = 0
        for low, high in itertools.pairwise(self.starts.tolist()):
            frame, frame_error = _orthonormal(rows[:, first : first + high - low - 1], row_error)
            first += high - low - 1
            own, own_error = _vectors(
                parts[:, low:high], parts_error[:, low:high], frame, frame_error
            )
            vectors[:, low:high] = own
            error = np.maximum(error, own_error)
        # Vectors have length at most 1.
        cells = vectors @ vectors.transpose(0, 2, 1)
        cell_error = 3 * error + (self.order + 1) * 2.0**-50
        # Each inequality is a sum of at most six cells and a constant, and at most 4 in modulus.
        inequalities = inequality_count(self.starts)
        total_error = 7 * inequalities * cell_error + inequalities**2 * 2.0**-50
        # `<=` is False for NaN, so a NaN leaves the try open, too.
        total_error[~(np.maximum(error, variables.open) <= LARGEST_ERROR)] = math.inf
        return Tries(total_violation(cells, self.starts), total_error)


@functools.lru_cache(maxsize=16)
def try_shape(levels: tuple[int, ...]) -> TryShape:
    return TryShape(levels)


class _Places:
    """For each variable of a try, the positions of its numbers in the list of uniform numbers."""

    def __init__(self) -> None:
        self.count = 0
        #: For each pair of Gaussian variables: the row, the position in the row, and the positions
        #: of two uniform numbers, for the radius and the angle.
        self.pairs: list[tuple[int, int, int, int]] = []
        #: Gamma variables from which chi variables are computed, and gamma variables from which
        #: shares are computed. An entry is the position of the first uniform number of a variable,
        #: and twice the shape of the variable.
        self.chi: list[tuple[int, int]] = []
        self.parts: list[tuple[int, int]] = []

    def add_gaussians(self, row: int) -> None:
        pairs = (row + 1) // 2
        radii = range(self.count, self.count + pairs)
        self.pairs += [(row, 2 * i, radius, radius + pairs) for i, radius in enumerate(radii)]
        self.count += 2 * pairs

    def add_half_gamma(self, twice_shape: int, group: list[tuple[int, int]]) -> None:
        """Add a variable of `variates.half_gamma`, which is exponential for `twice_shape` = 2."""
        group.append((self.count, twice_shape))
        self.count += twice_shape // 2 + 2 * (twice_shape % 2)


class _Variables:
    def __init__(self, uniforms: FloatArray, places: _Places) -> None:
        self._uniforms, self._places = uniforms, places
        logged = np.zeros(uniforms.shape[1], dtype=bool)
        logged[[radius for *_, radius, _ in places.pairs]] = True
        for start, twice in places.chi + places.parts:
            logged[start : start + twice // 2 + twice % 2] = True
        used = uniforms[:, logged]
        least = used.min(axis=1)
        #: (b,): 1 if a logarithm is taken of a number too near to 0 or 1, else 0. A try with 1
        #: stays open.
        self.open = ((least < LEAST_UNIFORM) | (used.max(axis=1) > 1 - LEAST_UNIFORM)) * 1.0
        #: (b, 1): bounds on the relative errors of the numbers whose logarithms are taken.
        self._relative = (2.0**-52 + 2.0**-61 / np.maximum(least, LEAST_UNIFORM))[:, None]

    def _exponentials(self, products: FloatArray, factors: FloatArray | float) -> _Pair:
        """-ln of products of `factors` uniform numbers, with bounds on the absolute errors."""
        values = -logarithm(products)
        errors = 2 * factors * self._relative + 2 * FUNCTION_ERROR * values
        return values, np.where(products >= LEAST_PRODUCT, errors, math.inf)

    def half_gammas(self, group: list[tuple[int, int]]) -> _Pair:
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

    def rows(self, order: int) -> tuple[FloatArray, FloatArray]:
        """Rows of `variates.bartlett_row` (b, P, P), and bounds (b,) on the lengths of errors."""
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
        # Gaussian variables come in pairs, so a row with an odd number of variables got one too
        # many. The extra variable is on the diagonal and is overwritten here.
        places = np.arange(order)
        rows[:, places, places] = diagonal
        error = 2 * math.sqrt(order) * error
        error += (4 * chi_error / diagonal + diagonal * 2.0**-51).max(axis=1)
        return rows, error


_Pair = tuple[FloatArray, FloatArray]


def _orthonormal(rows: FloatArray, error: FloatArray) -> _Pair:
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
) -> _Pair:
    """Vectors (b, l, 1 + P) for the l levels of a column, as in `points`, and error bounds (b,).

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
