"""Every bound is saved, read and accepted, whatever the unit of the answers."""

import inspect
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import geomdp as gd
from geomdp import bounds
from geomdp.privacy import ZCDP, Adjacency, ApproxDP, PureDP
from geomdp.workloads import Explicit, Workload
from tests.bounds.test_checker import saved

METRICS = (bounds.MeanL2(), bounds.RMS(), bounds.WorstCase())
#: Powers of two from 2^-199 to 2^199, about 1e-60 to 1e60, and scales that round the answers.
POWERS = [2.0**i for i in (-199, -66, -20, 0, 1, 2, 7, 66, 199)]
SCALES = [1e-60, 1e-17, 0.1, 1.0, 3.0, 4.0, 10.0, 100.0, 1e17, 1e60]
SMALL = bounds.Effort(elements=64, pool=64, datasets=64, exchanges=4)
MATRICES: dict[str, np.ndarray] = {
    "unit vectors": np.eye(8),
    "one query": np.array([[0.0, 0.2, 1.0]]),
    "reals": np.random.default_rng(0).normal(size=(5, 12)),
    # The differences are a thousandth or a millionth of the answers.
    "offset": 1 + 1e-3 * np.random.default_rng(1).normal(size=(3, 6)),
    "far offset": 1 + 1e-6 * np.random.default_rng(2).normal(size=(4, 5)),
    # The median of three points is a point if its angle is above 120 degrees.
    "obtuse": np.array([[0.0, 1.0, -1.0], [0.0, 0.1, 0.1]]),
}


def certified(W: Workload, alpha: float, metric: bounds.Metric) -> bounds.Bound:
    """Single elements, and multisets of two, which share one element each."""
    elements = W.universe.elements()
    count = len(elements)
    pairs = np.array([[i, (i + 1) % count] for i in range(count)])
    families = [
        bounds.single_elements(W, elements, np.arange(count), "all"),
        bounds.Packing(W, elements, pairs, "pairs"),
    ]
    return bounds.certify(families, epsilon=0.02, alpha=alpha, metric=metric)


def searched(W: Workload, alpha: float, metric: bounds.Metric) -> bounds.Bound:
    return bounds.packing_search(W, epsilon=0.02, alpha=alpha, metric=metric, effort=SMALL, rng=0)


def lines_of(
    privacy: gd.privacy.Privacy,
) -> Callable[[Workload, float, bounds.Metric], bounds.Bound]:
    return lambda W, alpha, metric: bounds.orthogonal_lines_bound(
        W, privacy=privacy, alpha=alpha, metric=metric
    )


#: For each public function that returns a lower bound for any workload: how it is called.
SCALED: dict[str, list[Callable[[Workload, float, bounds.Metric], bounds.Bound]]] = {
    "certify": [certified],
    "packing_search": [searched],
    "guessing_bound": [
        lambda W, alpha, metric: bounds.guessing_bound(W, epsilon=0.3, alpha=alpha, metric=metric),
        lambda W, alpha, metric: bounds.guessing_bound(
            W, epsilon=0.02, alpha=alpha, metric=metric, adjacency=Adjacency.ADD_REMOVE
        ),
    ],
    "orthogonal_lines_bound": [lines_of(p) for p in (PureDP(0.3), ZCDP(0.05), ApproxDP(0.3, 1e-6))],
    "query_lines_bound": [
        lambda W, alpha, metric: bounds.query_lines_bound(W, epsilon=0.3, alpha=alpha)
    ],
}
#: The functions whose workloads have a fixed scale.
FIXED: dict[str, Callable[[bounds.Metric], bounds.Bound]] = {
    "marginal_bound": lambda metric: bounds.marginal_bound(
        32, 2, epsilon=0.1, alpha=0.002, metric=metric
    ),
    "random_sign_bound": lambda metric: bounds.random_sign_bound(
        10_000, 20.0, epsilon=0.5, alpha=0.005
    ),
}


def alpha_of(W: Explicit) -> float:
    """An error that every method excludes for some number of records of the workload."""
    differences = W.matrix[:, :, None] - W.matrix[:, None]
    distances = np.sqrt((differences**2).mean(axis=0))
    return 0.1 * float(distances[distances > 0].min())


