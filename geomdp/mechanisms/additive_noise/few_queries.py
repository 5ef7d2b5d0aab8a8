"""Mechanisms for few queries: noise on a lattice, or staircase noise on one query."""

from __future__ import annotations

import math
from typing import Self

import numpy as np

from geomdp.mechanisms.additive_noise.base import AdditiveMechanism, PureMechanism
from geomdp.mechanisms.additive_noise.certify import Origin
from geomdp.mechanisms.additive_noise.sums import MAX_ANSWERS, Change, ExactSums
from geomdp.mechanisms.base import LARGEST_SUM
from geomdp.noise.few_queries import (
    MOST_COORDINATES,
    GeometricNoise,
    LatticeBoxNoise,
    StaircaseNoise,
)
from geomdp.privacy import ZCDP, PureDP
from geomdp.privacy.definitions import calibrated_epsilon, laplace_scale


class InexactSumsError(ValueError):
    """Sums of answers, or their changes between neighbours, are not exact in float64."""


class LatticeMechanism(AdditiveMechanism):
    """Noise on a lattice that contains all changes; sums are below 2^53, so exact and on it."""

    origin, at_once = Origin.FORMULA, True

    def _prepare(self) -> None:
        if self.change.l1 >= LARGEST_SUM:
            raise InexactSumsError(
                f"workload must have an l1 sensitivity below 2^53 for {type(self).__name__}, got "
                f"{self.change.l1:g}: choose a larger unit for the answers"
            )
        self._require_exact_sums()

    def with_n(self, n: int) -> Self:
        twin = super().with_n(n)
        twin._require_exact_sums()
        return twin

    def _require_exact_sums(self) -> None:
        capacity = ExactSums(self.workload).capacity
        if self.n > capacity:
            raise InexactSumsError(
                f"n must be at most {capacity} for {type(self).__name__} and this workload: "
                f"sums over more records are not exact in float64, got {self.n}"
            )


#: The scale of the noise is at least the least unit divided by this number. At that scale, the
#: probability that a coordinate is not 0 is below 2 e^-128 < 10^-55. The error is then far below
#: the rounding error of a mean. For much smaller scales all variances would be 0 in float64.
LARGEST_RATE = 128.0


class Geometric(LatticeMechanism):
    """Independent geometric noise on every query, for queries whose answers are whole numbers.

    Z_i is a multiple of a whole number u_i, and Pr[Z = z] is proportional to
    exp(-epsilon ||z||_1 / D_1). D_1 may be an upper bound on the l1 sensitivity. u_i is the largest
    whole number of which all changes of sum i are multiples. It is 1 if sum i never changes, for
    more than 2^22 answers, or for an answer of modulus 2^52 or more.

    Notation and parameters are those of `AdditiveMechanism`. `privacy` is a `PureDP`, or a `ZCDP`
    with rho = epsilon - t / sinh(t) (1 - e^-epsilon) for t = epsilon max u_i / D_1; for one count
    this is epsilon tanh(epsilon / 2). ``ValueError`` also if the answers are not known to be whole
    numbers, or if D_1, or a sum over n records, can be 2^53 or more.

    Notes
    -----
    Privacy: epsilon-DP or rho-zCDP in real arithmetic. Sums of neighbours differ by a possible
    value v of Z with ||v||_1 <= D_1. A shift by v changes the probability of a value of Z by at
    most the factor exp(epsilon ||v||_1 / D_1). For rho, let x_i = epsilon |v_i| / D_1 and
    t_i = epsilon u_i / D_1. The Renyi divergence of order a is at most a times the sum of
    x_i - t_i / sinh(t_i) (1 - e^-x_i), which is at most rho as for `Laplace`, because
    t_i / sinh(t_i) falls in t_i (X-TANH). The sampler is exact, and a noisy sum is a whole number.

    Error: exactly sqrt(2 q) u / ((1 - q) n) for a query of unit u, with q = exp(-epsilon u / D_1),
    less than that of `Laplace`. For epsilon far above D_1 / u it falls like
    exp(-epsilon u / (2 D_1)). An epsilon above 128 D_1 / min u_i gets the noise for this value. For
    one query whose changes are only 0 and +-u, such as a counting query, no noise has a smaller
    error (Ghosh-Roughgarden-Sundararajan 2009; Geng-Viswanath 2014).

    References
    ----------
    Ghosh-Roughgarden-Sundararajan 2009; Geng-Viswanath 2014; formula sheet GEN-3, X-TANH.

    Examples
    --------
    >>> import geomdp as gd
    >>> query = gd.workloads.Explicit([[0, 0, 1, 1]])
    >>> for kind in (gd.mechanisms.Geometric, gd.mechanisms.Laplace):
    ...     mechanism = kind(query, n=100, privacy=gd.PureDP(10.0))
    ...     print(mechanism.predicted_rmse)
    rmse 9.529e-05
    rmse 0.001414
    """

    accepts = (PureDP, ZCDP)
    privacy: PureDP | ZCDP

    def law(self, change: Change) -> GeometricNoise:
        lattice = change.lattice
        # Every whole number is a multiple of 1.
        units = np.ones(self.workload.n_queries) if lattice is None else lattice.units
        least = float(units.min()) / LARGEST_RATE
        # Rounded up. A step of 1 holds for all epsilon-DP noise.
        step = min(1.0, math.nextafter(float(units.max()) / change.l1, 1.0))
        pure = PureDP(calibrated_epsilon(self.privacy, step))
        return GeometricNoise(units, max(laplace_scale(change.l1, pure), least))


