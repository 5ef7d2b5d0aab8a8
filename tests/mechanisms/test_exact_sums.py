"""Exact sums: what is summed without rounding, what limits it, and noise for real records."""

from __future__ import annotations

import os
from functools import partial

import mpmath
import numpy as np
import pytest
from mpmath import mpf

from geomdp._numerics.linalg import svec, unsvec
from geomdp.data.tallies import CountedRecords, Tallies, tables_of
from geomdp.mechanisms import Coarse, Cone, Ellipsoid, Laplace, Matrix, PairMarginals, Projected
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.mechanisms.additive_noise.knorm import is_around_differences_alone
from geomdp.mechanisms.base import quotients
from geomdp.mechanisms.second_moment import wishart_energy
from geomdp.mechanisms.strategies.histograms import SoftBins
from geomdp.mechanisms.strategies.tables import WeightedMarginals, WeightedSigns
from geomdp.noise.differences import wishart_difference
from geomdp.noise.gaussian import isotropic
from geomdp.noise.rounding import Numbers, Rounded
from geomdp.privacy import ZCDP, Adjacency, Ledger, PureDP
from geomdp.privacy.guarantees import rounded_arithmetic
from geomdp.workloads import (
    Explicit,
    Histogram,
    Marginals,
    MarginalTables,
    Means,
    Parities,
    Prefixes,
    RandomSigns,
)
from geomdp.workloads import SecondMoment as Moments
from tests.mechanisms.test_exact_table import GAUSSIANS, MEASURED, TABLES, built, records_of
from tests.noise.exact.reference import REFERENCE_BITS, Reference, floats, nearest, seeded
from tests.stats import LEVEL, ks_same, mean_agrees

N = 128
ONE, GAUSS = PureDP(1.0), ZCDP(0.5)
REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_REMOVE

# Quotients of sums and noise


def test_sums_that_are_not_whole_are_an_error():
    assert quotients(np.zeros(0), [], 4, 2).shape == (0,)
    for sums in ([0.5], [2.0**53]):
        with pytest.raises(ArithmeticError, match="whole numbers below 2"):
            quotients(np.array(sums), [1], 4, 2)


def test_noise_is_used_once():
    mechanism = Laplace(Histogram(2), n=10, privacy=ONE)
    for rng in (None, np.random.default_rng(0)):
        for draw in (mechanism.draw, mechanism.private):
            privatiser = draw(rng)
            privatiser(np.array([5.0, 5.0]))
            with pytest.raises(RuntimeError, match="noise is used once"):
                privatiser(np.array([3.0, 7.0]))


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("name", GAUSSIANS)
def test_the_noise_is_that_of_the_proof_in_all_coordinates(name, adjacency, monkeypatch):
    """Releases equal a reference by mpmath: round sigma g, add it exactly, divide and project."""
    mechanism = built(name, adjacency)
    records, m = records_of(mechanism), mechanism.workload.n_queries
    with mpmath.workprec(REFERENCE_BITS):
        draws = [mpf(mechanism.noise.scale) * g for g in Reference(seeded(1)).gaussians(m)]
        multiples = nearest(draws, mechanism.grid)
    # Ball arithmetic, which decides the roundings that float64 leaves open, gives the same noise.
    balls = Rounded([Numbers(isotropic(m, mechanism.noise.scale).balls)], mechanism.grid)
    assert balls.draw(seeded(1)) == multiples
    monkeypatch.setattr(os, "urandom", seeded(1))
    full = quotients(mechanism.measured(records).sums, multiples, 1 << mechanism.grid, N)
    hull = mechanism.change.hull
    expected = hull.embed(hull.coordinates(full[None]))[0]
    np.testing.assert_array_equal(mechanism.release(records).answers, expected)


# Limits on the number of records, and the rounding of answers


def copies(workload, counts):
    """Records of a listed universe, with `counts[i]` copies of element i."""
    numbers = np.array(counts, dtype=np.int64)
    return CountedRecords(
        workload.universe, Tallies((len(counts),), int(numbers.sum()), {(0,): numbers})
    )


@pytest.mark.parametrize(
    ("mechanism", "most"),
    [
        # Whole answers up to 2^40 - 1, real answers up to 2^28 - 3 units of 2^-28, and counts.
        (partial(Laplace, Explicit([[2.0**40 - 1, 3.0 - 2**40]])), 2**13),
        (partial(Laplace, Explicit([[0.99999999, 0.5, 0.3]])), 2**25 - 1),
        (partial(Matrix, Prefixes(2)), 2**53 - 1),
    ],
)
def test_more_records_than_have_exact_sums_are_refused_before_payment(mechanism, most):
    # Under add/remove there may be more records than n. In the second case, one record could change
    # a rounded sum by 2^28 - 2 units, but the noise is for 2^28 - 3 units. Without the limit, sums
    # of 2^53 or more would be refused only after the payment.
    private = mechanism(n=1000, privacy=ONE, adjacency=ADD)
    workload = private.workload
    rest = [0] * (workload.universe.size - 1)
    ledger = Ledger(ONE, adjacency=ADD)
    with pytest.raises(ValueError, match=f"at most {most}"):
        private.release(copies(workload, [most + 1, *rest]), ledger=ledger)
    assert not ledger.spends()
    assert np.isfinite(private.release(copies(workload, [most, *rest])).answers).all()


def test_rounding_of_computed_answers_is_the_largest_distance():
    """Two rounded answers get K-norm noise, and the third answer is computed from these two."""
    workload = Explicit([[0.0, 1 / 3, 1.0, 0.7], [0.0, 2 / 3, 2.0, 1.4], [0.1, 0.4, 0.3, 0.2]])
    mechanism = Ellipsoid(workload, n=10**4, privacy=PureDP(1e12))
    for element in range(4):
        check_rounding(mechanism, np.full(10**4, element), 2.0**-24)


