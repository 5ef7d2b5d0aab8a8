"""Conditions that the library's own certificates always meet: the checker refuses what does not."""

from __future__ import annotations

import math

import numpy as np
import pytest

from geomdp.bounds.checker.check import _check_packing, _Problem
from geomdp.bounds.checker.listed import _largest_distance
from geomdp.bounds.checker.marginals import _check_orthogonal, _half_hadamard
from geomdp.bounds.checker.norms import MEASURES
from geomdp.bounds.checker.values import CertificateRejected, Part, Work
from geomdp.bounds.checker.verified import VerifiedPacking


@pytest.mark.parametrize("side", [2, 4, 16])
def test_blocks_that_are_not_orthogonal_are_rejected(side: int) -> None:
    columns = _half_hadamard(side)
    _check_orthogonal(columns)
    flipped = columns.copy()
    flipped[0, 0] = 1 - flipped[0, 0]  # one bit is as near as a wrong matrix can be
    with pytest.raises(CertificateRejected, match="not orthogonal"):
        _check_orthogonal(flipped)
    if side > 2:
        with pytest.raises(CertificateRejected, match="not orthogonal"):
            _check_orthogonal(np.vstack([columns, columns[:1]]))


def test_the_distance_of_data_sets_is_the_largest() -> None:
    assert _largest_distance(np.array([[0, 0], [0, 1], [2, 3]])) == 2
    assert _largest_distance(np.array([[0, 0, 1], [0, 1, 1]])) == 1


def rung_of_eight(copies: int) -> tuple[Part, VerifiedPacking, _Problem]:
    """A rung of 8 single records that are 1 apart, consistent in all but its number of copies."""
    measure = MEASURES["mean l2 error per query"]
    found = VerifiedPacking(
        subject=("eight",),
        queries="queries",
        log_count=math.log(8),
        size=1,
        distance=1,
        separation=1.0,
        slack=1e-12,
        verified=(),
    )
    problem = _Problem(1.0, 0.01, 0.04, measure.log_odds(4.0), 1, measure)
    stated = 1 - 1e-12
    values = {
        "log_others": math.log(7),
        "size": 1,
        "distance": 1,
        "separation": stated,
        "largest_distance": math.log(7),
        "copies": copies,
        "first": 1,
        "last": math.floor(copies * stated / 0.04),
    }
    return Part(values, Work(10**6)), found, problem


def test_copies_beyond_what_privacy_excludes_are_rejected() -> None:
    """Two copies are two replacements, more than ln 7 = 1.95 allows at epsilon = 1."""
    assert _check_packing(*rung_of_eight(1)) == (1, 24)
    with pytest.raises(CertificateRejected, match="not below"):
        _check_packing(*rung_of_eight(2))
