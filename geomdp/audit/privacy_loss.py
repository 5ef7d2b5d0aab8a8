"""Privacy loss distributions of two discrete laws, computed from their exact probabilities."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from geomdp._numerics.bisection import largest_at_most
from geomdp._typing import FloatArray
from geomdp._validation import finite_array
from geomdp.privacy import ZCDP, ApproxDP, Privacy, PureDP
from geomdp.privacy.definitions import check_privacy

#: A zCDP claim is tested at these orders of the Renyi divergence D_order. From each order to the
#: next, order - 1 grows by a tenth. (order - 1) D_order is convex in the order. So a claim that
#: holds at two successive orders is exceeded by less than 1 percent between them.
ORDERS = 1 + np.geomspace(1e-3, 1e3, 145)
#: An excess up to this size may be a rounding error; only a larger excess counts as a refutation.
#: For pure DP and zCDP, the size is multiplied by the claimed epsilon or rho if that is above 1.
#: Probabilities are sums of a few thousand products of a few dozen factors. So they contain at most
#: 2^17 rounding errors of 2^-53 each.
SLACK = 2.0**-36


@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """The distribution of the privacy loss L = ln(p(Y) / q(Y)), where Y is drawn from p.

    Parameters
    ----------
    losses, masses : (k,) array
        Finite values of L, and their probabilities.
    impossible : float
        Probability under p of the outcomes that have probability 0 under q. For these outcomes, L
        is infinite.

    Examples
    --------
    Randomised response that tells the truth with probability 3/4 is ln(3)-DP:

    >>> import geomdp as gd
    >>> loss = gd.audit.PrivacyLoss.of_laws([0.75, 0.25], [0.25, 0.75])
    >>> round(loss.epsilon(), 3), round(loss.delta(0.5), 3)
    (1.099, 0.338)
    >>> loss.refutes(gd.PureDP(1.0)), loss.refutes(gd.PureDP(1.1))
    (True, False)
    """

    losses: FloatArray = field(repr=False)
    masses: FloatArray = field(repr=False)
    impossible: float

    @classmethod
    def of_laws(cls, first: npt.ArrayLike, second: npt.ArrayLike) -> PrivacyLoss:
        """The privacy loss of two laws p and q (k,) on the same k outcomes.

        ``ValueError`` if they differ in size, have negative entries, or a sum that is not 1 up to
        rounding.
        """
        p, q = (finite_array(law, "law", ndim=1) for law in (first, second))
        if p.shape != q.shape:
            raise ValueError(f"laws must be of equal size, got {len(p)} and {len(q)} outcomes")
        for law in (p, q):
            if (law < 0).any() or abs(law.sum() - 1) > 1e-9:
                raise ValueError(f"laws must be nonnegative with sum 1, got sum {law.sum():.12g}")
        both = (p > 0) & (q > 0)
        return cls(np.log(p[both]) - np.log(q[both]), p[both], float(p[q == 0].sum()))

    def delta(self, epsilon: float) -> float:
        """The least delta with p(S) <= e^epsilon q(S) + delta for every S (GEN-2)."""
        gains = -np.expm1(np.minimum(epsilon - self.losses, 0.0))
        return float(self.masses @ gains) + self.impossible

    def epsilon(self, delta: float = 0.0) -> float:
        """The least epsilon >= 0 with p(S) <= e^epsilon q(S) + delta for every S; inf if none."""
        if self.impossible > delta:
            return math.inf
        largest = max(float(self.losses.max(initial=0.0)), 0.0)
        if delta == 0 or largest == 0 or self.delta(0.0) <= delta:
            return largest if delta == 0 else 0.0
        below = largest_at_most(lambda x: self.delta(-x), delta, -largest, 0.0)
        return -below

    def renyi(self, order: float) -> float:
        """The Renyi divergence D_order(p || q), order above 1; may be infinite."""
        return float(self._renyi(np.array([order]))[0])

    def _renyi(self, orders: FloatArray) -> FloatArray:
        if self.impossible > 0:
            return np.full(len(orders), math.inf)
        exponents = (orders - 1)[:, None] * self.losses
        top = exponents.max(axis=1)
        totals = np.exp(exponents - top[:, None]) @ self.masses
        return np.asarray((top + np.log(totals)) / (orders - 1))

    def excess(self, claim: Privacy) -> float:
        """The excess of (p, q) over the claim.

        It is the least epsilon minus the claimed epsilon for pure DP, and the least delta minus the
        claimed delta for approximate DP. For zCDP, it is the largest D_order / order over `ORDERS`,
        minus rho. If the claim holds for this ordered pair, it is at most 0 up to rounding.
        ``ValueError`` if `claim` is not `PureDP`, `ApproxDP` or `ZCDP`.
        """
        check_privacy(claim, name="claim")
        match claim:
            case PureDP(epsilon=epsilon):
                return self.epsilon() - epsilon
            case ApproxDP(epsilon=epsilon, delta=delta):
                return self.delta(epsilon) - delta
            case ZCDP(rho=rho):
                return float((self._renyi(ORDERS) / ORDERS).max()) - rho

    def refutes(self, claim: Privacy) -> bool:
        """Whether (p, q) exceeds the claim by more than rounding errors; (q, p) is not tested."""
        check_privacy(claim, name="claim")
        allowed = SLACK if isinstance(claim, ApproxDP) else SLACK * max(self._scale(claim), 1.0)
        return self.excess(claim) > allowed

    def _scale(self, claim: Privacy) -> float:
        match claim:
            case PureDP(epsilon=epsilon):
                return epsilon
            case ApproxDP():
                return 1.0
            case ZCDP(rho=rho):
                return rho
