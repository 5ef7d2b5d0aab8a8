"""Settings for the whole suite: generated examples are the same in every run, and never timed.

Set-ups are cached in a folder of this run, never in that of the user, so that no result comes from
an earlier run.
"""

import atexit
import gc
import logging
import os
import shutil
import tempfile

import pytest
from hypothesis import settings

# Time belongs in benchmarks: a deadline would fail on a busy machine. Fixed examples make every
# failure repeatable.
settings.register_profile("suite", deadline=None, derandomize=True)
settings.load_profile("suite")

# Set at import, before a module-wide fixture computes anything. Workers inherit the folder of the
# process that starts them.
if "PYTEST_XDIST_WORKER" not in os.environ:
    folder = tempfile.mkdtemp(prefix="geomdp-tests-")
    os.environ["GEOMDP_CACHE_DIR"] = folder
    atexit.register(shutil.rmtree, folder, ignore_errors=True)

# In a fresh environment, whichever test compiles first would print that it does.
logging.getLogger("geomdp.compilation").setLevel(logging.WARNING)

# Collection makes a million objects that stay to the end. Searching them for garbage takes seconds,
# so Python does not do it during collection, and leaves them out afterwards.
gc.disable()


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


#: Files with tests of ten seconds and more. They run first: a long test at the end would leave the
#: other processes idle.
LONGEST = (
    "tests/test_contributing.py",
    "tests/test_experiments.py",
)


@pytest.hookimpl(trylast=True)  # after tests that are not asked for have been left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Move the tests of `LONGEST` to the front, and leave the order as it is otherwise.

    Each process of `--dist worksteal` begins with a half of the list, so that tests of one file,
    which share bodies and mechanisms, mostly run in one process. The long tests are dealt out to
    the beginnings of both halves.
    """
    first = [item for item in items if item.nodeid.startswith(LONGEST)]
    rest = [item for item in items if not item.nodeid.startswith(LONGEST)]
    half = (len(items) + 1) // 2 - len(first[::2])
    items[:] = [*first[::2], *rest[:half], *first[1::2], *rest[half:]]
