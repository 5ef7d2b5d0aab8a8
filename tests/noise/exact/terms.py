"""Halve single terms of an error bound, to check that a test fails without the whole term."""

from __future__ import annotations

import numpy as np
import pytest

#: Relative difference of two float64 evaluations of one formula. It is below the smallest factor of
#: a bound, 1 + 2^-40.
AGREE = 2.0**-44


class Terms:
    """Records the names of the terms of a formula, and halves the term with the name `halved`."""

    def __init__(self, halved=None):
        self.halved, self.names = halved, {}

    def __call__(self, name, value):
        self.names[name] = None
        return value / 2 if name == self.halved else value


def check_bound_has_all_its_terms(case):
    """Assert that `case` gives two equal numbers: a stated bound, and the bound from a formula.

    `case` passes each term of the formula to the `Terms` that it is given. If one term is halved,
    the two numbers must differ.
    """
    terms = Terms()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(*case(terms), rtol=AGREE, atol=0)
        for name in terms.names:
            with pytest.raises(AssertionError, match="Not equal to tolerance"):
                np.testing.assert_allclose(*case(Terms(name)), rtol=AGREE, atol=0)


class Known:
    """A Laplace variable that has only a float64 value."""

    def __init__(self, value):
        self.near = value


class Supply:
    """A list of `Known` variables, used in place of `LaplaceNumbers`."""

    def __init__(self, values):
        self._values = values

    def many(self, count):
        return [Known(value) for value in self._values[:count]]
