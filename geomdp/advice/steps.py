"""What may follow noisy answers: steps that read nothing else and so cost no privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from geomdp.mechanisms import AdditiveMechanism, Fitted, Mechanism, Projected, Shrunk


@dataclass(frozen=True)
class Step:
    """Post-processing of noisy answers.

    Parameters
    ----------
    kind : callable
        The class of the mechanism with the step, which takes the one whose answers are noisy.
    name : str
        Its name.
    prefix : str
        What the command line puts before the name of the noise.
    does : str
        What it does to the noisy answers, as a participle.
    """

    kind: Callable[[AdditiveMechanism], Mechanism]
    name: str
    prefix: str
    does: str


SHRUNK = Step(
    Shrunk,
    "Shrunk",
    "shrunk-",
    "moving the noisy answers towards those of uniform data, and to attainable ones,",
)
PROJECTED = Step(
    Projected, "Projected", "projected-", "moving the noisy answers to the nearest attainable ones"
)
#: Never compared: its error is mostly less than that of `PROJECTED`, but its bound is twice that.
FITTED = Step(
    Fitted,
    "Fitted",
    "fitted-",
    "taking the attainable answers that fit the noisy ones best in the norm of the noise",
)
STEPS = (PROJECTED, FITTED, SHRUNK)
