"""Strategies for universes given as a list: weighted sums of the histogram, and least squares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

import numpy as np
import scipy
import scipy.sparse as sp

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import require_type, whole
from geomdp.data.tallies import Counts
from geomdp.mechanisms.strategies.design import (
    ENTRY_UNIT,
    CellNoise,
    Design,
    LaplaceCells,
    Measurement,
    SimplexCells,
    best_split,
    laplace_on,
)
from geomdp.privacy import Adjacency
from geomdp.privacy.definitions import checked_adjacency
from geomdp.workloads import Workload, WorkloadSizeError, explicit_answers
from geomdp.workloads.explicit import l1_diameter_of_points

# Answers computed by least squares from private measurements of the histogram.

#: Largest residual of a solution, relative to the right-hand side, else the matrix is singular.
SOLVED = 1e-9


def gram(answers: FloatArray, adjacency: Adjacency) -> FloatArray:
    """Sum of w w^T (N, N) over queries w (N,), the columns of `answers` (N, m) after `centred`."""
    queries = centred(answers, adjacency)
    return np.asarray(queries @ queries.T)


def centred(answers: FloatArray, adjacency: Adjacency) -> FloatArray:
    """`answers` (N, m); under replace-one, the mean of each query over elements is subtracted."""
    if adjacency is Adjacency.ADD_REMOVE:
        return answers
    # Subtracting the first row before the mean makes constant columns exactly 0.
    moved = answers - answers[0]
    return np.asarray(moved - moved.mean(axis=0))


def reconstruct(
    answers: FloatArray,
    measurements: Sequence[FloatArray],
    precisions: Sequence[float],
    adjacency: Adjacency,
) -> list[FloatArray]:
    """Maps R_i (m, p_i) with sum_i R_i C_i = W for which the answers have least total variance.

    W is `answers`^T, and measurement i is C_i h + z_i, with C_i (p_i, N) and precision 1 / Var z_i.
    Then R_i = W S C_i^T precision_i with the pseudo-inverse S of sum_i precision_i C_i^T C_i.
    """
    queries = centred(answers, adjacency)
    rows = [centred(matrix.T, adjacency) for matrix in measurements]
    information = np.zeros((len(queries), len(queries)))
    for precision, row in zip(precisions, rows, strict=True):
        information += precision * row @ row.T
    if adjacency is Adjacency.REPLACE_ONE:
        # The matrix maps 1 to 0. A multiple of 1 1^T ends this, but for vectors of sum 0.
        information = information + np.trace(information) / len(information) ** 2
    solve = _solver(information, queries)
    maps = [np.zeros((queries.shape[1], row.shape[1])) for row in rows]
    # Rounding can spoil the maps. The second round adds maps for the part that the first miss.
    for _ in range(2):
        missing = queries - sum(row @ part.T for row, part in zip(rows, maps, strict=True))
        solved = solve(missing)
        maps = [
            part + p * (solved.T @ row) for part, p, row in zip(maps, precisions, rows, strict=True)
        ]
    return maps


def _solver(information: FloatArray, queries: FloatArray) -> Callable[[FloatArray], FloatArray]:
    """A function that multiplies by the pseudo-inverse of the psd matrix `information` (N, N)."""
    try:
        factor = scipy.linalg.cho_factor(information)
    except np.linalg.LinAlgError:
        pass
    else:
        solved = scipy.linalg.cho_solve(factor, queries)
        # The Cholesky factor is used if it is accurate for `queries` (N, m).
        off = np.abs(information @ solved - queries).max(axis=0)
        if (off <= SOLVED * np.abs(queries).max(axis=0)).all():
            return lambda right: np.asarray(scipy.linalg.cho_solve(factor, right))
    # The matrix is singular up to rounding: drop eigenvalues of the size of rounding errors.
    cutoff = len(information) * np.finfo(float).eps
    inverse = np.linalg.pinv(information, rcond=cutoff, hermitian=True)
    return lambda right: np.asarray(inverse @ right)


def error_and_slopes(
    gram: FloatArray, diagonal: FloatArray, rows: FloatArray, adjacency: Adjacency
) -> tuple[float, FloatArray, FloatArray]:
    """tr(G S) for S = (diag(d) + T^T T)^-1, and its gradients with respect to d (N,) and T (p, N).

    It is the squared error of least squares, with G = `gram` (N, N). Under replace-one S is the
    limit for growing multiples of 1 1^T in the information matrix. The cost is O(p N^2).
    """
    scaled = rows / diagonal
    inner = np.linalg.solve(np.eye(len(rows)) + scaled @ rows.T, scaled)

    def inverse(columns: FloatArray) -> FloatArray:
        return columns / diagonal[:, None] - scaled.T @ (inner @ columns)

    value = float((np.diag(gram) / diagonal).sum() - ((inner @ gram) * scaled).sum())
    slope = gram
    if adjacency is Adjacency.REPLACE_ONE:
        # S becomes S - S 1 1^T S / (1^T S 1).
        s = inverse(np.ones((len(gram), 1)))[:, 0]
        weight, pulled = s.sum(), gram @ s
        excess = float(s @ pulled)
        value -= excess / weight
        slope = gram - (pulled[:, None] + pulled) / weight + excess / weight**2
    pushed = inverse(inverse(slope).T)
    return value, -np.diag(pushed).copy(), -2 * rows @ pushed


# A tree of intervals, and the Haar wavelet.

#: Largest number N of elements for which N x N matrices are formed: 4096^2 float64 are 128 MB.
MAX_LISTED = 1 << 12


def listed_answers(workload: Workload, least: int, most: int) -> FloatArray:
    """Answers (N, m) of all elements, if least <= N <= most; else `WorkloadSizeError`."""
    size = workload.universe.size
    if size is None or not least <= size <= most:
        raise WorkloadSizeError(
            f"universe must have from {least} to {most} elements for this strategy, got {size}"
        )
    return explicit_answers(workload)


def listed_sums(workload: Workload, rows: FloatArray, counts: Counts) -> FloatArray:
    """`rows` @ h, for the histogram h of `counts`, which is 0 at additional columns.

    It is exact if entries of `rows` are multiples of a power of two u, and |rows| @ h < 2^53 u.
    """
    occurrences = np.zeros(rows.shape[1])
    occurrences[: workload.universe.size] = counts.histogram()
    return np.asarray(rows @ occurrences)


@dataclass(frozen=True)
class Tree:
    """Counts of the intervals of a binary tree over the elements, in their order.

    Level l splits the list of elements into 2^l intervals; added elements, which occur in no
    record, extend the list to a power of two. `cells` is the noise on the counts of a level. Every
    level has a share of the budget, which can be 0.

    References
    ----------
    Hay-Rastogi-Miklau-Suciu 2010; Qardaji-Yang-Li 2013; formula sheet JL-SPLIT, X-SIM.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.strategies import Tree
    >>> workload = gd.workloads.Ranges(8)
    >>> round(Tree().design(workload, gd.Adjacency.REPLACE_ONE).energy, -1)
    420.0
    """

    cells: CellNoise = field(default_factory=LaplaceCells)

    def __post_init__(self) -> None:
        require_type(self.cells, CellNoise, "cells")

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The design with the best shares; ``ValueError`` for more than 2^12 elements."""
        answers, levels, costs = _levels(workload, adjacency)
        sizes = len(answers) / 2.0**levels
        variances = [self.cells.variance(1 << int(level), adjacency) for level in levels]
        # A level also determines all coarser levels. Counts of intervals of s elements measure each
        # unit vector that is constant on these intervals with s times the precision of one count.
        overlap = np.tril(np.ones((len(levels), len(levels)))) * (sizes / variances)[:, None]
        split = best_split(costs, sp.csr_array(overlap))

        def measure() -> list[Measurement]:
            used = np.nonzero(split.shares)[0]
            counts = [_intervals(len(answers), int(levels[i])) for i in used]
            precisions = [split.shares[i] ** 2 / variances[i] for i in used]
            maps = reconstruct(answers, counts, precisions, adjacency)
            return [
                Measurement(
                    C,
                    R,
                    self.cells.spending(split.shares[i], len(C), adjacency),
                    self.cells.changes(adjacency),
                    sums=partial(listed_sums, workload, C),
                )
                for i, C, R in zip(used, counts, maps, strict=True)
            ]

        return Design("tree of intervals", split.value, answers, adjacency, measure)


