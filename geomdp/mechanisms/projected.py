"""Additive noise, then the nearest answers: in the Euclidean norm, or in that of the noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
import scipy
import scipy.sparse as sp

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp._validation import whole
from geomdp.bodies import Product, Simplex, moment_relaxation, sensitivity_polytope
from geomdp.bodies.base import Body
from geomdp.bodies.relaxations import MappedElliptope
from geomdp.bodies.sensitivity import WorkloadPolytope
from geomdp.geometry.projection import ConeProjector, Projection, Projector
from geomdp.geometry.volumes import gaussian_width
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.base import PostProcessed, Prediction, PredictionKind, answer_hull
from geomdp.noise import GaussianNoise, KNormNoise
from geomdp.noise.base import KnownSizes, Noise
from geomdp.noise.few_queries import GeometricNoise
from geomdp.privacy import Adjacency
from geomdp.workloads import MarginalTables, Workload, explicit_answers
from geomdp.workloads.base import MAX_SCORES
from geomdp.workloads.structure import SignProducts, sign_products


class PostProcessedNoise(PostProcessed):
    """A post-processing of the noisy answers of an additive mechanism."""

    inner: AdditiveMechanism

    def __init__(self, inner: AdditiveMechanism) -> None:
        if not isinstance(inner, AdditiveMechanism):
            raise ValueError(f"inner must be an additive mechanism, got {type(inner).__name__}")
        super().__init__(inner)

    @cached_property
    def body(self) -> Body:
        """K: the sensitivity polytope, or a relaxation if its extreme points cost too much."""
        return reachable_body(self.workload)

    @cached_property
    def _projector(self) -> Projector | ConeProjector:
        return tried_projector(self.body, self.adjacency)


# Upper bounds on E h_K(Z) for noise Z, where h_K is the support function of a body K. If noisy
# means over n records are projected on K, their squared l2 error is at most E h_K(Z) / n.

#: Largest number of draws by default; in dimension 50, the mean of h_K over the draws has a
#: relative error near 1%. Also the largest number of coordinates for bounds by coordinates.
MAX_DRAWS = 512
#: Largest number of coordinates of all draws together, and least number of draws in spite of it,
#: unless a caller asks for fewer: all 2-way tables of 100 binary columns get 105 draws, which take
#: seconds, and an error of 0.6%.
MAX_NUMBERS, MIN_DRAWS = 1 << 21, 32
#: Probability that a simulated upper confidence limit is below the mean, for normal variables.
LEVEL = 1e-6
#: Numbers of draws and of standard errors of `ExpectedSupport.least`.
PILOT_DRAWS, PILOT_ERRORS = 8, 6.0


class SupportBound(NamedTuple):
    """An upper bound on E h_K(Z), and the formula or simulation from which it comes."""

    value: float
    source: str


@dataclass(frozen=True, eq=False)
class ExpectedSupport:
    """E h_K(Z) of a noise and a body: a quick lower limit, and an upper bound."""

    noise: Noise
    body: Body
    draws: int

    @cached_property
    def bound(self) -> SupportBound:
        return expected_support_bound(self.noise, self.body, self.draws)

    @cached_property
    def least(self) -> float:
        """A lower confidence limit: the mean over 8 public draws minus 6 standard errors of it."""
        draws = self.noise.sample(np.random.default_rng(PUBLIC_SEED), PILOT_DRAWS)
        values = self.body.breadth(draws) / 2
        return float(values.mean() - PILOT_ERRORS * values.std(ddof=1) / math.sqrt(PILOT_DRAWS))


def expected_support_bound(noise: Noise, body: Body, most: int = MAX_DRAWS) -> SupportBound:
    """Upper bound on E h_K(Z) for symmetric `noise` Z on R^m and `body` K, from public objects.

    It is proved for Gaussian noise, up to a probability of 1e-3 that `gaussian_width` misses w(K),
    and for noise of known sizes. Else it is an asymptotic upper limit by Student's t at level 1e-6
    from at most `most` public draws: for one exponential variable it is below the mean with a
    probability near 2e-5 for 512 draws, 1e-4 for 105 and 6e-4 for 32. A caller that compares
    several bounds must add up their levels.
    """
    if isinstance(noise, GaussianNoise):
        width = gaussian_width(body, rng=PUBLIC_SEED)
        how = "closed form" if width.samples == 0 else f"upper limit, {width.samples} draws"
        return SupportBound(noise.scale * width.interval[1], f"sigma w(K), w {how}")
    if isinstance(noise, KnownSizes):
        # For large epsilon, rare large values of these noises are missing from a few hundred draws.
        if noise.dimension > MAX_DRAWS:
            return SupportBound(math.inf, f"not computed above {MAX_DRAWS} coordinates")
        # E h_K(Z) = E s(Z) for the seminorm s(z) = (h_K(z) + h_K(-z)) / 2, because Z is symmetric.
        # s(Z) is at most the sum of s(Z_i e_i) = |Z_i| s(e_i). Upper bounds on the E |Z_i| can take
        # their place.
        value = float(noise.mean_sizes() @ body.breadth(np.eye(noise.dimension))) / 2
        return SupportBound(value, "E |Z_i| in closed form, coordinate by coordinate")
    rng = np.random.default_rng(PUBLIC_SEED)
    draws = min(most, max(MIN_DRAWS, MAX_NUMBERS // noise.dimension))
    # Z = R U with U uniform on a body of dimension r, and E R = (r + 1) / epsilon.
    if isinstance(noise, KNormNoise):
        points = noise.uniform.draw(rng, draws)
        factor = (noise.effective_dimension + 1) / noise.epsilon
    else:
        points, factor = noise.sample(rng, draws), 1.0
    # Z and -Z have the same distribution, so each draw contributes (h_K(Z) + h_K(-Z)) / 2.
    limit = _upper_limit(body.breadth(points) / 2)
    source = f"E h_K(Z) by {draws} public draws, upper limit at level {LEVEL:g}"
    return SupportBound(factor * limit, source)


def _upper_limit(values: FloatArray) -> float:
    """One-sided upper confidence limit for the mean of independent values (b,), by Student's t."""
    quantile = -float(scipy.special.stdtrit(len(values) - 1, LEVEL))
    return float(values.mean() + quantile * values.std(ddof=1) / math.sqrt(len(values)))


