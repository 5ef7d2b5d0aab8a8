"""Noise of additive mechanisms that is changed on purpose, and audits of it."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import geomdp as gd
from experiments.engine.statistics import LEVEL

FloatArray = npt.NDArray[np.float64]
PURE, CONCENTRATED = gd.PureDP(1.0), gd.ZCDP(0.5)
#: Number of records of the mechanisms; the noise on sums does not depend on it.
RECORDS = 100


class Family(enum.StrEnum):
    """Additive mechanisms, from the top of the figure to the bottom."""

    GAUSSIAN = "Gaussian"
    LAPLACE = "Laplace"
    BALL = "Ball"
    ELLIPSOID = "Ellipsoid"
    KNORM = "KNorm"
    RECURSIVE = "Recursive"
    CONE = "Cone"
    TIGHT_CONE = "TightCone"
    SPECTRAL = "Spectral"
    MATRIX = "Matrix"
    HIERARCHICAL = "Hierarchical"


#: Noise whose density is known in closed form.
KNOWN = (
    Family.GAUSSIAN,
    Family.LAPLACE,
    Family.BALL,
    Family.ELLIPSOID,
    Family.KNORM,
    Family.RECURSIVE,
)


class Fault(enum.StrEnum):
    """What is wrong with the noise, in the order of the legend."""

    CORRECT = "correct"
    SCALED = "scaled"
    NONE = "no noise"
    DEAD = "a dead coordinate"
    SHARED = "one draw for both"
    SUBSPACE = "wrong subspace"
    HALF = "half the noise"


#: Faults that show in every kind of noise, and all planted faults.
UNHIDDEN = (Fault.NONE, Fault.DEAD, Fault.SHARED, Fault.SUBSPACE)
PLANTED = (*UNHIDDEN, Fault.HALF)


@functools.cache
def mechanism(family: Family) -> gd.mechanisms.AdditiveMechanism:
    """The mechanism for two counting queries on two bits."""
    kinds: dict[Family, Callable[..., gd.mechanisms.AdditiveMechanism]] = {
        Family.GAUSSIAN: gd.mechanisms.Gaussian,
        Family.LAPLACE: gd.mechanisms.Laplace,
        Family.BALL: gd.mechanisms.Ball,
        Family.ELLIPSOID: gd.mechanisms.Ellipsoid,
        Family.KNORM: functools.partial(gd.mechanisms.KNorm, exact=True),
        Family.RECURSIVE: gd.mechanisms.Recursive,
        Family.CONE: gd.mechanisms.Cone,
        Family.TIGHT_CONE: gd.mechanisms.TightCone,
        Family.SPECTRAL: gd.mechanisms.Spectral,
        Family.MATRIX: gd.mechanisms.Matrix,
        Family.HIERARCHICAL: gd.mechanisms.Hierarchical,
    }
    privacy = CONCENTRATED if family is Family.GAUSSIAN else PURE
    return kinds[family](gd.workloads.Marginals(2, 1), n=RECORDS, privacy=privacy)


@dataclass(frozen=True)
class Faulty:
    """Noise whose draws are changed."""

    noise: gd.audit.AdditiveNoise  # The correct noise
    change: Callable[[FloatArray], FloatArray]  # A map from draws (b, 2) to faulty draws

    def sample(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Faulty draws (size, 2)."""
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
    M = mechanism(family)
    density = gd.audit.stated_density(M.noise)
    default = gd.audit.DEFAULT_LEARNERS
    return gd.audit.audit_noise(
        Faulty(M.noise, change),
        M.workload,
        M.guarantee,
        trials=trials,
        learners=default if density else (*default, gd.audit.CLASSIFIER),
        density=density,
        level=LEVEL,
        rng=seed,
    )
