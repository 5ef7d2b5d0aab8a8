"""Advise a fit in place of a projection if it errs less in simulations on public data sets.

Proved bounds cannot decide: the bound of a fit is mostly twice that of a projection, but its real
error is mostly smaller.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp.advice.comparison.ranking import WORTHWHILE
from geomdp.advice.comparison.trials import Built, Trials
from geomdp.advice.costs import PRODUCT_SPEED, projection_work
from geomdp.advice.draw_times import draw_seconds
from geomdp.advice.setting import OPERATIONS_A_SECOND, InapplicableError, Setting
from geomdp.advice.steps import FITTED, PROJECTED
from geomdp.mechanisms import AdditiveMechanism, FixedDataset, Projected, predict_on_prior
from geomdp.mechanisms.post_processed.fitted import Fitted
from geomdp.workloads import Workload

#: A fit is simulated only if the root mean squared length of the noise is at least this share of
#: the diameter of the answers. For less noise, measurements on tables, ranges and random signs
#: showed a gain of less than 1% on uniform data.
FEW = 0.05
#: Least and largest number of simulated releases of a mechanism on each data set. Each release of
#: the fit has the same noise as a release of the first candidate, so chance affects the ratio of
#: their errors little. More than the least number is simulated if all releases take at most `QUICK`
#: operations, a quarter of a second.
LEAST_RELEASES, MOST_RELEASES, QUICK = 8, 16, OPERATIONS_A_SECOND / 4
#: Number of elements in the data set of several elements.
ELEMENTS = 10
#: For each of `public_datasets`, the largest error with which the fit is advised, divided by the
#: error of the first candidate. On data of few elements, chance moves the ratio of the errors in
#: `LEAST_RELEASES` releases by about 5%, because few directions make up most of the error. For
#: prefix sums on such data, the error of the fit can really be larger, by 10% to 20%.
LIMITS = (1 - WORTHWHILE, 1.05, 1.05)


def with_fit(ranked: list[Built], trials: Trials) -> list[Built]:
    """The ranking, with the fit of the best noise in front if it errs less on public data.

    It must be better by `WORTHWHILE` on uniform data, and not worse than `LIMITS` on the others. If
    it is not simulated, the reason is added to `trials`.
    """
    leader, setting = ranked[0], trials.setting
    if leader.step is None or FITTED not in leader.candidate.steps:
        return ranked
    trials.attempt_after(leader, FITTED, partial(_fitted, leader, ranked, setting))
    fit = next((trial for trial in trials.built if trial.step is FITTED), None)
    if fit is None:
        return ranked
    assert leader.noise is not None  # `_fitted` needs it
    releases = _releases(leader.noise)
    uniform, *few = public_datasets(setting.workload, setting.n)
    fit = replace(fit, simulated=_error(fit, uniform, releases))
    leader = replace(leader, simulated=_error(leader, uniform, releases))
    wins = fit.simulated <= leader.simulated * LIMITS[0] and all(
        _error(fit, prior, releases) <= _error(leader, prior, releases) * limit
        for prior, limit in zip(few, LIMITS[1:], strict=True)
    )
    first, second = (fit, leader) if wins else (leader, fit)
    rest = sorted([second, *ranked[1:]], key=lambda trial: trial.prediction.value)
    return [first, *rest]


def public_datasets(workload: Workload, n: int) -> list[FixedDataset]:
    """Three public data sets of n records: uniform data, ten random elements, and one element.

    The one is that of the ten with answers farthest from their mean.
    """
    rng = np.random.default_rng(PUBLIC_SEED)
    uniform = workload.universe.sample(n, rng)
    elements = workload.universe.sample(ELEMENTS, rng)
    answers = workload.evaluate(elements)
    farthest = int(np.argmax(((answers - answers.mean(axis=0)) ** 2).sum(axis=1)))
    chosen = (elements[np.arange(n) % ELEMENTS], elements[np.full(n, farthest)])
    return [FixedDataset(uniform), *(FixedDataset(records) for records in chosen)]


def _error(trial: Built, prior: FixedDataset, releases: int) -> float:
    """Simulated root mean squared error per query. One seed gives all mechanisms the same noise."""
    return predict_on_prior(trial.mechanism, prior, releases, rng=PUBLIC_SEED).value


def _spread(noise: AdditiveMechanism) -> float:
    """Root mean squared length of the noise, divided by the diameter of the answers."""
    workload = noise.workload
    return noise.predicted_rmse.value * math.sqrt(workload.n_queries) / workload.l2_diameter()


def _work(noise: AdditiveMechanism) -> float:
    """Operations of two projections for the fit and one for the first candidate, per data set."""
    draws = 2 * draw_seconds(noise.noise) * OPERATIONS_A_SECOND
    return len(LIMITS) * (3 * projection_work(noise.workload, _spread(noise)) + draws)


def _releases(noise: AdditiveMechanism) -> int:
    """Number of simulated releases on each data set; the least number if `_work` is 0."""
    work = _work(noise)
    affordable = int(QUICK / work) if work > 0 else 0
    return max(LEAST_RELEASES, min(MOST_RELEASES, affordable))


def _fitted(leader: Built, ranked: list[Built], setting: Setting) -> Fitted:
    """The fit after the noise of `leader`, set up; `InapplicableError` if it is not possible."""
    noise = leader.noise
    assert noise is not None
    same = (trial for trial in ranked if trial.candidate is leader.candidate)
    nearest = next((trial.mechanism for trial in same if trial.step is PROJECTED), None)
    if not isinstance(nearest, Projected):
        raise InapplicableError(
            "its bound is twice that of the projection, and the projection is left out"
        )
    if not leader.exact:
        raise InapplicableError(
            "its bound is twice that of the projection, and a simulation compares only fits of "
            "noise with an exact sampler"
        )
    spread = _spread(noise)
    if spread < FEW:
        raise InapplicableError(
            f"its bound is twice that of the projection, and with {setting.n} records a fit gains "
            f"little: the noise is {spread:.2g} times the diameter of the answers, less than {FEW}"
        )
    _check_simulation(noise, setting)
    fit = Fitted.after(nearest)
    fit.set_up()
    return fit


def _check_simulation(noise: AdditiveMechanism, setting: Setting) -> None:
    workload, m = setting.workload, setting.workload.n_queries
    record = workload.universe.sample(1, np.random.default_rng(PUBLIC_SEED))
    # The covariance of the noise, its product with a basis of the answers, and a map of the answers
    # are matrices of at most m^2 entries. Finding the eigenvectors of an r x r matrix takes about
    # 10 r^3 operations.
    r = workload.affine_hull().dimension
    axes = (2.0 * m * m * r + 10.0 * r**3) / PRODUCT_SPEED
    setting.check_cost("norm", memory=24.0 * m * m, work=axes)
    releases = LEAST_RELEASES * _work(noise)
    counting = 2.0 * len(LIMITS) * setting.n * m / PRODUCT_SPEED
    setting.check_cost(
        "simulation", memory=4.0 * setting.n * record.nbytes, work=releases + counting
    )
