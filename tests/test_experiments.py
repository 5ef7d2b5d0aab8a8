"""Every script at its quick preset: all cells complete, all claims hold, all files are written."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.catalogue import SCRIPTS
from experiments.engine.reproduce import Folders, reproduce
from experiments.engine.script import Preset, load


@pytest.mark.statistical
@pytest.mark.parametrize("name", SCRIPTS)
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
def test_presets_differ_in_size_only_where_they_say_so(name: str) -> None:
    script = load(name)
    quick, full = script.sweep(Preset.QUICK), script.sweep(Preset.FULL)
    assert len(quick.cells()) <= len(full.cells())
    assert {type(c) for c in quick.configurations} == {type(c) for c in full.configurations}
