"""The folder of cached arrays, one file each. The least recently used file is deleted first."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import logging
import math
import os
import stat
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from geomdp._typing import FloatArray

#: Environment variable that names the folder. If it is not set, the user's cache folder is used.
FOLDER_VARIABLE = "GEOMDP_CACHE_DIR"
#: Environment variable for the largest total size of the files in MiB; 0 turns the cache off. The
#: second value is the default.
LIMIT_VARIABLE, DEFAULT_LIMIT = "GEOMDP_CACHE_MIB", 256.0
#: Endings of finished and of half-written files. A finished file holds the SHA-256 hash of the
#: entries of an array, then the entries as little-endian float64. The reader knows the shape, so
#: nothing in a file says how many bytes are to be read.
FINISHED, UNFINISHED, ENTRY, HASH_BYTES = ".f8", ".part", np.dtype("<f8"), 32
#: Names of all files of the cache start with this text. Other files in the folder are kept.
PREFIX = "geomdp-"
#: A half-written file that is older than this number of seconds counts as abandoned.
ABANDONED = 3600.0

logger = logging.getLogger("geomdp.cache")


@dataclass(frozen=True)
class CacheFiles:
    """Arrays stored on disk by name. Several processes can use the folder at the same time.

    A file is written under a temporary name and then renamed, so no reader sees half of a file. A
    file that cannot be read is treated as absent. If the folder cannot be written to, nothing is
    stored. In both cases, a warning is logged and no error is raised. A warning also says if other
    users can write to the folder.

    Parameters
    ----------
    folder : Path
        Where the files are. The folder is created at the first write.
    limit : float
        Largest total size of all files in bytes. With 0, nothing is read or written.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import numpy as np
    >>> from geomdp.cache import CacheFiles
    >>> with TemporaryDirectory() as folder:
    ...     files = CacheFiles(Path(folder), limit=1e6)
    ...     files.write("squares", np.array([1.0, 4.0, 9.0]))
    ...     print(files.read("squares", shape=(3,)), files.read("cubes", shape=(3,)))
    ...     print(files.clear())
    ...
    [1. 4. 9.] None
    1
    """

    folder: Path
    limit: float

    @classmethod
    def of_user(cls) -> Self:
        """The cache with the folder and the limit that the environment variables name.

        Raises
        ------
        ValueError
            If GEOMDP_CACHE_MIB is neither empty nor a number of at least 0.
        """
        folder = os.environ.get(FOLDER_VARIABLE)
        if not folder:
            import platformdirs

            folder = platformdirs.user_cache_dir("geomdp", appauthor=False)
        text = os.environ.get(LIMIT_VARIABLE, "")
        try:
            mebibytes = float(text) if text else DEFAULT_LIMIT
        except ValueError:
            mebibytes = math.nan
        # `not ... >= 0` also refuses NaN.
        if not mebibytes >= 0:
            raise ValueError(f"{LIMIT_VARIABLE} must be a number of MiB, at least 0, got {text!r}")
        return cls(Path(folder), mebibytes * 2**20)

    def read(self, name: str, shape: tuple[int, ...]) -> FloatArray | None:
        """The array stored under `name`; None if there is no readable array of this shape."""
        if self.limit == 0:
            return None
        path = self._path(name)
        try:
            _warn_if_shared(self.folder)
            array = _entries(path, math.prod(shape)).reshape(shape)
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            self.ignore(name, str(error))
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # record the time of use: the least recently used file is deleted first
        return array

    def ignore(self, name: str, reason: str) -> None:
        """Log a warning: the array stored under `name` is not used."""
        logger.warning("ignored the unreadable cache file %s: %s", self._path(name), reason)

    def write(self, name: str, array: FloatArray) -> None:
        """Store `array` under `name`; to keep the limit, delete the least recently used files."""
        if self.limit == 0:
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(
                dir=self.folder, prefix=PREFIX, suffix=UNFINISHED
            )
            try:
                with os.fdopen(descriptor, "wb") as file:
                    content = np.asarray(array, dtype=ENTRY).tobytes()
                    file.write(hashlib.sha256(content).digest() + content)
                os.replace(temporary, self._path(name))
            except BaseException:
                Path(temporary).unlink(missing_ok=True)
                raise
            self._shrink()
        except OSError as error:
            logger.warning("could not write to the cache %s: %s", self.folder, error)

    def size(self) -> tuple[int, int]:
        """Number of files, and the bytes that they take together."""
        sizes = [size for _, size, _ in self._listed()]
        return len(sizes), sum(sizes)

    def clear(self) -> int:
        """Delete all cache files but unfinished ones of the last hour; return their number."""
        paths = [path for _, _, path in self._listed()]
        for path in paths:
            path.unlink(missing_ok=True)
        return len(paths)

    def _path(self, name: str) -> Path:
        return self.folder / f"{PREFIX}{name}{FINISHED}"

    def _listed(self) -> list[tuple[float, int, Path]]:
        """Time of last use, bytes and path of each file, the least recently used first."""
        found = []
        try:
            paths = [path for path in self.folder.iterdir() if path.name.startswith(PREFIX)]
        except OSError:
            return []
        for path in paths:
            with contextlib.suppress(OSError):  # another process may have deleted it
                status = path.lstat()
                # Do not list an unfinished file of the last hour: a process may be writing to it.
                left = path.suffix != UNFINISHED or time.time() - status.st_mtime > ABANDONED
                if left and stat.S_ISREG(status.st_mode):
                    found.append((status.st_mtime, status.st_size, path))
        return sorted(found)

    def _shrink(self) -> None:
        files = self._listed()
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total <= self.limit:
                return
            path.unlink(missing_ok=True)
            total -= size


def _entries(path: Path, count: int) -> FloatArray:
    """The `count` finite entries stored in `path`, which must be a regular file of that size."""
    # Opening a pipe without O_NONBLOCK would wait for a writer.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        size = HASH_BYTES + count * ENTRY.itemsize
        if not stat.S_ISREG(status.st_mode) or status.st_size != size:
            raise ValueError(f"expected a regular file of {size} bytes")
        digest, entries = file.read(HASH_BYTES), file.read(size - HASH_BYTES)
    array = np.frombuffer(entries, ENTRY).astype(np.float64)
    if hashlib.sha256(entries).digest() != digest or not np.isfinite(array).all():
        raise ValueError(f"expected {count} finite numbers that match their hash")
    return array


@functools.cache
def _warn_if_shared(folder: Path) -> None:
    """Log a warning, once for each folder, if users other than its owner can write to it."""
    if folder.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        logger.warning("other users can change the cache %s: chmod go-w makes it private", folder)
