"""Steps of post-processing. They read noisy answers but no records, so they cost no privacy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from geomdp.mechanisms import AdditiveMechanism, Fitted, Mechanism, Projected, Shrunk


@dataclass(frozen=True)
class Step:
    """A step of post-processing that improves noisy answers.

    `does` begins with a participle. `prefix` precedes the name of the noise on the command line.
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
#: The proved bound on the error after this step is at least the bound for `PROJECTED`, and mostly
#: twice as large. But in releases, the errors after this step are mostly smaller than after
#: `PROJECTED`. So the advisor judges this step by simulation on public data sets (`with_fit`).
FITTED = Step(
    Fitted,
    "Fitted",
    "fitted-",
    "taking the attainable answers that fit the noisy ones best in the norm of the noise",
)
STEPS = (PROJECTED, FITTED, SHRUNK)
