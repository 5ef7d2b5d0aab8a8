"""Figures are drawn from the CSV alone, and never after a failure; an open goal is no failure."""

import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
import pytest
from matplotlib.figure import Figure
from rich.console import Console

from experiments.engine import figures
from experiments.engine.cells import Outcome
from experiments.engine.claims import Aim, Goal, goals_table
from experiments.engine.processes import Processes
from experiments.engine.reproduce import Report, contents, draw, reproduce, reproduce_each
from experiments.engine.run import in_process
from experiments.engine.script import LoadedScript, Preset, load
from experiments.engine.store import Contents, Store, StoreError
from experiments.engine.terminal import show_reports
from experiments.guide.figure_pages import figure_pages
from tests.experiments import toy_script

TOY = "tests.experiments.toy_script"


@pytest.fixture
def folders(tmp_path: Path) -> figures.Folders:
    return figures.Folders(tmp_path / "results", tmp_path / "figures")


def test_a_quick_run_writes_everything_beside_the_committed_figures(folders):
    report = reproduce(load(TOY), Preset.QUICK, folders)
    assert report.passed
    assert [claim.id for claim in report.claims] == ["TOY-1", "TOY-2"]
    written = {str(p.relative_to(folders.figures)) for p in folders.figures.rglob("*.*")}
    assert written == {f"quick/toy_script.{kind}" for kind in ("csv", "json", "png")}
    assert (folders.results / "toy_script-quick.sqlite").exists()


def test_the_record_says_where_the_numbers_come_from(folders):
    script = load(TOY)
    report = reproduce(script, Preset.FULL, folders)
    record = json.loads((folders.figures / "toy_script.json").read_text())
    assert record["configurations"] == [{"n": n} for n in range(1, 11)]
    assert record["seed"] == 0
    assert record["trials"] == 2
    assert record["code"] == {"script": script.code.script, "library": script.code.library}
    assert record["versions"].keys() >= {"python", "numpy", "geomdp"}
    assert record["seconds"] >= 0
    assert len(record["commit"].removesuffix("+changes")) == 40
    assert record["claims"] == [claim.to_dict() for claim in report.claims]
    # 10^2 is above 50, so the second claim of the toy fails at this preset.
    assert not report.passed


def test_a_failing_cell_stops_the_files_but_not_the_sweep(folders, monkeypatch):
    monkeypatch.setattr(toy_script, "BROKEN", {2})
    report = reproduce(load(TOY), Preset.QUICK, folders)
    assert not report.passed
    assert [outcome.cell.configuration.n for outcome in report.failures] == [2, 2]
    assert not folders.figures.exists()
    expected = Contents(completed=4, failed=2, stale=0)
    assert contents(load(TOY), Preset.QUICK, folders) == expected


@pytest.mark.parametrize("part", ["plot", "claims"])
def test_a_broken_script_is_recorded_and_leaves_no_older_figure(folders, monkeypatch, part):
    def broken(table: pd.DataFrame) -> Figure:
        raise KeyError("no such column")

    reproduce(load(TOY), Preset.QUICK, folders)
    monkeypatch.setattr(toy_script, part, broken)
    report = reproduce(load(TOY), Preset.QUICK, folders)
    assert not report.passed
    assert report.broken is not None
    assert "in broken" in report.broken
    written = {path.suffix: path for path in folders.figures.rglob("*.*")}
    assert set(written) == {".csv", ".json"}
    record = json.loads(written[".json"].read_text())
    assert record["failure"] == "KeyError: 'no such column'"
    assert record["claims"] == []


def test_a_second_run_computes_nothing_and_gives_the_same_bytes(folders):
    def files() -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in folders.figures.rglob("*.*")}

    reproduce(load(TOY), Preset.QUICK, folders)
    first = files()
    seen: list[object] = []
    reproduce(load(TOY), Preset.QUICK, folders, observe=seen.append)
    assert seen == []
    for name in ("toy_script.csv", "toy_script.png"):
        assert files()[name] == first[name]


def test_plots_read_the_csv_and_nothing_else(folders):
    script, outputs = load(TOY), folders.outputs("toy_script", Preset.QUICK)
    reproduce(script, Preset.QUICK, folders)
    before = outputs.images[0].read_bytes()
    table = figures.read_table(outputs)
    table["square"] = table["n"]
    figures.write_table(outputs, table)
    draw(script, outputs)
    assert outputs.images[0].read_bytes() != before


