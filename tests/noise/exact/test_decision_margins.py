"""Float64 decides a comparison if its gap exceeds the stated margin, and leaves others undecided.

Each case of the first test has gaps from 0.55 to 1.45 times the margin, and every term of the
margin is large for some numbers. The case is repeated with each term halved, and must then fail.
"""

from __future__ import annotations

import math
from unittest.mock import Mock

import numpy as np
import pytest

from geomdp.noise import scalar, tables
from geomdp.noise.rounding import LARGEST, NearVector, Undecided, UniformBits, nearest_by_floats
from geomdp.noise.scalar import NoisyThreshold, NoisyValues, _by_floats
from tests.noise.exact.reference import seeded
from tests.noise.exact.test_stated_bounds import Terms


class Known:
    """A Laplace variable that has only a float64 value."""

    def __init__(self, value):
        self.near = value


#: Gaps in units of the margin. No gap is so near to the margin that rounding matters.
RATIOS = [0.55, 0.7, 0.8, 1.2, 1.3, 1.45]


def steps(size):
    """Gaps near `RATIOS` times the margin 16 `size`, rounded to multiples of `size`."""
    return [round(16 * ratio) * size for ratio in RATIOS]


def single_comparisons(term):
    """Gap, margin, and whether float64 decides if value + scale Z' >= T + b Z."""
    # In these cases, the margin comes mostly from the balls, the values, the noise and underflow,
    # in this order.
    cases = [(0.0, 1.0, 2.0**-79 * ratio, 0.0, 1.0, 0.0) for ratio in RATIOS]
    cases += [(1.0 + gap, 1.0, 0.0, 1.0, 1.0, 0.0) for gap in steps(2.0**-52)]
    cases += [(0.0, 1.0, 1.0 + gap, 0.0, 1.0, 1.0) for gap in steps(2.0**-52)]
    cases += [(0.0, 2.0**-1000, ratio, 0.0, 2.0**-1000, 0.0) for ratio in RATIOS]
    for sign in (1, -1):
        for x, scale, z, t, b, own in cases:
            x, z, t, own = sign * x, sign * z, sign * t, sign * own
            threshold = NoisyThreshold(t, b, Known(own))
            margin = term("threshold", 2.0**-49 * (abs(t) + abs(b * own)) + 2.0**-80 * b)
            margin += term("value", 2.0**-49 * abs(x)) + term("noise", 2.0**-49 * abs(scale * z))
            margin += term("ball", 2.0**-80 * scale) + term("underflow", 2.0**-1000)
            yield abs(x + scale * z - (t + b * own)), margin, decision(threshold, x, scale, z)


