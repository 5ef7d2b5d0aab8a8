"""Lower bounds, compared with the errors of the best mechanisms, which linear programs find."""

import itertools
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from geomdp import bounds
from geomdp.advice.bracket import lower_bounds
from geomdp.workloads import Explicit, Workload
from tests.bounds.best_mechanism import least_count_error, least_error
from tests.bounds.test_checker import forged_rungs_are_rejected

ONE_QUERY = Explicit(np.array([[0.0, 1.0]]))


@pytest.mark.parametrize("epsilon", [0.02, 0.5, 3.0])
@pytest.mark.parametrize("steps", [1, 2, 5, 16, 40])
def test_the_mean_error_is_that_of_the_best_mechanism(steps, epsilon):
    """Whole numbers suffice as outputs, because the loss |y - t| is linear between them."""
    if epsilon * steps > 64:
        steps = 20
    best = least_count_error(steps, epsilon, 1)
    # The solver meets its constraints up to 1e-7.
    assert best * (1 - 1e-5) <= bounds.private_line(steps, epsilon, 1).risk <= best * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize(("steps", "fine"), [(1, 16), (3, 16), (8, 16), (40, 2)])
def test_the_squared_error_is_that_of_the_best_mechanism(steps, epsilon, fine):
    """Outputs h = 1 / `fine` apart raise the least squared error by at most h^2 / 4."""
    best = least_count_error(steps, epsilon, 2, 1 / fine)
    risk = bounds.private_line(steps, epsilon, 2).risk
    assert 0.97 * (best - 1 / (4 * fine**2)) <= risk <= best * (1 + 1e-6)


#: `bits` are two bits, of which a record has at most one. `thresholds` are two nested queries.
SMALL = {
    "bits": Explicit(np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])),
    "thresholds": Explicit(np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]])),
}


@cache
def least_of_multisets(workload: Workload, n: int, epsilon: float, metric: bounds.Metric) -> float:
    """The least error over all multisets of n elements, with outputs on a grid.

    For each query, outputs are 1/4 apart for n = 1, and 1 / (2 n) apart for larger n.
    """
    answers = workload.evaluate(workload.universe.elements())
    counts = [c for c in itertools.product(range(n + 1), repeat=len(answers)) if sum(c) == n]
    datasets = np.array(counts)
    grid = np.linspace(0.0, 1.0, (4 if n == 1 else 2) * n + 1)
    outputs = np.array(list(itertools.product(grid, repeat=answers.shape[1])))
    losses = [metric.norm(outputs - mean) for mean in datasets @ answers / n]
    pairs = [
        (i, j)
        for i, j in itertools.permutations(range(len(datasets)), 2)
        if np.abs(datasets[i] - datasets[j]).sum() == 2
    ]
    powers = np.array(losses) ** metric.moment
    best = least_error(powers, math.exp(epsilon), pairs, method="highs-ipm")
    return best ** (1 / metric.moment)


@pytest.mark.parametrize("name", SMALL)
@pytest.mark.parametrize(
    "metric", [bounds.MeanL2(), bounds.RMS(), bounds.WorstCase()], ids=lambda metric: metric.name
)
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_no_lower_bound_excludes_the_best_mechanism(name, metric, epsilon):
    """n records are enough for the error of the best mechanism, so n must not be excluded.

    For half this error, the lower bounds exclude n records for some n. So bounds that are too large
    by a factor of 2 fail the test.
    """
    workload, noticed = SMALL[name], False
    for n in (1, 2, 3, 4):
        best = least_of_multisets(workload, n, epsilon, metric) * (1 + 1e-6)
        enough, half = (
            lower_bounds(workload, bounds.Problem(epsilon, alpha, metric), 0)[0][0].records
            for alpha in (best, best / 2)
        )
        assert enough < n
        noticed |= half >= n
    assert noticed


def raised(known: dict[str, Any], share: float) -> None:
    """Multiply all allowances and the risk by 1 + `share`."""
    known["allowances"] = [value * (1 + share) for value in known["allowances"]]
    known["risk"] *= 1 + share


def moved(known: dict[str, Any]) -> None:
    """Move a hundredth of the risk from the second allowance to the first."""
    known["allowances"][0] += known["risk"] / 100
    known["allowances"][1] -= known["risk"] / 100


def huge(known: dict[str, Any]) -> None:
    """Add 2^56 to one allowance and subtract it from another, so rounding errors hide the risk."""
    known["allowances"][0] += 2.0**56
    known["allowances"][1] -= 2.0**56


def agreeing(rung: dict[str, Any]) -> None:
    """Raise the risk, and with it the scale and the bound.

    So the only fault is that the allowances violate the condition of the proof.
    """
    known = rung["known"][-1]
    assert max(known["allowances"]) < known["risk"]
    raised(known, 0.01)
    rung["scale"] *= 1.01
    rung["last"] = math.floor(rung["scale"] / 0.05)


#: Changes of the last line of a rung.
FORGED: dict[str, Callable[[dict[str, Any]], object]] = {
    "a millionth more": lambda known: raised(known, 1e-6),
    "one allowance": moved,
    "rounding errors": huge,
    "risk above its sum": lambda known: known.update(risk=known["risk"] * (1 + 1e-12)),
    "no allowances": lambda known: known.pop("allowances"),
    "one allowance less": lambda known: known["allowances"].pop(),
    "another prior": lambda known: known.update(prior=[1 / len(p := known["prior"])] * len(p)),
}


def test_forged_allowances_are_rejected(tmp_path):
    metric = bounds.MeanL2()
    bound = bounds.orthogonal_lines_bound(ONE_QUERY, epsilon=0.5, alpha=0.05, metric=metric)
    lines = {
        name: lambda rung, change=change: change(rung["known"][-1])
        for name, change in FORGED.items()
    }
    forged_rungs_are_rejected(bound, tmp_path, {"1% more": agreeing, **lines})
