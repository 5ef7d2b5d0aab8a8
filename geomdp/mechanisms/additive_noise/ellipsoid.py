"""The ellipsoid mechanism: K-norm noise of an ellipsoid around the differences of neighbours."""

from __future__ import annotations

import itertools
import math
from functools import cached_property

import numpy as np

from geomdp._numerics.linalg import AffineHull, svec
from geomdp._typing import FloatArray
from geomdp.bodies import Ellipsoid as EllipsoidBody
from geomdp.geometry.ellipsoids.blocks import capped_ellipsoid, profile_ellipsoid
from geomdp.geometry.ellipsoids.least_trace import least_trace_ellipsoid
from geomdp.geometry.ellipsoids.vector_sets import PairDifferences, Rows
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.mechanisms.additive_noise.certified_rows import CertifiedRows, certified_rows
from geomdp.mechanisms.additive_noise.pure import PureMechanism
from geomdp.mechanisms.additive_noise.real_records import RealRecords, enlarged_ellipsoid
from geomdp.mechanisms.additive_noise.units import ScaledAnswers, Units
from geomdp.mechanisms.sensitivity import answer_hull, l2_sensitivity
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
    exp(-epsilon (z^T S^+ z)^(1/2)) on the public r-dimensional subspace spanned by the differences
    between sums of neighbours. S minimises tr S (up to 0.5%) subject to v^T S^+ v <= 1 for all v in
    a set that contains every such difference. For a universe of N elements, the set is the first of
    these that applies:

    * `workloads.SecondMoment`: the set of all differences. By symmetry, S has one eigenvalue for
      multiples of the identity matrix and one for traceless matrices (see `moment_root`).
    * Replace-one, `MarginalTables` with c <= 12 columns of more than one level: the set of all
      differences Q(x) - Q(x'). By symmetry, S depends only on the sets of columns in which two
      records can agree. There are 2^c such sets.
    * Replace-one, N <= 2^12 and N r <= 2^24: the set of all differences Q(x) - Q(x').
    * Replace-one, all other cases: the vectors that satisfy two conditions. The length of the
      vector is at most `workload.l2_diameter()`. For each block (one of the orthogonal subspaces
      `workload.blocks()`), the length of the vector's projection on the block is at most the
      diameter of the projected answers. The trace of S is at most the trace for the ball of radius
      `workload.l2_diameter()`. If N r <= 2^24, there is a second candidate for S: four times the
      matrix of the least-trace ellipsoid around the points Q(x) - mean of Q. The candidate with
      the lower trace is taken.
    * Add/remove, N r <= 2^24: the set of all differences, which are Q(x) and -Q(x).
    * Add/remove, all other cases: the ball of radius `workload.l2_radius()`.

    For notation, parameters and errors see `AdditiveMechanism`. `privacy` is a `PureDP`.

    Notes
    -----
    Privacy: for all neighbouring X, X' and measurable T, Pr[M(X) in T] <= e^epsilon Pr[M(X') in T],
    in real arithmetic. A shift by a vector v of the subspace changes the density of Z by a factor
    of at most exp(epsilon (v^T S^+ v)^(1/2)). Every difference v of sums of neighbours has
    v^T S^+ v <= 1, even if the optimisation does not converge, because S is then scaled up. The
    sampler is exact.

    Error: sqrt((r + 1) tr S / m) / (epsilon n) per query, up to a factor of 1 + 1e-6, unless
    releases round answers. If the optimisation converges, tr S is at most 0.5% above the least
    possible trace for the set above.

    References
    ----------
    Formula sheet JL-ELL, SAM-5.

    Examples
    --------
    One record can change the first answer more than the second, so the first gets more noise:

    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Explicit([[0.0, 1.0, 1.0], [0.0, 0.0, 0.2]])
    >>> mechanism = gd.mechanisms.Ellipsoid(workload, n=100, privacy=gd.PureDP(1.0))
    >>> round(mechanism.predicted_rmse.value, 3)
    0.014
    >>> np.sqrt(np.diag(mechanism.noise.covariance())).round(1)
    array([1.8, 0.6])
    """

    _span: AffineHull

    def _prepare(self) -> None:
        self._span = answer_hull(self.workload, self.adjacency)

    @cached_property
    def noise(self) -> KNormNoise:
        """Distribution of Z, on sums of answer vectors; the optimisation runs on first use."""
        return self._noise_of(self._root)

    @cached_property
    def _root(self) -> FloatArray:
        return least_trace_root(self.workload, self.adjacency)

    def _noise_of(self, root: FloatArray) -> KNormNoise:
        body = EllipsoidBody(root)
        return KNormNoise(body, self.privacy.epsilon, ExactSampler(body))

    @cached_property
    def _rows(self) -> CertifiedRows | None:
        return certified_rows(self.workload, self._root, self.adjacency, self._noise_of)

    def _on_real_records(self) -> RealRecords:
        return enlarged_ellipsoid(self.workload, self._root, self._noise_of)

    def _in_units(self, units: Units) -> ScaledAnswers | None:
        root = self._root * units.factor
        rows = certified_rows(units.workload, root, self.adjacency, self._noise_of)
        return units.with_rows(rows)


def least_trace_root(workload: Workload, adjacency: Adjacency) -> FloatArray:
    """Root B (m, r) of the matrix S = B B^T of `Ellipsoid`.

    The ellipsoid {B u : ||u||_2 <= 1} contains all differences between sums of neighbours, and has
    the same linear span as these differences.
    """
    if isinstance(workload, SecondMoment):
        return moment_root(workload.d, adjacency)
    span = answer_hull(workload, adjacency)
    if adjacency is Adjacency.REPLACE_ONE:
        return _replace_one_root(workload, span)
    return _add_remove_root(workload, span)


def moment_root(d: int, adjacency: Adjacency) -> FloatArray:
    """Root B (m, m) of the best S for second moments x x^T of records in the unit ball of R^d.

    Let s be the eigenvalue of S on traceless matrices, and t its eigenvalue on multiples of the
    identity matrix. Rotations of the ball permute the differences. So the average of an optimal S
    over all rotations is optimal, too, and it has this form. The ellipsoid contains v if
    ||v_0||^2 / s + (tr v)^2 / (d t) <= 1, where v_0 is the traceless part of v.

    Under replace-one, v = x x^T - y y^T with p = |x|^2 and q = |y|^2. The left side is largest if x
    and y are orthogonal. It is then a convex function of (p, q), so it is largest at (1, 0) or
    (1, 1). This gives the conditions (1 - 1/d) / s + 1 / (d t) <= 1 and 2 / s <= 1. The trace
    (m - 1) s + t, with m = d (d + 1) / 2, is least if both are equalities: s = 2 and
    t = 2 / (d + 1). Under add/remove only the first condition is left. The trace is then least for
    s = t sqrt(2 / (d + 2)). For d = 1 there are no traceless matrices, and t = 1.
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
    """Whether the set in the docstring of `Ellipsoid` is exactly the set of all differences.

    Otherwise the set can contain more vectors, and another ellipsoid around all differences can
    have a trace that is several times smaller.
    """
    if isinstance(workload, SecondMoment):
        return True
    if adjacency is Adjacency.REPLACE_ONE and _has_few_patterns(workload):
        return True
    size = workload.universe.size
    most = math.inf if adjacency is Adjacency.ADD_REMOVE else MAX_PAIR_ELEMENTS
    return size is not None and size <= most and _fits(size, answer_hull(workload, adjacency))


def _has_few_patterns(workload: Workload) -> bool:
    """Whether the sets of columns in which two records can agree are few enough to list.

    The result is False for workloads other than `MarginalTables`.
    """
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

    Some optimal S is a multiple of the identity on every block of the workload. The reason is that
    renaming the levels of columns permutes the differences Q(x) - Q(x'). By convexity, the average
    of an optimal S over all renamings is optimal, too. By Schur's lemma, the average is a multiple
    of the identity on every block.

    The squared length of a difference in a block depends only on the columns in which x and x'
    agree. Therefore x = (0, ..., 0) and all x' of zeros and ones give every vector of squared
    lengths.
    """
    blocks = workload.blocks()
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
