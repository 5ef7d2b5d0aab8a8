"""Bayes risk of a private count under any guarantee, from pairs of data sets.

`geomdp.bounds.checker.steps` proves the bound (the argument "pairs"). For T = 1 it is Le Cam's:
overlap / 2 for p = 1, and overlap / 4 for p = 2. With exact overlaps, the sum is close to the error
of Gaussian noise much larger than a step, for large T.

References
----------
Le Cam 1973 and Yu 1997 for two points; the sum over pairs is derived here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from geomdp._validation import whole
from geomdp.bounds.lines.overlaps import overlap
from geomdp.privacy import Privacy
from geomdp.privacy.definitions import check_privacy

#: Relative margin for the rounding errors of a sum of up to 500 terms.
MARGIN = 1e-12
#: Largest number of steps of a line.
MOST_STEPS = 1000


@dataclass(frozen=True)
class PairedLine:
    """A proved lower bound on the Bayes risk of a private estimate of t in {0, ..., T}.

    Parameters
    ----------
    steps : int
        Number of steps T.
    risk : float
        A lower bound on the mean of |y - t|^p under the uniform prior, rounded down.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.bounds.paired_line(1, gd.PureDP(1.0), 1, moment=1)
    PairedLine(steps=1, risk=0.268941)
    """

    steps: int
    risk: float

    def __repr__(self) -> str:
        return f"PairedLine(steps={self.steps}, risk={self.risk:.6g})"

    def document(self) -> dict[str, Any]:
        return {"argument": "pairs", "steps": self.steps, "risk": self.risk}


@lru_cache(maxsize=4096)
def paired_line(steps: int, privacy: Privacy, changes: int, moment: int) -> PairedLine:
    """A lower bound on the Bayes risk of a private count under the uniform prior.

    It is the sum over j from 0 to (T - 1) / 2 of (T - 2 j) / (T + 1) w_j overlap((2 j + 1) b),
    where w_j = 1 for p = 1 and 2 j + 1/2 for p = 2. The overlap is the least 1 - TV of outputs on
    data sets that are (2 j + 1) b changes apart, for the total variation TV.

    Parameters
    ----------
    steps : int
        Number of steps T, from 1 to 1000.
    privacy : PureDP, ApproxDP or ZCDP
        The guarantee of the mechanism. For `PureDP`, the bound of `private_line` is mostly better.
    changes : int
        Number b of changes, each to a neighbouring data set, that one step takes; at least 1.
    moment : int
        p: 1 for the mean absolute error, 2 for the mean squared error.

    Examples
    --------
    Every 0.5-zCDP estimate of a count from 0 to 40 has at least this mean absolute error for some
    count. Gaussian noise has the error 0.798:

    >>> import geomdp as gd
    >>> round(gd.bounds.paired_line(40, gd.ZCDP(0.5), 1, moment=1).risk, 3)
    0.527
    """
    whole(steps, "steps", maximum=MOST_STEPS)
    whole(changes, "changes")
    whole(moment, "moment", maximum=2)
    check_privacy(privacy)
    total = 0.0
    for j in range((steps + 1) // 2):
        common = overlap(privacy, (2 * j + 1) * changes)
        if common == 0:
            break  # the bound on the overlap is also 0 for data sets that are farther apart
        weight = 1.0 if moment == 1 else 2 * j + 0.5
        total += (steps - 2 * j) / (steps + 1) * weight * common
    return PairedLine(steps, total * (1 - MARGIN))
