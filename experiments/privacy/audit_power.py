"""What an audit can see: how much noise must be missing before a privacy claim is refuted.

Clopper and Pearson 1934; Ding, Wang, Wang, Zhang and Kifer 2018. Formula sheet GEN-2, JL-L14.

Claim: an audit at level 1e-6 draws noise for two neighbouring inputs, searches for the worst
neighbours, scores and threshold on one half of the draws, and tests one event on the other half.
It refutes no true claim. It refutes every additive mechanism without noise, with a coordinate that
gets no noise, with one draw for two coordinates, with noise in a subspace that misses a direction
in which neighbours differ, or with noise of half the size. With more draws it refutes noise that is
closer to the correct size, closest where the density of the noise is known.

The workload has two counting queries, whose answers on one record form the square {0, 1}^2, and
epsilon = 1 or rho = 1/2. The audits of one search share a seed. Only noise with a known density is
audited with a million draws; for other noise a classifier finds the events, which takes longer.
A draw of spectral noise takes a millisecond. It is therefore audited in the full run only, and not
with noise of half the size, which 20,000 draws do not refute. Run time on one core: quick 25 s,
full 2 minutes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.engine import margins
from experiments.engine.cells import Row, Sweep
from experiments.engine.claims import Claim
from experiments.engine.drawing import Look, draw_points, shared_legend
from experiments.engine.script import Needs
from experiments.engine.statistics import LEVEL
from experiments.privacy.faulty_noise import (
    CHANGES,
    KNOWN,
    PLANTED,
    UNHIDDEN,
    Family,
    Fault,
    audited,
)

#: The classifier learns events for noise whose density is not known.
NEEDS = Needs(("sklearn",), extra="audit")
#: Noise factors between which the largest one refuted is searched, and the width at which to stop.
SMALLEST, LARGEST, WIDTH = 0.05, 1.0, 0.02


@dataclass(frozen=True)
class Config:
    """One mark of the figure."""

    family: Family  # Mechanism
    fault: Fault  # What is wrong with its noise; `SCALED` searches for the largest factor refuted
    trials: int  # Draws for each of the two inputs of one audit
    audits: int  # Number of audits


def compute(config: Config, rng: np.random.Generator) -> list[Row]:
    """Verdicts and bounds of audits, or the largest noise factor that an audit refutes."""
    if config.fault is Fault.SCALED:
        return [{"factor": largest_refuted(config, int(rng.integers(2**63)))}]
    rows: list[Row] = []
    for _ in range(config.audits):
        change = CHANGES[config.fault]
        found = audited(config.family, change, config.trials, int(rng.integers(2**63)))
        share = found.epsilon_lower_bound / found.claimed_epsilon
        rows.append({"refuted": found.refuted, "share": share, "event": found.event})
    return rows


def largest_refuted(config: Config, seed: int) -> float:
    """The largest noise factor refuted, to within `WIDTH`, with the same draws for each factor."""

    def refuted(factor: float) -> bool:
        found = audited(config.family, lambda draws: factor * draws, config.trials, seed)
        return found.refuted

    low, high = SMALLEST, LARGEST
    while high - low > WIDTH:
        middle = (low + high) / 2
        low, high = (middle, high) if refuted(middle) else (low, middle)
    return low


def claims(table: pd.DataFrame) -> list[Claim]:
    """No false alarm, every planted fault refuted, and more draws see smaller faults."""
    true = table[table.fault == Fault.CORRECT]
    planted = table[table.fault.isin(PLANTED)]
    missed = planted[planted.refuted != True]  # noqa: E712 (a column of objects)
    searched = table[table.fault == Fault.SCALED]
    power = searched.set_index(["family", "trials"]).factor.sort_index()
    grown = power.groupby("family").agg(lambda factors: factors.diff().min())
    known = power[power.index.get_level_values("family").isin(KNOWN)]
    most = known.groupby("family").last()
    return [
        Claim(
            "no true claim is refuted",
            not true.refuted.any(),
            f"{int(true.refuted.sum())} of {len(true)} audits of {true.family.nunique()} "
            "mechanisms",
            f"0; each is false with probability at most {LEVEL:g}",
            "GEN-2",
            used=margins.NoLimit.EVERY_CASE,
        ),
        Claim(
            "every fault that was planted is refuted",
            len(missed) == 0,
            f"{len(planted) - len(missed)} of {len(planted)}"
            + "".join(f"; not {row.fault} in {row.family}" for row in missed.itertuples()),
            f"{len(planted)}, in {planted.family.nunique()} mechanisms",
            "GEN-2",
            used=margins.NoLimit.EVERY_CASE,
        ),
        Claim(
            "the noise factor refuted grows with the number of draws",
            bool((grown.dropna() > 0).all()),
            f"least gain {grown.min():.2f}",
            "above 0",
            "Clopper-Pearson 1934",
            used=margins.NoLimit.ORDER,
        ),
        Claim(
            "known densities: seven tenths of the noise are refuted",
            bool((most >= 0.7).all()),
            ", ".join(f"{name}: {factor:.2f}" for name, factor in most.items()),
            "at least 0.7 with the most draws",
            "Clopper-Pearson 1934",
            used=margins.inverse_share(most, 0.7),
        ),
    ]


LOOKS = {
    Fault.NONE: Look("C6", "o"),
    Fault.DEAD: Look("C0", "s"),
    Fault.SHARED: Look("C2", "v"),
    Fault.SUBSPACE: Look("C5", "^"),
    Fault.HALF: Look("C3", "D"),
    Fault.CORRECT: Look("C6", "|"),
}
#: Heights of marks within the row of a mechanism. The faults that no noise hides all have the same
#: bound on epsilon, the largest that their number of draws can give, so their marks would coincide.
OFFSETS = {Fault.NONE: 0.3, Fault.DEAD: 0.1, Fault.SHARED: -0.1, Fault.SUBSPACE: -0.3}
SIZES = {10_000: Look("C5", "o"), 100_000: Look("C0", "s"), 1_000_000: Look("C3", "D")}
LIMIT = r"correct noise, claimed $\varepsilon$"


def size_label(trials: int) -> str:
    """Number of draws, for the legend."""
    return f"$10^{round(math.log10(trials))}$ draws"


def plot(table: pd.DataFrame) -> Figure:
    """The noise factor refuted, and the bound on epsilon for each planted fault."""
    figure = Figure(figsize=(7.2, 5.6))
    power, faults = figure.subplots(1, 2, sharey=True)
    shown = [family for family in Family if (table.family == family).any()]
    heights = {family: -row for row, family in enumerate(shown)}
    searched = table[table.fault == Fault.SCALED]
    for trials, look in SIZES.items():
        mine = searched[searched.trials == trials]
        if len(mine):
            rows = mine.family.map(heights)
            draw_points(power, mine.factor, rows, look, size_label(trials), "none", size=6)
    for fault, look in LOOKS.items():
        mine = table[table.fault == fault]
        rows = mine.family.map(heights) + OFFSETS.get(fault, 0.0)
        size = 3.5 if fault in OFFSETS else 6
        draw_points(faults, mine.share, rows, look, fault, "none", size=size)
    rule(power)
    rule(faults)
    power.set_yticks(list(heights.values()), list(heights))
    power.set_xlim(0.3, 1.03)
    faults.set_xlim(left=0)
    power.set_xlabel("largest noise factor refuted")
    faults.set_xlabel(r"lower bound on $\varepsilon$ / claimed $\varepsilon$")
    power.set_title("(a) noise that is too small")
    faults.set_title("(b) planted faults")
    shared_legend(
        figure,
        (power, faults),
        {
            "draws in (a)": [size_label(trials) for trials in SIZES],
            "noise in (b)": [Fault.CORRECT, *PLANTED],
            "limit in both": [LIMIT],
        },
    )
    return figure


def rule(axes: Axes) -> None:
    """A dotted line at 1."""
    axes.axvline(1.0, color="0.35", lw=1.1, ls=(0, (1, 2)), label=LIMIT)
    axes.grid(axis="y", visible=False)


def planted(
    families: Sequence[Family],
    audits: int,
    few: int = 4_000,
    faults: Sequence[Fault] = PLANTED,
) -> tuple[Config, ...]:
    """Audits of mechanisms with correct and with faulty noise, most of them with `few` draws."""
    return tuple(
        config
        for family in families
        for config in (
            Config(family, Fault.CORRECT, few, audits),
            *(Config(family, fault, 40_000 if fault is Fault.HALF else few, 1) for fault in faults),
        )
    )


def scaled(families: Sequence[Family], *trials: int) -> tuple[Config, ...]:
    """Searches for the largest noise factor refuted."""
    return tuple(Config(family, Fault.SCALED, each, 1) for family in families for each in trials)


FAST = tuple(family for family in Family if family is not Family.SPECTRAL)
LEARNED = tuple(family for family in FAST if family not in KNOWN)
QUICK = Sweep(planted(FAST, 2) + scaled(KNOWN, 10_000, 100_000), trials=1, seed=0)
FULL = Sweep(
    planted(FAST, 10)
    + planted((Family.SPECTRAL,), 2, few=1_000, faults=UNHIDDEN)
    + scaled(LEARNED, 10_000, 100_000)
    + scaled(KNOWN, 10_000, 100_000, 1_000_000),
    trials=1,
    seed=0,
)
