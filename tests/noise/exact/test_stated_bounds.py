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
from geomdp.noise.rounding import WORD_BITS, minus_log, near_gaussians, near_laplaces
from geomdp.noise.scalar import GUMBEL
from tests.noise.exact.terms import check_bound_has_all_its_terms

TOP = 1 << WORD_BITS
EXTREME = [
    1,
    2,
    1000,
    2**31,
    2**45 + 1,
    TOP // 8,
    TOP // 2,
    TOP - 2**30,
    TOP - 2**12,
    TOP - 5 * 2**9,
    TOP - 2**11,
]


def random_words(count, seed):
    return np.random.default_rng(seed).integers(1, TOP, count, dtype=np.uint64)


WORDS = np.concatenate([np.array([*EXTREME, TOP - 1], dtype=np.uint64), random_words(30, 0)])


def unit(values):
    return 2.0**-53 * np.abs(values) + 2.0**-1000


def one_operation(term):
    values = np.array([0.0, 1.0, -3e5, 2.0**60, 2.0**-950])
    stated = term("relative", 2.0**-53 * np.abs(values)) + term("underflow", 2.0**-1000)
    return near.rounding_error(values), stated


def logarithms_of_words(term):
    values, errors = minus_log(WORDS)
    stated = term("polynomials", 2.0**-46 * values) + term("word to float", 2.0**-52)
    return errors, stated + term("later words", 1.01 / WORDS.astype(float))


def laplaces(term):
    found, stated = [], []
    for scale in (1.0, 3.7e5, 2.0**-990):
        values, errors = near_laplaces(len(WORDS), scale).evaluate(
            np.concatenate([WORDS, WORDS[::-1]])
        )
        off = minus_log(WORDS)[1]
        first, second = term("first", scale * off), term("second", scale * off[::-1])
        found.append(errors)
        stated.append(
            first
            + second
            + term("sum of both", (first + second) * 2.0**-40)
            + term("rounding", 4 * unit(values))
        )
    return np.concatenate(found), np.concatenate(stated)


def gaussians(term):
    found, stated = [], []
    for scale in (1.0, 3.7e5, 2.0**-990):
        count = 2 * len(WORDS) - 1
        given = np.concatenate([WORDS, random_words(len(WORDS), 1)])
        values, errors = near_gaussians(count, scale).evaluate(given)
        square, off = minus_log(WORDS)
        length = np.sqrt(2 * square)
        root = term("root", 2 * off / length)
        wrong = root + term("product", root * 2.0**-40) + term("length", 4 * unit(length))
        turn = term("turn", (length + wrong) * 2 * 2.0**-45)
        found.append(errors)
        stated.append(
            np.repeat(scale * (wrong + turn), 2)[:count] + term("rounding", 4 * unit(values))
        )
    return np.concatenate(found), np.concatenate(stated)


def gumbels(term):
    size, off = minus_log(WORDS)
    _, errors = GUMBEL.near(len(WORDS)).evaluate(WORDS)
    quotient = term("exponential", 2 * off / (size - off))
    stated = np.where(size > 2 * off, quotient + term("logarithm", 2.0**-45), math.inf)
    # For the word TOP - 2^11, the error of E = -ln U is half of E, so the bound for -ln E is
    # infinite. For TOP - 5 2^9, E is larger by a quarter, and the bound is finite.
    assert np.isinf(errors[WORDS == TOP - 2**11]).all()
    assert np.isfinite(errors[WORDS == TOP - 5 * 2**9]).all()
    return errors, stated


def sums_of_exponentials(term):
    found, stated = [], []
    for size in (1.0, 2.0**-40):
        logs, cuts = np.array([0.3, 2.0, 7.0]), size * np.array([2.0**-46, 2.0**-44, 2.0**-50])
        value, error = differences._sum(logs, cuts)
        assert value == math.fsum(logs)
        own = term("errors", cuts.sum())
        found.append(error)
        stated.append(own + term("their sum", own * 2.0**-30) + term("rounding", 2.0**-52 * value))
    return np.array(found), np.array(stated)


def correlations(term):
    factor = np.array([[2.0, 0, 0], [0.6, 0.8, 0], [2.0, 3.0, 6.0]])
    uniforms = np.full((1, tables.factor_places(3).count), 0.3)
    found, stated = [], []
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
        found.append(error)
        stated.append(
            both + term("sum of both", both * 2.0**-30) + term("inner product", (3 + 8) * 2.0**-52)
        )
    return np.array(found), np.array(stated)


def linear_images(term):
    matrix, constant = np.array([[1.0, -3.0], [0.0, 0.25]]), np.array([-2.0, 1e-3])
    x, t, longest = np.array([0.5, 2.0]), 0.25, 1 << 20
    linear = differences._Linear(sp.csr_array(matrix), constant, np.array([4.0, 0.25]), longest)
    found, stated = [], []
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
        found.append(errors)
        stated.append(total + term("sum of all", total * 2.0**-40))
    return np.array(found), np.array(stated)


def row_weights(term):
    matrix = sp.csr_array(np.array([[0.1, -0.2, 0.0], [0.0, 0.0, 0.0], [1e-9, 3.0, -7.5]]))
    linear = differences._linear(ConeNoise(Elliptope(3), 0.3, np.zeros(3), matrix), 3)
    assert linear.longest == 3
    sums = np.array([0.1 + 0.2, 0.0, 1e-9 + 3 + 7.5])
    return linear.weights, sums + term("rounding", sums * 2.0**-30)


def cone_noise(term):
    """The bounds that `near_cone` passes to `image`: on errors of the entries of x, and of t."""
    noise = ConeNoise(Elliptope(3), 0.3, np.zeros(3))
    filter_ = differences.near_cone(noise)
    found, stated = [], []
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
        found += [off, wrong]
        stated += [moved + radii + term("rounding", 4 * 2.0**-52 * total), radii]
    return np.array(found), np.array(stated)


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
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_bounds_have_all_their_terms(case):
    check_bound_has_all_its_terms(case)
