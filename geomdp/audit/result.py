"""The result of an audit."""

from __future__ import annotations

import math
from dataclasses import dataclass

from geomdp.audit.power import smallest_violation
from geomdp.privacy import ZCDP, ApproxDP, Privacy, PureDP
from geomdp.privacy.definitions import printed, printed_down


@dataclass(frozen=True)
class AuditResult:
    """The result of an audit.

    Parameters
    ----------
    refuted : bool
        Whether the claim was shown to be false, at confidence 1 - `level`. False does not mean that
        the claim is true.
    epsilon_lower_bound : float
        A lower bound on epsilon, at the same confidence. For every epsilon' below the bound, the
        mechanism is not (epsilon', `delta`)-DP. The bound is 0 if the test gives no positive bound.
    claimed_epsilon, delta : float
        The claim that was tested; delta is 0 for pure DP. A zCDP claim implies many pairs (epsilon,
        delta). The result holds the pair that the outputs contradict most.
    level : float
        Upper bound on the probability of refuting a true claim.
    trials : int
        Number of outputs per input that tested the event.
    hits_a, hits_b : int
        How many of these outputs are in the event, for the first and for the second input.
    event : str
        The event, in words.
    pair : str
        The neighbouring inputs, in words; empty for `audit` and `audit_event`.
    claim : PureDP, ApproxDP or ZCDP
        The claim, as it was made.
    rho_lower_bound : float or None
        For a zCDP claim, a lower bound on rho from Renyi divergences, at the same confidence. None
        for other claims.
    unseen : float
        The largest difference between outputs that was taken for a rounding error, and so not
        tested; see `null_space_score`.

    Examples
    --------
    Laplace noise of scale 0.5 on a count, with the false claim that it is 1-DP:

    >>> import geomdp as gd
    >>> result = gd.audit.audit(
    ...     lambda trials, rng: rng.laplace(0.0, 0.5, trials),
    ...     lambda trials, rng: rng.laplace(1.0, 0.5, trials),
    ...     gd.PureDP(1.0),
    ...     trials=20_000,
    ...     rng=0,
    ... )
    >>> result.refuted, result.claimed_epsilon, round(result.epsilon_lower_bound, 1)
    (True, 1.0, 1.7)
    """

    refuted: bool
    epsilon_lower_bound: float
    claimed_epsilon: float
    delta: float
    level: float
    trials: int
    hits_a: int
    hits_b: int
    event: str
    pair: str
    claim: Privacy
    rho_lower_bound: float | None
    unseen: float

    @property
    def smallest_violation(self) -> float:
        """The smallest true epsilon, or rho for zCDP, that could have been shown."""
        return smallest_violation(self.claim, trials=self.trials, level=self.level)

    def __repr__(self) -> str:
        found = "refuted" if self.refuted else "not refuted"
        return (
            f"AuditResult({found}; claimed epsilon={printed(self.claimed_epsilon)}; "
            f"epsilon_lower_bound={printed_down(self.epsilon_lower_bound, 4)}; "
            f"delta={printed(self.delta)}; level={self.level:g}; trials={self.trials})"
        )

    def __str__(self) -> str:
        epsilon, delta = self.claimed_epsilon, self.delta
        verdict = (
            f"The claim of {self.claim} is refuted at level {self.level:g}"
            if self.refuted
            else f"The claim of {self.claim} is not refuted, which proves nothing"
        )
        where = f" for {self.pair}" if self.pair else ""
        shown = "the outputs are consistent with every epsilon"
        if self.epsilon_lower_bound > 0:
            shown = f"this shows an epsilon of at least {printed_down(self.epsilon_lower_bound, 4)}"
        if self.rho_lower_bound is not None:
            implied = ApproxDP(epsilon, delta) if delta > 0 else PureDP(epsilon)
            shown += (
                f", where {implied} is implied. Renyi divergences show a rho of at least "
                f"{printed_down(self.rho_lower_bound, 4)}"
            )
        return (
            f"{verdict}. The event ({self.event}) held for {self.hits_a} of {self.trials} outputs "
            f"on the first input and for {self.hits_b} on the second{where}; {shown}. {self.limits}"
        )

    @property
    def limits(self) -> str:
        """What an audit of this size could not have seen, in sentences."""
        least, name = self.smallest_violation, "rho" if isinstance(self.claim, ZCDP) else "epsilon"
        seen = f"The smallest {name} that so many outputs could have shown is {least:.4g}"
        if least == math.inf:
            seen = "So few outputs could not have shown any violation"
        if self.unseen > 0:
            seen += f". Differences up to {self.unseen:.2g} were taken for rounding errors"
        return f"{seen}."
