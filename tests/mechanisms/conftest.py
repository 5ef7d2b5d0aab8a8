"""Settings for the tests of mechanisms."""

import warnings

import pytest


@pytest.fixture(autouse=True)
def _large_epsilon_is_meant() -> None:
    """Let tests release with so large an epsilon that noise hides no error."""
    warnings.filterwarnings("ignore", ".* protects little", UserWarning)
