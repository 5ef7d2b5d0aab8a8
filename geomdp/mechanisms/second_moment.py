"""Second moments of records in the unit ball: Wishart or Gaussian noise, then a projection.

`PairMarginals` reduces two-way marginals to the second moment of scaled records (JL-T23).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from geomdp._numerics.linalg import svec, unsvec
from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray, RandomState
from geomdp.bodies import Spectraplex
from geomdp.data.tallies import CountedRecords
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism, Gaussian
from geomdp.mechanisms.additive_noise.cone import Cone
from geomdp.mechanisms.base import (
    LARGEST_SUM,
    Prediction,
    PredictionKind,
    Privatiser,
    Release,
    once,
    quotients,
)
from geomdp.mechanisms.projected import PostProcessed
from geomdp.noise.base import Noise
from geomdp.noise.rounding import Rounded, grid_for
from geomdp.privacy import Adjacency, Guarantee, Ledger, Privacy, PureDP
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, rounded_arithmetic
from geomdp.workloads import Marginals, Workload
from geomdp.workloads import SecondMoment as SecondMomentWorkload
from geomdp.workloads.base import CHUNK_ROWS, Totals
from geomdp.workloads.universes import Records, chunk_arrays

# Clipping of each record to the unit ball, if the caller asks for it.

#: Half a unit in the last place of 1: the largest relative error of one float64 operation.
UNIT = 2.0**-53


def clipped_to_ball(records: Records | Iterable[Records], d: int) -> Iterator[FloatArray]:
    """Yield chunks (b, d) of the records, with records of norm above 1 scaled into the unit ball.

    The exact norm of every finite row yielded is at most 1: rows with a norm within (d + 8) 2^-53
    of 1 are scaled too, because of rounding errors. The universe later refuses NaN and infinity.
    """
    # A computed norm has a relative error of at most (d / 2 + 1) UNIT, and the scaling below adds
    # at most five roundings. The margin is above the sum of both.
    margin = (d + 8) * UNIT
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
#: traceless parts. If the true matrix is a multiple of the identity, the noise exceeds the limit
#: with probability 5 / 1001; the noisy matrix is then not shrunk, and the error is several times
#: larger (at d = 50, n = 5000: 0.095 instead of 0.015). At 10 / 1001, shrinkage would gain much
#: less on isotropic data. At 1 / 1001, a true matrix with one large eigenvalue would be shrunk more
#: often, which could multiply errors by up to 1.2 (at d = 20, n = 100).
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
        # The largest eigenvalue detects a few large eigenvalues even in large noise, which the norm
        # of Y_0 would not. No M_0 has an eigenvalue above (1 - 1/d) T, so a limit above this number
        # tests nothing.
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


class SecondMoment(PostProcessed):
    """Second moments (1/n) sum of x x^T of records in the unit ball: noise, then a projection.

    M(X) = argmin {||Y - (sum of x x^T + Z) / n||_F : Y psd, tr Y <= 1}. Under add/remove there can
    be more than n records, so the trace has no limit. For pure differential privacy Z is cone noise
    over the body of all such Y (JL-WIS): the difference of two Wishart matrices with d + 1 degrees
    of freedom, each with a density on the psd matrices A proportional to e^(-rate tr A). The rate
    is epsilon / 2 under replace-one and epsilon under add/remove. Under replace-one the number of
    records is public, so the cone noise on it is known, and a known multiple of the identity is
    subtracted, which lowers the variance of Z (X-CONE). For other definitions of privacy Z is
    Gaussian.

    Parameters
    ----------
    workload : geomdp.workloads.SecondMoment
        The workload of records of dimension d; ``ValueError`` for any other. The answers are
        svec(M(X)), (m,) with m = d (d + 1) / 2: the upper triangle, with entries off the diagonal
        multiplied by sqrt(2).
    n : int
        Number of records under replace-one; the declared public normaliser under add/remove.
    privacy : PureDP, ZCDP or ApproxDP
        The guarantee of one release; epsilon or rho is from 1e-12 to 1e12.
    adjacency : Adjacency
        Neighbour relation.
    clip : bool
        Whether records of norm above 1 are scaled to norm 1, or raise ``ValueError``.
    shrink : bool
        Whether `IsotropicShrinkage` is applied before the projection. It is meant for nearly
        isotropic data and few records, when noise hides the differences of the eigenvalues. For
        isotropic data with n = 100, d = 20 and epsilon = 1 it lowers the error from 0.48 to 0.11.
        On all other spectra tried (power laws, spikes, few equal eigenvalues) it raised the error
        by at most a tenth.

    Notes
    -----
    Privacy: the guarantee of `Cone` (epsilon-DP) or `Gaussian` on this workload holds, in real
    arithmetic. Clipping depends on one record only, and shrinkage and projection read only the
    noisy matrix, so they cost nothing. The sampler is exact.

    Error: let h(Z) = max(lambda_max(Z), 0) and S = (1/n) sum of x x^T. Under add/remove, for any
    number of records, E ||M(X) - S||_F^2 is at most E ||Z||_F^2 / n^2. Under replace-one it is also
    at most E h(Z) / n and the squared diameter of the body (JL-L13, JL-L13b). For pure privacy with
    rate r, and D = d (d + 1) / 2,

        E ||Z||_F^2 = d (d + 1)^2 / (2 r^2), minus 2 D^2 / ((D + 1) d r^2) under replace-one,
        E h(Z) <= (4 d + 3) / (2 r).

    Under replace-one, the root mean squared error in Frobenius norm is therefore at most
    min{(d + 1) sqrt(2 d) / (n epsilon), sqrt((4 d + 3) / (n epsilon))}. For Gaussian noise of scale
    sigma, E ||Z||_F^2 = D sigma^2 and E h(Z) <= sigma sqrt(2 d). Let Z_0 be the traceless part of
    Z. With `shrink` the bound is ((E ||Z||_F^2)^(1/2) + (E ||Z_0||_F^2)^(1/2))^2 / n^2 or, under
    replace-one, the squared diameter if this is less.

    Cost: O(d^3) per release besides reading the records. With `shrink` the first release takes
    about a thousand times as long.

    References
    ----------
    Nikolov 2022, Lemma 22; d'Orsi-Novikov 2025 (arXiv 2510.26717), spectral noise with optimal
    errors in all Schatten norms; formula sheet JL-COV, JL-WIS, JL-L13b, X-CONE, X-SPX.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.SecondMoment(2)
    >>> mechanism = gd.mechanisms.SecondMoment(workload, n=1000, privacy=gd.PureDP(1.0))
    >>> print(mechanism.predicted_rmse)
    rmse at most 0.003
    >>> records = np.tile([[0.6, 0.8]], (1000, 1))
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy

    >>> workload.answers(records).round(3)
    array([0.36 , 0.679, 0.64 ])
    >>> release.answers.round(3)
    array([0.357, 0.671, 0.643])
    """

    workload: SecondMomentWorkload
    inner: AdditiveMechanism

    def __init__(
        self,
        workload: SecondMomentWorkload,
        *,
        n: int,
        privacy: Privacy,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        clip: bool = False,
        shrink: bool = False,
    ) -> None:
        if not isinstance(workload, SecondMomentWorkload):
            raise ValueError(f"workload must be workloads.SecondMoment(d), got {workload!r}")
        inner: AdditiveMechanism
        if isinstance(privacy, PureDP):
            inner = Cone(workload, n=n, privacy=privacy, adjacency=adjacency)
        else:
            inner = Gaussian(workload, n=n, privacy=privacy, adjacency=adjacency)
        super().__init__(inner)
        self.clip, self.shrink = clip, shrink
        self.body = Spectraplex(workload.d)

    @property
    def predicted_rmse(self) -> Prediction:
        """The root of the bound in the class docstring, divided by sqrt(m), without simulation."""
        m, d = self.workload.n_queries, self.body.d
        energy, n = self._energy, self.n
        alone = "E||Z||^2 / n^2 (JL-L13)"
        if self.shrink:
            total = math.sqrt(energy) + math.sqrt(self._traceless_energy)
            bounds = {"noise and shrinkage, JL-L13 and the triangle inequality": (total / n) ** 2}
        elif self.adjacency is Adjacency.ADD_REMOVE:
            bounds = {alone: energy / n**2}
        else:
            if isinstance(self.inner, Cone):
                rate = self.inner.noise.rate
                # E h(Z) <= E lambda_max(A) <= (4 d + 3) / (2 rate) for one of the Wishart matrices
                # A, also if the noise is centred. Proof: let (A, t) be the vector on the cone over
                # the body, and D = d (d + 1) / 2. Then e = t - tr A is exponential and independent
                # of A. With k = D / ((D + 1) d), E h(Z) is at most
                #   E (lambda_max(A) - k t)_+ + E (k t - lambda_min(A))_+
                #   = E lambda_max(A) - E lambda_min(A)
                #     + E (k t - lambda_max(A))_+ + E (lambda_min(A) - k t)_+.
                # {lambda_min >= x} is the psd cone shifted by x I, so lambda_min(A) is exponential
                # with mean 1 / (d rate). The last two terms add up to at most
                # E |k t - tr A / d| = E |D e - tr A| / (d (D + 1)). Both D e and tr A, which is
                # Gamma(D, 1 / rate), have mean D / rate. So this is at most
                # sqrt(D^2 + D) / (d (D + 1) rate) < 1 / (d rate).
                support, how = (4 * d + 3) / (2 * rate), "(4 d + 3) / (2 rate n) (JL-WIS)"
            else:
                # sigma w(K) with w(K) <= sqrt(2 d) (JL-COV).
                scale = math.sqrt(energy / m)
                support, how = scale * math.sqrt(2 * d), "sigma sqrt(2 d) / n (JL-GAUSS, JL-COV)"
            bounds = {alone: energy / n**2, how: support / n}
        if self.adjacency is Adjacency.REPLACE_ONE:
            bounds["diameter of the body"] = self.workload.l2_diameter() ** 2
        source = min(bounds, key=bounds.__getitem__)
        return Prediction(math.sqrt(bounds[source] / m), PredictionKind.UPPER_BOUND, source)

    @property
    def _energy(self) -> float:
        if not isinstance(self.inner, Cone):
            return self.inner.noise.second_moment().value
        noise = self.inner.noise
        return wishart_energy(self.body.d, noise.rate, centred=bool(noise.centre.any()))

    @property
    def _traceless_energy(self) -> float:
        """E ||Z_0||_F^2 = E ||Z||_F^2 - E (tr Z)^2 / d."""
        m, d = self.workload.n_queries, self.body.d
        if not isinstance(self.inner, Cone):
            return self._energy * (m - 1) / m
        noise = self.inner.noise
        trace = 2 * m / noise.rate**2 / (m + 1 if noise.centre.any() else 1)
        # In cone noise both Wishart matrices A have tr A ~ Gamma(m, 1 / rate). If the noise is
        # centred, the trace is (tr A - m e) / (m + 1) for an exponential e = t - tr A that is
        # independent of tr A, where (A, t) is the vector on the cone. Its variance is (m + m^2) /
        # (m + 1)^2 / rate^2.
        return self._energy - trace / d

    @cached_property
    def _noise_limit(self) -> float:
        return top_eigenvalue_limit(self.inner.noise, self.body.d)

    def with_workload(self, workload: Workload) -> Self:
        return type(self)(
            workload,  # type: ignore[arg-type]  # the constructor refuses other workloads
            n=self.n,
            privacy=self.guarantee.privacy,
            adjacency=self.adjacency,
            clip=self.clip,
            shrink=self.shrink,
        )

    def release(
        self,
        records: Records | Iterable[Records] | CountedRecords,
        rng: RandomState = None,
        *,
        ledger: Ledger | None = None,
    ) -> Release:
        """The private second moments as svec (m,); parameters as in `Mechanism.release`.

        Without `clip`, a row of norm above 1 raises ``ValueError``.
        """
        if self.clip and not isinstance(records, CountedRecords):
            records = clipped_to_ball(records, self.body.d)
        return super().release(records, rng, ledger=ledger)

    def set_up(self) -> None:
        super().set_up()
        if self.shrink:
            _ = self._noise_limit

    def process(self, noisy: FloatArray) -> FloatArray:
        if self.shrink:
            energy, limit = self._traceless_energy / self.n**2, self._noise_limit / self.n
            noisy = IsotropicShrinkage(self.body.d, energy, limit, self.largest_trace)(noisy)
        if self.adjacency is Adjacency.ADD_REMOVE:
            return nearest_psd(noisy)
        return np.asarray(self.body.project(noisy[None])[0])

    @property
    def largest_trace(self) -> float:
        """Largest trace of an answer: under add/remove there can be more than n records."""
        return 1.0 if self.adjacency is Adjacency.REPLACE_ONE else math.inf


def nearest_psd(vector: FloatArray) -> FloatArray:
    """svec (m,) of the psd matrix nearest to a symmetric matrix, given as svec (m,)."""
    values, vectors = np.linalg.eigh(unsvec(vector))
    return svec((vectors * np.maximum(values, 0.0)) @ vectors.T)


def wishart_energy(d: int, rate: float, *, centred: bool) -> float:
    """E ||Z||_F^2 of cone noise over {M psd, tr M <= 1} at a given rate (JL-WIS, X-CONE)."""
    D = d * (d + 1) // 2
    # If the noise is centred at the centroid c of the body, ||c||^2 = (D / (D + 1))^2 / d, and the
    # gain is 2 (D + 1) ||c||^2.
    gain = 2 * D**2 / ((D + 1) * d) if centred else 0.0
    return (d * (d + 1) ** 2 / 2 - gain) / rate**2


class PairMarginals(PostProcessed):
    """Two-way marginals of {0, 1}^d from the private second moment of x / sqrt(d).

    The scaled records x / sqrt(d) lie in the unit ball. Let N be the release of `SecondMoment`
    (`inner`) on them. Then M(X)_ij = d N_ij, clipped to [0, 1], estimates the fraction of records
    with x_i = x_j = 1. Under add/remove, where there can be more than n records, it is clipped at 0
    only.

    The parameters of `SecondMoment`, except `clip` and `shrink`, have the same meaning here. The
    workload is `Marginals(d, 2)`; ``ValueError`` for any other.

    Notes
    -----
    Privacy: the guarantee of `SecondMoment` on the unit ball holds, because the scaling of a record
    does not depend on other records, and M is a function of the release N. The sampler is exact.

    Error: let S be the second moment of the scaled records. With m = d (d - 1) / 2 queries, the sum
    over i < j of the squared errors of N_ij is at most half of ||N - S||_F^2. So the error per
    query is at most d / sqrt(2 m) times the bound of `SecondMoment` on (E ||N - S||_F^2)^(1/2). For
    pure privacy and replace-one, this product is at most
    (d / (d - 1))^(1/2) min{(d + 1) sqrt(2 d) / (n epsilon), ((4 d + 3) / (n epsilon))^(1/2)}. The
    error is also at most 1. Under add/remove, only the bound by E ||Z||_F^2 is left.

    This is the published mechanism, with polynomial time and the rate d^(3/2) / (epsilon n). `Cone`
    has the same rate with a smaller constant, because it writes the entries of a record as signs:
    all matrices in its body then have unit diagonal.

    References
    ----------
    Nikolov 2022, Theorem 23; formula sheet JL-T23, JL-WIS.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Marginals(d=3, k=2)
    >>> mechanism = gd.mechanisms.PairMarginals(workload, n=1000, privacy=gd.PureDP(1.0))
    >>> print(mechanism.predicted_rmse)
    rmse at most 0.01111
    >>> records = np.ones((1000, 3), dtype=int)
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release.answers.round(3)
    array([0.995, 1.   , 1.   ])
    """

    workload: Marginals
    inner: SecondMoment

    def __init__(
        self,
        workload: Marginals,
        *,
        n: int,
        privacy: Privacy,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
    ) -> None:
        if not isinstance(workload, Marginals) or workload.k != 2:
            raise ValueError(f"workload must be Marginals(d, 2), got {workload!r}")
        moments = SecondMomentWorkload(workload.d)
        super().__init__(SecondMoment(moments, n=n, privacy=privacy, adjacency=adjacency))
        self.workload = workload

    @property
    def predicted_rmse(self) -> Prediction:
        inner = self.inner.predicted_rmse
        whole_norm = inner.value * math.sqrt(self.inner.workload.n_queries)
        value = whole_norm * self.workload.d / math.sqrt(2 * self.workload.n_queries)
        # Answers and truths lie between 0 and the largest answer, so no error exceeds it.
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
        return type(self)(
            workload,  # type: ignore[arg-type]  # the constructor refuses other workloads
            n=self.n,
            privacy=self.guarantee.privacy,
            adjacency=self.adjacency,
        )

    def totals(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        """Number of records and svec of the sum of x x^T / d."""
        count, total = self._pairs(records)
        return Totals(count, svec(total) / self.workload.d)

    def _pairs(
        self, records: Records | Iterable[Records] | CountedRecords
    ) -> tuple[int, FloatArray]:
        """Number of records and the sum of x x^T, a matrix (d, d) of whole numbers."""
        d = self.workload.d
        if isinstance(records, CountedRecords):
            pairs = records.totals(self.workload).sums
            total = np.zeros((d, d))
            total[np.triu_indices(d, 1)] = pairs
            total += total.T
            np.fill_diagonal(total, records.totals(Marginals(d, 1)).sums)
            return records.count, total
        count, total = 0, np.zeros((d, d))
        for chunk in self.workload.universe.chunks(records, CHUNK_ROWS):
            count += len(chunk)
            rows = chunk.astype(np.float64)
            total += rows.T @ rows
        return count, total

    def measured(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
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