# The mechanisms.

#: Duality gap that the projection must reach, as a share of the mean squared noise, and the least
#: and largest tolerance for it, as shares of the squared diameter of K. Below the least, float64
#: rounds squared distances too much.
GAP_SHARE = 1e-6
LEAST_TOLERANCE, LARGEST_TOLERANCE = 1e-14, 1e-8
#: Largest number of columns for which the polytope of tables is replaced by a relaxation. The error
#: bound takes 12 s for 100 columns.
MAX_RELAXED_COLUMNS = 128
#: An upper bound uses an estimate of the mean squared noise plus this number of standard errors. A
#: normal variable exceeds the mean by 4.76 standard deviations with probability 1e-6.
STANDARD_ERRORS = 4.76


class Projected(PostProcessedNoise):
    """An additive mechanism followed by the Euclidean projection onto the attainable answers.

    M(X) = argmin over y in C of ||y - (Q(X) + Z / n)||_2, where Z is the noise of `inner` and C is
    the set of attainable answers. Under replace-one, C is the sensitivity polytope K = K_Q. Under
    add/remove the number of records need not be n, and C is the cone {t y : t >= 0, y in K}. For
    all 2-way tables of 25 to 128 two-level columns, K is the `moment_relaxation`, which contains
    the polytope and is an image of the elliptope.

    Parameters
    ----------
    inner : AdditiveMechanism
        The mechanism that gives the noisy answers; ``ValueError`` for any other kind.
    draws : int
        Largest number of public draws from which the prediction estimates E h_K(Z). Fewer draws
        give a looser bound, and the same releases.

    Notes
    -----
    Privacy: the guarantee of `inner`, as K is public (post-processing, GEN-2).

    Error: for every data set of n records under replace-one, with the support function h_K of K,

        E ||M(X) - Q(X)||^2 <= min{E ||Z||^2 / n^2, E h_K(Z) / n}.

    Under add/remove only the first term is a bound, for any number of records, with Q(X) the sum of
    the answers divided by n. `predicted_rmse` also includes the rounding of answers and the duality
    gap of the numerical projection. The gap is at most a millionth of E ||Z||^2 / n^2, or 1e-14 of
    the squared diameter of K if this is larger, and N / n times as large for N > n records.

    References
    ----------
    Nikolov-Talwar-Zhang 2016; Nikolov 2022, Algorithm 1 with A = I and Lemma 13; formula sheet
    JL-A1, JL-L13, JL-L13b.

    Examples
    --------
    Noisy prefix sums need not increase, but attainable answers do:

    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(4)
    >>> noisy = gd.mechanisms.Laplace(workload, n=20, privacy=gd.PureDP(1.0))
    >>> mechanism = gd.mechanisms.Projected(noisy)
    >>> records = np.repeat(np.arange(4), 5)
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release.noisy.round(3)
    array([0.298, 0.407, 0.375, 0.489])
    >>> release.answers.round(3)
    array([0.298, 0.391, 0.391, 1.   ])
    """

    def __init__(self, inner: AdditiveMechanism, *, draws: int = MAX_DRAWS) -> None:
        super().__init__(inner)
        self._draws = whole(draws, "draws", minimum=2)

    def with_workload(self, workload: Workload) -> Self:
        return type(self)(self.inner.with_workload(workload), draws=self._draws)

    @cached_property
    def _support(self) -> ExpectedSupport:
        return ExpectedSupport(self.inner.noise, self.body, self._draws)

    @cached_property
    def diameter(self) -> float:
        """An upper bound on the diameter of K."""
        if isinstance(self.body, MappedElliptope):
            return 2 * self.body.half_diameter()
        return self.workload.l2_diameter()

    @property
    def predicted_rmse(self) -> Prediction:
        m = self.workload.n_queries
        additive = squared_noise_limit(self.inner)
        gap = allowed_gap(additive, self.diameter)
        noise = f"E||Z||^2 / n^2 (JL-L13){noise_limit_source(self.inner)}"
        bounds = {noise: additive + 2 * gap}
        if self.inner.adjacency is Adjacency.ADD_REMOVE:
            return Prediction(math.sqrt(bounds[noise] / m), PredictionKind.UPPER_BOUND, noise)
        bounds["diameter of K"] = self.diameter**2
        if self._support.least <= min(bounds.values()) * self.n:
            support = self._support.bound
            # If answers are rounded by a vector r, the bound grows by at most ||r|| diam(K).
            rounding = float(np.linalg.norm(self.inner.answer_rounding)) * self.diameter
            value = support.value / self.n + gap + rounding
            bounds[f"E h_K(Z) / n (JL-L13b), {support.source}"] = value
        source = min(bounds, key=bounds.__getitem__)
        return Prediction(math.sqrt(bounds[source] / m), PredictionKind.UPPER_BOUND, source)

    def set_up(self) -> None:
        """Set up `inner` and the geometry; ``WorkloadSizeError`` if no projection is possible."""
        super().set_up()
        # The draws for the bound E h_K(Z) are taken later, when a prediction first needs them.
        self._projector.prepare()
        _ = self._support, self.diameter

    def process(self, noisy: FloatArray) -> FloatArray:
        return self.nearest(noisy).point

    def nearest(self, noisy: FloatArray, warm_start: Projection | None = None) -> Projection:
        """The point of C nearest to noisy means (m,), up to the gap of `relative_tolerance`.

        `warm_start` is an earlier projection on C, as for `Projector.nearest`.
        """
        tolerance = relative_tolerance(squared_noise_limit(self.inner), self.diameter)
        return self._projector.nearest(noisy, tol=tolerance, warm_start=warm_start)


