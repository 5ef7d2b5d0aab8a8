"""Points of `TableMoments`: exact maps to tables, and float64 that decides tries as balls do."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from flint import ctx

from geomdp.bodies import TableMoments
from geomdp.noise import ConeNoise, PairedNoise, tables
from geomdp.noise.points import gram
from geomdp.noise.rounding import Draw, UniformBits, exact_numbers
from geomdp.noise.tables import total_violation, try_shape
from geomdp.workloads import Marginals, MarginalTables, Parities
from geomdp.workloads.structure import table_contrasts
from tests.noise.exact.reference import seeded

# Maps to tables


def cells_of(levels, element):
    """1, the indicators of the levels of each column, and their products for each pair of them."""
    units = [
        [int(a == value) for a in range(count)]
        for count, value in zip(levels, element, strict=True)
    ]
    pairs = [
        a * b for first, second in itertools.combinations(units, 2) for a in first for b in second
    ]
    return [1] + [a for unit in units for a in unit] + pairs


def elements(workload, levels):
    """Each element, as a tuple of levels of the columns of the map, and its exact answers."""
    for element in itertools.product(*(range(count) for count in levels)):
        if isinstance(workload, Parities):
            # The columns of the map are products of the first sign and another; level 0 means +1.
            record = np.array([[1, *(1 - a for a in element)]])
        else:
            record = np.array([element])
        yield element, workload.evaluate(record)[0]


@pytest.mark.parametrize(
    "workload",
    [MarginalTables([2, 3, 4], 2), MarginalTables([3, 5], 1), Marginals(4, 2), Parities(4, 2)],
    ids=repr,
)
def test_answers_of_every_element_are_exact(workload):
    found = table_contrasts(workload)
    for element, answers in elements(workload, found.levels):
        np.testing.assert_array_equal(found.cells @ cells_of(found.levels, element), answers)


@pytest.mark.parametrize("limit", [np.inf, 0.05])
@pytest.mark.parametrize(
    "workload", [MarginalTables([3, 2, 2], 2), MarginalTables([1, 3, 1, 2], 2), Parities(4, 2)]
)
def test_noise_through_cells_is_the_noise_through_contrasts(workload, limit):
    """The same bits give the same noise, whether coefficients are exact or rounded irrationals."""
    found = table_contrasts(workload)
    body = TableMoments(found.levels, limit)
    origin = np.zeros(body.dimension)
    for made in (
        lambda cells: ConeNoise(body, 0.5, origin, found.matrix, found.constant, cells),
        lambda cells: ConeNoise(body, 0.5, origin, found.matrix, cells=cells),
        lambda cells: PairedNoise(body, 0.5, found.matrix, cells),
    ):
        with ctx.workprec(124):
            cells = exact_numbers(made(found.cells)).balls(Draw(UniformBits(seeded(2)), 2))
            contrasts = exact_numbers(made(None)).balls(Draw(UniformBits(seeded(2)), 2))
        for a, b in zip(cells, contrasts, strict=True):
            assert abs(float(a - b)) < 1e-12


def test_counts_of_one_table_add_up_exactly():
    """Under a public number of records the cells of a table have noise that sums to 0."""
    found = table_contrasts(MarginalTables([3, 2], 2))
    noise = PairedNoise(TableMoments((3, 2)), 1.0, found.matrix, found.cells)
    with ctx.workprec(300):
        vector = exact_numbers(noise).balls(Draw(UniformBits(seeded(3)), 5))
        total = sum(vector[1:], start=vector[0])
    assert total.contains(0)
    assert total.rad() < 2.0**-200


# Tries of rejection sampling


LEVELS = [(2, 2), (3, 2, 4), (2, 2, 2, 2, 2, 2), (7, 2, 5, 3)]


def exact_violation(columns):
    starts = [0, *itertools.accumulate(map(len, columns))]
    return tables._violation(gram([vector for column in columns for vector in column]), starts)


@pytest.mark.parametrize("levels", LEVELS)
def test_violations_are_within_their_bounds_which_are_small(levels):
    draw, shape, count = Draw(UniformBits(seeded(1)), 2), try_shape(levels), 40
    tries = shape.evaluate(draw.leading(count * shape.numbers).reshape(count, shape.numbers))
    with ctx.workprec(124):
        for place in range(count):
            columns = tables._columns(levels, draw.ahead(place * shape.numbers))
            error = abs(exact_violation(columns) - float(tries.violation[place]))
            assert float(error) <= tries.error[place]
    assert np.median(tries.error) < 1e-4
    tables._columns(levels, draw)
    assert draw._next == shape.numbers  # so many numbers are read for a try


def undecided(tries, limit):
    return np.zeros(len(tries.violation), dtype=bool)


@pytest.mark.parametrize("first", [1, 16])
def test_points_do_not_depend_on_tries_together_nor_on_float64(monkeypatch, first):
    """Balls alone accept the same try as balls after float64, also if float64 decides nothing."""
    levels, limit = (3, 2, 4, 2), 0.05
    monkeypatch.setattr(tables, "FIRST_TRIES", first)
    monkeypatch.setattr(tables, "MORE_TRIES", 5)
    bits = UniformBits(seeded(3))
    bits.words(0, 1 << 15, 2)  # the numbers then do not depend on the order in which they are read
    points, read = [], []
    for few, decisions in ((10**6, ()), (0, ()), (0, ("accepted", "refused"))):
        monkeypatch.setattr(tables, "FEW_NUMBERS", few)
        for name in decisions:
            monkeypatch.setattr(tables.Tries, name, undecided)
        with ctx.workprec(124):
            draw = Draw(bits, 2)
            columns = tables._accepted(levels, limit, draw)
            # The second point must have numbers of its own.
            read.append((draw._next, tables._accepted(levels, limit, draw) != columns, draw._next))
        assert exact_violation(columns) <= limit
        points.append([float(x) for column in columns for vector in column for x in vector])
    assert points[0] == points[1] == points[2]
    assert read[0] == read[1] == read[2]
    assert read[0][0] % try_shape(levels).numbers == 0
    assert try_shape(levels).numbers < read[0][0] < read[0][2]  # the first try is refused


@pytest.mark.parametrize("levels", LEVELS)
def test_total_violation_is_that_of_the_body(levels):
    body = TableMoments(levels)
    points = body.sample_uniform(50, np.random.default_rng(4))
    found = total_violation(body.tables(points), body._starts)
    np.testing.assert_allclose(found, body.violations(points), rtol=1e-12, atol=1e-13)
