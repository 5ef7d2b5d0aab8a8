"""Maps of tables with whole coefficients give exactly the answers of every element."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from flint import ctx

from geomdp.bodies import TableMoments
from geomdp.noise import ConeNoise, PairedNoise
from geomdp.noise.points import uniform_point
from geomdp.noise.rounding import Draw, UniformBits, exact_numbers
from geomdp.noise.tables import cell_map, table_cells
from geomdp.workloads import Marginals, MarginalTables, Parities
from geomdp.workloads.structure import table_contrasts
from tests.noise.exact.reference import seeded


def cells_of(levels, element):
    """Indicators of the levels of each column, then their products for each pair of columns."""
    units = [
        [int(a == value) for a in range(count)]
        for count, value in zip(levels, element, strict=True)
    ]
    pairs = [
        a * b for first, second in itertools.combinations(units, 2) for a in first for b in second
    ]
    return [a for unit in units for a in unit] + pairs


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
    [
        MarginalTables([2, 3, 4], 2),
        MarginalTables([3, 5], 1),
        Marginals(4, 2),
        Parities(4, 2),
    ],
    ids=repr,
)
def test_answers_of_every_element_are_exact(workload):
    found = table_contrasts(workload)
    exact = cell_map(found.levels, found.matrix, found.constant)
    rows = exact.numerators.toarray().astype(int).tolist()
    for element, answers in elements(workload, found.levels):
        cells = cells_of(found.levels, element)
        for row, constant, answer in zip(rows, exact.constant, answers, strict=True):
            total = sum(a * cell for a, cell in zip(row, cells, strict=True)) + int(constant)
            assert Fraction(total, exact.denominator) == Fraction(answer)


def test_cells_and_contrasts_are_of_one_point():
    levels = (3, 2, 4)
    body = TableMoments(levels)
    with ctx.workprec(124):
        cells = table_cells(levels, body.violation, Draw(UniformBits(seeded(1)), 2))
        point = uniform_point(body)(Draw(UniformBits(seeded(1)), 2))
    tables = body.tables(np.array([[float(x) for x in point]]))[0]
    starts = [0, 3, 5, 9]
    expected = [tables[a, a] for a in range(9)]
    for i, j in itertools.combinations(range(3), 2):
        expected += tables[starts[i] : starts[i + 1], starts[j] : starts[j + 1]].ravel().tolist()
    np.testing.assert_allclose([float(x) for x in cells], expected, atol=1e-14)


@pytest.mark.parametrize("limit", [np.inf, 0.05])
def test_noise_through_cells_is_the_noise_through_contrasts(limit):
    """The same bits give the same noise, whether coefficients are exact or rounded irrationals."""
    found = table_contrasts(MarginalTables([3, 2, 2], 2))
    body = TableMoments(found.levels, limit)
    for noise in (
        ConeNoise(body, 0.5, np.zeros(body.dimension), found.matrix, found.constant),
        PairedNoise(body, 0.5, found.matrix),
    ):
        # The first row has irrational coefficients on cells, so all rows go through contrasts.
        odd = sp.csr_array(sp.vstack([found.matrix[[0]] * np.pi, found.matrix]))
        if isinstance(noise, ConeNoise):
            constant = np.concatenate([[0.0], found.constant])
            other = ConeNoise(body, 0.5, np.zeros(body.dimension), odd, constant)
        else:
            other = PairedNoise(body, 0.5, odd)
        with ctx.workprec(124):
            cells = exact_numbers(noise).balls(Draw(UniformBits(seeded(2)), 2))
            contrasts = exact_numbers(other).balls(Draw(UniformBits(seeded(2)), 2))[1:]
        for a, b in zip(cells, contrasts, strict=True):
            assert abs(float(a - b)) < 1e-12


def test_counts_of_one_table_add_up_exactly():
    """Under a public number of records the cells of a table have noise that sums to 0."""
    found = table_contrasts(MarginalTables([3, 2], 2))
    noise = PairedNoise(TableMoments((3, 2)), 1.0, found.matrix)
    with ctx.workprec(300):
        vector = exact_numbers(noise).balls(Draw(UniformBits(seeded(3)), 5))
        total = sum(vector[1:], start=vector[0])
    assert total.contains(0)
    assert total.rad() < 2.0**-200


def test_maps_without_whole_coefficients_are_left_alone():
    found = table_contrasts(MarginalTables([3, 2], 2))
    assert cell_map(found.levels, found.matrix * 1.001) is None
    assert cell_map(found.levels, found.matrix, found.constant + 1e-3) is None
    assert cell_map((101, 103, 107), sp.csr_array((1, 1))) is None