def test_floats_survive_the_csv(tmp_path):
    outputs = figures.Outputs(tmp_path / "deep" / "folder", "floats")
    table = pd.DataFrame({"x": [1 / 3, 1e-300, 123456789.123456789, -0.0]})
    figures.write_table(outputs, table)
    pd.testing.assert_frame_equal(figures.read_table(outputs), table, check_exact=True)


def test_a_figure_that_cannot_be_drawn_leaves_no_file(tmp_path):
    figure = Figure(figsize=(1, 1))
    figure.text(0, 0, "$\\unknown$")
    with figures.drawing(), pytest.raises(ValueError, match="unknown"):
        figures.write_figure(figures.Outputs(tmp_path, "broken"), figure)
    assert list(tmp_path.iterdir()) == []


def test_the_style_neither_depends_on_nor_changes_the_settings_of_the_user():
    with mpl.rc_context({"lines.linewidth": 17.0}):
        with figures.drawing():
            assert mpl.rcParams["lines.linewidth"] < 3
            assert mpl.rcParams["svg.hashsalt"] == "geomdp"
        assert mpl.rcParams["lines.linewidth"] == 17.0


def test_claims_do_not_see_what_a_clock_measured(folders, monkeypatch):
    monkeypatch.setattr(toy_script, "CLOCK", ("square",), raising=False)
    report = reproduce(load(TOY), Preset.QUICK, folders)
    assert report.broken is not None
    assert "square" in report.broken.splitlines()[-1]


def test_a_figure_that_failed_computes_its_cells_again(folders, monkeypatch):
    seen: list[object] = []
    with monkeypatch.context() as failing:
        failing.setattr(toy_script, "LARGEST", 5)
        assert not reproduce(load(TOY), Preset.QUICK, folders).passed
    with monkeypatch.context() as stopped:
        stopped.setattr(toy_script, "INTERRUPTED", {3})
        with pytest.raises(KeyboardInterrupt):
            reproduce(load(TOY), Preset.QUICK, folders, observe=seen.append)
    assert len(seen) == 4
    assert contents(load(TOY), Preset.QUICK, folders).completed == 4
    # The run that was stopped is resumed, and not begun once more.
    assert reproduce(load(TOY), Preset.QUICK, folders, observe=seen.append).passed
    assert len(seen) == 6
    assert not reproduce(load(TOY), Preset.QUICK, folders, observe=seen.append).again
    assert len(seen) == 6


def test_a_stop_before_the_first_cell_forgets_no_failure(folders, monkeypatch):
    with monkeypatch.context() as failing:
        failing.setattr(toy_script, "LARGEST", 5)
        assert not reproduce(load(TOY), Preset.QUICK, folders).passed
    with monkeypatch.context() as stopped:
        stopped.setattr(toy_script, "INTERRUPTED", {1})
        with pytest.raises(KeyboardInterrupt):
            reproduce(load(TOY), Preset.QUICK, folders)
    assert contents(load(TOY), Preset.QUICK, folders).completed == 6
    assert reproduce(load(TOY), Preset.QUICK, folders).again


