"""Errors of the accuracy table that are predicted and not measured: closed forms and advice."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

import geomdp as gd
from experiments.engine.cells import Row
from experiments.engine.checks import Predicted, predicted_columns
from experiments.shared.accuracy_lines import (
    PRIVACY,
    Config,
    Method,
    excluded_error,
    for_records,
)
from experiments.shared.workloads import line_workload
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.workloads import MarginalTables


def predicted_row(config: Config) -> Row:
    """The prediction of one method on one line; nothing is released."""
    if config.method in (Method.JOINT, Method.LIFTED):
        Q = line_workload(config.line)
        assert isinstance(Q, MarginalTables)
        d, error = len(Q.levels), joint_table_error(Q)
        if config.method is Method.LIFTED:
            error = Lifted(d).error
        found: Row = {
            "predicted": error / (config.n * PRIVACY.epsilon),
            "predicted_stderr": 0.0,
            "prediction": "exact",
            "sampler": "exact",
        }
    else:
        M = advised(config) if config.method is Method.ADVISED else built(config)
        sampler = type(M.guarantee.sampler).__name__.lower()
        found = {**predicted_columns(least_prediction(M)), "sampler": sampler}
    return {
        "mean_square": 0.0,
        "mean_square_stderr": 0.0,
        "releases": 0,
        **found,
        "excluded": excluded_error(config.line, config.n),
        "setup_seconds": 0.0,
        "release_seconds": 0.0,
    }


def least_prediction(mechanism: gd.mechanisms.Mechanism) -> Predicted:
    """The prediction of a mechanism, or that of its noise if this is less.

    A projection never errs more than the noise before it, whatever the bound on its own error.
    """
    own, noise = mechanism.predicted_rmse, additive_within(mechanism)
    if noise is None or own.value <= noise.predicted_rmse.value:
        return own
    return noise.predicted_rmse


def built(config: Config) -> gd.mechanisms.Mechanism:
    """A mechanism of the library."""
    return for_records(config.line, config.method, config.n)


def advised(config: Config) -> gd.mechanisms.Mechanism:
    """What `advise` offers among mechanisms with exact samplers."""
    advice = gd.advise(line_workload(config.line), n=config.n, privacy=PRIVACY, exact_only=True)
    return advice.best


def joint_table_error(workload: MarginalTables) -> float:
    """Root mean squared error, in counts at epsilon = 1, of sums of a noisy table of all columns.

    A record that is replaced moves two cells by 1, so that Laplace noise of scale 2 and variance 8
    on every cell is 1-DP. A cell of a table on B is the sum of the cells that agree with it.
    """
    cells = math.prod(workload.levels)
    total = answers = 0
    for B in itertools.combinations(workload.levels, workload.k):
        total += 8 * cells
        answers += math.prod(B)
    return math.sqrt(total / answers)


@dataclass(frozen=True)
class Lifted:
    """Cone noise over the elliptope of monomials of d signs, for 3-way tables (X-LIFT).

    The monomials are 1, x_i, and x_i x_j for the pairs inside two halves of the columns. Every
    triple has a pair in one half, so that every parity of up to three columns is the product of two
    monomials.
    """

    d: int

    @property
    def monomials(self) -> list[int]:
        """Sets of columns as bits."""
        half = self.d // 2
        pairs = [
            1 << i | 1 << j
            for part in (range(half), range(half, self.d))
            for i, j in itertools.combinations(part, 2)
        ]
        return [0, *(1 << i for i in range(self.d)), *pairs]

    @property
    def dimension(self) -> int:
        """Dimension r = D (D - 1) / 2 of the elliptope of order D."""
        return math.comb(len(self.monomials), 2)

    def entries(self, order: int) -> list[int]:
        """At how many entries of the matrix each parity of `order` columns stands."""
        bits = np.array(self.monomials)
        first, second = np.triu_indices(len(bits), 1)
        parities, counts = np.unique(bits[first] ^ bits[second], return_counts=True)
        return [
            int(count)
            for parity, count in zip(parities, counts, strict=True)
            if int(parity).bit_count() == order
        ]

    @property
    def error(self) -> float:
        """Root mean squared error of a cell of a 3-way table, in counts at epsilon = 1.

        A cell is the signed mean of the 8 parities of its columns. A parity at mu entries has
        variance 8 (r + 1) (r + 2) / ((D + 1) mu); the one of no column is the number of records.
        """
        r, order = self.dimension, len(self.monomials)
        once = 8 * (r + 1) * (r + 2) / (order + 1)
        total = 0.0
        for size in (1, 2, 3):
            # The mean over triples of the sum over the parities of this size inside the triple.
            inside = math.comb(3, size) / math.comb(self.d, size)
            total += inside * sum(once / count for count in self.entries(size))
        return math.sqrt(total / 64)
