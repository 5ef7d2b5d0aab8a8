"""A pytest plugin that changes one function in memory before any test is collected."""

import json

import pytest

from experiments.planting.edits import Edit, planted


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that holds the edit of the function."""
    parser.addoption("--edit", required=True, help="the edit to plant: where, old, new as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Make the edit, and undo it when the session ends."""
    edit = planted(Edit(**json.loads(config.getoption("--edit"))))
    edit.__enter__()
    config.add_cleanup(lambda: edit.__exit__(None, None, None))
