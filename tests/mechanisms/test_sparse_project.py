"""SparseProject: sizes, lemmas by simulation, accuracy theorem, noise, summaries, bad input."""

from __future__ import annotations

import hashlib
import math
import os
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from mpmath import mpf

from geomdp.bounds.upper import theorems as sizes
from geomdp.mechanisms import (
    DigestedElements,
    GaussianRows,
    IntegerElements,
    LaplaceRows,
    SparseProject,
    SparseSummary,
    sparse_project,
)
from geomdp.mechanisms.sparse_summary import HashedSigns
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Ledger, PureDP
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, rounded_arithmetic
from geomdp.workloads import SparseQuery
from tests.noise.exact.reference import REFERENCE_BITS, Reference, nearest, seeded
from tests.stats import binomial_above, binomial_below, mean_agrees

APPROX = ApproxDP(1.0, 1e-6)
NOISES = pytest.mark.parametrize("noise", [GaussianRows(), LaplaceRows()], ids=repr)
ENCODINGS = pytest.mark.parametrize("encoding", [DigestedElements(), IntegerElements()], ids=str)


def project(**options) -> SparseProject:
    usual = {"n": 1, "sparsity": 1, "queries": 1, "privacy": ZCDP(0.5), "rows": 64, "rng": 0}
    return SparseProject(**(usual | options))


# Sizes.


def test_the_paper_s_rows_run_where_they_are_few_enough():
    """The paper's number of rows is ceil(2^14 ln 8 / 0.4^2) = 212935 here; 2^18 rows are used."""
    assert sizes.paper_rows(n=10, sparsity=4, queries=5, beta=0.1) == 58_681_960
    rows = sizes.paper_rows(n=2, sparsity=1, queries=1, beta=0.5)
    assert rows == math.ceil(2**14 * math.log(8) / 0.16)
    summary = project(n=2, beta=0.5, rows=1 << 18).release([3, 3], rng=1)
    answer = summary.answer(SparseQuery.counting([3]))
    assert answer.distortion_std < 0.003
    assert abs(answer.value - 1) <= 6 * answer.noise_std


def test_accuracy_constant():
    """The constant of Theorem 4.9 is 16 sqrt(3) = 27.7128."""
    n, m, k, beta = 10, 4, 5, 0.1
    rows = sizes.paper_rows(n=n, sparsity=m, queries=k, beta=beta)
    logs = math.log(4 * k / beta) * math.log(1e6) * (math.log2(2 * k / beta) + math.log2(rows))
    found = sizes.paper_accuracy(APPROX, n=n, sparsity=m, queries=k, beta=beta)
    assert (n * found - 2) / math.sqrt(m * logs) == pytest.approx(27.7128, abs=5e-5)


def test_feasible_rows():
    """rho-zCDP counts as a loss of sqrt(2 rho), so the last two mechanisms have a loss of 1."""
    assert sizes.feasible_rows(n=100, epsilon=1.0) == 1 << 14
    assert sizes.feasible_rows(n=1, epsilon=0.1) == 1 << 6
    assert sizes.feasible_rows(n=10**6, epsilon=1.0) == 1 << 16
    for privacy in (ZCDP(0.5), APPROX):
        assert project(n=128, privacy=privacy, rows=None).signs.rows == 128**2


def test_flatness_is_the_moment_bound_at_its_power():
    """Corollary 4.7 is Lemma 4.6 at r = 2 log2(x), x = k T / (2 beta). There x^(1/r) = sqrt(2)."""
    m, T, k, beta = 10, 4096, 100, 0.05
    x = k * T / (2 * beta)
    r = 2 * math.log2(x)
    moment = x ** (1 / r) * 2 * math.sqrt(m * r) / math.sqrt(T)
    found = sizes.coefficient_bound(sparsity=m, rows=T, queries=k, beta=beta)
    assert found == pytest.approx(moment, rel=1e-12)


# Lemmas and the accuracy theorem, by simulation.


@pytest.mark.statistical
@pytest.mark.parametrize(("m", "queries"), [(1, 1), (8, 20), (50, 5)])
def test_projected_queries_are_flat(m, queries):
    """Lemma 4.6 and Corollary 4.7 each bound all coefficients with probability 1 - beta."""
    rows, beta, trials = 256, 0.2, 300
    r = sizes.independence(rows=rows, queries=queries, beta=beta)
    corollary = sizes.coefficient_bound(sparsity=m, rows=rows, queries=queries, beta=beta)
    lemma = (queries * rows / (2 * beta)) ** (1 / r) * 2 * math.sqrt(m * r / rows)
    rng = np.random.default_rng(m)
    within = np.zeros(2, dtype=int)
    for _ in range(trials):
        signs = HashedSigns.draw(rows, r, rng)
        largest = max(
            np.abs(signs.project(rng.choice(10**6, m, replace=False), np.ones(m))).max()
            for _ in range(queries)
        )
        within += [largest <= lemma, largest <= corollary]
    for count in within:
        binomial_above(int(count), trials, 1 - beta, level=1e-6 / 2)


