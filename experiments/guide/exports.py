"""The public names of geomdp: which package exports each, and where the reference documents it."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import geomdp


@dataclass(frozen=True)
class Export:
    """One public name."""

    package: str  # The package whose page describes the export, such as `geomdp.bodies`
    name: str  # The name in that package
    value: object  # The object with this name
    defined_in: str  # The module from which the package's stub imports the name

    @property
    def path(self) -> str:
        """The full dotted name."""
        return f"{self.package}.{self.name}"

    @property
    def is_code(self) -> bool:
        """Whether the export is a class or a function. Others are constants and type aliases."""
        return inspect.isclass(self.value) or inspect.isroutine(self.value)


@cache
def packages() -> tuple[str, ...]:
    """Packages that have a stub, each before the packages inside it; `geomdp` is the first."""
    walked = pkgutil.walk_packages(geomdp.__path__, "geomdp.")
    names = ["geomdp", *(found.name for found in walked if found.ispkg)]
    return tuple(name for name in names if _stub(name).exists())


@cache
def exports() -> tuple[Export, ...]:
    """The exports of the packages below `geomdp`, without modules.

    A class or function that several packages export is listed once, under the first of them.
    """
    return tuple(_first_exports())


def _first_exports() -> Iterator[Export]:
    seen: dict[int, str] = {}
    for package in packages()[1:]:
        module = importlib.import_module(package)
        for name, source in _sources(package).items():
            value = getattr(module, name)
            if isinstance(value, ModuleType) or id(value) in seen:
                continue
            # Python may use one object for equal constants, so only classes and functions are
            # recorded in `seen`.
            if inspect.isclass(value) or inspect.isroutine(value):
                seen[id(value)] = name
            yield Export(package, name, value, source)


def exported_by(package: str) -> dict[str, Export]:
    """The exports of a package, by their names in it. The packages inside it are left out."""
    module = importlib.import_module(package)
    own = {export.name: export for export in exports() if export.package == package}
    # A class or function may be listed under another package. Constants are known by their names,
    # because Python may use one object for equal constants.
    code = {id(export.value): export for export in exports() if export.is_code}
    found = {name: own.get(name, code.get(id(getattr(module, name)))) for name in _sources(package)}
    return {name: export for name, export in found.items() if export is not None}


def _sources(package: str) -> dict[str, str]:
    """The module that each export of a stub comes from."""
    found = {}
    for statement in ast.parse(_stub(package).read_text(encoding="utf-8")).body:
        if isinstance(statement, ast.ImportFrom):
            module = f"{package}.{statement.module}" if statement.module else package
            found |= {alias.asname or alias.name: module for alias in statement.names}
    return found


def _stub(package: str) -> Path:
    folders = package.split(".")[1:]
    return Path(geomdp.__path__[0]).joinpath(*folders, "__init__.pyi")
