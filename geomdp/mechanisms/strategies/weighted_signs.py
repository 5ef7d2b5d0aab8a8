"""A measurement design for columns of two levels: weighted products of at most two signs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._numerics.seeds import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp.data.counting.record_counts import Counts, RecordCounts
from geomdp.mechanisms.strategies.design import Design, ExactSums, Measurement, laplace_measurement
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload
from geomdp.workloads.structure.sign_products import product_sums, record_signs, sign_products

#: Number of random elements on which `Design` checks that the measurements determine the answers.
#: If a product is needed but not measured, it takes both values on these elements except with
#: probability 2^-63, so the check fails.
CHECKED = 64


@dataclass(frozen=True)
class WeightedSigns:
    """Measure single signs and products of two signs, with one weight for each kind.

    The d columns have two levels each, written as signs -1 and +1. The noise is Laplace noise. All
    products of order j (of j signs) get the same weight t_j. If two records differ in w signs,
    o_1(w) = w products of order 1 and o_2(w) = w (d - w) products of order 2 change, each by 2. So
    the l1 change of the weighted products between neighbours is at most

        2 max over w of sum_j t_j o_j(w)   under replace-one,
        sum_j t_j n_j                      under add/remove,

    where n_j is the number of products of order j that are measured. Under add/remove the number of
    records (order 0) is measured as well if answers depend on it. The weights minimise the squared
    error subject to an l1 change of 1. This problem is convex.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.strategies import WeightedSigns
    >>> workload = gd.workloads.Marginals(d=3, k=2)
    >>> design = WeightedSigns().design(workload, gd.Adjacency.REPLACE_ONE)
    >>> design.name, [measurement.matrix.shape for measurement in design.measurements]
    ('weighted sign products', [(3, 3), (3, 3)])
    """

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The design with the weights of least predicted error.

        ``ValueError`` for a workload that is not linear in products of at most two signs.
        """
        products = sign_products(workload)
        if products is None:
            raise ValueError(f"workload must be linear in pairwise sign products, got {workload!r}")
        order = products.order
        # If there are more signs than columns, the first sign is the constant 1. The products of
        # this sign with the other signs are the single signs.
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
            # The weighted products of all orders have l1 sensitivity 1. Noise of scale 1 on a
            # weighted product is noise of scale 1 / weight on the product without the weight.
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
    """A function from counts of records to the sums of the sign products chosen by `places`."""

    def sums(counts: Counts) -> FloatArray:
        if not isinstance(counts, RecordCounts):
            return product_sums(workload, counts.table, places)
        signs = record_signs(workload, counts.records).astype(np.float64)
        products = signs.T @ signs
        return np.asarray(products[np.triu_indices(len(products), 1)][places])

    return sums


def _best_weights(costs: FloatArray, limits: FloatArray) -> FloatArray:
    """Weights t > 0 that minimise sum_j costs_j / t_j^2 subject to `limits` (w, j) @ t <= 1."""
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
    # Rescale, so that the l1 change is at most 1 whatever the solver returned.
    return np.asarray(weights / (limits @ weights).max())
