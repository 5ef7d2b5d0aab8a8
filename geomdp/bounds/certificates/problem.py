"""The problem a lower bound is about: how private and how accurate a mechanism should be."""

from __future__ import annotations

from dataclasses import dataclass

from geomdp._validation import positive
from geomdp.bounds.metrics import MEAN_L2, Metric
from geomdp.bounds.rounding import rounded_down
from geomdp.privacy import Adjacency
from geomdp.privacy.definitions import checked_adjacency

#: Changes between neighbouring data sets that amount to replacing one record.
CHANGES = {Adjacency.REPLACE_ONE: 1, Adjacency.ADD_REMOVE: 2}


class SideConditionError(ValueError):
    """An argument proves nothing for this problem; the message names the condition that fails."""


@dataclass(frozen=True)
class Problem:
    """Privacy and accuracy asked of a mechanism for a given workload.

    Parameters
    ----------
    epsilon : float
        Privacy, pure DP, above 0.
    alpha : float
        Error, in units of one answer, above 0.
    metric : MeanL2, RMS or WorstCase
        How the error is measured.
    adjacency : Adjacency
        Neighbour relation. Under add/remove, n is the public normaliser and the mechanism is asked
        to be accurate on data sets of exactly n records.
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
        """How far apart the answers of a packing must be: c alpha."""
        return self.metric.separation * self.alpha

    def __str__(self) -> str:
        # A bound for epsilon and alpha also holds for smaller ones, not for larger ones.
        epsilon, alpha = rounded_down(self.epsilon), rounded_down(self.alpha)
        return f"{epsilon}-DP ({self.adjacency.value}), {self.metric.name} {alpha}"
