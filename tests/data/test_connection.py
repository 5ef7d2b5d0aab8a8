"""Records that do not fit into memory are written to a folder that only this user can read."""

import os
import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from geomdp.data import Query
from geomdp.data.queries import opened, spill_folder

SETTING = "SELECT current_setting('temp_directory') AS x"
#: A program that stores more rows than the memory limit allows. It prints the folder with the rest
#: of the rows, the mode of the folder, and the number of its files.
SPILLING = """
import os, pathlib, stat
from geomdp.data.queries import opened
with opened(None) as connection:
    connection.execute("SET threads = 1")
    connection.execute("SET memory_limit = '40MB'")
    connection.execute("CREATE TEMP TABLE many AS SELECT hash(i) AS h FROM range(8000000) t(i)")
    ((folder,),) = connection.sql("SELECT current_setting('temp_directory')").fetchall()
    held = sum(1 for file in pathlib.Path(folder).rglob("*") if file.is_file())
    print(folder, oct(stat.S_IMODE(os.stat(folder).st_mode)), held)
"""


def test_all_databases_spill_to_a_private_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = spill_folder(os.getpid())
    assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700
    with opened(None) as connection:
        assert connection.sql(SETTING).fetchall() == [(folder,)]
    import duckdb

    path = str(tmp_path / "records.duckdb")
    duckdb.connect(path).close()
    for database in (None, path):
        (chunk,) = Query(SETTING, database).chunks(["x"])
        assert chunk["x"].to_pylist() == [folder]


def test_threads_of_a_process_share_one_folder(monkeypatch):
    """Both threads have found no folder before either has made one."""
    process, both = -1, threading.Barrier(2, timeout=60)
    make = tempfile.mkdtemp

    def together(prefix):
        both.wait()
        return make(prefix=prefix)

    monkeypatch.setattr(tempfile, "mkdtemp", together)
    with ThreadPoolExecutor(2) as threads:
        found = set(threads.map(spill_folder, [process, process]))
    assert found == {spill_folder(process)}
    os.rmdir(found.pop())


def test_records_that_spill_leave_nothing_behind(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", SPILLING],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    folder, mode, held = done.stdout.split()
    assert mode == "0o700"
    assert int(held) > 0  # otherwise all rows fitted into memory, and nothing was tested
    assert not Path(folder).exists()
    assert not [*tmp_path.iterdir()]


def test_a_forked_process_does_not_delete_the_folder_of_its_parent():
    program = (
        "import os, sys, pathlib\n"
        "from geomdp.data.queries import spill_folder\n"
        "folder = pathlib.Path(spill_folder(os.getpid()))\n"
        "child = os.fork()\n"
        "if child == 0:\n    sys.exit()\n"  # the child runs the exit functions that it inherited
        "_, status = os.waitpid(child, 0)\n"
        "print(status, folder.is_dir())\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == ["0", "True"]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_processes_that_end_normally_delete_their_folders(tmp_path, method):
    program = (
        "import multiprocessing, os, pathlib\n"
        "from concurrent.futures import ProcessPoolExecutor\n"
        "from geomdp.data.queries import spill_folder\n"
        f"context = multiprocessing.get_context({method!r})\n"
        "with ProcessPoolExecutor(1, mp_context=context) as executor:\n"
        "    process = executor.submit(os.getpid).result()\n"
        "    folder = pathlib.Path(executor.submit(spill_folder, process).result())\n"
        "    print(folder.is_dir())\n"
        "print(folder.exists())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path)},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split() == ["True", "False"]
    assert not [*tmp_path.iterdir()]