@pytest.mark.statistical
@pytest.mark.parametrize("rows", [1, 4, 32])
@pytest.mark.parametrize("deviation", [2.0, 8.0, 24.0])
def test_laplace_sums_have_the_stated_tail(rows, deviation):
    """Lemma 4.8 holds in its worst case, in which all coefficients are equal to their bound."""
    scale, bound, trials = 1.5, 0.7, 20_000
    draws = np.random.default_rng(rows).laplace(0.0, scale, size=(trials, rows)).sum(axis=1) * bound
    tail = sizes.laplace_sum_tail(bound=bound, scale=scale, rows=rows, deviation=deviation)
    binomial_below(int(np.count_nonzero(np.abs(draws) >= deviation)), trials, tail)


@pytest.mark.statistical
def test_johnson_lindenstrauss_lemma():
    """With T >= 4 * 64^2 ln(1/tau) / s^2 rows, norms and products change little (BR-JL).

    For the distortion s and with probability 1 - 2 tau, squared norms have relative errors of at
    most s, and inner products of x and y errors of at most (s / 2) (||x||^2 + ||y||^2).
    """
    tau, distortion, trials = 0.3, 0.45, 40
    rows = 1 << math.ceil(math.log2(sizes.JL_CONSTANT * math.log(1 / tau) / distortion**2))
    rng = np.random.default_rng(3)
    x, y = rng.random(30), rng.random(30)
    good = 0
    for _ in range(trials):
        signs = HashedSigns.draw(rows, math.ceil(2 * math.log(1 / tau)), rng)
        elements = rng.choice(10**9, 30)
        a, b = signs.project(elements, x), signs.project(elements, y)
        norms = abs(a @ a - x @ x) <= distortion * (x @ x)
        good += norms and abs(a @ b - x @ y) <= distortion / 2 * (x @ x + y @ y)
    binomial_above(good, trials, 1 - 2 * tau)


@pytest.mark.statistical
@NOISES
def test_accuracy_theorem(noise):
    """The bound of Theorem 4.9 also holds for `feasible_rows`, which is far below the paper's T."""
    n, m, k, beta, trials = 200, 5, 10, 0.2, 60
    privacy = ApproxDP(0.8, 1e-6)
    bound = sizes.paper_accuracy(privacy, n=n, sparsity=m, queries=k, beta=beta)
    records = [i % 7 for i in range(n)]
    queries = [SparseQuery.counting([i, i + 1, i + 100, i + 200, i + 300]) for i in range(k)]
    truths = [query.total(query.tally(records)) / n for query in queries]
    options = {"privacy": privacy, "beta": beta, "noise": noise, "adjacency": Adjacency.ADD_REMOVE}
    good = 0
    for rng in np.random.default_rng(4).spawn(trials):
        mechanism = SparseProject(n=n, sparsity=m, queries=k, rng=rng, **options)
        summary = mechanism.release(records, rng=rng)
        errors = [abs(summary.answer(q).value - t) for q, t in zip(queries, truths, strict=True)]
        good += max(errors) <= bound
    binomial_above(good, trials, 1 - beta)


# Noise.


@pytest.mark.parametrize(
    ("adjacency", "factor"), [(Adjacency.ADD_REMOVE, 1), (Adjacency.REPLACE_ONE, 2)]
)
@pytest.mark.parametrize("rows", [64, 1024])  # the noise does not depend on this number
def test_noise_follows_the_adjacency(adjacency, factor, rows):
    """Replace-one doubles the noise; add/remove has the Laplace scale of Algorithm 2 (DISC-6)."""
    gaussian = project(n=10, rows=rows, adjacency=adjacency)
    assert gaussian.sigma == pytest.approx(factor, rel=1e-14)
    laplace = project(n=10, rows=rows, adjacency=adjacency, privacy=APPROX, noise=LaplaceRows())
    scale = math.sqrt(8 * math.log(1e6)) * factor
    assert laplace.sigma == pytest.approx(math.sqrt(2) * scale)


