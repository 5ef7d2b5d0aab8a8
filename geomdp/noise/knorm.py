"""K-norm noise: density proportional to exp(-epsilon ||z||_K), and sums of its linear images."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import scipy
import scipy.sparse as sp
from flint import arb, ctx

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp._validation import batch, listed, positive, require_type, whole
from geomdp.bodies.base import Body, checked_body
from geomdp.bodies.simplices import SimplexDifference
from geomdp.geometry.projection import Estimate
from geomdp.geometry.sampling.samplers import ExactSampler, UniformSampler
from geomdp.noise.base import Noise, checked_noise, combined_status, mean_estimate, scaled
from geomdp.noise.points import LinearMap, ball_sum, gamma, linear_map, uniform_point
from geomdp.noise.rounding import (
    Computable,
    Draw,
    NoExactPath,
    Numbers,
    Vector,
    exact_numbers,
    laplaces,
    near_laplaces,
)
from geomdp.privacy import ZCDP, ApproxDP, Exact, Privacy, PureDP
from geomdp.privacy.definitions import largest_epsilon
from geomdp.privacy.guarantees import SamplerStatus


@dataclass(frozen=True)
class LaplaceNoise:
    """Independent Lap(b) in each of m coordinates: density (2b)^-m exp(-||z||_1 / b).

    It is K-norm noise of an l1 ball (JL-L14). If sums of neighbours differ by at most D in the l1
    norm, the sums plus this noise are D/b-differentially private (GEN-3).

    Parameters
    ----------
    dimension : int
        Number of coordinates m, at least 1.
    scale : float
        Scale b > 0 of each coordinate, in units of sums; the variance is 2 b^2.

    Examples
    --------
    >>> import geomdp as gd
    >>> noise = gd.noise.LaplaceNoise(dimension=3, scale=2.0)
    >>> noise.variances().tolist()
    [8.0, 8.0, 8.0]
    """

    dimension: int
    scale: float

    sampler = Exact()

    def __post_init__(self) -> None:
        object.__setattr__(self, "dimension", whole(self.dimension, "dimension"))
        object.__setattr__(self, "scale", positive(self.scale, "scale"))

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.laplace(0.0, self.scale, (size, self.dimension))

    def covariance(self) -> FloatArray:
        return 2 * self.scale**2 * np.eye(self.dimension)

    def variances(self) -> FloatArray:
        return np.full(self.dimension, 2 * self.scale**2)

    def second_moment(self) -> Estimate:
        return Estimate.exact(2 * self.dimension * self.scale**2)

    def log_density(self, points: FloatArray) -> FloatArray:
        """Log density -||z||_1 / b - m ln(2 b) at each row z of `points`."""
        lengths = np.abs(batch(points, self.dimension, "points")).sum(axis=1)
        return np.asarray(-lengths / self.scale - self.dimension * math.log(2 * self.scale))

    def log_density_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        """log f(z) - log f(z - s) for the density f, with rows z of `points` and s of `shifts`."""
        points = batch(points, self.dimension, "points")
        shifts = batch(shifts, self.dimension, "shifts")
        moved = np.abs(points - shifts) - np.abs(points)
        return np.asarray(moved.sum(axis=1) / self.scale)


@exact_numbers.register
def _exact_laplace(noise: LaplaceNoise) -> Numbers:
    scale, m = arb(noise.scale), noise.dimension
    return Numbers(
        lambda draw: [scale * x for x in laplaces(m, draw)], near_laplaces(m, noise.scale)
    )


#: Number of uniform points U of a body from which E ||U||^2 is estimated: the error of a mechanism,
#: the root of this mean, then has a relative standard error below 0.4% in dimensions 10 to 100.
MOMENT_DRAWS = 2048


class KNormNoise:
    """Z with density proportional to exp(-epsilon ||z||_K) on the span of a symmetric body K.

    A draw is Z = R U with R ~ Gamma(r + 1, 1/epsilon) and U uniform on K, where r is the dimension
    of K. If sums of neighbours differ by vectors of K, the sums plus Z are epsilon-DP, because a
    shift by v changes the log-density by at most epsilon ||v||_K (JL-L14).

    Parameters
    ----------
    body : Body
        K in R^m, in units of sums, symmetric, not {0}, possibly lower-dimensional.
    epsilon : float
        Privacy loss per unit of ||.||_K, finite and above 0.
    sampler : UniformSampler
        How U is drawn: `ExactSampler(body)` or a `ChainSampler`; its status is that of the noise.
    squared_length : Estimate, optional
        E ||U||_2^2, if it is known already. By default it is computed at first use.

    References
    ----------
    Hardt-Talwar 2010, section 4; formula sheet JL-KN, JL-L14.

    Examples
    --------
    >>> import geomdp as gd
    >>> K = gd.bodies.Box.centred([1.0, 1.0])
    >>> sampler = gd.geometry.sampling.ExactSampler(K)
    >>> noise = gd.noise.KNormNoise(K, epsilon=0.5, sampler=sampler)
    >>> noise.second_moment()
    Estimate(32, exact)

    A shift by a vector of K changes the log-density by at most epsilon:

    >>> noise.log_density_ratio([[0.0, 0.0]], [[1.0, -1.0]]).tolist()
    [0.5]
    """

    def __init__(
        self,
        body: Body,
        epsilon: float,
        sampler: UniformSampler,
        squared_length: Estimate | None = None,
    ) -> None:
        if not checked_body(body).symmetric:
            raise ValueError(f"body must be symmetric, got {body!r}")
        require_type(sampler, UniformSampler, "sampler")
        self.body = body
        self.epsilon = positive(epsilon, "epsilon")
        self.uniform = sampler
        self._known_length = squared_length
        self.effective_dimension = body.effective_dimension
        if self.effective_dimension == 0:
            raise ValueError(f"body must have dimension at least 1, got {body!r}")

    def __repr__(self) -> str:
        return f"KNormNoise({self.body!r}, epsilon={self.epsilon:g}, {self.sampler})"

    @property
    def dimension(self) -> int:
        return self.body.dimension

    @property
    def sampler(self) -> SamplerStatus:
        return self.uniform.status

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        radii = rng.gamma(self.effective_dimension + 1, 1 / self.epsilon, size)
        return np.asarray(radii[:, None] * self.uniform.draw(rng, size))

    @property
    def _radial_factor(self) -> float:
        """E R^2 = (r + 1)(r + 2) / epsilon^2."""
        r = self.effective_dimension
        return (r + 1) * (r + 2) / self.epsilon**2

    @cached_property
    def _public_draws(self) -> FloatArray:
        return self.uniform.draw(np.random.default_rng(PUBLIC_SEED), MOMENT_DRAWS)

    @cached_property
    def _closed_moment(self) -> FloatArray | None:
        """E U U^T (m, m) if the body has it in closed form; else None."""
        return self.body.second_moment() if self.body.implements(Body.second_moment) else None

    @cached_property
    def _known_variances(self) -> FloatArray | None:
        """E U_j^2 (m,) if the body has a formula that needs no matrix E U U^T; else None."""
        if not isinstance(self.body, SimplexDifference):
            return None
        return self.body.image_moments(sp.eye_array(self.dimension, format="csr"))

    def covariance(self) -> FloatArray:
        """(r + 1)(r + 2) / epsilon^2 E U U^T (m, m), exact as far as `second_moment` is."""
        if self._closed_moment is not None:
            return self._radial_factor * self._closed_moment
        draws = self._public_draws
        return self._radial_factor * (draws.T @ draws / len(draws))

    @cached_property
    def _squared_length(self) -> Estimate:
        if self._known_length is not None:
            return self._known_length
        if self._known_variances is not None:
            return Estimate.exact(float(self._known_variances.sum()))
        if self._closed_moment is not None:
            return Estimate.exact(float(np.trace(self._closed_moment)))
        return mean_estimate((self._public_draws**2).sum(axis=1))

    def variances(self) -> FloatArray:
        if self._known_variances is not None:
            return self._radial_factor * self._known_variances
        return np.diag(self.covariance()).copy()

    def image_variances(self, matrix: FloatArray | sp.csr_array) -> FloatArray:
        """Variance of each coordinate of T Z, (p,), for the matrix T of shape (p, m)."""
        if isinstance(self.body, SimplexDifference):
            # The covariance is not formed: it would take 150 MB for counts of 4320 cells.
            return self._radial_factor * self.body.image_moments(matrix)
        return mapped_variances(matrix, self.covariance())

    def second_moment(self) -> Estimate:
        """(r + 1)(r + 2) / epsilon^2 E ||U||_2^2 (JL-L14).

        Without `squared_length` or a second moment of the body in closed form, it is estimated from
        2048 public draws, with a 95% interval.
        """
        return scaled(self._squared_length, self._radial_factor)

    def log_density(self, points: FloatArray) -> FloatArray:
        """log f(z) (b,) for rows z of `points` (b, m); -inf outside of the span of K.

        f(z) = epsilon^r e^(-epsilon ||z||_K) / (r! vol(K)) on the span of K. ``MissingOracle``
        if K has no gauge, or no volume in closed form. ``ValueError`` if the volume of K is outside
        of the range of float64.
        """
        points, r = batch(points, self.dimension, "points"), self.effective_dimension
        try:
            volume = self.body.volume()
        except OverflowError:
            volume = math.inf
        if not 0 < volume < math.inf:
            raise ValueError(
                f"volume of {self.body!r} must be in the range of float64, got {volume}"
            )
        constant = math.lgamma(r + 1) + math.log(volume) - r * math.log(self.epsilon)
        return np.asarray(-self.epsilon * self.body.gauge(points) - constant)

    def log_density_ratio(self, points: FloatArray, shifts: FloatArray) -> FloatArray:
        """log f(z) - log f(z - s), (b,), for rows (b, m) in the span of K; K needs a gauge."""
        points = batch(points, self.dimension, "points")
        shifts = batch(shifts, self.dimension, "shifts")
        moved = self.body.gauge(points - shifts) - self.body.gauge(points)
        return np.asarray(self.epsilon * moved)


@exact_numbers.register
def _exact_knorm(noise: KNormNoise) -> Numbers:
    if not isinstance(noise.uniform, ExactSampler):
        raise NoExactPath(noise, "its uniform points come from a Markov chain")
    point, epsilon = uniform_point(noise.uniform.body), arb(noise.epsilon)
    shape = noise.effective_dimension + 1

    def balls(draw: Draw) -> Vector:
        radius = gamma(shape, draw) / epsilon
        return [radius * x for x in point(draw)]

    return Numbers(balls)


# The rate of the noise of a ball for (epsilon, delta)-DP (X-ED).

#: Number of bins of the length of the noise; with many more, its error is less by 0.4% at most, in
#: dimension 5.
BINS = 1 << 10
#: Share of delta that lies below the first bin, and above the lower end of the last.
OUTSIDE = 1e-3
#: Halvings of the interval of the search. They find the rate up to a relative 3e-6 or better.
HALVINGS = 23
#: Working precision, in bits, of the proof: the bound is a difference of terms up to 10^3 times as
#: large.
RATE_BITS = 128
#: For a larger epsilon, the rate is that of pure noise. Powers for less fit in float64.
MOST_EPSILON = 300.0


def ball_rate(dimension: int, privacy: Privacy) -> float:
    """The rate L of noise with density proportional to e^(-L ||z||_2) in R^d, d = `dimension`.

    Such noise gives `privacy` to sums of neighbours that differ by at most 1. For pure privacy L is
    epsilon. For rho-zCDP it is the largest epsilon with epsilon tanh(epsilon / 2) <= rho, or in one
    dimension, where the noise is Laplace noise, with epsilon + e^-epsilon - 1 <= rho (X-TANH). For
    (epsilon, delta)-DP it is at least epsilon, and up to 1% below the largest possible one. Let
    R ~ Gamma(d, 1/L) be the length of the noise, T(x) the probability that the cosine of its angle
    with a fixed direction is above x, and s = epsilon / L < 1. A change of length 1 has

        delta = E T(s - (1 - s^2) / (2 R)) - e^epsilon E T(s + (1 - s^2) / (2 R))
              = E [T(s - (1 - s^2) / (2 R)) - (1 + s / R)^(d - 1) T(s + (1 - s^2) / (2 (R + s)))],

    because the second T is 0 for R < s, and e^epsilon is e^(L s). Each T and the power is monotone
    in R, so the worse end of a bin of R for each of them bounds delta from above. A shorter change
    has no larger delta: given the part of the noise across the change, the part along it has a
    log-concave density, whose best events are half-lines (X-ED).
    """
    if isinstance(privacy, ZCDP):
        return largest_epsilon(privacy.rho, 0.0 if dimension == 1 else 1.0)
    if isinstance(privacy, PureDP) or privacy.epsilon > MOST_EPSILON:
        return privacy.epsilon
    return _approximate_rate(dimension, privacy)


@lru_cache(maxsize=256)
def _approximate_rate(dimension: int, privacy: ApproxDP) -> float:
    """`ball_rate` by a search in float64 and a proof in ball arithmetic."""
    epsilon, delta = privacy.epsilon, privacy.delta
    outside = max(OUTSIDE * delta, 1e-250)  # else the ends may not fit in float64
    first = float(scipy.special.gammaincinv(dimension, outside))
    last = float(scipy.special.gammainccinv(dimension, outside))
    ends: FloatArray = np.geomspace(first, last, BINS)
    weights = -np.diff(scipy.special.gammaincc(dimension, ends), append=0.0)
    powers = (1 + epsilon / np.append(ends[1:], np.inf)) ** (dimension - 1)

    def is_enough(rate: float) -> bool:
        share = epsilon / rate
        turn = (1 - share) * (1 + share) * rate / 2
        first = _beyond(share - turn / ends, dimension)
        second = _beyond(share + turn / (ends + epsilon), dimension)
        bound = outside + float(weights @ (first - powers * second))
        return bound <= delta * (1 - 1e-7)

    low, high = epsilon, 4 * epsilon
    while is_enough(high):
        low, high = high, 4 * high
    for _ in range(HALVINGS):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if is_enough(middle) else (low, middle)
    less = 1e-6
    while low > epsilon and not _is_proved(low, dimension, privacy, ends.tolist()):
        low, less = epsilon + (low - epsilon) * (1 - less), min(1.0, 2 * less)
    return low


def _beyond(cosines: FloatArray, dimension: int) -> FloatArray:
    """Pr[u > x] for the cosine u of a random direction in R^d with a fixed one, in float64."""
    x = np.clip(cosines, -1.0, 1.0)
    both = (np.abs(x) < 1).astype(np.float64)
    if dimension > 1:
        both = scipy.special.betainc((dimension - 1) / 2, 0.5, (1 - x) * (1 + x))
    return np.asarray(np.where(x < 0, 1 - both / 2, both / 2))


def _is_proved(rate: float, dimension: int, privacy: ApproxDP, ends: list[float]) -> bool:
    """Whether the bound on delta of `ball_rate` is proved to be at most that of `privacy`."""
    with ctx.workprec(RATE_BITS):
        epsilon = arb(privacy.epsilon)
        share = epsilon / arb(rate)
        turn = (1 - share) * (1 + share) * arb(rate) / 2
        above = [arb(end).gamma_upper(arb(dimension), regularized=1) for end in ends]
        powers = [(1 + epsilon / arb(end)) ** (dimension - 1) for end in ends]
        bound, after, next_powers = 1 - above[0], [*above[1:], arb(0)], [*powers[1:], arb(1)]
        for end, here, beyond, power in zip(ends, above, after, next_powers, strict=True):
            first = _ball_beyond(share - turn / arb(end), dimension)
            second = _ball_beyond(share + turn / (arb(end) + epsilon), dimension)
            bound += (here - beyond) * (first - power * second)
        return bool(bound <= arb(privacy.delta))


def _ball_beyond(x: arb, dimension: int) -> arb:
    """Pr[u > x] as in `_beyond`; where it cannot decide, 1 for x near -1 and 0 for x near 1."""
    if not x > -1:
        return arb(1)
    if not x < 1:
        return arb(0)
    both = arb(1)
    if dimension > 1:
        both = ((1 - x) * (1 + x)).beta_lower(arb(dimension - 1) / 2, arb(0.5), regularized=True)
    return both / 2 if x > 0 else 1 - both / 2


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
    """One summand T Z of `MappedNoise`: the law of Z on R^p, the map T (m, p) to the answers, and
    E ||T Z||_2^2, by default from an exact covariance of Z, or estimated from draws.
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
        return combined_status([part.noise.sampler for part in self.parts])

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        draws = (part.noise.sample(rng, size).T for part in self.parts)
        return sum_of_images([part.matrix for part in self.parts], draws).T

    def covariance(self) -> FloatArray:
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
        """The sum of tr(T_i Cov(Z_i) T_i^T); estimated for parts without an exact covariance."""
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
    return Numbers(partial(sum_of_balls, parts))


def sum_of_balls(parts: Sequence[tuple[Computable, LinearMap]], draw: Draw) -> Vector:
    """The sum of images of independent random vectors."""
    summands = [to_answers(inner(draw)) for inner, to_answers in parts]
    return [ball_sum(entries) for entries in zip(*summands, strict=True)]


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
    return mapped_variances(matrix, part.noise.covariance())


def mapped_variances(matrix: FloatArray | sp.csr_array, covariance: FloatArray) -> FloatArray:
    """The diagonal of T C T^T (p,) for a matrix T (p, m) and a covariance C."""
    half = np.asarray(matrix @ covariance)
    products = matrix.multiply(half) if sp.issparse(matrix) else matrix * half
    return np.asarray(products.sum(axis=1)).ravel()
