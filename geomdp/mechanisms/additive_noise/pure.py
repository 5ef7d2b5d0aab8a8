"""Additive mechanisms that claim pure differential privacy."""

from __future__ import annotations

from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.sensitivity import l1_sensitivity, pure_only
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import Workload


class PureMechanism(AdditiveMechanism):
    """An additive mechanism with an epsilon-DP claim. Any other `privacy` raises ``ValueError``.

    The docstring of a subclass proves that `noise` is epsilon-DP for all workloads that `_prepare`
    accepts. For notation, parameters and errors see `AdditiveMechanism`.
    """

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
        """Check the workload and compute parameters that take little time.

        Raises ``ValueError`` for a workload that is not supported. By default, `l1_sensitivity`
        checks the workload; for instance, it refuses a workload of sensitivity 0.
        """
        l1_sensitivity(self.workload, self.adjacency)
