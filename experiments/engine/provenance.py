"""Where a result comes from: content hashes of the code, versions of packages, the commit."""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import platform
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

#: Packages whose versions can change a number or a figure.
PACKAGES = ("geomdp", "numpy", "scipy", "numba", "cvxpy", "highspy", "pandas", "matplotlib")


@dataclass(frozen=True)
class Code:
    """Content hashes of what computes a cell.

    Parameters
    ----------
    script : str
        SHA-256 of the source of the script and of all modules of `experiments` it imports.
    library : str
        SHA-256 of all Python sources of geomdp, with their paths.
    """

    script: str
    library: str

    @classmethod
    def of(cls, script: ModuleType) -> Code:
        """Hashes of `script`, from the files on disk, and of geomdp."""
        return cls(script=content_hash(sources(script)), library=LIBRARY_HASH)


def sources(script: ModuleType) -> dict[str, Path]:
    """Source files of `script` and of the modules of `experiments` it imports, directly or not."""
    found = {"script": _source(script)}
    unread = [*found.values()]
    while unread:
        for name in _imports(unread.pop()):
            spec = _find_spec(name)
            if spec is not None and spec.origin is not None and name not in found:
                found[name] = Path(spec.origin)
                unread.append(found[name])
    return found


def _imports(path: Path) -> list[str]:
    """Names under `experiments` in the import statements of a file; some may be no modules."""
    names = []
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [name for name in names if name.startswith("experiments.")]


def _find_spec(name: str) -> ModuleSpec | None:
    """Where a module comes from; None if `name` is something inside a module."""
    try:
        return importlib.util.find_spec(name)
    except ModuleNotFoundError:  # its parent is a module, not a package
        return None


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
    spec = importlib.util.find_spec("geomdp")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("geomdp must be installed: pip install -e .")
    folder = Path(spec.origin).parent
    return content_hash({str(path.relative_to(folder)): path for path in folder.rglob("*.py")})


#: Taken when the engine starts, before a script imports geomdp: an edit during a long sweep does
#: not give its results another name.
LIBRARY_HASH = _library_hash()