def is_relaxed(workload: Workload) -> bool:
    """Whether the universe is too large for a search, and the polytope has a relaxation."""
    size = workload.universe.size
    pairs = isinstance(workload, MarginalTables) and workload.k == 2
    large = size is not None and MAX_SCORES < size <= 1 << MAX_RELAXED_COLUMNS
    return pairs and large and sign_products(workload) is not None


def reachable_body(workload: Workload) -> Body:
    """The sensitivity polytope; if `is_relaxed`, instead a relaxation that contains it."""
    if isinstance(workload, MarginalTables) and workload.k == 1:
        return Product([Simplex(np.eye(count)) for count in workload.levels])
    return (moment_relaxation if is_relaxed(workload) else sensitivity_polytope)(workload)


def tried_projector(
    body: Body, adjacency: Adjacency, matrix: FloatArray | None = None
) -> Projector | ConeProjector:
    """The projector on the attainable answers (a cone under add/remove), in the norm ||A y||."""
    projector = Projector(body, matrix)
    if isinstance(body, WorkloadPolytope):
        # If extreme points cannot be found, this raises an error now, before a ledger pays.
        body.extreme_point(np.empty((0, body.dimension)))
    return projector if adjacency is Adjacency.REPLACE_ONE else ConeProjector(projector)


