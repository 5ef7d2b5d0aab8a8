"""Planted faults: which test notices each of them.

This figure belongs to no paper. The question is whether the tests of this library see the faults
that break privacy or a bound (GEN-1).

Every fault is one edit of one function, for instance a wrong sensitivity, half the noise, one draw
for two purposes, a missing composition, a wrong exponent, or a ledger that pays after the noise is
drawn. A fault is planted in the memory of a separate process, which runs the tests listed with the
fault. The first test that fails has caught the fault. The same tests pass without a fault.

Claims: every planted fault is caught, and no test fails without a fault. A new fault is one row in
`experiments/privacy/faults`.

The results depend on the tests too, but a changed test does not mark them as stale. Run this script
again after a change of the tests. Run time on one core: quick 15 s, full 45 minutes.
"""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
from experiments.engine.script import Needs
from experiments.planting.catalogue import FAULT_FILES, FAULTS, PARTS
from experiments.planting.runs import failing_test
from geomdp import audit, bounds, mechanisms, noise, privacy

NEEDS = Needs(("pytest", "xdist", "hypothesis", "mpmath"), "dev")
#: Results are stale when code of these packages changes, or code that they use. Every fault is
#: planted in one of these packages or in code that they use.
PLANTED_IN = (audit, bounds, mechanisms, noise, privacy)
#: The faults count as code: results are stale when one of these files changes.
DATA_FILES = tuple(FAULT_FILES.values())
#: Faults of the quick preset, which takes about 15 seconds.
SAMPLE = (
    "ledger: the new spend is not counted",
    "ledger: pure spends cost half under zCDP",
    "ledger: deltas cost nothing",
)


@dataclass(frozen=True)
class Config:
    """One fault, or none."""

    part: str  # The part of the library that holds the fault, a key of `PARTS`
    fault: str | None  # Name of the fault in the catalogue; None for the control
    sample: bool = False  # Whether the control runs the tests of `SAMPLE` only


def tests_of(config: Config) -> list[str]:
    """The tests of the fault; for a control, the tests of all faults of the part or of `SAMPLE`."""
    if config.fault is not None:
        return list(FAULTS[config.fault].tests)
    names = [fault.name for fault in PARTS[config.part]]
    chosen = [name for name in names if name in SAMPLE] if config.sample else names
    return list(dict.fromkeys(test for name in chosen for test in FAULTS[name].tests))


def compute(config: Config, _: np.random.Generator) -> ex.Row:
    """Run the tests, up to the first failure, in a process of their own."""
    fault = None if config.fault is None else FAULTS[config.fault]
    first = failing_test(fault.edit if fault else None, tests_of(config))
    return {
        "failed": first is not None,
        "caught_by": first or "",
        "tests": " ".join(tests_of(config)),
        "breaks": fault.breaks if fault else "nothing",
    }


def claims(table: pd.DataFrame) -> ex.Claims:
    planted, control = table[table.fault.notna()], table[table.fault.isna()]
    missed = list(planted.fault[~planted.failed])
    alarms = list(control.part[control.failed])
    name = "every planted fault is caught by a test"
    measured = f"{int(planted.failed.sum())} of {len(planted)} by a failing test" + (
        f"; not {', '.join(missed)}" if missed else ""
    )
    yield ex.Claim(name, ex.each_case(not missed), measured, "all", "GEN-1")
    name = "without a fault no test fails"
    measured = f"{len(alarms)} of {len(control)} parts with a failing test"
    yield ex.Claim(name, ex.each_case(not alarms), measured, "none", "GEN-1")


def plot(table: pd.DataFrame) -> ex.Figure:
    planted = table[table.fault.notna()].copy()
    planted["failed"] = planted.failed.astype(bool)
    planted["file"] = planted.caught_by.fillna("").str.split("::").str[0]
    parts = sorted(planted.part.unique(), key=lambda part: -(planted.part == part).sum())
    figure = ex.Figure(figsize=(7.2, 1.3 + 0.38 * len(parts)))
    axes = figure.subplots()
    for height, part in enumerate(parts):
        mine = planted[planted.part == part]
        caught, total = int(mine.failed.sum()), len(mine)
        axes.barh(height, total, height=0.6, color=ex.IMPOSSIBLE)
        axes.barh(height, caught, height=0.6, color="C0")
        files = mine.file[mine.failed].nunique()
        words = f"{caught} of {total}, by {files} test file{'s' * (files != 1)}"
        ex.note(axes, (total, height), words, "black", (6, 0), "left")
    axes.set_yticks(range(len(parts)), parts)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.45 * planted.groupby("part").size().max())
    axes.grid(axis="y", visible=False)
    axes.set_xlabel("planted faults that a test catches")
    result = f"Tests catch {int(planted.failed.sum())} of {len(planted)} planted faults"
    return ex.headline(figure, result, "Each fault is one edit that breaks privacy or a bound.")


def _sweep(names: Collection[str], *, sample: bool) -> ex.Sweep[Config]:
    cells = [
        Config(part, fault.name)
        for part, faults in PARTS.items()
        for fault in faults
        if fault.name in names
    ]
    controls = ex.product(Config, dict.fromkeys(c.part for c in cells), None, sample)
    return ex.Sweep((*controls, *cells))


QUICK = _sweep(SAMPLE, sample=True)
FULL = _sweep(FAULTS, sample=False)
