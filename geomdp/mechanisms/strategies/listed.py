"""Strategies for universes given as a list: a tree of intervals, and the Haar wavelet."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from geomdp._typing import FloatArray
from geomdp._validation import require_type
from geomdp.data.counting.record_counts import Counts
from geomdp.mechanisms.strategies.cells import CellNoise, LaplaceCells, cell_measurement
from geomdp.mechanisms.strategies.design import Design, ExactSums, Measurement, laplace_measurement
from geomdp.mechanisms.strategies.least_squares import centred, reconstruct
from geomdp.mechanisms.strategies.weights import best_split
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload, WorkloadSizeError, explicit_answers

#: Largest number N of elements for which N x N matrices are formed: 4096^2 float64 are 128 MB.
MAX_LISTED = 1 << 12


def listed_answers(workload: Workload) -> FloatArray:
    """Answers (N, m) of all N elements; `WorkloadSizeError` if N is above 2^12 or not finite."""
    size = workload.universe.size
    if size is None or size > MAX_LISTED:
        raise WorkloadSizeError(
            f"universe must have at most 2^12 elements for a listed strategy, got {size}"
        )
    return explicit_answers(workload)


def listed_sums(workload: Workload, rows: FloatArray) -> ExactSums:
    """The function from counts of records to `rows` @ h, where h is the histogram of the records.

    It is exact if entries of `rows` are multiples of a power of two u, and |rows| @ h is below
    2^53 u. At additional columns of `rows`, h is 0.
    """

    def sums(counts: Counts) -> FloatArray:
        occurrences = np.zeros(rows.shape[1])
        occurrences[: workload.universe.size] = counts.histogram()
        return np.asarray(rows @ occurrences)

    return sums


@dataclass(frozen=True)
class Tree:
    """Counts of the intervals of a binary tree over the elements.

    The elements keep their order. Additional elements, which occur in no record, extend the list to
    a power of two. Level l splits the list into 2^l intervals. `cells` is the noise on the counts
    of a level. Every level has a share of the budget, which can be 0: with the finest level alone,
    the strategy is the histogram.

    References
    ----------
    Hay-Rastogi-Miklau-Suciu 2010; Qardaji-Yang-Li 2013; formula sheet JL-SPLIT, X-SIM.

    Examples
    --------
    >>> import geomdp as gd
    >>> from geomdp.mechanisms.strategies import Tree
    >>> workload = gd.workloads.Ranges(8)
    >>> design = Tree().design(workload, gd.Adjacency.REPLACE_ONE)
    >>> design.name, round(design.energy, -1)
    ('tree of intervals', 420.0)
    """

    cells: CellNoise = field(default_factory=LaplaceCells)

    def __post_init__(self) -> None:
        require_type(self.cells, CellNoise, "cells")

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The design with the best shares; ``ValueError`` for more than 2^12 elements."""
        answers = _padded(listed_answers(workload))
        depth = int(math.log2(len(answers)))
        # Level 0 is the number of records. Under replace-one this number is public.
        levels = np.arange(1 if adjacency is Adjacency.REPLACE_ONE else 0, depth + 1)
        costs = np.array([_detail(answers, int(level), adjacency) for level in levels])
        sizes = 2.0 ** (depth - levels)
        variances = [self.cells.variance(1 << int(level), adjacency) for level in levels]
        # A level also determines all coarser levels. Counts of intervals of s elements measure each
        # unit vector that is constant on these intervals. The precision is s times the precision of
        # one count.
        overlap = np.tril(np.ones((len(levels), len(levels)))) * (sizes / variances)[:, None]
        split = best_split(costs, sp.csr_array(overlap))

        def measure() -> list[Measurement]:
            used = np.nonzero(split.shares)[0]
            counts = [_intervals(len(answers), int(levels[i])) for i in used]
            precisions = [split.shares[i] ** 2 / variances[i] for i in used]
            maps = reconstruct(answers, counts, precisions, adjacency)
            return [
                cell_measurement(
                    self.cells, split.shares[i], C, R, adjacency, sums=listed_sums(workload, C)
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
    >>> round(design.energy)
    988
    """

    def design(self, workload: Workload, adjacency: Adjacency) -> Design:
        """The design with the best shares; ``ValueError`` for more than 2^12 elements."""
        answers = _padded(listed_answers(workload))
        depth = int(math.log2(len(answers)))
        levels = np.arange(1 if adjacency is Adjacency.REPLACE_ONE else 0, depth + 1)
        costs = np.array([_detail(answers, int(level), adjacency) for level in levels])
        # Squared lengths of the wavelets: a wavelet of level l >= 1 has entries +-1 on an interval
        # of level l - 1, which has 2^(depth - l + 1) elements. The wavelet of level 0 is constant 1
        # on all elements. At each element, one wavelet of each level is not 0. So replacing a
        # record changes at most two coefficients of a level by 1 each, or one coefficient by 2: the
        # l1 norm of the change is at most 2.
        lengths = 2.0 ** (depth + 1 - np.maximum(levels, 1))
        change = 2.0 if adjacency is Adjacency.REPLACE_ONE else 1.0
        overlap = sp.csr_array(sp.diags_array(lengths / (2 * change**2)))
        split = best_split(costs, overlap)

        def measure() -> list[Measurement]:
            used = np.nonzero(split.shares)[0]
            waves = [_wavelets(len(answers), int(levels[i])) for i in used]
            queries = centred(answers, adjacency).T
            return [
                laplace_measurement(
                    change / split.shares[i],
                    C,
                    queries @ C.T / lengths[i],
                    changes=np.array([change]),
                    sums=listed_sums(workload, C),
                )
                for i, C in zip(used, waves, strict=True)
            ]

        return Design("Haar wavelet", split.value, answers, adjacency, measure)


def _padded(answers: FloatArray) -> FloatArray:
    """Answers (2^k, m): the last row is repeated for added elements, which occur in no record."""
    missing = (1 << (len(answers) - 1).bit_length()) - len(answers)
    return np.vstack([answers, np.repeat(answers[-1:], missing, axis=0)])


def _intervals(size: int, level: int) -> FloatArray:
    """Indicators (2^level, size) of the intervals of a level."""
    return np.kron(np.eye(1 << level), np.ones((1, size >> level))).astype(np.float64)


def _wavelets(size: int, level: int) -> FloatArray:
    """Haar wavelets (2^(level - 1), size) of a level; for level 0, one row (1, size) of ones."""
    if level == 0:
        return np.ones((1, size))
    intervals = _intervals(size, level)
    return np.asarray(intervals[::2] - intervals[1::2])


def _detail(answers: FloatArray, level: int, adjacency: Adjacency) -> float:
    """Project each query on a level's wavelets, and add up the squared lengths of the results."""
    waves = _wavelets(len(answers), level)
    length = float((waves[0] ** 2).sum())
    return float(((waves @ centred(answers, adjacency)) ** 2).sum()) / length