def squared_noise_limit(inner: AdditiveMechanism) -> float:
    """E ||Z||_2^2 / n^2 of an additive mechanism, or an upper limit if E ||Z||^2 is estimated."""
    return upper_limit(inner.predicted_rmse) ** 2 * inner.workload.n_queries


def upper_limit(predicted: Prediction) -> float:
    """The predicted error, or an upper limit of it if it is estimated."""
    return predicted.value + STANDARD_ERRORS * predicted.stderr


def noise_limit_source(inner: AdditiveMechanism) -> str:
    """Note for the source of a prediction; empty if E ||Z||^2 is not estimated."""
    estimated = inner.predicted_rmse.stderr > 0
    return "; E||Z||^2 by an upper limit from public draws" if estimated else ""


def relative_tolerance(
    energy: float, scale: float, *, share: float = GAP_SHARE, largest: float = LARGEST_TOLERANCE
) -> float:
    """Tolerance for a gap of `share` times `energy`, the squared noise, relative to `scale`^2."""
    return min(max(share * energy / scale**2, LEAST_TOLERANCE), largest)


def allowed_gap(energy: float, scale: float) -> float:
    """The largest duality gap eta at which a search with `relative_tolerance` stops.

    For noise Z on means and the error e of the point found, e^2 <= ||Z||^2 + 2 eta and
    E e^2 <= E h_K(Z) + eta, because <y - p, Q(X) - p> <= eta for noisy answers y and the point p.
    """
    return relative_tolerance(energy, scale) * scale**2


