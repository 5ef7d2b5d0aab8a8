"""The command line of the experiments: exit codes, suggestions and printed text."""

import errno
import io
import itertools
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from experiments import __main__ as command_line
from experiments import catalogue
from experiments.engine.claims import Claim, Verdict
from experiments.engine.figures import Outputs
from experiments.engine.reproduce import Report
from experiments.engine.script import load
from experiments.engine.terminal import Bar, question, summary
from tests.experiments import toy_script

ROOT = Path(__file__).parents[2]
TOY = "tests.experiments.toy_script"
#: A script whose claims divide by zero.
BROKEN_CLAIMS = """'A toy with broken claims.'
from tests.experiments.toy_script import FULL, QUICK, plot

def compute(config, rng):
    return [{"square": config.n**2}]

def claims(table):
    return 1 / 0
"""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setattr(command_line, "SCRIPTS", (TOY,))
    # Other processes would not see what tests do to the toy script.
    monkeypatch.setattr(command_line, "MOST_WORKERS", 1)
    return ["--results", str(tmp_path / "results"), "--figures", str(tmp_path / "figures")]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(command_line.app, arguments)


def test_run_succeeds_when_every_claim_holds(folders, tmp_path):
    result = call("run", "toy_script", *folders)
    assert result.exit_code == 0
    assert "2 claims passed, 0 failed" in result.output
    assert "TOY-1" in result.output
    assert "square" in result.output  # the report of the script
    assert (tmp_path / "figures" / "quick" / "toy_script.png").exists()


def test_run_fails_when_a_claim_fails(folders, tmp_path):
    result = call("run", "toy_script", "--full", *folders)
    assert result.exit_code == 1
    assert "1 claims passed, 1 failed" in result.output
    assert (tmp_path / "figures" / "toy_script.png").exists()


def test_run_fails_with_the_traceback_when_a_cell_fails(folders, monkeypatch):
    monkeypatch.setattr(toy_script, "BROKEN", {3})
    result = call("reproduce", "--quick", *folders)
    assert result.exit_code == 1
    assert "FAILED toy_script: 2 cells: RuntimeError: n = 3 broke" in result.output
    assert "again: python -m experiments run toy_script\n" in result.output
    assert "Traceback" not in result.output
    verbose = call("reproduce", "--quick", "--verbose", *folders).output
    assert verbose.count("Traceback") == 1
    assert "2 cells FAILED alike, first trial 0 of Config(n=3)" in verbose


def test_the_end_names_the_folder_of_the_figures(folders, tmp_path):
    lines = call("reproduce", *folders).output.splitlines()
    folder = Path(lines[-1].removeprefix("these figures: "))
    assert folder.is_relative_to(tmp_path)
    assert (folder / "toy_script.png").exists()
    assert len(lines) < 5
    assert "TOY-1" in call("reproduce", "--verbose", *folders).output


@pytest.mark.parametrize("width", [80, 160])
def test_the_end_of_a_run_has_at_most_forty_lines(width, tmp_path):
    outputs = Outputs(tmp_path, "toy_script")
    claim = Claim("a false statement " * 9, Verdict(False, 2.0), "5 " * 70, "3", "TOY-1")
    reports = [Report("toy_script", outputs, (), (claim,) * 7) for _ in range(50)]
    scripts = [load(name) for name in (TOY, "experiments.benchmarks.exact")]
    lines = summary(scripts, reports, "", width)
    assert len(lines) <= 38  # the page needs one line more, which may wrap
    assert max(map(len, lines)) <= width
    assert lines[0] == "50 figures: 0 claims passed, 350 failed"
    (rest,) = (line for line in lines if line.startswith("and "))
    shown = sum(line.startswith("FAILED") for line in lines)
    assert rest == f"and {350 - shown} more failures: see --verbose"


def test_the_time_left_is_that_of_the_work_done_times_the_share_that_is_left():
    now = [0.0]
    costs, cells = {"first": 0.1, "second": 1.0}, {"first": 10, "second": 3}
    bar = Bar(Console(file=io.StringIO()), costs, cells, clock=lambda: now[0])
    assert bar.text() == "0 of 2 figures"
    for _ in range(3):
        now[0] += 20
        bar.advance("first")
    # After 60 s, 3 of 10 cells of a quarter of the work are done: 60 * (1 - 0.075) / 0.075.
    assert bar.text() == "0 of 2 figures, 12:20 left, first"


def test_without_a_terminal_the_bar_is_a_plain_line_at_times_even_if_no_cell_ends():
    console = Console(file=io.StringIO(), width=80)
    name = "one\x1b[31m"
    with Bar(console, {name: 0.0}, {name: 1}, every=0.01) as bar:
        bar.advance(name)
        while len(lines := console.file.getvalue().splitlines()) < 3:
            time.sleep(0.01)
    assert lines[2] == "0 of 1 figures, one\\u001b[31m"
    silent = Console(file=io.StringIO(), width=80)
    with Bar(silent, {"one": 1.0}, {"one": 1000}) as bar:
        for _ in range(1000):
            bar.advance("one")
    assert not silent.file.getvalue()  # less than a minute has passed


