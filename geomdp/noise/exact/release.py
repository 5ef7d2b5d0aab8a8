"""Correctly rounded noise for sums of answers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import listed, positive, require_type, whole
from geomdp.bodies import Elliptope
from geomdp.noise.base import Noise
from geomdp.noise.differences import ConeNoise
from geomdp.noise.exact.points import Computable
from geomdp.noise.exact.rounding import (
    TURN_ERROR,
    Near,
    NearVector,
    Words,
    minus_log,
    near_gaussians,
    near_laplaces,
    near_turn,
    nearest_multiples,
    refined,
)
from geomdp.noise.exact.tables import near_residuals, residual_vector
from geomdp.noise.exact.variates import Entropy
from geomdp.noise.exact.vectors import gaussian_vector, noise_vector
from geomdp.noise.gaussian import ResidualNoise, drawn_size
from geomdp.noise.knorm import LaplaceNoise

#: Number of Gaussian variables of residuals that are drawn at a time. If float64 does not decide
#: the rounding of one variable, ball arithmetic draws all of these variables. This takes a second.
BLOCK = 1 << 14
#: Largest modulus of k for a unit 2^-k. Draws are computed to at most 15872 bits, so a larger k has
#: no use.
MOST_BITS = 1 << 16


class RoundedVector:
    """A computable random vector Z, drawn with correct rounding to multiples of 2^-grid."""

    def __init__(self, vector: Computable, grid: int, near: NearVector | None = None) -> None:
        if not callable(vector):
            raise ValueError(f"vector must be a function of uniform numbers, got {vector!r}")
        self.vector, self.grid, self._near = vector, _checked(grid), near

    def draw(self, entropy: Entropy | None = None) -> list[int]:
        """One whole number j, of any size, for each coordinate: the rounded noise is j 2^-grid.

        ``PrecisionExhausted`` if 15872 bits do not decide a rounding; float64 is never a
        substitute. `entropy` is the source of random bytes, by default `os.urandom`; anything else
        is for tests.
        """
        near, filtered = self._near, None
        if near is not None:
            filtered = partial(near.rounded, grid=self.grid)
        return refined(
            lambda draw: nearest_multiples(self.vector(draw), self.grid), entropy, filtered
        )


def _checked(grid: int) -> int:
    return whole(grid, "grid", minimum=-MOST_BITS, maximum=MOST_BITS)


class RoundedNoise(RoundedVector):
    """A noise on sums, prepared for correctly rounded draws.

    A draw is Z rounded to a multiple of 2^-grid; halves are rounded up. If the true sums S are
    multiples of 2^-grid, S plus the draw is the rounding of S + Z, so it is post-processing of the
    mechanism with real-valued noise, and its guarantee holds for the computed numbers. Neither the
    draw nor its running time and random bits depend on records. ``NoExactPath`` if the noise has no
    sampler that can be computed to arbitrary precision.
    """

    def __init__(self, noise: Noise, grid: int) -> None:
        super().__init__(noise_vector(noise), grid, _near(noise))


def _near(noise: Noise) -> NearVector | None:
    """The noise in float64 with proved error bounds; None if no such code exists for it."""
    match noise:
        case LaplaceNoise():
            return near_laplaces(noise.dimension, noise.scale)
        case ConeNoise():
            return near_cone(noise)
        case _:
            return None


class RoundedGaussians(RoundedVector):
    """Independent Gaussian variables, prepared for correctly rounded draws."""

    def __init__(self, dimension: int, scale: float, grid: int) -> None:
        dimension, scale = whole(dimension, "dimension"), positive(scale, "scale")
        vector, near = gaussian_vector(dimension, scale), near_gaussians(dimension, scale)
        super().__init__(vector, grid, near)


class RoundedParts:
    """Several independent noises, prepared for correctly rounded draws on one grid.

    It takes the place of `RoundedNoise` for sums measured in parts; parts share no random bits.
    ``NoExactPath`` as in `RoundedNoise`.
    """

    def __init__(self, noises: Sequence[Noise], grid: int) -> None:
        self.grid = _checked(grid)
        self._parts = [RoundedNoise(noise, grid) for noise in listed(noises, "noises")]
        if not self._parts:
            raise ValueError("noises must hold at least 1 noise, got 0")

    def draw(self, entropy: Entropy | None = None) -> list[int]:
        """The draws of all parts, in the order of the parts, as one list."""
        return [j for part in self._parts for j in part.draw(entropy)]


class RoundedResiduals:
    """Noise on the coordinates of residuals, drawn with correct rounding to multiples of 2^-grid.

    The coordinates (see `Residuals`) are whole numbers, so for grid >= 0 they are multiples of
    2^-grid. As in `RoundedNoise`, the result is post-processing of the mechanism with real-valued
    noise (X-GRID). The cells of tables are computed from the noisy coordinates.
    """

    def __init__(self, noise: ResidualNoise, grid: int) -> None:
        require_type(noise, ResidualNoise, "noise")
        self.grid = _checked(grid)
        self._parts: list[RoundedVector] = []
        for group in noise.residuals.groups:
            scales = noise.scales[group.numbers]
            step = max(1, BLOCK // drawn_size(group.shape))
            for start in range(0, len(scales), step):
                own = scales[start : start + step]
                vector, near = residual_vector(group.shape, own), near_residuals(group.shape, own)
                self._parts.append(RoundedVector(vector, grid, near))

    def draw(self, entropy: Entropy | None = None) -> list[int]:
        """One whole number j for each coordinate: the rounded noise is j 2^-grid."""
        return [j for part in self._parts for j in part.draw(entropy)]


#: Noise that is prepared for correctly rounded draws.
Rounded: TypeAlias = RoundedVector | RoundedParts | RoundedResiduals


def rounded_noise(noise: Noise, grid: int, entropy: Entropy | None = None) -> list[int]:
    """One draw of a noise on sums, correctly rounded, in units of 2^-grid.

    It is one `RoundedVector.draw` of a `RoundedNoise`, which prepares `noise` for more than one
    draw, with the same arguments and errors.
    """
    return RoundedNoise(noise, grid).draw(entropy)


# Cone noise over the elliptope in float64, with proved bounds on the errors.

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
