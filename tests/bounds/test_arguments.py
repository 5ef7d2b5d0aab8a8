"""The error for an argument of a wrong type names the argument and says what it must be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from geomdp import bounds, workloads

#: Stands for an argument of a wrong type.
WRONG = cast("Any", "text")
HISTOGRAM = workloads.Histogram(4)
POINTS = np.eye(3)
PROBLEM: dict[str, Any] = {"epsilon": 1.0, "alpha": 0.1}

CALLS: dict[str, tuple[Callable[[], object], str]] = {
    "certify": (lambda: bounds.certify([WRONG], **PROBLEM), "families must be a PackingFamily"),
    "certify one": (lambda: bounds.certify(cast("Any", 3), **PROBLEM), "families must be a list"),
    "search": (lambda: bounds.packing_search(WRONG, **PROBLEM), "workload must be a Workload"),
    "search, effort": (lambda: bounds.packing_search(HISTOGRAM, **PROBLEM, effort=WRONG),
                       "effort must be an Effort"),
    "search, metric": (lambda: bounds.packing_search(HISTOGRAM, **PROBLEM, metric=WRONG),
                       "metric must be"),
    "lines": (lambda: bounds.orthogonal_lines_bound(WRONG, **PROBLEM), "workload must be a Work"),
    "lines, error": (lambda: bounds.orthogonal_lines_error(WRONG, 10, epsilon=1.0),
                     "workload must be a Workload"),
    "lines, metric": (
        lambda: bounds.orthogonal_lines_error(HISTOGRAM, 10, epsilon=1.0, metric=WRONG),
        "metric must be MeanL2, RMS",
    ),
    "lines, noise": (lambda: bounds.additive_noise_error(WRONG, 10, epsilon=1.0),
                     "workload must be a Workload"),
    "query lines": (lambda: bounds.query_lines_bound(WRONG, **PROBLEM),
                    "workload must be a Workload"),
    "chaining": (lambda: bounds.instance_optimality(WRONG, **PROBLEM), "workload must be a Work"),
    "packing": (lambda: bounds.Packing(WRONG, np.arange(3), np.eye(3, dtype=np.int64)),
                "workload must be a Workload"),
    "greedy": (lambda: bounds.greedy_separated(POINTS, WRONG, 0.5), "metric must be a Metric"),
    "single": (lambda: bounds.single_elements(HISTOGRAM, WRONG, np.arange(3), "by hand"),
               "elements must be an ndarray"),
    "side": (lambda: bounds.Bound(1.0, WRONG, "a statement"), "side must be a Side"),
    "assumptions": (lambda: bounds.Bound(1.0, bounds.Side.LOWER, "a statement", WRONG),
                    "assumptions must be a tuple of sentences"),
}  # fmt: skip


@pytest.mark.parametrize("call", list(CALLS))
def test_wrong_types_are_named(call):
    function, message = CALLS[call]
    with pytest.raises(ValueError, match=message):
        function()
