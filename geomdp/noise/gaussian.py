"""Gaussian noise, isotropic or on the residuals of tables, and scales proved for a guarantee."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from geomdp._typing import FloatArray
from geomdp._validation import batch, finite_array, positive
from geomdp.bodies.base import off_span
from geomdp.geometry.projection import Estimate
from geomdp.noise.points import linear_map, scaled_variables
from geomdp.noise.rounding import (
    Draw,
    Near,
    NearVector,
    Numbers,
    Vector,
    Words,
    exact_numbers,
    gaussians,
    near_gaussians,
    rounding_error,
)
from geomdp.privacy import ZCDP, ApproxDP, Exact, shortcut_step_epsilon
from geomdp.privacy.definitions import check_privacy, gaussian_scale
from geomdp.workloads.structure import Column, Residuals, differences
from geomdp.workloads.tables import along

#: Columns count as orthonormal if no entry of basis^T basis - I has a modulus above this number.
ORTHONORMALITY_TOLERANCE = 1e-8


@dataclass(frozen=True, eq=False)
class GaussianNoise:
    """Z = B g, g ~ N(0, sigma^2 I_r): density on span(B) proportional to e^(-||z||^2/(2 sigma^2)).

    If sums of neighbours differ by vectors of span(B) of Euclidean length at most D, the sums plus
    Z are D^2/(2 sigma^2)-zCDP (GEN-2).

    Parameters
    ----------
    basis : (m, r) array
        Orthonormal columns B. They span the public subspace that contains the noise.
    scale : float
        Standard deviation sigma > 0 along every direction of the subspace, in units of sums.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.noise.GaussianNoise([[0.6], [-0.8]], scale=5.0).covariance().round(6).tolist()
    [[9.0, -12.0], [-12.0, 16.0]]
    """

    basis: FloatArray
    scale: float

    sampler = Exact()

    def __post_init__(self) -> None:
        basis = finite_array(self.basis, "basis", ndim=2)
        if basis.shape[1] == 0:
            raise ValueError(f"basis must have at least 1 column, got shape {basis.shape}")
        with np.errstate(over="ignore", invalid="ignore"):
            error = float(np.abs(basis.T @ basis - np.eye(basis.shape[1])).max())
        if not error <= ORTHONORMALITY_TOLERANCE:  # the error is NaN if products overflow
            raise ValueError(f"basis must have orthonormal columns, got products off by {error:g}")
        object.__setattr__(self, "basis", basis)
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    def __repr__(self) -> str:
        rank = self.effective_dimension
        return f"GaussianNoise(scale={self.scale:g}, dimension {rank} in R^{self.dimension})"

    @property
    def dimension(self) -> int:
        return int(self.basis.shape[0])

    @property
    def effective_dimension(self) -> int:
        """Dimension r of the subspace that contains the noise."""
        return int(self.basis.shape[1])

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.normal(0.0, self.scale, (size, self.effective_dimension)) @ self.basis.T

    def covariance(self) -> FloatArray:
        return self.scale**2 * (self.basis @ self.basis.T)

    def variances(self) -> FloatArray:
        return np.asarray(self.scale**2 * (self.basis**2).sum(axis=1))

    def second_moment(self) -> Estimate:
        return Estimate.exact(self.effective_dimension * self.scale**2)

    def log_density(self, points: FloatArray) -> FloatArray:
        """log f(z) (b,) for rows z of `points` (b, m); -inf outside of span(B).

        f(z) = (2 pi sigma^2)^(-r/2) e^(-||z||^2 / (2 sigma^2)) on span(B).
        """
        points = batch(points, self.dimension, "points")
        squares = ((points @ self.basis) ** 2).sum(axis=1)
        constant = self.effective_dimension / 2 * math.log(2 * math.pi * self.scale**2)
        found = -squares / (2 * self.scale**2) - constant
        return np.where(off_span(points, self.basis), -np.inf, found)

    def log_density_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        """log f(z) - log f(z - s), (b,), for rows in span(B) of `points` and `shifts` (b, m)."""
        points = batch(points, self.dimension, "points") @ self.basis
        shifts = batch(shifts, self.dimension, "shifts") @ self.basis
        squares = ((points - shifts) ** 2 - points**2).sum(axis=1)
        return np.asarray(squares / (2 * self.scale**2))


def isotropic(dimension: int, scale: float) -> Numbers:
    """Independent Gaussian variables of standard deviation `scale`, taken as an exact number."""
    factor = arb(scale)
    return Numbers(
        lambda draw: [factor * x for x in gaussians(dimension, draw)],
        near_gaussians(dimension, scale),
    )


@exact_numbers.register
def _exact_gaussian(noise: GaussianNoise) -> Numbers:
    to_answers, inner = linear_map(noise.basis), isotropic(noise.effective_dimension, noise.scale)
    return Numbers(lambda draw: to_answers(inner.balls(draw)))


@dataclass(frozen=True, eq=False)
class ResidualNoise:
    """Noise on the weighted cells of all tables, from independent Gaussian noise on residuals.

    The noise on the residual of a set A (see `Residuals`) consists of the same differences of
    Gaussian variables of variance s_A = t_A^2 / 2^b. Here t_A = `scales`[A] is the standard
    deviation of the variables that are drawn, and b columns of A have two levels: for each, one
    variable replaces the difference of two. A `root` (see `Column`) replaces differences by sums.
    """

    residuals: Residuals
    scales: FloatArray = field(repr=False)

    sampler = Exact()

    def __post_init__(self) -> None:
        scales = finite_array(self.scales, "scales", ndim=1)
        if scales.min() < 0 or scales.max() == 0:
            raise ValueError(f"scales must be at least 0 and not all 0, got {scales.min()}")
        object.__setattr__(self, "scales", scales)

    def __repr__(self) -> str:
        sets = int((self.scales > 0).sum())
        return f"ResidualNoise(on {sets} sets of columns, in R^{self.dimension})"

    @property
    def dimension(self) -> int:
        return self.residuals.workload.n_queries

    @cached_property
    def _set_variances(self) -> FloatArray:
        return np.asarray(self.scales**2 / doublings(self.residuals))

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        found = np.empty((size, self.residuals.dimension))
        for group in self.residuals.groups:
            drawn = rng.standard_normal((size * group.count, drawn_size(group.kinds)))
            drawn *= np.tile(self.scales[group.numbers], size)[:, None]
            moved = to_coordinates(drawn, group.kinds)
            found[:, group.places] = moved.reshape(size, group.count * group.size)
        return self.residuals.to_answers(found)

    def covariance(self) -> FloatArray:
        """For few cells: the cost is O(m^2) times the number of variables drawn."""
        units = []
        for group in self.residuals.groups:
            for place, scale in enumerate(self.scales[group.numbers].tolist()):
                moved = scale * to_coordinates(np.eye(drawn_size(group.kinds)), group.kinds)
                unit = np.zeros((len(moved), self.residuals.dimension))
                start = group.start + place * group.size
                unit[:, start : start + group.size] = moved
                units.append(unit)
        root = self.residuals.to_answers(np.concatenate(units))
        return np.asarray(root.T @ root)

    def variances(self) -> FloatArray:
        return self.residuals.answer_variances(self._set_variances)

    def second_moment(self) -> Estimate:
        terms = self.residuals.energies() * self._set_variances
        return Estimate.exact(math.fsum(terms.tolist()))

    def log_density_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        """log f(z) - log f(z - s), (b,), for rows of `points` and `shifts` (b, m).

        f is the density of Z on the span of the noise, in which both must lie.
        """
        z = self._squares(batch(points, self.dimension, "points"))
        return np.asarray((self._squares(points - shifts) - z) / 2)

    def _squares(self, points: FloatArray) -> FloatArray:
        """For each row, the sum of |residual of A|^2 / s_A over all sets A with s_A > 0."""
        moving = self._set_variances > 0
        coordinates = self.residuals.of_answers(points)
        lengths = self.residuals.squared_lengths(coordinates)[:, moving]
        return np.asarray(lengths @ (1 / self._set_variances[moving]))


def doublings(residuals: Residuals) -> FloatArray:
    """2^b for each set of columns, (sets,); b is the number of its columns with two levels."""
    found = np.empty(residuals.count)
    for group in residuals.groups:
        found[group.numbers] = 2.0 ** group.shape.count(2)
    return found


def drawn_size(kinds: tuple[Column, ...]) -> int:
    """Number of Gaussian variables drawn for a residual of columns of the given kinds."""
    return math.prod(_drawn_shape(kinds))


def _drawn_shape(kinds: tuple[Column, ...]) -> list[int]:
    return [kind.levels - (kind.root is not None) for kind in kinds if kind.levels > 2]


def to_coordinates(drawn: npt.NDArray[Any], kinds: tuple[Column, ...]) -> npt.NDArray[Any]:
    """Noise (c, coordinates) on residuals of columns of some kinds, from (c, drawn_size)."""
    cells = drawn.reshape(len(drawn), *_drawn_shape(kinds))
    for axis, kind in enumerate((kind for kind in kinds if kind.levels > 2), start=1):
        cells = differences(cells, axis) if kind.root is None else along(kind.root, cells, axis)
    return cells.reshape(len(drawn), -1)


#: Number of Gaussian variables of residuals that are drawn at a time. If float64 does not decide
#: the rounding of one, ball arithmetic draws all of them, in a second.
BLOCK = 1 << 14


def residual_numbers(noise: ResidualNoise) -> list[Numbers]:
    """Noise on the coordinates of residuals, which are whole numbers, in the order of groups.

    Rounded noise on them is post-processing of the mechanism with real-valued noise (X-GRID), and
    the cells of tables are computed from the noisy coordinates.
    """
    found = []
    for group in noise.residuals.groups:
        scales = noise.scales[group.numbers]
        step = max(1, BLOCK // drawn_size(group.kinds))
        for start in range(0, len(scales), step):
            own = group.kinds, scales[start : start + step]
            found.append(Numbers(residual_vector(*own), near_residuals(*own)))
    return found


def residual_vector(kinds: tuple[Column, ...], scales: FloatArray) -> Callable[[Draw], Vector]:
    """Noise on the coordinates of residuals of equal kinds; one entry of `scales` per residual."""
    size = drawn_size(kinds)
    variables = scaled_variables(gaussians, np.repeat(scales, size))

    def vector(draw: Draw) -> Vector:
        drawn = np.array(variables(draw), dtype=object)
        return list(to_coordinates(drawn.reshape(-1, size), kinds).ravel())

    return vector


def near_residuals(kinds: tuple[Column, ...], scales: FloatArray) -> NearVector:
    size = drawn_size(kinds)
    factors = np.repeat(scales, size)
    standard = near_gaussians(len(factors), 1.0)
    wide = [kind for kind in kinds if kind.levels > 2]

    def evaluate(words: Words) -> Near:
        values, errors = standard.evaluate(words)
        values = factors * values
        errors = factors * errors * (1 + 2.0**-40) + rounding_error(values)
        cells = values.reshape(-1, *_drawn_shape(kinds))
        off = errors.reshape(cells.shape)
        for axis, kind in enumerate(wide, start=1):
            if kind.root is None:
                cells = differences(cells, axis)
                one, others = np.split(off, [1], axis=axis)
                off = (one + others) * (1 + 2.0**-40) + rounding_error(cells)
            else:
                cells, off = near_product(kind.root, cells, off, axis)
        return cells.ravel(), off.ravel()

    return NearVector(standard.count, evaluate)


def near_product(root: FloatArray, cells: FloatArray, off: FloatArray, axis: int) -> Near:
    """`root` times each vector along an axis, and bounds on the errors, from those of `cells`."""
    # A sum of r products, in any order, is off by at most r 2^-52 times the sum of their moduli, if
    # none underflows. The factor 1 + 2^-40 covers the rounding of the bounds themselves.
    sizes = along(np.abs(root), np.abs(cells), axis)
    passed_on = along(np.abs(root), off, axis)
    rounded = len(root) * (2.0**-52 * sizes + 2.0**-1000)
    return along(root, cells, axis), (passed_on + rounded) * (1 + 2.0**-40)


# Scales that are proved to give a guarantee

#: Working precision, in bits, of ball arithmetic: the difference of two terms in
#: `gaussian_delta_ball` cancels only few of them.
DELTA_BITS = 512


def proved_gaussian_scale(squared: int, privacy: ZCDP | ApproxDP) -> float:
    """A float64 sigma for which N(0, sigma^2 I) noise is proved to give `privacy`.

    `squared` > 0 bounds ||v - v'||_2^2 for the noiseless vectors of neighbours; the parameters of
    `privacy` are exact. It is `gaussian_scale`, enlarged if needed, usually by parts in 10^16.
    """
    scale = least = gaussian_scale(math.sqrt(squared), privacy)
    more = 2.0**-52
    while not _suffices(scale, squared, privacy):
        scale, more = least * (1 + more), 2 * more
    return scale


def _suffices(scale: float, squared: int, privacy: ZCDP | ApproxDP) -> bool:
    """Whether `scale` is proved to give `privacy`; False if the proof fails."""
    if isinstance(privacy, ZCDP):
        return 2 * Fraction(privacy.rho) * Fraction(scale) ** 2 >= squared
    with ctx.workprec(DELTA_BITS):
        return bool(gaussian_delta_ball(squared, scale, privacy.epsilon) <= arb(privacy.delta))


def proved_shortcut_scale(change: int, privacy: ApproxDP, steps: int) -> float:
    """A float64 b that is proved to be at least change / `shortcut_step_epsilon`.

    If each of `steps` numbers changes by at most `change` > 0 between neighbours, Laplace noise of
    scale b on each of them gives `privacy` (GEN-2b). ``ValueError`` for an epsilon above 1.
    """
    check_privacy(privacy, ApproxDP)
    scale = change / shortcut_step_epsilon(privacy, steps)
    with ctx.workprec(DELTA_BITS):
        squared = -8 * steps * arb(privacy.delta).log() * change**2 / arb(privacy.epsilon) ** 2
        while not arb(scale) ** 2 >= squared:
            scale = math.nextafter(scale, math.inf)
    return scale


def gaussian_delta_ball(squared: int, scale: float, epsilon: float) -> arb:
    """A ball with the `gaussian_delta` of N(0, scale^2 I), for a `squared` l2 sensitivity."""
    loss, theta = arb(epsilon), arb(squared).sqrt() / arb(scale)
    return _normal(theta / 2 - loss / theta) - loss.exp() * _normal(-theta / 2 - loss / theta)


def _normal(x: arb) -> arb:
    return (-x / arb(2).sqrt()).erfc() / 2
