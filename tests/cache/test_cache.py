"""The cache finds public set-ups again, keeps its size limit and tolerates damaged files."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from geomdp.advice import advise
from geomdp.bodies import TableMoments
from geomdp.cache import CacheFiles, recalled
from geomdp.mechanisms import Hierarchical, Matrix, TightCone
from geomdp.noise.image_moments import BLOCK, REDRAWN
from geomdp.privacy import PureDP
from geomdp.workloads import MarginalTables


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GEOMDP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("GEOMDP_CACHE_MIB", raising=False)
    return tmp_path / "cache"


def counted(result):
    calls = []

    def compute():
        calls.append(1)
        return np.asarray(result, dtype=float)

    return calls, compute


#: `recalled` for arrays that need no check.
remembered = partial(recalled, check=lambda _: True)


def test_the_same_inputs_are_computed_once():
    calls, compute = counted([1.0, 2.0])
    inputs = ("a", 1.5, (2, 3), np.arange(4))
    for _ in range(3):
        np.testing.assert_array_equal(remembered("test", inputs, (2,), compute), [1.0, 2.0])
    assert len(calls) == 1
    assert CacheFiles.of_user().size()[0] == 1


@pytest.mark.parametrize(
    "other",
    [
        ("b", 1.5, (2, 3), np.arange(4)),
        ("a", 1.25, (2, 3), np.arange(4)),
        ("a", 1.5, (3, 2), np.arange(4)),
        ("a", 1.5, (2, 3), np.arange(4)[::-1]),
        ("a", 1.5, (2, 3), np.arange(4.0)),
        ("a", 1.5, (2, 3), np.arange(4).reshape(2, 2)),
    ],
)
def test_other_inputs_and_kinds_are_computed_again(other):
    calls, compute = counted(1.0)
    inputs = ("a", 1.5, (2, 3), np.arange(4))
    remembered("test", inputs, (), compute)
    remembered("test", other, (), compute)
    remembered("other", inputs, (), compute)
    assert len(calls) == 3


def test_another_version_of_the_code_computes_again(monkeypatch):
    calls, compute = counted(1.0)
    remembered("test", (), (), compute)
    monkeypatch.setattr("geomdp.cache.recall._code", lambda: "another")
    remembered("test", (), (), compute)
    assert len(calls) == 2


def test_a_damaged_file_is_logged_ignored_and_rewritten(folder, caplog):
    calls, compute = counted([1.0, 2.0, 3.0])
    remembered("test", (), (3,), compute)
    (path,) = folder.iterdir()
    path.write_bytes(path.read_bytes()[:-1] + b"!")
    with caplog.at_level(logging.WARNING, "geomdp.cache"):
        np.testing.assert_array_equal(remembered("test", (), (3,), compute), [1.0, 2.0, 3.0])
    assert "unreadable cache file" in caplog.text
    assert len(calls) == 2
    remembered("test", (), (3,), compute)
    assert len(calls) == 2


def no(_):
    return False


def overflow(stored):
    return bool(int(stored[0] * np.inf))


def no_eigenvalues(stored):
    raise np.linalg.LinAlgError("did not converge")


@pytest.mark.parametrize("check", [no, overflow, no_eigenvalues])
def test_an_array_that_fails_the_check_is_computed_again(check, caplog):
    calls, compute = counted([1.0])
    for _ in range(2):
        with caplog.at_level(logging.WARNING, "geomdp.cache"):
            assert recalled("test", (), (1,), compute, check=check) == 1.0
    assert len(calls) == 2
    assert caplog.text.count("not a result of this computation") == 1


def test_the_least_recently_used_are_deleted_first(folder):
    array = np.zeros(1000)
    files = CacheFiles(folder, limit=3 * 9000.0)
    for name in "abc":
        files.write(name, array)
    for age, name in enumerate("abc"):
        os.utime(folder / f"geomdp-{name}.f8", (age, age))
    assert files.read("a", (1000,)) is not None  # used now
    files.write("d", array)
    assert {path.stem for path in folder.iterdir()} == {"geomdp-a", "geomdp-c", "geomdp-d"}
    assert files.size()[1] <= files.limit


def test_only_files_of_the_cache_are_deleted(folder):
    files = CacheFiles(folder, limit=1e6)
    files.write("a", np.zeros(3))
    mine = ["notes.txt", "results.npz", "download.part"]
    for name in mine:
        (folder / name).write_text("mine")
        os.utime(folder / name, (0, 0))
    assert files.size()[0] == 1
    CacheFiles(folder, limit=1.0).write("b", np.zeros(3))  # deletes all files of the cache
    assert sorted(path.name for path in folder.iterdir()) == sorted(mine)
    files.write("a", np.zeros(3))
    assert files.clear() == 1
    assert sorted(path.name for path in folder.iterdir()) == sorted(mine)


def test_a_limit_of_zero_turns_the_cache_off(folder, monkeypatch):
    monkeypatch.setenv("GEOMDP_CACHE_MIB", "0")
    calls, compute = counted(1.0)
    for _ in range(2):
        remembered("test", (), (), compute)
    assert len(calls) == 2
    assert not folder.exists()


@pytest.mark.parametrize("text", ["-1", "nan", "much"])
def test_bad_limits(text, monkeypatch):
    monkeypatch.setenv("GEOMDP_CACHE_MIB", text)
    with pytest.raises(ValueError, match="GEOMDP_CACHE_MIB must be a number of MiB"):
        CacheFiles.of_user()


def test_a_folder_that_cannot_be_written_is_logged(folder, caplog):
    folder.write_text("a file")
    calls, compute = counted(1.0)
    with caplog.at_level(logging.WARNING, "geomdp.cache"):
        assert remembered("test", (), (), compute) == 1.0
    assert "could not write to the cache" in caplog.text
    assert len(calls) == 1


WRITER = """
import numpy as np
from pathlib import Path
from geomdp.cache import CacheFiles
files = CacheFiles(Path(__import__("sys").argv[1]), limit=200_000.0)
for i in range(300):
    name = f"n{i % 7}"
    stored = files.read(name, (5000,))
    assert stored is None or (stored == i % 7).all()
    files.write(name, np.full(5000, float(i % 7)))
