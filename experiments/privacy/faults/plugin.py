"""Plugin of pytest that plants one fault of the catalogue before any test is collected."""

from __future__ import annotations

import pytest

from experiments.privacy.faults.catalogue import FAULTS
from experiments.privacy.faults.planting import planted


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the fault."""
    parser.addoption("--fault", required=True, choices=sorted(FAULTS), help="the fault to plant")


def pytest_configure(config: pytest.Config) -> None:
    """Plant the fault until the session ends."""
    fault = planted(FAULTS[config.getoption("--fault")])
    fault.__enter__()
    config.add_cleanup(lambda: fault.__exit__(None, None, None))
