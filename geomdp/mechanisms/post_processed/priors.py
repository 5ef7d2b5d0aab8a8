"""Predicted error on a stated public prior over data sets, by simulation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import whole
from geomdp.mechanisms.base import Mechanism
from geomdp.mechanisms.results import Prediction, PredictionKind
from geomdp.workloads import Records, Universe, Workload


class Prior(Protocol):
    """A public distribution over data sets; it must not come from the records to be protected."""

    def sums(self, workload: Workload, n: int, rng: np.random.Generator) -> FloatArray:
        """Sum of the answer vectors (m,) of one data set of `n` records."""


@dataclass(frozen=True)
class UniformPrior:
    """n independent uniform records of a universe.

    Parameters
    ----------
    universe : Universe
        The universe of the workload.
    """

    universe: Universe

    def sums(self, workload: Workload, n: int, rng: np.random.Generator) -> FloatArray:
        """Sum of the answer vectors (m,) of `n` uniform records."""
        if workload.universe != self.universe:
            raise ValueError(
                f"prior must be on the universe {workload.universe!r}, got {self.universe!r}"
            )
        return workload.totals(self.universe.sample(n, rng)).sums


class FixedDataset:
    """One public data set, the same in every trial.

    Parameters
    ----------
    records : array or DataFrame
        Public records in the encoding of the workload's universe.
    """

    def __init__(self, records: Records) -> None:
        self._records = records
        self._known: tuple[Workload, int, FloatArray] | None = None

    def sums(self, workload: Workload, n: int, rng: np.random.Generator) -> FloatArray:
        """Sum of the answer vectors (m,) of the data set, which must have `n` records."""
        del rng
        if self._known is None or self._known[0] is not workload:
            totals = workload.totals(self._records)
            self._known = (workload, totals.count, totals.sums)
        _, count, sums = self._known
        if count != n:
            raise ValueError(f"records of the prior must number n = {n}, got {count}")
        return sums


def predict_on_prior(
    mechanism: Mechanism, prior: Prior, trials: int, rng: RandomState = None
) -> Prediction:
    """Root mean squared error per query of `mechanism` on data sets drawn from a public prior.

    (E ||M(X) - Q(X)||_2^2 / m)^(1/2) with X from `prior` and the noise of the mechanism, estimated
    by the mean over independent trials.

    The prior must come from public knowledge only: one made from the records to be protected would
    turn the prediction into a release without privacy.

    Parameters
    ----------
    mechanism : Mechanism
        Built for the n records each data set will have.
    prior : Prior
        `UniformPrior` or `FixedDataset`; ``ValueError`` for another universe or another n.
    trials : int
        Number of data sets and releases, at least 2.
    rng : Generator, int or None
        Source of both.
    """
    trials = whole(trials, "trials", minimum=2)
    generator = np.random.default_rng(rng)
    squares = np.empty(trials)
    for trial in range(trials):
        sums = prior.sums(mechanism.workload, mechanism.n, generator)
        error = mechanism.privatise(sums, generator) - sums / mechanism.n
        squares[trial] = error @ error / mechanism.workload.n_queries
    value = math.sqrt(squares.mean())
    # d sqrt(x) = dx / (2 sqrt(x)).
    stderr = float(squares.std(ddof=1)) / math.sqrt(trials) / (2 * value) if value > 0 else 0.0
    source = f"simulated, {trials} trials on {type(prior).__name__}"
    return Prediction(value, PredictionKind.PRIOR, source, stderr)
