"""The terms of a stated error bound: which there are, and what happens if one is halved."""

from __future__ import annotations

import numpy as np
import pytest

#: Relative difference of two float64 evaluations of one formula. It is below the smallest factor of
#: a bound, 1 + 2^-40.
AGREE = 2.0**-44


class Terms:
    """Notes the names of the terms of a formula, and halves the term of one name."""

    def __init__(self, halved=None):
        self.halved, self.names = halved, {}

    def __call__(self, name, value):
        self.names[name] = None
        return value / 2 if name == self.halved else value


def check_bound_has_all_its_terms(case):
    """`case` gives a bound and, of the terms that it passes to a `Terms`, their formula.

    The two agree, and they do not agree if any of the terms is halved.
    """
    terms = Terms()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(*case(terms), rtol=AGREE, atol=0)
        for name in terms.names:
            with pytest.raises(AssertionError, match="Not equal to tolerance"):
                np.testing.assert_allclose(*case(Terms(name)), rtol=AGREE, atol=0)


class Known:
    """A Laplace variable of which only the float64 value is asked."""

    def __init__(self, value):
        self.near = value


class Supply:
    """A list of such variables in place of `LaplaceNumbers`."""

    def __init__(self, values):
        self._values = values

    def many(self, count):
        return [Known(value) for value in self._values[:count]]
