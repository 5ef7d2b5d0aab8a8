"""Steps of post-processing: they read the noisy answers only, so they cost no privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from geomdp.mechanisms import AdditiveMechanism, Fitted, Mechanism, Projected, Shrunk


@dataclass(frozen=True)
class Step:
    """A step of post-processing that turns noisy answers into better ones.

    Parameters
    ----------
    kind : callable
        Class of the mechanism that includes the step; it is called with the additive mechanism.
    name : str
        Name of the step in tables.
    prefix : str
        What is put before the name of the noise on the command line to ask for the step.
    does : str
        What the step does to the noisy answers, as a phrase that begins with a participle.
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
#: The advisor never tries this step. Errors after it are mostly below those after `PROJECTED`, but
#: the proved bound is twice as large. So the step could never have the least predicted error.
FITTED = Step(
    Fitted,
    "Fitted",
    "fitted-",
    "taking the attainable answers that fit the noisy ones best in the norm of the noise",
)
STEPS = (PROJECTED, FITTED, SHRUNK)
