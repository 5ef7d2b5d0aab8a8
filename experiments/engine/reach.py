"""Which modules of geomdp a script can reach, found by reading its text.

The packages of geomdp load a module when one of its names is first used. An import of a package
therefore does not show which modules a script can run. The script is read for the names that it
uses from geomdp, and the stubs of the packages (``__init__.pyi``) give the modules of these names.
These modules are read in the same way for the modules that they use. A package used without a name,
as in ``getattr(gd.mechanisms, name)``, counts as a use of all its modules.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path, PurePosixPath

LIBRARY = "geomdp"
STUB, ROOT = "__init__.pyi", "__init__.py"


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The source files of the library as they were at one moment."""

    #: Text of each ``.py`` and ``.pyi`` file, by its path below the folder of the library.
    texts: Mapping[PurePosixPath, str] = field(repr=False)

    @classmethod
    def of(cls, folder: Path) -> Snapshot:
        """The files in `folder`, read now."""
        paths = [*folder.rglob("*.py"), *folder.rglob("*.pyi")]
        return cls({PurePosixPath(p.relative_to(folder)): p.read_text("utf-8") for p in paths})

    @cached_property
    def _used(self) -> dict[PurePosixPath, set[PurePosixPath]]:
        """The modules that each module uses. `reached` adds an entry for each module it reads."""
        return {}

    @cached_property
    def _exports(self) -> dict[PurePosixPath, dict[str, list[str]]]:
        """For each package, the names it exports and the parts of the dotted name behind each."""
        stubs = (path for path in self.texts if path.name == STUB)
        return {path.parent: _origins(path.parent, ast.parse(self.texts[path])) for path in stubs}

    def reached(self, texts: Iterable[str]) -> set[PurePosixPath]:
        """The modules that scripts with these texts can reach, directly or not."""
        found: set[PurePosixPath] = set()
        unread = [module for text in texts for module in self._named(text)]
        while unread:
            path = unread.pop()
            if path not in found:
                found.add(path)
                if path not in self._used:
                    self._used[path] = self._named(self.texts[path])
                unread += self._used[path]
        return found

    def everything(self) -> set[PurePosixPath]:
        """All modules of the library."""
        return {path for path in self.texts if path.suffix == ".py"}

    def _named(self, text: str) -> set[PurePosixPath]:
        bound, used = _names_of(text)
        # Importing a package of the library loads none of its modules yet.
        names = used | set(filter(self._is_no_package, bound.values()))
        return set().union(*(self._modules(name.split(".")[1:]) for name in names))

    def _is_no_package(self, name: str) -> bool:
        return PurePosixPath(*name.split(".")[1:]) / ROOT not in self.texts

    def _modules(self, parts: list[str]) -> set[PurePosixPath]:
        """The modules behind a dotted name, given by its parts after the name of the library."""
        place = PurePosixPath()
        for position, part in enumerate(parts):
            if (target := self._exports.get(place, {}).get(part)) is not None:
                # `target` names something in a module, or a package in which the other parts are
                # looked up.
                return self._modules([*target, *parts[position + 1 :]])
            place /= part
            if place.with_suffix(".py") in self.texts:
                return {place.with_suffix(".py")}
            if place / ROOT not in self.texts:
                return {place.parent / ROOT}
        return {path for path in self.everything() if path.is_relative_to(place)}


def _origins(package: PurePosixPath, stub: ast.Module) -> dict[str, list[str]]:
    """The origin of each name of a stub; the names of the package's own folders are left out."""
    found = {}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom):
            module = [] if node.module is None else node.module.split(".")
            for alias in node.names:
                origin = [*package.parts, *module, alias.name]
                if origin != [*package.parts, alias.asname or alias.name]:
                    found[alias.asname or alias.name] = origin
    return found


@cache
def _names_of(text: str) -> tuple[dict[str, str], set[str]]:
    """The results of `_imported` and `_used` for the text of a module."""
    nodes = [*ast.walk(ast.parse(text))]
    bound = _imported(nodes)
    return bound, _used(nodes, bound)


def _imported(nodes: Sequence[ast.AST]) -> dict[str, str]:
    """The dotted name behind each name that a module imports from the library."""
    bound = {}
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and not node.level and _is_ours(node.module):
            names = {alias.asname or alias.name: alias.name for alias in node.names}
            bound |= {mine: f"{node.module}.{name}" for mine, name in names.items()}
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if _is_ours(alias.name):
                    # `import a.b` binds a to a, and `import a.b as c` binds c to a.b.
                    bound[alias.asname or alias.name] = alias.name
                    bound |= {} if alias.asname else {LIBRARY: LIBRARY}
    return bound


def _used(nodes: Sequence[ast.AST], bound: Mapping[str, str]) -> set[str]:
    """The dotted names of the library in the expressions of a module."""
    found = set()
    inner = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    for node in nodes:
        if isinstance(node, ast.Attribute | ast.Name) and id(node) not in inner:
            first, *rest = _chain(node)
            if first in bound:
                found.add(".".join([bound[first], *rest]))
    return found


def _chain(node: ast.expr) -> list[str]:
    """The parts of ``a.b.c``. The first part is empty unless the expression begins with a name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else "")
    return parts[::-1]


def _is_ours(module: str | None) -> bool:
    return module is not None and (module == LIBRARY or module.startswith(f"{LIBRARY}."))
