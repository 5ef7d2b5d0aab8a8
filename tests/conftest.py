"""Settings for the whole suite: generated examples are the same in every run, and never timed."""

import gc
import logging

import pytest
from hypothesis import settings

# A test with a deadline would fail on a busy machine; benchmarks measure time. Fixed examples make
# every failure repeatable.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")

# In a fresh environment, the first test that compiles a function would print a line about it.
logging.getLogger("geomdp.compilation").setLevel(logging.WARNING)

# When pytest collects the tests, it makes a million objects that stay to the end. Searching these
# objects for garbage takes seconds. So the garbage collector is off until all tests are collected,
# and ignores these objects afterwards.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


#: Files with tests of ten seconds and more. They run first: a long test at the end would leave the
#: other processes idle.
LONGEST = ("tests/test_contributing.py", "tests/test_experiments.py")


@pytest.hookimpl(trylast=True)  # runs after pytest has removed the tests that are not selected
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the tests of `LONGEST` to the beginnings of both halves; keep the order of the others.

    With `--dist worksteal`, each of two processes begins with one half of the list. So tests of one
    file, which share bodies and mechanisms, mostly run in one process. The long tests are
    distributed evenly over both halves.
    """
    first = [item for item in items if item.nodeid.startswith(LONGEST)]
    rest = [item for item in items if not item.nodeid.startswith(LONGEST)]
    half = (len(items) + 1) // 2 - len(first[::2])
    items[:] = [*first[::2], *rest[:half], *first[1::2], *rest[half:]]