@pytest.mark.statistical
@NOISES
def test_answers_are_unbiased_with_the_stated_noise(noise):
    n, query = 50, SparseQuery.from_mapping({1: 1.0, 2: 0.5, 99: 1.0})
    records = [1] * 20 + [2] * 10 + [3] * 20
    mechanism = project(n=n, sparsity=3, privacy=APPROX, rows=128, noise=noise, rng=1)
    rng = np.random.default_rng(2)
    answers = [mechanism.release(records, rng=rng).answer(query) for _ in range(2000)]
    # The key is fixed, so the mean of the answers is the projected answer without noise.
    exact = mechanism.signs.project(np.array([1, 2, 3]), np.array([20.0, 10.0, 20.0]))
    projected = mechanism.signs.project(np.array([1, 2, 99]), np.array([1.0, 0.5, 1.0]))
    errors = np.array([answer.value for answer in answers]) - projected @ exact / n
    mean_agrees(errors, 0.0)
    mean_agrees(errors**2, answers[0].noise_std ** 2)


# Summaries and their files.


def test_the_seed_draws_the_public_signs():
    first, again, other = (project(rng=seed).signs.key for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.isin(first, other).any()


def test_a_summary_survives_its_file(tmp_path):
    mechanism = project(
        n=2, sparsity=2, adjacency=Adjacency.ADD_REMOVE, encoding=DigestedElements()
    )
    summary, query = mechanism.release(["a", 17]), SparseQuery.counting(["a", ("c", 1)])
    summary.save(tmp_path / "summary.npz")
    loaded = SparseSummary.load(tmp_path / "summary.npz")
    assert loaded.answer(query) == summary.answer(query)
    assert (loaded.guarantee, loaded.sparsity) == (summary.guarantee, 2)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"rho": 0.5', '"rho": 0.01', "statement must be"),
        ("sparse summary 1", "sparse summary 2", "format must be"),
        ('"sigma": ', '"sigma": -', "sigma must be"),
        ("IntegerElements", "Elements", "is not a sparse summary"),
    ],
)
def test_a_changed_record_is_noticed(old, new, message, tmp_path):
    path = tmp_path / "summary.npz"
    project().release([5]).save(path)
    with np.load(path) as file:
        parts = {name: file[name] for name in file.files}
    assert old in str(parts["record"])
    parts["record"] = np.array(str(parts["record"]).replace(old, new))
    np.savez(path, **parts)
    with pytest.raises(ValueError, match=message):
        SparseSummary.load(path)


# Elements, queries and parameters.


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([1 << 60], "must lie in"),
        ([-1], "whole numbers"),
        ([1 << 63], "whole numbers"),
        ([1.5], "whole numbers"),
        (["a"], "use DigestedElements"),
        ([[1, {}]], "hashable: row 1"),
        ([1, 2], "must number n = 1"),
        ([], "must number n = 1"),
    ],
)
def test_bad_records_are_refused_before_any_draw(records, message):
    rng = np.random.default_rng(0)
    state = rng.bit_generator.state
    with pytest.raises(ValueError, match=message):
        project(rows=1 << 16).release(records, rng=rng)
    assert rng.bit_generator.state == state


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"privacy": PureDP(1.0)}, "must be ApproxDP or ZCDP"),
        ({"noise": LaplaceRows()}, "ApproxDP for LaplaceRows"),
        *(({"rows": rows}, "rows must") for rows in (32, 100, 1 << 25)),
        ({"noise": "Gaussian"}, "noise must be GaussianRows or LaplaceRows, got str"),
        ({"encoding": 1.0}, "encoding must be an ElementEncoding, got float"),
        ({}, "sparsity at most 1, got 2"),
    ],
)
def test_bad_parameters_and_a_query_of_more_elements_than_declared(options, message):
    with pytest.raises(ValueError, match=message):
        project(**options).release([3]).answer(SparseQuery.counting([1, 2]))


element = st.recursive(
    st.integers() | st.text() | st.binary(), lambda x: st.tuples(x) | st.tuples(x, x), max_leaves=5
)


@settings(max_examples=30)
@example(["\ud800", "\udc00", "\ud800\udc00", "\U00010000"])  # as in files that are not UTF-8
@given(st.lists(element, min_size=2, max_size=6, unique=True))
def test_digests_tell_elements_apart(elements):
    """Two elements collide with probability 2^-46, so a collision here shows a bug."""
    numbers = DigestedElements().encode(elements)
    assert len(set(numbers.tolist())) == len(elements)
    assert 0 <= numbers.min() <= numbers.max() < 1 << 46


def test_digests_are_the_same_in_every_version():
    """A summary that is loaded from a file needs the digests of the version that wrote the file."""
    text = b"t18:s3:abci2:-7t4:b1:x"
    digest = hashlib.blake2b(text, digest_size=8).digest()
    (number,) = DigestedElements().encode([("abc", -7, (b"x",))])
    assert number == int.from_bytes(digest, "little") >> 18


