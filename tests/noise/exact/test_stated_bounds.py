"""Each stated error bound is the sum of all terms of its derivation.

The errors of float64 are often far below a proved bound. So a comparison with true errors would
pass even if a term of the bound were missing. Here the bounds are computed a second time, term by
term. The inputs are chosen so that each term matters for some of them. Then each term is halved in
turn, and the computed bound must differ from the stated one.
"""

from __future__ import annotations

import math
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.sparse as sp

from geomdp.bodies import Elliptope
from geomdp.noise import ConeNoise, differences, tables
from geomdp.noise import rounding as near
from geomdp.noise.rounding import WORD_BITS, logarithm, minus_log, near_gaussians, near_laplaces
from geomdp.noise.scalar import GUMBEL


class Terms:
    """Records the names of the terms of a formula, and halves the term with the name `halved`."""

    def __init__(self, halved=None):
        self.halved, self.names = halved, {}

    def __call__(self, name, value):
        self.names[name] = None
        return value / 2 if name == self.halved else value


TOP = 1 << WORD_BITS
EXTREME = [1, 2, 1000, 2**31, 2**45 + 1, TOP // 8, TOP // 2, TOP - 2**30, TOP - 2**12, TOP - 1]
#: For the second of these words, the error of E = -ln U is half of E, so the bound of `gumbels` for
#: -ln E is infinite. For the first, E is larger by a quarter, and the bound is finite.
EXTREME += [TOP - 5 * 2**9, TOP - 2**11]


def random_words(count, seed):
    return np.random.default_rng(seed).integers(1, TOP, count, dtype=np.uint64)


WORDS = np.concatenate([np.array(EXTREME, dtype=np.uint64), random_words(30, 0)])


def unit(values):
    return 2.0**-53 * np.abs(values) + 2.0**-1000


def one_operation(term):
    values = np.array([0.0, 1.0, -3e5, 2.0**60, 2.0**-950])
    stated = term("relative", 2.0**-53 * np.abs(values)) + term("underflow", 2.0**-1000)
    yield near.rounding_error(values), stated


def logarithms_of_words(term):
    values, errors = minus_log(WORDS)
    stated = term("polynomials", 2.0**-46 * values) + term("word to float", 2.0**-52)
    yield errors, stated + term("later words", 1.01 / WORDS.astype(float))


def laplaces(term):
    given = np.concatenate([WORDS, WORDS[::-1]])
    for scale in (1.0, 3.7e5, 2.0**-990):
        values, errors = near_laplaces(len(WORDS), scale).evaluate(given)
        off = minus_log(WORDS)[1]
        both = term("first", scale * off) + term("second", scale * off[::-1])
        rounding = term("rounding", 4 * unit(values))
        yield errors, both + term("sum of both", both * 2.0**-40) + rounding


def gaussians(term):
    count = 2 * len(WORDS) - 1
    given = np.concatenate([WORDS, random_words(len(WORDS), 1)])
    for scale in (1.0, 3.7e5, 2.0**-990):
        values, errors = near_gaussians(count, scale).evaluate(given)
        square, off = minus_log(WORDS)
        length = np.sqrt(2 * square)
        root = term("root", 2 * off / length)
        wrong = root + term("product", root * 2.0**-40) + term("length", 4 * unit(length))
        turn = term("turn", (length + wrong) * 2 * 2.0**-45)
        rounding = term("rounding", 4 * unit(values))
        yield errors, np.repeat(scale * (wrong + turn), 2)[:count] + rounding


def gumbels(term):
    size, off = minus_log(WORDS)
    _, errors = GUMBEL.near(len(WORDS)).evaluate(WORDS)
    quotient = term("exponential", 2 * off / (size - off))
    stated = np.where(size > 2 * off, quotient + term("logarithm", 2.0**-45), math.inf)
    assert np.isinf(errors[WORDS == TOP - 2**11]).all()
    assert np.isfinite(errors[WORDS == TOP - 5 * 2**9]).all()
    yield errors, stated


def sums_of_exponentials(term):
    for size in (1.0, 2.0**-40):
        logs, cuts = np.array([0.3, 2.0, 7.0]), size * np.array([2.0**-46, 2.0**-44, 2.0**-50])
        value, error = differences._sum(logs, cuts)
        assert value == math.fsum(logs)
        own = term("errors", cuts.sum())
        rounding = term("rounding", 2.0**-52 * value)
        yield error, own + term("their sum", own * 2.0**-30) + rounding


def correlations(term):
    factor = np.array([[2.0, 0, 0], [0.6, 0.8, 0], [2.0, 3.0, 6.0]])
    uniforms = np.full((1, tables.factor_places(3).count), 0.3)
    for size in (0.0, 2.0**-45, 2.0**-30):
        rows = factor[None], np.array([size])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tables.Variables, "rows", lambda *_, rows=rows: rows)
            _, (error,) = tables.near_correlations(uniforms, 3)
        # The second row has length 1, and is the shortest.
        row = term("row", 2 * size)
        rounding = term("norm and quotient", (3 + 8) * 2.0**-52)
        off = row + term("root", row * 2.0**-30) + rounding
        both = term("both rows", 2 * off) + term("product of errors", off**2)
        product = term("inner product", (3 + 8) * 2.0**-52)
        yield error, both + term("sum of both", both * 2.0**-30) + product


