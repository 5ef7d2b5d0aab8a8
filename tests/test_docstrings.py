"""Docstrings of public names: parameters agree with signatures, in names and order."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import pytest
from numpydoc.validate import validate

import geomdp

#: Wrong, misplaced, untyped or undescribed parameters.
ALWAYS = {"PR02", "PR03", "PR04", "PR07"}
#: Missing parameters; asked for once there is a Parameters section. One-line docstrings name theirs
#: in the sentence.
WITH_SECTION = {"PR01"}


def _public_callables() -> Iterator[str]:
    """Dotted names of exported functions and classes, and of the latter's own public methods."""
    seen: set[object] = set()
    walked = pkgutil.walk_packages(geomdp.__path__, "geomdp.")
    for package in ["geomdp", *(found.name for found in walked if found.ispkg)]:
        module = importlib.import_module(package)
        for name in getattr(module, "__all__", ()):
            exported = getattr(module, name)
            if exported in seen or not inspect.isroutine(exported) | inspect.isclass(exported):
                continue
            seen.add(exported)
            yield f"{package}.{name}"
            if inspect.isclass(exported):
                for member, value in vars(exported).items():
                    if inspect.isfunction(value) and not member.startswith("_"):
                        yield f"{package}.{name}.{member}"


@pytest.mark.parametrize("name", list(_public_callables()))
def test_parameters_are_those_of_the_signature(name: str) -> None:
    report = validate(name)
    documented = "\nParameters\n" in inspect.cleandoc(report["docstring"])
    wanted = ALWAYS | (WITH_SECTION if documented else set())
    assert [text for code, text in report["errors"] if code in wanted] == []