"""


def test_several_processes_share_a_folder(folder):
    command = [sys.executable, "-W", "error", "-c", WRITER, str(folder)]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE) for _ in range(3)]
    errors = [process.communicate(timeout=100)[1].decode() for process in processes]
    assert errors == ["", "", ""]  # neither a crash nor a warning about half-written files
    assert not [path for path in folder.iterdir() if path.suffix != ".f8"]
    assert CacheFiles(folder, limit=200_000.0).size()[1] <= 200_000


class TestSetUps:
    workload = MarginalTables([3, 2, 3, 2], 2)

    @pytest.mark.parametrize("kind", [TightCone, Hierarchical, Matrix])
    def test_another_n_and_epsilon_draw_and_descend_no_more(self, kind, monkeypatch):
        first = kind(self.workload, n=500, privacy=PureDP(1.0)).predicted_rmse
        sample, drawn = TableMoments.sample_uniform, []

        def counting(body, n, rng):
            drawn.append(n)
            return sample(body, n, rng)

        def fail(*_, **__):
            raise AssertionError("computed again")

        monkeypatch.setattr(TableMoments, "sample_uniform", counting)
        monkeypatch.setattr("scipy.optimize.minimize", fail)
        other = kind(self.workload, n=700, privacy=PureDP(0.3)).predicted_rmse
        np.testing.assert_allclose(other.value * 700 * 0.3, first.value * 500, rtol=1e-12)
        assert sum(drawn) == (BLOCK * REDRAWN if kind is TightCone else 0)

    def test_advice_is_the_same_with_and_without_a_cache(self, monkeypatch):
        setting = {"n": 500, "privacy": PureDP(1.0), "exact_only": True}
        cached = [advise(self.workload, **setting) for _ in range(2)]
        monkeypatch.setenv("GEOMDP_CACHE_MIB", "0")
        plain = advise(self.workload, **setting)
        columns = ["mechanism", "predicted_rmse", "kind", "sampler", "why"]
        for run in cached:
            assert run.table[columns].equals(plain.table[columns])
            assert run.reasons == plain.reasons

    def test_no_record_enters(self, folder):
        mechanism = advise(self.workload, n=500, privacy=PureDP(1.0), exact_only=True).best
        before = {path.name: path.read_bytes() for path in folder.iterdir()}
        assert before
        for name in before:
            os.utime(folder / name, (0, 0))
        mechanism.release(self.workload.universe.sample(500, 0))
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
        # Reading or writing a file, even with the same content, would change its time.
        assert {path.stat().st_mtime for path in folder.iterdir()} == {0}
