"""Mapped noise: a sum of independent noise vectors, each after a linear map."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from flint import arb

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp._validation import listed
from geomdp.geometry.results import Estimate
from geomdp.noise.base import Noise, checked_noise, combined_status, mean_estimate
from geomdp.noise.knorm import KNormNoise, LaplaceNoise
from geomdp.noise.points import linear_map
from geomdp.noise.rounding import Draw, Numbers, Vector, exact_numbers
from geomdp.privacy.guarantees import SamplerStatus

#: Number of public draws from which a second moment is estimated. The relative error is a few
#: percent.
DRAWS = 1024


class Expansion(Protocol):
    """The last step of an `ImplicitMap`: all answers from a few coordinates."""

    def to_answers(self, coordinates: FloatArray) -> FloatArray:
        """Answers (m, b) from coordinates (r, b)."""


@runtime_checkable
class ImplicitMap(Protocol):
    """A linear map from R^p to R^m, applied by transforms because its matrix would be too large."""

    @property
    def shape(self) -> tuple[int, int]: ...

    @property
    def expansion(self) -> Expansion:
        """The last step, which several maps may share."""

    def to_coordinates(self, columns: Columns) -> FloatArray:
        """Coordinates (r, b) of columns (p, b): the result of all steps before the last."""

    def __matmul__(self, columns: Columns) -> FloatArray:
        """The product with columns (p, b) or one column (p,)."""

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> FloatArray: ...

    def image_variances(self, noise: Noise) -> FloatArray:
        """Variance of each coordinate of the image of `noise` (m,)."""


#: Vectors as the columns of an array.
Columns = FloatArray | sp.csr_array
#: A linear map to the answers, (m, p): dense, sparse if most entries are 0, or implicit.
Map = FloatArray | sp.csr_array | ImplicitMap


def sum_of_images(maps: Iterable[Map], columns: Iterable[Columns]) -> FloatArray:
    """The sum of T_i x_i (m, b) for maps T_i (m, p_i); a shared last step is applied once."""
    images: list[FloatArray] = []
    shared: dict[int, tuple[Expansion, FloatArray]] = {}
    for matrix, own in zip(maps, columns, strict=True):
        if isinstance(matrix, ImplicitMap):
            found = matrix.to_coordinates(own)
            expansion, so_far = shared.get(id(matrix.expansion), (matrix.expansion, 0.0))
            shared[id(expansion)] = (expansion, so_far + found)
        else:
            product = matrix @ own
            images.append(product.toarray() if sp.issparse(product) else np.asarray(product))
    images += [expansion.to_answers(found) for expansion, found in shared.values()]
    return np.asarray(sum(images[1:], start=images[0]))


@dataclass(frozen=True, eq=False)
class Part:
    """One summand of `MappedNoise`.

    Parameters
    ----------
    noise : Noise
        The distribution of Z on R^p.
    matrix : (m, p) array, sparse array or `ImplicitMap`
        The map T to the answers.
    energy : float, optional
        E ||T Z||_2^2; by default from an exact covariance of Z, or estimated from draws.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> gd.noise.Part(gd.noise.LaplaceNoise(2, 1.0), np.ones((3, 2)))
    Part(LaplaceNoise(dimension=2, scale=1.0), matrix of shape (3, 2))
    """

    noise: Noise
    matrix: Map
    energy: float | None = None

    def __post_init__(self) -> None:
        checked_noise(self.noise)
        given: object = self.matrix
        if not isinstance(given, np.ndarray | sp.csr_array | ImplicitMap):
            kind = type(given).__name__
            raise ValueError(f"matrix must be an array or an ImplicitMap, got {kind}")
        if len(self.matrix.shape) != 2:
            raise ValueError(f"matrix must have 2 axes, got shape {self.matrix.shape}")

    def __repr__(self) -> str:
        return f"Part({self.noise!r}, matrix of shape {self.matrix.shape})"


class MappedNoise:
    """Z = sum over i of T_i Z_i with independent Z_i.

    If sums y_i plus Z_i are epsilon_i-DP, the sum of the T_i (y_i + Z_i) is post-processing.
    """

    def __init__(self, parts: Sequence[Part]) -> None:
        self.parts = listed(parts, "parts")
        if not self.parts:
            raise ValueError("parts must hold at least 1 part, got none")
        for part in self.parts:
            if not isinstance(part, Part):
                raise ValueError(f"parts must be a sequence of Part, got {type(part).__name__}")
        m = self.parts[0].matrix.shape[0]
        for part in self.parts:
            if part.matrix.shape != (m, part.noise.dimension):
                raise ValueError(
                    f"matrix must have shape ({m}, {part.noise.dimension}), got {part.matrix.shape}"
                )

    def __repr__(self) -> str:
        return f"MappedNoise({len(self.parts)} parts in dimension {self.dimension})"

    @property
    def dimension(self) -> int:
        return int(self.parts[0].matrix.shape[0])

    @property
    def sampler(self) -> SamplerStatus:
        """`Exact` if all parts have exact samplers; else their combined status (SAM-1)."""
        return combined_status([part.noise.sampler for part in self.parts])

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draws of all parts, and one product with each map."""
        draws = (part.noise.sample(rng, size).T for part in self.parts)
        return sum_of_images([part.matrix for part in self.parts], draws).T

    def covariance(self) -> FloatArray:
        """The sum of T_i Cov(Z_i) T_i^T, (m, m)."""
        total = np.zeros((self.dimension, self.dimension))
        for part in self.parts:
            half = np.asarray(part.matrix @ part.noise.covariance())
            total += np.asarray(part.matrix @ half.T)
        return total

    def variances(self) -> FloatArray:
        return np.asarray(np.sum(self._variances, axis=0))

    @cached_property
    def _variances(self) -> list[FloatArray]:
        return [_variances(part) for part in self.parts]

    def second_moment(self) -> Estimate:
        """The sum of tr(T_i Cov(Z_i) T_i^T); exact if all covariances are exact.

        A part with neither `energy` nor an exact covariance adds an estimate from 1024 public draws
        of its own, with an asymptotic 95% interval.
        """
        return self._second_moment

    @cached_property
    def _second_moment(self) -> Estimate:
        estimates = [self._energy(i) for i in range(len(self.parts))]
        value = sum(estimate.value for estimate in estimates)
        stderr = math.hypot(*(estimate.stderr for estimate in estimates))
        samples = max(estimate.samples for estimate in estimates)
        return Estimate(value, stderr, (value - 1.96 * stderr, value + 1.96 * stderr), samples)

    def _energy(self, i: int) -> Estimate:
        part = self.parts[i]
        if part.energy is not None:
            return Estimate.exact(part.energy)
        if part.noise.second_moment().samples == 0:
            return Estimate.exact(float(self._variances[i].sum()))
        # Parts need different streams: equal parts would otherwise get the same draws and errors.
        draws = part.noise.sample(np.random.default_rng([PUBLIC_SEED, i]), DRAWS)
        return mean_estimate(((part.matrix @ draws.T) ** 2).sum(axis=0))


@exact_numbers.register
def _exact_mapped(noise: MappedNoise) -> Numbers:
    parts = [(exact_numbers(part.noise).balls, linear_map(part.matrix)) for part in noise.parts]

    def balls(draw: Draw) -> Vector:
        summands = [to_answers(inner(draw)) for inner, to_answers in parts]
        return [sum(entries, start=arb(0)) for entries in zip(*summands, strict=True)]

    return Numbers(balls)


def _variances(part: Part) -> FloatArray:
    matrix = part.matrix
    if isinstance(matrix, ImplicitMap):
        return matrix.image_variances(part.noise)
    if isinstance(part.noise, LaplaceNoise):
        # The covariance is diagonal, and too large to write out if there are many measurements.
        squares = matrix.multiply(matrix) if sp.issparse(matrix) else np.square(matrix)
        return np.asarray(squares @ part.noise.variances())
    if isinstance(part.noise, KNormNoise):
        return part.noise.image_variances(matrix)
    half = np.asarray(matrix @ part.noise.covariance())
    if sp.issparse(matrix):
        return np.asarray(matrix.multiply(half).sum(axis=1)).ravel()
    return np.asarray((matrix * half).sum(axis=1))
