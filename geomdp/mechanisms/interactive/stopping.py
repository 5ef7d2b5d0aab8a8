"""Divide the target accuracy of an iterative construction among sources of error."""

from __future__ import annotations

from dataclasses import dataclass

from geomdp._validation import positive


@dataclass(frozen=True)
class StoppingDesign:
    """Shares of the target accuracy alpha for noise, distinguisher and stopping test (IC-T5).

    In a round, the distinguisher finds a query Q on which the hypothesis H errs, and v is the noisy
    answer to Q. With probability at least 1 - beta, in all rounds the noise in v is at most
    noise * alpha, and H errs on any query by at most loss * alpha more than on Q. The run stops if
    |v - Q(H)| < level * alpha. Then H errs by at most (level + noise + loss) * alpha on every
    query. Else H errs by at least (level - noise) * alpha on Q. An update needs an error of at
    least alpha / 2, so level - noise must be at least 1/2. ``ValueError`` for a share that is not
    above 0, or level - noise below 1/2.

    Examples
    --------
    >>> import geomdp as gd
    >>> design = gd.mechanisms.StoppingDesign(noise=1 / 8, loss=1 / 4, level=5 / 8)
    >>> design.guaranteed
    1.0
    >>> gd.mechanisms.printed.PRINTED_STOPPING.guaranteed
    1.5
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
        """Bound on the error of every query after a stop, in units of alpha; at least 1."""
        return max(1.0, self.level + self.noise + self.loss)


#: With noise and loss alpha / 8 and level 3 alpha / 4, a stop guarantees an error of at most alpha
#: (IC-T5 with corrected constants).
CORRECTED = StoppingDesign(noise=1 / 8, loss=1 / 8, level=3 / 4)