#: Runs a script with slow cells. Each cell writes its number to a file when it begins.
SLOW = """'A toy with slow cells.'
import os, time
from dataclasses import dataclass
from experiments.engine.cells import Sweep
from tests.experiments.toy_script import claims, plot

@dataclass(frozen=True)
class Config:
    n: int

QUICK = FULL = Sweep(tuple(Config(n) for n in range(1, 7)), trials=1, seed=0)

def compute(config, rng):
    with open(os.environ["BEGUN"], "a") as file:
        file.write(f"{config.n}\\n")
    time.sleep(0.05)
    return [{"square": config.n**2}]
"""
RUN = """
import sys
from experiments import __main__ as command_line
command_line.SCRIPTS = ("slow_toy",)
if __name__ == "__main__":
    command_line.app(sys.argv[1:])
"""


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.ci)])
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.ci)]
)
def test_a_run_that_was_killed_halfway_ends_the_same(tmp_path, monkeypatch, number, workers):
    """The killed run is a process. It is resumed, and compared with another run, in this one."""
    (tmp_path / "slow_toy.py").write_text(SLOW)
    (tmp_path / "run.py").write_text(RUN)
    begun = tmp_path / "begun"
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    monkeypatch.setenv("BEGUN", str(begun))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(command_line, "SCRIPTS", ("slow_toy",))
    monkeypatch.delitem(sys.modules, "slow_toy", raising=False)

    def arguments(name: str) -> list[str]:
        folders = ["--results", f"{tmp_path}/r-{name}", "--figures", f"{tmp_path}/f-{name}"]
        return ["run", "slow_toy", *folders, "--workers", str(workers)]

    command = [sys.executable, str(tmp_path / "run.py"), *arguments("killed")]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        while not begun.exists() or len(begun.read_text().split()) < 3:
            assert process.poll() is None
        process.send_signal(number)
        printed = process.communicate()[0]
    if number == signal.SIGTERM:
        assert process.returncode == 143
        assert "run again to resume" in printed
    assert call(*arguments("killed")).exit_code == 0
    cells = begun.read_text().split()
    assert set(cells) == set("123456")
    # Only cells in flight ran twice. A process is given its next cell while the outcome of the last
    # one is written, and both are in flight then.
    assert len(cells) <= 6 + (2 * workers if workers > 1 else 1)
    assert call(*arguments("straight")).exit_code == 0
    for kind in ("csv", "png"):
        one, two = (tmp_path / f"f-{name}/quick/slow_toy.{kind}" for name in ("killed", "straight"))
        assert one.read_bytes() == two.read_bytes()
    assert len([*(tmp_path / "f-killed" / "quick").iterdir()]) == 3


def test_an_interrupt_says_how_to_go_on(folders, monkeypatch):
    monkeypatch.setattr(toy_script, "INTERRUPTED", {2})
    result = call("reproduce", *folders)
    assert result.exit_code == 130
    assert "run again to resume" in result.output


def test_a_foreign_store_is_one_line_and_stays(folders, tmp_path):
    store = tmp_path / "results" / "toy_script-quick.sqlite"
    store.parent.mkdir()
    store.write_text("precious")
    for command in (("run", "toy_script", *folders), ("status", *folders)):
        result = call(*command)
        assert result.exit_code == 1
        assert "not an SQLite file" in result.output
    assert store.read_text() == "precious"