class Shrunk(PostProcessedNoise):
    """Move noisy answers towards a public point, then project them; useful for very few records.

    M(X) = argmin over p in K of ||p - (c + s (y - c))||_2. Here y = Q(X) + Z / n with the noise Z
    of `inner`, K is the body of attainable answers as in `Projected`, and

        s = r^2 / (r^2 + v),  v = E ||Z||^2 / n^2.

    c is a public point, such as the answers for uniform data, and r >= ||Q(x) - c|| for every
    record x (see `centre_and_radius`). If E ||Z||^2 is estimated, v is an upper confidence limit.

    ``ValueError`` if `inner` is not an additive mechanism, or is one for add/remove: the answers
    of any number of records can be arbitrarily far from c.

    Notes
    -----
    Privacy: the guarantee of `inner`, as c, r, v and K are public (post-processing, GEN-2).

    Error: Z has mean 0, and a projection on K moves no point further away from Q(X), which is in K.
    So for all data of n records

        E ||M(X) - Q(X)||^2 <= (1 - s)^2 ||Q(X) - c||^2 + s^2 v <= r^2 v / (r^2 + v),

    which this s minimises. It is below v and below r^2. If it is below E h_K(Z) / n, too, it is
    below the bound of `Projected`. For data far from c, such as copies of one record, the error can
    be nearly as large as the bound.

    References
    ----------
    Donoho-Liu-MacGibbon 1990 (linear minimax estimates); formula sheet JL-L13, GEN-2.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(4)
    >>> laplace = gd.mechanisms.Laplace(workload, n=4, privacy=gd.PureDP(0.5))
    >>> mechanism = gd.mechanisms.Shrunk(laplace)
    >>> round(mechanism.factor, 3)
    0.046
    >>> print(mechanism.predicted_rmse)
    rmse at most 0.4567
    >>> print(gd.mechanisms.Projected(laplace).predicted_rmse)
    rmse at most 0.7134
    """

    def __init__(self, inner: AdditiveMechanism) -> None:
        super().__init__(inner)
        self._require_replace_one("answers can be far from every public centre")

    @cached_property
    def _ball(self) -> tuple[FloatArray, float]:
        return centre_and_radius(self.workload)

    @property
    def factor(self) -> float:
        """The factor s."""
        square, noise = self._ball[1] ** 2, squared_noise_limit(self.inner)
        return square / (square + noise)

    @property
    def _squared_bound(self) -> float:
        return self.factor * squared_noise_limit(self.inner)

    @property
    def predicted_rmse(self) -> Prediction:
        # If the projection stops at a duality gap eta, the squared error grows by at most 2 eta.
        square = self._squared_bound
        square += 2 * allowed_gap(square, 2 * self._ball[1])
        value = math.sqrt(square / self.workload.n_queries)
        source = f"r^2 v / (r^2 + v), linear minimax, r = {self._ball[1]:.4g}"
        source += noise_limit_source(self.inner)
        return Prediction(value, PredictionKind.UPPER_BOUND, source)

    def set_up(self) -> None:
        super().set_up()
        self._projector.prepare()
        _ = self._ball

    def process(self, noisy: FloatArray) -> FloatArray:
        centre, radius = self._ball
        shrunk = centre + self.factor * (noisy - centre)
        tolerance = relative_tolerance(self._squared_bound, 2 * radius)
        return self._projector.nearest(shrunk, tol=tolerance).point


def centre_and_radius(workload: Workload) -> tuple[FloatArray, float]:
    """A public point c (m,), and a proved r with r >= ||Q(x) - c||_2 for all answers Q(x)."""
    # For tables of uniform data, ||Q(x) - c||^2 is the sum over tables of 1 - 1 / cells for all x.
    if isinstance(workload, MarginalTables):
        cells = np.array([place.stop - place.start for place in workload.slices])
        return np.repeat(1 / cells, cells), math.sqrt(float((1 - 1 / cells).sum()))
    size, m = workload.universe.size, workload.n_queries
    if size is not None and size * m <= MAX_SCORES:
        answers = explicit_answers(workload)
        centre = answers.mean(axis=0)
        return centre, float(np.linalg.norm(answers - centre, axis=1).max())
    # c is the point nearest to 0 in the affine hull, so ||Q(x) - c||^2 = ||Q(x)||^2 - ||c||^2.
    hull = workload.affine_hull()
    centre = hull.offset - hull.basis @ (hull.basis.T @ hull.offset)
    return centre, math.sqrt(workload.l2_radius() ** 2 - float(centre @ centre))


# Fits in the norm of the noise.

#: Smaller variances, which estimates can give, are raised to this share of the largest variance.
LEAST_SHARE = 1e-8
#: If all variances agree up to this relative difference, the norm is the Euclidean norm.
EQUAL = 1e-9
#: Duality gap of a fit, relative to the squared size of the body in the norm of the noise.
TOLERANCE = 1e-8
#: Number of public draws from which the variances of products of signs are estimated. With 25
#: columns, the mean of the 200 squares of noise on single signs has a relative error near 10%.
SIGN_DRAWS = 8


