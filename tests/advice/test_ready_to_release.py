"""The candidate that the advisor makes ready for a release."""

from __future__ import annotations

from geomdp.advice.candidates import CANDIDATES
from geomdp.advice.comparison import Built, Trials, ready_to_release
from geomdp.advice.setting import UNLIMITED, Setting
from geomdp.mechanisms import Laplace
from geomdp.privacy import Adjacency, Exact, Heuristic, PureDP
from geomdp.workloads import Histogram


def test_the_advised_sampler_is_that_of_the_mechanism() -> None:
    """A cached sampler status can be wrong, so the set-up mechanism's own status replaces it."""

    class Doubtful(Laplace):
        sampler = Heuristic("a chain")  # type: ignore[assignment]

    workload, privacy = Histogram(3), PureDP(1.0)
    setting = Setting(workload, 100, privacy, Adjacency.REPLACE_ONE, False, UNLIMITED)
    mechanism = Doubtful(workload, n=100, privacy=privacy)
    trials = Trials(setting)
    trials.built.append(
        Built(CANDIDATES[0], None, mechanism, mechanism.predicted_rmse, Exact(), 0.0)
    )
    assert ready_to_release(trials)[0].sampler == mechanism.guarantee.sampler == mechanism.sampler
