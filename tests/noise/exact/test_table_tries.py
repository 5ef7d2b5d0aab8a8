"""In rejection sampling from `TableMoments`, float64 decides tries as ball arithmetic does."""

import itertools

import numpy as np
import pytest
from flint import arb, ctx

from geomdp.bodies import TableMoments
from geomdp.noise import tables
from geomdp.noise.points import gram
from geomdp.noise.rounding import FUNCTION_ERROR, Draw, UniformBits, Vector, logarithm, sine_cosine
from geomdp.noise.tables import total_violation, try_shape

LEVELS = [(2, 2), (3, 2, 4), (2, 2, 2, 2, 2, 2), (7, 2, 5, 3)]


def seeded(seed: int):
    return np.random.default_rng(seed).bytes


def exact_violation(columns: list[list[Vector]]) -> arb:
    starts = [0, *itertools.accumulate(map(len, columns))]
    return tables._violation(gram([vector for column in columns for vector in column]), starts)


def compared(levels: tuple[int, ...], count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """For each try, the error of the total violation in float64, and the bound on this error."""
    draw, shape = Draw(UniformBits(seeded(seed)), 2), try_shape(levels)
    tries = shape.evaluate(draw.leading(count * shape.numbers).reshape(count, shape.numbers))
    errors = []
    with ctx.workprec(124):
        for place in range(count):
            columns = tables._columns(levels, draw.ahead(place * shape.numbers))
            errors.append(float(abs(exact_violation(columns) - float(tries.violation[place]))))
    return np.array(errors), tries.error


@pytest.mark.parametrize("levels", LEVELS)
def test_violations_are_within_their_bounds_which_are_small(levels):
    errors, bounds = compared(levels, 40, 1)
    assert (errors <= bounds).all()
    assert np.median(bounds) < 1e-4


@pytest.mark.parametrize("levels", LEVELS)
def test_a_try_reads_as_many_numbers_as_its_shape_says(levels):
    draw, shape = Draw(UniformBits(seeded(2)), 2), try_shape(levels)
    tables._columns(levels, draw)
    # The next number after a try is the same as after skipping `shape.numbers` numbers.
    rest = Draw(UniformBits(seeded(2)), 2)
    rest.skip(shape.numbers)
    assert draw._next == rest._next


def test_one_number_read_in_the_wrong_place_is_seen(monkeypatch):
    """The comparison fails if float64 reads the first two numbers of a try instead of the last."""
    true = tables.TryShape.evaluate

    def swapped(self, uniforms):
        wrong = uniforms.copy()
        wrong[:, [-1, -2]] = uniforms[:, [0, 1]]
        return true(self, wrong)

    monkeypatch.setattr(tables.TryShape, "evaluate", swapped)
    errors, bounds = compared((3, 2, 4), 40, 1)
    assert (errors > bounds).any()


def test_numbers_at_the_ends_of_the_unit_interval_leave_a_try_open():
    shape = try_shape((3, 2, 4))
    uniforms = np.full((3, shape.numbers), 0.3)
    uniforms[0, 0], uniforms[1, 0], uniforms[2] = 0.0, 1.0, 0.0
    tries = shape.evaluate(uniforms)
    assert not tries.refused(0.1).any()
    assert not tries.accepted(0.1).any()


@pytest.mark.parametrize("first", [1, 16])
def test_points_do_not_depend_on_how_many_tries_are_made_together(monkeypatch, first):
    levels, limit = (3, 2, 4, 2), 0.05
    monkeypatch.setattr(tables, "FIRST_TRIES", first)
    monkeypatch.setattr(tables, "MORE_TRIES", 5)
    bits = UniformBits(seeded(3))
    bits.words(0, 1 << 15, 2)  # the numbers then do not depend on the order in which they are read
    points, read = [], []
    for few in (0, 10**6):
        monkeypatch.setattr(tables, "FEW_NUMBERS", few)
        with ctx.workprec(124):
            draw = Draw(bits, 2)
            columns = tables._accepted(levels, limit, draw)
            # The second point must have numbers of its own.
            read += [draw._next, tables._accepted(levels, limit, draw) != columns, draw._next]
        assert exact_violation(columns) <= limit
        points.append([float(x) for column in columns for vector in column for x in vector])
    # Balls alone and balls after float64 accept the same try.
    np.testing.assert_array_equal(points[0], points[1])
    assert read[:3] == read[3:]
    assert read[0] % try_shape(levels).numbers == 0
    assert 0 < read[0] < read[2]


def test_points_do_not_depend_on_what_float64_decides(monkeypatch):
    """If float64 leaves every try undecided, balls accept the try that was accepted before."""
    levels, limit, points = (3, 2, 4, 2), 0.05, []
    bits = UniformBits(seeded(3))
    bits.words(0, 1 << 15, 2)
    monkeypatch.setattr(tables, "FEW_NUMBERS", 0)

    def undecided(tries, limit):
        return np.zeros(len(tries.violation), dtype=bool)

    for decisions in ({}, {"accepted": undecided, "refused": undecided}):
        for name, decision in decisions.items():
            monkeypatch.setattr(tables.Tries, name, decision)
        with ctx.workprec(124):
            draw = Draw(bits, 2)
            columns = tables._accepted(levels, limit, draw)
        points.append([float(x) for column in columns for row in column for x in row])
        assert draw._next > try_shape(levels).numbers  # the first try is refused
    assert points[0] == points[1]


@pytest.mark.parametrize("levels", LEVELS)
def test_total_violation_is_that_of_the_body(levels):
    body = TableMoments(levels)
    points = body.sample_uniform(50, np.random.default_rng(4))
    found = total_violation(body.tables(points), body._starts)
    np.testing.assert_allclose(found, body.violations(points), rtol=1e-12, atol=1e-13)


def test_logarithms_have_the_stated_error():
    rng = np.random.default_rng(5)
    values = np.concatenate(
        [rng.random(500), 2.0 ** -rng.uniform(0, 900, 500), 1 - 2.0 ** -rng.uniform(1, 52, 500)]
    )
    with ctx.workprec(200):
        exact = [arb(value).log() for value in values.tolist()]
        found = logarithm(values).tolist()
        worst = max(float(abs(y / x - 1)) for x, y in zip(exact, found, strict=True) if x != 0)
    assert worst <= FUNCTION_ERROR
    assert logarithm(np.array([1.0]))[0] == 0


def test_sines_and_cosines_have_the_stated_error():
    turns = np.concatenate([np.random.default_rng(6).random(500), np.arange(65) / 64])
    sines, cosines = (part.tolist() for part in sine_cosine(turns))
    with ctx.workprec(200):
        for turn, sine, cosine in zip(turns.tolist(), sines, cosines, strict=True):
            exact_sine, exact_cosine = (2 * arb(turn)).sin_cos_pi()
            assert abs(exact_sine - sine) <= FUNCTION_ERROR
            assert abs(exact_cosine - cosine) <= FUNCTION_ERROR
