"""Where a result comes from: content hashes of the code, versions of packages, the commit."""

from __future__ import annotations

import hashlib
import importlib.metadata
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import geomdp
from experiments.engine import cells

#: Packages whose versions can change a number or a figure.
PACKAGES = ("geomdp", "numpy", "scipy", "numba", "cvxpy", "highspy", "pandas", "matplotlib")


@dataclass(frozen=True)
class Code:
    """Content hashes of what computes a cell.

    Parameters
    ----------
    script : str
        SHA-256 of the source of the script and of the module that derives the seeds.
    library : str
        SHA-256 of all Python sources of geomdp, with their paths.
    """

    script: str
    library: str

    @classmethod
    def of(cls, script: ModuleType) -> Code:
        """Hashes of `script`, from the file on disk, and of the geomdp that was imported."""
        files = {"script": _source(script), "cells": _source(cells)}
        return cls(script=content_hash(files), library=LIBRARY_HASH)


def content_hash(files: Mapping[str, Path]) -> str:
    """SHA-256 over names and contents of `files`, independent of their order."""
    digest = hashlib.sha256()
    for name in sorted(files):
        for part in (name.encode(), files[name].read_bytes()):
            # The length in front keeps names and contents from running into each other.
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    return digest.hexdigest()


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the packages that can change a result."""
    installed = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), **installed}


def commit() -> str | None:
    """The commit checked out, with ``+changes`` for an edited tree; None outside a repository.

    Generated figures do not count as edits: otherwise writing one figure would mark the next.
    """
    root = Path(__file__).resolve().parents[2]
    command = ["git", "-C", str(root)]
    try:
        head = subprocess.run(
            [*command, "rev-parse", "HEAD"], capture_output=True, text=True, check=True
        )
        edits = subprocess.run(
            [*command, "status", "--porcelain", "--", "geomdp", "experiments"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None  # no git, or an unpacked archive: there is no commit to name
    return head.stdout.strip() + ("+changes" if edits.stdout.strip() else "")


def _source(module: ModuleType) -> Path:
    if module.__file__ is None:
        raise ValueError(f"script must be a module with a source file, got {module.__name__}")
    return Path(module.__file__)


def _library_hash() -> str:
    folder = _source(geomdp).parent
    return content_hash({str(path.relative_to(folder)): path for path in folder.rglob("*.py")})


#: Taken as soon as geomdp is imported: an edit during a long sweep does not rename its results.
LIBRARY_HASH = _library_hash()
