"""Queries at a set distance from the hypothesis of an online construction."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import geomdp as gd
from experiments.engine.cells import Row
from geomdp.workloads import SparseQuery

PRIVACY = gd.ApproxDP(1.0, 1e-6)
QUERIES, BETA = 60, 0.05


def run_at_gap(gap: float, online: Any) -> tuple[int, list[float], float]:
    """Queries that are updated, moduli of their noise, and the largest error of the others."""
    noise, left = [], 0.0
    for i in range(QUERIES):
        query = SparseQuery.counting([i])
        truth = online.hypothesis.evaluate(query) + gap * online.alpha
        answer = online.ask_truth(query, truth)
        error = abs(float(answer.value) - truth)
        if answer.above:
            noise.append(error)
        else:
            left = max(left, error)
    return len(noise), noise, left


def at_gap(n: int, gap: float, runs: int, rng: np.random.Generator) -> Row:
    """Updates, noise and errors over the runs of one trial, all queries at one distance."""
    updated, noise, left = [], [], 0.0
    for child in rng.spawn(runs):
        rule = gd.SparseMultiplicativeWeights(1)
        online: gd.OnlineConstruction[Any] = gd.OnlineConstruction(
            rule, n=n, queries=QUERIES, privacy=PRIVACY, beta=BETA, rng=child
        )
        count, moduli, error = run_at_gap(gap, online)
        updated.append(count)
        noise += moduli
        left = max(left, error)
    # A ninth of epsilon and half of delta pay for the values of all updates, by the shortcut.
    shortcut = math.sqrt(8 * online.updates_allowed * math.log(2 / PRIVACY.delta))
    unit = 9 * shortcut / (PRIVACY.epsilon * n)
    return {
        "untouched": sum(count == 0 for count in updated),
        "all_updated": sum(count == QUERIES for count in updated),
        "values": len(noise),
        "noise": sum(noise) / unit,
        "left": left / online.accuracy,
    }
