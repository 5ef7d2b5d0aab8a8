"""How much noise must be missing before an audit refutes a privacy claim.

Clopper and Pearson 1934; Ding, Wang, Wang, Zhang and Kifer 2018. Formula sheet GEN-2, JL-L14.

Claim: an audit at level 1e-6 draws outputs for two neighbouring inputs. On one half of the draws,
it chooses the event "a score of the output reaches a threshold" that contradicts the claim most. On
the other half, it tests this event. It refutes no true claim. For two counting queries, it refutes
every additive mechanism that adds no noise, adds no noise to one coordinate, uses one draw for both
coordinates, draws noise from a subspace that misses a direction in which neighbours differ, or
halves the noise (except spectral noise). The noise is also multiplied by factors below 1. With more
draws, an audit refutes factors closer to 1. Where the laws of the outputs are known, the lemma of
Neyman and Pearson gives the best event, which refutes the claim for a factor with the fewest draws.
An audit needs about twice as many draws, because it tests on one half of them.

Most mechanisms answer two counting queries, whose answers on one record form the square {0, 1}^2,
with epsilon = 1 or rho = 1/2. A search for the largest noise factor that audits refute uses one
seed for all its audits. SecondMoment, PairMarginals and Covariance are audited before the last
step, a projection. This step does not read the records, so no event of its output refutes smaller
faults than events of its input do. For the same reason, audits of Projected, JL, Coarse, Shrunk
and Fitted have at most the power of an audit of the noise inside them. Audits of SparseProject with
Gaussian noise on rows have at most the power of audits of Gaussian at the same rho.

The set-up of spectral noise takes 8 s, so spectral noise is audited in the full run only. The fault
of half the noise is left out there, because 20,000 draws do not refute it. Run time on one core:
quick 50 s, full 6 minutes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.engine import margins
from experiments.engine.cells import Row, Sweep
from experiments.engine.claims import Claim
from experiments.engine.goals import Goal
from experiments.engine.processor_time import timed
from experiments.engine.script import Needs
from experiments.engine.statistics import LEVEL
from experiments.privacy.audit_power_goals import (
    LEAST_MEAN_SHARE,
    LEAST_SHARE,
    open_goals,
    shares_of_draws,
)
from experiments.privacy.audit_power_panels import drawn
from experiments.privacy.audited_mechanisms import (
    FINITE,
    KNOWN,
    NORMAL,
    SQUARE,
    Family,
    claim,
    laws,
)
from experiments.privacy.best_events import best_factor, draws_needed, largest_factor
from experiments.privacy.faulty_noise import (
    CHANGES,
    PLANTED,
    UNHIDDEN,
    Fault,
    audited,
    audited_scaled,
)

#: scikit-learn has the classifier that learns events for noise whose density is not known.
NEEDS = Needs(("sklearn",), extra="audit")
CLOCK = ("seconds",)
#: Factors by which these faults multiply the noise.
FACTORS = {Fault.CORRECT: 1.0, Fault.HALF: 0.5}


@dataclass(frozen=True)
class Config:
    """One mark of the figure."""

    family: Family  # Mechanism
    fault: Fault  # What is wrong with its noise; `SCALED` searches for the largest factor refuted
    trials: int  # Draws for each of the two inputs of one audit
    audits: int  # Number of audits


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """Verdicts and bounds of audits, or the largest noise factors that audits refute."""
    audit_rows = searched if config.fault is Fault.SCALED else verdict
    return [audit_rows(config, int(rng.integers(2**63))) for _ in range(config.audits)]


def verdict(config: Config, seed: int) -> Row:
    """One audit of correct noise or of noise with a fault."""
    seconds: list[float] = []
    with timed(seconds):
        if config.fault in FACTORS:
            factor = FACTORS[config.fault]
            found = audited_scaled(config.family, factor, config.trials, seed)
        else:
            found = audited(config.family, CHANGES[config.fault], config.trials, seed)
    share = found.epsilon_lower_bound / found.claimed_epsilon
    return {"refuted": found.refuted, "share": share, "event": found.event, "seconds": seconds[0]}


def searched(config: Config, seed: int) -> Row:
    """The largest noise factor that audits refute, compared with the best event.

    All factors are tried with the same seed. `seconds` is the time of the whole search. If no
    factor is refuted, `factor` is 0. Only mechanisms in `KNOWN` have two more entries. `needed` is
    the number of draws with which the best event refutes `factor`, or 1 if `factor` is 0. `best` is
    the largest factor that the best event refutes with `config.trials` draws.
    """
    family, seconds = config.family, list[float]()
    with timed(seconds):
        factor = largest_factor(
            lambda scale: audited_scaled(family, scale, config.trials, seed).refuted
        )
    row: Row = {"factor": factor, "seconds": seconds[0]}
    if family in KNOWN:
        row["needed"] = draws_needed(laws(family, factor), claim(family)) if factor > 0 else 1.0
        row["best"] = best_factor(lambda scale: laws(family, scale), claim(family), config.trials)
    return row


def claims(table: pd.DataFrame) -> list[Claim]:
    """No true claim is refuted, each planted fault is, and more draws refute smaller faults."""
    true = table[table.fault == Fault.CORRECT]
    planted = table[table.fault.isin(PLANTED)]
    missed = planted[planted.refuted != True]  # noqa: E712 (a column of objects)
    scaled_noise = table[table.fault == Fault.SCALED]
    power = scaled_noise.groupby(["family", "trials"]).factor.mean()
    grown = power.groupby("family").agg(lambda factors: factors.diff().min())
    known = power[power.index.get_level_values("family").isin(KNOWN)]
    most = known.drop(list(FINITE), errors="ignore").groupby("family").last()
    # Audits of zCDP use more than one event, so the best event is no limit for them.
    shares = shares_of_draws(table).drop([Family.SPARSE, *NORMAL], errors="ignore")
    mean = math.exp(np.log(shares).mean())
    return [
        Claim(
            "audits refute no true privacy claim",
            not true.refuted.any(),
            f"{int(true.refuted.sum())} of {len(true)} audits of {true.family.nunique()} "
            "mechanisms",
            f"0; each audit errs with probability at most {LEVEL:g}",
            "GEN-2",
            used=margins.NoLimit.EVERY_CASE,
        ),
        Claim(
            "audits refute the claim of every mechanism with a planted fault",
            len(missed) == 0,
            f"{len(planted) - len(missed)} of {len(planted)}"
            + "".join(f"; not {row.fault} in {row.family}" for row in missed.itertuples()),
            f"{len(planted)}, in {planted.family.nunique()} mechanisms",
            "GEN-2",
            used=margins.NoLimit.EVERY_CASE,
        ),
        Claim(
            "with more draws, audits refute noise that is nearer to the correct size",
            bool((grown.dropna() > 0).all()),
            f"the largest refuted noise factor rises by at least {grown.min():.2f}",
            "above 0",
            "Clopper-Pearson 1934",
            used=margins.NoLimit.ORDER,
        ),
        Claim(
            "if the density of the noise is known, audits refute noise of 0.7 times the correct "
            "size",
            bool((most >= 0.7).all()),
            ", ".join(f"{name}: {factor:.2f}" for name, factor in most.items()),
            "largest factor refuted with the most draws: at least 0.7",
            "Clopper-Pearson 1934",
            used=margins.inverse_share(most, 0.7),
        ),
        Claim(
            "if the laws of the outputs are known, the best event refutes the same noise with 1/4 "
            "to 1 times the draws of an audit",
            bool(shares.between(LEAST_SHARE, 1).all() and mean >= LEAST_MEAN_SHARE),
            ", ".join(f"{name}: {share:.2f}" for name, share in shares.items())
            + f"; mean {mean:.2f}",
            f"without Sparse and zCDP: {LEAST_SHARE:g} to 1 each, {LEAST_MEAN_SHARE:g} or more on "
            "average; audits test on 1/2 of their draws",
            "Neyman-Pearson 1933",
            used=max(
                margins.inverse_share(shares, LEAST_SHARE),
                margins.share(shares, 1.0),
                margins.inverse_share(mean, LEAST_MEAN_SHARE),
            ),
        ),
    ]


def goals(table: pd.DataFrame) -> list[Goal]:
    """Goals for mechanisms, numbers of draws and speed, which audits may not meet yet."""
    return open_goals(table)


def plot(table: pd.DataFrame) -> Figure:
    """The largest noise factor refuted, and the bound on epsilon for each planted fault."""
    return drawn(table)


def planted(
    families: Sequence[Family], audits: int, few: int = 4_000, faults: Sequence[Fault] = PLANTED
) -> tuple[Config, ...]:
    """Audits of correct and faulty noise: 40,000 draws for halved noise, otherwise `few` draws."""
    return tuple(
        config
        for family in families
        for config in (
            Config(family, Fault.CORRECT, few, audits),
            *(Config(family, fault, 40_000 if fault is Fault.HALF else few, 1) for fault in faults),
        )
    )


def scaled(families: Sequence[Family], sizes: Mapping[int, int]) -> tuple[Config, ...]:
    """Searches for the largest noise factor refuted; `sizes` maps draws to numbers of searches."""
    return tuple(
        Config(family, Fault.SCALED, trials, searches)
        for family in families
        for trials, searches in sizes.items()
    )


FAST = tuple(family for family in SQUARE if family is not Family.SPECTRAL)
#: Mechanisms for other queries. Faults that need two counting queries are not planted in them. With
#: half the noise, 40,000 draws refute these mechanisms. For `REST`, 40,000 draws are too few.
HALVED = (
    Family.RESIDUAL,
    Family.SECOND_MOMENT,
    Family.PAIR_MARGINALS,
    Family.SMOOTH,
    Family.EXPONENTIAL,
    Family.NOISY_MAX,
    Family.PERMUTE,
)
REST = (Family.COVARIANCE, Family.ABOVE_THRESHOLD, Family.SPARSE)
#: Mechanisms, apart from spectral noise, whose density is not known. A classifier learns the score.
LEARNED = tuple(
    family for family in Family if family not in KNOWN and family is not Family.SPECTRAL
)
QUICK = Sweep(
    planted(FAST, 2)
    + planted(HALVED, 2, faults=(Fault.HALF,))
    + planted(REST, 2, faults=())
    + scaled(KNOWN, {10_000: 4, 100_000: 1}),
    trials=1,
    seed=0,
)
FULL = Sweep(
    planted(FAST, 10)
    + planted(HALVED, 10, faults=(Fault.HALF,))
    + planted(REST, 10, faults=())
    + planted((Family.SPECTRAL,), 2, few=1_000, faults=UNHIDDEN)
    + scaled(LEARNED, {10_000: 1, 100_000: 1})
    + scaled(KNOWN, {10_000: 8, 100_000: 3, 1_000_000: 1}),
    trials=1,
    seed=0,
)
