"""Bounds for rejection tries and comparisons have all their terms, as in `test_stated_bounds`."""

from __future__ import annotations

import itertools
import math
from unittest.mock import Mock

import numpy as np
import pytest

from geomdp.noise import tables
from geomdp.noise.rounding import logarithm
from geomdp.noise.scalar import NoisyThreshold, NoisyValues
from tests.noise.exact.terms import Known, Supply, check_bound_has_all_its_terms

LEVELS = (3, 2, 4)
ORDER = 6
#: Each of the 26 = 3 2 + 3 4 + 2 4 cells has one inequality, and each of the 12 = 3 1 4 triples of
#: events has four. Triples use only one event (level) of a column with two levels.
INEQUALITIES = 26 + 4 * 12


def variables():
    """Variables of 40 tries, whose uniform numbers include the least and the largest allowed."""
    shape = tables.TryShape(LEVELS)
    uniforms = np.random.default_rng(5).random((40, shape.numbers))
    uniforms[:20] = np.clip(uniforms[:20] ** 8, 2.0**-30, 1 - 2.0**-30)
    uniforms[20:30] = 1 - 2.0**-30
    uniforms[30:35] = 0.3
    return tables.Variables(uniforms, shape._places), uniforms, shape._places


def relative(term, uniforms, places):
    """Bound on the relative error of the uniform numbers whose logarithms are taken."""
    angles = [angle for *_, angle in places.pairs]
    angles += [start + twice // 2 + 1 for start, twice in places.chi + places.parts if twice % 2]
    least = np.delete(uniforms, angles, axis=1).min(axis=1)
    return (term("to float", 2.0**-52) + term("62 bits", 2.0**-61 / least))[:, None]


def logarithms_of_products(term):
    given, uniforms, places = variables()
    products = np.array([[1.0, 0.5, 2.0**-1000, 2.0**-999, 2.0**-1001]])
    values, errors = given._exponentials(products, np.array([1, 2, 3, 30, 30]))
    assert np.isinf(errors[:, -1]).all()
    stated = term("numbers", 2 * np.array([1, 2, 3, 30, 30]) * relative(term, uniforms, places))
    stated = stated + term("logarithm", 2 * 2.0**-46 * np.broadcast_to(values, (40, 5)))
    return errors[:, :-1], stated[:, :-1]


def gamma_variables(term):
    given, uniforms, places = variables()
    _, errors = given.half_gammas(places.chi)
    return errors, stated_gammas(term, uniforms, places)


def stated_gammas(term, uniforms, places):
    numbers = relative(term, uniforms, places)
    columns = []
    for start, twice in places.chi:
        count = twice // 2
        value = -logarithm(uniforms[:, start : start + count].prod(axis=1, keepdims=True))
        total = term("product", 2 * count * numbers) + term("logarithm", 2 * 2.0**-46 * value)
        if twice % 2:
            more = -logarithm(uniforms[:, [start + count]])
            total = total + term("half square", 2 * numbers + 2 * 2.0**-46 * more)
            total = total + term("turn", more * 2.0**-43)
        columns.append(total)
    return np.concatenate(columns, axis=1)


def rows_of_tries(term):
    given, uniforms, places = variables()
    rows, errors = given.rows(ORDER)
    radii = [radius for *_, radius, _ in places.pairs]
    squares = -logarithm(uniforms[:, radii])
    lengths = np.sqrt(2 * squares)
    square_errors = 2 * relative(term, uniforms, places) + 2 * 2.0**-46 * squares
    pairs = term("root", 2 * square_errors / lengths) + term("angle", lengths * 2.0**-43)
    diagonal = rows[:, range(ORDER), range(ORDER)]
    chi = term("chi", 4 * stated_gammas(term, uniforms, places) / diagonal)
    chi = chi + term("chi rounding", diagonal * 2.0**-51)
    stated = term("a row of pairs", 2 * math.sqrt(ORDER) * pairs.max(axis=1))
    return errors, stated + term("diagonal", chi.max(axis=1))


def orthonormal_rows(term):
    width, rows = 4, np.array([[3.0, 4.0, 0, 0], [1.0, 1.0, 1.0, 0], [0.5, 0.0, 1.0, 2.0]])
    given = np.array([0.0, 2.0**-45, 0.1])
    frame, errors = tables._orthonormal(np.repeat(rows[None], 3, axis=0), given)
    exact, _ = np.linalg.qr(rows.T)
    np.testing.assert_allclose(np.abs(frame[0]), np.abs(exact.T), atol=1e-14)
    wrong = np.zeros(3)
    for k, row in enumerate(rows):
        length = np.linalg.norm(row - exact[:, :k] @ exact[:, :k].T @ row)
        before = term("rows before", 1.01 * wrong)
        own = term("row", 2 * given) + np.linalg.norm(row) * (
            before + term("subtractions", (k + 1) * (width + 4) * 2.0**-49)
        )
        quotient = np.where(own < length / 2, own / (length - own), math.inf)
        wrong = wrong + quotient + term("quotient", (width + 4) * 2.0**-50)
    assert np.isinf(errors).tolist() == [False, False, True]
    return errors, wrong


def vectors_of_a_column(term):
    # The second try has larger errors, which do not count for the first.
    parts = np.array([[1.0, 2.0, 5.0], [1.0, 2.0, 5.0]])
    frame = np.array([np.eye(2), np.eye(2)])
    found, stated = [], []
    for parts_error, frame_error in ((0.0, 0.0), (0.25, 0.0), (0.0, 0.5)):
        wrong = parts_error * np.array([[0.1, 0.4, 0.3], [0.9, 0.9, 0.9]])
        frame_errors = np.array([frame_error, 0.9])
        found.append(tables._vectors(parts, wrong, frame, frame_errors)[1][0])
        share = term("parts", 3 * parts_error * 0.2) + term("shares", (3 + 2) * 2.0**-50)
        entries = term("factors", 4 * share) + term("roots", (3 + 4) * 2.0**-50)
        first = share + term("frame", frame_error)
        stated.append(first + 3 * entries + term("products", (3 + 2) * 2.0**-50))
    return np.array(found), np.array(stated)


def violations_of_tries(term):
    shape = tables.TryShape(LEVELS)
    given = np.array([[0.0, 2.0**-40, 2.0**-21], [0.0, 2.0**-39, 0.0], [0.0, 2.0**-41, 0.0]])
    with pytest.MonkeyPatch.context() as patch:
        columns = [(np.zeros((3, count, 7)), off) for count, off in zip(LEVELS, given, strict=True)]
        patch.setattr(tables, "_vectors", Mock(side_effect=columns))
        found = shape.evaluate(np.full((3, shape.numbers), 0.3)).error
    cells = term("vectors", 3 * given.max(axis=0)) + term("cells", (ORDER + 1) * 2.0**-50)
    stated = term("inequalities", 7 * INEQUALITIES * cells)
    return found, stated + term("sum", INEQUALITIES**2 * 2.0**-50)


NUMBERS = [
    (value, scale, z)
    for value, scale, z in itertools.product((0.0, 1.0, -3e9), (1.0, 2.0**-970), (0.0, -1.0, 40.0))
]


def thresholds(term):
    found = [NoisyThreshold(value, scale, Known(z)).margin for value, scale, z in NUMBERS]
    value, scale, z = np.array(NUMBERS).T
    stated = term("value", 2.0**-49 * np.abs(value)) + term("noise", 2.0**-49 * np.abs(scale * z))
    return np.array(found), stated + term("ball", 2.0**-80 * scale) + term("underflow", 2.0**-1000)


def values_of_a_list(term):
    value, _, z = np.array(NUMBERS).T
    noisy = NoisyValues(value.tolist(), value, 3.0, Supply(z.tolist()))
    stated = term("value", 2.0**-49 * np.abs(value)) + term("noise", 2.0**-49 * np.abs(3 * z))
    return noisy._margins, stated + term("ball", 2.0**-80 * 3.0)


CASES = [
    logarithms_of_products,
    gamma_variables,
    rows_of_tries,
    orthonormal_rows,
    vectors_of_a_column,
    violations_of_tries,
    thresholds,
    values_of_a_list,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_bounds_have_all_their_terms(case):
    check_bound_has_all_its_terms(case)
