"""The first compilation of a process is announced by one line."""

import logging

from numba.core.event import install_listener

from geomdp._numerics.compilation import _Announcement, numba
from geomdp.cli.display import COMPILATION, working


def test_one_line_is_logged_however_many_functions_are_compiled(caplog):
    first, second = numba.njit(lambda x: x + 1), numba.njit(lambda x: x + 2)
    with (
        caplog.at_level(logging.INFO, logger=COMPILATION.name),
        install_listener("numba:compile", _Announcement()),
    ):
        assert first(1) == 2
        assert second(1) == 3
    said = [record.message for record in caplog.records if record.name == COMPILATION.name]
    # The listener of the library logs a line, too, unless this process has compiled before.
    assert 1 <= len(said) <= 2
    assert all("compiling" in message for message in said)


def test_the_command_writes_it_to_standard_error(capsys, caplog):
    with caplog.at_level(logging.INFO, logger=COMPILATION.name):
        with working("a step"):
            COMPILATION.info("compiling")
        COMPILATION.info("after the step")
    assert capsys.readouterr().err.splitlines() == ["geomdp: compiling"]
