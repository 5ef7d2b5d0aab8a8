"""Noise that is changed on purpose, and audits of it."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import geomdp as gd
from experiments.engine.statistics import LEVEL
from experiments.privacy.audited_mechanisms import (
    DISCRETE,
    FINITE,
    Family,
    audited_outputs,
    subject,
)

FloatArray = npt.NDArray[np.float64]


class Fault(enum.StrEnum):
    """What is wrong with the noise, in the order of the legend."""

    CORRECT = "correct"
    SCALED = "scaled"
    NONE = "no noise"
    DEAD = "a dead coordinate"
    SHARED = "one draw for both"
    SUBSPACE = "wrong subspace"
    HALF = "half the noise"


#: Faults that an audit of any kind of noise can refute with few draws, and all planted faults.
UNHIDDEN = (Fault.NONE, Fault.DEAD, Fault.SHARED, Fault.SUBSPACE)
PLANTED = (*UNHIDDEN, Fault.HALF)


@dataclass(frozen=True)
class Faulty:
    """Noise whose draws are changed."""

    noise: gd.audit.AdditiveNoise  # The correct noise
    change: Callable[[FloatArray], FloatArray]  # A map from draws (b, m) to faulty draws (b, m)

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Faulty draws (size, m)."""
        return self.change(self.noise.sample(rng, size))


#: A direction in which neighbours differ, but in which noise with `Fault.SUBSPACE` does not vary.
MISSED = np.array([0.6, 0.8])
CHANGES: dict[Fault, Callable[[FloatArray], FloatArray]] = {
    Fault.CORRECT: lambda draws: draws,
    Fault.NONE: lambda draws: 0 * draws,
    Fault.DEAD: lambda draws: draws * [1.0, 0.0],
    Fault.SHARED: lambda draws: draws[:, [0, 0]],
    Fault.SUBSPACE: lambda draws: draws - np.outer(draws @ MISSED, MISSED),
    Fault.HALF: lambda draws: draws / 2,
}


def audited(
    family: Family, change: Callable[[FloatArray], FloatArray], trials: int, seed: int
) -> gd.audit.AuditResult:
    """One audit of a mechanism whose draws are changed."""
    found = subject(family)
    default = gd.audit.DEFAULT_LEARNERS
    return gd.audit.audit_noise(
        Faulty(found.noise, change),
        found.workload,
        found.guarantee,
        trials=trials,
        learners=default if found.density else (*default, gd.audit.CLASSIFIER),
        density=found.density,
        level=LEVEL,
        rng=seed,
    )


def audited_scaled(family: Family, factor: float, trials: int, seed: int) -> gd.audit.AuditResult:
    """One audit of a mechanism whose noise is scaled by `factor`."""
    if family in FINITE:
        return audited_outputs(DISCRETE[family], factor, trials, seed)
    return audited(family, lambda draws: factor * draws, trials, seed)
