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

#: Relative decrease of the predicted error that is too small to release more moments for.
GAIN = 0.05
#: Maps a workload to the standard deviations (t^d - 1,) of the noise on means of its moments.
NoiseAt = Callable[[SmoothQueries], FloatArray]


class DegreeRule(abc.ABC):
    """A way to choose t from public numbers alone."""

    @abc.abstractmethod
    def choose(self, *, d: int, n: int, smoothness: int, noise_at: NoiseAt) -> int:
        """The number t >= 2 of degrees in each of `d` variables, for `n` records.

        `smoothness` is K, the number of bounded derivatives; `noise_at` gives the standard
        deviations of the noise that a choice of t needs.
        """


@dataclass(frozen=True)
class TheoremDegree(DegreeRule):
    """The whole number nearest to n^(1 / (2 d + K)), at least 2, as in the paper (SM-A1)."""

    def choose(self, *, d: int, n: int, smoothness: int, noise_at: NoiseAt) -> int:
        """The whole number nearest to n^(1 / (2 d + K)), at least 2."""
        del noise_at
        return int(max(2, round(n ** (1 / (2 * d + smoothness)))))


@dataclass(frozen=True)
class LeastPredictedError(DegreeRule):
    """The least t whose `predicted_error` over C^K_1 is within 5% of the smallest.

    With weighted noise more degrees change the error little, so the cheapest good choice is taken.

    Parameters
    ----------
    largest : int
        Largest number t^d of moments tried.
    """

    largest: int = 1 << 12

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "largest", whole(self.largest, "largest", minimum=4, maximum=MAX_MOMENTS)
        )

    def choose(self, *, d: int, n: int, smoothness: int, noise_at: NoiseAt) -> int:
        """The smallest t that is good enough, of 2, 3, ..., 8 and numbers that grow by a third."""
        del n
        tried: dict[int, float] = {}
        for degree in self._candidates(d):
            workload = SmoothQueries(d, degree)
            approximation, noise = predicted_error(workload, noise_at(workload), smoothness)
            tried[degree] = approximation + noise
            # For larger t noise alone exceeds the best error, or approximation has little to gain.
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
    """Predicted errors of the worst query of C^K_1, by approximation and by noise.

    The first is t^-K, the rate of the best polynomial approximation without its constant. The
    second is (sum_m ||m||^(-2 K) s_m^2)^(1/2): the coefficients c of such a query have
    sum_m ||m||^(2 K) c_m^2 of the order of 1, so that |<c, noise>| is at most of the order of
    (sum_m ||m||^(-2 K) noise_m^2)^(1/2) (SM-X1). Both are predictions up to constants, no bounds.
    `deviations` are the s_m of the noise on means, (t^d - 1,).
    """
    decay = workload.orders() ** -float(smoothness)
    return workload.degree ** -float(smoothness), float(np.linalg.norm(decay * deviations))
