"""The exact path as one table: mechanisms, times what holds for all their unseeded releases.

The proofs that the noise is private for exact sums are in `test_exact_proofs.py`.
"""

from __future__ import annotations

import functools
import itertools
import os
from fractions import Fraction

import numpy as np
import pytest

from geomdp.mechanisms import (
    Ball,
    Cone,
    Ellipsoid,
    Gaussian,
    KNorm,
    Laplace,
    Matrix,
    Recursive,
    ResidualGaussian,
    Shrunk,
    TightCone,
)
from geomdp.mechanisms.additive_noise.sums import RealRecords, whole_numbers
from geomdp.mechanisms.strategies import Haar, Tree
from geomdp.mechanisms.strategies.design import LaplaceCells, SimplexCells
from geomdp.mechanisms.strategies.histograms import PIdentity, SoftBins
from geomdp.mechanisms.strategies.tables import WeightedMarginals, WeightedSigns
from geomdp.noise.rounding import Rounded
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, Guarantee, PureDP
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, rounded_arithmetic
from geomdp.workloads import (
    BoxSecondMoment,
    Explicit,
    Histogram,
    LinearMap,
    Marginals,
    MarginalTables,
    Means,
    Parities,
    Prefixes,
    ProductQueries,
    RandomSigns,
    Ranges,
    SecondMoment,
)
from tests.noise.exact.reference import seeded
from tests.stats import LEVEL, ks_same, mean_agrees

N = 128
ONE, GAUSS, APPROXIMATE = PureDP(1.0), ZCDP(0.5), ApproxDP(0.8, 1e-6)
LOOSE = ApproxDP(0.8, 0.05)
REPLACE = Adjacency.REPLACE_ONE
PAIRS = MarginalTables([2, 3], 2)
TABLES = MarginalTables([2, 3, 1, 2], 2)
PRODUCTS = ProductQueries({"a": 2, "b": 3}, [["a", "b"]], {"b": Prefixes(3)})
TOTALS = ProductQueries(
    {"a": 2, "b": 4}, [["a", "b"]], {"b": Explicit([[1, 1, 1, 0], [-1, 0.5, 1, 0], [0, 0, 0, 1]])}
)
REALS = Explicit(np.random.default_rng(0).uniform(-1, 1, (3, 7)))
STRETCHED = LinearMap(Marginals(3, 1), np.diag([1.0, 0.3, 0.07]))
SIMPLEX = Explicit(np.random.default_rng(1).uniform(-1, 1, (3, 4)))
COSINES = Explicit(np.cos(np.arange(12.0).reshape(3, 4)))


def moves(answers, adjacency):
    """All changes (b, m) of the sums by one record, for the answers (N, m) of all elements."""
    if adjacency is Adjacency.ADD_REMOVE:
        return np.vstack([answers, -answers])
    return np.array([a - b for a, b in itertools.permutations(answers, 2)])


def row(kind, workload, privacy=ONE, n=N, **options):
    """A function of the adjacency that returns a mechanism."""
    return lambda a: kind(workload, n=n, privacy=privacy, adjacency=a, **options)


