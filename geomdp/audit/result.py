"""The result of an audit."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AuditResult:
    """The result of an audit.

    Parameters
    ----------
    refuted : bool
        Whether the claim was shown to be false, at confidence 1 - `level`. The value False proves
        nothing.
    epsilon_lower_bound : float
        The mechanism is not (epsilon', `delta`)-DP for any epsilon' below this, at the same
        confidence; 0 if the test gives no positive bound.
    claimed_epsilon, delta : float
        The claim tested; delta is 0 for pure DP. For a zCDP claim, the implied (epsilon, delta)
        that the outputs contradict most.
    level : float
        Upper bound on the probability of refuting a true claim.
    trials : int
        Number of outputs per input that test the event.
    hits_a, hits_b : int
        Number of these outputs in the event, for the first and for the second input.
    event : str
        The event, in words.
    pair : str
        The neighbouring inputs, in words, where the audit searched for them; otherwise empty.
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
    pair: str = ""

    def __repr__(self) -> str:
        return f"AuditResult({self})"

    def __str__(self) -> str:
        verdict = "refuted" if self.refuted else "not refuted (which proves nothing)"
        where = f" on {self.pair}" if self.pair else ""
        return (
            f"{verdict}{where}: claimed epsilon {self.claimed_epsilon:g}, at least "
            f"{self.epsilon_lower_bound:.4g} at delta {self.delta:g} (level {self.level:g}; "
            f"{self.event} in {self.hits_a} and {self.hits_b} of {self.trials})"
        )
