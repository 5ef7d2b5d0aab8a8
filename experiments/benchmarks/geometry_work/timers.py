"""The function that times each kind of work. An import of this module imports the peer packages."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from experiments.benchmarks.geometry_work.instances import Config, Work
from experiments.benchmarks.geometry_work.solves import (
    time_many_targets,
    time_membership,
    time_projection,
    time_width,
)
from experiments.benchmarks.geometry_work.walks import (
    time_chords,
    time_draws,
    time_effective_samples,
    time_spectral_draws,
)
from experiments.engine.cells import Row

TIMERS: dict[Work, Callable[[Config, np.random.Generator], list[Row]]] = {
    Work.CHORD: time_chords,
    Work.DRAW: time_draws,
    Work.BOX: time_effective_samples,
    Work.POLYTOPE: time_effective_samples,
    Work.STRETCHED: time_effective_samples,
    Work.SPECTRAPLEX: time_spectral_draws,
    Work.SPECTRAPLEX_DIFFERENCE: time_spectral_draws,
    Work.PROJECTION: time_projection,
    Work.FULL_SUPPORT: time_projection,
    Work.MANY: time_many_targets,
    Work.LARGE: time_projection,
    Work.MEMBERSHIP: time_membership,
    Work.WIDTH: time_width,
}