@pytest.mark.parametrize(
    ("fault", "words"), [("store", "not an SQLite file"), ("claims", "ZeroDivisionError")]
)
def test_a_script_whose_files_or_claims_fail_does_not_stop_the_others(
    folders, tmp_path, monkeypatch, fault, words
):
    (tmp_path / "other_toy.py").write_text(BROKEN_CLAIMS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(command_line, "SCRIPTS", ("other_toy", TOY))
    if fault == "store":
        (tmp_path / "results").mkdir()
        (tmp_path / "results" / "other_toy-quick.sqlite").write_text("precious")
    result = call("reproduce", *folders)
    assert result.exit_code == 1
    assert "FAILED other_toy: its plot, its claims or its files" in result.output
    assert words in " ".join(result.output.split())
    assert "2 claims passed, 0 failed" in result.output
    assert (tmp_path / "figures" / "quick" / "toy_script.png").exists()


def test_a_full_disk_leaves_the_figure_that_was_there(folders, tmp_path, monkeypatch):
    call("run", "toy_script", *folders)
    image = tmp_path / "figures" / "quick" / "toy_script.png"
    before = image.read_bytes()

    def full(*arguments: object, **settings: object) -> None:
        Path(str(arguments[1])).write_bytes(before[:100])
        raise OSError(errno.ENOSPC, "No space left on device", str(arguments[1]))

    monkeypatch.setattr("matplotlib.backends.backend_agg.FigureCanvasAgg.print_png", full)
    result = call("run", "toy_script", *folders)
    assert result.exit_code == 1
    assert "No space left on device" in result.output
    assert image.read_bytes() == before
    assert sorted(path.suffix for path in image.parent.iterdir()) == [".csv", ".json", ".png"]


def test_flags_that_contradict_each_other_are_refused(folders):
    result = call("run", "toy_script", "--workers", "2", "--scheduler", "tcp://x:1", *folders)
    assert result.exit_code == 1
    assert "either --workers or --scheduler" in result.output
    assert call("run", "toy_script", "--workers", "0", *folders).exit_code == 2


#: Runs commands, and prints which heavy packages they have imported.
LIGHT = """
import json, sys
from experiments.__main__ import app
for arguments in json.loads(sys.argv[1]):
    try:
        app(arguments)
    except SystemExit:
        pass
heavy = {"numpy", "pandas", "matplotlib", "scipy", "sqlite3", "multiprocessing"}
print("imported", sorted(heavy & sys.modules.keys()))
"""
COMMANDS = [
    ["--help"], ["reproduce", "--help"], ["reproduce", "--workers", "0"], ["reproduce", "--loud"],
    ["run", "no_such_script"], ["run", "engine", "--workers", "2", "--scheduler", "tcp://x:1"],
    ["plot", "engine", "--quick", "--figures", "no/such/folder"],
]  # fmt: skip


def test_help_and_refusals_import_no_heavy_package():
    program = [sys.executable, "-c", LIGHT, json.dumps(COMMANDS)]
    done = subprocess.run(program, cwd=ROOT, capture_output=True, text=True)
    assert done.stdout.endswith("imported []\n"), done.stdout + done.stderr


def test_scripts_that_measure_time_run_alone(folders, monkeypatch):
    monkeypatch.setattr(toy_script, "TIMED", "nothing, in fact", raising=False)
    # There is no scheduler at this address, so the run succeeds only if it asks no scheduler.
    result = call("run", "toy_script", "--scheduler", "tcp://127.0.0.1:1", *folders)
    assert result.exit_code == 0


def test_unknown_names_suggest_near_ones(folders):
    result = call("run", "toy_scrpt", *folders)
    assert result.exit_code == 1
    assert "did you mean toy_script?" in result.output
    assert "did you mean toy_script?" in call("plot", "Toy").output
    assert "there are toy_script" in call("plot", "nothing of the kind").output


def test_plot_draws_from_the_csv(folders, tmp_path):
    assert call("plot", "toy_script", *folders[2:]).exit_code == 1
    call("run", "toy_script", *folders)
    image = tmp_path / "figures" / "quick" / "toy_script.png"
    image.unlink()
    assert call("plot", "toy_script", *folders[2:]).exit_code == 0
    assert image.exists()


def test_status_counts_cells(folders):
    before = call("status", *folders).output
    assert "0/6" in before
    assert "none" in before
    call("run", "toy_script", *folders)
    after = call("status", *folders).output
    assert "6/6" in after
    assert "present code" in after
    assert "2 of 2 passed" in after


def test_a_foreign_record_is_one_line(folders, tmp_path):
    call("run", "toy_script", *folders)
    record = tmp_path / "figures" / "quick" / "toy_script.json"
    for content in ("{", "[]", '{"claims": []}'):
        record.write_text(content)
        result = call("status", *folders)
        assert result.exit_code == 1
        assert "is not the record of a script" in result.output.replace("\n", " ")


def test_list_shows_the_first_line_of_each_script(folders):
    del folders
    result = call("list")
    assert result.exit_code == 0
    assert "squares of n" in result.output


def test_parts_are_required():
    with pytest.raises(TypeError, match="must have a docstring, QUICK"):
        load("tests.experiments.trivial_sweep")


def test_the_catalogue_lists_every_script():
    # A module is a script if it defines `plot`. Other modules hold code that scripts share.
    scripts = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "experiments").rglob("*.py")
        if "\ndef plot(table" in path.read_text()
    }
    assert scripts == set(catalogue.SCRIPTS)
    assert len({name.rpartition(".")[2] for name in scripts}) == len(scripts)


def test_the_catalogue_goes_folder_by_folder():
    folders = [name.rpartition(".")[0] for name in catalogue.SCRIPTS]
    runs = [folder for folder, _ in itertools.groupby(folders)]
    assert len(runs) == len(set(runs))
    questions = [question(folder) for folder in runs]
    assert all("?" in text for text in questions), questions


def test_committed_figures_carry_passed_claims():
    records = {path.stem: path for path in (ROOT / "paper_figures").glob("*.json")}
    assert set(records) == {name.rpartition(".")[2] for name in catalogue.SCRIPTS}
    for path in records.values():
        record = json.loads(path.read_text())
        assert record["preset"] == "full", path.name
        assert record["claims"], path.name
        assert all(claim["passed"] for claim in record["claims"]), path.name
