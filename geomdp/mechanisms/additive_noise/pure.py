"""Additive mechanisms that claim pure differential privacy."""

from __future__ import annotations

from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.sensitivity import l1_sensitivity, pure_only
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import Workload


class PureMechanism(AdditiveMechanism):
    """An additive mechanism with an epsilon-DP claim. Any other `privacy` raises ``ValueError``."""

    privacy: PureDP

    def __init__(
        self,
        workload: Workload,
        *,
        n: int,
        privacy: PureDP,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
    ) -> None:
        pure = pure_only(privacy, type(self).__name__)
        super().__init__(workload, n=n, privacy=pure, adjacency=adjacency)
        self._prepare()

    def _prepare(self) -> None:
        """Compute quick parameters; ``ValueError`` for a workload that is not supported."""
        l1_sensitivity(self.workload, self.adjacency)
