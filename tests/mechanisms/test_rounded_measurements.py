"""Unseeded releases of strategies: noise is rounded on the measurements, not on the answers."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

from geomdp.data.tallies import CountedRecords, Tallies, tables_of
from geomdp.mechanisms import Fitted, Hierarchical, Matrix, Projected
from geomdp.mechanisms.strategies import (
    Haar,
    PIdentity,
    SoftBins,
    Tree,
    WeightedMarginals,
    WeightedSigns,
)
from geomdp.mechanisms.strategies.design import LaplaceCells, SimplexCells, exact_loss
from geomdp.noise import KNormNoise, LaplaceNoise
from geomdp.privacy import Adjacency, PureDP
from geomdp.privacy.guarantees import FLOAT64_CAVEAT, rounded_arithmetic
from geomdp.workloads import (
    Explicit,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    Ranges,
    SparseQueries,
    SparseQuery,
)
from tests.stats import LEVEL, ks_same, mean_agrees

N = 50
EPSILON = 0.7
TABLES = MarginalTables([2, 3, 1, 2], 2)
COSINES = Explicit(np.cos(np.arange(12.0).reshape(3, 4)))

#: The workload and the strategy of each case, by name.
CASES = {
    "marginals": (TABLES, WeightedMarginals()),
    "marginals of simplex noise": (TABLES, WeightedMarginals(SimplexCells())),
    "signs of tables": (MarginalTables([2, 2, 2], 2), WeightedSigns()),
    "signs of marginals": (Marginals(4, 2), WeightedSigns()),
    "signs of parities": (Parities(4, 2), WeightedSigns()),
    "tree": (Ranges(6), Tree()),
    "tree of simplex noise": (Marginals(3, 2), Tree(SimplexCells())),
    "wavelets": (Prefixes(11), Haar()),
    "bins": (Prefixes(11), SoftBins(3)),
    "bins of laplace noise": (Prefixes(11), SoftBins(3, LaplaceCells())),
    "p-identity": (Prefixes(7), PIdentity(2)),
    "real answers": (COSINES, Haar()),
}


@pytest.fixture(params=[(name, a) for name in sorted(CASES) for a in Adjacency], ids=str)
def mechanism(request):
    name, adjacency = request.param
    workload, strategy = CASES[name]
    kind = Matrix(workload, n=N, privacy=PureDP(EPSILON), adjacency=adjacency, strategy=strategy)
    kind.set_up()
    return kind


def records_of(mechanism):
    return mechanism.workload.universe.sample(N, 3)


def element_sums(mechanism):
    """What each element of the universe adds to the measurements, (N, p)."""
    elements = mechanism.workload.universe.elements()
    return np.array([mechanism.measured(elements[i : i + 1]).sums for i in range(len(elements))])


def test_the_record_says_that_noise_is_rounded(mechanism):
    assert mechanism.grid is not None
    found = mechanism.release(records_of(mechanism)).guarantee
    assert found == mechanism.guarantee
    assert found.arithmetic == rounded_arithmetic(mechanism.grid)
    assert mechanism.release(records_of(mechanism), rng=0).guarantee.arithmetic == FLOAT64_CAVEAT


def test_answers_follow_from_the_measurements(mechanism):
    records = records_of(mechanism)
    totals = mechanism.measured(np.array_split(records, 3))
    assert totals.count == N
    zeros = [0] * len(totals.sums)
    answers = mechanism.exact_path.means(totals.sums, zeros, N)
    np.testing.assert_allclose(answers, mechanism.workload.answers(records), rtol=0, atol=1e-12)


def counted(workload, records):
    """The records as a reader counts them, in the tables that `tables_of` lists."""
    universe = workload.universe
    columns = records[:, None] if records.ndim == 1 else records
    levels = getattr(universe, "levels", None) or [
        universe.size if records.ndim == 1 else 2 for _ in columns.T
    ]
    tallies = Tallies.empty(levels, tables_of(workload, levels)).with_records(list(columns.T))
    return CountedRecords(universe, tallies)


def test_counted_records_give_the_same_measurements(mechanism):
    records = records_of(mechanism)
    found = mechanism.measured(counted(mechanism.workload, records))
    expected = mechanism.measured(records)
    assert found.count == expected.count == N
    np.testing.assert_array_equal(found.sums, expected.sums)
    assert mechanism.release(counted(mechanism.workload, records)).answers.shape


def test_products_of_signs_follow_from_the_pairs_of_many_columns():
    """30 columns are too many to count one table of all columns. The tables of pairs are enough."""
    for workload in (Marginals(30, 2), Parities(30, 2), MarginalTables([2] * 30, 2)):
        records = workload.universe.sample(N, 1)
        kind = Matrix(workload, n=N, privacy=PureDP(EPSILON), strategy=WeightedSigns())
        found = kind.measured(counted(workload, records))
        assert tuple(range(30)) not in counted(workload, records).tallies.cells
        np.testing.assert_array_equal(found.sums, kind.measured(records).sums)


def test_counts_for_another_universe_are_refused():
    kind = Matrix(TABLES, n=N, privacy=PureDP(EPSILON), strategy=WeightedMarginals())
    other = MarginalTables([2, 3, 1, 3], 2)
    with pytest.raises(ValueError, match="were counted for"):
        kind.measured(counted(other, other.universe.sample(N, 3)))


def test_measurements_are_exact_multiples_of_their_unit(mechanism):
    parts = mechanism.exact_path.sums.measurements
    sums = np.split(element_sums(mechanism), np.cumsum([p.rows.shape[0] for p in parts])[:-1], 1)
    for part, own in zip(parts, sums, strict=True):
        assert (own * part.unit == np.rint(own * part.unit)).all()
        assert np.abs(own).max() <= 1
    total = mechanism.measured(mechanism.workload.universe.elements()).sums
    np.testing.assert_array_equal(total, np.hstack(sums).sum(axis=0))


def gauge(noise, moves):
    """Norms (b,) of the moves (b, p), and the privacy loss of the noise for a move of norm 1."""
    if isinstance(noise, LaplaceNoise):
        return np.abs(moves).sum(axis=1), 1 / Fraction(noise.scale)
    assert isinstance(noise, KNormNoise)
    return np.maximum(moves, 0).sum(axis=1), Fraction(noise.epsilon)


def test_no_pair_of_neighbours_costs_more_than_epsilon_in_exact_arithmetic(mechanism):
    """The norms of all moves are sums of multiples of 2^-24, so they are exact in float64."""
    elements = element_sums(mechanism)
    if mechanism.adjacency is Adjacency.REPLACE_ONE:
        pairs = itertools.permutations(range(len(elements)), 2)
        moves = np.array([elements[i] - elements[j] for i, j in pairs])
    else:
        moves = elements
    spent, start = [Fraction(0)] * len(moves), 0
    noises = [part.noise for part in mechanism.noise.parts]
    for noise in noises:
        lengths, rate = gauge(noise, moves[:, start : start + noise.dimension])
        spent = [a + Fraction(b) * rate for a, b in zip(spent, lengths.tolist(), strict=True)]
        start += noise.dimension
    claimed = exact_loss(mechanism.exact_path.sums.measurements, noises)
    assert max(spent) <= claimed <= Fraction(EPSILON)
    assert claimed >= Fraction(EPSILON) * (1 - Fraction(1, 2**45))


def test_answers_depend_on_noisy_measurements_only(mechanism):
    """If the noise cancels the difference of two neighbours, their answers are equal bit by bit."""
    first, second = element_sums(mechanism)[[0, -1]]
    unit = 1 << mechanism.grid
    noise = [7, -12345, 2**61 + 3, 5] * len(first)
    for base in (first, 40 * first + 9 * second):
        other = base - first + second
        j = noise[: len(first)]
        moved = [int((a - b) * unit) for a, b in zip(first.tolist(), second.tolist(), strict=True)]
        means = mechanism.exact_path.means
        same = means(other, [x + d for x, d in zip(j, moved, strict=True)], N)
        np.testing.assert_array_equal(means(base, j, N), same)


def test_rounding_the_answers_instead_is_caught():
    """If noise on the answers is added in float64 to exact answers, the test above must fail."""
    mechanism = Matrix(Prefixes(11), n=N, privacy=PureDP(EPSILON), strategy=Haar())
    mechanism.set_up()
    parts = mechanism.exact_path.sums.measurements
    test_answers_depend_on_noisy_measurements_only(mechanism)
    exact, unit = mechanism.exact_path.means, 1 << mechanism.grid

    class Wrong:
        grid, measured, workload = mechanism.grid, mechanism.measured, mechanism.workload

        @property
        def exact_path(self):
            return self

        @staticmethod
        def means(sums, multiples, n):
            start, noise = 0, 0.0
            for part in parts:
                stop = start + part.matrix.shape[1]
                piece = np.array([float(j) for j in multiples[start:stop]]) / unit
                noise, start = noise + part.matrix @ piece, stop
            return exact(sums, [0] * len(sums), n) + noise / n

    with pytest.raises(AssertionError):
        test_answers_depend_on_noisy_measurements_only(Wrong())


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["marginals of simplex noise", "signs of marginals", "bins"])
def test_releases_have_the_law_of_seeded_ones(name):
    workload, strategy = CASES[name]
    mechanism = Hierarchical(workload, n=N, privacy=PureDP(EPSILON), strategy=strategy)
    records = records_of(mechanism)
    mechanism.set_up()
    measured, sums = mechanism.measured(records).sums, mechanism.totals(records).sums
    answers = np.array([mechanism.draw(None)(measured) for _ in range(1500)])
    errors = ((answers - sums / N) ** 2).mean(axis=1)
    mean_agrees(errors, mechanism.predicted_rmse.value**2)
    others = (sums + mechanism.noise.sample(np.random.default_rng(1), 20_000)) / N
    for j in range(len(sums)):
        ks_same(answers[:, j], others[:, j], level=LEVEL / len(sums))


@pytest.mark.parametrize("kind", [Projected, Fitted])
def test_post_processing_reads_the_measurements(kind):
    inner = Matrix(MarginalTables([2, 2, 3], 2), n=N, privacy=PureDP(1e6))
    mechanism = kind(inner)
    records = records_of(mechanism)
    release = mechanism.release(records)
    assert release.guarantee.arithmetic == rounded_arithmetic(inner.grid)
    np.testing.assert_allclose(release.answers, mechanism.workload.answers(records), atol=1e-3)


def test_what_is_not_measured_exactly_keeps_its_caveat():
    sparse = SparseQueries([SparseQuery(["a"], [1.0]), SparseQuery(["b", "c"], [0.5, 1.0])])
    for mechanism in (
        Matrix(sparse, n=N, privacy=PureDP(1.0)),
        Matrix(Prefixes(4), n=2**53, privacy=PureDP(1.0)),
        Matrix(Prefixes(4), n=2**30, privacy=PureDP(1.0), strategy=SoftBins(2)),
    ):
        assert mechanism.grid is None
        assert mechanism.guarantee.arithmetic == FLOAT64_CAVEAT
    assert Matrix(Prefixes(4), n=2**28, privacy=PureDP(1.0), strategy=SoftBins(2)).grid == 24
