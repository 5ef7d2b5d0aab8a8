"""Mechanisms that post-process the answers of another mechanism."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

import numpy as np

from geomdp.data.counting.tallies import CountedRecords
from geomdp.mechanisms.additive_noise.base import AdditiveMechanism
from geomdp.mechanisms.base import Mechanism, Privatiser
from geomdp.privacy import Adjacency, Guarantee, SamplerStatus
from geomdp.workloads import Workload
from geomdp.workloads.base import Totals
from geomdp.workloads.universe.universes import Records


class PostProcessed(Mechanism):
    """A mechanism that reads the records only through `inner`, whose guarantee it keeps (GEN-2).

    A release calls the single steps of `inner`, but not `inner.release`, so the ledger pays once.
    """

    inner: Mechanism

    def __init__(self, inner: Mechanism) -> None:
        self.inner = inner
        self.workload, self.n, self.adjacency = inner.workload, inner.n, inner.adjacency

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.inner!r})"

    # `guarantee` is an attribute in the base class. Here it is a property, because the guarantee of
    # `inner` may need a set-up first.
    @property
    def guarantee(self) -> Guarantee:  # type: ignore[override]
        """The guarantee of `inner`."""
        return self.inner.guarantee

    @property
    def sampler(self) -> SamplerStatus:
        return self.inner.sampler

    @property
    def grid(self) -> int | None:
        return self.inner.grid

    def with_n(self, n: int) -> Self:
        twin = super().with_n(n)
        twin.inner = self.inner.with_n(n)
        return twin

    def with_workload(self, workload: Workload) -> Self:
        return type(self)(self.inner.with_workload(workload))

    def set_up(self) -> None:
        self.inner.set_up()

    def measured(self, records: Records | Iterable[Records] | CountedRecords) -> Totals:
        return self.inner.measured(records)

    def draw(self, rng: np.random.Generator | None) -> Privatiser:
        """Draw the noise of `inner`; the returned function maps sums to the answers of `inner`."""
        return self.inner.private(rng)


def require_replace_one(mechanism: Mechanism, why: str) -> None:
    """Raise ``ValueError`` if the number of records is private, and no error bound holds then."""
    if mechanism.adjacency is not Adjacency.REPLACE_ONE:
        raise ValueError(
            f"{type(mechanism).__name__} needs replace-one, got add/remove, where the number of "
            f"records is private: {why}, so no error bound holds for every data set"
        )


class PostProcessedNoise(PostProcessed):
    """A mechanism that post-processes the noisy answers of an additive mechanism."""

    inner: AdditiveMechanism

    def __init__(self, inner: AdditiveMechanism) -> None:
        if not isinstance(inner, AdditiveMechanism):
            raise ValueError(f"inner must be an additive mechanism, got {type(inner).__name__}")
        super().__init__(inner)
