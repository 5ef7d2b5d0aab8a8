"""Hypothesis strategies: values that a kind of argument must refuse, and arbitrary values."""

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tests.hostile.values import ENDS, EXTREME, NEITHER, NO_NUMBERS, NOT_WHOLE, OUT_OF_RANGE

#: Shapes of arrays with 0 to 3 axes, each of length 0 to 3.
SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)
NOT_FINITE = st.sampled_from([math.nan, math.inf, -math.inf])
#: NumPy types whose values are not real numbers.
NO_REALS = st.sampled_from(["c16", "U2", "S2", "M8[s]", "m8[s]"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats()
    | st.text(max_size=3)
    | st.binary(max_size=3)
    | st.complex_numbers()
)
NESTED = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=6,
)
ARRAYS = (
    hnp.arrays(NO_REALS, SHAPES)
    | hnp.arrays("f8", SHAPES)
    | hnp.arrays("O", SHAPES, elements=SCALARS)
)
#: Entries for arrays of Python objects: None or text, so no numbers.
WORDS = st.none() | st.text(min_size=1, max_size=2, alphabet="ab")
#: Any value of modest size. An argument must take the value or refuse it with a documented error.
ANYTHING = NESTED | ARRAYS | st.sampled_from([*NO_NUMBERS, *OUT_OF_RANGE, *NOT_WHOLE, *ENDS])
#: Values that are not finite numbers above 0.
NO_POSITIVE = (
    st.sampled_from([*NO_NUMBERS, *OUT_OF_RANGE])
    | st.floats(max_value=0.0)
    | st.integers(max_value=0)
    | st.fractions(max_value=0)
    | st.text(max_size=4)
    | st.binary(max_size=4)
    | st.complex_numbers()
    | st.lists(st.floats(), max_size=3)
    | hnp.arrays("f8", SHAPES)
)
NO_WHOLE = NO_POSITIVE | st.floats() | st.sampled_from(NOT_WHOLE)
NO_SHARE = NO_POSITIVE | st.floats(min_value=1.0) | st.integers(min_value=1)
#: Values that are not objects of this library.
NO_OBJECT = NESTED | st.sampled_from([*NO_NUMBERS, *OUT_OF_RANGE, *EXTREME])


def no_array(good: Any) -> st.SearchStrategy[Any]:
    """Values to be refused in place of the finite array `good`: other axes, entries or types."""
    finite = np.asarray(good, dtype=np.float64)

    def spoilt(place: int, entry: float) -> np.ndarray:
        array = finite.copy()
        array.flat[place] = entry
        return array

    axes = st.lists(st.integers(0, 3), max_size=3).filter(lambda shape: len(shape) != finite.ndim)
    return (
        st.builds(spoilt, st.integers(0, finite.size - 1), NOT_FINITE)
        | hnp.arrays("f8", axes.map(tuple))
        | hnp.arrays(NO_REALS, st.just(finite.shape))
        | hnp.arrays("O", st.just(finite.shape), elements=WORDS)
        | st.sampled_from([[[1.0, 2.0], [3.0]], [[1.0], []], [10**400], [None]])
        | st.sampled_from(NEITHER)
        | st.floats()
        | st.text(max_size=4)
    )


def malformed(kind: str, good: Any) -> st.SearchStrategy[Any]:
    """Values that an argument of this kind must refuse; `good` is a value that is accepted."""
    if kind == "array":
        return no_array(good)
    return {"positive": NO_POSITIVE, "whole": NO_WHOLE, "share": NO_SHARE, "object": NO_OBJECT}[
        kind
    ]
