"""Public names have docstrings that fit their signatures, and examples that run."""

import doctest
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache, cached_property
from typing import Protocol

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from numpydoc.validate import validate

import geomdp
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


def _words(owner: type, name: str) -> Iterator[str | None]:
    """Docstrings of a member in its class, in the bases, and in protocols that have the member."""
    for place in (*owner.__mro__, *_protocols()):
        yield getattr(vars(place).get(name), "__doc__", None)


def _is_protocol(value: object) -> bool:
    return getattr(value, "_is_protocol", False) and value is not Protocol


@cache
def _protocols() -> list[type]:
    """All protocols of geomdp. A class may have their members without being derived from them."""
    modules = [
        importlib.import_module(module.name)
        for module in pkgutil.walk_packages(geomdp.__path__, "geomdp.")
    ]
    found = {value for module in modules for value in vars(module).values() if _is_protocol(value)}
    return [*found]


def test_every_public_name_says_what_it_is():
    silent = []
    for name, exported in public_objects().items():
        if not exported.__doc__:
            silent.append(name)
        if inspect.isclass(exported):
            silent += [
                f"{name}.{member}"
                for member, value in vars(exported).items()
                if not member.startswith("_")
                and (inspect.isroutine(value) or isinstance(value, property | cached_property))
                and not any(_words(exported, member))
            ]
    assert silent == []
    assert WITHOUT_EXAMPLE.keys() <= public_objects().keys()


@pytest.mark.parametrize("name", list(_public_callables()))
def test_parameters_are_those_of_the_signature(name):
    report = validate(name)
    documented = "\nParameters\n" in inspect.cleandoc(report["docstring"])
    wanted = ALWAYS | (WITH_SECTION if documented else set())
    assert [text for code, text in report["errors"] if code in wanted] == []


# --- examples -------------------------------------------------------------------------------


#: Public classes that have no example, and why.
WITHOUT_EXAMPLE = {
    "audit.AdditiveNoise": "a protocol: `audit_noise` shows an object that satisfies it",
    "mechanisms.strategies.Strategy": "a protocol: `Tree` and `Haar` satisfy it",
}

#: How arrays are printed: the defaults of numpy, whatever the user has set.
ARRAYS = {
    "precision": 8, "threshold": 1000, "edgeitems": 3, "linewidth": 75, "suppress": False,
    "nanstr": "nan", "infstr": "inf", "sign": "-", "formatter": None, "floatmode": "maxprec",
    "legacy": False,
}  # fmt: skip
#: How tables are printed, which otherwise depends on the terminal.
TABLES = ("display.width", 80, "display.max_columns", 20, "display.max_rows", 60)
PUBLIC = public_objects()


@contextmanager
def _default_settings() -> Iterator[None]:
    """Print with default options, and discard figures and settings of Matplotlib at the end."""
    with np.printoptions(**ARRAYS), pd.option_context(*TABLES), mpl.rc_context():
        yield
    plt.close("all")


@pytest.mark.parametrize("name", list(PUBLIC))
def test_the_example_prints_what_it_says(name, tmp_path, monkeypatch):
    own = PUBLIC[name].__doc__ or ""
    if name in WITHOUT_EXAMPLE:
        assert ">>>" not in own
        return
    assert "Examples\n" in own, f"{name} has no Examples section"
    assert doctest.DocTestParser().get_examples(own), f"{name} has an empty Examples section"
    # Every example imports what it needs, and writes files into a folder of its own.
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    tests = doctest.DocTestFinder().find(PUBLIC[name], name, globs={})
    runner = doctest.DocTestRunner(verbose=False)
    differences: list[str] = []
    for test in tests:
        assert not any(example.options for example in test.examples), "no directives in examples"
        with _default_settings():
            runner.run(test, out=differences.append)
    assert not differences, "".join(differences)