@pytest.fixture
def two_toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[LoadedScript]:
    """The toy and a second one, which also writes the numbers of its cells to a file."""
    (tmp_path / "second_toy.py").write_text(
        "'A second toy.'\nfrom tests.experiments import toy_script\n"
        "from tests.experiments.toy_script import QUICK, FULL, claims, plot\n"
        "from pathlib import Path\n"
        "def compute(config, rng):\n"
        "    with Path(__file__).with_name('begun').open('a') as file:\n"
        "        file.write(f'{config.n}\\n')\n"
        "    return toy_script.compute(config, rng)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "second_toy", raising=False)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return [load("second_toy"), load(TOY)]


@pytest.mark.parametrize("workers", [1, 2])
def test_cells_of_several_scripts_share_the_processes(folders, two_toys, workers):
    seen: list[str] = []
    with ExitStack() as stack:
        executor = stack.enter_context(Processes(workers)) if workers > 1 else in_process
        told = lambda script: seen.append(script.name)  # noqa: E731
        reports = [*reproduce_each(two_toys, Preset.QUICK, folders, executor, told)]
    assert {report.name for report in reports} == {"second_toy", "toy_script"}
    assert all(report.passed for report in reports)
    assert sorted(seen) == ["second_toy"] * 6 + ["toy_script"] * 6
    first, second = (figures.read_table(report.outputs) for report in reports)
    pd.testing.assert_frame_equal(first, second)


def test_a_store_that_fails_stops_its_script_alone(folders, two_toys, monkeypatch, tmp_path):
    record = Store.record

    def failing(store: Store, outcome: Outcome[Any]) -> None:
        if store.path.name.startswith("second_toy") and outcome.cell.configuration.n == 2:
            raise StoreError("no space left")
        record(store, outcome)

    monkeypatch.setattr(Store, "record", failing)
    reports = [*reproduce_each(two_toys, Preset.QUICK, folders, in_process, lambda _script: None)]
    by_name = {report.name: report for report in reports}
    assert by_name["toy_script"].passed
    assert by_name["second_toy"].broken == "no space left"
    # The cells behind the one that could not be stored were not begun.
    assert (tmp_path / "begun").read_text().split() == ["1", "1", "2"]


def test_what_a_killed_process_left_half_written_is_removed(tmp_path):
    (tmp_path / ".half.csv.999999999").write_text("half")
    figures.write_table(figures.Outputs(tmp_path, "half"), pd.DataFrame({"x": [1]}))
    assert [path.name for path in tmp_path.iterdir()] == ["half.csv"]


# --- goals ----------------------------------------------------------------------------------


REASON = "cubes would be larger"


def goals(table: pd.DataFrame) -> list[Goal]:
    """Two goals. The largest square of the quick preset is 9, which reaches only the first goal."""
    largest = table.square.max()  # a NumPy number, as in real scripts
    return [
        Goal("largest square, low goal", largest, 4, Aim.AT_LEAST, REASON, "3 squares"),
        Goal("largest square, high goal", largest, 25, Aim.AT_LEAST, REASON),
    ]


@pytest.fixture
def report(folders: figures.Folders, monkeypatch: pytest.MonkeyPatch) -> Report:
    monkeypatch.setattr(toy_script, "goals", goals, raising=False)
    return reproduce(load(TOY), Preset.QUICK, folders)


def test_an_open_goal_is_recorded_and_shown_and_fails_no_run(report):
    assert report.passed
    assert [goal.reached for goal in report.goals] == [True, False]
    reached, missed = json.loads(report.outputs.record.read_text())["goals"]
    assert (reached["reached"], missed["reached"]) == (True, False)
    assert (reached["measured"], reached["goal"]) == ("9", "at least 4")
    # The reason says why a goal is open, so it would be wrong for a reached goal.
    assert (reached["reason"], missed["reason"]) == ("", REASON)
    console = Console(record=True, width=200)
    show_reports(console, [report])
    text = console.export_text()
    assert "1 goals reached, 1 open" in text
    assert "2 claims passed, 0 failed" in text
    (low,) = [line for line in text.splitlines() if "low goal" in line]
    (high,) = [line for line in text.splitlines() if "high goal" in line]
    assert [word in low for word in ("reached", "3 squares", REASON)] == [True, True, False]
    assert [word in high for word in ("open", "at least 25", REASON)] == [True, True, True]
    assert goals_table([]).row_count == 0


def test_the_page_of_a_figure_shows_both_states_with_number_and_reason(folders):
    toy = load(TOY)
    reproduce(toy, Preset.FULL, folders)
    record = folders.outputs(toy.name, Preset.FULL).record
    low = {"name": "low", "measured": "100", "goal": "at least 4", "reached": True}
    high = {"name": "high", "measured": "9", "goal": "at least 25", "reached": False}
    goals = [{"beside": "", "reason": ""} | low, {"beside": "", "reason": REASON} | high]
    record.write_text(json.dumps(json.loads(record.read_text()) | {"goals": goals}))
    page = figure_pages([toy], folders)[toy.name]
    assert "Goals: 1 of 2 reached" in page
    assert "* :passed:`reached` low.\n  Measured: 100. Goal: at least 4." in page
    assert f"* **open** high.\n  Measured: 9. Goal: at least 25. {REASON}." in page
    assert page.count("FAILED") == 1  # a claim of the toy script, and not the open goal


def test_a_goal_counts_its_edge_as_reached_and_needs_a_number_and_a_reason():
    for measured, aim, reached in (
        (0.5, Aim.AT_MOST, True),
        (0.51, Aim.AT_MOST, False),
        (0.5, Aim.AT_LEAST, True),
    ):
        assert Goal("ratio", measured, 0.5, aim, REASON).reached is reached
    with pytest.raises(ValueError, match="measured must be finite, got nan"):
        Goal("ratio", float("nan"), 0.5, Aim.AT_MOST, REASON)
    with pytest.raises(ValueError, match="must have a reason"):
        Goal("ratio", 0.4, 0.5, Aim.AT_MOST, "")
