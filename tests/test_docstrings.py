"""In docstrings of public names, parameters agree with the signatures in names and order."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
from numpydoc.validate import validate

from tests.public_names import public_objects

#: numpydoc's codes for parameters that are unknown, out of order, without type or not described.
ALWAYS = {"PR02", "PR03", "PR04", "PR07"}
#: The code for missing parameters. It counts only if there is a Parameters section, because other
#: docstrings name their parameters in the text.
WITH_SECTION = {"PR01"}


def _public_callables() -> Iterator[str]:
    """Dotted names of exported functions and classes, and of public methods that classes define."""
    for name, exported in public_objects().items():
        yield f"geomdp.{name}"
        if inspect.isclass(exported):
            for member, value in vars(exported).items():
                if inspect.isfunction(value) and not member.startswith("_"):
                    yield f"geomdp.{name}.{member}"


@pytest.mark.parametrize("name", list(_public_callables()))
def test_parameters_are_those_of_the_signature(name: str) -> None:
    report = validate(name)
    documented = "\nParameters\n" in inspect.cleandoc(report["docstring"])
    wanted = ALWAYS | (WITH_SECTION if documented else set())
    assert [text for code, text in report["errors"] if code in wanted] == []