#: Noise of the mechanism's own law, on whole answers.
AS_IT_IS = {
    "laplace": row(Laplace, Ranges(5)),
    "laplace of whole rows": row(Laplace, Explicit([[3, 0, -1], [0, 2, 7]])),
    "cone of signs": row(Cone, Marginals(3, 2)),
    "cone of binary tables": row(Cone, MarginalTables([2, 2, 2], 2)),
    "cone of tables": row(Cone, PAIRS),
    "cone of a histogram": row(Cone, Histogram(4)),
    "tight cone": row(TightCone, PAIRS),
    "tight cone of parities": row(TightCone, Parities(3, 2)),
    "k-norm of a box": row(KNorm, Parities(3, 1)),
}
#: Isotropic noise in all coordinates, projected on the span of the answers.
GAUSSIANS = {
    "gaussian of tables": row(Gaussian, PAIRS, GAUSS),
    "gaussian of marginals": row(Gaussian, Marginals(4, 2), APPROXIMATE),
    "gaussian of prefixes": row(Gaussian, Prefixes(5), APPROXIMATE),
    "gaussian of whole rows": row(Gaussian, Explicit([[3, 0], [2, 7]]), GAUSS),
}
#: Noise on a few answers, from which the others follow, or of bodies that are whole.
BODIES = {
    "ball of tables": row(Ball, PAIRS),
    "ball of ranges": row(Ball, Ranges(4)),
    "ball of tables, approximate": row(Ball, PAIRS, LOOSE),
    "ellipsoid of tables": row(Ellipsoid, PAIRS),
    "ellipsoid of tables, approximate": row(Ellipsoid, PAIRS, LOOSE),
    "ellipsoid of prefixes": row(Ellipsoid, Prefixes(5)),
    "matrix, zCDP": row(Matrix, Marginals(4, 2), GAUSS),
    "matrix, approximate": row(Matrix, PAIRS, APPROXIMATE),
    "k-norm of marginals": row(KNorm, Marginals(3, 1), exact=True),
    "k-norm of a polytope": row(KNorm, Marginals(3, 2), exact=True),
    "k-norm of signs": row(KNorm, RandomSigns(3, 9, 3), exact=True),
    "k-norm of blocks": row(KNorm, PAIRS, exact=True),
    "k-norm of prefixes": row(KNorm, Prefixes(4), exact=True),
    "recursive of marginals": row(Recursive, Marginals(3, 1)),
    "recursive of a polytope": row(Recursive, Marginals(3, 2)),
    "recursive of blocks": row(Recursive, PAIRS),
    "recursive of tables": row(Recursive, MarginalTables([2, 3, 2], 1)),
}
#: Real answers, rounded for each element of the universe, or as the entries of a real record.
REAL = {
    "laplace of reals": row(Laplace, REALS),
    "gaussian of reals": row(Gaussian, REALS, GAUSS),
    "ball of reals": row(Ball, REALS),
    "ellipsoid of reals": row(Ellipsoid, REALS),
    "ellipsoid of reals, approximate": row(Ellipsoid, REALS, LOOSE),
    "matrix of reals": row(Matrix, REALS, GAUSS),
    "k-norm of a stretched box": row(KNorm, STRETCHED),
    "k-norm of a simplex": row(KNorm, SIMPLEX),
    "cone of a stretched box": row(Cone, STRETCHED),
    "cone of a simplex": row(Cone, SIMPLEX),
    "laplace of means": row(Laplace, Means(3)),
    "ball of means": row(Ball, Means(3)),
    "gaussian of means": row(Gaussian, Means(3), GAUSS),
    "wishart": row(Cone, SecondMoment(3)),
    "gaussian of moments": row(Gaussian, SecondMoment(3), GAUSS),
    "ball of moments": row(Ball, SecondMoment(3)),
    "ball of moments, approximate": row(Ball, SecondMoment(3), LOOSE),
    "ellipsoid of moments": row(Ellipsoid, SecondMoment(3)),
    "matrix of moments": row(Matrix, SecondMoment(3), GAUSS),
    "laplace of moments": row(Laplace, SecondMoment(2)),
    "cone of a cube": row(Cone, BoxSecondMoment(2)),
}
#: Workloads and strategies: noise on measurements, from which all answers follow.
STRATEGIES = {
    "marginals": (TABLES, WeightedMarginals()),
    "marginals of simplex noise": (TABLES, WeightedMarginals(SimplexCells())),
    "cells of products": (PRODUCTS, WeightedMarginals()),
    "shares of totals": (TOTALS, WeightedMarginals()),
    "shares of totals, simplex noise": (TOTALS, WeightedMarginals(SimplexCells())),
    "signs of tables": (MarginalTables([2, 2, 2], 2), WeightedSigns()),
    "signs of marginals": (Marginals(4, 2), WeightedSigns()),
    "signs of parities": (Parities(4, 2), WeightedSigns()),
    "tree": (Ranges(6), Tree()),
    "tree of simplex noise": (Marginals(3, 2), Tree(SimplexCells())),
    "wavelets": (Prefixes(11), Haar()),
    "bins": (Prefixes(11), SoftBins(3)),
    "bins of laplace noise": (Prefixes(11), SoftBins(3, LaplaceCells())),
    "p-identity": (Prefixes(7), PIdentity(2)),
    "strategy of real answers": (COSINES, Haar()),
}
MEASURED = {
    name: row(Matrix, workload, PureDP(0.7), strategy=strategy)
    for name, (workload, strategy) in STRATEGIES.items()
} | {
    "residuals": row(ResidualGaussian, MarginalTables([2, 3, 2], 2), GAUSS),
    "residuals of products": row(ResidualGaussian, PRODUCTS, GAUSS),
}
ROWS = AS_IT_IS | GAUSSIANS | BODIES | REAL | MEASURED
#: Only for replace-one: under add/remove, the hull of K and -K is neither a box nor a simplex.
REPLACE_ONLY = {"k-norm of a stretched box", "k-norm of a simplex"}
SETTINGS = [
    (name, a) for name in ROWS for a in Adjacency if a is REPLACE or name not in REPLACE_ONLY
]


