"""The command line of the experiments: exit codes, suggestions and printed text."""

from __future__ import annotations

import errno
import itertools
import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from experiments import __main__ as command_line
from experiments import catalogue
from experiments.engine.script import UnknownScriptError, find, load
from experiments.engine.terminal import question
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
    return ["--results", str(tmp_path / "results"), "--figures", str(tmp_path / "figures")]


def call(*arguments: str) -> Result:
    return CliRunner().invoke(command_line.app, arguments)


def test_run_succeeds_when_every_claim_holds(folders: list[str], tmp_path: Path) -> None:
    result = call("run", "toy_script", *folders)
    assert result.exit_code == 0
    assert "2 claims passed, 0 failed" in result.output
    assert "TOY-1" in result.output
    assert "square" in result.output  # the report of the script
    assert (tmp_path / "figures" / "quick" / "toy_script.png").exists()


def test_run_fails_when_a_claim_fails(folders: list[str], tmp_path: Path) -> None:
    result = call("run", "toy_script", "--full", *folders)
    assert result.exit_code == 1
    assert "1 claims passed, 1 failed" in result.output
    assert (tmp_path / "figures" / "toy_script.png").exists()


def test_run_fails_with_the_traceback_when_a_cell_fails(
    folders: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy_script, "BROKEN", {3})
    result = call("reproduce", "--quick", *folders)
    assert result.exit_code == 1
    assert result.output.count("RuntimeError: n = 3 broke") == 1
    assert "2 cells FAILED alike, first trial 0 of Config(n=3)" in result.output
    assert "2 cells failed" in result.output


