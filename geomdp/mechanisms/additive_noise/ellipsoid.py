"""The ellipsoid mechanism: K-norm noise of the best ellipsoid around the neighbour body."""

from __future__ import annotations

import itertools
from functools import cached_property

import numpy as np

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray
from geomdp.bodies import Ellipsoid as EllipsoidBody
from geomdp.geometry.ellipsoids.blocks import capped_ellipsoid, profile_ellipsoid
from geomdp.geometry.ellipsoids.least_trace import least_trace_ellipsoid
from geomdp.geometry.ellipsoids.vector_sets import PairDifferences, Rows
from geomdp.geometry.sampling.samplers import ExactSampler
from geomdp.mechanisms.additive_noise.certified_rows import CertifiedRows, certified_rows
from geomdp.mechanisms.additive_noise.pure import PureMechanism
from geomdp.mechanisms.additive_noise.units import ScaledAnswers, Units
from geomdp.mechanisms.sensitivity import answer_hull, l2_sensitivity
from geomdp.noise import KNormNoise
from geomdp.privacy import Adjacency
from geomdp.workloads import MarginalTables, Workload

#: Largest universe whose pairs are searched: one search is then a product of two matrices with
#: 4096 rows, about a tenth of a second for 100 dimensions.
MAX_PAIR_ELEMENTS = 1 << 12
#: Largest number of coordinates N r of the answers of all elements held in memory: 2^24 float64 are
#: 128 MB.
MAX_COORDINATES = 1 << 24
#: Elements evaluated at a time.
CHUNK_ELEMENTS = 8192
#: Largest number of columns of a table workload whose 2^c patterns of agreement are listed.
MAX_PATTERN_COLUMNS = 12
#: Relative duality gap: 5e-3 in the trace is 0.25% in root mean squared error.
GAP = 5e-3


class Ellipsoid(PureMechanism):
    """K-norm noise of the least-trace ellipsoid around the differences of neighbours.

    M(X) = (sum of Q(x) + Z) / n, Z with density proportional to
    exp(-epsilon (z^T S^+ z)^(1/2)) on the public r-dimensional subspace in which answers move;
    S minimises tr S subject to v^T S^+ v <= 1 for all differences v of sums of neighbours, where
    that set can be searched, and otherwise over a larger set. In order, the first that applies:

    * `MarginalTables` of at most 12 columns with more than one level, replace-one: the optimum, by
      symmetry over the 2^c patterns of agreement of two records;
    * replace-one, at most 2^12 elements: all pairs Q(x) - Q(x');
    * replace-one: the better of the ellipsoid from the block diameters of the workload (never
      worse than the ball) and, for N r <= 2^24, twice the one around Q(x) - mean of Q;
    * add/remove, N r <= 2^24: all Q(x); else the ball.

    Parameters and errors are those of `AdditiveMechanism`; `privacy` is a `PureDP`.

    Notes
    -----
    Privacy: for all neighbouring X, X' and measurable T,
    Pr[M(X) in T] <= e^epsilon Pr[M(X') in T], in real arithmetic, because the density of Z changes
    by at most exp(epsilon (v^T S^+ v)^(1/2)) under a shift v of the subspace, and S is rescaled
    until it holds every difference v, so that this does not hang on the convergence of the
    optimisation. The sampler is exact.

    Error: exactly sqrt((r + 1) tr S / m) / (epsilon n) per query; S is within 0.5% of the least
    trace wherever the optimisation converges.

    References
    ----------
    Formula sheet JL-ELL, SAM-5.
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

    def _in_units(self, units: Units) -> ScaledAnswers | None:
        root = self._root * units.factor
        rows = certified_rows(units.workload, root, self.adjacency, self._noise_of)
        return units.with_rows(rows)


def least_trace_root(workload: Workload, adjacency: Adjacency) -> FloatArray:
    """Root B (m, r) of the ellipsoid {B u : ||u||_2 <= 1} of the class, S = B B^T.

    It holds all differences of sums of neighbours; its span is that of the answers.
    """
    span = answer_hull(workload, adjacency)
    if adjacency is Adjacency.REPLACE_ONE:
        return _replace_one_root(workload, span)
    return _add_remove_root(workload, span)


def _replace_one_root(workload: Workload, span: AffineHull) -> FloatArray:
    """Root (m, r) of an ellipsoid that holds Q(x) - Q(x') for all x, x'."""
    if isinstance(workload, MarginalTables):
        varying = sum(levels > 1 for levels in workload.levels)
        if varying <= MAX_PATTERN_COLUMNS:
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
    # v = (Q(x) - c) - (Q(x') - c) lies in twice any symmetric body around the centred points.
    around = least_trace_ellipsoid(Rows(2 * (points - points.mean(axis=0))), tolerance=GAP)
    smaller = around.trace < float((root**2).sum())
    return np.asarray(span.basis @ around.root) if smaller else root


def _add_remove_root(workload: Workload, span: AffineHull) -> FloatArray:
    """Root (m, r) of an ellipsoid that holds Q(x) and -Q(x) for all x."""
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
    """Root (m, r) of the least-trace ellipsoid for tables, over patterns of agreement.

    Renaming the levels of columns permutes the differences Q(x) - Q(x') and acts on the interaction
    blocks by distinct absolutely irreducible representations (tensors of standard ones). Averaging
    S over this group keeps it feasible, by convexity, and its trace, and leaves a multiple of the
    identity on every block: some optimal S has that form. The squared length of a difference in a
    block depends only on where x and x' agree, so x = (0, ..., 0) against all x' of zeros and ones
    shows every profile.
    """
    blocks = workload.blocks()
    choices = [(0, 1) if levels > 1 else (0,) for levels in workload.levels]
    records = np.array(list(itertools.product(*choices)), dtype=np.int64)
    answers = workload.evaluate(records)
    moved = answers - answers[0]
    profiles = np.stack([((moved @ block.basis) ** 2).sum(axis=1) for block in blocks], axis=1)
    axes = profile_ellipsoid([block.basis.shape[1] for block in blocks], profiles, tolerance=GAP)
    return np.hstack([axis * block.basis for axis, block in zip(axes, blocks, strict=True)])