#: If epsilon is above 128, the noise for epsilon = 128 is drawn, which gives a stronger guarantee
#: than the stated epsilon. The standard deviation of this noise is below 10^-18 of the sensitivity,
#: less than the rounding error of a mean.
MOST_EPSILON = 128.0


class Staircase(PureMechanism):
    """Staircase noise on one query: the least variance of all epsilon-DP noise on a real number.

    The density of Z is constant on steps, and falls by the factor e^epsilon from step to step. The
    steps have the width D_1, but the step around 0 is narrower. Notation and parameters are those
    of `AdditiveMechanism`. More than one query raises ``ValueError``, too.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic. Sums of neighbours differ by at most D_1, and densities
    at most D_1 apart differ by at most the factor e^epsilon. The sampler is exact.

    Error: exactly D_1 (2^(-2/3) b^(2/3) (1 + b)^(2/3) + b)^(1/2) / ((1 - b) n) with
    b = exp(-epsilon), less than that of `Laplace`. A larger epsilon than 128 has the error of 128.
    Up to 128, no epsilon-DP noise on a real number has a smaller error (Geng-Viswanath 2014), and
    for large epsilon it falls like exp(-epsilon / 3). Unseeded releases may round answers first
    (see `answer_rounding`). For whole-number answers, `Geometric` can be better.

    References
    ----------
    Geng-Viswanath 2014, "The optimal mechanism in differential privacy"; formula sheet GEN-3.

    Examples
    --------
    >>> import geomdp as gd
    >>> query = gd.workloads.Explicit([[0.0, 0.25, 0.6, 1.0]])
    >>> for kind in (gd.mechanisms.Staircase, gd.mechanisms.Laplace):
    ...     print(kind(query, n=100, privacy=gd.PureDP(10.0)).predicted_rmse)
    rmse 0.0002911
    rmse 0.001414
    """

    origin, at_once = Origin.FORMULA, True

    def _prepare(self) -> None:
        if self.workload.n_queries != 1:
            raise ValueError(
                f"workload must have 1 query for Staircase, got {self.workload.n_queries}"
            )
        super()._prepare()

    def law(self, change: Change) -> StaircaseNoise:
        return StaircaseNoise(change.l1, min(self.privacy.epsilon, MOST_EPSILON))


class LatticeBox(LatticeMechanism):
    """Whole-number K-norm noise where K is a box, for few queries and a large epsilon.

    Coordinate i of Z is a multiple of a whole number u_i, and Pr[Z = z] is proportional to
    exp(-epsilon k(z)), where k(z) is the largest of the ceil(|z_i| / w_i). Here w_i is the largest
    change of sum i between neighbours, and u_i is the greatest common divisor of all changes of
    sum i. If w_i is 0, Z_i is 0.

    Notation and parameters are those of `AdditiveMechanism`. ``ValueError`` as in `Geometric`, and
    for more than 64 queries, more than 2^22 answers (elements times queries), or an answer of
    modulus 2^52 or more.

    Notes
    -----
    Privacy: epsilon-DP. Sums of neighbours differ by a possible value v of Z with |v_i| <= w_i for
    all i, and k(z + v) <= k(z) + 1. The sampler is exact, and a noisy sum is a whole number.

    Error: exact in closed form. For large epsilon up to 128 it falls like exp(-epsilon / 2); a
    larger epsilon gets the noise for epsilon = 128. If one record can change all m queries by one
    unit each, the error of `Geometric` falls like exp(-epsilon / (2 m)) only. The error of
    continuous K-norm noise falls like 1 / epsilon.

    References
    ----------
    Hardt-Talwar 2010 (K-norm noise); formula sheet JL-KN.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Marginals(3, 1)
    >>> for kind in (gd.mechanisms.LatticeBox, gd.mechanisms.KNorm):
    ...     print(kind(workload, n=100, privacy=gd.PureDP(10.0)).predicted_rmse)
    rmse 0.0002858
    rmse 0.002582
    """

    def _prepare(self) -> None:
        queries = self.workload.n_queries
        if queries > MOST_COORDINATES:
            raise ValueError(
                f"workload must have 1 to {MOST_COORDINATES} queries for LatticeBox, got {queries}"
            )
        super()._prepare()
        if self.change.lattice is None:
            raise ValueError(
                f"workload must have at most {MAX_ANSWERS} answers for LatticeBox, all below 2^52, "
                f"got {self.workload!r}"
            )

    noise: LatticeBoxNoise
    accepts = (PureDP,)
    privacy: PureDP

    def law(self, change: Change) -> LatticeBoxNoise:
        lattice = change.lattice
        assert lattice is not None
        epsilon = min(self.privacy.epsilon, MOST_EPSILON)
        return LatticeBoxNoise(lattice.units, lattice.counts.tolist(), epsilon)
