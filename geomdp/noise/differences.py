"""Noise that is a difference of two random points: paired noise and cone noise."""

from __future__ import annotations

import abc
import itertools
import math
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial

import numpy as np
import scipy.sparse as sp
from flint import arb

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp._validation import positive, require_type, vector
from geomdp.bodies.base import Body, checked_body
from geomdp.bodies.elliptope import Elliptope, TableMoments
from geomdp.bodies.simplices import Simplex
from geomdp.geometry.projection import Estimate
from geomdp.noise.base import mean_estimate, scaled
from geomdp.noise.points import (
    LinearMap,
    ball_sum,
    bartlett_factor,
    dyadic,
    gamma,
    gram,
    linear_map,
    uniform_point,
)
from geomdp.noise.rounding import (
    WORD_BITS,
    Computable,
    Draw,
    Near,
    NearVector,
    Numbers,
    Vector,
    Words,
    exact_numbers,
    exponentials,
    minus_log,
)
from geomdp.noise.tables import factor_places, near_correlations, table_cells
from geomdp.privacy import Exact

#: Number of public draws from which a moment is estimated. For tables of 10 columns, the error of a
#: mechanism, the root of the mean of ||T U||^2 over the draws, then has a relative error of 0.25%.
DRAWS = 1024


def _uniform(body: Body) -> FloatArray:
    draws = body.sample_uniform(DRAWS, np.random.default_rng(PUBLIC_SEED))
    draws.setflags(write=False)
    return draws


#: The same draws (1024, k) for all mechanisms on one of the last 8 bodies of tables; one can take a
#: hundred tries. None are kept on disk: they decide stated errors, and a file could be changed.
_uniform_tables = lru_cache(maxsize=8)(_uniform)


