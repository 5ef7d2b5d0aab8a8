"""Second moments of records in the unit ball: Wishart or Gaussian noise, then a projection."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from geomdp._numerics.linalg import svec, unsvec
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray, RandomState
from geomdp.bodies import Spectraplex
from geomdp.bodies.base import nearest_in_corner
from geomdp.data.tallies import CountedRecords
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism, Gaussian
from geomdp.mechanisms.additive_noise.cone import Cone
from geomdp.mechanisms.base import (
    LARGEST_SUM,
    AnyRecords,
    PostProcessed,
    Prediction,
    PredictionKind,
    Privatiser,
    RecordChunks,
    Release,
    once,
    quotients,
)
from geomdp.noise.base import Noise
from geomdp.noise.differences import ConeNoise
from geomdp.noise.gaussian import GaussianNoise
from geomdp.noise.rounding import Rounded, grid_for
from geomdp.privacy import Adjacency, Guarantee, Ledger, Privacy, PureDP
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, rounded_arithmetic
from geomdp.workloads import Marginals, Workload
from geomdp.workloads import SecondMoment as SecondMomentWorkload
from geomdp.workloads.base import CHUNK_ROWS, Totals
from geomdp.workloads.universes import chunk_arrays

# Clipping of each record to the unit ball, if the caller asks for it.


def clipped_to_ball(records: RecordChunks, d: int) -> Iterator[FloatArray]:
    """Yield chunks (b, d) of the records, with records of norm above 1 scaled into the unit ball.

    The exact norm of every finite row yielded is at most 1: rows with a norm within (d + 8) 2^-53
    of 1 are scaled too, because of rounding errors. The universe later refuses NaN and infinity.
    """
    # A computed norm has a relative error of at most (d / 2 + 1) 2^-53, the scaling five roundings.
    margin = (d + 8) * 2.0**-53
    for chunk in chunk_arrays(records, (d,), None, CHUNK_ROWS):
        reals = np.asarray(chunk, dtype=np.float64)
        if not np.isfinite(reals).all():
            yield reals
            continue
        # First scale all entries to at most 1, because squares of entries above 1e154 overflow.
        largest = np.maximum(np.abs(reals).max(axis=1, keepdims=True, initial=0.0), 1.0)
        scaled = reals / largest
        norms = np.linalg.norm(scaled, axis=1, keepdims=True)
        outside = norms > (1 - margin) / largest
        yield np.asarray(scaled / np.where(outside, norms * (1 + margin), 1.0))


# Shrinkage towards multiples of the identity, if noise can explain the difference.

#: Number of public draws of the noise, and rank of the limit among the largest eigenvalues of their
#: traceless parts. With probability 5 / 1001, a multiple of the identity is not shrunk. A larger
#: share would gain much less on isotropic data, and 1 / 1001 loses more on one large eigenvalue.
DRAWS, RANK = 1000, 5
#: Number of matrix entries in memory at a time: 2^22 float64 are 32 MB.
BLOCK_ENTRIES = 1 << 22


@dataclass(frozen=True)
class IsotropicShrinkage:
    """Shrink Y = M + W to (t / d) I + s Y_0, if noise explains the largest eigenvalue of Y_0.

    M (d, d) is psd with trace at most T, and W is noise. Y_0 = Y - (tr Y / d) I, W_0 is the
    traceless part of W, and t is tr Y clipped to [0, T]. The factor of James and Stein (1961) is s
    = max(0, 1 - v / ||Y_0||_F^2) with v = E ||W_0||_F^2. For all M and `limit`, (E ||result -
    M||_F^2)^(1/2) <= (E ||W||_F^2)^(1/2) + v^(1/2), because (1 - s) ||Y_0|| <= v^(1/2).
    """

    d: int
    #: v = E ||W_0||_F^2.
    energy: float
    #: Largest eigenvalue of Y_0 that noise alone can explain; see `top_eigenvalue_limit`.
    limit: float
    #: T, infinite if traces have no limit.
    largest_trace: float = 1.0

    def __call__(self, noisy: FloatArray) -> FloatArray:
        """Map Y to the result, both as vectors (m,) of their upper triangles (`svec`)."""
        trace, traceless = split_trace(noisy, self.d)
        # The largest eigenvalue, unlike the norm of Y_0, detects few large eigenvalues in large
        # noise. No M_0 has an eigenvalue above (1 - 1/d) T, so a limit above it tests nothing.
        visible = self.limit < (1 - 1 / self.d) * self.largest_trace
        if visible and np.linalg.eigvalsh(unsvec(traceless))[-1] > self.limit:
            return noisy
        square = float(traceless @ traceless)
        kept = max(0.0, 1 - self.energy / square) if square > 0 else 0.0
        clipped = min(max(float(trace), 0.0), self.largest_trace)
        return np.asarray(clipped / self.d * svec(np.eye(self.d)) + kept * traceless)


def split_trace(vectors: FloatArray, d: int) -> tuple[FloatArray, FloatArray]:
    """Traces (...,) and traceless parts (..., m) of symmetric matrices, as svec (..., m)."""
    identity = svec(np.eye(d))
    traces = vectors @ identity
    return traces, vectors - traces[..., None] / d * identity


def top_eigenvalue_limit(noise: Noise, d: int) -> float:
    """Fifth largest lambda_max(W_0) of 1000 draws W of `noise`, as svec (m,), from a public seed.

    One more draw exceeds it with probability 5 / 1001. Cost: O(d^3) per draw; 5 s at d = 200.
    """
    rng = np.random.default_rng(PUBLIC_SEED)
    tops: list[float] = []
    block = max(1, min(DRAWS, BLOCK_ENTRIES // d**2))
    for start in range(0, DRAWS, block):
        draws = noise.sample(rng, min(block, DRAWS - start))
        tops += np.linalg.eigvalsh(unsvec(split_trace(draws, d)[1]))[:, -1].tolist()
    return sorted(tops)[-RANK]


# The mechanisms.


@dataclass(eq=False, repr=False)
class SecondMoment(PostProcessed):
    """Second moments (1/n) sum of x x^T of records in the unit ball: noise, then a projection.

    Let Y = (sum of x x^T + Z) / n. M(X) is the matrix nearest to Y that is psd with trace at most
    min(1, max(0, tr Y)), or max(0, tr Y) under add/remove (X-TRACE). For pure privacy Z is cone
    noise over the psd matrices with trace at most 1 (JL-WIS): the difference of two Wishart
    matrices with d + 1 degrees of freedom, with densities on the psd matrices A proportional to
    e^(-rate tr A). The rate is epsilon / 2 under replace-one and epsilon under add/remove. Under
    replace-one the noise on the public number of records is known, and a known multiple of the
    identity is subtracted, which lowers the variance of Z (X-CONE). For other definitions of
    privacy Z is Gaussian. The answers are svec(M(X)), (m,) with m = d (d + 1) / 2: the upper
    triangle, with entries off the diagonal multiplied by sqrt(2).

    Parameters
    ----------
    workload : geomdp.workloads.SecondMoment
        The workload of records of dimension d; ``ValueError`` for any other.
    n, privacy, adjacency : int, Privacy, Adjacency
        As for `AdditiveMechanism`.
    clip : bool
        Whether records of norm above 1 are scaled to norm 1, or raise ``ValueError``.
    shrink : bool
        Whether `IsotropicShrinkage` is applied before the projection. For isotropic data with
        n = 100, d = 20 and epsilon = 1 it lowers the error from 0.48 to 0.11; on all other spectra
        tried it raised the error by at most a tenth.

    Notes
    -----
    Privacy: the guarantee of `Cone` (epsilon-DP) or `Gaussian` on this workload, in real
    arithmetic. Clipping reads one record at a time, and shrinkage and projection read only the
    noisy matrix. The sampler is exact.

    Error: let h(Z) = max(lambda_max(Z), 0) and S = (1/n) sum of x x^T. The released trace can be
    too small by max(-tr Z, 0) / n, which has mean square T^2 / n^2 with T^2 = E (tr Z)^2 / 2. So,
    under add/remove for any number of records, E ||M(X) - S||_F^2 is at most
    (E ||Z||_F^2 + (1 - 1/d) T^2) / n^2 (JL-L13, X-TRACE). Under replace-one its root is also at
    most T / (2 n) + (E h(Z) / n + T^2 / (4 n^2))^(1/2) (JL-L13b) and the diameter of the body. For
    pure privacy with rate r, and D = d (d + 1) / 2,

        E ||Z||_F^2 = d (d + 1)^2 / (2 r^2), minus 2 D^2 / ((D + 1) d r^2) under replace-one,
        E (tr Z)^2 = 2 D / r^2, divided by D + 1 under replace-one,
        E h(Z) <= (4 d + 3) / (2 r).

    For Gaussian noise of scale sigma, E ||Z||_F^2 = D sigma^2, E (tr Z)^2 = d sigma^2 and
    E h(Z) <= sigma sqrt(2 d). With `shrink`, E ||Z||_F^2 becomes
    ((E ||Z||_F^2)^(1/2) + (E ||Z_0||_F^2)^(1/2))^2 for the traceless part Z_0 of Z, and there is no
    bound by h(Z).

    Cost: O(d^3) per release; a thousand times as much for the first one with `shrink`.

    References
    ----------
    Nikolov 2022, Lemma 22; d'Orsi-Novikov 2025 (arXiv 2510.26717), spectral noise with optimal
    errors in all Schatten norms; formula sheet JL-COV, JL-WIS, JL-L13b, X-CONE, X-SPX, X-TRACE.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.SecondMoment(2)
    >>> mechanism = gd.mechanisms.SecondMoment(workload, n=1000, privacy=gd.PureDP(1.0))
    >>> records = np.tile([[0.6, 0.8]], (1000, 1))
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> workload.answers(records).round(3)
    array([0.36 , 0.679, 0.64 ])
    >>> release.answers.round(3)
    array([0.357, 0.671, 0.643])
    """

    workload: SecondMomentWorkload
    _: KW_ONLY
    n: int
    privacy: Privacy
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    clip: bool = False
    shrink: bool = False
    inner: AdditiveMechanism = field(init=False)

    def __post_init__(self) -> None:
        asked: object = self.workload
        if not isinstance(asked, SecondMomentWorkload):
            raise ValueError(f"workload must be workloads.SecondMoment(d), got {asked!r}")
        kind = Cone if isinstance(self.privacy, PureDP) else Gaussian
        super().__init__(kind(asked, n=self.n, privacy=self.privacy, adjacency=self.adjacency))
        self.body = Spectraplex(asked.d)

    @property
    def predicted_rmse(self) -> Prediction:
        m, d, n = self.workload.n_queries, self.body.d, self.n
        size = noise_size(self.inner.noise, d)
        # The noise is symmetric, so half of E (tr Z)^2 is due to negative traces.
        lost = (1 - 1 / d) * size.trace / 2
        energy, source = size.energy, "E||Z||^2 / n^2 (X-TRACE, JL-L13)"
        if self.shrink:
            energy = (math.sqrt(energy) + math.sqrt(self._traceless_energy)) ** 2
            source = "noise and shrinkage, X-TRACE and the triangle inequality"
        bounds = {source: (energy + lost) / n**2}
        if self.adjacency is Adjacency.REPLACE_ONE:
            if not self.shrink:
                pure = isinstance(self.inner, Cone)
                how = "(4 d + 3) / (2 rate n) (JL-WIS" if pure else "sigma sqrt(2 d) / n (JL-COV"
                root = bound_by_support(size.support / n, math.sqrt(size.trace / 2) / n)
                bounds[f"{how}, X-TRACE)"] = root**2
            bounds["diameter of the body"] = self.workload.l2_diameter() ** 2
        source = min(bounds, key=bounds.__getitem__)
        return Prediction(math.sqrt(bounds[source] / m), PredictionKind.UPPER_BOUND, source)

    @property
    def _traceless_energy(self) -> float:
        """E ||Z_0||_F^2 = E ||Z||_F^2 - E (tr Z)^2 / d."""
        size = noise_size(self.inner.noise, self.body.d)
        return size.energy - size.trace / self.body.d

    @cached_property
    def _noise_limit(self) -> float:
        return top_eigenvalue_limit(self.inner.noise, self.body.d)

    def with_workload(self, workload: Workload) -> Self:
        return replace(self, workload=workload)  # type: ignore[arg-type]  # the constructor checks

    def release(
        self, records: AnyRecords, rng: RandomState = None, *, ledger: Ledger | None = None
    ) -> Release:
        """The private second moments as svec (m,); parameters as in `Mechanism.release`.

        Without `clip`, a row of norm above 1 raises ``ValueError``.
        """
        if self.clip and not isinstance(records, CountedRecords):
            records = clipped_to_ball(records, self.body.d)
        return super().release(records, rng, ledger=ledger)

    def set_up(self) -> None:
        super().set_up()
        _ = self._noise_limit if self.shrink else None

    def process(self, noisy: FloatArray) -> FloatArray:
        if self.shrink:
            energy, limit = self._traceless_energy / self.n**2, self._noise_limit / self.n
            noisy = IsotropicShrinkage(self.body.d, energy, limit, self.largest_trace)(noisy)
        return nearest_moments(noisy, self.largest_trace)

    @property
    def largest_trace(self) -> float:
        """Largest trace of an answer: under add/remove there can be more than n records."""
        return 1.0 if self.adjacency is Adjacency.REPLACE_ONE else math.inf


def nearest_moments(noisy: FloatArray, largest: float) -> FloatArray:
    """svec (m,) of the matrix nearest to Y in {M psd, tr M <= min(T, max(0, tr Y))} (X-TRACE).

    Y is given as svec (m,), and T is `largest`. Let M be the true matrix, psd with tr M <= T. Then
    Y = M + E, and let P be the result, h(E) = max(lambda_max(E), 0), e = max(-tr E, 0). The set
    need not contain M, but for every E

        ||P - M||^2 <= ||E||^2 + (1 - 1/d) e^2,
        ||P - M||^2 <= h(E) - <E, M> + e ||P - M|| for T = 1.

    Proof: let t be the limit on traces. If tr M <= t, M is in the set, and both follow from
    <Y - P, M - P> <= 0. Otherwise tr M - t <= e. If tr Y <= 0, P = 0, and both follow from
    ||M|| <= tr M <= e and ||E||^2 >= (tr E)^2 / d. If tr Y > 0, tr P = tr Y = t, and Y - P has an
    eigenvalue s >= 0 on the range of P, eigenvalues below s elsewhere, and trace 0. Thus
    <Y - P, M - P> <= s e and ||Y - P||^2 >= s^2 d / (d - 1). Since ||P - M||^2 = ||E||^2 -
    ||Y - P||^2 + 2 <Y - P, M - P>, the first bound follows. For the second, (t / tr M) M is in the
    set, so <Y - P, M - P> <= (tr M - t) <Y - P, R> with R = M / tr M, which is at most
    (tr M - t) (h(E) + ||P - M||), and <E, P> <= t h(E).
    """
    values, vectors = np.linalg.eigh(unsvec(noisy))
    trace = min(largest, max(0.0, float(values.sum())))
    return svec((vectors * nearest_in_corner(values[None], trace)[0]) @ vectors.T)


def bound_by_support(support: float, trace: float, other: float = 0.0) -> float:
    """Bound on x = (E ||P - M||^2)^(1/2) from the second inequality of `nearest_moments`.

    E is Z - R, where Z has mean 0, E h(Z) <= `support` and (E ||R||^2)^(1/2) <= `other`, and
    (E e^2)^(1/2) <= `trace`. As h(Z) replaces h(E) if <R, P - M> and e ||R|| are bounded apart,
    x^2 <= support + trace * other + (trace + other) x.
    """
    half = (trace + other) / 2
    return half + math.sqrt(support + trace * other + half**2)


class NoiseSize(NamedTuple):
    """E ||Z||_F^2, E (tr Z)^2, and a bound on E max(lambda_max(Z), 0), of noise on sums x x^T."""

    energy: float
    trace: float
    support: float


def noise_size(noise: Noise, d: int, factor: float = 1.0) -> NoiseSize:
    """The size of a d x d block of `factor` times cone or Gaussian noise on second moments.

    If the noise is centred and the block is not the whole matrix, the rest of the diagonal is
    public, and the multiple of the identity that `Covariance` adds is included.
    """
    if not isinstance(noise, ConeNoise):
        assert isinstance(noise, GaussianNoise)
        # E lambda_max <= sigma w(K) with w(K) <= sqrt(2 d) (JL-COV).
        sigma = factor * noise.scale
        return NoiseSize(d * (d + 1) / 2 * sigma**2, d * sigma**2, sigma * math.sqrt(2 * d))
    assert isinstance(noise.body, Spectraplex)
    freedom, rate, centred = noise.body.d + 1, noise.rate / factor, bool(noise.centre.any())
    energy = wishart_energy(d, rate, centred=centred, freedom=freedom)
    # A block of a Wishart matrix is a Wishart matrix A with as many degrees of freedom v, and
    # tr A ~ Gamma(d v / 2, 1 / rate). In noise around k I, with k = v / (d v + 2), the trace is
    # tr A - d k (tr A + e) = (2 tr A - d v e) / (d v + 2) for an exponential e = t - tr A that is
    # independent of A, where (A, t) is the vector on the cone.
    trace = d * freedom / rate**2 * (2 / (d * freedom + 2) if centred else 1.0)
    # E h(Z) <= E lambda_max(A) <= ((sqrt(d) + sqrt(v))^2 + 1) / (2 rate) for one of the Wishart
    # matrices A, also if the noise is centred. Proof: E h(Z) is at most
    #   E (lambda_max(A) - k t)_+ + E (k t - lambda_min(A))_+
    #   = E lambda_max(A) - E lambda_min(A) + E (k t - lambda_max(A))_+ + E (lambda_min(A) - k t)_+.
    # Shifting the psd cone by x I, where det A grows, shows P(lambda_min(A) > x) >= e^(-rate d x),
    # so E lambda_min(A) >= 1 / (d rate). The last two terms add up to at most
    # E |k t - tr A / d| = E |d v e - 2 tr A| / (d (d v + 2)). Both d v e and 2 tr A have mean
    # d v / rate. So this is at most sqrt((d v)^2 + 2 d v) / (d (d v + 2) rate) < 1 / (d rate).
    return NoiseSize(energy, trace, (2 * (d + freedom) + 1) / (2 * rate))


def wishart_energy(d: int, rate: float, *, centred: bool, freedom: int | None = None) -> float:
    """E ||Z||_F^2 for a block (by default all) of cone noise over {M psd, tr M <= 1} (X-JOINT)."""
    v = d + 1 if freedom is None else freedom
    # In noise around k I, see `noise_size`, the variance of the trace falls from d v / rate^2 to
    # 2 d v / (d v + 2) / rate^2. A d-th of the difference is the gain.
    gain = d * v**2 / (d * v + 2) if centred else 0.0
    return (d * (d + 1) * v / 2 - gain) / rate**2


@dataclass(eq=False, repr=False)
class PairMarginals(PostProcessed):
    """Two-way marginals of {0, 1}^d from the private second moment of x / sqrt(d).

    Let N be the release of `SecondMoment` (`inner`) on the scaled records x / sqrt(d), which lie in
    the unit ball. Then M(X)_ij = d N_ij, clipped to [0, 1] (under add/remove at 0 only), estimates
    the fraction of records with x_i = x_j = 1. Parameters are those of `AdditiveMechanism`; the
    workload is `Marginals(d, 2)`, and ``ValueError`` for any other.

    Notes
    -----
    Privacy: the guarantee of `SecondMoment`, because a record is scaled by itself, and M is a
    function of the release N. The sampler is exact.

    Error: let S be the second moment of the scaled records. With m = d (d - 1) / 2 queries, the sum
    over i < j of the squared errors of N_ij is at most half of ||N - S||_F^2. So the error per
    query is at most 1, and d / sqrt(2 m) times the bound of `SecondMoment`: for pure privacy and
    replace-one, at most (d / (d - 1))^(1/2) times
    min{(d + 1) sqrt(2 d) / (n epsilon), ((4 d + 3) / (n epsilon))^(1/2) + 2 / (n epsilon)}. `Cone`
    has the same rate with a smaller constant.

    References
    ----------
    Nikolov 2022, Theorem 23; formula sheet JL-T23, JL-WIS.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Marginals(d=3, k=2)
    >>> mechanism = gd.mechanisms.PairMarginals(workload, n=1000, privacy=gd.PureDP(1.0))
    >>> records = np.ones((1000, 3), dtype=int)
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release.answers.round(3)
    array([0.995, 1.   , 1.   ])
    """

    workload: Marginals
    _: KW_ONLY
    n: int
    privacy: Privacy
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    inner: SecondMoment = field(init=False)

    def __post_init__(self) -> None:
        asked: object = self.workload
        if not isinstance(asked, Marginals) or asked.k != 2:
            raise ValueError(f"workload must be Marginals(d, 2), got {asked!r}")
        moments, n = SecondMomentWorkload(asked.d), self.n
        super().__init__(SecondMoment(moments, n=n, privacy=self.privacy, adjacency=self.adjacency))
        self.workload = asked

    @property
    def predicted_rmse(self) -> Prediction:
        inner = self.inner.predicted_rmse
        whole_norm = inner.value * math.sqrt(self.inner.workload.n_queries)
        value = whole_norm * self.workload.d / math.sqrt(2 * self.workload.n_queries)
        # Answers and truths lie between 0 and the largest answer.
        value = min(value, self.inner.largest_trace)
        return Prediction(value, PredictionKind.UPPER_BOUND, f"JL-T23 from {inner.source}")

    @property
    def guarantee(self) -> Guarantee:  # type: ignore[override]
        """The guarantee of `inner`, with the grid to which this mechanism rounds noise."""
        arithmetic = FLOAT64_CAVEAT if self.grid is None else rounded_arithmetic(self.grid)
        return replace(self.inner.guarantee, arithmetic=arithmetic)

    @property
    def grid(self) -> int | None:
        """Exponent of the grid of the noise on the sum of x x^T; None for n of 2^53 or more."""
        # For larger n the counts might not be exact in float64.
        return self._on_counts.grid if self.n < LARGEST_SUM else None

    @cached_property
    def _on_counts(self) -> Rounded:
        """Noise on the upper triangle of the sum of x x^T: d times the noise of `inner`."""
        d, inner = self.workload.d, self.inner.inner
        path = inner.exact_path
        assert path is not None
        # `svec` multiplies entries off the diagonal by sqrt(2), so they have half the variance.
        deviation = d * math.sqrt(float(inner.noise.variances().min()) / 2)
        return Rounded([part.times(d) for part in path.rounded.parts], grid_for(deviation))

    def with_workload(self, workload: Workload) -> Self:
        return replace(self, workload=workload)  # type: ignore[arg-type]  # the constructor checks

    def totals(self, records: AnyRecords) -> Totals:
        """Number of records and svec of the sum of x x^T / d."""
        count, total = self._pairs(records)
        return Totals(count, svec(total) / self.workload.d)

    def _pairs(self, records: AnyRecords) -> tuple[int, FloatArray]:
        """Number of records and the sum of x x^T, a matrix (d, d) of whole numbers."""
        d = self.workload.d
        count, total = 0, np.zeros((d, d))
        if isinstance(records, CountedRecords):
            total[np.triu_indices(d, 1)] = records.totals(self.workload).sums
            total += total.T + np.diag(records.totals(Marginals(d, 1)).sums)
            return records.count, total
        for chunk in self.workload.universe.chunks(records, CHUNK_ROWS):
            count += len(chunk)
            rows = chunk.astype(np.float64)
            total += rows.T @ rows
        return count, total

    def measured(self, records: AnyRecords) -> Totals:
        """Number of records, and for each i <= j the number of records with x_i = x_j = 1."""
        count, total = self._pairs(records)
        return Totals(count, total[np.triu_indices(self.workload.d)])

    def set_up(self) -> None:
        super().set_up()
        _ = self._on_counts

    def draw(self, rng: np.random.Generator | None) -> Privatiser:
        """Draw noise; the returned function maps sums to second moments (svec) of x / sqrt(d)."""
        if rng is not None or self.grid is None:
            return super().draw(rng)
        multiples, unit, n = self._on_counts.draw(), 1 << self.grid, self.n

        def noisy(sums: FloatArray) -> FloatArray:
            means = np.zeros((self.workload.d, self.workload.d))
            means[np.triu_indices(self.workload.d)] = quotients(sums, multiples, unit, n)
            return self.inner.process(svec(means) / self.workload.d)

        return once(noisy)

    def process(self, noisy: FloatArray) -> FloatArray:
        matrix = unsvec(noisy)
        pairs = matrix[np.triu_indices(self.workload.d, 1)]
        return np.asarray(np.clip(self.workload.d * pairs, 0.0, self.inner.largest_trace))
