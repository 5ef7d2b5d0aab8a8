"""Packings for which ln(M - 1) and negative log odds nearly cancel: the checker and the library."""

from __future__ import annotations

import itertools
import json
import math
from decimal import Decimal, localcontext
from pathlib import Path

import numpy as np
import pytest

from geomdp.bounds import (
    RMS,
    Bound,
    MeanL2,
    Packing,
    Problem,
    SideConditionError,
    WorstCase,
    certify,
    check_certificate,
    single_elements,
)
from geomdp.bounds.certificates import packing_rung
from geomdp.bounds.checker.check import _check_packing
from geomdp.bounds.checker.listed import verify_listed
from geomdp.bounds.checker.reading import MEASURES, Guarantee, Part, Stated, Work
from geomdp.workloads import Explicit, Histogram
from tests.bounds.test_checker import rejected, saved


def nearly_cancelled(factor: float, epsilon: float) -> Bound:
    """The bound from 100 elements whose answers are 1 apart, for a separation factor near 2.02.

    At 2 + 2 / 99 the log odds are -ln 99. They then cancel ln(M - 1) for M = 100 data sets.
    """
    packing = single_elements(Histogram(100), np.arange(100), np.arange(100), "all")
    return certify([packing], epsilon=epsilon, alpha=0.01, metric=WorstCase(factor))


@pytest.mark.parametrize("factor", [2.0202020202057906, 2.0202020202057924, 2.020202020205794])
def test_rounding_errors_of_nearly_equal_terms_prove_nothing(factor: float, tmp_path: Path) -> None:
    """ln(M - 1) and the log odds are about 4.6, and their sum is 1.9e-10.

    In float64 the sum is 6e-6 of itself too large. An epsilon between the exact sum and the
    computed sum therefore seems to exclude one copy of each data set. In fact it excludes none.
    """
    with localcontext() as context:
        context.prec = 50
        exact = float((99 * (Decimal(factor) / 2 - 1)).ln())
    others = math.log(100) + math.log1p(-math.exp(-math.log(100)))  # as the checker computes it
    total = others + math.log(factor / 2 - 1)
    epsilon = exact * (1 + 1e-6)
    assert total > epsilon * (1 + 1e-6)
    path = saved(nearly_cancelled(2.03, 0.3), tmp_path)
    assert check_certificate(path).records == math.floor(1 / (0.01 * 2.03))
    last = math.floor(1 / (0.01 * factor))
    document = json.loads(path.read_text()) | {
        "epsilon": epsilon,
        "separation_factor": factor,
        "log_odds": math.log(factor / 2 - 1),
        "required_separation": 0.01 * factor,
        "lower_bound": last,
    }
    document["rungs"][0] |= {"largest_distance": total / epsilon, "last": last}
    rejected(path, document, "1 copies are 1 replacements, not below")
    with pytest.raises(SideConditionError, match="data sets are 1 replacements apart"):
        nearly_cancelled(factor, epsilon)


@pytest.mark.parametrize("share", [1e-10, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("epsilon", [1e-12, 1e-9, 1e-3])
def test_honest_certificates_with_nearly_equal_terms_are_confirmed(
    share: float, epsilon: float, tmp_path: Path
) -> None:
    """The margin of the library is above that of the checker, however nearly the terms cancel."""
    factor = 2 + 2 / 99 * (1 + share)
    if share < 2 * epsilon:
        with pytest.raises(SideConditionError):
            nearly_cancelled(factor, epsilon)
        return
    bound = nearly_cancelled(factor, epsilon)
    assert check_certificate(saved(bound, tmp_path)).records == bound.value


@pytest.mark.parametrize("half", [1 + 2.0**-26, 1 + 3 * 2.0**-27, 1 + 1e-8, 1.1, 3.0])
def test_log_odds_keep_their_digits_near_the_least_factor(half: float) -> None:
    with localcontext() as context:
        context.prec = 60
        exact = float((Decimal(half) ** 2 - 1).ln())
    odds = RMS(2 * half).log_odds
    assert odds == pytest.approx(exact, rel=1e-15)
    assert MEASURES["root mean squared error per query"].log_odds(2 * half) == odds


@pytest.mark.parametrize("excess", [1e-6, 3e-6, 7e-6, 2e-5])
def test_honest_ranges_with_rho_near_one_are_confirmed(excess: float) -> None:
    """The least number of copies is about 3 / (4 excess), and sensitive to the margin of rho."""
    sets = np.array([row for row in itertools.combinations(range(12), 4) if sum(row) % 4 == 0])
    packing = Packing(Explicit(np.eye(12)), np.arange(12), sets, "four of twelve")
    problem = Problem(1e-8, packing.separation(MeanL2()) / (4 * (1 + excess)))
    found = packing_rung(packing, problem)
    assert found.first > 4
    part = Part(found.document(), Work(10**8))
    verified = verify_listed(part.part("family"), MEASURES[MeanL2.name].norm)
    stated = Stated(
        Guarantee(1e-8, 0.0, 0.0), problem.alpha, 4 * problem.alpha, 0.0, 1, MEASURES[MeanL2.name]
    )
    assert _check_packing(part, verified, stated) == (found.first, found.last)