def linear_images(term):
    matrix, constant = np.array([[1.0, -3.0], [0.0, 0.25]]), np.array([-2.0, 1e-3])
    x, t, longest = np.array([0.5, 2.0]), 0.25, 1 << 20
    linear = differences._Linear(sp.csr_array(matrix), constant, np.array([4.0, 0.25]), longest)
    for off, size, wrong in ((0.0, 2.0, 0.0), (0.3, 0.0, 0.0), (0.0, 0.0, 0.7), (0.0, 0.0, 0.0)):
        values, errors = linear.image(x, off, t, size, wrong)
        np.testing.assert_allclose(values, matrix @ x + t * constant, rtol=1e-15)
        rounding = (longest + 2) * 2.0**-52
        total = np.array([4.0, 0.25]) * (
            term("entries", off) + term("sums", rounding * size) + term("of errors", rounding * off)
        )
        total = total + np.abs(constant) * (
            term("factor", wrong) + term("constant", 4 * 2.0**-52 * size)
        )
        total = total + term("rounding", 2 * 2.0**-52 * np.abs(values))
        yield errors, total + term("sum of all", total * 2.0**-40)


def row_weights(term):
    matrix = sp.csr_array(np.array([[0.1, -0.2, 0.0], [0.0, 0.0, 0.0], [1e-9, 3.0, -7.5]]))
    linear = differences._linear(ConeNoise(Elliptope(3), 0.3, np.zeros(3), matrix), 3)
    assert linear.longest == 3
    sums = np.array([0.1 + 0.2, 0.0, 1e-9 + 3 + 7.5])
    yield linear.weights, sums + term("rounding", sums * 2.0**-30)


def cone_noise(term):
    """The bounds that `near_cone` passes to `image`: on errors of the entries of x, and of t."""
    noise = ConeNoise(Elliptope(3), 0.3, np.zeros(3))
    filter_ = differences.near_cone(noise)
    for size in (0.0, 2.0**-44, 0.3):
        sums = [(2.0, 0.01 * size), (5.0, 0.07 * size)]
        matrices = np.array([np.eye(3), np.eye(3)]), size * np.array([0.25, 0.125])
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(differences, "_sum", Mock(side_effect=sums))
            patch.setattr(differences, "near_correlations", lambda *_, m=matrices: m)
            patch.setattr(differences._Linear, "image", lambda _, *given: given)
            _, off, t, total, wrong = filter_.evaluate(random_words(filter_.count, 4))
        assert (t, total) == (2 / 0.3 - 5 / 0.3, 2 / 0.3 + 5 / 0.3)
        radii = term("first", 0.01 * size / 0.3) + term("second", 0.07 * size / 0.3)
        radii += term("quotient", 4 * 2.0**-52 * total)
        gap = 0.25 * size
        moved = term("correlations", total * gap) + term("product of errors", radii * gap)
        yield off, moved + radii + term("rounding", 4 * 2.0**-52 * total)
        yield wrong, radii


# Rejection tries and comparisons


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
    yield errors[:, :-1], stated[:, :-1]


def gamma_variables(term):
    given, uniforms, places = variables()
    _, errors = given.half_gammas(places.chi)
    yield errors, stated_gammas(term, uniforms, places)


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
    yield errors, stated + term("diagonal", chi.max(axis=1))


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
    yield errors, wrong


def vectors_of_a_column(term):
    # The second try has larger errors, which do not count for the first.
    parts = np.array([[1.0, 2.0, 5.0], [1.0, 2.0, 5.0]])
    frame = np.array([np.eye(2), np.eye(2)])
    for parts_error, frame_error in ((0.0, 0.0), (0.25, 0.0), (0.0, 0.5)):
        wrong = parts_error * np.array([[0.1, 0.4, 0.3], [0.9, 0.9, 0.9]])
        frame_errors = np.array([frame_error, 0.9])
        found = tables._vectors(parts, wrong, frame, frame_errors)[1][0]
        share = term("parts", 3 * parts_error * 0.2) + term("shares", (3 + 2) * 2.0**-50)
        entries = term("factors", 4 * share) + term("roots", (3 + 4) * 2.0**-50)
        first = share + term("frame", frame_error)
        yield found, first + 3 * entries + term("products", (3 + 2) * 2.0**-50)


def violations_of_tries(term):
    shape = tables.TryShape(LEVELS)
    given = np.array([[0.0, 2.0**-40, 2.0**-21], [0.0, 2.0**-39, 0.0], [0.0, 2.0**-41, 0.0]])
    with pytest.MonkeyPatch.context() as patch:
        columns = [(np.zeros((3, count, 7)), off) for count, off in zip(LEVELS, given, strict=True)]
        patch.setattr(tables, "_vectors", Mock(side_effect=columns))
        found = shape.evaluate(np.full((3, shape.numbers), 0.3)).error
    cells = term("vectors", 3 * given.max(axis=0)) + term("cells", (ORDER + 1) * 2.0**-50)
    stated = term("inequalities", 7 * INEQUALITIES * cells)
    yield found, stated + term("sum", INEQUALITIES**2 * 2.0**-50)


CASES = [
    one_operation,
    logarithms_of_words,
    laplaces,
    gaussians,
    gumbels,
    sums_of_exponentials,
    correlations,
    linear_images,
    row_weights,
    cone_noise,
    logarithms_of_products,
    gamma_variables,
    rows_of_tries,
    orthonormal_rows,
    vectors_of_a_column,
    violations_of_tries,
]


def agrees(case, term):
    """Whether all bounds of a case are equal to those of their formulas, up to rounding."""
    # The tolerance is below the smallest factor of a bound, 1 + 2^-40.
    with np.errstate(all="ignore"):
        return all(np.allclose(*pair, rtol=2.0**-44, atol=0) for pair in case(term))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_bounds_have_all_their_terms(case):
    """Each pair of a case is a computed bound, and the bound of a formula with named terms."""
    terms = Terms()
    assert agrees(case, terms)
    for name in terms.names:
        assert not agrees(case, Terms(name))
