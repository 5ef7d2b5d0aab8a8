"""The folder of cached arrays, one npz file each. The least recently used file is deleted first."""

from __future__ import annotations

import contextlib
import logging
import math
import os
import tempfile
import time
import zipfile
import zlib
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
#: Name of the array in a file, and endings of finished and of half-written files.
ARRAY, FINISHED, UNFINISHED = "value", ".npz", ".part"
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
    stored. In both cases, a warning is logged and no error is raised.

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
        path = self._path(name)
        if self.limit == 0:
            return None
        try:
            # Open the file here, because `np.load` leaves a damaged file open.
            with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                array = stored[ARRAY]
            if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
                raise ValueError(f"expected finite float64 of shape {shape}")
        except FileNotFoundError:
            return None
        except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile, zlib.error) as error:
            logger.warning("ignored the unreadable cache file %s: %s", path, error)
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # record the time of use: the least recently used file is deleted first
        return np.asarray(array)

    def write(self, name: str, array: FloatArray) -> None:
        """Store `array` under `name`; to keep the limit, delete the least recently used files."""
        if self.limit == 0:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(
                dir=self.folder, prefix=PREFIX, suffix=UNFINISHED
            )
            try:
                with os.fdopen(descriptor, "wb") as file:
                    np.savez(file, allow_pickle=False, **{ARRAY: array})
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
                status = path.stat()
                # Do not list an unfinished file of the last hour: a process may be writing to it.
                left = path.suffix == UNFINISHED and time.time() - status.st_mtime > ABANDONED
                if path.suffix == FINISHED or left:
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