def test_a_script_whose_claims_raise_fails_and_the_others_go_on(
    folders: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_toy.py").write_text(BROKEN_CLAIMS)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(command_line, "SCRIPTS", ("broken_toy", TOY))
    result = call("reproduce", *folders)
    assert result.exit_code == 1
    assert "broken_toy: its plot, its claims or its files FAILED" in result.output
    assert result.output.count("ZeroDivisionError") == 1
    assert "2 claims passed, 0 failed" in result.output
    assert "no claims could be checked: broken_toy" in result.output
    assert (tmp_path / "figures" / "quick" / "toy_script.png").exists()


def test_an_interrupt_says_how_to_go_on(
    folders: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy_script, "INTERRUPTED", {2})
    result = call("reproduce", *folders)
    assert result.exit_code == 130
    assert "run again to resume" in result.output


def test_a_foreign_store_is_one_line_and_stays(folders: list[str], tmp_path: Path) -> None:
    store = tmp_path / "results" / "toy_script-quick.sqlite"
    store.parent.mkdir()
    store.write_text("precious")
    for command in (("reproduce", *folders), ("status", *folders)):
        result = call(*command)
        assert result.exit_code == 1
        assert "not an SQLite file" in result.output
    assert store.read_text() == "precious"


@pytest.mark.parametrize("fault", ["foreign store", "no process"])
def test_a_script_whose_files_or_processes_fail_does_not_stop_the_others(
    folders: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    call_of_process = "subprocess.run(['no such program'])"
    text = BROKEN_CLAIMS.replace("1 / 0", call_of_process).replace(
        "from", "import subprocess\nfrom"
    )
    (tmp_path / "other_toy.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(command_line, "SCRIPTS", ("other_toy", TOY))
    if fault == "foreign store":
        (tmp_path / "results").mkdir()
        (tmp_path / "results" / "other_toy-quick.sqlite").write_text("precious")
    result = call("reproduce", *folders)
    assert result.exit_code == 1
    assert "other_toy: its plot, its claims or its files FAILED" in result.output
    words = {"foreign store": "not an SQLite file", "no process": "no such program"}
    assert words[fault] in result.output
    assert "2 claims passed, 0 failed" in result.output
    assert (tmp_path / "figures" / "quick" / "toy_script.png").exists()


#: Runs the toy script with a limit on the size of each file. Beyond the limit, writes fail in the
#: kernel, as on a full disk. The signal SIGXFSZ is ignored, because it would end the process.
LIMITED = """
import resource, signal, sys
from experiments import __main__ as command_line
command_line.SCRIPTS = ("tests.experiments.toy_script",)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
command_line.app(["run", "toy_script", *sys.argv[2:]])
"""


def test_a_full_disk_is_one_line_and_a_later_run_completes(
    folders: list[str], tmp_path: Path
) -> None:
    def limited(size: int) -> str:
        command = [sys.executable, "-c", LIMITED, str(size), *folders]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert result.returncode == 1
        assert "Traceback" not in result.stdout + result.stderr
        return result.stdout

    # Pages of the store have 4096 bytes. The limit 4000 is too small for the table of the store.
    # The limit 16,000 is large enough for the table, but not for the index of the write-ahead log.
    assert "cannot keep results in" in limited(4000)
    assert "disk I/O error" in limited(16_000)
    assert not (tmp_path / "figures").exists()
    result = call("run", "toy_script", *folders)
    assert result.exit_code == 0
    assert (tmp_path / "figures" / "quick" / "toy_script.png").exists()


def test_a_full_disk_leaves_the_figure_that_was_there(
    folders: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call("run", "toy_script", *folders)
    image = tmp_path / "figures" / "quick" / "toy_script.png"
    before = image.read_bytes()

    def full(*arguments: object, **settings: object) -> None:
        Path(str(arguments[1])).write_bytes(before[:100])
        raise OSError(errno.ENOSPC, "No space left on device", str(arguments[1]))

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", full)
    result = call("run", "toy_script", *folders)
    assert result.exit_code == 1
    assert "No space left on device" in result.output
    assert image.read_bytes() == before
    assert sorted(path.suffix for path in image.parent.iterdir()) == [
        ".csv",
        ".json",
        ".png",
        ".svg",
    ]


@pytest.mark.parametrize("flags", [["--workers", "2"], ["--workers", "1"]])
def test_workers_do_not_change_what_is_written(
    folders: list[str], tmp_path: Path, flags: list[str]
) -> None:
    call("run", "toy_script", "--results", str(tmp_path / "r"), "--figures", str(tmp_path / "f"))
    assert call("run", "toy_script", *flags, *folders).exit_code == 0
    for name in ("toy_script.csv", "toy_script.png", "toy_script.svg"):
        one, two = (tmp_path / folder / "quick" / name for folder in ("f", "figures"))
        assert one.read_bytes() == two.read_bytes()


def test_flags_that_contradict_each_other_are_refused(folders: list[str]) -> None:
    result = call("run", "toy_script", "--workers", "2", "--scheduler", "tcp://x:1", *folders)
    assert result.exit_code == 1
    assert "either --workers or --scheduler" in result.output
    assert call("run", "toy_script", "--workers", "0", *folders).exit_code == 2


def test_scripts_that_measure_time_run_alone(
    folders: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(toy_script, "TIMED", "nothing, in fact", raising=False)
    # There is no scheduler at this address, so the run succeeds only if it asks no scheduler.
    result = call("run", "toy_script", "--scheduler", "tcp://127.0.0.1:1", *folders)
    assert result.exit_code == 0


def test_unknown_names_suggest_near_ones(folders: list[str]) -> None:
    result = call("run", "toy_scrpt", *folders)
    assert result.exit_code == 1
    assert "did you mean toy_script?" in result.output
    assert "did you mean toy_script?" in call("plot", "Toy").output
    assert "there are toy_script" in call("plot", "nothing of the kind").output


def test_plot_draws_from_the_csv(folders: list[str], tmp_path: Path) -> None:
    assert call("plot", "toy_script", *folders[2:]).exit_code == 1
    call("run", "toy_script", *folders)
    image = tmp_path / "figures" / "quick" / "toy_script.png"
    image.unlink()
    assert call("plot", "toy_script", *folders[2:]).exit_code == 0
    assert image.exists()


def test_status_counts_cells(folders: list[str]) -> None:
    before = call("status", *folders).output
    assert "0/6" in before
    assert "none" in before
    call("run", "toy_script", *folders)
    after = call("status", *folders).output
    assert "6/6" in after
    assert "present code" in after
    assert "2 of 2 passed" in after


def test_a_foreign_record_is_one_line(folders: list[str], tmp_path: Path) -> None:
    call("run", "toy_script", *folders)
    record = tmp_path / "figures" / "quick" / "toy_script.json"
    for content in ("{", "[]", '{"claims": []}'):
        record.write_text(content)
        for command in (("status", *folders), ("report", "--quick", *folders[2:])):
            result = call(*command)
            assert result.exit_code == 1
            assert "is not the record of a script" in result.output.replace("\n", " ")


def test_list_shows_the_first_line_of_each_script(folders: list[str]) -> None:
    del folders
    result = call("list")
    assert result.exit_code == 0
    assert "squares of n" in result.output


@pytest.mark.ci
def test_list_runs_as_a_module() -> None:
    result = subprocess.run(
        [sys.executable, "-m", "experiments", "list"], cwd=ROOT, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    assert "jl_error_vs_n" in result.stdout


def test_near_names_are_found_and_parts_are_required() -> None:
    with pytest.raises(UnknownScriptError, match="toy_script"):
        find("nothing like it", (TOY,))
    with pytest.raises(TypeError, match="must have a docstring, QUICK"):
        load("tests.experiments.trivial_sweep")


def test_the_catalogue_lists_every_script() -> None:
    # A module is a script if it defines `plot`. Other modules hold code that scripts share.
    scripts = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for path in (ROOT / "experiments").rglob("*.py")
        if "\ndef plot(table" in path.read_text()
    }
    assert scripts == set(catalogue.SCRIPTS)
    assert len({name.rpartition(".")[2] for name in scripts}) == len(scripts)


def test_the_catalogue_goes_folder_by_folder() -> None:
    folders = [name.rpartition(".")[0] for name in catalogue.SCRIPTS]
    runs = [folder for folder, _ in itertools.groupby(folders)]
    assert len(runs) == len(set(runs))
    questions = [question(folder) for folder in runs]
    assert all("?" in text for text in questions), questions


def test_committed_figures_carry_passed_claims() -> None:
    records = {path.stem: path for path in (ROOT / "paper_figures").glob("*.json")}
    assert set(records) == {name.rpartition(".")[2] for name in catalogue.SCRIPTS}
    for path in records.values():
        record = json.loads(path.read_text())
        assert record["preset"] == "full", path.name
        assert record["claims"], path.name
        assert all(claim["passed"] for claim in record["claims"]), path.name