@ENCODINGS
@pytest.mark.parametrize("bad", [True, 0.5, None, frozenset()])
def test_elements_without_an_encoding(encoding, bad):
    with pytest.raises(ValueError, match="elements must be"):
        encoding.encode([bad])


@ENCODINGS
@pytest.mark.parametrize("bad", [1.0, True, np.float64(1.0)])
def test_records_that_equal_an_earlier_whole_number_are_refused(encoding, bad):
    """Python calls 1, 1.0 and True equal, but only the first is an element of these encodings."""
    ledger, mechanism = Ledger(ZCDP(2.0)), project(n=2, encoding=encoding)
    tuples = [("a", 1), ("a", bad)]
    for records in ([1, bad], [bad, 1], [[1], [bad]], tuples):
        with pytest.raises(ValueError, match="elements must be"):
            mechanism.release(records, ledger=ledger)
    assert not ledger.spends()


@ENCODINGS
def test_whole_numbers_of_every_kind_are_elements(encoding):
    """Under add/remove, the empty data set is a neighbour of every data set with one record."""
    plain = [7, 9, 0, 2**63 - 1]
    numbers = encoding.encode([np.int64(7), np.uint8(9), *plain[2:]])
    np.testing.assert_array_equal(numbers, encoding.encode(plain))
    assert isinstance(encoding, DigestedElements) or numbers.tolist() == plain
    assert encoding.encode([]).dtype == np.int64
    mechanism = project(encoding=encoding, adjacency=Adjacency.ADD_REMOVE)
    assert mechanism.release([]).guarantee == mechanism.guarantee


# Unseeded releases: rounded noise is added to the whole numbers T^(1/2) A D


SMALL = ApproxDP(0.9, 1e-5)
SETTINGS = [(GaussianRows(), ZCDP(0.4)), (GaussianRows(), SMALL), (LaplaceRows(), SMALL)]
RECORDS = [3, 3, 5, 9, 2**40]


@pytest.fixture(params=SETTINGS, ids=str)
def unseeded(request):
    noise, privacy = request.param
    return SparseProject(
        n=len(RECORDS), sparsity=1, queries=1, privacy=privacy, rows=128, noise=noise, rng=1
    )


def whole_sums(unseeded, records):
    """T^(1/2) A D, as the sum of a column of T^(1/2) A for each record."""
    return np.rint(unseeded.signs.columns(np.array(records)).sum(axis=0) * math.sqrt(128))


def test_the_vector_is_the_exact_sum_of_whole_numbers_and_rounded_noise(unseeded, monkeypatch):
    """The expected vector is computed by mpmath at 400 bits."""
    scale = unseeded.noise.proved_scale(unseeded.guarantee.privacy, 2, 128)
    kind = "laplaces" if isinstance(unseeded.noise, LaplaceRows) else "gaussians"
    with mpmath.workprec(REFERENCE_BITS):
        draws = [mpf(scale) * z for z in getattr(Reference(seeded(1)), kind)(128)]
        multiples = nearest(draws, unseeded.grid)
    unit, sums = 1 << unseeded.grid, whole_sums(unseeded, RECORDS).tolist()
    pairs = zip(sums, multiples, strict=True)
    expected = [float(Fraction(int(s) * unit + j, unit)) for s, j in pairs]
    # Compilation may ask the operating system for bits. The lines above compiled all functions.
    monkeypatch.setattr(os, "urandom", seeded(1))
    found = unseeded.release(RECORDS)
    np.testing.assert_array_equal(found.vector, np.array(expected) / math.sqrt(128))
    assert found.guarantee == unseeded.guarantee
    assert unseeded.guarantee.arithmetic == rounded_arithmetic(unseeded.grid)
    assert unseeded.release(RECORDS, rng=0).guarantee.arithmetic == FLOAT64_CAVEAT


def test_a_record_moves_every_whole_number_by_one():
    unseeded = SparseProject(n=3, sparsity=1, queries=1, privacy=ZCDP(0.5), rows=256, rng=0)
    sums = [unseeded._sums(records)[1] for records in ([1, 2, 3], [1, 2], [1, 2, 8])]
    assert (sums[0] == np.rint(sums[0])).all()
    assert (np.abs(sums[0] - sums[1]) == 1).all()
    assert np.abs(sums[0] - sums[2]).max() == 2


def test_parts_of_many_rows_are_drawn_anew(monkeypatch):
    monkeypatch.setattr(sparse_project, "ROWS", 64)
    first, second = sparse_project.RoundedRows(GaussianRows(), ZCDP(0.5), 2, 128).draw()
    assert (first == second).mean() < 0.1
