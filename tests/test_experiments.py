"""At its quick preset, every script completes all cells, fulfils all claims and writes all files.

The first command of the README tests this, too: ``python -m experiments reproduce --quick`` fails
if a cell or claim fails. The command leaves out scripts that need an extra that is not installed.
`.ci/run` runs the command before this suite, and the other scripts (marker `ci`) after this suite.
So the default suite runs no script, and ``pytest -m 'slow or ci'`` runs all scripts.
"""

import re
import time

import numpy as np
import pytest

from experiments.catalogue import SCRIPTS
from experiments.engine.figures import Folders, Outputs, read_table
from experiments.engine.provenance import imported_names as imported_by
from experiments.engine.provenance import sources
from experiments.engine.reproduce import reproduce
from experiments.engine.run import run_cell
from experiments.engine.script import ComparesWithPeers, Preset, ReadsClock, load
from tests.readme import commands

#: Scripts that the first command of the README leaves out, because they need packages of an extra
#: that the command does not install.
LEFT_OUT = {
    "experiments.privacy.planted_faults", "experiments.mutants.mutants",
    "experiments.privacy.audit_power", "experiments.benchmarks.accuracy_table",
    "experiments.benchmarks.geometry", "experiments.benchmarks.exact",
    "experiments.benchmarks.release", "experiments.benchmarks.smooth",
}  # fmt: skip


def test_the_first_command_of_the_readme_runs_all_other_scripts():
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


#: Columns with the peak memory of a process. It is no clock, but it depends on the allocator and on
#: the versions of packages.
MEMORY = {"peak_gib", "mib"}
CLOCKED = [name for name in SCRIPTS if isinstance(load(name).module, ReadsClock)]
#: Words in the names of columns that a clock may have measured.
TIME = re.compile(
    r"(^|_)(seconds|ms|wall|elapsed|timed|rate|speed|fastest|slowest|efficiency)(_|$)"
)


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_that_reads_a_clock_names_the_columns(name):
    module = load(name).module
    imported = {
        alias
        for kind, path in sources(module).items()
        if not kind.startswith("experiments.engine.") or kind.endswith("processor_time")
        for alias in imported_by(path.read_text())
    }
    reads = imported & {"time", "timeit", "experiments.engine.processes"}
    clock = module.CLOCK if isinstance(module, ReadsClock) else ()
    assert bool(reads) == bool(clock)
    if not committed(name).csv.exists():  # the figure of a new script, which is still to be drawn
        return
    columns = set(read_table(committed(name)).columns)
    assert set(clock) <= columns
    assert {column for column in columns if TIME.search(column)} <= set(clock)


@pytest.mark.parametrize("name", CLOCKED)
def test_claims_do_not_change_when_the_clock_does(name):
    """All columns of a clock are multiplied by random factors; then claims are checked directly."""
    script, table, rng = load(name), read_table(committed(name)), np.random.default_rng(0)
    expected = [claim.to_dict() for claim in script.claims(table)]
    for _ in range(3):
        for column in script.module.CLOCK:
            table[column] *= 10 ** rng.uniform(-3, 3, len(table))
        assert [claim.to_dict() for claim in script.module.claims(table)] == expected


@pytest.mark.ci
@pytest.mark.parametrize("name", CLOCKED)
def test_only_the_named_columns_depend_on_the_clock(name, monkeypatch):
    """Quick cells are computed twice with one seed, the second time by a clock that jumps."""
    script = load(name)
    # Claims may read the memory: a test below gives them room.
    left = {*script.module.CLOCK, *MEMORY}
    rng, now = np.random.default_rng(1), [0.0]

    def jumping() -> float:
        now[0] += 10 ** rng.uniform(-6, 4)
        return now[0]

    configurations = {
        type(cell.configuration): cell for cell in script.sweep(Preset.QUICK).cells()[::-1]
    }
    some = [*configurations.values(), script.sweep(Preset.QUICK).cells()[-1]]
    for cell in some:
        with monkeypatch.context() as patched:
            straight = run_cell(script.module.compute, cell)
            for clock in ("perf_counter", "process_time", "monotonic"):
                patched.setattr(time, clock, jumping)
            jumped = run_cell(script.module.compute, cell)
        assert straight.rows is not None, straight.traceback
        assert jumped.rows is not None, jumped.traceback
        for one, two in zip(straight.rows, jumped.rows, strict=True):
            assert {k: v for k, v in one.items() if k not in left} == {
                k: v for k, v in two.items() if k not in left
            }


@pytest.mark.parametrize("name", CLOCKED)
def test_claims_about_memory_have_room_for_half_as_much_again(name):
    script, table = load(name), read_table(committed(name))
    for column in MEMORY & set(table.columns):
        table[column] *= 1.5
    assert all(claim.passed for claim in script.claims(table))


def committed(name: str) -> Outputs:
    """The committed files of a figure."""
    return Folders().outputs(name.rpartition(".")[2], Preset.FULL)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.ci if name in LEFT_OUT else pytest.mark.slow)
        for name in SCRIPTS
    ],
)
def test_every_claim_holds_at_the_quick_preset(name, tmp_path):
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
def test_the_quick_preset_has_the_same_kinds_of_cells_and_no_more_of_them(name):
    script = load(name)
    quick, full = script.sweep(Preset.QUICK), script.sweep(Preset.FULL)
    assert len(quick.cells()) <= len(full.cells())
    assert {type(c) for c in quick.configurations} == {type(c) for c in full.configurations}
