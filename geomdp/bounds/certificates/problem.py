"""The problem of a lower bound: how private and how accurate a mechanism must be."""

from __future__ import annotations

from dataclasses import dataclass

from geomdp._validation import positive
from geomdp.bounds.metrics import MEAN_L2, Metric
from geomdp.bounds.rounding import rounded_down
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Privacy, PureDP
from geomdp.privacy.definitions import checked_adjacency
from geomdp.privacy.parameter_range import check_range

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


def stated_privacy(epsilon: float | None, privacy: Privacy | None) -> Privacy:
    """The guarantee, in range (`check_range`), that exactly one of two arguments states."""
    if privacy is None:
        # If neither argument is given, epsilon is None. `PureDP` refuses this value.
        privacy = PureDP(epsilon)  # type: ignore[arg-type]
    elif epsilon is not None:
        raise ValueError(f"give either epsilon or privacy, got {epsilon!r} and {privacy!r}")
    check_range(privacy, "a lower bound")
    return privacy


@dataclass(frozen=True)
class Problem:
    """The privacy and accuracy that a mechanism for a workload must have.

    Parameters
    ----------
    epsilon : float or None
        A number above 0: the mechanism must be epsilon-DP. None if `privacy` is given and is not
        pure.
    alpha : float
        Largest error allowed, in units of one answer; above 0.
    metric : MeanL2, RMS or WorstCase
        How the error is measured.
    adjacency : Adjacency
        Neighbour relation. Under add/remove, answers are divided by a public number n. The
        mechanism need be accurate only on data sets of exactly n records.
    privacy : PureDP, ApproxDP, ZCDP or None
        The guarantee that the mechanism must give. None means `epsilon`-DP; a contradiction to
        `epsilon` raises ``ValueError``.

    Examples
    --------
    >>> import geomdp as gd
    >>> problem = gd.bounds.Problem(1.0, 0.1, gd.bounds.RMS())
    >>> print(problem)
    1-DP (replace-one) and root mean squared error per query at most 0.1
    >>> round(problem.required_separation, 4)
    0.2828
    >>> print(gd.bounds.Problem(None, 0.1, privacy=gd.ZCDP(0.5)))
    0.5-zCDP (replace-one) and mean l2 error per query at most 0.1
    """

    epsilon: float | None
    alpha: float
    metric: Metric = MEAN_L2
    adjacency: Adjacency = Adjacency.REPLACE_ONE
    privacy: Privacy | None = None

    def __post_init__(self) -> None:
        # Copies with `dataclasses.replace` pass both the epsilon and the privacy of the original.
        same = isinstance(self.privacy, PureDP) and self.privacy.epsilon == self.epsilon
        privacy = stated_privacy(None if same else self.epsilon, self.privacy)
        object.__setattr__(self, "privacy", privacy)
        object.__setattr__(
            self, "epsilon", privacy.epsilon if isinstance(privacy, PureDP) else None
        )
        object.__setattr__(self, "alpha", positive(self.alpha, "alpha"))
        if not isinstance(self.metric, Metric):
            raise ValueError(f"metric must be MeanL2, RMS or WorstCase, got {self.metric!r}")
        checked_adjacency(self.adjacency)

    @property
    def guarantee(self) -> Privacy:
        """The guarantee that the mechanism must give."""
        assert self.privacy is not None  # set by `__post_init__`
        return self.privacy

    @property
    def pure_epsilon(self) -> float:
        """The epsilon of pure privacy; `SideConditionError` for every other guarantee."""
        if self.epsilon is None:
            raise SideConditionError(
                f"the proof needs pure differential privacy, got {self.guarantee}"
            )
        return self.epsilon

    @property
    def changes(self) -> int:
        """Number of changes, each to a neighbouring data set, that together replace one record."""
        return CHANGES[self.adjacency]

    @property
    def required_separation(self) -> float:
        """Least distance c alpha between answers in a packing, with the factor c of the metric."""
        return self.metric.separation * self.alpha

    def __str__(self) -> str:
        # Round down: a lower bound for some privacy and alpha also holds for stronger privacy and a
        # smaller alpha. It need not hold for weaker privacy or a larger alpha.
        alpha = rounded_down(self.alpha)
        guarantee = f"{_words(self.guarantee)} ({self.adjacency.value})"
        return f"{guarantee} and {self.metric.name} at most {alpha}"


def _words(privacy: Privacy) -> str:
    match privacy:
        case PureDP(epsilon=epsilon):
            return f"{rounded_down(epsilon)}-DP"
        case ApproxDP(epsilon=epsilon, delta=delta):
            return f"({rounded_down(epsilon)}, {rounded_down(delta)})-DP"
        case ZCDP(rho=rho):
            return f"{rounded_down(rho)}-zCDP"
