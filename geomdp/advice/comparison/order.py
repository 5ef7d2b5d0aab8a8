"""Try noise alone, then post-processed noise, then mechanisms with a geometry that depends on n."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

from geomdp.advice.candidates import CANDIDATES
from geomdp.advice.comparison.post_processing import is_slow_to_bound, projected, shrunk
from geomdp.advice.comparison.pure_noise import pure_noise_floor
from geomdp.advice.comparison.ranking import rank
from geomdp.advice.comparison.trials import Trials
from geomdp.advice.setting import Setting
from geomdp.advice.steps import PROJECTED, SHRUNK


def try_for_every_n(setting: Setting) -> Trials:
    """Try all noise whose geometry does not depend on n: first alone, then shrunk or projected.

    Only the best noise is shrunk, because the prediction of shrunk noise grows with that of the
    noise. Purely private noise that is provably not the best for `setting.n` records, if another
    guarantee is asked, is not the best for more records either.
    """
    return _try_noise(setting, use_least=False)


def try_all(setting: Setting) -> Trials:
    """Try all candidates. Some that provably cannot be the best are left out without a set-up."""
    trials = _try_noise(setting, use_least=True)
    for candidate in CANDIDATES:
        if not candidate.depends_on_n:
            continue
        if candidate.is_stronger(setting):
            trials.attempt_stronger(candidate)
        else:
            trials.attempt(candidate)
    return trials


def _try_noise(setting: Setting, *, use_least: bool) -> Trials:
    """Try noise alone, then the best noise shrunk, then noise projected (see `try_for_every_n`).

    `use_least` leaves out slow projections that provably cannot be the best at this n.
    """
    only_best, trials = is_slow_to_bound(setting.workload), Trials(setting)
    any_n = [candidate for candidate in CANDIDATES if not candidate.depends_on_n]
    for candidate in any_n:
        if not candidate.is_stronger(setting):
            trials.attempt(candidate)
    floor = pure_noise_floor(trials)
    for candidate in any_n:
        if candidate.is_stronger(setting):
            trials.attempt_stronger(candidate, floor)
    noises = [trial for trial in rank(trials.built) if PROJECTED in trial.candidate.steps]
    for noisy in noises[:1]:
        trials.attempt_after(noisy, SHRUNK, partial(shrunk, noisy, setting))
    for noisy in noises:
        best = noisy is noises[0]
        # Always project the best noise. A projection can lower the error even if the prediction, an
        # upper bound on the error, stays the same.
        least = trials.least if use_least and not best else math.inf
        known = replace(setting, least=least)
        build = partial(projected, noisy, known, wanted=best or not only_best)
        trials.attempt_after(noisy, PROJECTED, build)
    return trials
