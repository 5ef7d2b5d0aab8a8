"""The geometric mechanism."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from geomdp.mechanisms.few_queries.lattice import listed_lattice
from geomdp.mechanisms.few_queries.lattice_mechanism import LatticeMechanism
from geomdp.noise import GeometricNoise
from geomdp.privacy.calibration import laplace_scale

#: The scale of the noise is at least the least unit divided by this number. At that scale, the
#: probability that a coordinate is not 0 is below 2 e^-128 < 10^-55. The error is then far below
#: the rounding error of a mean. For much smaller scales all variances would be 0 in float64.
LARGEST_RATE = 128.0


class Geometric(LatticeMechanism):
    """Independent geometric noise on every query, for queries whose answers are whole numbers.

    M(X) = (sum of Q(x) + Z) / n with independent Z_i on the multiples of a whole number u_i, and
    Pr[Z = z] proportional to exp(-epsilon ||z||_1 / D_1). D_1 may be an upper bound on the l1
    sensitivity. u_i is the largest whole number of which all changes of sum i are multiples. It is
    1 if sum i never changes, for more than 2^22 answers, or for an answer of modulus 2^52 or more.

    Notation and parameters are those of `AdditiveMechanism`; `privacy` is a `PureDP`. The
    constructor also raises ``ValueError`` if the answers are not known to be whole numbers, or if
    D_1, or a sum over n records, can be 2^53 or more.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic. Let L be the lattice of the possible values of Z. Sums
    of neighbours differ by a vector v of L with ||v||_1 <= D_1. A shift by v changes the
    probability of a point of L by at most the factor exp(epsilon ||v||_1 / D_1). The sampler is
    exact, and a noisy sum is a whole number.

    Error: exactly sqrt(2 q) u / ((1 - q) n) for a query of unit u, with q = exp(-epsilon u / D_1).
    This is less than the error sqrt(2) D_1 / (epsilon n) of `Laplace`. For epsilon far above
    D_1 / u it falls like exp(-epsilon u / (2 D_1)). An epsilon above 128 D_1 / min u_i gets the
    noise for this value. For one query whose changes are only 0 and +-u, such as a counting query,
    no noise has a smaller error (Ghosh-Roughgarden-Sundararajan 2009; Geng-Viswanath 2014).

    References
    ----------
    Ghosh-Roughgarden-Sundararajan 2009; Geng-Viswanath 2014; formula sheet GEN-3.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> query = gd.workloads.Explicit([[0, 0, 1, 1]])
    >>> for epsilon in (0.1, 1.0, 10.0):
    ...     setting = {"n": 100, "privacy": gd.PureDP(epsilon)}
    ...     geometric = gd.mechanisms.Geometric(query, **setting)
    ...     laplace = gd.mechanisms.Laplace(query, **setting)
    ...     print(geometric.predicted_rmse, "/", laplace.predicted_rmse)
    rmse 0.1414 / rmse 0.1414
    rmse 0.01357 / rmse 0.01414
    rmse 9.529e-05 / rmse 0.001414

    >>> release = geometric.release(np.array([0] * 60 + [3] * 40))
    >>> release.guarantee
    Guarantee(10-DP, replace-one, exact sampler)
    >>> bool(round(100 * release.answers[0], 9).is_integer())
    True
    """

    def _prepare(self) -> None:
        super()._prepare()
        lattice = listed_lattice(self.workload, self.adjacency)
        # Every whole number is a multiple of 1.
        self._units = np.ones(self.workload.n_queries) if lattice is None else lattice.units
        self.set_up()

    @cached_property
    def noise(self) -> GeometricNoise:
        least = float(self._units.min()) / LARGEST_RATE
        scale = max(laplace_scale(self._sensitivity, self.privacy), least)
        return GeometricNoise(self._units, scale)

    @cached_property
    def grid(self) -> int | None:
        """0, because noisy sums are whole; None if float64 may round D_1 to less noise."""
        return 0 if self._sensitivity.is_integer() else None
