"""Check of a lower bound on the Bayes risk of one line, proved by a prior and allowances.

A private mechanism estimates t in {0, ..., T}, and one step leads from t to t + 1. So under
epsilon-DP per step, the densities f_t of an output satisfy
e^-epsilon <= f_{t+1} / f_t <= e^epsilon. Let pi be a prior on t, nu_0, ..., nu_T any numbers (the
allowances), and p = 1 or 2 the moment. For every estimator y, the mean of |y - t|^p, the risk, is
at least nu_0 + ... + nu_T if

    sum_t f_t (pi_t |y - t|^p - nu_t) >= 0   for all f > 0 with these ratios, all y in [0, T].

Proof: integrate over the outputs; each f_t integrates to 1, and an estimate outside [0, T] is worse
than the nearest end. For fixed y, dynamic programming gives the least sum over f. Let V_T = g_T and
g_t = pi_t |y - t|^p - nu_t. Then

    V_t = g_t + min(e^-epsilon V_{t+1}, e^epsilon V_{t+1}),   and V_0 >= 0 is the condition.

It is checked at finitely many points y. For p = 1 the sum is linear in y between whole numbers. For
p = 2 and points that are h apart, (y - t)^2 is at most h^2 / 4 below its chord, so the condition is
checked with (y - t)^2 - h^2 / 4.

Under (epsilon, delta)-DP the excesses s_t = max(0, f_t - e^epsilon f_{t+1}) and
s'_t = max(0, f_{t+1} - e^epsilon f_t) have integrals of at most delta. Each step loses a term:

    V_{t+1} f_{t+1} >= e^-epsilon V_{t+1} f_t - e^-epsilon V_{t+1} s_t     if V_{t+1} > 0,
    V_{t+1} f_{t+1} >= e^epsilon V_{t+1} f_t - |V_{t+1}| s'_t              otherwise.

So the risk is at least nu_0 + ... + nu_T - delta K. K is the sum over t = 1, ..., T of
e^-epsilon max_y V_t(y) and of -min_y V_t(y) (each 0 if negative). For p = 2, chords minus
h^2 / 4 replace (y - t)^2 in g_t. Then V_t is concave between neighbouring points y, so the minimum
is at a point. The maximum is at most that of g_t + ... + g_T, which is convex in y: it is at y = 0
or y = T. Without the terms h^2 / 4 it is still an upper bound.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from geomdp.bounds.checker.values import Part, require, require_close

Vector = npt.NDArray[np.float64]

#: Relative rounding error allowed for a sum over the T steps of a line. The rounding errors of
#: T = 1000 steps are below a quarter of this number. `geomdp.bounds.lines.bayes_risk` leaves a
#: larger margin: at least about 5e-12, half of its `MARGIN`.
ROUNDING = 1e-12
#: The risk of a line is checked at all pairs of a point t of the prior and a listed estimate y. The
#: number of pairs is at most this number.
MOST_CELLS = 1 << 24
#: Largest number of points of a prior. `ROUNDING` is large enough for this number.
MOST_STEPS = 1001
#: Relative rounding error allowed for the cost of delta (see `_price`). The margin of
#: `geomdp.bounds.lines.approximate_risk` is larger, 1e-11.
PRICE = 5e-12


def verify_allowances(line: Part, epsilon: float, delta: float, moment: int) -> tuple[int, float]:
    """The number of steps and the checked risk of a line, for the privacy of one step."""
    prior, risk = line.array("prior", axes=1), line.number("risk")
    allowances = line.array("allowances", axes=1)
    require(len(prior) > 1, "a prior has one point only")
    require(len(allowances) == len(prior), "a prior has more or fewer points than allowances")
    require(bool((prior >= 0).all()), "a prior is negative")
    mass = math.fsum(prior.tolist())
    require_close(mass, 1.0, "the sum of a prior")
    spacing = line.number("spacing")
    require(0 < spacing <= 1 and (moment == 2 or spacing == 1), "spacing is out of range")
    require(len(prior) ** 2 / spacing <= MOST_CELLS, "a line has too many steps or points y")
    require(len(prior) <= MOST_STEPS, f"a line has more than {MOST_STEPS - 1} steps")
    line.work.spend(50 * int(len(prior) ** 2 / spacing))
    # e^600 is in the range of float64.
    require(epsilon * len(prior) < 600, "epsilon times the number of points is above 600")
    require(risk > 0, "a risk is not above 0")
    # The sum of a prior can differ from 1 by rounding. Prior and allowances may be divided by
    # this sum: the condition that `_holds` checks stays the same.
    total = math.fsum(allowances.tolist()) / mass
    if delta > 0:
        total -= delta * _price(prior, allowances, epsilon, moment, spacing) / mass * (1 + PRICE)
    require_close(risk, total, "risk")
    require(risk <= total, f"risk is {total:.15g}, the file says {risk:.15g}")
    require(
        _holds(prior, allowances, epsilon, moment, spacing),
        "the allowances are too large: some private estimate of a number from 0 to "
        f"{len(prior) - 1} may have an error below {risk:.15g}",
    )
    return len(prior) - 1, risk


def _holds(prior: Vector, allowances: Vector, epsilon: float, moment: int, spacing: float) -> bool:
    """Whether V_0 >= 0, minus rounding, at all points y with distance h = `spacing`."""
    points = np.arange(0.0, len(prior) - 1 + spacing, spacing)
    least, size = np.zeros(len(points)), np.zeros(len(points))
    for t in reversed(range(len(prior))):
        distance = np.abs(points - t)
        loss = distance if moment == 1 else distance**2 - (spacing / 2) ** 2
        factor = np.where(least > 0, math.exp(-epsilon), math.exp(epsilon))
        gain = prior[t] * loss - allowances[t]
        terms = prior[t] * np.abs(loss) + abs(allowances[t])
        least, size = gain + factor * least, terms + factor * size
    # `least` is V_0. Its rounding error is at most this share of `size`, the sum of the absolute
    # values of the same terms.
    return bool((least >= ROUNDING * size).all())


def _price(prior: Vector, allowances: Vector, epsilon: float, moment: int, spacing: float) -> float:
    """The number K of the module: under (epsilon, delta)-DP, the risk is smaller by delta K."""
    last = len(prior) - 1
    points = np.minimum(np.arange(0.0, last + spacing, spacing), last)
    sums, first_end, last_end, price = np.zeros(len(points)), 0.0, 0.0, 0.0
    for t in reversed(range(1, len(prior))):
        distance = np.abs(points - t)
        loss = distance if moment == 1 else distance**2 - (spacing / 2) ** 2
        factor = np.where(sums > 0, math.exp(-epsilon), math.exp(epsilon))
        sums = prior[t] * loss - allowances[t] + factor * sums
        first_end += float(prior[t]) * t**moment - float(allowances[t])
        last_end += float(prior[t]) * (last - t) ** moment - float(allowances[t])
        price += math.exp(-epsilon) * max(0.0, first_end, last_end)
        price += max(0.0, -float(sums.min()))
    return price