class _FromBody(abc.ABC):
    """Noise of uniform points of a body, after a linear map to the answers."""

    matrix: sp.csr_array | None
    constant: FloatArray | None = None
    sampler = Exact()

    def __init__(self, body: Body, matrix: sp.csr_array | None, cells: sp.csr_array | None) -> None:
        if not checked_body(body).implements(Body.sample_uniform):
            raise ValueError(f"body must have an exact uniform sampler, got {body!r}")
        if matrix is not None:
            require_type(matrix, sp.csr_array, "matrix")
            if matrix.ndim != 2 or matrix.shape[1] != body.dimension:
                raise ValueError(f"matrix must have {body.dimension} columns, got {matrix.shape}")
            if not np.isfinite(matrix.data).all():
                raise ValueError("matrix must be finite, got NaN or an infinity")
        self.body, self.matrix, self.cells = body, matrix, cells

    @property
    def dimension(self) -> int:
        return self.body.dimension if self.matrix is None else int(self.matrix.shape[0])

    @abc.abstractmethod
    def _radii(self, rng: np.random.Generator, size: int) -> FloatArray:
        """The radii of `size` draws."""

    @abc.abstractmethod
    def _at(self, radii: FloatArray, points: FloatArray) -> FloatArray:
        """Draws (b, m) with the given radii and uniform points (2 b, k) of K."""

    def _image(self, points: FloatArray) -> FloatArray:
        """T x for one point x (k,), or for each row x of `points` (b, k)."""
        return points if self.matrix is None else np.asarray((self.matrix @ points.T).T)

    def _around(self, moment: FloatArray) -> FloatArray:
        """T C T^T (m, m) for the matrix C = `moment` (k, k)."""
        return moment if self.matrix is None else self.matrix @ (self.matrix @ moment).T

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        radii = self._radii(rng, size)
        return self._at(radii, self.body.sample_uniform(2 * size, rng))

    def sample_at(self, rng: np.random.Generator, points: FloatArray) -> FloatArray:
        """Draws (b, m) with new radii and the given uniform points (2 b, k) of K."""
        return self._at(self._radii(rng, len(points) // 2), points)

    # Moments of U and T U for a uniform point U of K

    @property
    def _closed(self) -> bool:
        return self.body.implements(Body.second_moment)

    @cached_property
    def draws(self) -> FloatArray:
        """Points U - E U (1024, k) for estimates, drawn from the public seed."""
        if isinstance(self.body, TableMoments):
            return _uniform_tables(self.body)  # its centroid is 0
        return np.asarray(_uniform(self.body) - self.body.centroid())

    def _scatter(self) -> FloatArray:
        """Cov U (k, k), exact or from 1024 public draws; diagonal for `TableMoments`."""
        if self._closed:
            if isinstance(self.body, Simplex):
                return self.body.covariance()
            mean = self.body.centroid()
            return np.asarray(self.body.second_moment() - np.outer(mean, mean))
        if isinstance(self.body, TableMoments):
            return np.diag(self.body.block_means((self.draws**2).mean(axis=0)))
        return np.asarray(self.draws.T @ self.draws / len(self.draws))

    def _image_variances(self) -> FloatArray:
        """Variance of each coordinate of T U, (m,), computed without the covariance of T U."""
        if self.matrix is None:
            return np.diag(self._scatter()).copy()
        if self._closed and isinstance(self.body, Elliptope | TableMoments):
            # The coordinates of U that T uses are uncorrelated.
            return np.asarray(self.matrix.multiply(self.matrix) @ self.body.entry_variances())
        scatter = self._scatter()
        return np.asarray(self.matrix.multiply(self.matrix @ scatter).sum(axis=1)).ravel()

    @cached_property
    def _energy(self) -> Estimate:
        """E ||T (U - E U)||_2^2, exact, or estimated from 1024 public draws with a 95% interval."""
        if self._closed:
            return Estimate.exact(float(self._image_variances().sum()))
        if self.matrix is not None and isinstance(self.body, TableMoments):
            # The coordinates U_j are uncorrelated (see `_scatter`). So E ||T (U - E U)||_2^2 is the
            # sum over j of Var(U_j) times the squared length of column j of T. Averaging lengths
            # over a block changes nothing, because all variances of a block are equal.
            lengths = np.asarray(self.matrix.multiply(self.matrix).sum(axis=0)).ravel()
            return mean_estimate(self.draws**2 @ self.body.block_means(lengths))
        return mean_estimate((self._image(self.draws) ** 2).sum(axis=1))


class PairedNoise(_FromBody):
    """Z = R T (U_1 - U_2): independent U_i uniform on K in R^k, R ~ Gamma(2 k + 1, 1 / epsilon).

    On the cone over {(q, q', 1) : q, q' in K}, R (U_1, U_2, 1) has density proportional to
    e^(-epsilon t), where t is the last coordinate. A shift by (q, q', 1) maps this cone into itself
    and multiplies the density by at most e^epsilon. Replacing a record changes the sum of answers
    by T (q - q'), the image of such a shift. So the sum plus Z is epsilon-DP. The squared error is
    (k + 1/2) / (k + 2) times that of `ConeNoise` of rate epsilon / 2 around the centroid of K,
    which has the same guarantee.

    Parameters
    ----------
    body : Body
        K, full-dimensional, with an exact uniform sampler and a centroid in closed form.
    epsilon : float
        Privacy loss of one replaced record, finite and above 0.
    matrix : (m, k) sparse array
        The map T from the coordinates of K to the answers.
    cells : (m, c) sparse array, optional
        For K a `TableMoments`, the same map from 1 and the shares of all levels and cells, in whole
        numbers (see `TableContrasts`). Exact draws need it. If rows have a single 1, all cells of a
        table have noise of one law, so `half_widths` draws one of them.

    References
    ----------
    Formula sheet X-CONE, JL-L14.

    Examples
    --------
    Cone noise with the same guarantee has a larger squared error:

    >>> import scipy.sparse as sp
    >>> import geomdp as gd
    >>> K = gd.bodies.Box([0.0, 0.0], [1.0, 1.0])
    >>> noise = gd.noise.PairedNoise(K, epsilon=1.0, matrix=sp.eye_array(2, format="csr"))
    >>> cone = gd.noise.ConeNoise(K, rate=0.5, centre=K.centroid())
    >>> noise.variances().round(6).tolist(), cone.variances().round(6).tolist()
    ([5.0, 5.0], [8.0, 8.0])
    """

    matrix: sp.csr_array

    def __init__(
        self, body: Body, epsilon: float, matrix: sp.csr_array, cells: sp.csr_array | None = None
    ) -> None:
        if checked_body(body).effective_dimension < body.dimension:
            raise ValueError(f"body must be full-dimensional, got {body!r}")
        require_type(matrix, sp.csr_array, "matrix")
        super().__init__(body, matrix, cells)
        self.epsilon = positive(epsilon, "epsilon")

    def __repr__(self) -> str:
        return f"PairedNoise({self.body!r}, epsilon={self.epsilon:g})"

    def sample_cells(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draws (size, d, d) of the noise on one cell of each 2-way table; K is not cut."""
        assert isinstance(self.body, TableMoments)
        shares = self.body.sample_shares(2 * size, rng)
        return self._radii(rng, size)[:, :, None] * (shares[:size] - shares[size:])

    def _radii(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.gamma(2 * self.body.dimension + 1, 1 / self.epsilon, (size, 1))

    def _at(self, radii: FloatArray, points: FloatArray) -> FloatArray:
        first, second = points[: len(radii)], points[len(radii) :]
        return self._image(radii * (first - second))

    @property
    def _factor(self) -> float:
        """2 E R^2 = 2 (2 k + 1)(2 k + 2) / epsilon^2."""
        k = self.body.dimension
        return 2 * (2 * k + 1) * (2 * k + 2) / self.epsilon**2

    def covariance(self) -> FloatArray:
        return self._factor * self._around(self._scatter())

    def variances(self) -> FloatArray:
        return self._factor * self._image_variances()

    def second_moment(self) -> Estimate:
        """2 (2 k + 1)(2 k + 2) / epsilon^2 E ||T (U - E U)||_2^2; estimated as in `ConeNoise`."""
        return scaled(self._energy, self._factor)


class ConeNoise(_FromBody):
    """Z = T (r_1 (U_1 - a) - r_2 (U_2 - a)), U_i uniform on K, r_i ~ Gamma(r + 1, 1/rate).

    r is the dimension of K. Each r_i (U_i, 1) has density proportional to e^(-rate * last
    coordinate) on the cone over {(q, 1) : q in K}. A shift by (q, 1) with q in K multiplies it by
    at most e^rate, as the shifted cone lies within the cone. So the first vector hides shifts by
    (q, 1), and the second shifts by -(q, 1). Added to the sum of (q, 1) over records, the
    difference is rate-DP for one record added or removed, and (2 rate)-DP for one record replaced.
    If the number of records is public, subtracting a * (last coordinate) is post-processing; a = 0
    subtracts nothing (X-CONE).

    Parameters
    ----------
    body : Body
        K in R^k, with an exact uniform sampler and a centroid in closed form.
    rate : float
        Rate of the exponential weight, finite and above 0.
    centre : (k,) array
        The point a; the centroid of K gives the least noise.
    matrix : (m, k) sparse array, optional
        The map T from the coordinates of K to the answers; by default the identity.
    constant : (m,) array, optional
        The vector c, for answers c + T q. Z then contains the noise (r_1 - r_2) c, and the centre
        must be 0. Leave it out if the number of records is public, or if c = 0.
    cells : (m, c) sparse array, optional
        For K a `TableMoments`, the map to answers c + T q in whole numbers, as in `PairedNoise`.

    References
    ----------
    Formula sheet X-CONE, X-LKJ; for the spectraplex as K and centre 0, Z is the difference of two
    Wishart matrices (JL-WIS).

    Examples
    --------
    Without a public number of records, the centre is 0 and there is more noise:

    >>> import geomdp as gd
    >>> K = gd.bodies.Box([0.0, 0.0], [1.0, 1.0])
    >>> for centre in (K.centroid(), [0.0, 0.0]):
    ...     print(gd.noise.ConeNoise(K, rate=0.5, centre=centre).variances().round(6))
    [8. 8.]
    [14. 14.]
    """

    def __init__(
        self,
        body: Body,
        rate: float,
        centre: FloatArray,
        matrix: sp.csr_array | None = None,
        constant: FloatArray | None = None,
        cells: sp.csr_array | None = None,
    ) -> None:
        super().__init__(body, matrix, cells)
        self.rate = positive(rate, "rate")
        self.centre = vector(centre, body.dimension, "centre")
        self.constant = None if constant is None else vector(constant, self.dimension, "constant")
        if self.constant is not None and self.centre.any():
            raise ValueError(
                "centre must be 0 if there is a constant, because the number of records is then "
                f"not public; got centre {self.centre}"
            )
        self.effective_dimension = body.effective_dimension

    def __repr__(self) -> str:
        return f"ConeNoise({self.body!r}, rate={self.rate:g})"

    def _radii(self, rng: np.random.Generator, size: int) -> FloatArray:
        return rng.gamma(self.effective_dimension + 1, 1 / self.rate, (2, size, 1))

    def _at(self, radii: FloatArray, points: FloatArray) -> FloatArray:
        size, points = radii.shape[1], points - self.centre
        draws = self._image(radii[0] * points[:size] - radii[1] * points[size:])
        if self.constant is not None:
            draws = draws + (radii[0] - radii[1]) * self.constant
        return np.asarray(draws)

    # The variance of r_1 - r_2 multiplies D D^T, for the vector D = `_drift`. For each of the two
    # vectors, E r_1^2 = (r + 2) (E r_1^2 - (E r_1)^2) multiplies the covariance of T U.

    def covariance(self) -> FloatArray:
        factor = self.effective_dimension + 2
        about_drift = self._around(self._count_variance * (factor * self._scatter()))
        return about_drift + self._count_variance * np.outer(self._drift, self._drift)

    def variances(self) -> FloatArray:
        factor = self.effective_dimension + 2
        return self._count_variance * (factor * self._image_variances() + self._drift**2)

    @property
    def _count_variance(self) -> float:
        """Var(r_1 - r_2) = 2 (r + 1) / rate^2."""
        return 2 * (self.effective_dimension + 1) / self.rate**2

    @property
    def _drift(self) -> FloatArray:
        """T (E U - a) + c, (m,). Given r_1 and r_2, Z has mean (r_1 - r_2) times this vector."""
        moved = self._image(self.body.centroid() - self.centre)
        return moved if self.constant is None else moved + self.constant

    def second_moment(self) -> Estimate:
        """The trace, exact with a closed second moment of K; else from 1024 public draws."""
        along = self._count_variance * float((self._drift**2).sum())
        factor = self._count_variance * (self.effective_dimension + 2)
        return scaled(self._energy, factor, along)


# Exact draws


def _of_cells(body: TableMoments, whole: bool, draw: Draw) -> Vector:
    """1, shares of levels and cells of a uniform point, without those of even tables or `whole`."""
    cells = [arb(1), *table_cells(body.levels, body.violation, draw)]
    if whole:
        return cells
    pairs = (a * b for a, b in itertools.combinations(body.levels, 2))
    sizes = [1, *(size for size in (*body.levels, *pairs) for _ in range(size))]
    return [x - 1 / arb(size) for x, size in zip(cells, sizes, strict=True)]


def _lift(noise: PairedNoise | ConeNoise) -> tuple[Computable, LinearMap, Vector | None]:
    """A uniform point of K, with its T and c; exact on cells."""
    body = noise.body
    if isinstance(body, TableMoments) and noise.cells is not None:
        # Of a known number of records, even tables are public, and have no noise.
        whole = isinstance(noise, PairedNoise) or noise.constant is not None
        return partial(_of_cells, body, whole), linear_map(noise.cells), None
    to_answers = (lambda vector: vector) if noise.matrix is None else linear_map(noise.matrix)
    constant = None if noise.constant is None else dyadic(noise.constant)
    return uniform_point(body), to_answers, constant


def _moved(point: Computable, centre: Vector, draw: Draw) -> Vector:
    return [x - c for x, c in zip(point(draw), centre, strict=True)]


@exact_numbers.register
def _exact_cone(noise: ConeNoise) -> Numbers:
    point, to_answers, constant = _lift(noise)
    if noise.centre.any():
        point = partial(_moved, point, dyadic(noise.centre))
    rate, shape = arb(noise.rate), noise.effective_dimension + 1

    def balls(draw: Draw) -> Vector:
        first, second = gamma(shape, draw) / rate, gamma(shape, draw) / rate
        one, two = point(draw), point(draw)
        answers = to_answers([first * a - second * b for a, b in zip(one, two, strict=True)])
        if constant is None:
            return answers
        return [x + (first - second) * c for x, c in zip(answers, constant, strict=True)]

    return Numbers(balls, near_cone(noise))


@exact_numbers.register
def _exact_paired(noise: PairedNoise) -> Numbers:
    point, to_answers, _ = _lift(noise)
    epsilon, shape = arb(noise.epsilon), 2 * noise.body.dimension + 1

    def balls(draw: Draw) -> Vector:
        radius = gamma(shape, draw) / epsilon
        one, two = point(draw), point(draw)
        return to_answers([radius * (a - b) for a, b in zip(one, two, strict=True)])

    return Numbers(balls)


def wishart_difference(order: int, rate: float, centre: float) -> Computable:
    """Cone noise over {M psd, tr M <= 1}: the upper triangle of A_1 - A_2 - centre (r_1 - r_2) I.

    The pairs (A_i, r_i) are independent, with density proportional to e^(-rate r) on the cone {A
    psd, r >= tr A}. So A has density proportional to e^(-rate tr A), the law of G G^T / (2 rate)
    for a standard Gaussian G of shape (d, d + 1), and r - tr A is exponential with rate `rate`
    (JL-WIS, X-CONE). If `centre` is 0, the r_i are not drawn.
    """
    exact_rate, exact_centre = arb(rate), arb(centre)

    def wishart(draw: Draw) -> tuple[list[Vector], arb]:
        matrix = gram(bartlett_factor(order, draw))
        return matrix, ball_sum(matrix[i][i] for i in range(order))

    def entries(draw: Draw) -> Vector:
        (first, one), (second, two) = wishart(draw), wishart(draw)
        # The matrices, the traces and `shift` are the quantities of the docstring, multiplied by
        # 2 * rate. The division at the end removes this factor.
        shift = arb(0)
        if centre:
            above, below = exponentials(2, draw)
            shift = exact_centre * (one - two + 2 * (above - below))
        return [
            (first[i][j] - second[i][j] - (shift if i == j else 0)) / (2 * exact_rate)
            for i, j in itertools.combinations_with_replacement(range(order), 2)
        ]

    return entries


# Cone noise over the elliptope in float64, with proved bounds on the errors

#: Twice the largest relative error of one rounding.
UNIT = 2.0**-52


def near_cone(noise: ConeNoise) -> NearVector | None:
    """The noise with error bounds; None unless K is an elliptope of order >= 2, with centre 0."""
    body = noise.body
    if not isinstance(body, Elliptope) or body.order < 2 or noise.centre.any():
        return None
    order, shape = body.order, noise.effective_dimension + 1
    first, second = np.arange(shape), shape + np.arange(shape)
    count = 2 * (shape + factor_places(order).count)
    linear = _linear(noise, body.dimension)
    above = np.triu_indices(order, 1)

    def evaluate(words: Words) -> Near:
        logs, cuts = minus_log(words[: 2 * shape])
        sums = [_sum(logs[places], cuts[places]) for places in (first, second)]
        radii = [(value / noise.rate, off / noise.rate) for value, off in sums]
        sizes, wrong = zip(*[(value, off + 4 * UNIT * value) for value, off in radii], strict=True)
        uniforms = words[2 * shape :].reshape(2, -1).astype(np.float64) * 2.0**-WORD_BITS
        (one, two), gaps = near_correlations(uniforms, order)
        gap = float(np.max(gaps))  # Python's `max` would drop a NaN from the second matrix
        moved = sizes[0] * one[above] - sizes[1] * two[above]
        total = sum(sizes)
        # Correlations are at most 1 in modulus, with errors of at most `gap`.
        off = (total + sum(wrong)) * gap + sum(wrong) + 4 * UNIT * total
        return linear.image(moved, off, sizes[0] - sizes[1], total, sum(wrong))

    return NearVector(count, evaluate)


@dataclass(frozen=True)
class _Linear:
    """The map (x, t) -> matrix @ x + t * constant in float64; None means identity and 0.

    `weights` are the sums of |entries| of rows of the matrix; `longest` is their most entries.
    """

    matrix: sp.csr_array | None
    constant: FloatArray | None
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


def _sum(logs: FloatArray, cuts: FloatArray) -> tuple[float, float]:
    """A gamma variable of whole shape as a sum of exponentials, and a bound on its error."""
    # `fsum` computes the sum exactly and rounds it once.
    total = math.fsum(logs.tolist())
    return total, float(cuts.sum()) * (1 + 2.0**-30) + UNIT * total
