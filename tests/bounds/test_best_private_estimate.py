"""Bounds from lines, compared with the best private estimate, which a linear program finds."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from geomdp.bounds import (
    MeanL2,
    SideConditionError,
    check_certificate,
    orthogonal_lines_bound,
    private_line,
)
from geomdp.bounds.certificates import Certificate
from geomdp.bounds.count_risks import LONGEST, best_prior
from geomdp.workloads import Explicit
from tests.bounds.test_checker import rejected, saved

ONE_QUERY = Explicit(np.array([[0.0, 1.0]]))


@cache
def least_error(steps: int, epsilon: float, moment: int, spacing: float = 1.0) -> float:
    """The least worst-case error of an epsilon-DP estimate y of t in {0, ..., `steps`}.

    The error is the mean of |y - t|^`moment`. The outputs y are `spacing` apart. The unknowns of
    the linear program are the probabilities of the outputs for each t, and the worst-case error.
    """
    outputs = np.arange(0, steps + spacing / 2, spacing)
    shape = (steps + 1, len(outputs))
    cells = np.arange(math.prod(shape)).reshape(shape)
    size = cells.size
    loss = np.abs(outputs - np.arange(steps + 1)[:, None]) ** moment
    each = np.repeat(np.arange(steps + 1), len(outputs))
    ones = sparse.csr_array((np.ones(size), (each, cells.ravel())), shape=(steps + 1, size + 1))
    errors = sparse.csr_array((loss.ravel(), (each, cells.ravel())), shape=(steps + 1, size + 1))
    errors += sparse.csr_array((-np.ones(steps + 1), (range(steps + 1), [size] * (steps + 1))))
    rows = [errors]
    before, after = cells[:-1].ravel(), cells[1:].ravel()
    line = np.arange(len(before))
    for larger, smaller in ((before, after), (after, before)):
        values = np.concatenate([np.ones(len(line)), -np.full(len(line), math.exp(epsilon))])
        where = (np.tile(line, 2), np.concatenate([larger, smaller]))
        rows.append(sparse.csr_array((values, where), shape=(len(line), size + 1)))
    every = sparse.vstack(rows)
    cost = np.zeros(size + 1)
    cost[size] = 1
    solved = linprog(
        cost,
        A_ub=every,
        b_ub=np.zeros(every.shape[0]),
        A_eq=ones,
        b_eq=np.ones(steps + 1),
        method="highs",
    )
    assert solved.success
    return float(solved.fun)


@pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("steps", [1, 2, 3, 5, 9, 16, 27, 40])
def test_the_mean_error_is_that_of_the_best_mechanism(steps: int, epsilon: float) -> None:
    """Whole numbers suffice as outputs, because the loss |y - t| is linear between them."""
    if epsilon * steps > 64:
        steps = 20
    best = least_error(steps, epsilon, 1)
    # The solver meets its constraints up to 1e-7.
    assert best * (1 - 1e-5) <= private_line(steps, epsilon, 1).risk <= best * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8])
def test_the_squared_error_is_that_of_the_best_mechanism(steps: int, epsilon: float) -> None:
    """Outputs h = 1/16 apart raise the least squared error by at most h^2 / 4 = 1/1024."""
    best = least_error(steps, epsilon, 2, 1 / 16)
    risk = private_line(steps, epsilon, 2).risk
    assert 0.99 * (best - 1 / 1024) <= risk <= best * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("steps", [16, 40])
def test_no_mechanism_for_a_long_line_has_a_smaller_squared_error(
    steps: int, epsilon: float
) -> None:
    best = least_error(steps, epsilon, 2, 0.5)
    assert 0.97 * best <= private_line(steps, epsilon, 2).risk <= best * (1 + 1e-6)


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("n", [1, 2, 6, 13, 21, 34, 40])
def test_one_query_needs_the_records_of_the_best_mechanism(n: int, epsilon: float) -> None:
    """The bound excludes n records for an error 1% below the best one, but not for one above it."""
    best = least_error(n, epsilon, 1) / n
    bound = orthogonal_lines_bound(ONE_QUERY, epsilon=epsilon, alpha=0.99 * best)
    assert bound.value >= n
    if n == 1:
        with pytest.raises(SideConditionError, match="even with one record"):
            orthogonal_lines_bound(ONE_QUERY, epsilon=epsilon, alpha=1.00001 * best)
    else:
        above = orthogonal_lines_bound(ONE_QUERY, epsilon=epsilon, alpha=1.00001 * best)
        assert above.value < n


@pytest.mark.parametrize("moment", [1, 2])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_longer_lines_are_no_weaker(epsilon: float, moment: int) -> None:
    """A long line contains the longest line for which the program is solved."""
    risks = [private_line(LONGEST + i, epsilon, moment).risk for i in (0, 1, 24)]
    assert risks == sorted(risks)


def test_the_solution_of_the_program_is_symmetric() -> None:
    found = best_prior(6, 0.5, 1)
    assert found is not None
    prior, allowances = found
    np.testing.assert_array_equal(prior, prior[::-1])
    np.testing.assert_array_equal(allowances, allowances[::-1])
    assert prior.sum() == pytest.approx(1.0)


# --- certificates ----------------------------------------------------------------------------


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


FORGED: dict[str, Callable[[dict[str, Any]], None]] = {
    "1% more": lambda known: raised(known, 0.01),
    "a millionth more": lambda known: raised(known, 1e-6),
    "one allowance": moved,
    "rounding errors": huge,
    "risk above its sum": lambda known: known.update(risk=known["risk"] * (1 + 1e-12)),
    "no allowances": lambda known: known.pop("allowances"),
    "one allowance less": lambda known: known["allowances"].pop(),
    "another prior": lambda known: known.update(
        prior=[1 / len(known["prior"])] * len(known["prior"])
    ),
}


@pytest.mark.parametrize("change", FORGED)
def test_forged_allowances_are_rejected(change: str, tmp_path: Path) -> None:
    bound = orthogonal_lines_bound(ONE_QUERY, epsilon=0.5, alpha=0.05, metric=MeanL2())
    path = saved(bound, tmp_path)
    assert check_certificate(path).records == bound.value
    document = json.loads(path.read_text())
    assert isinstance(bound.certificate, Certificate)
    rung = document["rungs"][-1]
    assert max(rung["known"][-1]["allowances"]) < rung["known"][-1]["risk"]
    FORGED[change](rung["known"][-1])
    if change == "1% more":
        # The scale and the bound are raised to agree with the raised risk. So the only remaining
        # fault is that the allowances violate the condition of the proof.
        rung["scale"] *= 1.01
        rung["last"] = document["lower_bound"] = math.floor(rung["scale"] / 0.05)
    rejected(path, document)
