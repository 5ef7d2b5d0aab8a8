"""Conditions that the library's own certificates always meet: the checker refuses what does not."""

from __future__ import annotations

import numpy as np
import pytest

from geomdp.bounds.checker.marginals import _check_orthogonal, _half_hadamard
from geomdp.bounds.checker.values import CertificateRejected


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
