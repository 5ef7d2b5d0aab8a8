"""Errors of the accuracy table that are predicted, not measured: in closed form or by geomdp."""

import itertools
import math
from dataclasses import dataclass

import numpy as np

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared import accuracy_lines
from experiments.shared.workloads import line_workload
from geomdp.mechanisms.additive_noise.base import additive_within
from geomdp.workloads import MarginalTables


def predicted_row(config: accuracy_lines.Config) -> ex.Row:
    """The prediction of one method on one line; nothing is released."""
    error = closed_form(config)
    if error is not None:
        found: ex.Row = {
            "predicted": error / config.n,
            "predicted_stderr": 0.0,
            "prediction": "exact",
            "sampler": "exact",
        }
    else:
        M = built(config)
        sampler = type(M.guarantee.sampler).__name__.lower()
        found = {**ex.predicted_columns(least_prediction(M)), "sampler": sampler}
    return {
        "mean_square": 0.0,
        "mean_square_stderr": 0.0,
        "releases": 0,
        **found,
        "advised": advised_name(config),
        "excluded": accuracy_lines.excluded_error(config.line, config.n, config.epsilon),
        "setup_seconds": 0.0,
        "release_seconds": 0.0,
    }


def advised_name(config: accuracy_lines.Config) -> str:
    """Name of the mechanism that `advise` ranks first, for the method `ADVISED`; else empty."""
    if config.method is not accuracy_lines.Method.ADVISED:
        return ""
    return accuracy_lines.advice(config.line, config.n, config.epsilon).rows[0].mechanism


def closed_form(config: accuracy_lines.Config) -> float | None:
    """The error in counts if this module computes it; None if the library predicts it."""
    if config.method is accuracy_lines.Method.GEOMETRIC:
        return geometric_error(config.epsilon)
    if config.method not in (accuracy_lines.Method.JOINT, accuracy_lines.Method.LIFTED):
        return None
    Q = line_workload(config.line)
    assert isinstance(Q, MarginalTables)
    if config.method is accuracy_lines.Method.JOINT:
        return joint_table_error(Q) / config.epsilon
    return Lifted(len(Q.levels), Q.k).error / config.epsilon


def geometric_error(epsilon: float) -> float:
    """Root mean squared error, in counts, of discrete Laplace noise of sensitivity 1.

    With q = e^-epsilon the probability of a whole number z is proportional to q^|z|, and the
    variance is 2 q / (1 - q)^2.
    """
    return math.sqrt(2 * math.exp(-epsilon)) / -math.expm1(-epsilon)


def least_prediction(mechanism: gd.mechanisms.Mechanism) -> gd.mechanisms.Prediction:
    """The prediction of a mechanism, or the prediction of its noise if that is less.

    A projection never errs more than the noise before it, even if the bound on the projection is
    larger. This is not proved for a fit, so the prediction of a fit is its own bound.
    """
    if isinstance(mechanism, gd.mechanisms.Fitted):
        return mechanism.predicted_rmse
    own, noise = mechanism.predicted_rmse, additive_within(mechanism)
    if noise is None or own.value <= noise.predicted_rmse.value:
        return own
    return noise.predicted_rmse


def built(config: accuracy_lines.Config) -> gd.mechanisms.Mechanism:
    """The mechanism of the library for the line, the method, n and epsilon of `config`."""
    if config.method is accuracy_lines.Method.ADVISED:
        return accuracy_lines.advice(config.line, config.n, config.epsilon).best
    if config.epsilon == accuracy_lines.PRIVACY.epsilon:
        return accuracy_lines.for_records(config.line, config.method, config.n)
    assert config.method is accuracy_lines.Method.LAPLACE
    privacy = gd.PureDP(config.epsilon)
    return gd.mechanisms.Laplace(line_workload(config.line), n=config.n, privacy=privacy)


def joint_table_error(workload: MarginalTables) -> float:
    """Root mean squared error, in counts at epsilon = 1, of sums over a noisy table of all columns.

    A record that is replaced moves two cells by 1, so that Laplace noise of scale 2 and variance 8
    on every cell is 1-DP. A cell of a k-way table is the sum of the cells of the large table that
    agree with it.
    """
    cells = math.prod(workload.levels)
    total = answers = 0
    for B in itertools.combinations(workload.levels, workload.k):
        total += 8 * cells
        answers += math.prod(B)
    return math.sqrt(total / answers)


@dataclass(frozen=True)
class Lifted:
    """Cone noise for k-way tables of d signs, k = 3 or 4, from products of monomials (X-LIFT).

    A record becomes the matrix of all products of two of its monomials. Such matrices lie in the
    elliptope, whose cone noise is drawn. The monomials of the signs x_i are 1, x_i, and x_i x_j.
    For k = 3 the columns are split into two halves, and only pairs in the same half are needed:
    every triple has a pair in one half, so every parity of up to three columns is the product of
    two monomials. For k = 4 all pairs are taken.
    """

    d: int
    k: int

    @property
    def monomials(self) -> list[int]:
        """Each monomial as a whole number whose bits mark the columns in it."""
        half = self.d // 2
        parts = (range(half), range(half, self.d)) if self.k == 3 else (range(self.d),)
        pairs = [1 << i | 1 << j for part in parts for i, j in itertools.combinations(part, 2)]
        return [0, *(1 << i for i in range(self.d)), *pairs]

    @property
    def dimension(self) -> int:
        """Dimension r = D (D - 1) / 2 of the elliptope. Its order D is the number of monomials."""
        return math.comb(len(self.monomials), 2)

    def entries(self, order: int) -> list[int]:
        """For each parity of `order` columns, the number of matrix entries equal to this parity."""
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
        """Root mean squared error of a cell of a k-way table, in counts at epsilon = 1.

        A cell is a mean of the 2^k parities of its columns, each with a sign. If mu entries above
        the diagonal equal a parity, the noise on this parity has variance
        8 (r + 1) (r + 2) / ((D + 1) mu), with r and D as in `dimension`. The parity of the empty
        set of columns is the number of records. It needs no noise.
        """
        r, order = self.dimension, len(self.monomials)
        once = 8 * (r + 1) * (r + 2) / (order + 1)
        total = 0.0
        for size in range(1, self.k + 1):
            # The sum of the variances of a table's parities of this size, averaged over all tables.
            inside = math.comb(self.k, size) / math.comb(self.d, size)
            total += inside * sum(once / count for count in self.entries(size))
        return math.sqrt(total) / 2**self.k
