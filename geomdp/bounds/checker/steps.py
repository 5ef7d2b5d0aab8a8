"""Check of a lower bound on the Bayes risk of one line, under zCDP or (epsilon, delta)-DP.

A mechanism estimates t in {0, ..., T} by y, and the data sets of t and t + 1 are b changes apart. A
file names one of three arguments. `allowances` explains the argument "allowances", under
(epsilon, delta)-DP.

"pairs", for the uniform prior and the mean of |y - t|^p: this power is the integral over the u
between t and y of 1 (p = 1) or 2 |u - t| (p = 2). Take u between s and s + 1, and pair t = s - j
with t' = s + 1 + j. The probabilities that y is on the wrong side of u for t and for t' add up to
at least the overlap for (2 j + 1) b changes. For p = 2 the smaller weight has the integral
2 j + 1/2. There are T - 2 j numbers s for each j, so the mean is at least

    sum over j from 0 to (T - 1) / 2 of (T - 2 j) / (T + 1) w_j overlap((2 j + 1) b),

where w_j = 1 for p = 1 and w_j = 2 j + 1/2 for p = 2.

"differences", for the mean squared error under zCDP, is van Trees' inequality with differences. Let
f_t be the output density, pi the prior, c_0, ..., c_{T-1} weights above 0 and c_{-1} = c_T = 0. Let
g_t = c_t f_t - c_{t-1} f_{t-1} and psi = g_t / (pi_t f_t). The g_t of an output add up to 0, so the
mean of (y - t) psi is that of - t psi, which is c_0 + ... + c_{T-1}. The mean of psi^2 is at most
sum_t ((c_t - c_{t-1})^2 + kappa c_{t-1}^2) / pi_t, where kappa bounds the chi-square divergence of
one step. The Cauchy-Schwarz inequality for the best prior gives

    E (y - t)^2  >=  (sum_t c_t)^2 / (sum_{t=0}^T ((c_t - c_{t-1})^2 + kappa c_{t-1}^2)^(1/2))^2.
"""

from __future__ import annotations

import itertools
import math

from geomdp.bounds.checker.allowances import verify_allowances
from geomdp.bounds.checker.guarantees import Guarantee
from geomdp.bounds.checker.values import LEAST, CertificateRejected, Part, require, require_close

#: Relative error allowed for a sum over the steps of a line. It is above the rounding errors of
#: `MOST_STEPS` terms, and below 1e-12, the margin of `paired_risk` and `smooth_risk`.
ROUNDING = 4e-13
#: Largest number of steps of a line.
MOST_STEPS = 1000


def verify_risk(line: Part, guarantee: Guarantee, changes: int, moment: int) -> tuple[int, float]:
    """The number of steps, each of `changes` changes, and the checked risk of a line."""
    argument = line.word("argument")
    if argument == "allowances":
        require(guarantee.delta > 0, "allowances prove nothing under zCDP")
        return verify_allowances(line, *guarantee.of_group(changes), moment)
    risk = line.number("risk")
    if argument == "pairs":
        steps = line.whole("steps", most=MOST_STEPS)
        line.work.spend(50_000 * steps)  # under zCDP, an overlap needs the root of an equation
        found = _paired(steps, guarantee, changes, moment)
    elif argument == "differences":
        require(moment == 2, "differences bound a root mean squared error only")
        weights = line.array("weights", axes=1).tolist()
        steps = len(weights)
        require(steps <= MOST_STEPS, f"a line has more than {MOST_STEPS} steps")
        require(min(weights) >= LEAST, f"a weight is below {LEAST:g}")
        line.work.spend(1000 * steps)
        found = _differences(weights, guarantee.chi_square(changes))
    else:
        raise CertificateRejected(f"the argument {argument!r} for a line is unknown")
    require(risk > 0, "a risk is not above 0")
    require_close(risk, found, "risk")
    require(risk <= found * (1 - ROUNDING), f"risk is {found:.15g}, the file says {risk:.15g}")
    return steps, risk


def _paired(steps: int, guarantee: Guarantee, changes: int, moment: int) -> float:
    """The lower bound on the mean of |y - t|^p, p = `moment`, by the argument "pairs"."""
    terms = []
    for apart in range(1, steps + 1, 2):
        number = steps + 1 - apart
        integral = 1.0 if moment == 1 else apart - 0.5
        terms.append(number * integral * guarantee.overlap(apart * changes))
    return math.fsum(terms) / (steps + 1)


def _differences(weights: list[float], chi_square: float) -> float:
    """The bound by "differences"; dividing by the largest weight makes underflow harmless."""
    largest = max(weights)
    padded = [0.0, *(weight / largest for weight in weights), 0.0]
    roots = [
        math.hypot(after - before, before * math.sqrt(chi_square))
        for before, after in itertools.pairwise(padded)
    ]
    return (math.fsum(padded) / math.fsum(roots)) ** 2
