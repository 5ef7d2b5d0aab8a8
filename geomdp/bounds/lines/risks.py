"""The largest known lower bound on the Bayes risk of a private count, for each guarantee."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

from geomdp.bounds.lines.approximate_risk import approximate_line
from geomdp.bounds.lines.bayes_risk import private_line
from geomdp.bounds.lines.paired_risk import paired_line
from geomdp.bounds.lines.smooth_risk import MOST_DIVERGENCE, smooth_line
from geomdp.privacy import ZCDP, ApproxDP, Privacy, PureDP

#: A bound is proved by data sets along a line; one step on the line replaces several copies of a
#: record. Under (epsilon, delta)-DP, the number of copies is chosen once for the loss epsilon, and
#: once for the loss epsilon plus this number times delta. If epsilon is small and delta is several
#: times epsilon, the first choice proves nothing. For epsilon from 0.01 to 1 and delta from
#: epsilon / 100 to 10 epsilon, the better of the two choices gives at least 0.96 of the bound for
#: the best number of copies.
DELTA_SHARE = 8.0
#: The second number of copies is raised by this share before it is rounded down. So a delta that
#: is tiny beside epsilon does not change the number.
NEGLIGIBLE = 1e-3


class LineRisk(Protocol):
    """A proved lower bound on the Bayes risk of a private estimate of t in {0, ..., T}."""

    @property
    def steps(self) -> int:
        """Number of steps T."""

    @property
    def risk(self) -> float:
        """A lower bound on the mean of |y - t|^p for the estimate y, rounded down; p is 1 or 2."""

    def document(self) -> dict[str, Any]:
        """The proof as written to a certificate file."""


@dataclass(frozen=True)
class Accuracy:
    """The guarantee and the measure of error; replacing a record takes `changes` changes."""

    privacy: Privacy
    changes: int
    moment: int
    largest: bool

    @property
    def loss(self) -> float:
        """The privacy loss of one replaced record, as the function `loss` measures it."""
        return loss(self.privacy) * self.changes

    def copies(self, step: float) -> set[int]:
        """Numbers of copies to try for a step with about the privacy loss `step`."""
        most = max(1, math.floor(step / self.loss))
        if not isinstance(self.privacy, ApproxDP):
            return {most}
        both = self.loss + DELTA_SHARE * self.privacy.delta * self.changes
        return {most, min(most, max(1, math.floor(step / both * (1 + NEGLIGIBLE))))}

    def risk(self, steps: int, copies: int) -> LineRisk:
        """The best bound for `steps` steps, each of which replaces `copies` records."""
        return known_risk(steps, self.privacy, self.changes * copies, self.moment)


def loss(privacy: Privacy) -> float:
    """The privacy loss of one change: epsilon, or sqrt(2 rho). It is used to choose step sizes."""
    match privacy:
        case PureDP(epsilon=epsilon) | ApproxDP(epsilon=epsilon):
            return epsilon
        case ZCDP(rho=rho):
            return math.sqrt(2 * rho)


def known_risk(steps: int, privacy: Privacy, changes: int, moment: int) -> LineRisk:
    """The largest bound for `steps` steps of `changes` changes each; p is `moment`."""
    if isinstance(privacy, PureDP):
        return private_line(steps, privacy.epsilon * changes, moment)
    found: list[LineRisk] = [paired_line(steps, privacy, changes, moment)]
    if isinstance(privacy, ApproxDP):
        found.append(approximate_line(steps, privacy, changes, moment))
    elif moment == 2 and 2 * privacy.rho * changes**2 <= MOST_DIVERGENCE:
        found.append(smooth_line(steps, privacy.rho * changes**2))
    return max(found, key=lambda line: line.risk)
