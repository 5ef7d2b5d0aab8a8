"""Arrays that someone else put into the cache change neither noise nor any stated error."""

from __future__ import annotations

import ast
import io
import logging
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import geomdp
from geomdp.cache import CacheFiles, recalled
from geomdp.mechanisms import Mechanism, TightCone
from geomdp.noise.intervals import half_widths
from geomdp.privacy import PureDP
from geomdp.workloads import MarginalTables

#: Mechanisms whose set-up uses each kind of stored array.
USES: dict[str, Callable[[], Mechanism]] = {
    "table-moments": lambda: TightCone(MarginalTables([2, 3], 2), n=500, privacy=PureDP(1.0)),
}


def rolled(array: np.ndarray) -> np.ndarray:
    """All entries moved by one place along each axis."""
    for axis in range(array.ndim):
        array = np.roll(array, 1, axis)
    return array


def all_but_the_first(factor: float) -> Callable[[np.ndarray], np.ndarray]:
    """Keep the first entries, which a reader that checks only the beginning would accept."""

    def change(array: np.ndarray) -> np.ndarray:
        return np.concatenate([array[: len(array) // 4], factor * array[len(array) // 4 :]])

    return change


PLANTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "small": lambda array: 1e-3 * array,
    "doubled": lambda array: 2 * array,
    "negative": lambda array: -array,
    "zero": np.zeros_like,
    "even": np.ones_like,
    "permuted": rolled,
    "shuffled": lambda array: (
        np.random.default_rng(0).permutation(array.ravel()).reshape(array.shape)
    ),
    "huge": lambda array: 1e300 * np.sign(array),
    "alike": lambda array: np.full_like(array, 1e308),
    "nan": lambda array: array * np.nan,
    "half": lambda array: 0.5 * array,
    "all but the first, zero": all_but_the_first(0.0),
    "all but the first, half": all_but_the_first(0.5),
}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("GEOMDP_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("GEOMDP_CACHE_MIB", raising=False)
    return tmp_path / "cache"


def test_each_stored_array_of_the_library_is_in_the_table():
    kinds = []
    for path in Path(geomdp.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "recalled":
                assert isinstance(node.args[0], ast.Constant)
                kinds.append(node.args[0].value)
    assert sorted(kinds) == sorted(USES)


def stated(kind: str) -> list[float]:
    """The stated errors of a new mechanism, and some of its noise."""
    mechanism = USES[kind]()
    noise = mechanism.noise
    return [
        mechanism.predicted_rmse.value,
        mechanism.predicted_rmse.stderr,
        *half_widths(noise),
        *noise.variances(),
        *noise.sample(np.random.default_rng(0), 3).ravel(),
    ]


@pytest.mark.parametrize("plant", PLANTS)
@pytest.mark.parametrize("kind", USES)
def test_a_planted_array_changes_neither_noise_nor_stated_errors(kind, plant, monkeypatch, caplog):
    write, refusable = CacheFiles.write, []

    def planted(files, name, array):
        changed = PLANTS[plant](array) if name.startswith(kind) else array
        refusable.extend([name] * (not np.array_equal(changed, array)))
        write(files, name, changed)

    monkeypatch.setattr(CacheFiles, "write", planted)
    honest = stated(kind)
    assert refusable
    monkeypatch.setattr(CacheFiles, "write", write)
    with caplog.at_level(logging.WARNING, "geomdp.cache"):
        np.testing.assert_allclose(stated(kind), honest, rtol=1e-12, atol=0)
    assert {name for name in refusable if name in caplog.text} == set(refusable)


# --- damaged files ------------------------------------------------------------------------------

SHAPE = (4,)
#: Number of damaged files; each way to damage a file gets its share.
DAMAGED = 10_000


def array_files() -> Iterator[bytes]:
    """Files of other formats, which a reader that looks inside may trip over."""
    for array in (np.zeros(4), np.zeros(1 << 20), np.array([print], dtype=object)):
        for pack in (np.save, np.savez, np.savez_compressed):
            file = io.BytesIO()
            pack(file, array)
            yield file.getvalue()


def damaged_bytes(content: bytes, rng: np.random.Generator) -> Iterator[bytes]:
    """Contents that are not that of an honest file: flips of each bit first, then random ones."""
    for place in range(8 * len(content)):
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        yield bytes(changed)
    yield from (content[:size] for size in range(len(content)))
    yield from array_files()
    while True:
        changed = bytearray(content)
        for place in rng.integers(len(content), size=rng.integers(1, 9)):
            changed[place] ^= rng.integers(1, 256)
        yield bytes(changed)
        yield content + rng.bytes(int(rng.integers(1, 100)))
        yield rng.bytes(len(content))


def test_ten_thousand_damaged_files_are_as_good_as_none(folder, caplog):
    caplog.set_level(logging.CRITICAL, "geomdp.cache")
    recalled("test", (), SHAPE, lambda: np.arange(4.0) + 1, check=lambda _: False)
    (path,) = folder.iterdir()
    content, files = path.read_bytes(), CacheFiles.of_user()
    name = path.name.removeprefix("geomdp-").removesuffix(path.suffix)
    assert files.read(name, SHAPE) is not None
    damaged = damaged_bytes(content, np.random.default_rng(0))
    with path.open("r+b", buffering=0) as file:
        for _ in range(DAMAGED):
            changed = next(damaged)
            file.seek(0)
            file.write(changed)
            file.truncate()
            assert files.read(name, SHAPE) is None


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "device", "sparse"])
def test_what_is_no_regular_file_is_as_good_as_none(kind, folder, caplog):
    files = CacheFiles.of_user()
    files.write("test", np.ones(4))
    (path,) = folder.iterdir()
    place = folder / "elsewhere"
    path.rename(place)
    match kind:
        case "folder":
            path.mkdir()
            (path / "inside").write_text("mine")
        case "pipe":
            os.mkfifo(path)
        case "link":
            path.symlink_to(place)
        case "device":
            path.symlink_to("/dev/zero")
        case "sparse":
            path.touch()
            os.truncate(path, 1 << 40)
    with caplog.at_level(logging.WARNING, "geomdp.cache"):
        assert files.read("test", SHAPE) is None
    assert "ignored the unreadable cache file" in caplog.text
    assert files.clear() == (1 if kind == "sparse" else 0)
    files.write("test", np.ones(4))
    assert files.size()[0] == (0 if kind == "folder" else 1)


def test_a_folder_that_others_can_change_gives_one_warning(folder, caplog):
    for name, mode, warnings in (("private", 0o700, 0), ("group", 0o770, 1), ("all", 0o707, 1)):
        files = CacheFiles(folder / name, limit=1e6)
        files.write("test", np.ones(4))
        assert stat.S_IMODE(files.folder.stat().st_mode) == 0o700
        files.folder.chmod(mode)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "geomdp.cache"):
            for _ in range(2):
                assert files.read("test", SHAPE) is not None
        assert caplog.text.count("other users can change the cache") == warnings
