"""The command `geomdp`, run in this process in an empty folder."""

import sys
from typing import NamedTuple

import pytest

from geomdp.cli import main


class Ended(NamedTuple):
    """The exit code, the output and the errors of a command."""

    code: int
    out: str
    err: str

    @property
    def words(self) -> str:
        """The output as one line."""
        return " ".join(self.out.split())

    def ok(self) -> str:
        """The output of a command, which must end without an error or a warning."""
        assert (self.code, self.err) == (0, "")
        return self.out

    def error(self) -> str:
        """The error message of a failed command, which must be one line and the only output."""
        assert (self.code, self.out) == (2, "")
        (line,) = self.err.splitlines()
        assert line.startswith("geomdp: error: ")
        return line


@pytest.fixture
def call(tmp_path, monkeypatch, capsys):
    """A function that runs a command, given as words or as one line."""
    monkeypatch.chdir(tmp_path)

    def run(*words) -> Ended:
        words = words[0].split() if len(words) == 1 else words
        monkeypatch.setattr(sys, "argv", ["geomdp", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            main()
        return Ended(stop.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def call_in_words(call):
    """The same, with the output as one line."""

    def run(*words) -> Ended:
        ended = call(*words)
        return ended._replace(out=ended.words)

    return run
