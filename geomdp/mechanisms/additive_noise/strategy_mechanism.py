"""Mechanisms that measure the histogram by a strategy and compute the answers by least squares."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from functools import cached_property
from typing import Self

from geomdp._numerics.linalg import AffineHull
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.sensitivity import answer_hull, l1_sensitivity
from geomdp.mechanisms.strategies import Design, Strategy, best_design
from geomdp.privacy import Adjacency, Privacy
from geomdp.workloads import Marginals, MarginalTables, Parities, Workload


class StrategyMechanism(AdditiveMechanism):
    """M(X) = (sum over i of R_i (C_i h + Z_i)) / n, up to what is public.

    h is the histogram of the records, the C_i are the measurements of the best of some strategies
    (or of `strategy`, if given), and the R_i compute the answers W h from them: sum of R_i C_i = W.
    The strategies depend on public arguments only; they are compared on first use.
    """

    def __init__(
        self,
        workload: Workload,
        *,
        n: int,
        privacy: Privacy,
        adjacency: Adjacency,
        strategy: Strategy | None = None,
    ) -> None:
        super().__init__(workload, n=n, privacy=privacy, adjacency=adjacency)
        l1_sensitivity(workload, adjacency)  # refuses constant workloads
        self._strategy = strategy

    @abc.abstractmethod
    def _strategies(self) -> Sequence[Strategy]:
        """The strategies that are compared where none is given."""

    @cached_property
    def _design(self) -> Design:
        tried = self._strategies() if self._strategy is None else [self._strategy]
        return best_design(tried, self.workload, self.adjacency)

    @property
    def design(self) -> str:
        """What is measured, in words."""
        return self._design.name

    @cached_property
    def _hull(self) -> AffineHull | None:
        # Sums of counts are whole numbers, exact in float64: rounding leaves nothing of them
        # outside the span of the answers, whose basis is large for many columns.
        if isinstance(self.workload, MarginalTables | Marginals | Parities):
            return None
        return answer_hull(self.workload, self.adjacency)

    def with_workload(self, workload: Workload) -> Self:
        """The mechanism of the same family for another workload, with the same `strategy`."""
        return type(self)(
            workload,
            n=self.n,
            privacy=self.privacy,
            adjacency=self.adjacency,
            strategy=self._strategy,
        )
