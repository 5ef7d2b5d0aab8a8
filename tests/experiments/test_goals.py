"""Goals of figures are shown as reached, or as open with a reason; an open goal is no failure."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console

from experiments.engine.claims import Aim, Goal, goals_table
from experiments.engine.figures import Folders
from experiments.engine.reproduce import Report, reproduce
from experiments.engine.script import Preset, load
from experiments.engine.terminal import show_reports
from experiments.guide.figure_pages import figure_pages
from tests.experiments import toy_script

TOY = "tests.experiments.toy_script"
REASON = "cubes would be larger"


def goals(table: pd.DataFrame) -> list[Goal]:
    """Two goals. The largest square of the quick preset is 9, which reaches only the first goal."""
    largest = table.square.max()  # a NumPy number, as in real scripts
    return [
        Goal("largest square, low goal", largest, 4, Aim.AT_LEAST, REASON, "3 squares"),
        Goal("largest square, high goal", largest, 25, Aim.AT_LEAST, REASON),
    ]


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path / "results", tmp_path / "figures")


@pytest.fixture
def report(folders: Folders, monkeypatch: pytest.MonkeyPatch) -> Report:
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


def test_the_state_follows_the_table_and_the_script(folders, report, monkeypatch):
    del report
    more = reproduce(load(TOY), Preset.FULL, folders)
    assert [goal.reached for goal in more.goals] == [True, True]  # the largest square is 100
    monkeypatch.setattr(toy_script, "goals", lambda table: table.nothing)
    broken = reproduce(load(TOY), Preset.QUICK, folders)
    assert not broken.passed
    assert "AttributeError" in json.loads(broken.outputs.record.read_text())["failure"]
    monkeypatch.delattr(toy_script, "goals")
    without = reproduce(load(TOY), Preset.QUICK, folders)
    assert without.goals == ()
    assert "goals" not in json.loads(without.outputs.record.read_text())


def test_the_page_of_a_figure_shows_both_states_with_number_and_reason(folders):
    toy = load(TOY)
    reproduce(toy, Preset.FULL, folders)
    record = folders.outputs(toy.name, Preset.FULL).record
    states = [
        ("reached", True, "", "* :passed:`reached` low.\n  Measured: 100. Goal: at least 4."),
        ("open", False, REASON, f"* **open** high.\n  Measured: 9. Goal: at least 25. {REASON}."),
    ]
    goals = [
        {
            "name": "low" if reached else "high",
            "measured": "100" if reached else "9",
            "goal": "at least 4" if reached else "at least 25",
            "beside": "",
            "reason": reason,
            "reached": reached,
        }
        for _, reached, reason, _ in states
    ]
    record.write_text(json.dumps(json.loads(record.read_text()) | {"goals": goals}))
    page = figure_pages([toy], folders)[toy.name]
    assert "Goals: 1 of 2 reached" in page
    assert all(line in page for *_, line in states)
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
