"""Families of packings agree with the formula sheet and with lists of their members."""

import itertools
import math

import numpy as np
import pytest
from scipy.linalg import hadamard

from geomdp import bounds
from geomdp.bounds.code_packings import CodeWords, MarginalBlocks, greedy_code, prime_at_most
from geomdp.bounds.random_signs import RandomSignSets, Sets, rate, reed_solomon_sets, singletons
from geomdp.workloads import Marginals, RandomSigns
from tests.stats import binomial_below

METRIC = bounds.MeanL2()


def test_primes():
    small = [n for n in range(200) if n > 1 and all(n % f for f in range(2, n))]
    assert [n for n in range(2, 200) if prime_at_most(n) == n] == small
    # 561 is a Carmichael number. 3215031751 is a strong pseudoprime to the bases 2, 3, 5 and 7.
    for composite in (561, 3215031751):
        with pytest.raises(ValueError, match="prime must be a prime number"):
            bounds.ReedSolomon(composite, 2, 1)
    assert prime_at_most(2**31 - 1) == 2**31 - 1
    assert prime_at_most(100) == 97


@pytest.mark.parametrize(("prime", "length", "degree"), [(7, 5, 2), (11, 6, 3), (5, 5, 5)])
def test_reed_solomon_words_differ_as_promised(prime, length, degree):
    code = bounds.ReedSolomon(prime, length, degree)
    words = code.words()
    assert len(words) == prime**degree == round(math.exp(code.log_count))
    differing = min((words[i + 1 :] != words[i]).sum(axis=1).min() for i in range(len(words) - 1))
    assert differing == code.differing


def test_codes_have_their_distance():
    code = greedy_code(15, 5)
    words = code.words(np.arange(code.count))
    assert code.count >= 64
    assert min((words[i + 1 :] != words[i]).sum(axis=1).min() for i in range(63)) >= 5
    assert code.distance >= 5
    with pytest.raises(ValueError, match="linearly independent"):
        bounds.LinearCode(np.array([[1, 0], [0, 1], [1, 1]]))


def listed_sets(sets: Sets) -> np.ndarray:
    """Element numbers (M, s) of all sets of a Reed-Solomon code."""
    assert sets.code is not None
    return sets.code.words() + sets.code.prime * np.arange(sets.size)


def test_reed_solomon_sets_of_the_sheet():
    family = reed_solomon_sets(bounds.ReedSolomon(11, 6, 3))
    sets = listed_sets(family)
    assert sets.shape == (1331, 6)
    incidence = np.zeros((1331, 11 * 6))
    np.put_along_axis(incidence, sets, 1, axis=1)
    assert (incidence @ incidence.T - 6 * np.eye(1331)).max() == 2
    assert family.difference == 2 * (6 - 2)


@pytest.mark.statistical
def test_listed_random_sign_sets_are_separated_as_the_union_bound_says():
    # The bound fails for a random sign matrix with probability at most `failure`.
    sets = reed_solomon_sets(bounds.ReedSolomon(7, 4, 2))
    failure, failed, draws = 2.0**-10, 0, 12
    for seed in range(draws):
        family = RandomSignSets(600, sets, failure, seed)
        W = RandomSigns(600, 28, seed)
        listed = bounds.Packing(W, np.arange(28), listed_sets(sets))
        failed += listed.separation(METRIC) < family.separation(METRIC)
        assert listed.distance <= family.distance
        assert listed.log_others == pytest.approx(family.log_others, rel=1e-12)
    binomial_below(failed, draws, failure)


def test_the_moment_bound_holds_for_flat_vectors():
    # Let v be 1 / sqrt(w) on w <= 2 s elements and 0 elsewhere, and Y = <signs, v>. The moment
    # bound is E e^(-x Y^2) <= 1 - x + (3 - 1/s) x^2 / 2.
    for size in (1, 2, 3):
        for support in range(2, 2 * size + 1, 2):
            signs = np.array(list(itertools.product((-1, 1), repeat=support)))
            squares = signs.sum(axis=1) ** 2 / support
            for tilt in (0.05, 0.2, 0.35):
                exact = np.exp(-tilt * squares).mean()
                # For deviation 1, `rate` is minus the logarithm of the moment bound.
                assert exact <= math.exp(-rate(1.0, tilt, size)) * (1 + 1e-14)


def test_too_many_sets_for_the_queries_are_refused():
    with pytest.raises(bounds.SideConditionError, match="fewer sets or more queries"):
        RandomSignSets(10, reed_solomon_sets(bounds.ReedSolomon(11, 6, 3)))
    with pytest.raises(bounds.SideConditionError, match="more queries"):
        bounds.random_sign_bound(10, 100.0, epsilon=1.0, alpha=0.01)
    with pytest.raises(bounds.SideConditionError, match="separation must be at least"):
        bounds.random_sign_bound(1000, 50.0, epsilon=1.0, alpha=0.6)


def test_universes_beyond_any_list():
    family = RandomSignSets(40_000, singletons(1000.0))
    assert family.log_others == 1000.0
    bound = bounds.certify([family], epsilon=1.0, alpha=0.01)
    # A data set has at most 999 copies of one element, because (number of copies) * epsilon must
    # be below ln(M - 1) = 1000. The union bound over the signs is an assumption.
    assert bound.value == math.floor(999 * family.separation(METRIC) / 0.04)
    assert "probability at least 1 - 1e-06" in bound.assumptions[0]


