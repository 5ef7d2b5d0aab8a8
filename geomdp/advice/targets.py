"""Targets of accuracy: how an error is measured, over which queries, and how large it may be."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import is_whole, positive, whole
from geomdp.mechanisms import AdditiveMechanism, Mechanism
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.noise import half_widths
from geomdp.noise.tails import largest_half_width
from geomdp.workloads import Workload
from geomdp.workloads.tables import ProductQueries, TableQueries, cells_of

#: Probability of an interval, and of a largest error.
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Target(abc.ABC):
    """A limit on an error of mean answers; for tables, of shares without the weights of tables.

    Parameters
    ----------
    limit : float
        Largest error allowed, above 0.
    over : sequence of str, int or None
        The columns of a table of the workload, the number of a query, or None for all queries.

    Examples
    --------
    >>> import geomdp as gd
    >>> print(gd.advice.HalfWidth(0.02, ["region"]))
    half-width of 95% intervals of region at most 0.02
    """

    limit: float
    over: Sequence[str] | int | None = None

    #: The error in words.
    name: ClassVar[str]

    def __post_init__(self) -> None:
        object.__setattr__(self, "limit", positive(self.limit, "limit"))
        if self.over is None:
            return
        if is_whole(self.over):
            object.__setattr__(self, "over", whole(int(self.over), "over", minimum=0))
        elif isinstance(self.over, Sequence) and not isinstance(self.over, str):
            object.__setattr__(self, "over", tuple(self.over))
        else:
            raise ValueError(
                "over must be the columns of a table, the number of a query, or None, "
                f"got {self.over!r}"
            )

    def __str__(self) -> str:
        return f"{self.name} of {self.place} at most {self.limit:g}"

    @property
    def place(self) -> str:
        """The queries in words."""
        if self.over is None:
            return "all queries"
        return f"query {self.over}" if isinstance(self.over, int) else " x ".join(self.over)

    def queries(self, workload: Workload) -> slice:
        """The numbers of the queries; ``ValueError`` if the workload does not have them."""
        m = workload.n_queries
        if self.over is None:
            return slice(0, m)
        if isinstance(self.over, int):
            first = whole(self.over, "over", minimum=0, maximum=m - 1)
            return slice(first, first + 1)
        if isinstance(workload, TableQueries | ProductQueries):
            names = cells_of(workload).universe.names
            tables = cells_of(workload).tables
            for table, place in zip(tables, workload.slices, strict=True):
                if sorted(names[i] for i in table) == sorted(self.over):
                    return place
        raise ValueError(f"over must be the columns of a table of the workload, got {self.over!r}")

    @abc.abstractmethod
    def error(self, mechanism: Mechanism) -> float:
        """The predicted error of `mechanism`; ``ValueError`` if it has no noise of a known law."""

    def _noisy(self, mechanism: Mechanism) -> tuple[AdditiveMechanism, slice, FloatArray]:
        """The noise before post-processing, the numbers of the queries, and their divisors."""
        noisy, place = additive_within(mechanism), self.queries(mechanism.workload)
        if noisy is None:
            raise ValueError(
                f"targets must be root mean squared errors of all queries, got '{self}': the "
                f"advised mechanism {type(mechanism).__name__} adds no noise of a known law"
            )
        return noisy, place, query_weights(mechanism.workload)[place]


def query_weights(workload: Workload) -> FloatArray:
    """The factors (m,) of the answers: the weights of tables, else 1."""
    if isinstance(workload, TableQueries | ProductQueries):
        return workload.weights
    return np.ones(workload.n_queries)


class RootMeanSquare(Target):
    """Limit on the root mean squared error per query.

    Over all queries of equal weight it is the `predicted_rmse` of the mechanism, a bound for every
    data set. For others it is the error of the noisy answers, `Release.noisy`, without weights: a
    projection lowers the total error, but can raise the error of a table. Parameters and errors are
    those of `Target`.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(4)
    >>> laplace = gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0))
    >>> round(gd.advice.RootMeanSquare(0.1).error(laplace), 4)  # sqrt(2) 2 / 100
    0.0283
    """

    name = "root mean squared error"

    def error(self, mechanism: Mechanism) -> float:
        weights = query_weights(mechanism.workload)
        if self.over is None and np.ptp(weights) == 0:
            return mechanism.predicted_rmse.value / float(weights[0])
        noisy, place, divisors = self._noisy(mechanism)
        squares = noisy.noise.variances()[place] / noisy.n**2 + noisy.answer_rounding[place] ** 2
        return math.sqrt(float((squares / divisors**2).mean()))


class HalfWidth(Target):
    """Limit on the half-width of the 95% interval of each query, around its noisy answer.

    Parameters and errors are those of `Target`.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(4)
    >>> laplace = gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0))
    >>> round(gd.advice.HalfWidth(0.1).error(laplace), 4)  # 2 ln(20) / 100
    0.0599
    """

    name = "half-width of 95% intervals"

    def error(self, mechanism: Mechanism) -> float:
        noisy, place, divisors = self._noisy(mechanism)
        return float((_reach(noisy)[place] / divisors).max())


@lru_cache(maxsize=4)
def _reach(noisy: AdditiveMechanism) -> FloatArray:
    """Half-widths (m,) of the intervals of all queries, which can take many public draws."""
    return half_widths(noisy.noise, CONFIDENCE) / noisy.n + noisy.answer_rounding


class LargestError(Target):
    """Limit on the largest error over the queries, which the noisy answers keep in 95% of releases.

    Parameters and errors are those of `Target`.

    Examples
    --------
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(4)
    >>> laplace = gd.mechanisms.Laplace(workload, n=100, privacy=gd.PureDP(1.0))
    >>> round(gd.advice.LargestError(0.1).error(laplace), 4)
    0.0873
    """

    name = "largest error with probability 0.95"

    def error(self, mechanism: Mechanism) -> float:
        noisy, place, divisors = self._noisy(mechanism)
        reach = largest_half_width(noisy.noise, CONFIDENCE, place, divisors) / noisy.n
        return reach + float((noisy.answer_rounding[place] / divisors).max())
