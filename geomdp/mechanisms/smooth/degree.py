"""Rules for the number of Chebyshev moments in a smooth summary."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import whole
from geomdp.workloads.smooth.moments import MAX_MOMENTS
from geomdp.workloads.smooth.smooth_queries import SmoothQueries

#: More moments are used only if the predicted error falls by more than this share.
GAIN = 0.05
#: A function of a workload of degree t in d variables. It returns the standard deviations
#: (t^d - 1,) of the noise on the means of the moments.
NoiseAt = Callable[[SmoothQueries], FloatArray]


class DegreeRule(abc.ABC):
    """A rule for the number t of degrees (0 to t - 1) in each variable, from public numbers only.

    Examples
    --------
    Both rules of the library choose fewer degrees for 100 records than for 10,000 records:

    >>> import geomdp as gd
    >>> for rule in (gd.mechanisms.TheoremDegree(), gd.mechanisms.LeastPredictedError()):
    ...     for n in (100, 10_000):
    ...         summary = gd.SmoothSummary(
    ...             1, n=n, smoothness=2, privacy=gd.PureDP(1.0), degree=rule
    ...         )
    ...         print(type(rule).__name__, n, summary.degree)
    TheoremDegree 100 3
    TheoremDegree 10000 10
    LeastPredictedError 100 8
    LeastPredictedError 10000 88
    """

    @abc.abstractmethod
    def choose(self, *, d: int, n: int, smoothness: int, noise_at: NoiseAt) -> int:
        """The number t >= 2 of degrees in each of `d` variables, for `n` records.

        `smoothness` is K, the number of bounded derivatives. `noise_at` gives the standard
        deviations of the noise for any choice of t.
        """


@dataclass(frozen=True)
class TheoremDegree(DegreeRule):
    """The whole number nearest to n^(1 / (2 d + K)), at least 2, as in Wang et al. 2013 (SM-A1).

    n is the number of records, d the number of variables, and K the number of bounded derivatives.

    Examples
    --------
    >>> import geomdp as gd
    >>> summary = gd.SmoothSummary(
    ...     1,
    ...     n=10_000,
    ...     smoothness=2,
    ...     privacy=gd.PureDP(1.0),
    ...     degree=gd.mechanisms.TheoremDegree(),
    ... )
    >>> summary.degree, round(10_000 ** (1 / (2 * 1 + 2)))
    (10, 10)
    """

    def choose(self, *, d: int, n: int, smoothness: int, noise_at: NoiseAt) -> int:
        del noise_at
        return int(max(2, round(n ** (1 / (2 * d + smoothness)))))


@dataclass(frozen=True)
class LeastPredictedError(DegreeRule):
    """The least t tried whose predicted error is at most 5% above the least predicted error.

    t is the number of degrees in each variable. The predicted error is the sum of the two errors
    that `predicted_error` returns. With `WeightedLaplace` noise, additional degrees change this sum
    little, and the rule avoids their cost.

    Parameters
    ----------
    largest : int
        Largest number t^d of moments to try, for d variables.

    Examples
    --------
    >>> import geomdp as gd
    >>> summary = gd.SmoothSummary(
    ...     1,
    ...     n=10_000,
    ...     smoothness=2,
    ...     privacy=gd.PureDP(1.0),
    ...     degree=gd.mechanisms.LeastPredictedError(),
    ... )
    >>> summary.degree
    88
    """

    largest: int = 1 << 12

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "largest", whole(self.largest, "largest", minimum=4, maximum=MAX_MOMENTS)
        )

    def choose(self, *, d: int, n: int, smoothness: int, noise_at: NoiseAt) -> int:
        """The smallest of 2, 3, 4, 5, 6, 8, 10, 13, ... with a small enough predicted error.

        From 6 on, each t is about a third larger than the one before. A t above 2 is tried only if
        t^d is at most `largest`.
        """
        del n
        tried: dict[int, float] = {}
        for degree in self._candidates(d):
            workload = SmoothQueries(d, degree)
            approximation, noise = predicted_error(workload, noise_at(workload), smoothness)
            tried[degree] = approximation + noise
            # Stop if larger t cannot help: the noise alone exceeds the best error, or the
            # approximation error is small already.
            if noise > min(tried.values()) or approximation < GAIN / 2 * noise:
                break
        enough = (1 + GAIN) * min(tried.values())
        return next(degree for degree, error in tried.items() if error <= enough)

    def _candidates(self, d: int) -> Iterator[int]:
        degree = 2
        while degree**d <= self.largest or degree == 2:
            yield degree
            degree = max(degree + 1, degree + degree // 3)


def predicted_error(
    workload: SmoothQueries, deviations: FloatArray, smoothness: int
) -> tuple[float, float]:
    """Predicted approximation error and noise error of the worst query of C^K_1, up to constants.

    C^K_1 holds the functions with all derivatives up to order K = `smoothness` bounded by 1. The
    errors are t^-K and (sum_m ||m||^(-2 K) s_m^2)^(1/2) for the `deviations` s_m (t^d - 1,) of the
    noise on means, where ||m|| is the largest degree of moment m. By SM-X1, the coefficients c of a
    query have sum_m ||m||^(2 K) c_m^2 of about 1.
    """
    decay = workload.orders() ** -float(smoothness)
    return workload.degree ** -float(smoothness), float(np.linalg.norm(decay * deviations))