def test_listed_code_words_are_separated():
    inner = greedy_code(6, 1)
    family = CodeWords(20, bounds.ReedSolomon(31, 3, 2), inner)
    written = family.inner.words(family.outer.words().ravel()).reshape(961, -1)
    records = np.pad(written, ((0, 0), (0, 20 - written.shape[1])))
    assert records.shape == (961, 20)
    differing = min((records[i + 1 :] != records[i]).sum(axis=1).min() for i in range(960))
    assert math.sqrt(differing / 20) >= family.separation(METRIC)
    assert family.separation(bounds.WorstCase()) == pytest.approx(1, rel=1e-11)


def block_records(family: MarginalBlocks, words: np.ndarray) -> np.ndarray:
    """Records (b, s, d) of the data sets that some `words` (b, s B) of `functions` define."""
    columns = family.part - 1
    places = columns ** np.arange(family.width - 2, -1, -1)
    tuples = np.arange(family.size)[:, None] // places % columns
    blocks = (1 + hadamard(family.part, dtype=np.int64)[:, 1:].T) // 2
    first = blocks[tuples].reshape(family.size, -1)
    last = family.code.words(words.ravel()).reshape(len(words), family.size, -1)
    unused = np.zeros((*last.shape[:2], family.rest - last.shape[2]), dtype=np.int64)
    heads = np.broadcast_to(first, (len(words), *first.shape))
    return np.concatenate([heads, last, unused], axis=2)


@pytest.mark.parametrize(("width", "attributes"), [(2, 16), (3, 12)])
def test_projected_identity_of_the_sheet(width, attributes):
    # P subtracts the mean of a part. The Kronecker product P x ... x P x I maps differences of data
    # sets to vectors with exactly the length that the formula sheet states.
    part = 8 if width == 2 else 4
    code = greedy_code(attributes - (width - 1) * part, 1)
    size = (part - 1) ** (width - 1)
    family = MarginalBlocks(attributes, width, part, code, bounds.ReedSolomon(13, size, 2))
    words = np.random.default_rng(0).integers(13, size=(6, size))
    records = block_records(family, words)
    centring = np.eye(part) - 1 / part
    tensors = []
    for data in records:
        total = 0.0
        for record in data:
            product = np.ones(1)
            for j in range(width - 1):
                product = np.kron(product, centring @ record[j * part : (j + 1) * part])
            total = total + np.kron(product, record[(width - 1) * part :])
        tensors.append(total / size)
    for i, j in itertools.combinations(range(6), 2):
        last = records[i, :, (width - 1) * part :] != records[j, :, (width - 1) * part :]
        expected = (part / 4) ** ((width - 1) / 2) * math.sqrt(last.sum()) / size
        assert np.linalg.norm(tensors[i] - tensors[j]) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize("family", [
    MarginalBlocks(12, 2, 4, greedy_code(8, 2), bounds.ReedSolomon(7, 3, 2)),
    MarginalBlocks(15, 2, 4, greedy_code(5, 2), bounds.ReedSolomon(7, 6, 2)),
    MarginalBlocks(10, 3, 4, greedy_code(2, 1), bounds.ReedSolomon(3, 3, 2)),
], ids=["one word", "two words", "width 3"])  # fmt: skip
def test_listed_marginal_blocks_are_separated(family):
    records = block_records(family, family.functions.words())
    elements, rows = np.unique(records.reshape(-1, family.attributes), axis=0, return_inverse=True)
    listed = bounds.Packing(
        Marginals(family.attributes, family.width), elements, rows.reshape(len(records), -1)
    )
    for metric in (METRIC, bounds.WorstCase()):
        found = listed.separation(metric) + 2 * listed.rounding
        assert found >= family.separation(metric) > 0
    assert listed.distance <= family.distance
    assert listed.log_others == pytest.approx(family.log_others, rel=1e-12)


def test_impossible_marginal_bounds_are_refused():
    with pytest.raises(bounds.SideConditionError, match="separation must be at least"):
        bounds.marginal_bound(16, 2, epsilon=1.0, alpha=0.4)
    with pytest.raises(ValueError, match="width"):
        bounds.marginal_bound(4, 5, epsilon=1.0, alpha=0.1)


def test_separated_sets_of_the_cube():
    """The Hamming code of 16 words is a largest subset of {0, 1}^7 with distances of at least 3."""
    cube = np.array(list(itertools.product((0.0, 1.0), repeat=7)))
    separation = math.sqrt(3 / 7) * (1 - 1e-12)
    rows = bounds.greedy_separated(cube, METRIC, separation)
    # Maximal: every point is close to a chosen one, and two words of distance 6 or 7 are chosen.
    distances = np.array([METRIC.norm(cube - cube[row]) for row in rows])
    assert 2 <= len(rows) <= 16
    assert (distances.min(axis=0)[np.setdiff1d(np.arange(128), rows)] < separation).all()
    assert distances[:, rows][~np.eye(len(rows), dtype=bool)].min() >= separation


@pytest.mark.parametrize("width", [1, 2, 3, 6])
def test_marginals_of_any_width_have_a_bound_or_a_reason(width):
    """Each part of a block needs two attributes, and a code of four words needs two bits."""
    for attributes in range(width, 2 * width):
        with pytest.raises(
            bounds.SideConditionError, match=f"^{attributes} attributes are too few"
        ):
            bounds.marginal_bound(attributes, width, epsilon=0.1, alpha=1e-4)
    for attributes in range(2 * width, 25, 4):
        assert bounds.marginal_bound(attributes, width, epsilon=0.1, alpha=1e-4).value >= 1
