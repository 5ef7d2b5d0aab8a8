"""Predicted error on a public data set, by simulation."""

from __future__ import annotations

import math

import numpy as np

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import require_type, whole
from geomdp.mechanisms.base import Mechanism
from geomdp.mechanisms.results import Prediction, PredictionKind
from geomdp.workloads import Records, Workload


class FixedDataset:
    """One public data set for all simulated releases. Never use data that are to be protected.

    Parameters
    ----------
    records : array or DataFrame
        Public records in the encoding of the workload's universe.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(3)
    >>> prior = gd.mechanisms.FixedDataset(np.array([0] * 50 + [1] * 30 + [2] * 20))
    >>> prior.sums(workload, 100)
    array([50., 30., 20.])
    """

    def __init__(self, records: Records) -> None:
        self._records = records
        self._known: tuple[Workload, int, FloatArray] | None = None

    def sums(self, workload: Workload, n: int) -> FloatArray:
        """Sum of the answer vectors (m,); ``ValueError`` if the number of records is not `n`."""
        if self._known is None or self._known[0] is not workload:
            totals = workload.totals(self._records)
            self._known = (workload, totals.count, totals.sums)
        _, count, sums = self._known
        if count != n:
            raise ValueError(f"records of the prior must number n = {n}, got {count}")
        return sums

    def inputs(self, mechanism: Mechanism) -> FloatArray:
        """The sums to which `mechanism` adds noise.

        A mechanism with its own `totals`, such as `Coarse`, reads the records again. For all others
        `sums` keeps the sums.
        """
        if type(mechanism).totals is Mechanism.totals:
            return self.sums(mechanism.workload, mechanism.n)
        return mechanism.totals(self._records).sums


def predict_on_prior(
    mechanism: Mechanism, prior: FixedDataset, trials: int, rng: RandomState = None
) -> Prediction:
    """Root mean squared error per query of `mechanism` on a public data set.

    The prediction is (E ||M(X) - Q(X)||_2^2 / m)^(1/2), with X the data set of `prior`, Q(X) its m
    true answers and M(X) the answers of the mechanism. The expectation over the noise is estimated
    by the mean over independent releases. Never use records that are to be protected: the
    prediction would be a release without privacy.

    Parameters
    ----------
    mechanism : Mechanism
        A mechanism whose n is the number of records of the data set; ``ValueError`` for another n.
    prior : FixedDataset
        The data set.
    trials : int
        Number of releases, at least 2.
    rng : Generator, int or None
        Source of the noise.

    Examples
    --------
    The prediction of a projection is an upper bound for all data. The error on uniform data is
    smaller:

    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(8)
    >>> laplace = gd.mechanisms.Laplace(workload, n=80, privacy=gd.PureDP(1.0))
    >>> mechanism = gd.mechanisms.Projected(laplace)
    >>> print(mechanism.predicted_rmse)
    rmse at most 0.1237
    >>> prior = gd.mechanisms.FixedDataset(np.repeat(np.arange(8), 10))
    >>> round(gd.mechanisms.predict_on_prior(mechanism, prior, trials=50, rng=0).value, 3)
    0.093
    """
    require_type(mechanism, Mechanism, "mechanism")
    require_type(prior, FixedDataset, "prior")
    trials = whole(trials, "trials", minimum=2)
    generator = np.random.default_rng(rng)
    squares = np.empty(trials)
    truth = prior.sums(mechanism.workload, mechanism.n) / mechanism.n
    inputs = prior.inputs(mechanism)
    for trial in range(trials):
        error = mechanism.privatise(inputs, generator) - truth
        squares[trial] = error @ error / mechanism.workload.n_queries
    value = math.sqrt(squares.mean())
    # By the derivative of the square root: d sqrt(x) = dx / (2 sqrt(x)).
    stderr = float(squares.std(ddof=1)) / math.sqrt(trials) / (2 * value) if value > 0 else 0.0
    source = f"simulated, {trials} trials on {type(prior).__name__}"
    return Prediction(value, PredictionKind.PRIOR, source, stderr)
