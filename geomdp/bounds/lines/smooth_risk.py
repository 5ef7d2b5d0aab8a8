"""A lower bound on the Bayes risk of a private count under zCDP.

The proof is van Trees' inequality with differences in place of derivatives.

A mechanism estimates t in {0, ..., T}. The data sets for t and t + 1 are b changes apart. Let f_t
be the density of the output, pi the prior on t, y the estimate, and c_0, ..., c_{T-1} any numbers
above 0, with c_{-1} = c_T = 0. Let g_t = c_t f_t - c_{t-1} f_{t-1} and psi = g_t / (pi_t f_t). Then

* the sum of g_t over t is 0 for each output, so the mean of (y - t) psi does not depend on y. It is
  the integral of - sum_t t g_t, which is c_0 + ... + c_{T-1}.
* the mean of psi^2 is sum_t ((c_t - c_{t-1})^2 + c_{t-1}^2 chi_t) / pi_t, where chi_t is the
  chi-square divergence of f_{t-1} from f_t. Under rho-zCDP, group privacy and the Renyi divergence
  of order 2 give chi_t <= kappa = e^(2 b^2 rho) - 1.

By the inequality of Cauchy and Schwarz, the mean of (y - t)^2 is at least the square of the first
mean divided by the second mean. For the best prior, pi_t is proportional to the square root of the
numerator of term t in the second mean. Therefore

    E (y - t)^2  >=  (sum_t c_t)^2 / (sum_{t=0}^T ((c_t - c_{t-1})^2 + kappa c_{t-1}^2)^(1/2))^2.

For large T and a slowly varying c, the right-hand side tends to 1 / kappa. In units of one change
this is b^2 / kappa. For small b^2 rho it is close to 1 / (2 rho), the variance of Gaussian noise.
So for small rho Gaussian noise is the best mechanism for one query, up to lower orders.

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
        """Number of steps T."""
        return len(self.weights)

    def document(self) -> dict[str, Any]:
        """The line as written to a certificate file."""
        return {"argument": "differences", "weights": np.array(self.weights), "risk": self.risk}


@lru_cache(maxsize=4096)
def smooth_line(steps: int, rho: float) -> SmoothLine:
    """The largest bound of the module's docstring over a few profiles c.

    Parameters
    ----------
    steps : int
        Number of steps T, from 1 to 1000.
    rho : float
        b^2 rho: the concentrated privacy loss of one step, above 0 and at most 32.

    Raises
    ------
    ValueError
        For parameters out of range.

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
