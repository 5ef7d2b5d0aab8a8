"""Sources of the reference: a page for each public package, class and function."""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from types import ModuleType

from sphinx.errors import PycodeError
from sphinx.pycode import ModuleAnalyzer

import geomdp
from experiments.guide.markup import contents, title
from geomdp.advice.candidates import CANDIDATES, Candidate, Guarantees


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
    """The exports of the packages below `geomdp`, without modules."""
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


def write_reference(folder: Path) -> None:
    """Write the sources of the reference into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "index.rst").write_text(_index(), encoding="utf-8")
    for package in packages():
        (folder / f"{package}.rst").write_text(_package_page(package), encoding="utf-8")
    for export in exports():
        if export.is_code:
            (folder / f"{export.path}.rst").write_text(_page(export), encoding="utf-8")


def summary(value: object) -> str:
    """The first paragraph of a docstring, as one line."""
    return (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")


def _index() -> str:
    rows = "".join(
        f"   * - :doc:`{package} <{package}>`\n     - {summary(importlib.import_module(package))}\n"
        for package in packages()
    )
    return (
        f"{title('API')}"
        "Every public name, by package. Formulas are written as on a blackboard: ‖·‖ is a norm,\n"
        "and [a, b] is an interval. Ids such as JL-T2 lead to the statement in\n"
        ":doc:`../gallery/index`.\n\n"
        ".. list-table::\n   :widths: 30 70\n\n"
        f"{rows}\n"
        f"{contents(packages())}"
    )


def _package_page(package: str) -> str:
    found = exported_by(package)
    code = {name: export for name, export in found.items() if export.is_code}
    constants = {name: export for name, export in found.items() if not export.is_code}
    own = [export.path for export in code.values() if export.package == package]
    text = [title(package), f".. automodule:: {package}\n\n.. currentmodule:: None\n\n"]
    for heading, kind in (("Classes", True), ("Functions", False)):
        names = [name for name in code if inspect.isclass(code[name].value) is kind]
        if names:
            rows = "\n".join(f"   ~{code[name].path}" for name in sorted(names, key=str.lower))
            table = f".. autosummary::\n   :nosignatures:\n\n{rows}\n\n"
            text.append(f".. rubric:: {heading}\n\n{table}")
    if constants:
        text.append(".. rubric:: Constants and types\n\n")
        text.extend(_constant(export) for export in constants.values())
    text.append(contents(sorted(own, key=str.lower)))
    return "".join(text)


def _page(export: Export) -> str:
    """The page of a function, or of a class with its members."""
    head = f"{title(export.name)}.. currentmodule:: {export.package}\n\n"
    if not isinstance(export.value, type):
        return f"{head}.. autofunction:: {export.name}\n"
    members = _members(export.value)
    options = ["   :member-order: bysource"]
    if members.own:
        options.append(f"   :members: {', '.join(members.own)}")
    if any(base in _documented() for base in export.value.__mro__[1:]):
        options.append("   :show-inheritance:")
    hidden = [f"   .. {directive}:: {export.name}.{name}\n" for name, directive in members.hidden]
    links = ", ".join(f":py:obj:`{name} <{path}>`" for name, path in members.inherited)
    inherited = f"\n.. rubric:: Inherited\n\n{links}.\n" if links else ""
    return "\n".join([f"{head}.. autoclass:: {export.name}", *options, "", *hidden, inherited])


@dataclass(frozen=True)
class _Members:
    """Public members of a class, grouped by the page that describes them."""

    own: list[str] = field(default_factory=list)  # Defined by the class
    #: Members of bases that have no page: name and directive. The page of the class describes them.
    hidden: list[tuple[str, str]] = field(default_factory=list)
    #: Members that the page of a base describes: name and full dotted name.
    inherited: list[tuple[str, str]] = field(default_factory=list)


def _members(kind: type) -> _Members:
    members, seen = _Members(), set(getattr(kind, "_fields", ()))  # fields of a named tuple
    for owner in kind.__mro__:
        if not owner.__module__.startswith("geomdp."):
            continue
        for name, member in vars(owner).items():
            if name.startswith("_") or name in seen or not _is_documented(member):
                continue
            seen.add(name)
            if owner is kind:
                members.own.append(name)
            elif owner in _documented():
                members.inherited.append((name, f"{_documented()[owner]}.{name}"))
            else:
                is_value = isinstance(member, property | cached_property)
                members.hidden.append((name, "autoproperty" if is_value else "automethod"))
    # The words for what a class has without deriving from a protocol are those of the protocol.
    for protocol, path in _documented().items():
        for name, member in vars(protocol).items() if _is_protocol(protocol) else ():
            if name in vars(kind) and name not in seen and _is_documented(member):
                seen.add(name)
                members.inherited.append((name, f"{path}.{name}"))
    return members


def _is_documented(member: object) -> bool:
    is_method = inspect.isroutine(member) or isinstance(member, property | cached_property)
    return is_method and bool(getattr(member, "__doc__", None))


def _is_protocol(value: object) -> bool:
    return isinstance(value, type) and getattr(value, "_is_protocol", False)


@cache
def _documented() -> dict[object, str]:
    """The full dotted names under which classes and functions are documented."""
    return {export.value: export.path for export in exports() if export.is_code}


def _constant(export: Export) -> str:
    """A type alias or a constant, described by the comment at its assignment."""
    try:
        comments = ModuleAnalyzer.for_module(export.defined_in).find_attr_docs()
    except PycodeError as error:
        raise ValueError(f"{export.defined_in} cannot be read: {error}") from error
    comment = " ".join(comments.get(("", export.name), ()))
    return f".. py:data:: {export.path}\n   :no-index-entry:\n\n   {comment}\n\n"


#: How the table of mechanisms writes the guarantees that a mechanism can give.
DEFINITIONS = {
    Guarantees.PURE: "ε, which implies the others",
    Guarantees.PURE_OR_RHO: "ε, which implies (ε, δ); ρ",
    Guarantees.PURE_OR_DELTA: "ε, which implies ρ (own ρ on a line); (ε, δ)",
    Guarantees.CONCENTRATED: "(ε, δ), ρ",
    Guarantees.ANY: "ε, (ε, δ), ρ",
}


def candidate_table() -> str:
    """The mechanisms that the advisor compares, from its own table, in reStructuredText."""
    rows = "".join(_row(candidate) for candidate in CANDIDATES)
    return (
        ".. list-table::\n   :header-rows: 1\n   :widths: 18 14 68\n   :class: candidates\n\n"
        "   * - mechanism\n     - guarantees\n     - noise, and when it is ahead\n"
        f"{rows}"
    )


def _row(candidate: Candidate) -> str:
    (found,) = (export for export in exports() if export.value is candidate.kind)
    return (
        f"   * - :py:obj:`{candidate.name or found.name} <{found.path}>` ({candidate.flag})\n"
        f"     - {DEFINITIONS[candidate.guarantees]}\n"
        f"     - {candidate.summary[0].upper()}{candidate.summary[1:]}. {candidate.suits}\n"
    )
