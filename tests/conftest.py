"""Settings for the whole suite: generated examples are the same in every run, and never timed.

Set-ups are cached in a folder of this run, never in that of the user, so that no result comes from
an earlier run.
"""

import atexit
import os
import shutil
import tempfile

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
