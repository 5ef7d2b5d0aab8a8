"""Predicted error on a public data set, by simulation."""

from __future__ import annotations

import math

import numpy as np

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import whole
from geomdp.mechanisms.base import Mechanism
from geomdp.mechanisms.results import Prediction, PredictionKind
from geomdp.workloads import Records, Workload


class FixedDataset:
    """One public data set, the same in every trial. It must not be the data to be protected.

    Parameters
    ----------
    records : array or DataFrame
        Public records in the encoding of the workload's universe.
    """

    def __init__(self, records: Records) -> None:
        self._records = records
        self._known: tuple[Workload, int, FloatArray] | None = None

    def sums(self, workload: Workload, n: int) -> FloatArray:
        """Sum of the answer vectors (m,); ``ValueError`` unless the data set has `n` records."""
        if self._known is None or self._known[0] is not workload:
            totals = workload.totals(self._records)
            self._known = (workload, totals.count, totals.sums)
        _, count, sums = self._known
        if count != n:
            raise ValueError(f"records of the prior must number n = {n}, got {count}")
        return sums


def predict_on_prior(
    mechanism: Mechanism, prior: FixedDataset, trials: int, rng: RandomState = None
) -> Prediction:
    """Root mean squared error per query of `mechanism` on a public data set.

    It is (E ||M(X) - Q(X)||_2^2 / m)^(1/2) with the expectation over the noise of the mechanism,
    where X is the data set of `prior`. The expectation is estimated by the mean over independent
    releases. Records to be protected must not be the prior: the prediction would be a release
    without privacy.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism for the number of records of the data set.
    prior : FixedDataset
        The data set; ``ValueError`` if it has another number of records than the mechanism.
    trials : int
        Number of releases, at least 2.
    rng : Generator, int or None
        Source of the noise.
    """
    trials = whole(trials, "trials", minimum=2)
    generator = np.random.default_rng(rng)
    squares = np.empty(trials)
    sums = prior.sums(mechanism.workload, mechanism.n)
    for trial in range(trials):
        error = mechanism.privatise(sums, generator) - sums / mechanism.n
        squares[trial] = error @ error / mechanism.workload.n_queries
    value = math.sqrt(squares.mean())
    # By the derivative of the square root: d sqrt(x) = dx / (2 sqrt(x)).
    stderr = float(squares.std(ddof=1)) / math.sqrt(trials) / (2 * value) if value > 0 else 0.0
    source = f"simulated, {trials} trials on {type(prior).__name__}"
    return Prediction(value, PredictionKind.PRIOR, source, stderr)
