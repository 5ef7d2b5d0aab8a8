"""At its quick preset, every script completes all cells, fulfils all claims and writes all files.

The first command of the README tests this, too: ``python -m experiments reproduce --quick`` fails
if a cell or claim fails. The command leaves out scripts that need an extra that is not installed.
`.ci/run` runs the command before this suite, and the other scripts (marker `ci`) after this suite.
So the default suite runs no script, and ``pytest -m 'slow or ci'`` runs all scripts.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from experiments.catalogue import SCRIPTS
from experiments.engine.reproduce import Folders, reproduce
from experiments.engine.script import ComparesWithPeers, Preset, load
from tests.readme import commands

#: Scripts that the first command of the README leaves out, because they need packages of an extra
#: that the command does not install.
LEFT_OUT = {
    "experiments.privacy.planted_faults",
    "experiments.mutants.mutants",
    "experiments.privacy.audit_power",
    "experiments.benchmarks.accuracy_table",
    "experiments.benchmarks.geometry",
    "experiments.benchmarks.exact",
    "experiments.benchmarks.release",
}


def test_the_first_command_of_the_readme_runs_all_other_scripts() -> None:
    first = commands("pip")[0]
    installed = re.search(r"'\.\[([\w,]+)\]' && python -m experiments reproduce --quick$", first)
    assert installed is not None
    extras = installed[1].split(",")
    modules = {name: load(name).module for name in SCRIPTS}
    needy = {
        name
        for name, module in modules.items()
        if isinstance(module, ComparesWithPeers) and module.NEEDS.extra not in extras
    }
    assert needy == LEFT_OUT


@pytest.mark.statistical
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.ci if name in LEFT_OUT else pytest.mark.slow)
        for name in SCRIPTS
    ],
)
def test_every_claim_holds_at_the_quick_preset(name: str, tmp_path: Path) -> None:
    report = reproduce(
        load(name), Preset.QUICK, Folders(tmp_path / "results", tmp_path / "figures")
    )
    assert not report.failures, report.failures[0].traceback
    assert report.claims
    failed = [claim for claim in report.claims if not claim.passed]
    assert not failed, failed
    for path in (report.outputs.csv, report.outputs.record, *report.outputs.images):
        assert path.stat().st_size > 0


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_quick_preset_has_the_same_kinds_of_cells_and_no_more_of_them(name: str) -> None:
    script = load(name)
    quick, full = script.sweep(Preset.QUICK), script.sweep(Preset.FULL)
    assert len(quick.cells()) <= len(full.cells())
    assert {type(c) for c in quick.configurations} == {type(c) for c in full.configurations}
