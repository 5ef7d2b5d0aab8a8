"""The first command of the README passes while other processes keep every core busy.

The time is printed, and no test depends on it: ``pytest -n 0 -s -m slow`` with this file runs the
command on the machine as it is, then ten times beside two busy processes, and prints the ratios.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
#: Most lines that the command prints.
MOST_LINES = 60
#: The command on one script.
TOY = """
from experiments import __main__ as command_line
command_line.SCRIPTS = ("tests.experiments.toy_script",)
if __name__ == "__main__":
    command_line.app()
"""


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep `count` processes at work beside the block."""
    burners = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


def passes(command: list[str], folder: Path) -> float:
    """Run ``reproduce --quick`` in a new folder, check how it ends, and return the seconds."""
    folders = ["--results", str(folder / "results"), "--figures", str(folder / "figures")]
    arguments = [sys.executable, *command, "reproduce", "--quick", *folders]
    start = time.perf_counter()
    done = subprocess.run(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - start
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    assert len(lines) <= MOST_LINES
    assert done.stdout.isascii()
    assert not set(done.stdout) & {"\x1b", "\r"}
    figures = Path(lines[-1].removeprefix("these figures: "))
    assert figures.is_relative_to(folder)
    assert [*figures.glob("*.png")]
    return seconds


def test_a_toy_command_passes_beside_busy_processes(tmp_path):
    with busy(2):
        passes(["-c", TOY], tmp_path)


@pytest.mark.slow
def test_the_first_command_passes_ten_times_beside_busy_processes(tmp_path):
    command = ["-m", "experiments"]
    alone = passes(command, tmp_path / "alone")
    print(f"\nalone: {alone:.0f} s")
    with busy(2):
        for run in range(10):
            seconds = passes(command, tmp_path / str(run))
            print(f"beside two busy processes: {seconds:.0f} s, {seconds / alone:.2f} times")