@pytest.fixture(params=SETTINGS, ids=lambda setting: f"{setting[0]}, {setting[1].value}")
def mechanism(request):
    return built(*request.param)


@functools.cache
def built(name, adjacency):
    """The mechanism of a row. Tests share it, because use only adds computed values to it."""
    mechanism = ROWS[name](adjacency)
    mechanism.set_up()
    return mechanism


def records_of(mechanism):
    return mechanism.workload.universe.sample(N, 3)


# Property 1: an unseeded release adds the rounded noise to the exact sums, as its record says; a
# seeded one does not.


def test_answers_are_exact_sums_with_rounded_noise(mechanism, monkeypatch):
    path, records = mechanism.exact_path, records_of(mechanism)
    multiples = path.rounded.draw(seeded(1))
    means = path.means(mechanism.measured(records).sums, multiples, N)
    monkeypatch.setattr(os, "urandom", seeded(1))
    release = mechanism.release(records)
    np.testing.assert_array_equal(release.answers, mechanism._restored(means))
    assert release.guarantee.arithmetic == rounded_arithmetic(mechanism.grid, path.slack)
    assert Guarantee.from_dict(release.guarantee.to_dict()) == mechanism.guarantee
    sums = mechanism.workload.totals(records).sums
    simulated = (sums + mechanism.noise.sample(np.random.default_rng(7), 1)[0]) / N
    np.testing.assert_array_equal(
        mechanism.release(records, rng=7).answers, mechanism._restored(simulated)
    )


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("name", AS_IT_IS)
def test_means_are_quotients_that_are_rounded_once(name, adjacency):
    mechanism = built(name, adjacency)
    path, counts = mechanism.exact_path, mechanism.measured(records_of(mechanism)).sums
    multiples = Rounded.of(mechanism.noise, mechanism.grid).draw(seeded(1))
    assert path.rounded.draw(seeded(1)) == multiples
    exact = [
        float((int(count) + Fraction(j, 2**mechanism.grid)) / N)
        for count, j in zip(counts.tolist(), multiples, strict=True)
    ]
    assert path.means(counts, multiples, N).tolist() == exact


# Property 2: without noise, the answers are those of the records.


def test_without_noise_answers_are_those_of_the_records(mechanism):
    """Rounding of answers and changes of basis in float64 change a mean by less than 1e-7."""
    records, path = records_of(mechanism), mechanism.exact_path
    totals = mechanism.measured(np.array_split(records, 3))
    assert totals.count == N
    silent = [0] * len(path.rounded.draw())
    answers = path.means(totals.sums, silent, N)
    np.testing.assert_allclose(answers, mechanism.workload.answers(records), rtol=0, atol=1e-7)


# Property 3: an answer depends on the noisy sums alone.


def in_units(path, sums):
    """The measured sums as whole multiples of the grid of the noise."""
    if isinstance(path.sums, RealRecords):
        return whole_numbers(sums)
    measured = sums if path.rows is None else sums[path.rows.places]
    return [int(Fraction(x) * 2**path.rounded.grid) for x in measured.tolist()]


def neighbours(mechanism):
    """The sums of two data sets that differ in one record, and in their sums."""
    records = records_of(mechanism)
    first = mechanism.measured(records).sums
    for record in mechanism.workload.universe.sample(64, 4):
        other = records.copy()
        other[0] = record
        second = mechanism.measured(other).sums
        if in_units(mechanism.exact_path, first) != in_units(mechanism.exact_path, second):
            return first, second
    raise AssertionError("no record changes the sums")