@dataclass(frozen=True)
class Haar:
    """Haar wavelet coefficients with Laplace noise. Every level has a share of the budget.

    A wavelet of level l >= 1 is 1 on one half of an interval of level l - 1 (see `Tree`), -1 on the
    other half, and 0 elsewhere. The wavelet of level 0 is the constant 1.

    References
    ----------
    Xiao-Wang-Gehrke 2011.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.strategies import Haar
    >>> workload = gd.workloads.Ranges(8)
    >>> design = Haar().design(workload, gd.Adjacency.REPLACE_ONE)
    >>> design.measurements[0].rows
    array([[ 1.,  1.,  1.,  1., -1., -1., -1., -1.]])
    """

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The design with the best shares; ``ValueError`` for more than 2^12 elements."""
        answers, levels, costs = _levels(workload, adjacency)
        # Squared lengths of the wavelets, of entries 0 and +-1. At each element, one wavelet of a
        # level is not 0, so replacing a record changes the coefficients by at most 2 in l1 norm.
        lengths = len(answers) / 2.0 ** (np.maximum(levels, 1) - 1)
        change = 2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0
        overlap = sp.csr_array(sp.diags_array(lengths / (2 * change**2)))
        split = best_split(costs, overlap)

        def measure() -> list[Measurement]:
            used = np.nonzero(split.shares)[0]
            waves = [_wavelets(len(answers), int(levels[i])) for i in used]
            queries = centred(answers, adjacency).T
            return [
                Measurement(
                    C,
                    queries @ C.T / lengths[i],
                    laplace_on(len(C), change / split.shares[i]),
                    np.array([change]),
                    sums=partial(listed_sums, workload, C),
                )
                for i, C in zip(used, waves, strict=True)
            ]

        return Design("Haar wavelet", split.value, answers, adjacency, measure)


def _levels(workload: Workload, adjacency: Adjacency) -> tuple[FloatArray, IntArray, FloatArray]:
    """Answers (2^k, m), the levels to measure, and squared lengths of queries on their wavelets."""
    answers = listed_answers(workload, 1, MAX_LISTED)
    depth = (len(answers) - 1).bit_length()
    missing = (1 << depth) - len(answers)  # added elements, which occur in no record
    answers = np.vstack([answers, np.repeat(answers[-1:], missing, axis=0)])
    # Level 0 is the number of records. Under replace-one this number is public.
    levels = np.arange(1 if adjacency is Adjacency.REPLACE_ONE else 0, depth + 1)
    costs = []
    for level in levels.tolist():
        waves = _wavelets(len(answers), level)
        length = float((waves[0] ** 2).sum())
        costs.append(float(((waves @ centred(answers, adjacency)) ** 2).sum()) / length)
    return answers, levels, np.array(costs)


def _intervals(size: int, level: int) -> FloatArray:
    """Indicators (2^level, size) of the intervals of a level."""
    return np.kron(np.eye(1 << level), np.ones((1, size >> level))).astype(np.float64)


def _wavelets(size: int, level: int) -> FloatArray:
    """Haar wavelets (2^(level - 1), size) of a level; for level 0, one row (1, size) of ones."""
    if level == 0:
        return np.ones((1, size))
    intervals = _intervals(size, level)
    return np.asarray(intervals[::2] - intervals[1::2])


# The p-identity strategy: the histogram and a few weighted sums of it.

#: Largest number N of elements for which the matrix T (p, N) of `PIdentity` is optimised, in a
#: minute, and largest number of steps of the descent.
MAX_OPTIMISED, MAX_STEPS = 1 << 10, 200
#: Largest entry of T. With larger ones, the smallest of very different answers can be lost to
#: rounding.
MAX_ENTRY = 1e4


def hat_functions(count: int, size: int) -> FloatArray:
    """Hat functions (count, size), which rise and fall linearly and add up to 1 everywhere."""
    places = np.clip((np.arange(size) + 0.5) / size * count - 0.5, 0, count - 1)
    return np.asarray(np.clip(1 - np.abs(places - np.arange(count)[:, None]), 0, None))


@dataclass(frozen=True)
class PIdentity:
    """The histogram and p weighted sums of it, with weights that are optimised for the workload.

    The measurements are (I; T) D h plus Laplace noise, where h is the histogram of N elements.
    (I; T) is the identity with the rows of T (p, N) below it. T has entries of 0 or more, and D is
    the diagonal matrix of 1 / (1 + column sums of T), so every column of (I; T) D has l1 norm 1, up
    to rounding. A quasi-Newton method, started near hat functions, searches for the T of least
    error. By default the better of p = 3/4 N^(1/2) and N^(1/2) `rows` is taken.

    References
    ----------
    McKenna-Miklau-Hay-Machanavajjhala 2018, OPT_0.
    """

    rows: int | None = None

    def __post_init__(self) -> None:
        if self.rows is not None:
            whole(self.rows, "rows")

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The design with the best T found; `WorkloadSizeError` if N is below 2 or above 2^10."""
        checked_adjacency(adjacency)
        answers = listed_answers(workload, 2, MAX_OPTIMISED)
        size = len(answers)
        counts = bump_counts(size) if self.rows is None else [self.rows]
        found = [_descend(workload, count, adjacency) for count in counts]
        rows = min(found, key=lambda pair: pair[0])[1]
        strategy = np.vstack([np.eye(size), rows]) / (1 + rows.sum(axis=0))
        # Entries become multiples of 2^-24, so that the measurements and their l1 sensitivity,
        # `change`, are computed exactly. Under replace-one it can be below 2, if columns overlap.
        strategy = np.rint(strategy * ENTRY_UNIT) / ENTRY_UNIT
        change = float(np.abs(strategy).sum(axis=0).max())
        if adjacency is Adjacency.REPLACE_ONE:
            change = l1_diameter_of_points(strategy.T)
        (matrix,) = reconstruct(answers, [strategy], [1.0], adjacency)
        energy = 2 * change**2 * float((matrix**2).sum())
        measurement = Measurement(
            strategy,
            matrix,
            laplace_on(len(strategy), change),
            np.array([change]),
            unit=ENTRY_UNIT,
            sums=partial(listed_sums, workload, strategy),
        )
        return Design("p-identity", energy, answers, adjacency, lambda: [measurement])


