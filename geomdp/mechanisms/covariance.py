"""Covariance of records in the unit ball, from one private release of mean and second moments."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from functools import cached_property
from typing import Self

import numpy as np

from geomdp._numerics.linalg import svec, unsvec
from geomdp._typing import FloatArray, RandomState
from geomdp._validation import whole
from geomdp.mechanisms.additive_noise.cone import Cone
from geomdp.mechanisms.additive_noise.sums import RealRecords
from geomdp.mechanisms.base import (
    Prediction,
    PredictionKind,
    RecordChunks,
    Release,
    release_once,
    source_and_record,
)
from geomdp.mechanisms.second_moment import (
    NoiseSize,
    SecondMoment,
    bound_by_support,
    clipped_to_ball,
    nearest_moments,
    noise_size,
)
from geomdp.noise.rounding import Rounded
from geomdp.privacy import Adjacency, Ledger, Privacy
from geomdp.privacy.definitions import checked_adjacency
from geomdp.workloads import SecondMoment as SecondMomentWorkload
from geomdp.workloads.base import CHUNK_ROWS

#: The first entry c of lifted records is a multiple of 2^-10, so that c and c^2 are exact numbers.
CORNER_UNITS = 1 << 10


def corner_of(d: int) -> float:
    """The first entry c of lifted records (c, x): sqrt(d + 1) c^3 + c^2 = 1, up to rounding.

    It minimises (1 + c^2) (sqrt(d + 1) + 2 / c), to which the bound a + 2 b of X-JOINT is
    proportional, for cone noise that is not centred and for Gaussian noise.
    """
    low, high = 0, CORNER_UNITS
    while high - low > 1:
        middle = (low + high) // 2
        c = middle / CORNER_UNITS
        low, high = (middle, high) if math.sqrt(d + 1) * c**3 + c**2 < 1 else (low, middle)
    return high / CORNER_UNITS


class Covariance:
    """The covariance matrix of records in the unit ball of R^d.

    A record x is lifted to y = (c, x), with a public number c. The sum of y y^T is released once,
    with 1 + c^2 times the noise of `SecondMoment` in R^(d + 1). Its first row gives the noisy mean
    mu, and the rest the noisy second moments M. S(X) is the matrix nearest to Y = M - mu mu^T that
    is psd with trace at most min(1, max(0, tr Y)). The answers are svec(S(X)) (m,). Parameters,
    svec and m are as for `SecondMoment`, without `shrink`. ``ValueError`` under add/remove, where
    the number of records is private, and Y estimates no covariance. This class is not a
    `Mechanism`, because a covariance is not a mean of answers.

    Notes
    -----
    Privacy, in real arithmetic: y / sqrt(1 + c^2) lies in the unit ball of R^(d + 1), so the
    guarantee of `Cone` (epsilon-DP) or `Gaussian` in dimension d + 1 holds for the sum of y y^T,
    of which M, mu and S(X) are functions. c depends on d alone, and 1 + c^2 is exact in float64.
    The sampler is exact.

    Error: cone noise has the rate r = epsilon / (2 (1 + c^2)), and v = d + 2 degrees of freedom.
    Let Z / n be the noise on M and w that on mu. The noise on the first entry of the sum is known,
    and a multiple of it is subtracted from the diagonal, which lowers the variance of Z (X-CONE):

        E ||Z||_F^2 = (d (d + 1) v / 2 - d v^2 / (d v + 2)) / r^2,
        E ||w||^2 = d v / (2 r^2 c^2 n^2).

    For Gaussian noise with deviation s of the entries of svec, E ||Z||_F^2 = m s^2 and
    E ||w||^2 = d s^2 / (2 c^2 n^2). With a^2 = E ||Z||_F^2 / n^2, b^2 = E ||w||^2,
    t^2 = E (tr Z)^2 / n^2 and f = E ||w||^4, the root mean squared error of S(X) against the
    covariance of the records is, in Frobenius norm, at most

        (a^2 + 2 (1 + 1/d) b^2 + (1 - 1/d) (t^2 / 2 + 2 b^2 / d))^(1/2) + ((2 - 1/d) f)^(1/2).

    There is another bound for few records, and it is at most the diameter of all answers. For
    independent records, see `population_bound`.

    References
    ----------
    Nikolov 2022, Theorem 3; formula sheet X-JOINT, X-TRACE, X-CONE, JL-T3, JL-WIS.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> mechanism = gd.mechanisms.Covariance(
    ...     gd.workloads.SecondMoment(2), n=10_000, privacy=gd.PureDP(1.0)
    ... )
    >>> print(mechanism.predicted_rmse)
    rmse at most 0.001062
    >>> records = np.random.default_rng(0).uniform(-0.5, 0.5, (10_000, 2))
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy

    >>> release.answers.round(3)
    array([ 0.083, -0.002,  0.083])
    """

    def __init__(
        self,
        workload: SecondMomentWorkload,
        *,
        n: int,
        privacy: Privacy,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        clip: bool = False,
    ) -> None:
        refuse_private_count(adjacency)
        moments = SecondMoment(workload, n=n, privacy=privacy, adjacency=adjacency)
        self.workload, self.n, self.clip = moments.workload, moments.n, clip
        #: The first entry c of lifted records.
        self.corner = corner_of(workload.d)
        #: Noise on second moments in dimension d + 1, for records in the unit ball.
        self.inner = moments.inner.with_workload(SecondMomentWorkload(workload.d + 1))
        self.guarantee = self.inner.guarantee

    @property
    def _factor(self) -> float:
        """1 + c^2, by which the noise of `inner` is multiplied; exact in float64."""
        return 1 + self.corner**2

    @property
    def _sizes(self) -> tuple[NoiseSize, float, float]:
        """The size of the noise on M, and E ||w||^2 and E ||w||^4 of the noise w on mu, times n."""
        d = self.workload.d
        block = noise_size(self.inner.noise, d, self._factor)
        if not isinstance(self.inner, Cone):
            mean = block.trace / (2 * self.corner**2)
            return block, mean, mean**2 * (1 + 2 / d)
        # The first row of a Wishart matrix G G^T is g G^T for the first row g of G. Given g, its
        # rest is N(0, |g|^2 I / (2 r)). So w is Gaussian with a random variance: the sum of two
        # |g|^2, and the square of this sum has 1 + 1 / v times the square of its mean.
        freedom, rate = d + 2, self.inner.noise.rate / self._factor
        mean = d * freedom / (2 * (rate * self.corner) ** 2)
        return block, mean, mean**2 * (1 + 2 / d) * (1 + 1 / freedom)

    @property
    def _bound(self) -> tuple[float, str]:
        """The least of three bounds in Frobenius norm, with its source."""
        d, n = self.workload.d, self.n
        # The error is E = Z / n - L - w w^T with L = m w^T + w m^T for the true mean m, ||m|| <= 1.
        # Z, w and their signs are symmetric and uncorrelated, and w is isotropic. So the mean of
        # ||L||^2 is at most 2 (1 + 1/d) E ||w||^2, and that of (tr L)^2 at most 4 E ||w||^2 / d.
        block, mean, fourth = self._sizes
        square, fourth = mean / n**2, fourth / n**4
        linear = 2 * (1 + 1 / d) * square
        trace = (block.trace / n**2 + 4 * square / d) / 2
        first = math.sqrt(block.energy / n**2 + linear + (1 - 1 / d) * trace)
        bounds = {
            "noise on moments and mean (X-JOINT, X-TRACE)": first + math.sqrt((2 - 1 / d) * fourth),
            "largest eigenvalue of the noise (X-JOINT, JL-L13b)": bound_by_support(
                block.support / n,
                math.sqrt(trace) + math.sqrt(fourth),
                math.sqrt(linear) + math.sqrt(fourth),
            ),
            "diameter of the body": self.workload.l2_diameter(),
        }
        source = min(bounds, key=bounds.__getitem__)
        return bounds[source], source

    @property
    def predicted_rmse(self) -> Prediction:
        """Upper bound on the error per answer against the covariance of the records."""
        value, source = self._bound
        value /= math.sqrt(self.workload.n_queries)
        return Prediction(value, PredictionKind.UPPER_BOUND, source)

    @property
    def population_bound(self) -> float:
        """Upper bound on E ||S(X) - Sigma||_F for independent records of covariance Sigma.

        It is 3 / sqrt(n) more than the bound for the records (JL-T3).
        """
        return 3 / math.sqrt(self.n) + self._bound[0]

    @property
    def grid(self) -> int | None:
        """Exponent of the grid to which noise is rounded; see `AdditiveMechanism.grid`."""
        return self.inner.grid

    def __repr__(self) -> str:
        claim = f"{self.guarantee.privacy}, {self.guarantee.adjacency.value}"
        return f"Covariance({self.workload!r}, n={self.n}, {claim})"

    def with_n(self, n: int) -> Self:
        """The same mechanism for `n` records."""
        twin = copy.copy(self)
        twin.n = whole(n, "n")
        twin.inner = self.inner.with_n(n)
        return twin

    def set_up(self) -> None:
        """Do all work that depends on public arguments alone."""
        self.inner.set_up()
        _ = None if self.grid is None else self._rounded

    @cached_property
    def _rounded(self) -> Rounded:
        """Exact noise on the upper triangle of the sum of y y^T: 1 + c^2 times that of `inner`."""
        path = self.inner.exact_path
        assert path is not None
        parts = [part.times(self._factor) for part in path.rounded.parts]
        return Rounded(parts, path.rounded.grid)

    def release(
        self, records: RecordChunks, rng: RandomState = None, *, ledger: Ledger | None = None
    ) -> Release:
        """The private covariance as svec (m,); parameters as in `Mechanism.release`.

        `noisy` of the result holds the noisy mean (d,), and then svec of the noisy second moments.
        """
        generator, guarantee = source_and_record(rng, self.guarantee)
        rounded = rng is None and self.grid is not None
        read = self._exact_sums if rounded else self._sums

        def set_up() -> Prediction:
            self.set_up()
            return self.predicted_rmse

        def draw(predicted: Prediction, sums: FloatArray) -> Release:
            noisy = self._noisy(sums, None if rounded else generator)
            return Release(self._answers(noisy), guarantee, predicted, noisy=noisy)

        return release_once(
            self, guarantee, ledger, set_up=set_up, read=lambda: read(records), draw=draw
        )

    def _lifted(self, records: RecordChunks) -> Iterator[FloatArray]:
        """Chunks (b, d + 1) of the lifted records (c, x)."""
        given = clipped_to_ball(records, self.workload.d) if self.clip else records
        for chunk in self.workload.universe.chunks(given, CHUNK_ROWS):
            yield np.column_stack([np.full(len(chunk), self.corner), chunk])

    def _sums(self, records: RecordChunks) -> tuple[int, FloatArray]:
        """Number of records, and svec of the sum of y y^T over lifted records y."""
        count, total = 0, np.zeros((self.workload.d + 1,) * 2)
        for chunk in self._lifted(records):
            count += len(chunk)
            total += chunk.T @ chunk
        return count, svec(total)

    def _exact_sums(self, records: RecordChunks) -> tuple[int, FloatArray]:
        """Number of records, and the digits of the exact sum of y y^T."""
        exact = self._real_records
        count, total = 0, exact.empty()
        for chunk in self._lifted(records):
            count += len(chunk)
            exact.add(total, chunk)
        return count, total.digits()

    @property
    def _real_records(self) -> RealRecords:
        assert self.inner.exact_path is not None
        assert isinstance(self.inner.exact_path.sums, RealRecords)
        return self.inner.exact_path.sums

    def privatise(self, sums: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Private covariance (m,) from svec of the sum of y y^T over lifted records y = (c, x)."""
        return self._answers(self._noisy(sums, rng))

    def _noisy(self, sums: FloatArray, rng: np.random.Generator | None) -> FloatArray:
        """Noisy mean (d,) and svec of noisy moments (m,); without `rng`, `sums` holds digits."""
        if rng is not None:
            return self._split((sums + self._noise(rng, 1)[0]) / self.n)
        exact, multiples = self._real_records, self._rounded.draw()
        means = exact.quotients(sums, multiples, self._rounded.grid, self.n)
        return self._split(exact.restored(means))

    def _noise(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draws (size, (d + 1)(d + 2) / 2) of the noise on svec of the sum of y y^T."""
        return self._factor * self.inner.noise.sample(rng, size)

    def noise_draws(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draws (size, d + m) of the noise on the mean and on svec of the second moments."""
        noise = self._noise(rng, size) / self.n
        noise[:, 0] += self.corner**2  # where `_split` expects the exact entry and its noise
        return self._split(noise)

    def _split(self, means: FloatArray) -> FloatArray:
        """Mean and svec of second moments (..., d + m) from svec of noisy means of y y^T."""
        matrices, d = unsvec(means), self.workload.d
        moments = svec(matrices[..., 1:, 1:])
        if isinstance(self.inner, Cone):
            # Noise of `inner` is A - k t I, with k = v / (p v + 2), p = d + 1 and v = p + 1, where
            # A and t are differences of Wishart matrices and of the last coordinates. Its corner
            # A_00 - k t is known. As k (1 + k') = k' for k' = v / (d v + 2), adding k' times the
            # corner leaves the block of A - k' (t - A_00) I, of least variance (`noise_size`).
            corner = matrices[..., :1, 0] - self.corner**2
            moments = moments + (d + 2) / (d * (d + 2) + 2) * corner * svec(np.eye(d))
        return np.concatenate([matrices[..., 0, 1:] / self.corner, moments], axis=-1)

    def _answers(self, noisy: FloatArray) -> FloatArray:
        """The covariance from the noisy mean and the noisy second moments."""
        mean, moments = np.split(noisy, [self.workload.d])
        return nearest_moments(moments - svec(np.outer(mean, mean)), 1.0)


def refuse_private_count(adjacency: Adjacency) -> None:
    if checked_adjacency(adjacency) is Adjacency.ADD_REMOVE:
        raise ValueError(
            "a covariance needs replace-one, got add/remove, where the number of records is private"
        )
