"""Where a result comes from: content hashes of the code, versions of packages, the commit.

A hash covers what modules compute, not how they are written down or where they are. Each module
is parsed; its docstrings and import statements are removed, and the rest of the syntax tree is
hashed. The hash of several modules is the hash of the set of their hashes, without their names.

* The hash does not change with comments, docstrings, formatting, or the arguments and causes of
  raised exceptions. It does not depend on the module from which a name is imported, on the place of
  a module, or on modules that hold only a docstring and imports.
* The hash changes with every other change of code: a constant, a default, the name of a variable,
  the order of statements, a module that is added or removed. Moving a function from one module to
  another changes both modules, and therefore the hash. The hash of geomdp covers the modules that a
  script can reach (`experiments.engine.reach`), so a change of other modules does not make the
  script's figure stale.

Some edits can therefore change a result without changing the hash: for instance, importing another
object under the same name, or swapping the names of two modules or of two exports. A result's
record also names the commit and the versions of packages, which tell such cases apart.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.metadata
import importlib.util
import platform
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import experiments
from experiments.engine.reach import Snapshot

#: Packages whose versions can change a number or a figure. All are installed with geomdp.
PACKAGES = (
    "geomdp", "numpy", "scipy", "numba", "python-flint", "cvxpy", "scs", "highspy", "pandas",
    "matplotlib",
)  # fmt: skip


@dataclass(frozen=True)
class Code:
    """Content hashes of the code that computes a cell of a sweep."""

    script: str  # SHA-256 of the code of the script and of all modules of `experiments` it imports
    library: str  # SHA-256 of all modules of geomdp that this code can reach

    @classmethod
    def of(cls, script: ModuleType) -> Code:
        """Hashes of `script`, read from disk, and of the modules of geomdp that it can reach."""
        return cls.of_texts(texts_of(script))

    @classmethod
    def of_texts(cls, texts: Sequence[str]) -> Code:
        """Hashes of a script, given by its `texts_of`, and of the geomdp modules it can reach."""
        # A script that starts processes may run any command of the library.
        runs = any(_within(name, "subprocess") for text in texts for name in imported_names(text))
        modules = LIBRARY.everything() if runs else LIBRARY.reached(texts)
        library = hash_of(LIBRARY.texts[module] for module in modules)
        return cls(script=hash_of(texts), library=library)


def texts_of(script: ModuleType) -> tuple[str, ...]:
    """The texts of the files in `sources`, read from disk; the text of `script` comes first."""
    data = [
        f"DATA = {path.read_text(encoding='utf-8')!r}" for path in getattr(script, "DATA_FILES", ())
    ]
    return (*(path.read_text(encoding="utf-8") for path in sources(script).values()), *data)


def sources(script: ModuleType) -> dict[str, Path]:
    """Source files of `script` and of the modules of `experiments` it imports, directly or not."""
    found = {"script": _source(script)}
    unread = [*found.values()]
    while unread:
        for name in imported_names(unread.pop().read_text(encoding="utf-8")):
            path = _file_of(name) if _within(name, "experiments") else None
            if path is not None and name not in found:
                found[name] = path
                unread.append(path)
    return found


@cache
def imported_names(text: str) -> list[str]:
    """Dotted names of the modules that a text imports, and of the objects imported from them."""
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def _within(name: str, package: str) -> bool:
    return f"{name}.".startswith(f"{package}.")


def _file_of(name: str) -> Path | None:
    """Source file of a module of `experiments`; None if `name` is something inside a module.

    The file is looked up on disk. For the name of an object, `importlib.util.find_spec` would
    import the object's module, which may need optional packages.
    """
    parts = name.split(".")[1:]
    for folder in experiments.__path__:
        place = Path(folder, *parts)
        for path in (place / "__init__.py", place.with_suffix(".py")):
            if path.is_file():
                return path
    return None


def content_hash(files: Iterable[Path]) -> str:
    """SHA-256 of the code in `files`: the same wherever they are, and in any order."""
    return hash_of(path.read_text(encoding="utf-8") for path in files)


def hash_of(texts: Iterable[str]) -> str:
    """SHA-256 of the code of modules with these texts, in any order."""
    digests = set(map(module_hash, texts))
    # Modules without code, such as the roots of packages, come and go without changing a result.
    digests.discard(module_hash(""))
    return hashlib.sha256("".join(sorted(digests)).encode()).hexdigest()


@cache
def module_hash(source: str) -> str:
    """SHA-256 of the syntax tree of a module without docstrings and import statements."""
    return hashlib.sha256(repr(_code(ast.parse(source))).encode()).hexdigest()


def _code(part: object) -> object:
    """A part of a syntax tree as tuples and lists, without statements that compute nothing.

    Empty fields are left out, because versions of Python differ in which empty fields they have.
    """
    if isinstance(part, ast.Raise):
        # Only the type counts, because the message of an error changes no number.
        return "Raise", _code(part.exc.func if isinstance(part.exc, ast.Call) else part.exc)
    if isinstance(part, ast.AST):
        fields = ((name, _code(getattr(part, name, None))) for name in part._fields)
        return type(part).__name__, [(name, v) for name, v in fields if v not in (None, [])]
    if isinstance(part, list):
        return [_code(item) for item in part if not _is_silent(item)]
    return part


def _is_silent(statement: object) -> bool:
    """Whether a statement is an import, an unused string, or an `if` with only such statements."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return True
    if isinstance(statement, ast.If):
        # For instance `if TYPE_CHECKING:` before imports for type checkers.
        return not statement.orelse and all(map(_is_silent, statement.body))
    if not isinstance(statement, ast.Expr) or not isinstance(statement.value, ast.Constant):
        return False
    return isinstance(statement.value.value, str)


@cache
def versions() -> dict[str, str]:
    """Versions of Python and of the packages that can change a result."""
    installed = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), **installed}


def commit() -> str | None:
    """The commit checked out, with ``+changes`` if code was edited; None outside a repository.

    Only edits in `geomdp` and `experiments` count. Generated figures do not: otherwise the commit
    of every figure after the first one of a run would be marked.
    """
    command = ["git", "-C", str(Path(__file__).resolve().parents[2])]
    queries = ["rev-parse", "HEAD"], ["status", "--porcelain", "--", "geomdp", "experiments"]
    try:
        head, edits = (
            subprocess.run([*command, *query], capture_output=True, text=True, check=True).stdout
            for query in queries
        )
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None  # no git, or an unpacked archive: there is no commit to name
    return head.strip() + ("+changes" if edits.strip() else "")


def _source(module: ModuleType) -> Path:
    if module.__file__ is None:
        raise ValueError(f"script must be a module with a source file, got {module.__name__}")
    return Path(module.__file__)


def _library() -> Snapshot:
    spec = importlib.util.find_spec("geomdp")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("geomdp must be installed: pip install -e .")
    return Snapshot.of(Path(spec.origin).parent)


#: The library is read when the engine starts, before a script imports geomdp. An edit of geomdp
#: during a long sweep therefore does not change the hash of the results of this sweep.
LIBRARY = _library()