@dataclass(frozen=True, eq=False)
class SignNorm:
    """Least squares over the elliptope, with products of signs weighted by 1 / noise variance.

    All 2-way tables are c + T r, where r holds the products of any two of d + 1 signs: the constant
    1, and one for each of d columns of two levels. The noise on r is treated as uncorrelated, with
    one variance for all single signs and one for all other products.
    """

    #: c and T. The columns of T are orthogonal.
    signs: SignProducts
    #: The set of all diag(g) r, where r holds the entries above the diagonal of a correlation
    #: matrix. g^2 is proportional to 1 / noise variance.
    body: MappedElliptope

    def __call__(self, noisy: FloatArray) -> Projection:
        """The nearest point in the weighted norm. Cost: about ten eigendecompositions."""
        stretch = self.body.matrix
        products = _products(noisy - self.signs.constant, self.signs)
        found = self.body.project((stretch @ products)[None])[0] / stretch.diagonal()
        point = np.asarray(self.signs.matrix @ found + self.signs.constant)
        return Projection(point, 0.0, 0, True)


def noise_norm(inner: AdditiveMechanism) -> Callable[[FloatArray], Projection]:
    """The projection on the attainable answers in the norm (z^T S^-1 z)^(1/2) of the noise.

    z are coordinates in the `answer_hull`, and S is the covariance of their noise, which `SignNorm`
    takes as diagonal.
    """
    if is_relaxed(inner.workload):
        return sign_norm(inner)
    matrix = whitening(inner)
    projector = tried_projector(reachable_body(inner.workload), inner.adjacency, matrix)
    projector.prepare()
    return lambda noisy: projector.nearest(
        noisy if matrix is None else matrix @ noisy, tol=TOLERANCE
    )


def whitening(inner: AdditiveMechanism) -> FloatArray | None:
    """A matrix A (k, m) that makes noise in the public subspace white; None if it is already."""
    span = answer_hull(inner.workload, inner.adjacency).basis
    values, vectors = np.linalg.eigh(span.T @ inner.noise.covariance() @ span)
    if values[0] >= (1 - EQUAL) * values[-1]:
        return None
    scales = np.sqrt(values[-1] / np.maximum(values, LEAST_SHARE * values[-1]))
    return np.asarray((scales * vectors).T @ span.T)


def sign_norm(inner: AdditiveMechanism) -> SignNorm:
    """The norm for `inner`, whose workload is all 2-way tables of two-level columns."""
    signs = sign_products(inner.workload)
    assert signs is not None
    single, pair = _variances(inner.noise, signs)
    weights = np.ones(signs.order)
    weights[0] = pair / single
    rows, columns = np.triu_indices(signs.order, 1)
    stretch = sp.csr_array(sp.diags_array(np.sqrt(weights[rows] * weights[columns])))
    return SignNorm(signs, MappedElliptope(stretch, weights, np.zeros(len(rows))))


def _products(answers: FloatArray, signs: SignProducts) -> FloatArray:
    """The r for which T r is nearest to `answers` (m,). The caller has already subtracted c."""
    lengths = np.asarray(signs.matrix.multiply(signs.matrix).sum(axis=0)).ravel()
    return np.asarray((signs.matrix.T @ answers) / lengths)


def _variances(noise: Noise, signs: SignProducts) -> tuple[float, float]:
    """Mean variances of the noise on single signs, and on all other products of two signs."""
    if isinstance(noise, GeometricNoise):
        # A few draws can all be 0, but the coordinates are independent, and variances add up.
        parts = signs.matrix.multiply(signs.matrix).T
        lengths = np.asarray(parts.sum(axis=1)).ravel()
        squares = np.asarray(parts @ noise.variances() / lengths**2)[None]
    else:
        draws = noise.sample(np.random.default_rng(PUBLIC_SEED), SIGN_DRAWS)
        squares = np.array([_products(draw, signs) ** 2 for draw in draws])
    singles = signs.order - 1
    return float(squares[:, :singles].mean()), float(squares[:, singles:].mean())


