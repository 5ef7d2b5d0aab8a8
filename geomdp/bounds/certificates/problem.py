"""The problem of a lower bound: how private and how accurate a mechanism must be."""

from __future__ import annotations

from dataclasses import dataclass

from geomdp._validation import positive
from geomdp.bounds.metrics import MEAN_L2, Metric
from geomdp.bounds.rounding import rounded_down
from geomdp.privacy import Adjacency
from geomdp.privacy.definitions import checked_adjacency

#: Replacing one record takes this many changes. Each change leads to a neighbouring data set.
CHANGES = {Adjacency.REPLACE_ONE: 1, Adjacency.ADD_REMOVE: 2}


class SideConditionError(ValueError):
    """A proof of a lower bound does not apply to a problem; the message names the failed condition.

    Examples
    --------
    >>> import geomdp as gd
    >>> try:
    ...     gd.bounds.marginal_bound(16, 1, epsilon=1.0, alpha=0.5)
    ... except gd.bounds.SideConditionError as reason:
    ...     print(reason)
    separation must be at least 4 alpha = 2, got 0.25
    """


@dataclass(frozen=True)
class Problem:
    """The privacy and accuracy that a mechanism for a workload must have.

    Parameters
    ----------
    epsilon : float
        The mechanism must be epsilon-DP; above 0.
    alpha : float
        Largest error allowed, in units of one answer; above 0.
    metric : MeanL2, RMS or WorstCase
        How the error is measured.
    adjacency : Adjacency
        Neighbour relation. Under add/remove, answers are divided by a public number n. The
        mechanism need be accurate only on data sets of exactly n records.

    Raises
    ------
    ValueError
        If a parameter is out of range.

    Examples
    --------
    >>> import geomdp as gd
    >>> problem = gd.bounds.Problem(1.0, 0.1, gd.bounds.RMS())
    >>> print(problem)
    1-DP (replace-one), root mean squared error per query 0.1
    >>> round(problem.required_separation, 4)
    0.2828
    """

    epsilon: float
    alpha: float
    metric: Metric = MEAN_L2
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "alpha", positive(self.alpha, "alpha"))
        if not isinstance(self.metric, Metric):
            raise ValueError(f"metric must be MeanL2, RMS or WorstCase, got {self.metric!r}")
        checked_adjacency(self.adjacency)

    @property
    def required_separation(self) -> float:
        """Least distance c alpha between the answers of two data sets of a packing.

        The factor c depends on the metric.
        """
        return self.metric.separation * self.alpha

    def __str__(self) -> str:
        # Round down: a lower bound for epsilon and alpha also holds for smaller epsilon and alpha.
        # It need not hold for larger epsilon or alpha.
        epsilon, alpha = rounded_down(self.epsilon), rounded_down(self.alpha)
        return f"{epsilon}-DP ({self.adjacency.value}), {self.metric.name} {alpha}"
