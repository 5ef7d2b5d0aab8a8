"""A workload made of several weighted workloads on the same universe."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp._validation import batch, listed, positive
from geomdp.workloads.base import CHUNK_ROWS, Totals, Workload
from geomdp.workloads.closed_forms.enumeration import explicit_answers
from geomdp.workloads.explicit import Explicit
from geomdp.workloads.universe.universes import Records, Universe


class Union(Workload):
    """The queries of several workloads, one after the other: x -> (w_1 Q_1(x), w_2 Q_2(x), ...).

    Mechanisms keep the error of the weighted answers small, so queries of larger weight become more
    accurate. Divide the answers by `weights`, with one entry per query, to get those of the
    workloads. Extreme answers, affine hull, diameters and radii come from the answers of all
    elements; above 2^26 of these, they raise `WorkloadSizeError`. For tables of many columns,
    `ChosenTables` has closed forms.

    Parameters
    ----------
    workloads : sequence of Workload
        At least one workload; all must have the same finite universe.
    weights : sequence of float, optional
        One positive weight per workload; by default 1.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> parts = [gd.workloads.Marginals(2, 1), gd.workloads.Marginals(2, 2)]
    >>> workload = gd.workloads.Union(parts, weights=[1, 3])
    >>> workload
    Union(Marginals(d=2, k=1), Marginals(d=2, k=2))
    >>> workload.answers(np.array([[1, 1], [1, 0]]))
    array([1. , 0.5, 1.5])
    """

    def __init__(
        self, workloads: Sequence[Workload], weights: Sequence[float] | None = None
    ) -> None:
        self.workloads = listed(workloads, "workloads")
        if not self.workloads:
            raise ValueError("workloads must hold at least 1 workload, got 0")
        for workload in self.workloads:
            if not isinstance(workload, Workload):
                raise ValueError(f"workloads must be Workloads, got {type(workload).__name__}")
            if workload.universe != self.universe or workload.universe.size is None:
                raise ValueError(
                    "workloads must be on one finite universe, got "
                    f"{self.universe!r} and {workload.universe!r}"
                )
        given = listed([1.0] * len(self.workloads) if weights is None else weights, "weights")
        if len(given) != len(self.workloads):
            raise ValueError(
                f"weights must have {len(self.workloads)} entries, one per workload, "
                f"got {len(given)}"
            )
        self._part_weights = [positive(weight, "weights") for weight in given]

    def _summary(self) -> str:
        return ", ".join(map(repr, self.workloads))

    @property
    def universe(self) -> Universe:
        return self.workloads[0].universe

    @property
    def n_queries(self) -> int:
        return sum(workload.n_queries for workload in self.workloads)

    @cached_property
    def weights(self) -> FloatArray:
        """The weight of each query (m,): the weight of its workload."""
        return np.repeat(self._part_weights, [workload.n_queries for workload in self.workloads])

    def evaluate(self, records: Records) -> FloatArray:
        parts = [workload.evaluate(records) for workload in self.workloads]
        return np.hstack(parts) * self.weights

    def totals(self, records: Records | Iterable[Records]) -> Totals:
        """The records are read once for all workloads."""
        count, sums = 0, np.zeros(self.n_queries)
        for chunk in self.universe.chunks(records, CHUNK_ROWS):
            count += len(chunk)
            sums += np.concatenate([workload.totals(chunk).sums for workload in self.workloads])
        return Totals(count, sums * self.weights)

    @cached_property
    def _explicit(self) -> Explicit:
        return Explicit(explicit_answers(self).T)

    def extreme_answers(self, directions: FloatArray) -> FloatArray:
        """One product with the matrix of all answers."""
        return self._explicit.extreme_answers(batch(directions, self.n_queries, "directions"))

    def affine_hull(self) -> AffineHull:
        return self._explicit.affine_hull()

    def l1_diameter(self) -> float:
        """An upper bound if N^2 m > 2^32 for N elements and m queries, else exact."""
        return self._explicit.l1_diameter()

    def l2_diameter(self) -> float:
        """Exact for at most 2^14 elements, else an upper bound."""
        return self._explicit.l2_diameter()

    def l1_radius(self) -> float:
        return self._explicit.l1_radius()

    def l2_radius(self) -> float:
        return self._explicit.l2_radius()

    def labels(self) -> list[str]:
        return list(itertools.chain(*(workload.labels() for workload in self.workloads)))