def bump_counts(size: int) -> list[int]:
    """Numbers of rows to try for `size` elements."""
    return sorted({max(1, round(share * math.sqrt(size))) for share in (0.75, 1.0)})


@lru_cache(maxsize=8)
def _descend(workload: Workload, count: int, adjacency: Adjacency) -> tuple[float, FloatArray]:
    """The logarithm of the squared error of the best T (count, N) found, and T itself."""
    answers = listed_answers(workload, 2, MAX_OPTIMISED)
    size = len(answers)
    squared = gram(answers, adjacency)

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        rows = flat.reshape(count, size)
        sums = 1 + rows.sum(axis=0)
        value, by_diagonal, by_rows = error_and_slopes(squared, 1 / sums**2, rows / sums, adjacency)
        by_sums = -2 * by_diagonal / sums**3 - (by_rows * rows).sum(axis=0) / sums**2
        return math.log(value), ((by_rows / sums + by_sums) / value).ravel()

    # With noise, as equal rows would stay equal.
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


# Soft bins: the histogram, and a coarse histogram with overlapping bins.

#: Accuracy of the share of the bins; this changes the error by less than a thousandth.
SHARE_TOLERANCE = 0.01


@dataclass(frozen=True)
class SoftBins:
    """Measure the histogram h and C h, each with a share of the budget.

    The rows of C are the hat functions of p bins. These are piecewise linear along the order of the
    elements and add up to 1, so an element adds a point of a simplex to C h and to h. They can err
    less than the intervals of a `Tree`. By default p, the number of `bins`, is the best of 0,
    3/4 N^(1/2) and N^(1/2) for N elements. `cells` is the noise on both (JL-SPLIT, X-SIM).
    """

    bins: int | None = None
    cells: CellNoise = field(default_factory=SimplexCells)

    def __post_init__(self) -> None:
        if self.bins is not None:
            whole(self.bins, "bins", minimum=0)
        require_type(self.cells, CellNoise, "cells")

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The design with the best bins; ``ValueError`` below 2 or above 2^10 elements."""
        answers = listed_answers(workload, 2, MAX_OPTIMISED)
        # A single bin counts all records. This is useless if the number of records is public.
        least = 2 if adjacency is Adjacency.REPLACE_ONE else 1
        tried = [count for count in bump_counts(len(answers)) if count >= least]
        counts = [0, *tried] if self.bins is None else [self.bins]
        designs = [self._with_bins(workload, answers, count, adjacency) for count in counts]
        return min(designs, key=lambda design: design.energy)

    def _with_bins(
        self, workload: Workload, answers: FloatArray, count: int, adjacency: Adjacency
    ) -> Design:
        size = len(answers)
        measured, shares = [np.eye(size)], np.ones(1)
        if count > 0:
            measured.append(_on_grid(hat_functions(count, size)))
            shares = self._shares(answers, count, adjacency)
        variances = [self.cells.variance(len(matrix), adjacency) for matrix in measured]
        precisions = [share**2 / v for share, v in zip(shares, variances, strict=True)]
        maps = reconstruct(answers, measured, precisions, adjacency)
        energy = sum(float((R**2).sum()) / p for R, p in zip(maps, precisions, strict=True))
        name = f"histogram and {count} soft bins" if count else "histogram"
        parts = [
            Measurement(
                C,
                R,
                self.cells.spending(share, len(C), adjacency),
                self.cells.changes(adjacency),
                unit=ENTRY_UNIT if C is not measured[0] else 1,
                sums=partial(listed_sums, workload, C),
            )
            for C, share, R in zip(measured, shares, maps, strict=True)
        ]
        return Design(name, energy, answers, adjacency, lambda: parts)

    def _shares(self, answers: FloatArray, count: int, adjacency: Adjacency) -> FloatArray:
        """The shares (2,) of the histogram and of the bins that give the least error."""
        squared, bins = gram(answers, adjacency), hat_functions(count, len(answers))
        fine = self.cells.variance(len(answers), adjacency)
        coarse = self.cells.variance(count, adjacency)

        def error(share: float) -> float:
            diagonal = np.full(len(answers), (1 - share) ** 2 / fine)
            rows = bins * (share / math.sqrt(coarse))
            return error_and_slopes(squared, diagonal, rows, adjacency)[0]

        from scipy.optimize import minimize_scalar  # slow import

        found = minimize_scalar(
            error, bounds=(0.0, 1.0), method="bounded", options={"xatol": SHARE_TOLERANCE}
        )
        return np.array([1 - found.x, found.x])


def _on_grid(hats: FloatArray) -> FloatArray:
    """Weights rounded to multiples of 2^-24. The weights of each element add up to exactly 1."""
    rounded = np.rint(hats * ENTRY_UNIT) / ENTRY_UNIT
    largest = rounded.argmax(axis=0), np.arange(hats.shape[1])
    rounded[largest] += 1 - rounded.sum(axis=0)
    return np.asarray(rounded)
