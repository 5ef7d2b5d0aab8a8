"""Cone noise over the elliptope in float64, with proved bounds on the errors."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from geomdp._typing import FloatArray, IntArray
from geomdp.bodies import Elliptope
from geomdp.noise.differences import ConeNoise
from geomdp.noise.exact.near import (
    TURN_ERROR,
    Near,
    NearVector,
    Words,
    minus_log,
    near_gaussians,
    near_turn,
)

#: Twice the largest relative error of one rounding.
UNIT = 2.0**-52


def near_cone(noise: ConeNoise) -> NearVector | None:
    """The noise with error bounds; None unless K is an elliptope of order >= 2, with centre 0."""
    body = noise.body
    if not isinstance(body, Elliptope) or body.order < 2 or noise.centre.any():
        return None
    shape = noise.effective_dimension + 1
    first, second = np.arange(shape), shape + np.arange(shape)
    one = _places(body.order, 2 * shape)
    two = _places(body.order, one.stop)
    linear = _linear(noise, body.dimension)
    above = np.triu_indices(body.order, 1)

    def evaluate(words: Words) -> Near:
        logs, cuts = minus_log(words)
        radii = [_sum(logs[places], cuts[places]) for places in (first, second)]
        sizes = [value / noise.rate for value, _ in radii]
        wrong = [
            off / noise.rate + 4 * UNIT * value
            for (_, off), value in zip(radii, sizes, strict=True)
        ]
        points = [_correlations(words, logs, cuts, places) for places in (one, two)]
        a, b = [matrix[above] for matrix, _ in points]
        # If the first bits of a uniform number (its word) are all 0, the bound for a matrix can be
        # NaN. `np.max` keeps NaN, but Python's `max` would drop a NaN from the second matrix.
        gap = float(np.max([off for _, off in points]))
        moved = sizes[0] * a - sizes[1] * b
        total = sum(sizes)
        # Correlations are at most 1 in modulus, with errors of at most `gap`.
        off = (total + sum(wrong)) * gap + sum(wrong) + 4 * UNIT * total
        return linear.image(moved, off, sizes[0] - sizes[1], total, sum(wrong))

    return NearVector(two.stop, evaluate)


@dataclass(frozen=True)
class _Linear:
    """The map (x, t) -> matrix @ x + t * constant in float64; None means identity and 0."""

    matrix: sp.csr_array | None
    constant: FloatArray | None
    #: Sums of |entries| of each row of the matrix, and the largest number of entries of a row.
    weights: FloatArray
    longest: int

    def image(self, x: FloatArray, off: float, t: float, size: float, wrong: float) -> Near:
        """The image of (x, t) and error bounds: errors `off` and `wrong`, moduli at most `size`."""
        values = x if self.matrix is None else self.matrix @ x
        errors = self.weights * (off + (self.longest + 2) * UNIT * (size + off))
        if self.constant is not None:
            values = values + t * self.constant
            errors = errors + np.abs(self.constant) * (wrong + 4 * UNIT * size)
        return values, (errors + 2 * UNIT * np.abs(values)) * (1 + 2.0**-40)


def _linear(noise: ConeNoise, dimension: int) -> _Linear:
    if noise.matrix is None:
        return _Linear(None, noise.constant, np.ones(dimension), 1)
    matrix = sp.csr_array(noise.matrix)
    weights = np.asarray(abs(matrix).sum(axis=1), dtype=np.float64).ravel()
    longest = int(np.diff(matrix.indptr).max(initial=0))
    # The computed sums are rounded; the factor 1 + 2^-30 covers these errors.
    return _Linear(matrix, noise.constant, np.asarray(weights * (1 + 2.0**-30)), longest)


@dataclass(frozen=True)
class _Places:
    """Positions of the uniform numbers of one correlation matrix of order p among all numbers.

    Row i = 0, .., p - 1 of Bartlett's factor takes i Gaussian variables from (i + 1) // 2 pairs,
    then a gamma variable of shape (p + 1 - i) / 2: one exponential for each whole unit, and half a
    squared Gaussian variable if the shape is not whole.
    """

    order: int
    lengths: IntArray  # positions of the numbers U of the pairs
    turns: IntArray  # positions of the numbers V of the pairs
    pair_rows: IntArray  # row of each pair
    pair_columns: IntArray  # column of the first variable of each pair
    exponentials: IntArray  # positions for the exponential variables
    exponential_rows: IntArray  # row of each exponential variable
    halves: IntArray  # positions of U and V for each half squared Gaussian variable, one pair a row
    half_rows: IntArray  # row of each half squared Gaussian variable
    stop: int  # position after the last number


def _places(order: int, start: int) -> _Places:
    rows = range(order)
    lists: dict[str, list[int]] = {
        name: [] for name in ("u", "v", "row", "column", "e", "e_row", "h", "h_row")
    }
    place = start
    for i in rows:
        pairs = (i + 1) // 2
        lists["u"] += range(place, place + pairs)
        lists["v"] += range(place + pairs, place + 2 * pairs)
        lists["row"] += [i] * pairs
        lists["column"] += range(0, 2 * pairs, 2)
        place += 2 * pairs
        count, odd = divmod(order + 1 - i, 2)
        lists["e"] += range(place, place + count)
        lists["e_row"] += [i] * count
        place += count
        if odd:
            lists["h"] += [place, place + 1]
            lists["h_row"].append(i)
            place += 2
    arrays = {name: np.array(values, dtype=np.int64) for name, values in lists.items()}
    return _Places(
        order,
        arrays["u"],
        arrays["v"],
        arrays["row"],
        arrays["column"],
        arrays["e"],
        arrays["e_row"],
        arrays["h"].reshape(-1, 2),
        arrays["h_row"],
        place,
    )


def _sum(logs: FloatArray, cuts: FloatArray) -> tuple[float, float]:
    """A gamma variable of whole shape as a sum of exponentials, and a bound on its error."""
    # `fsum` computes the sum exactly and rounds it once.
    total = math.fsum(logs.tolist())
    return total, float(cuts.sum()) * (1 + 2.0**-30) + UNIT * total


def _correlations(
    words: Words, logs: FloatArray, cuts: FloatArray, places: _Places
) -> tuple[FloatArray, float]:
    """A correlation matrix (p, p), and a bound on the errors of its entries."""
    factor, errors = _factor(words, logs, cuts, places)
    lengths = np.sqrt((factor**2).sum(axis=1))
    units = factor / lengths[:, None]
    # If a row x has an error e, then x / |x| has an error of at most 2 |e| / |x|. The last term
    # covers the roundings of the norm and the quotient.
    moved = 2 * np.sqrt((errors**2).sum(axis=1)) / lengths * (1 + 2.0**-30)
    off = float(moved.max()) + (places.order + 8) * UNIT
    # The bound covers inner products of two unit vectors with errors `off`, and rounded sums.
    return units @ units.T, (2 * off + off**2) * (1 + 2.0**-30) + (places.order + 8) * UNIT


def _factor(words: Words, logs: FloatArray, cuts: FloatArray, places: _Places) -> Near:
    """Bartlett's lower triangular factor (p, p), and bounds on the errors of its entries."""
    order = places.order
    # Gaussian variables come in pairs, so row i gets one too many if i is odd. The extra variable
    # is written to column i, the diagonal, and overwritten below. The last column of the arrays
    # stays 0 and is left out of the result.
    factor, errors = np.zeros((order, order + 1)), np.zeros((order, order + 1))
    pairs = len(places.lengths)
    chosen = np.concatenate([words[places.lengths], words[places.turns]])
    values, off = near_gaussians(2 * pairs, 1.0).evaluate(chosen)
    for half in (0, 1):
        at = places.pair_rows, places.pair_columns + half
        factor[at], errors[at] = values[half::2], off[half::2]
    sums, wrong = np.zeros(order), np.zeros(order)
    np.add.at(sums, places.exponential_rows, logs[places.exponentials])
    np.add.at(wrong, places.exponential_rows, cuts[places.exponentials])
    # Half a squared Gaussian variable is E cos^2(2 pi V) with an exponential variable E.
    starts, ends = places.halves[:, 0], places.halves[:, 1]
    cosine = near_turn(words[ends])[1]
    sums[places.half_rows] += logs[starts] * cosine**2
    wrong[places.half_rows] += cuts[starts] + 4 * TURN_ERROR * (logs[starts] + cuts[starts])
    wrong += (order + 8) * UNIT * sums
    diagonal = np.sqrt(2 * sums)
    each = np.arange(order)
    factor[each, each] = diagonal
    errors[each, each] = 2 * wrong / diagonal * (1 + 2.0**-30) + 4 * UNIT * diagonal
    return factor[:, :order], errors[:, :order]