def check_rounding(mechanism, records, most):
    error = np.abs(mechanism.release(records).answers - mechanism.workload.answers(records))
    assert (error <= mechanism.answer_rounding + 1e-12).all()
    assert mechanism.answer_rounding.max() <= most


@pytest.mark.parametrize("workload", [Means(2), Moments(2)])
def test_rounding_of_real_records_is_bounded(workload):
    records = np.random.default_rng(0).uniform(0, 0.7, size=(100, 2))
    check_rounding(Laplace(workload, n=100, privacy=PureDP(1e12)), records, 2.0**-38)


# Measurements


def counted(workload, records):
    """The records as a reader counts them, in the tables that `tables_of` lists."""
    universe = workload.universe
    columns = records[:, None] if records.ndim == 1 else records
    levels = getattr(universe, "levels", None) or [
        universe.size if records.ndim == 1 else 2 for _ in columns.T
    ]
    tallies = Tallies.empty(levels, tables_of(workload, levels)).with_records(list(columns.T))
    return CountedRecords(universe, tallies)


@pytest.mark.parametrize("adjacency", Adjacency)
@pytest.mark.parametrize("name", MEASURED)
def test_counted_records_give_the_same_measurements(name, adjacency):
    mechanism = built(name, adjacency)
    records = records_of(mechanism)
    found = mechanism.measured(counted(mechanism.workload, records))
    assert found.count == N
    np.testing.assert_array_equal(found.sums, mechanism.measured(records).sums)
    assert mechanism.release(counted(mechanism.workload, records)).answers.shape


def test_products_of_signs_follow_from_the_pairs_of_many_columns():
    """30 columns are too many to count one table of all columns. The tables of pairs are enough."""
    for workload in (Marginals(30, 2), Parities(30, 2)):
        records = workload.universe.sample(N, 1)
        kind = Matrix(workload, n=N, privacy=ONE, strategy=WeightedSigns())
        found = kind.measured(counted(workload, records))
        assert tuple(range(30)) not in counted(workload, records).tallies.cells
        np.testing.assert_array_equal(found.sums, kind.measured(records).sums)


def test_counts_for_another_universe_are_refused():
    kind = Matrix(TABLES, n=N, privacy=ONE, strategy=WeightedMarginals())
    other = MarginalTables([2, 3, 1, 3], 2)
    with pytest.raises(ValueError, match="were counted for"):
        kind.measured(counted(other, other.universe.sample(N, 3)))


def test_soft_bins_have_a_finer_grid():
    mechanism = Matrix(Prefixes(4), n=2**28, privacy=ONE, strategy=SoftBins(2))
    assert mechanism.grid == 24


def test_the_additive_mechanism_within_another_answers_the_same_workload():
    laplace = Laplace(Prefixes(8), n=N, privacy=ONE)
    assert additive_within(laplace) is laplace
    assert additive_within(Projected(laplace)) is laplace
    assert additive_within(Coarse(laplace, 0.3)) is None


@pytest.mark.parametrize(
    ("workload", "alone"),
    [
        (Moments(3), (REPLACE, ADD)),
        (Prefixes(5), (REPLACE, ADD)),
        # For 5000 elements, there are too many pairs to search, but not too many answer vectors.
        (RandomSigns(3, 5000, 0), (ADD,)),
        (Marginals(40, 2), ()),
    ],
    ids=repr,
)
def test_ellipsoids_around_differences_alone(workload, alone):
    for adjacency in Adjacency:
        assert is_around_differences_alone(workload, adjacency) is (adjacency in alone)


# Second moments


@pytest.mark.statistical
@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("d", [1, 3])
def test_wishart_noise_is_cone_noise_of_the_spectraplex(d, centred):
    noise = Cone(Moments(d), n=N, privacy=PureDP(1.3), adjacency=REPLACE if centred else ADD).noise
    drawn = floats(wishart_difference(d, noise.rate, float(noise.centre[0])), 1000, seed=d)
    stretch = svec(np.ones((d, d)))
    squares = ((drawn * stretch) ** 2).sum(axis=1)
    mean_agrees(squares, wishart_energy(d, noise.rate, centred=centred))
    others = noise.sample(np.random.default_rng(2), 20_000)
    for j in range(len(stretch)):
        ks_same(drawn[:, j] * stretch[j], others[:, j], level=LEVEL / len(stretch))
    trace = unsvec(drawn * stretch).trace(axis1=1, axis2=2)
    ks_same(trace, unsvec(others).trace(axis1=1, axis2=2))


@pytest.mark.statistical
@pytest.mark.parametrize("privacy", [ONE, GAUSS], ids=str)
def test_pair_marginals_round_noise_on_counts(privacy, monkeypatch):
    workload = Marginals(4, 2)
    mechanism = PairMarginals(workload, n=400, privacy=privacy)
    records = workload.universe.sample(400, 0)
    assert mechanism.release(records).guarantee.arithmetic == rounded_arithmetic(mechanism.grid)
    monkeypatch.setattr(os, "urandom", seeded(7))
    exact_sums, sums = mechanism.measured(records).sums, mechanism.totals(records).sums
    exact = np.array([mechanism.draw(None)(exact_sums) for _ in range(600)])
    rng = np.random.default_rng(9)
    fast = np.array([mechanism.draw(rng)(sums) for _ in range(3000)])
    for j in range(workload.n_queries):
        ks_same(exact[:, j], fast[:, j], level=LEVEL / workload.n_queries)
