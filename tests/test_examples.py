"""All public classes and functions except protocols have examples, which print what they show.

To run the examples of one package: ``pytest tests/test_examples.py -k bodies``.
"""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from tests.public_names import public_objects

#: Public classes that have no example, and why.
WITHOUT_EXAMPLE = {
    "audit.AdditiveNoise": "a protocol: `audit_noise` shows an object that satisfies it",
    "mechanisms.strategies.Strategy": "a protocol: `Tree` and `Haar` satisfy it",
}

#: How arrays are printed: the defaults of numpy, whatever the user has set.
ARRAYS = {
    "precision": 8,
    "threshold": 1000,
    "edgeitems": 3,
    "linewidth": 75,
    "suppress": False,
    "nanstr": "nan",
    "infstr": "inf",
    "sign": "-",
    "formatter": None,
    "floatmode": "maxprec",
    "legacy": False,
}
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


@pytest.mark.parametrize("name", [name for name in PUBLIC if name not in WITHOUT_EXAMPLE])
def test_there_is_an_example(name):
    own = PUBLIC[name].__doc__ or ""
    assert "Examples\n" in own, f"{name} has no Examples section"
    assert doctest.DocTestParser().get_examples(own), f"{name} has an empty Examples section"


@pytest.mark.parametrize("name", list(WITHOUT_EXAMPLE))
def test_what_is_excused_exists_and_has_no_example(name):
    assert ">>>" not in (PUBLIC[name].__doc__ or "")
