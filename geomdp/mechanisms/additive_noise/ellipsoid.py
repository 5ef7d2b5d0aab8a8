"""The ellipsoid and the ball mechanism: K-norm noise of an ellipsoid around the differences of
neighbours, or of a Euclidean ball.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from geomdp._numerics.linalg import AffineHull, svec
from geomdp._typing import FloatArray
from geomdp.bodies import Ellipsoid as EllipsoidBody
from geomdp.geometry.ellipsoids import (
    PairDifferences,
    Rows,
    capped_ellipsoid,
    least_trace_ellipsoid,
    profile_ellipsoid,
)
from geomdp.mechanisms.additive_noise.base import PureMechanism
from geomdp.mechanisms.additive_noise.certify import Origin, knorm
from geomdp.mechanisms.additive_noise.sums import Change
from geomdp.mechanisms.base import answer_hull, l2_sensitivity
from geomdp.noise import KNormNoise
from geomdp.privacy import Adjacency
from geomdp.workloads import MarginalTables, SecondMoment, Workload

#: Largest universe in which all pairs of elements are searched. One search is then a few products
#: of matrices with 4096 rows: about a tenth of a second for 100 dimensions.
MAX_PAIR_ELEMENTS = 1 << 12
#: Largest number N r of coordinates in memory, for N elements whose answers lie in an affine space
#: of r dimensions. 2^24 float64 numbers are 128 MB.
MAX_COORDINATES = 1 << 24
#: Number of elements that are evaluated together.
CHUNK_ELEMENTS = 8192
#: For tables of c columns, the set of columns in which two records agree is one of 2^c sets. For c
#: up to this number, all 2^c sets are listed.
MAX_PATTERN_COLUMNS = 12
#: Relative duality gap at which the optimisation stops. The squared error is proportional to the
#: trace, so 5e-3 in the trace is 0.25% in root mean squared error.
GAP = 5e-3


class Ellipsoid(PureMechanism):
    """K-norm noise of the least-trace ellipsoid around the differences of neighbours.

    M(X) = (sum of Q(x) + Z) / n, where Z has density proportional to
    exp(-epsilon (z^T S^+ z)^(1/2)) on the public subspace. S minimises tr S subject to
    v^T S^+ v <= 1 for all v in a set that contains all differences between sums of neighbours. For
    a universe of N elements, the set is the first of these that applies:

    * `workloads.SecondMoment`: the set of all differences. By symmetry, S has one eigenvalue for
      multiples of the identity matrix and one for traceless matrices.
    * Replace-one, `MarginalTables` with c <= 12 columns of more than one level: the set of all
      differences Q(x) - Q(x'). By symmetry, S depends only on the sets of columns in which two
      records can agree. There are 2^c such sets.
    * Replace-one, N <= 2^12 and N r <= 2^24: the set of all differences Q(x) - Q(x').
    * Replace-one, all other cases: the vectors that satisfy two conditions. The length of the
      vector is at most D_2. The length of its projection on each block (one of the orthogonal
      subspaces `workload.blocks()`) is at most the diameter of the projected answers. If
      N r <= 2^24, four times the matrix of the least-trace ellipsoid around the points Q(x) - mean
      of Q is taken if its trace is lower. No S has a larger trace than the ball of radius D_2.
    * Add/remove, N r <= 2^24: the set of all differences, which are Q(x) and -Q(x).
    * Add/remove, all other cases: the ball of radius D_2.

    Notation and parameters are those of `AdditiveMechanism`; `privacy` is a `PureDP`.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic, as for `KNorm`: every difference v has v^T S^+ v <= 1.
    If the optimisation does not converge, S is scaled up for this. The sampler is exact.

    Error: sqrt((r + 1) tr S / m) / (epsilon n) per query, up to a factor of 1 + 1e-6, unless
    releases round answers. The optimisation runs on first use. If it converges, tr S is at most
    0.5% above the least.

    References
    ----------
    Formula sheet JL-ELL, SAM-5.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Explicit([[0.0, 1.0, 1.0], [0.0, 0.0, 0.2]])
    >>> mechanism = gd.mechanisms.Ellipsoid(workload, n=100, privacy=gd.PureDP(1.0))
    >>> round(mechanism.predicted_rmse.value, 3)
    0.014
    >>> np.sqrt(np.diag(mechanism.noise.covariance())).round(1)
    array([1.8, 0.6])
    """

    in_span, origin = True, Origin.SOLVER

    def law(self, change: Change) -> KNormNoise:
        root = least_trace_root(change.workload, change.adjacency)
        return knorm(EllipsoidBody(root), self.privacy.epsilon)


def least_trace_root(workload: Workload, adjacency: Adjacency) -> FloatArray:
    """Root B (m, r) of the matrix S = B B^T of `Ellipsoid`, with the span of the differences."""
    if isinstance(workload, SecondMoment):
        return moment_root(workload.d, adjacency)
    span = answer_hull(workload, adjacency)
    if adjacency is Adjacency.REPLACE_ONE:
        return _replace_one_root(workload, span)
    return _add_remove_root(workload, span)


def moment_root(d: int, adjacency: Adjacency) -> FloatArray:
    """Root B (m, m) of the best S for second moments x x^T of records in the unit ball of R^d.

    By symmetry, S has an eigenvalue s on traceless matrices and t on multiples of I. All
    differences are in the ellipsoid if (1 - 1/d) / s + 1 / (d t) <= 1 and, under replace-one,
    2 / s <= 1. The trace (m - 1) s + t is least for s = 2 and t = 2 / (d + 1), or under add/remove
    for s = t sqrt(2 / (d + 2)). For d = 1, t = 1.
    """
    if adjacency is Adjacency.REPLACE_ONE:
        traceless, along = 2.0, 2 / (d + 1)
    else:
        along = (1 + (d - 1) * math.sqrt((d + 2) / 2)) / d
        traceless = along * math.sqrt(2 / (d + 2))
    unit = svec(np.eye(d)) / math.sqrt(d)
    change = math.sqrt(along) - math.sqrt(traceless)
    return math.sqrt(traceless) * np.eye(len(unit)) + change * np.outer(unit, unit)


def is_around_differences_alone(workload: Workload, adjacency: Adjacency) -> bool:
    """Whether the set in the docstring of `Ellipsoid` is exactly the set of all differences."""
    if isinstance(workload, SecondMoment):
        return True
    if adjacency is Adjacency.REPLACE_ONE and _has_few_patterns(workload):
        return True
    size = workload.universe.size
    most = math.inf if adjacency is Adjacency.ADD_REMOVE else MAX_PAIR_ELEMENTS
    return size is not None and size <= most and _fits(size, answer_hull(workload, adjacency))


def _has_few_patterns(workload: Workload) -> bool:
    """Whether the columns in which records of `MarginalTables` agree can be listed."""
    if not isinstance(workload, MarginalTables):
        return False
    return sum(levels > 1 for levels in workload.levels) <= MAX_PATTERN_COLUMNS


def _replace_one_root(workload: Workload, span: AffineHull) -> FloatArray:
    """Root B (m, r) of an ellipsoid {B u : |u| <= 1} that contains Q(x) - Q(x') for all x, x'."""
    if isinstance(workload, MarginalTables) and _has_few_patterns(workload):
        return _pattern_root(workload)
    size = workload.universe.size
    if size is not None and size <= MAX_PAIR_ELEMENTS and _fits(size, span):
        pairs = PairDifferences(_coordinates(workload, span, size))
        return np.asarray(span.basis @ least_trace_ellipsoid(pairs, tolerance=GAP).root)
    blocks = workload.blocks()
    axes = capped_ellipsoid(
        [block.basis.shape[1] for block in blocks],
        [block.diameter for block in blocks],
        l2_sensitivity(workload, Adjacency.REPLACE_ONE),
    )
    root = np.hstack([axis * block.basis for axis, block in zip(axes, blocks, strict=True)])
    if size is None or not _fits(size, span):
        return root
    points = _coordinates(workload, span, size)
    # Let c be the mean of Q. If a symmetric convex body contains all points Q(x) - c, then the body
    # times 2 contains all differences (Q(x) - c) - (Q(x') - c).
    around = least_trace_ellipsoid(Rows(2 * (points - points.mean(axis=0))), tolerance=GAP)
    smaller = around.trace < float((root**2).sum())
    return np.asarray(span.basis @ around.root) if smaller else root


def _add_remove_root(workload: Workload, span: AffineHull) -> FloatArray:
    """Root B (m, r) of an ellipsoid {B u : |u| <= 1} that contains Q(x) and -Q(x) for all x."""
    size = workload.universe.size
    if size is None or not _fits(size, span):
        return l2_sensitivity(workload, Adjacency.ADD_REMOVE) * span.basis
    points = _coordinates(workload, span, size)
    return np.asarray(span.basis @ least_trace_ellipsoid(Rows(points), tolerance=GAP).root)


def _fits(size: int, span: AffineHull) -> bool:
    return size * span.dimension <= MAX_COORDINATES


def _coordinates(workload: Workload, span: AffineHull, size: int) -> FloatArray:
    """Coordinates (N, r) of Q(x) in `span`, for all elements x."""
    coordinates = np.empty((size, span.dimension))
    for start in range(0, size, CHUNK_ELEMENTS):
        stop = min(start + CHUNK_ELEMENTS, size)
        answers = workload.evaluate(workload.universe.elements(start, stop))
        coordinates[start:stop] = span.coordinates(answers)
    return coordinates


def _pattern_root(workload: MarginalTables) -> FloatArray:
    """Root B (m, r) of the least-trace ellipsoid, from sets of columns in which records agree.

    By Schur's lemma, some optimal S is a multiple of the identity on each block.
    """
    blocks = workload.blocks()
    # Lengths in blocks depend only on the columns in which two records agree. Pairs of 0 and all
    # records of zeros and ones therefore give all lengths.
    choices = [(0, 1) if levels > 1 else (0,) for levels in workload.levels]
    records = np.array(list(itertools.product(*choices)), dtype=np.int64)
    answers = workload.evaluate(records)
    moved = answers - answers[0]
    # One product with the bases of all blocks, then sums over the columns of each block.
    sizes = [block.basis.shape[1] for block in blocks]
    squares = (moved @ np.hstack([block.basis for block in blocks])) ** 2
    profiles = np.add.reduceat(squares, np.cumsum([0, *sizes[:-1]]), axis=1)
    axes = profile_ellipsoid(sizes, profiles, tolerance=GAP)
    return np.hstack([axis * block.basis for axis, block in zip(axes, blocks, strict=True)])


class Ball(PureMechanism):
    """K-norm noise of an l2 ball in the subspace of the differences between neighbours.

    M(X) = (sum of Q(x) + Z) / n, where Z has density proportional to exp(-epsilon ||z||_2 / D_2) on
    the public subspace. Notation and parameters: see `AdditiveMechanism`. `privacy` is a `PureDP`.

    Notes
    -----
    Privacy: epsilon-DP in real arithmetic, as for `KNorm` with a ball of radius D_2. Exact sampler.

    Error: exactly D_2 sqrt(r (r + 1) / m) / (epsilon n) per query.

    References
    ----------
    Nikolov 2022, Lemma 15; formula sheet JL-L15, JL-KN.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Prefixes(4)
    >>> mechanism = gd.mechanisms.Ball(workload, n=100, privacy=gd.PureDP(1.0))
    >>> print(mechanism.predicted_rmse)
    rmse 0.03
    >>> records = np.repeat(np.arange(4), 25)
    >>> workload.answers(records)
    array([0.25, 0.5 , 0.75, 1.  ])
    >>> release = mechanism.release(records, rng=0)  # a simulation: the seed voids privacy
    >>> release.answers.round(3)
    array([0.3  , 0.508, 0.708, 1.   ])
    >>> print(release.guarantee)
    seeded: no privacy claim
    """

    in_span, origin = True, Origin.BALL

    def _prepare(self) -> None:
        _ = self.change.l2, self.change.hull

    def law(self, change: Change) -> KNormNoise:
        return knorm(EllipsoidBody(change.l2 * change.hull.basis), self.privacy.epsilon)
