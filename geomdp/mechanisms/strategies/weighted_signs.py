"""A design for columns of two levels: products of at most two signs, with weights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.data.counting.record_counts import Counts, RecordCounts
from geomdp.mechanisms.strategies.design import (
    Design,
    ExactSums,
    Measurement,
    laplace_measurement,
)
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload
from geomdp.workloads.structure.sign_products import product_sums, record_signs, sign_products

#: Random elements on which the measurements must rebuild the answers: a missing product shows on
#: nearly every pair of them.
CHECKED = 64


@dataclass(frozen=True)
class WeightedSigns:
    """Products of at most two signs with Laplace noise, one weight for each order (binary columns).

    With weight t_j on products of order j the l1 change between neighbours is
    2 max over w of sum_j t_j o_j(w) under replace-one, o_j(w) the number of products of order j
    that change where w signs do, o_1 = w and o_2 = w (d - w); sum_j t_j n_j under add/remove, where
    the number of records is measured as well. Finding the weights is a convex problem.
    """

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The best weights.

        Raises
        ------
        ValueError
            For a workload that is not linear in products of at most two signs.
        """
        products = sign_products(workload)
        if products is None:
            raise ValueError(f"workload must be linear in pairwise sign products, got {workload!r}")
        order = products.order
        # The first sign of tables is the constant 1: its pairs are the single signs.
        leading = products.order > len(workload.universe.elements(0, 1)[0])
        first, second = np.triu_indices(order, 1)
        singles = (first == 0) if leading else np.zeros(len(first), dtype=bool)
        groups = [places for places in (singles, ~singles) if abs(products.matrix[:, places]).sum()]
        columns = [sp.csr_array(products.matrix[:, places]) for places in groups]
        d = order - leading
        flipped = np.arange(1, d + 1)
        changes = [flipped if places is singles else flipped * (d - flipped) for places in groups]
        limits = 2.0 * np.stack(changes, axis=1)
        if adjacency is Adjacency.ADD_REMOVE:
            if products.constant.any():
                columns.append(sp.csr_array(products.constant[:, None]))
            limits = np.array([[float(part.shape[1]) for part in columns]])
        costs = np.array([float(part.multiply(part).sum()) for part in columns])
        weights = _best_weights(costs, limits)

        signs = np.random.default_rng(PUBLIC_SEED).choice([-1.0, 1.0], size=(CHECKED, order))
        signs[:, :leading] = 1
        told = np.stack([s[first] * s[second] for s in signs])

        def measure() -> list[Measurement]:
            rows = [told[:, places].T for places in groups]
            sums = [_product_sums(workload, places) for places in groups]
            if len(columns) > len(groups):
                rows.append(np.ones((1, CHECKED)))
                sums.append(lambda counts: np.array([float(counts.count)]))
            # Weights at their limit: one measurement of l1 sensitivity 1, undone by its weight.
            return [
                laplace_measurement(1 / weight, C, part, changes=limit, sums=total)
                for weight, C, part, limit, total in zip(
                    weights, rows, columns, limits.T, sums, strict=True
                )
            ]

        answers = products.constant + told @ products.matrix.T
        energy = 2 * float((costs / weights**2).sum())
        return Design("weighted sign products", energy, answers, adjacency, measure)


def _product_sums(workload: Workload, places: npt.NDArray[np.bool_]) -> ExactSums:
    """Sums of the products of signs at `places` among all pairs of signs."""

    def sums(counts: Counts) -> FloatArray:
        if not isinstance(counts, RecordCounts):
            return product_sums(workload, counts.table, places)
        signs = record_signs(workload, counts.records).astype(np.float64)
        products = signs.T @ signs
        return np.asarray(products[np.triu_indices(len(products), 1)][places])

    return sums


def _best_weights(costs: FloatArray, limits: FloatArray) -> FloatArray:
    """Weights t > 0 that minimise sum c_j / t_j^2 under limits @ t <= 1, rescaled to fit."""
    if len(costs) == 1:
        return np.asarray(1 / limits.max(axis=0))
    from scipy.optimize import LinearConstraint, minimize  # slow import

    even = np.full(len(costs), 1 / limits.sum(axis=1).max())
    scale = float((costs / even**2).sum())

    def error(x: FloatArray) -> tuple[float, FloatArray]:
        relative = costs / (x * even) ** 2 / scale
        return float(relative.sum()), -2 * relative / x

    found = minimize(
        error,
        np.ones(len(costs)),
        jac=True,
        method="SLSQP",
        bounds=[(1e-3, None)] * len(costs),
        constraints=LinearConstraint(limits * even, ub=1.0),
    )
    weights = found.x * even
    # Whatever the solver returned, the l1 change is then at most 1.
    return np.asarray(weights / (limits @ weights).max())
