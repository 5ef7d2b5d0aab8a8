"""How an iterative construction divides its target accuracy between its three sources of error."""

from __future__ import annotations

from dataclasses import dataclass

from geomdp._validation import positive


@dataclass(frozen=True)
class StoppingDesign:
    """How much of the target accuracy alpha noise, distinguisher and stopping test get (IC-T5).

    The noise on an answer v is at most `noise` alpha, the gap of the chosen query is within `loss`
    alpha of the largest, and the run stops if |v - Q(H)| < `level` alpha. Then every update is
    valid if level - noise >= 1/2, and at a stop no query errs by more than
    (level + noise + loss) alpha. ``ValueError`` for a share that is not above 0, or
    level - noise below 1/2.
    """

    noise: float
    loss: float
    level: float

    def __post_init__(self) -> None:
        for name in ("noise", "loss", "level"):
            positive(getattr(self, name), name)
        if self.level - self.noise < 0.5:
            raise ValueError(
                f"level - noise must be at least 1/2 for a valid update, got {self.level} - "
                f"{self.noise}"
            )

    @property
    def guaranteed(self) -> float:
        """Bound on the error of every query when the test stops the run, in units of alpha."""
        return max(1.0, self.level + self.noise + self.loss)


#: Noise and loss at alpha / 8: stopping guarantees error alpha (the corrected Theorem 5).
CORRECTED = StoppingDesign(noise=1 / 8, loss=1 / 8, level=3 / 4)
#: As printed, with noise alpha / 4 and loss alpha / 2: it guarantees 3 alpha / 2 only (DISC-13).
PRINTED = StoppingDesign(noise=1 / 4, loss=1 / 2, level=3 / 4)
