"""Ellipsoid noise on a few answers that determine all answers, with a proof."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy
from flint import arb_mat, ctx

from geomdp._typing import FloatArray, IntArray
from geomdp.mechanisms.sensitivity import answer_hull
from geomdp.noise import Noise
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload

#: Certified slack tau (X-GRID). A rounded release uses the ellipsoid found in float64, with all
#: axes 1 + tau times as long. The error of the release is larger by the same factor. The slack
#: leaves room for the rounding errors in the computation of the ellipsoid.
SLACK = 1e-6
#: Largest universe for which all pairs of elements are checked. The distances between all pairs of
#: 4096 points take a second.
MAX_CHECKED = 1 << 12
#: Working precision, in bits, for the residual of an approximate inverse.
RESIDUAL_BITS = 256
#: Number of rows of the matrix of distances that are computed together: at most 16 MB.
ROWS = 512
#: Twice the largest relative error of one rounding in float64.
UNIT = 2.0**-52


@dataclass(frozen=True, eq=False)
class CertifiedRows:
    """Noise on the sums of the r answers at `places`, which determine all m answers.

    `lift` (m, r) maps these entries of a vector of means minus `offset` (m,) to all of it.
    """

    places: IntArray
    noise: Noise
    lift: FloatArray
    offset: FloatArray
    slack: float = SLACK

    def answers(self, noisy: FloatArray) -> FloatArray:
        return np.asarray(self.offset + self.lift @ (noisy - self.offset[self.places]))


def certified_rows(
    workload: Workload,
    root: FloatArray,
    adjacency: Adjacency,
    noise_of: Callable[[FloatArray], Noise],
) -> CertifiedRows | None:
    """Noise of a larger ellipsoid on r answers, proved to hold all their differences; or None."""
    if not can_be_checked(workload):
        return None
    places = independent_rows(root)
    square = root[places] * (1 + SLACK)
    points = workload.evaluate(workload.universe.elements())[:, places]
    if not holds_differences(square, points, adjacency):
        return None
    return lifted(workload, root, places, adjacency, noise_of(square))


def can_be_checked(workload: Workload) -> bool:
    """Whether answers are known to be whole numbers, and all pairs of elements can be checked."""
    size = workload.universe.size
    return size is not None and size <= MAX_CHECKED and workload.whole_answers


def independent_rows(columns: FloatArray) -> IntArray:
    """Indices of r rows that determine all rows of a matrix (m, r) of full rank."""
    pivots = scipy.linalg.qr(columns.T, mode="r", pivoting=True)[1]
    return np.asarray(pivots[: columns.shape[1]], dtype=np.int64)


def lifted(
    workload: Workload,
    columns: FloatArray,
    places: IntArray,
    adjacency: Adjacency,
    noise: Noise,
    slack: float = SLACK,
) -> CertifiedRows:
    """Noise on the answers at `places`; `columns` (m, r) span all answers minus an offset."""
    offset = np.zeros(len(columns))
    if adjacency is Adjacency.REPLACE_ONE:
        offset = answer_hull(workload, adjacency).offset
    lift = np.asarray(np.linalg.solve(columns[places].T, columns.T).T, dtype=np.float64)
    return CertifiedRows(places, noise, lift, offset, slack)


def holds_differences(root: FloatArray, points: FloatArray, adjacency: Adjacency) -> bool:
    """Whether {root u : ||u||_2 <= 1} is proved to hold all differences of whole points (N, r)."""
    pulled = pulled_back(root, points, adjacency)
    if pulled is None:
        return False
    images, error = pulled
    bound = proved_bound(longest_difference(images, adjacency), error, len(root))
    return bool(bound <= 1)


def pulled_back(
    root: FloatArray, points: FloatArray, adjacency: Adjacency
) -> tuple[FloatArray, float] | None:
    """A^-1 p for whole points p (N, r) and the root A, with a bound on Euclidean errors; or None.

    Under replace-one, p is a point minus the first point. Let X be an approximate inverse of A,
    R = I - A X, and v a vector. Then A^-1 v = X v + A^-1 R v and ||A^-1|| <= ||X|| / (1 - ||R||). R
    is computed in ball arithmetic; a bound on the float64 rounding of X v is added.
    """
    if np.linalg.matrix_rank(root) < len(root):
        return None
    inverse, rank = np.linalg.inv(root), len(root)
    with ctx.workprec(RESIDUAL_BITS):
        product = arb_mat(root.tolist()) * arb_mat(inverse.tolist())
        rest = product - arb_mat(
            rank, rank, [int(i == j) for i in range(rank) for j in range(rank)]
        )
        residual = float(sum((x * x for x in rest.entries()), start=rest[0, 0] * 0).sqrt().upper())
    if not residual < 0.5:
        return None
    # A difference of whole numbers is exact if its modulus is below 2^53.
    moved = points - points[0] if adjacency is Adjacency.REPLACE_ONE else points
    rounding = rank * UNIT * np.linalg.norm(np.abs(moved) @ np.abs(inverse).T, axis=1).max()
    solved = 2 * residual * np.linalg.norm(inverse) * np.linalg.norm(moved, axis=1).max()
    return moved @ inverse.T, float(rounding + solved)


def euclidean(first: FloatArray, second: FloatArray) -> FloatArray:
    from scipy.spatial.distance import cdist  # slow import

    return np.asarray(cdist(first, second))


def longest_difference(
    images: FloatArray,
    adjacency: Adjacency,
    metric: Callable[[FloatArray, FloatArray], FloatArray] = euclidean,
) -> float:
    """Largest distance between two rows of `images` (N, r); under add/remove, from a row to 0."""
    if adjacency is Adjacency.ADD_REMOVE:
        return float(metric(images, np.zeros((1, images.shape[1]))).max())
    starts = range(0, len(images), ROWS)
    return max(float(metric(images[i : i + ROWS], images).max()) for i in starts)


def proved_bound(longest: float, error: float, rank: int) -> float:
    """A bound on a distance of points known up to `error`, from its computed value `longest`."""
    # The factor above 1 covers rounding in `longest` and in this bound.
    return (longest + 2 * error) * (1 + 4 * (rank + 8) * UNIT)