class Fitted(PostProcessedNoise):
    """An additive mechanism followed by generalised least squares over the attainable answers.

    Let y = Q(X) + Z / n, where Z is the noise of `inner` and has covariance S. Let C be the set of
    attainable answers on which `Projected` projects, made from the body K. Then

        f = argmin over p in C of (p - y)^T S^-1 (p - y),
        g = argmin over p in C of ||p - y||_2,
        M(X) = g + min(1, b / ||f - g||_2) (f - g),

    where b is the bound of `Projected` on the square root of E ||g - Q(X)||^2. The norm of f gives
    more weight to directions in which the noise is small. Nearly always f is within distance b of
    g, and M(X) = f.

    ``ValueError`` if `inner` is not an additive mechanism, or is one for add/remove and K is a
    relaxation: the norm is known for the relaxation only, not for the cone over it.

    Notes
    -----
    Privacy: the guarantee of `inner`, unchanged (post-processing, GEN-2). C, S and b are public. S
    can be estimated from public draws, or approximated (see `noise_norm`); privacy and the bound
    hold for any norm.

    Error, for the data sets for which the bound of `Projected` holds: by Minkowski,

        (E ||M(X) - Q(X)||^2)^(1/2) <= (E ||g - Q(X)||^2)^(1/2) + (E ||M(X) - g||^2)^(1/2) <= 2 b,

    and under replace-one this error is at most the diameter of K. Measured errors are 0.5 to 1
    times those of `Projected`, with two exceptions: 1.1 to 1.2 times for prefix sums of copies of
    the first or the last element, and 0.92 to 1.06 for tables of independent columns.

    Cost: two projections per release. The second starts from the result of the first.

    References
    ----------
    Aitken 1935 (generalised least squares); Nikolov-Talwar-Zhang 2016; formula sheet JL-L13,
    JL-L13b, GEN-2.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(4)
    >>> noisy = gd.mechanisms.Matrix(workload, n=8, privacy=gd.PureDP(0.5))
    >>> mechanism = gd.mechanisms.Fitted(noisy)
    >>> records = np.repeat(np.arange(4), 2)
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release.noisy.round(3)
    array([1.186, 1.904, 1.679, 1.   ])
    >>> release.answers.round(3)
    array([0.734, 1.   , 1.   , 1.   ])
    """

    def __init__(self, inner: AdditiveMechanism) -> None:
        super().__init__(inner)
        if inner.adjacency is Adjacency.ADD_REMOVE and is_relaxed(inner.workload):
            raise ValueError(
                "inner must be a mechanism for replace-one if the workload has more than "
                f"{MAX_SCORES} elements, got add/remove; use Projected"
            )
        self._projected = Projected(inner)

    @classmethod
    def after(cls, projected: Projected) -> Self:
        """The fit for the noise of `projected`; both share the bound and the geometry."""
        fitted = cls(projected.inner)
        fitted._projected = projected
        return fitted

    @cached_property
    def _norm(self) -> Callable[[FloatArray], Projection]:
        return noise_norm(self.inner)

    @property
    def predicted_rmse(self) -> Prediction:
        nearest = self._projected.predicted_rmse
        diameter = self._projected.diameter / math.sqrt(self.workload.n_queries)
        if self.inner.adjacency is Adjacency.REPLACE_ONE and diameter <= 2 * nearest.value:
            return Prediction(diameter, PredictionKind.UPPER_BOUND, "diameter of K")
        source = f"twice the bound of the nearest point, {nearest.source}"
        return Prediction(2 * nearest.value, PredictionKind.UPPER_BOUND, source)

    def with_n(self, n: int) -> Self:
        twin = super().with_n(n)
        twin._projected = self._projected.with_n(n)
        return twin

    def set_up(self) -> None:
        self._projected.set_up()
        _ = self._norm

    def process(self, noisy: FloatArray) -> FloatArray:
        fitted = self._norm(noisy)
        nearest = self._projected.nearest(noisy, warm_start=fitted).point
        reach = self._projected.predicted_rmse.value * math.sqrt(self.workload.n_queries)
        return moved_towards(nearest, fitted.point, reach)


def moved_towards(start: FloatArray, end: FloatArray, reach: float) -> FloatArray:
    """The point at distance `reach` from `start` towards `end`; `end` itself if it is closer."""
    distance = float(np.linalg.norm(end - start))
    share = 1.0 if distance <= reach else reach / distance
    return np.asarray(start + share * (end - start))
