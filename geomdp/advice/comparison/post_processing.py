"""Build shrunk and projected noise, after a check of the time that they would take."""

from __future__ import annotations

import math

from geomdp.advice.comparison.projection_floor import projection_floor
from geomdp.advice.comparison.trials import Built
from geomdp.advice.costs import breadth_work, projection_work, support_draws
from geomdp.advice.draw_times import draw_seconds
from geomdp.advice.setting import (
    OPERATIONS_A_SECOND,
    InapplicableError,
    Setting,
    UntriedError,
)
from geomdp.advice.steps import SHRUNK
from geomdp.mechanisms import AdditiveMechanism, Mechanism, Projected
from geomdp.mechanisms.post_processed.projected import reachable_body, tried_projector
from geomdp.mechanisms.post_processed.support_bound import MAX_DRAWS, MIN_DRAWS
from geomdp.noise import GaussianNoise
from geomdp.workloads import Workload

#: Largest universe for which the noise of every additive mechanism may be projected. For a larger
#: universe, support functions without a closed form are slow. If the workload needs one of these,
#: only the best noise is projected.
MAX_PROJECTED_UNIVERSE = 1 << 14
#: For most noise, the bound on the error after projection is estimated from public draws of the
#: noise. These draws may take at most this many seconds.
MAX_DRAWING_SECONDS = 2.5
#: If a bound takes at most this many operations (about a second), it is computed even for a
#: projection that provably cannot be the best. The table can then show the bound.
SMALL_WORK = 1 << 30


def is_slow_to_bound(workload: Workload) -> bool:
    """Whether bounds on projections take so long that only the best noise is projected."""
    size = workload.universe.size or 0
    return size > MAX_PROJECTED_UNIVERSE and breadth_work(workload) > 0


def shrunk(noisy: Built, setting: Setting) -> Mechanism:
    assert isinstance(noisy.mechanism, AdditiveMechanism)
    _check_projection(noisy, setting)
    return SHRUNK.kind(noisy.mechanism)


def projected(noisy: Built, setting: Setting, *, wanted: bool) -> Mechanism:
    """Build projected noise, or raise `UntriedError` or `InapplicableError`.

    These are raised if `wanted` is False, for the cost or the bound, under add/remove, and if all
    data sets have the same answers.
    """
    inner = noisy.mechanism
    assert isinstance(inner, AdditiveMechanism)
    if not wanted:
        raise UntriedError(
            f"the bound on its error would take long: records have {setting.workload.universe.size}"
            f" possible values, and with more than {MAX_PROJECTED_UNIVERSE} only the noise with "
            "the least predicted error is projected"
        )
    _check_projection(noisy, setting)
    seconds = draw_seconds(inner.noise)
    if seconds * MAX_DRAWS > MAX_DRAWING_SECONDS:
        raise UntriedError(
            f"the bound on its error would take long: it averages over {MAX_DRAWS} draws of the "
            f"noise, each of which would take about {seconds:.2g} s"
        )
    per_draw = breadth_work(setting.workload) + seconds * OPERATIONS_A_SECOND
    draws = support_draws(inner.noise)
    slow = draws * per_draw > SMALL_WORK
    if slow and noisy.candidate.log_concave and math.isfinite(setting.least):
        setting.check_floor("bound", projection_floor(inner))
    affordable = draws if per_draw == 0 else int(setting.budget.work / per_draw)
    # The bound for Gaussian noise is a Gaussian width, a mean over a fixed number of directions.
    fixed = isinstance(inner.noise, GaussianNoise)
    averaged = draws if fixed else max(MIN_DRAWS, min(draws, affordable))
    setting.check_cost("bound", work=averaged * per_draw)
    return Projected(inner, draws=max(MIN_DRAWS, min(MAX_DRAWS, affordable)))


def _check_projection(noisy: Built, setting: Setting) -> None:
    """Raise `UntriedError` if projections would take too long, or `InapplicableError` if useless.

    ``WorkloadSizeError`` if the universe is too large for a search for extreme answers.
    """
    workload, diameter = setting.workload, setting.workload.l2_diameter()
    if diameter == 0:
        raise InapplicableError(f"all data sets of {setting.n} records have the same answers")
    setting.check_public_count()
    tried_projector(reachable_body(workload), setting.adjacency)
    spread = noisy.prediction.value * math.sqrt(workload.n_queries) / diameter
    setting.check_cost("projection in each release", work=projection_work(workload, spread))