def decision(threshold, value, scale, z):
    """Whether float64 decides; asserts that the decision is right."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scalar, "decided", lambda _: None)
        found = threshold.reached_by(value, scale, Known(z))
    if found is not None:
        assert found == (value + scale * z > threshold.near)
    return found is not None


class Recorded:
    """A threshold that records the values for which `reached_by` is called."""

    def __init__(self, near, margin):
        self.near, self.margin, self.asked = near, margin, []

    def reached_by(self, value, scale, number):
        del scale, number
        self.asked.append(value)
        return False


def skipped_values(term):
    """Gap, margin, and whether `NoisyValues` skips a value below the threshold.

    Values above the threshold must not be skipped.
    """
    for value, z, gaps, own in (
        (1.0, 0.0, steps(2.0**-53), 0.0),
        (0.0, 1.0, steps(2.0**-53), 0.0),
        (0.0, 0.0, [2.0**-80 * ratio for ratio in RATIOS], 0.0),
        (0.0, 0.0, RATIOS, 1.0),
    ):
        supply = Mock(many=lambda count, z=z: [Known(z)] * count)
        noisy = NoisyValues([value], np.array([value]), 1.0, supply)
        margin = term("value", 2.0**-49 * abs(value)) + term("noise", 2.0**-49 * abs(z))
        margin += term("ball", 2.0**-80) + term("threshold", own)
        for gap in gaps:
            threshold = Recorded(value + z + gap, own)
            assert noisy.first_reaching(0, threshold) == 1
            yield threshold.near - (value + z), margin, not threshold.asked
            above = Recorded(value + z - 2.0**20 * gap, own)
            noisy.first_reaching(0, above)
            assert above.asked


def largest_keys(term):
    """Gap, margin, and whether float64 finds the larger of two keys score / scale + noise.

    The scores have equal error bounds, and so do the noises.
    """
    cases = [([ratio, 0.0], [0.0, 0.0], 0.5, 0.0, 1.0) for ratio in RATIOS]
    cases += [([4.0 * ratio, 0.0], [0.0, 0.0], 2.0, 0.0, 4.0) for ratio in RATIOS]
    cases += [([0.0, 0.0], [ratio, 0.0], 0.0, 0.5, 1.0) for ratio in RATIOS]
    # Floats between 1.75 and 2 are multiples of 2^-52. The margin is 14 times 2^-52 here.
    for place in (1.75 + round(14 * ratio) * 2.0**-52 for ratio in RATIOS):
        cases.append(([place, 1.75], [0.0, 0.0], 0.0, 0.0, 1.0))
        cases.append(([0.0, 0.0], [place, 1.75], 0.0, 0.0, 1.0))
        cases.append(([place, 1.75], [-1.75, -1.75], 0.0, 0.0, 1.0))
    # The margin is 2 + 2^-48. The term for the quotient of error and scale is half of the 2^-48.
    cases += [([2.0 + k * 2.0**-51, 0.0], [0.0, 0.0], 1.0, 0.0, 1.0) for k in (5, 7, 9, 11)]
    cases += [([2.0**-999 * ratio, 0.0], [0.0, 0.0], 0.0, 0.0, 1.0) for ratio in RATIOS]
    for scores, noise, error, off, scale in cases:
        shift, values = np.array(scores) / scale, np.array(noise)
        keys = shift + values
        margin = term("scores", 2 * error / scale) + term("noise", 2 * off)
        margin += term("quotient of errors", 2 * error / scale * 2.0**-50)
        for name, sizes in (("quotient", shift), ("value", values), ("sum", keys)):
            margin += term(name, 2.0**-51 * np.abs(sizes).sum())
        margin += term("underflow", 2 * 2.0**-1000)
        for order in (1, -1):
            vector = NearVector(2, lambda _, v=values[::order], off=off: (v, np.full(2, off)))
            given = np.array(scores)[::order], np.full(2, error), scale, vector
            try:
                best = _by_floats(*given, UniformBits(seeded(0)))
            except Undecided:
                best = None
            assert best in (None, (1 - order) // 2)
            yield abs(keys[0] - keys[1]), margin, best is not None


def is_decided(values, errors, grid):
    try:
        nearest_by_floats(values, errors, grid)
    except Undecided:
        return False
    return True


@pytest.mark.parametrize(
    "case", [single_comparisons, skipped_values, largest_keys], ids=lambda case: case.__name__
)
def test_float64_decides_gaps_above_the_margin_only(case):
    terms = Terms()
    assert all(found == (gap > margin) for gap, margin, found in case(terms))
    for name in terms.names:
        assert any(found != (gap > margin) for gap, margin, found in case(Terms(name)))


@pytest.mark.parametrize("grid", [-3, 0, 40])
def test_the_room_of_a_rounding_exceeds_the_error_by_the_stated_margins(grid):
    unit, room = 2.0**-grid, 2.0**-20
    # `room` is the distance of a value from a midpoint, times 2^grid. The rounding is decided if
    # error (1 + 2^-50) + 2^-60 < room. For `largest`, both sides are equal.
    largest = room - room * 2.0**-50 - 2.0**-60
    for value in (0.5 - room, 7.5 + room, -0.5 - room):
        values = np.array([value, 3.0]) * unit
        for other in (0.0, 0.25):
            for error, expected in ((largest - 2.0**-72, True), (largest + 2.0**-72, False)):
                errors = np.array([error, other]) * unit
                assert is_decided(values, errors, grid) == expected
    for whole in (LARGEST - 1, 1 - LARGEST):
        assert nearest_by_floats(np.array([whole * unit]), np.zeros(1), grid) == [int(whole)]
    for whole in (LARGEST, -LARGEST):
        assert not is_decided(np.array([whole * unit]), np.zeros(1), grid)


def test_a_try_is_decided_only_beyond_its_error():
    found = tables.Tries(np.array([1.0]), np.array([0.5]))
    assert [found.refused(limit)[0] for limit in (0.25, 0.5, 1.0, 2.0)] == [True] + 3 * [False]
    assert [found.accepted(limit)[0] for limit in (0.25, 1.0, 1.5, 1.75)] == 3 * [False] + [True]


SHAPE = tables.TryShape((3, 2, 4))


def opened(place, values):
    """Which of the `values` of the uniform number at `place` leave a try open."""
    uniforms = np.full((len(values), SHAPE.numbers), 0.3)
    uniforms[:, place] = values
    return tables.Variables(uniforms, SHAPE._places).open.tolist()


def test_numbers_next_to_0_and_1_leave_a_try_open():
    ends = [2.0**-30, 1 - 2.0**-30, math.nextafter(2.0**-30, 0), math.nextafter(1 - 2.0**-30, 1)]
    for start, twice in SHAPE._places.chi + SHAPE._places.parts:
        assert opened(start, ends) == [0, 0, 1, 1]
        if twice % 2:  # then the last number of the variable is an angle, which may have any value
            assert opened(start + twice // 2 + 1, [0.0, 1.0]) == [0, 0]
    for _, _, radius, angle in SHAPE._places.pairs:
        assert opened(radius, ends) == [0, 0, 1, 1]
        assert opened(angle, [0.0, 1.0]) == [0, 0]


def test_an_error_above_the_largest_leaves_a_try_open(monkeypatch):
    given = np.array([2.0**-20, math.nextafter(2.0**-20, 1), math.nan, 0.0])
    monkeypatch.setattr(
        tables, "_vectors", lambda parts, *_: (np.zeros((4, parts.shape[1], 7)), given)
    )
    uniforms = np.full((4, SHAPE.numbers), 0.3)
    uniforms[3, 0] = 2.0**-31
    found = SHAPE.evaluate(uniforms)
    assert np.isfinite(found.error).tolist() == [True, False, False, False]
