"""The Laplace mechanism."""

from __future__ import annotations

from typing import Self

from geomdp._linalg import AffineHull
from geomdp._validation import whole
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.sensitivity import checked_adjacency, l1_sensitivity, pure_only
from geomdp.noise import LaplaceNoise
from geomdp.privacy import Adjacency, Exact, Guarantee, PureDP
from geomdp.privacy.calibration import laplace_scale
from geomdp.workloads import Workload


class Laplace(AdditiveMechanism):
    """Independent Laplace noise on every query.

    M(X) = (sum of Q(x) + Z) / n, Z_i independent Lap(D_1 / epsilon), where D_1 is the l1
    sensitivity of the sum: `workload.l1_diameter()` for replace-one, `l1_radius()` for add/remove.

    Parameters
    ----------
    workload : Workload
        m queries; answers are means.
    n : int
        Number of records under replace-one; the declared public normaliser under add/remove.
    privacy : PureDP
        Guarantee wanted.
    adjacency : Adjacency
        Neighbour relation.

    Raises
    ------
    ValueError
        Another privacy definition, n below 1, or a constant workload.

    Notes
    -----
    Privacy: for all neighbouring X, X' and measurable S,
    Pr[M(X) in S] <= e^epsilon Pr[M(X') in S], in real arithmetic, because the joint density of Z
    changes by at most exp(epsilon ||v||_1 / D_1) under a shift v, and sums of neighbours differ by
    ||v||_1 <= D_1. The sampler is exact.

    Error: exactly sqrt(2) D_1 / (epsilon n) per query.

    References
    ----------
    Dwork-McSherry-Nissim-Smith 2006; formula sheet GEN-3, section 7.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        n: int,
        privacy: PureDP,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
    ) -> None:
        self._privacy = pure_only(privacy, "Laplace")
        self.workload, self.n = workload, whole(n, "n")
        self.guarantee = Guarantee(privacy, checked_adjacency(adjacency), Exact())
        scale = laplace_scale(l1_sensitivity(workload, adjacency), privacy)
        self._noise = LaplaceNoise(workload.n_queries, scale)

    @property
    def noise(self) -> LaplaceNoise:
        """Distribution of Z, on sums of answer vectors."""
        return self._noise

    @property
    def _hull(self) -> AffineHull | None:
        return None

    def with_workload(self, workload: Workload) -> Self:
        """The Laplace mechanism for another workload."""
        adjacency = self.guarantee.adjacency
        return type(self)(workload, n=self.n, privacy=self._privacy, adjacency=adjacency)