def accepted(bound: bounds.Bound, folder: Path) -> None:
    assert bounds.check_certificate(saved(bound, folder)).records == bound.records > 0


def test_every_lower_bound_has_a_row():
    """A new public function that returns a `Bound` needs a row in one of the tables."""
    found = {
        name
        for name in gd.bounds.__all__
        if inspect.isfunction(getattr(gd.bounds, name))
        and inspect.signature(getattr(gd.bounds, name)).return_annotation == "Bound"
    }
    assert found == {*SCALED, *FIXED}


def check_scales(matrix: str, name: str, scales: list[float], folder: Path) -> list[float]:
    """Check that all bounds of `name` are accepted; return their numbers of records."""
    records = []
    for scale in scales:
        W = Explicit(MATRICES[matrix] * scale)
        for metric in METRICS[-1:] if name == "query_lines_bound" else METRICS:
            for prove in SCALED[name]:
                bound = prove(W, alpha_of(W), metric)
                accepted(bound, folder)
                records.append(bound.records)
    return records


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("matrix", ["unit vectors", "offset"])
def test_bounds_are_accepted_at_every_scale(matrix, name, tmp_path):
    """A power of two as unit changes no digit, so the bound is the same number of records."""
    found = [
        check_scales(matrix, name, [scale], tmp_path) for scale in (POWERS[0], 4.0, POWERS[-1])
    ]
    assert found[0] == found[1] == found[2]


@pytest.mark.slow
@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("matrix", MATRICES)
def test_all_bounds_are_accepted_at_all_scales(matrix, name, tmp_path):
    found = [check_scales(matrix, name, [scale], tmp_path) for scale in POWERS]
    assert all(records == found[0] for records in found)
    check_scales(matrix, name, SCALES, tmp_path)


@pytest.mark.parametrize("name", FIXED)
@pytest.mark.parametrize("metric", METRICS)
def test_bounds_for_named_queries_are_accepted(name, metric, tmp_path):
    accepted(FIXED[name](metric), tmp_path)


@pytest.mark.parametrize("power", [-310, -270, 257, 310])
def test_lines_and_brackets_do_not_depend_on_the_unit(power):
    """The search for lines multiplies up to four answers, here 1e-93, 1e-81, 1e77 and 1e93."""
    matrix, unit = np.random.default_rng(0).integers(0, 4, size=(3, 6)), 2.0**power
    for metric in METRICS:
        one = bounds.orthogonal_lines_bound(
            Explicit(matrix), epsilon=0.3, alpha=0.05, metric=metric
        )
        W = Explicit(matrix * unit)
        bound = bounds.orthogonal_lines_bound(W, epsilon=0.3, alpha=0.05 * unit, metric=metric)
        assert bound.records == one.records > 0


@pytest.mark.parametrize("unit", [1e-90, 1e90])
def test_a_bracket_beyond_the_range_of_mechanisms_names_the_range(unit):
    with pytest.raises(ValueError, match=r"from 1e-60 to 1e\+60.*choose another unit"):
        gd.sample_complexity_bracket(Explicit(unit * np.eye(3)), epsilon=1.0, alpha=0.1 * unit)


@pytest.mark.parametrize(("bound", "reason"), [
    (lambda: bounds.orthogonal_lines_bound(Explicit(1e-99 * np.eye(3)), epsilon=1, alpha=1e-101),
     "alpha must be 0, or from 1e-100 to 1e.100"),
    (lambda: bounds.guessing_bound(Explicit(1e100 * np.eye(3)), epsilon=1e-8, alpha=1e97),
     "scale must be 0, or from 1e-100 to 1e.100"),
    (lambda: bounds.random_sign_bound(10_000, 20.0, epsilon=0.5, alpha=0.005, seed=1 << 256),
     "seed must be below 2.256"),
], ids=["alpha", "scale", "seed"])  # fmt: skip
def test_what_the_checker_must_refuse_is_not_saved(bound, reason, tmp_path):
    certificate = bound().certificate
    assert isinstance(certificate, bounds.Certificate)
    with pytest.raises(ValueError, match=reason):
        certificate.save(tmp_path / "bound.json")
    assert not list(tmp_path.iterdir())
