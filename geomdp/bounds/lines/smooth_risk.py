"""A lower bound on the Bayes risk of a private count under zCDP, close to that of Gaussian noise.

`geomdp.bounds.checker.steps` proves the bound (the argument "differences"). For large T and slowly
varying c, it tends to 1 / kappa: b^2 / kappa in units of one change. For small b^2 rho, that is
close to 1 / (2 rho), the variance of Gaussian noise, which is then the best for one query.

References
----------
Van Trees 1968 and Bobrovsky-Zakai 1975 for the inequality; Bun-Steinke 2016, Proposition 1.9, for
group privacy; formula sheet GEN-2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from geomdp._validation import positive, whole

#: Profiles c that are tried: powers of sin(pi (t + a) / (T - 1 + 2 a)), as pairs (power, a). Flat
#: profiles are best for small T.
PROFILES = ((0.0, 1.0), (0.25, 1.0), (0.5, 1.0), (0.75, 1.0), (1.0, 2.0))
#: Relative margin for the rounding errors of the two sums.
MARGIN = 1e-12
#: Largest number of steps of a line.
MOST_STEPS = 1000
#: Largest 2 b^2 rho. For larger values the bound is tiny, and e^(2 b^2 rho) could overflow.
MOST_DIVERGENCE = 64.0


@dataclass(frozen=True)
class SmoothLine:
    """A proved lower bound on the mean squared error of a zCDP estimate of t in {0, ..., T}.

    Parameters
    ----------
    weights : tuple of float
        c_0, ..., c_{T-1}, above 0.
    risk : float
        The bound, rounded down.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bounds.smooth_line(2, 0.5)
    SmoothLine(steps=2, risk=0.255134)
    """

    weights: tuple[float, ...]
    risk: float

    def __repr__(self) -> str:
        return f"SmoothLine(steps={self.steps}, risk={self.risk:.6g})"

    @property
    def steps(self) -> int:
        return len(self.weights)

    def document(self) -> dict[str, Any]:
        return {"argument": "differences", "weights": np.array(self.weights), "risk": self.risk}


@lru_cache(maxsize=4096)
def smooth_line(steps: int, rho: float) -> SmoothLine:
    """The largest bound on the mean squared error over a few profiles c_0, ..., c_{T-1}.

    With kappa = e^(2 b^2 rho) - 1 and c_{-1} = c_T = 0, the bound is the square of the sum of c_t
    divided by the sum over t = 0, ..., T of ((c_t - c_{t-1})^2 + kappa c_{t-1}^2)^(1/2).

    Parameters
    ----------
    steps : int
        Number of steps T, from 1 to 1000.
    rho : float
        b^2 rho: the concentrated privacy loss of one step, above 0 and at most 32.

    Examples
    --------
    For sensitivity 1, Gaussian noise under 0.005-zCDP has the variance 100:

    >>> import geomdp as gd
    >>> round(gd.bounds.smooth_line(400, 0.005).risk, 1)
    97.4
    """
    whole(steps, "steps", maximum=MOST_STEPS)
    if not 2 * positive(rho, "rho") <= MOST_DIVERGENCE:
        raise ValueError(f"rho must be at most {MOST_DIVERGENCE / 2:g}, got {rho!r}")
    kappa, found = math.expm1(2 * rho), []
    for power, inset in PROFILES:
        angles = np.pi * (np.arange(steps) + inset) / (steps - 1 + 2 * inset)
        weights = np.sin(angles) ** power
        before, after = np.append(0.0, weights), np.append(weights, 0.0)
        roots = np.sqrt((after - before) ** 2 + kappa * before**2)
        risk = float((weights.sum() / roots.sum()) ** 2) * (1 - MARGIN)
        found.append(SmoothLine(tuple(weights.tolist()), risk))
    return max(found, key=lambda line: line.risk)