def test_only_noisy_sums_are_read(mechanism):
    """If the noise makes up for the change of one record, the answers are equal bit by bit."""
    path, (first, second) = mechanism.exact_path, neighbours(mechanism)
    pairs = zip(in_units(path, first), in_units(path, second), strict=True)
    gaps = [a - b for a, b in pairs]
    rng = np.random.default_rng(0)
    for bits in range(4, 100, 4):
        limit = 2 ** min(bits, 60)
        noise = [int(x) << max(bits - 60, 0) for x in rng.integers(-limit, limit, len(gaps))]
        moved = [j + gap for j, gap in zip(noise, gaps, strict=True)]
        # If n were a power of two, divisions by n would be exact.
        np.testing.assert_array_equal(path.means(first, noise, 100), path.means(second, moved, 100))


# Property 4: releases have the law of seeded ones.

LAWS = [
    *("laplace", "cone of signs", "cone of tables", "k-norm of a box", "gaussian of tables"),
    *("gaussian of prefixes", "ball of tables", "ellipsoid of tables", "matrix, approximate"),
    *("k-norm of marginals", "k-norm of a polytope", "k-norm of signs", "k-norm of blocks"),
    *("tight cone", "wavelets", "gaussian of marginals", "k-norm of prefixes", "shares of totals"),
    *("recursive of a polytope", "recursive of blocks", "residuals", "bins"),
    *("marginals of simplex noise", "signs of marginals", *REAL),
]


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("name", "adjacency"), [*((name, REPLACE) for name in LAWS), ("wishart", Adjacency.ADD_REMOVE)]
)
def test_releases_have_the_law_of_seeded_ones(name, adjacency, monkeypatch):
    mechanism = built(name, adjacency)
    monkeypatch.setattr(os, "urandom", seeded(5))
    records = records_of(mechanism)
    sums, truth = mechanism.measured(records).sums, mechanism.workload.answers(records)
    answers = np.array([mechanism.draw(None)(sums) for _ in range(1000)])
    if mechanism.predicted_rmse.stderr == 0:
        mean_agrees(((answers - truth) ** 2).mean(axis=1), mechanism.predicted_rmse.value**2)
    others = truth + mechanism.noise.sample(np.random.default_rng(1), 20_000) / N
    mixed = np.random.default_rng(2).standard_normal(len(truth))
    for direction in (*np.eye(len(truth)), mixed):
        # Round, because constant answers can still differ in their last bits.
        first, second = np.round(answers @ direction, 9), np.round(others @ direction, 9)
        ks_same(first, second, level=LEVEL / (len(truth) + 1))


# What has no exact path.

#: Real answers of 2^13 elements. Such answers are rounded to units for up to 2^12 elements only.
HALVES = LinearMap(Marginals(13, 1), np.eye(13) / 2)
IN_FLOAT64 = {
    "gaussian of fractions": row(Gaussian, HALVES, GAUSS),
    "laplace of fractions": row(Laplace, HALVES),
    "ellipsoid of fractions": row(Ellipsoid, HALVES),
    "cone of real records": row(Cone, Means(2)),
    "shrunk": lambda a: Shrunk(Gaussian(HALVES, n=N, privacy=GAUSS, adjacency=a)),
    "huge answers": row(Laplace, Explicit([[0.5, 1e9]])),
    "k-norm of real records": row(KNorm, Means(2)),
    "recursive on fractions": row(Recursive, Explicit([[0.5, 1.0, 0.0]])),
    "large universe": row(Ball, MarginalTables([2] * 13, 2)),
    "k-norm of a large universe": row(KNorm, MarginalTables([2] * 13, 2), exact=True),
    "too many records": row(Laplace, Histogram(2), n=2**53),
    "too many records for a ball": row(Ball, Prefixes(4), n=2**53),
    "too many records of fractions": row(Laplace, Explicit([[0.5, 1.0]]), n=2**26),
    "too many records of residuals": row(ResidualGaussian, TABLES, GAUSS, n=2**53),
    "too many records of a strategy": row(Matrix, Prefixes(4), n=2**30, strategy=SoftBins(2)),
}


@pytest.mark.parametrize("name", IN_FLOAT64)
def test_what_is_not_exact_keeps_its_caveat(name):
    mechanism = IN_FLOAT64[name](REPLACE)
    assert mechanism.grid is None
    assert mechanism.guarantee.arithmetic == FLOAT64_CAVEAT
