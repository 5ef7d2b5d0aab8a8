"""The rule that chooses the number of degrees by the predicted error."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp.mechanisms import UniformLaplace, WeightedLaplace
from geomdp.mechanisms.smooth_summary import LeastPredictedError, predicted_error
from geomdp.privacy import Adjacency, PureDP
from geomdp.workloads import SmoothQueries

N, SMOOTHNESS = 10_000, 2
#: The numbers of degrees that the rule tries.
CANDIDATES = [2, 3, 4, 5, 6, 8, 10, 13, 17, 22, 29, 38, 50, 66, 88, 117, 156, 208]


@pytest.mark.parametrize("noise", [UniformLaplace(), WeightedLaplace(2.0)], ids=repr)
def test_the_least_degree_near_the_best_predicted_error(noise):
    """The rule may stop early, if more degrees lower the error by less than 2.5%."""

    def deviations(workload: SmoothQueries) -> np.ndarray:
        calibrated = noise.calibrate(workload, PureDP(1.0), Adjacency.REPLACE_ONE)
        return np.asarray(calibrated.deviations / N)

    def error(degree: int) -> float:
        workload = SmoothQueries(1, degree)
        return sum(predicted_error(workload, deviations(workload), SMOOTHNESS))

    rule = LeastPredictedError()
    chosen = rule.choose(d=1, n=N, smoothness=SMOOTHNESS, noise_at=deviations)
    best = min(map(error, CANDIDATES))
    assert error(chosen) <= 1.05 / (1 - 0.025) * best
    assert all(error(degree) > 1.05 * best for degree in CANDIDATES if degree < chosen)


@pytest.mark.parametrize(("largest", "degree"), [(4, 2), (15, 3), (16, 4), (24, 4), (25, 5)])
def test_the_largest_number_of_moments_is_tried(largest, degree):
    """Without noise, more moments are always better, so the largest allowed degree is chosen."""

    def nothing(workload: SmoothQueries) -> np.ndarray:
        return np.zeros(workload.n_queries)

    rule = LeastPredictedError(largest)
    assert rule.choose(d=2, n=N, smoothness=SMOOTHNESS, noise_at=nothing) == degree


def test_four_moments_are_the_fewest():
    with pytest.raises(ValueError, match="largest must be a whole number, at least 4"):
        LeastPredictedError(3)
