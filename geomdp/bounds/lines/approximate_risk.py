"""A lower bound on the Bayes risk of a private count under (epsilon, delta)-DP.

`geomdp.bounds.checker.allowances` has the proof. The bound is derived here from the linear program
of `bayes_risk`: delta K is the price of its slack variables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from geomdp._validation import whole
from geomdp.bounds.lines.bayes_risk import PrivateLine, private_line
from geomdp.privacy import ApproxDP
from geomdp.privacy.definitions import check_privacy

#: Relative margin for the rounding errors of delta K. The checker of certificates computes delta K
#: again, with a smaller margin of 5e-12.
MARGIN = 1e-11


@dataclass(frozen=True)
class ApproximateLine:
    """A proved lower bound on the Bayes risk of an (epsilon, delta)-DP estimate.

    Parameters
    ----------
    pure : PrivateLine
        The prior, the allowances and the spacing of the points.
    risk : float
        The sum of the allowances less delta K, rounded down.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bounds.approximate_line(24, gd.ApproxDP(1.0, 1e-6), 1, moment=2)
    ApproximateLine(steps=24, risk=1.68846)
    """

    pure: PrivateLine
    risk: float

    def __repr__(self) -> str:
        return f"ApproximateLine(steps={self.steps}, risk={self.risk:.6g})"

    @property
    def steps(self) -> int:
        return self.pure.steps

    def document(self) -> dict[str, Any]:
        return self.pure.document() | {"argument": "allowances", "risk": self.risk}


@lru_cache(maxsize=1024)
def approximate_line(steps: int, privacy: ApproxDP, changes: int, moment: int) -> ApproximateLine:
    """The bound of `private_line` minus delta K, for its prior and allowances.

    K is the sum over t = 1, ..., T of e^-epsilon max_y V_t(y) and of -min_y V_t(y) (each 0 if
    negative), where V_t(y) is the least sum over s >= t of (f_s / f_t) (pi_s |y - s|^p - nu_s). The
    result has a risk of 0 or below if delta is so large that nothing is proved.

    Parameters
    ----------
    steps : int
        Number of steps T, at least 1.
    privacy : ApproxDP
        The guarantee of the mechanism.
    changes : int
        Number b >= 1 of changes, each to a neighbouring data set, that one step takes. Group
        privacy (GEN-2) gives epsilon' = b epsilon and
        delta' = delta (e^epsilon' - 1) / (e^epsilon - 1).
    moment : int
        p: 1 for the mean absolute error, 2 for the mean squared error.

    Examples
    --------
    A larger delta proves less:

    >>> import geomdp as gd
    >>> for delta in (1e-9, 1e-6, 1e-3):
    ...     privacy = gd.ApproxDP(1.0, delta)
    ...     print(round(gd.bounds.approximate_line(8, privacy, 1, moment=2).risk, 4))
    1.2701
    1.27
    1.2076
    """
    check_privacy(privacy, ApproxDP)
    epsilon = whole(changes, "changes") * privacy.epsilon
    line = private_line(steps, epsilon, moment)
    delta = privacy.delta * math.expm1(epsilon) / math.expm1(privacy.epsilon)
    return ApproximateLine(line, line.risk - delta * _price(line, epsilon, moment) * (1 + MARGIN))


def _price(line: PrivateLine, epsilon: float, moment: int) -> float:
    """The number K of `approximate_line`, for the given line."""
    steps, h = line.steps, line.spacing
    points = np.minimum(h * np.arange(math.ceil(steps / h) + 1), steps)
    slack = h**2 / 4 if moment == 2 else 0.0
    values, at_ends, total = np.zeros(len(points)), np.zeros(2), 0.0
    for t in range(steps, 0, -1):
        gains = line.prior[t] * (np.abs(points - t) ** moment - slack) - line.allowances[t]
        values = gains + np.minimum(math.exp(-epsilon) * values, math.exp(epsilon) * values)
        distances = np.array([t, steps - t], dtype=float)
        at_ends = at_ends + line.prior[t] * distances**moment - line.allowances[t]
        total += math.exp(-epsilon) * max(0.0, float(at_ends.max()))
        total += max(0.0, -float(values.min()))
    return total
