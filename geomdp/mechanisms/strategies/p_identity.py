"""The p-identity strategy: measure the histogram and a few weighted sums of it."""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import whole
from geomdp.mechanisms.strategies.design import ENTRY_UNIT, Design, laplace_measurement
from geomdp.mechanisms.strategies.least_squares import error_and_slopes, gram, reconstruct
from geomdp.mechanisms.strategies.listed import listed_answers, listed_sums
from geomdp.privacy import Adjacency
from geomdp.privacy.definitions import checked_adjacency
from geomdp.workloads import Workload, WorkloadSizeError
from geomdp.workloads.closed_forms.diameters import l1_diameter

#: Largest number N of elements for which the matrix T (p, N) of `PIdentity` is optimised. Each step
#: of the descent is a few products of p x N and N x N matrices. So the descent takes seconds at
#: N = 256 and a minute at N = 1024 on one core.
MAX_OPTIMISED = 1 << 10
#: Largest number of steps of the descent. Further steps usually lower the error by less than a
#: thousandth.
MAX_STEPS = 200
#: Largest entry of the matrix T of `PIdentity`. Entries reach this limit only if answers differ by
#: many orders of magnitude. Without the limit, the weights of single elements become so small that
#: the smallest answers are lost to rounding. For 18 workloads with such answers, the limit raised
#: the squared error by a share of at most 1.4e-4.
MAX_ENTRY = 1e4


def optimisable_answers(workload: Workload) -> FloatArray:
    """Answers (N, m) of all elements, if 2 <= N <= 2^10; else `WorkloadSizeError`."""
    size = workload.universe.size
    if size is None or not 2 <= size <= MAX_OPTIMISED:
        raise WorkloadSizeError(
            f"universe must have from 2 to 2^10 elements for an optimised strategy, got {size}"
        )
    return listed_answers(workload)


def hat_functions(count: int, size: int) -> FloatArray:
    """Hat functions (count, size), which rise and fall linearly and add up to 1 everywhere."""
    places = (np.arange(size) + 0.5) / size * count - 0.5
    places = np.clip(places, 0, count - 1)
    return np.asarray(np.clip(1 - np.abs(places - np.arange(count)[:, None]), 0, None))


@dataclass(frozen=True)
class PIdentity:
    """The histogram and p weighted sums of it, with weights that are optimised for the workload.

    The measurements are (I; T) D h plus Laplace noise, where h is the histogram of N elements.
    (I; T) is the identity with the rows of T (p, N) below it. T has entries of 0 or more, and D is
    the diagonal matrix of 1 / (1 + column sums of T). So every column of (I; T) D has l1 norm 1, up
    to rounding. T is chosen for a small error of the answers, which least squares computes. This
    problem is not convex. At most 200 steps of a quasi-Newton method, started near hat functions
    along the list of elements, approach a local minimum.

    Parameters
    ----------
    rows : int, optional
        Number p of rows of T. By default 3/4 N^(1/2) and N^(1/2) rows are tried, and the better
        result is taken.

    References
    ----------
    McKenna-Miklau-Hay-Machanavajjhala 2018, OPT_0.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.strategies import PIdentity
    >>> workload = gd.workloads.Prefixes(8)
    >>> design = PIdentity(rows=1).design(workload, gd.Adjacency.REPLACE_ONE)
    >>> design.name, design.measurements[0].rows.shape
    ('p-identity', (9, 8))
    """

    rows: int | None = None

    def __post_init__(self) -> None:
        if self.rows is not None:
            whole(self.rows, "rows")

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The design with the best T found; `WorkloadSizeError` if N is below 2 or above 2^10."""
        checked_adjacency(adjacency)
        answers = optimisable_answers(workload)
        size = len(answers)
        counts = bump_counts(size) if self.rows is None else [self.rows]
        found = [_descend(workload, count, adjacency) for count in counts]
        rows = min(found, key=lambda pair: pair[0])[1]
        strategy = np.vstack([np.eye(size), rows]) / (1 + rows.sum(axis=0))
        # Entries become multiples of 2^-24, so that the measurements and the l1 sensitivity
        # `change` are computed exactly. `change` is about 1 under add/remove. Under replace-one
        # `change` is about 2, or less if every two columns of `strategy` overlap.
        strategy = np.rint(strategy * ENTRY_UNIT) / ENTRY_UNIT
        if adjacency is Adjacency.REPLACE_ONE:
            change = l1_diameter(strategy.T)
        else:
            change = float(np.abs(strategy).sum(axis=0).max())
        (matrix,) = reconstruct(answers, [strategy], [1.0], adjacency)
        energy = 2 * change**2 * float((matrix**2).sum())
        measurement = laplace_measurement(
            change,
            strategy,
            matrix,
            changes=np.array([change]),
            unit=ENTRY_UNIT,
            sums=listed_sums(workload, strategy),
        )
        return Design("p-identity", energy, answers, adjacency, lambda: [measurement])


def bump_counts(size: int) -> list[int]:
    """Numbers of rows to try for N = `size` elements: 3/4 N^(1/2) and N^(1/2), rounded."""
    return sorted({max(1, round(share * math.sqrt(size))) for share in (0.75, 1.0)})


@functools.lru_cache(maxsize=8)
def _descend(workload: Workload, count: int, adjacency: Adjacency) -> tuple[float, FloatArray]:
    """The logarithm of the squared error of the best T (count, N) found, and T itself."""
    answers = optimisable_answers(workload)
    size = len(answers)
    squared = gram(answers, adjacency)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        rows = flat.reshape(count, size)
        sums = 1 + rows.sum(axis=0)
        value, by_diagonal, by_rows = error_and_slopes(squared, 1 / sums**2, rows / sums, adjacency)
        by_sums = -2 * by_diagonal / sums**3 - (by_rows * rows).sum(axis=0) / sums**2
        return math.log(value), ((by_rows / sums + by_sums) / value).ravel()

    # The start is hat functions plus a little noise. Without noise most entries would start at the
    # lower bound 0, and the descent leaves this bound slowly. Also, rows that are equal at the
    # start would stay equal.
    start = hat_functions(count, size) + 0.1 * np.random.default_rng(0).random((count, size))
    from scipy.optimize import minimize  # slow import

    best = minimize(
        objective,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0, MAX_ENTRY)] * (count * size),
        options={"maxiter": MAX_STEPS},
    )
    return float(best.fun), np.asarray(best.x).reshape(count, size)
