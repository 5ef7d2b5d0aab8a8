"""Statements of papers that are false as printed; mechanisms stay as private as they claim."""

from __future__ import annotations

import numpy as np
import pytest

import geomdp as gd
from geomdp.mechanisms import printed

PURE, APPROX = gd.PureDP(1.0), gd.ApproxDP(1.0, 1e-6)
RULE = gd.mechanisms.MultiplicativeWeights(16)


@pytest.mark.parametrize("degree", [3, 5, 20, 200])
def test_the_printed_smooth_scale_is_too_small(degree):
    """The privacy loss can exceed epsilon at the printed scale, but not at the corrected scale."""
    workload = gd.workloads.SmoothQueries(1, degree)
    moments = workload.evaluate(np.cos(np.linspace(0, np.pi, 4 * degree + 1))[:, None])
    apart = max(float(np.abs(moments - row).sum(axis=1).max()) for row in moments)
    assert apart / printed.printed_smooth_scale(1, degree, n=1, epsilon=1.0) > 1
    corrected = gd.mechanisms.UniformLaplace().calibrate(workload, PURE, gd.Adjacency.REPLACE_ONE)
    assert apart <= corrected.scales.min() * (1 + 1e-12)


def test_the_printed_step_exceeds_the_range_of_the_corrected_one():
    step = printed.printed_shortcut_step(1.0, slack_delta=1e-6, steps=100)
    assert step == pytest.approx(gd.privacy.shortcut_step_epsilon(APPROX, 100), rel=1e-15)
    with pytest.raises(ValueError, match="below 1/2"):
        gd.privacy.shortcut_step_epsilon(gd.ApproxDP(1.0, 0.9), 100)
    assert printed.printed_shortcut_step(1.0, slack_delta=0.9, steps=100) > 3 * step
