"""Float64 draws of every noise: moments, noise in all coordinates, and independence."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import pytest

import geomdp.noise
from geomdp.bodies import Box
from geomdp.mechanisms import SmoothSummary, sparse_project
from geomdp.mechanisms.sparse_project import GaussianRows, LaplaceRows, RoundedRows
from geomdp.noise import GaussianNoise, LaplaceNoise, Noise, RecursiveNoise
from geomdp.noise.gaussian import ResidualNoise
from geomdp.noise.knorm import MappedNoise
from geomdp.noise.recursive import Variant, decompose, stopped
from geomdp.privacy import ZCDP, ApproxDP, PureDP
from geomdp.workloads import ChosenTables
from geomdp.workloads.structure import Residuals
from tests.noise.exact.test_vectors import noises
from tests.stats import mean_agrees

pytestmark = pytest.mark.statistical

PAIRS = 4000
STAGES = decompose(Box.centred(np.array([1.0, 5.0, 9.0])), Variant.PROJECTED, exact=True)
RESIDUALS = ResidualNoise(
    Residuals(ChosenTables({"a": 2, "b": 3, "c": 4}, [list("ab"), list("bc")], [1.0, 0.5])),
    np.array([0.5, 1.0, 1.5, 0.8, 2.0, 0.7]),
)
NOISES = noises() | {
    "recursive levels": RecursiveNoise(stopped(STAGES)[-1], 0.7),
    "residuals": RESIDUALS,
}
#: Noises on whole multiples of units. Coordinates can be 0, and rows equal, by chance.
ON_LATTICES = ("geometric", "lattice box")


@pytest.fixture(params=sorted(NOISES))
def name(request):
    return request.param


@pytest.fixture
def draws(name):
    return NOISES[name].sample(np.random.default_rng(sum(map(ord, name))), 2 * PAIRS)


def test_every_exported_noise_is_here():
    exported = [getattr(geomdp.noise, name) for name in geomdp.noise.__all__]
    classes = {item for item in exported if inspect.isclass(item) and hasattr(item, "sample")}
    assert classes - {Noise} <= {type(noise) for noise in NOISES.values()}


def test_moments_are_the_stated_ones(name, draws):
    noise = NOISES[name]
    mean_agrees(draws, np.zeros(noise.dimension))
    moment, squares = noise.second_moment(), (draws**2).sum(axis=1)
    if moment.stderr == 0:
        mean_agrees(draws[:, :, None] * draws[:, None, :], noise.covariance())
        mean_agrees(draws**2, noise.variances())
    # Both sides may be estimates. A normal variable is more than six standard deviations from its
    # mean with probability 2e-9.
    stderr = np.hypot(squares.std() / len(squares) ** 0.5, moment.stderr)
    assert abs(squares.mean() - moment.value) <= 6 * stderr


def test_no_coordinate_lacks_noise(name, draws):
    moving = NOISES[name].variances() > 0
    moved = draws[:, moving] != 0
    if name in ON_LATTICES:  # noise is 0 with a probability of at most 1/2 here
        assert (moved.mean(axis=0) > 0.4).all()
    else:
        assert moved.all()
    assert (draws[:, ~moving] == 0).all()


def test_draws_come_from_the_generator_given(name):
    """Another seed gives other noise in every coordinate; noise must not have a fixed seed."""
    noise = NOISES[name]
    rows = 100 if name in ON_LATTICES else 3
    first, again, other = (noise.sample(np.random.default_rng(seed), rows) for seed in (1, 1, 2))
    moving = noise.variances() > 0
    np.testing.assert_array_equal(first, again)
    differ = first[:, moving] != other[:, moving]
    assert (differ.mean(axis=0) > 0.4).all() if name in ON_LATTICES else differ.all()


def lengths_of(name, draws):
    """The centred lengths of rows, on a logarithmic scale if no row can be 0 by chance."""
    squares = (draws**2).sum(axis=-1)
    lengths = np.sqrt(squares) if name in ON_LATTICES else np.log(squares)
    return lengths - lengths.mean()


def test_rows_are_independent(name, draws):
    """Neither the entries nor the lengths of two rows are correlated, neighbours or far apart."""
    lengths = lengths_of(name, draws)
    halves = slice(PAIRS), slice(PAIRS, None)
    for one, other in ((slice(0, None, 2), slice(1, None, 2)), halves):
        mean_agrees(draws[one][:, :, None] * draws[other][:, None, :], 0.0)
        mean_agrees(lengths[one] * lengths[other], 0.0)
    # No row repeats another row. On a lattice, rows can be equal by chance.
    assert name in ON_LATTICES or len(np.unique(lengths)) == len(lengths)


def test_rows_share_nothing_that_is_drawn_once_a_call(name):
    """In many calls for two rows, neither the entries nor the lengths of the rows are correlated.

    A number that all rows of a call share, such as one radius, moves the mean length of the call.
    So the lengths are compared with their mean over all calls.
    """
    noise, rng = NOISES[name], np.random.default_rng(5)
    draws = np.array([noise.sample(rng, 2) for _ in range(PAIRS)])
    mean_agrees(draws[:, 0, :, None] * draws[:, 1, None, :], 0.0)
    mean_agrees(lengths_of(name, draws).prod(axis=1), 0.0)


def rows_of(kind, privacy):
    sigma = kind.sigma(privacy, 2.0, 64)
    return lambda rng, size: np.array([kind.draw(rng, sigma, 64)[:5] for _ in range(size)]), sigma


def smooth(privacy):
    noise = SmoothSummary(2, n=1000, smoothness=2, privacy=privacy, degree=3).noise
    return noise.sample, noise.deviations


#: Noises whose coordinates are independent: a sampler, and its standard deviations.
INDEPENDENT = {
    "laplace": (LaplaceNoise(5, 1.5).sample, 1.5 * 2**0.5),
    "gaussian": (GaussianNoise(np.eye(5), 0.4).sample, 0.4),
    "smooth laplace": smooth(PureDP(1.0)),
    "smooth gaussian": smooth(ZCDP(0.5)),
    "gaussian rows": rows_of(GaussianRows(), ZCDP(0.5)),
    "laplace rows": rows_of(LaplaceRows(), ApproxDP(1.0, 1e-6)),
}


@pytest.mark.parametrize("name", INDEPENDENT)
def test_coordinates_are_independent(name):
    """Products of coordinates, and of centred moduli, have the means of independent coordinates."""
    sample, deviations = INDEPENDENT[name]
    draws = sample(np.random.default_rng(3), PAIRS) / deviations
    count = draws.shape[1]
    assert (draws != 0).all()
    mean_agrees(draws, 0.0)
    mean_agrees(draws[:, :, None] * draws[:, None, :], np.eye(count))
    # Two coordinates with equal moduli and independent signs are caught only by their moduli.
    sizes = np.abs(draws) - np.abs(draws).mean(axis=0)
    first, second = np.triu_indices(count, 1)
    mean_agrees(sizes[:, first] * sizes[:, second], 0.0)
    mean_agrees(draws[::2] * draws[1::2], 0.0)
    mean_agrees(sizes[::2] * sizes[1::2], 0.0)


def test_parts_of_mapped_noise_are_independent():
    """The coordinates of two parts are uncorrelated, and so are their moduli."""
    part = NOISES["parts"].parts[1]
    left, right = np.vstack([np.eye(3), np.zeros((3, 3))]), np.vstack([np.zeros((3, 3)), np.eye(3)])
    noise = MappedNoise([type(part)(part.noise, left), type(part)(part.noise, right)])
    draws = noise.sample(np.random.default_rng(4), PAIRS)
    mean_agrees(draws[:, :3, None] * draws[:, None, 3:], 0.0)
    sizes = np.abs(draws) - np.abs(draws).mean(axis=0)
    mean_agrees(sizes[:, :3, None] * sizes[:, None, 3:], 0.0)


@pytest.mark.parametrize(
    ("kind", "privacy"), [(GaussianRows(), ZCDP(0.5)), (LaplaceRows(), ApproxDP(1.0, 1e-6))]
)
def test_rounded_rows_have_the_noise_of_seeded_ones(kind, privacy, monkeypatch):
    """Rounded noise, divided by sqrt(T), has the float64 variance and independent rows and parts.

    The noise is added to sqrt(T) A D, where A D is the sparse projection with T = 64 rows.
    """
    monkeypatch.setattr(sparse_project, "ROWS", 16)
    noise = RoundedRows(kind, privacy, 2, 64)
    drawn = np.array([np.concatenate(noise.draw()) for _ in range(1000)]) * 2.0**-noise.grid
    draws = drawn / 8 / kind.sigma(privacy, 2.0, 64)  # sqrt(T) = 8
    mean_agrees(draws, 0.0)
    mean_agrees(draws**2, 1.0)
    mean_agrees(draws[:, :-1] * draws[:, 1:], 0.0)
    mean_agrees(draws[:, :-16] * draws[:, 16:], 0.0)  # the same place in two successive parts


def test_levels_of_recursive_noise_are_independent():
    """Neither the coordinates nor the lengths of two levels are correlated."""
    noise = NOISES["recursive levels"]
    draws = noise.sample(np.random.default_rng(6), PAIRS)
    parts = [draws @ level.basis for level in noise.levels]
    sizes = [np.log((part**2).sum(axis=1)) for part in parts]
    assert len(parts) >= 2
    for i, j in itertools.combinations(range(len(parts)), 2):
        mean_agrees(parts[i][:, :, None] * parts[j][:, None, :], 0.0)
        mean_agrees((sizes[i] - sizes[i].mean()) * (sizes[j] - sizes[j].mean()), 0.0)
