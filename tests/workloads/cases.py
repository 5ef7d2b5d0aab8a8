"""Small workloads on finite universes, whose closed forms are compared with enumeration by tests.

All stated diameters and radii of the workloads `FINITE` are exact, and all their blocks attain
their diameters.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from geomdp import workloads as wl
from geomdp.workloads.explicit import Coarsened


def reach_of(answers: np.ndarray) -> dict[str, float]:
    """The diameters and radii of the rows of `answers`, by the names of methods of workloads."""
    differences = answers[:, None] - answers[None]
    return {
        "l1_diameter": np.abs(differences).sum(axis=2).max(),
        "l2_diameter": np.linalg.norm(differences, axis=2).max(),
        "l1_radius": np.abs(answers).sum(axis=1).max(),
        "l2_radius": np.linalg.norm(answers, axis=1).max(),
    }


def check_reach(workload: wl.Workload, answers: np.ndarray, besides: tuple[str, ...] = ()) -> None:
    """Assert that the stated diameters and radii are those of the rows of `answers`."""
    expected = {name: value for name, value in reach_of(answers).items() if name not in besides}
    stated = {name: getattr(workload, name)() for name in expected}
    assert stated == pytest.approx(expected, rel=1e-13)


def _matrix(m: int, N: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(m, N))


FINITE = [
    wl.Histogram(1),
    wl.Histogram(6),
    wl.Prefixes(1),
    wl.Prefixes(7),
    wl.Ranges(1),
    wl.Ranges(2),
    wl.Ranges(3),
    wl.Ranges(5),
    wl.Ranges(8),
    wl.Explicit(_matrix(4, 11, 1)),
    wl.Explicit(_matrix(9, 5, 2)),
    wl.Explicit(np.ones((3, 4))),
    wl.Explicit(sp.random_array((6, 15), density=0.3, rng=np.random.default_rng(3))),
    wl.RandomSigns(5, 20, rng=4),
    wl.Marginals(5, 1),
    wl.Marginals(6, 2),
    wl.Marginals(4, 4),
    wl.Parities(5, 1),
    wl.Parities(6, 2),
    wl.Parities(7, 3),
    wl.Parities(3, 3),
    wl.MarginalTables({"age": 3, "sex": 2, "region": 4}, 2),
    wl.MarginalTables({"age": 3, "sex": 2, "region": 4}, 1),
    wl.MarginalTables({"age": 3, "sex": 2, "region": 4}, 3),
    wl.MarginalTables([2] * 6, 2),
    wl.MarginalTables([2, 3, 2, 2, 3], 3),
    wl.MarginalTables([2, 1, 3], 2),
    wl.MarginalTables([1, 1], 1),
    wl.LinearMap(wl.Marginals(5, 2), _matrix(4, 10, 5)),
    wl.LinearMap(wl.Histogram(6), _matrix(8, 6, 6)),
    wl.ChosenTables({"age": 3, "sex": 2, "region": 4}, [["sex", "age"], ["region"]], [1, 2.5]),
    wl.ChosenTables({"a": 2, "b": 3, "c": 1}, [["a"], ["a", "b", "c"]]),
    wl.ProductQueries(
        {"age": 4, "sex": 2, "region": 3},
        [["sex", "age"], ["region"]],
        {"age": wl.Prefixes(4)},
        [1, 2.5],
    ),
    wl.ProductQueries(
        {"a": 3, "b": 4},
        [["a", "b"]],
        {"a": wl.Ranges(3), "b": wl.Explicit([[1] * 4, [0, 1, 2, 4]])},
    ),
    wl.ProductQueries({"a": 1, "b": 2}, [["a", "b"], ["b"]], {"a": wl.Prefixes(1)}),
    wl.ProductQueries(
        {"ward": 2, "visits": 5},
        [["ward", "visits"], ["visits"]],
        {"visits": wl.Explicit([[1, 1, 1, 1, 0], [-1, -0.5, 0, 1, 0], [0, 0, 0, 0, 1]])},
    ),
    Coarsened(wl.MarginalTables([2, 3, 2], 2), _matrix(5, 16, 7)),
    Coarsened(wl.Prefixes(9), np.tri(9)[::3]),
]
#: Workloads without a list of elements; each kind has a test file of its own.
INFINITE = [
    wl.Means(3),
    wl.SecondMoment(3),
    wl.BoxSecondMoment(3),
    wl.SmoothQueries(2, 3),
    wl.SparseQueries([wl.SparseQuery.counting("ab"), wl.SparseQuery.counting("bcd")]),
]
