"""A lower bound on the Bayes risk of a private count under (epsilon, delta)-DP.

The bound is the bound for pure privacy minus delta K, for a number K defined below.

Let f_t be the density of an output for the count t in {0, ..., T}. Under (epsilon, delta)-DP, the
excess s_t = max(0, f_t - e^epsilon f_{t+1}) has an integral of at most delta, and so has the excess
s'_t = max(0, f_{t+1} - e^epsilon f_t). Take the prior, the allowances nu_t and the points y of
`geomdp.bounds.lines.bayes_risk`, with p, h, g_t and V_t as defined there. Without the excesses,
V_0 >= 0 proves that the risk is at least nu_0 + ... + nu_T. With the excesses, each step of the
dynamic program loses a term:

    V_{t+1} f_{t+1} >= e^-epsilon V_{t+1} f_t - e^-epsilon V_{t+1} s_t     if V_{t+1} > 0,
    V_{t+1} f_{t+1} >= e^epsilon V_{t+1} f_t - |V_{t+1}| s'_t              otherwise.

Integrate over the outputs. The risk is at least nu_0 + ... + nu_T - delta K, where K is the sum
over t = 1, ..., T of e^-epsilon max_y V_t(y) (0 if negative) and of -min_y V_t(y) (0 if negative).
For p = 2, the chords of (y - t)^2 between the points, minus h^2 / 4, replace (y - t)^2 in g_t.
Between two neighbouring points V_t is then concave in y, because it is a minimum of linear
functions. So its least value is attained at one of the points. The recursion of V_t takes the
smaller of e^-epsilon V_{t+1} and e^epsilon V_{t+1}, which is at most V_{t+1}. So V_t(y) is at most
g_t(y) + ... + g_T(y). This sum is convex in y, so its largest value is attained at y = 0 or y = T.
For p = 2, the terms h^2 / 4 are left out of this sum. The sum is then larger, so it is still an
upper bound.

References
----------
Derived here from the linear program of `bayes_risk`; delta K is the price of its slack variables.
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
        """Number of steps T."""
        return self.pure.steps

    def document(self) -> dict[str, Any]:
        """The line as written to a certificate file."""
        return self.pure.document() | {"argument": "allowances", "risk": self.risk}


@lru_cache(maxsize=1024)
def approximate_line(steps: int, privacy: ApproxDP, changes: int, moment: int) -> ApproximateLine:
    """The bound of the module's docstring, for the prior and the allowances of `private_line`.

    Parameters
    ----------
    steps : int
        Number of steps T, at least 1.
    privacy : ApproxDP
        The guarantee of the mechanism.
    changes : int
        Number of changes, each to a neighbouring data set, that one step takes. By group privacy
        (GEN-2), data sets that are b changes apart satisfy the inequality of (epsilon', delta')-DP,
        with epsilon' = b epsilon and delta' = delta (e^epsilon' - 1) / (e^epsilon - 1).
    moment : int
        p: 1 for the mean absolute error, 2 for the mean squared error.

    Returns
    -------
    ApproximateLine
        Its risk is 0 or negative if delta is so large that nothing is proved.

    Raises
    ------
    ValueError
        For `changes` below 1, and for parameters out of the range of `private_line`.

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
    """The number K of the module's docstring, for the given line."""
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
