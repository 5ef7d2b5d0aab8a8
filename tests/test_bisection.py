import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from geomdp._numerics.bisection import largest_at_most, least_whole


@given(st.floats(1e-150, 1e150))
def test_it_stops_at_the_last_float(root):
    found = largest_at_most(lambda x: x * x, root * root, 0.0, 4 * root)
    assert found * found <= root * root
    assert math.nextafter(found, math.inf) ** 2 > root * root


def test_the_ends_of_the_bracket():
    assert largest_at_most(math.atan, 2.0, -1.0, 5.0) == 5.0  # atan is below 2 on [-1, 5]
    assert largest_at_most(math.floor, 2.0, 0.0, 5.0) == math.nextafter(3.0, 0.0)
    with pytest.raises(ValueError, match=r"function\(1.0\) must be at most 0.5, got 1.0"):
        largest_at_most(lambda x: x, 0.5, 1.0, 2.0)


@given(st.integers(1, 10**9), st.integers(0, 10**9))
def test_the_least_whole_number(first, below):
    asked = []

    def enough(number):
        asked.append(number)
        return number >= first

    low, high = max(0, first - 1 - below), first + below
    assert least_whole(enough, low, high) == first
    assert not {low, high} & set(asked)
