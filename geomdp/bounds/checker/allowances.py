"""Check of a lower bound on the Bayes risk of one line, proved by a prior and allowances.

`geomdp.bounds.lines.bayes_risk` explains lines, allowances and the proof for pure privacy.
`geomdp.bounds.lines.approximate_risk` explains the smaller bound for (epsilon, delta)-DP.
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
    """Check the risk of a line; return the number of steps of the line, and the risk.

    `epsilon` and `delta` are the guarantee for one step of the line. `moment` is 1 for the mean
    absolute error and 2 for the mean squared error.
    """
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
    """Whether sum_t f_t (pi_t |y - t|^p - nu_t) >= 0 for all estimates y and all densities f.

    pi is the prior, nu are the allowances, and p is the `moment`. f_t > 0 is the density of an
    output if t is the true number. From each t to the next, f_t changes by a factor from e^-epsilon
    to e^epsilon. The estimates y are points with distance `spacing`. For p = 2, spacing^2 / 4 is
    subtracted from |y - t|^2, so that the inequality also holds between the points.

    The test is a dynamic program from the last t down: `least` is the least value of the sum from t
    on, divided by f_t. The least value is attained at the largest or the smallest factor. `size` is
    the sum of the absolute values of the same terms. The rounding error of the sum is a small share
    of `size`. So the sum must be at least this share, `ROUNDING` times `size`.
    """
    points = np.arange(0.0, len(prior) - 1 + spacing, spacing)
    least, size = np.zeros(len(points)), np.zeros(len(points))
    for t in reversed(range(len(prior))):
        distance = np.abs(points - t)
        loss = distance if moment == 1 else distance**2 - (spacing / 2) ** 2
        factor = np.where(least > 0, math.exp(-epsilon), math.exp(epsilon))
        gain = prior[t] * loss - allowances[t]
        terms = prior[t] * np.abs(loss) + abs(allowances[t])
        least, size = gain + factor * least, terms + factor * size
    return bool((least >= ROUNDING * size).all())


def _price(prior: Vector, allowances: Vector, epsilon: float, moment: int, spacing: float) -> float:
    """The number K: under (epsilon, delta)-DP, the proved risk is smaller by delta K.

    Let V_t(y) be the least value of the sum of `_holds` from t on, divided by f_t. K is the sum
    over t = 1, ..., T of e^-epsilon max_y V_t(y) (0 if negative) and of -min_y V_t(y) (0 if
    negative). An upper bound replaces the maximum: the sum for equal densities f, at y = 0 or
    y = T. For the minimum, it suffices to take the points y of `_holds` from 0 to T.
    `geomdp.bounds.lines.approximate_risk` has the proof.
    """
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
