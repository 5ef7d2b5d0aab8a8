"""Check of a lower bound on the Bayes risk of one line, under zCDP or (epsilon, delta)-DP.

On a line of T steps, a mechanism estimates a number t in {0, ..., T} from a data set. A file names
one of three arguments that prove the bound: "pairs" (see `geomdp.bounds.lines.paired_risk`),
"differences" for the squared error under zCDP (see `geomdp.bounds.lines.smooth_risk`), or
"allowances" under (epsilon, delta)-DP (see `geomdp.bounds.lines.approximate_risk`).
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
    """Check the risk of a line; return the number of steps of the line, and the risk.

    `changes` is the number of changes, each to a neighbouring data set, that one step takes.
    """
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
    """A lower bound on the p-th moment of the error, p = `moment`, by the argument "pairs".

    The prior is uniform on 0, ..., T for T = `steps`. The argument uses all pairs of these numbers
    that are an odd number apart.
    """
    terms = []
    for apart in range(1, steps + 1, 2):
        number = steps + 1 - apart
        integral = 1.0 if moment == 1 else apart - 0.5
        terms.append(number * integral * guarantee.overlap(apart * changes))
    return math.fsum(terms) / (steps + 1)


def _differences(weights: list[float], chi_square: float) -> float:
    """A lower bound on the mean squared error, by van Trees' inequality with differences.

    The result does not depend on the scale of the weights. All weights are divided by the largest
    weight. So the sum of `roots` is at least 1, and a product that underflows is too small to
    change this sum.
    """
    largest = max(weights)
    padded = [0.0, *(weight / largest for weight in weights), 0.0]
    roots = [
        math.hypot(after - before, before * math.sqrt(chi_square))
        for before, after in itertools.pairwise(padded)
    ]
    return (math.fsum(padded) / math.fsum(roots)) ** 2
