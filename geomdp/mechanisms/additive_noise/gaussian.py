"""The Gaussian mechanism."""

from __future__ import annotations

from typing import Self

from geomdp._linalg import AffineHull
from geomdp._validation import whole
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.sensitivity import answer_hull, checked_adjacency, l2_sensitivity
from geomdp.noise import GaussianNoise
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Exact, Guarantee
from geomdp.privacy.calibration import gaussian_scale
from geomdp.workloads import Workload


class Gaussian(AdditiveMechanism):
    """Isotropic Gaussian noise in the span of the answers.

    M(X) = (sum of Q(x) + B g) / n, g ~ N(0, sigma^2 I_r), B (m, r) an orthonormal basis of the
    public subspace in which answers move, D_2 the l2 sensitivity of the sum
    (`workload.l2_diameter()` for replace-one, `l2_radius()` for add/remove) and sigma the least
    that gives the guarantee: D_2 / sqrt(2 rho) for rho-zCDP, the analytic value for
    (epsilon, delta)-DP.

    Parameters
    ----------
    workload : Workload
        m queries; answers are means.
    n : int
        Number of records under replace-one; the declared public normaliser under add/remove.
    privacy : ZCDP or ApproxDP
        Guarantee wanted; Gaussian noise is never purely private.
    adjacency : Adjacency
        Neighbour relation.

    Raises
    ------
    ValueError
        `PureDP`, n below 1, or a constant workload.

    Notes
    -----
    Privacy, in real arithmetic: rho-zCDP, that is Renyi divergence of order a at most rho a
    between M(X) and M(X') for all neighbours and a > 1; or (epsilon, delta)-DP, that is
    Pr[M(X) in S] <= e^epsilon Pr[M(X') in S] + delta. Sums of neighbours differ by a vector of the
    span of B of Euclidean length at most D_2. The sampler is exact.

    Error: exactly sigma sqrt(r / m) / n per query.

    References
    ----------
    Bun-Steinke 2016, Proposition 1.6; Balle-Wang 2018, Theorem 8; formula sheet GEN-2, JL-GAUSS.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        n: int,
        privacy: ZCDP | ApproxDP,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
    ) -> None:
        if not isinstance(privacy, ZCDP | ApproxDP):
            raise ValueError(f"privacy must be ZCDP or ApproxDP for Gaussian, got {privacy!r}")
        self._privacy = privacy
        self.workload, self.n = workload, whole(n, "n")
        self.guarantee = Guarantee(privacy, checked_adjacency(adjacency), Exact())
        scale = gaussian_scale(l2_sensitivity(workload, adjacency), privacy)
        self._span = answer_hull(workload, adjacency)
        self._noise = GaussianNoise(self._span.basis, scale)

    @property
    def noise(self) -> GaussianNoise:
        """Distribution of Z, on sums of answer vectors."""
        return self._noise

    @property
    def _hull(self) -> AffineHull:
        return self._span

    def with_workload(self, workload: Workload) -> Self:
        """The Gaussian mechanism for another workload."""
        adjacency = self.guarantee.adjacency
        return type(self)(workload, n=self.n, privacy=self._privacy, adjacency=adjacency)
