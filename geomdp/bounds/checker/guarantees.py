"""The privacy guarantee of a certificate, and how far it lets outputs on two data sets differ.

`geomdp.bounds.lines.overlaps` proves the formula of `Guarantee.overlap`, and
`geomdp.bounds.lines.smooth_risk` proves the formula of `Guarantee.chi_square`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from geomdp.bounds.checker.values import CertificateRejected, Part, require, rounded_down

#: Relative error allowed in the numbers from which `Guarantee.overlap` is computed. It is above the
#: rounding errors of float64, and below 1e-12, the margin of `geomdp.bounds.lines.overlaps`.
ROUNDING = 2e-13
#: Bounds are computed only for privacy losses below this number. e^loss overflows at about 709.
MOST_LOSS = 600.0


@dataclass(frozen=True)
class Guarantee:
    """(epsilon, delta)-DP, or rho-zCDP.

    Parameters
    ----------
    epsilon, delta : float
        The parameters of (epsilon, delta)-DP; delta is 0 for pure privacy. Both are 0 for zCDP.
    rho : float
        The parameter of zCDP; 0 for (epsilon, delta)-DP.
    """

    epsilon: float
    delta: float
    rho: float

    @property
    def is_pure(self) -> bool:
        """Whether the guarantee is epsilon-DP."""
        return self.rho == 0 and self.delta == 0

    def __str__(self) -> str:
        """The guarantee in words. A lower bound stays true, because every number is rounded down.

        A mechanism with the rounded guarantee also has the exact guarantee.
        """
        if self.rho > 0:
            return f"{rounded_down(self.rho)}-zCDP"
        if self.delta > 0:
            return f"({rounded_down(self.epsilon)}, {rounded_down(self.delta)})-DP"
        return f"{rounded_down(self.epsilon)}-DP"

    def overlap(self, changes: int) -> float:
        """A lower bound, at least 0, on the overlap 1 - TV of outputs on two data sets.

        TV is the total variation distance. The two data sets are `changes` apart.
        """
        half = self.epsilon * changes / 2
        if self.rho > 0:
            half = _half_loss(self.rho * changes**2)
        if 2 * half >= MOST_LOSS:
            return 0.0
        # 1 - tanh(h) = e^-h / cosh(h).
        shared = math.exp(-half) / math.cosh(half) * (1 - ROUNDING)
        if self.delta > 0:
            shared -= 2 * self.delta * math.tanh(half) / math.expm1(self.epsilon) * (1 + ROUNDING)
        return max(0.0, shared)

    def of_group(self, changes: int) -> tuple[float, float]:
        """epsilon and delta for data sets `changes` apart, by group privacy; not for zCDP."""
        epsilon = self.epsilon * changes
        require(epsilon < MOST_LOSS, "one step of a line loses too much privacy")
        return epsilon, self.delta * math.expm1(epsilon) / math.expm1(self.epsilon)

    def chi_square(self, changes: int) -> float:
        """Largest chi-square divergence, under zCDP, of outputs on data sets `changes` apart."""
        require(self.rho > 0, "the chi-square divergence is bounded under zCDP only")
        require(2 * self.rho * changes**2 < MOST_LOSS, "one step of a line loses too much privacy")
        return math.expm1(2 * self.rho * changes**2)


def guarantee_of(document: Part) -> Guarantee:
    """The guarantee that the file states, as "epsilon" or as "privacy" with a definition."""
    if "privacy" not in document.values:
        epsilon = document.number("epsilon")
        require(epsilon > 0, "epsilon is not above 0")
        return Guarantee(epsilon, 0.0, 0.0)
    require("epsilon" not in document.values, "the file states both epsilon and privacy")
    stated = document.part("privacy")
    definition = stated.word("definition")
    if definition == "ZCDP":
        require(set(stated.values) == {"definition", "rho"}, "zCDP has the parameter rho only")
        rho = stated.number("rho")
        require(rho > 0, "rho is not above 0")
        return Guarantee(0.0, 0.0, rho)
    if definition == "ApproxDP":
        names = {"definition", "epsilon", "delta"}
        require(set(stated.values) == names, "(epsilon, delta)-DP has these two parameters only")
        epsilon, delta = stated.number("epsilon"), stated.number("delta")
        require(epsilon > 0, "epsilon is not above 0")
        require(0 < delta < 0.5, "delta is not above 0 and below 1/2")
        return Guarantee(epsilon, delta, 0.0)
    raise CertificateRejected(f"the definition of privacy {definition!r} is unknown")


def _half_loss(divergence: float) -> float:
    """A number x with 2 x tanh(x) >= `divergence`, by Newton's method from above.

    Newton's method need not end above the solution, because 2 x tanh(x) is not convex for large x
    and because of rounding. So the result is increased until it satisfies the inequality.
    """
    x = math.sqrt(divergence) if divergence < 1 else divergence / 2 + 0.5
    for _ in range(100):
        tanh = math.tanh(x)
        slope = 2 * tanh + 2 * x * (1 - tanh**2)
        x = max(x - (2 * x * tanh - divergence) / slope, x / 2)
    while 2 * x * math.tanh(x) < divergence * (1 + ROUNDING / 8):
        x *= 1 + ROUNDING / 8
    return x
