"""Ellipsoid noise on a few answers that determine the rest, proved for the floats as given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
from flint import arb_mat, ctx
from scipy.spatial.distance import cdist

from geomdp._typing import FloatArray, IntArray
from geomdp.mechanisms.sensitivity import answer_hull
from geomdp.noise import Noise
from geomdp.privacy import Adjacency
from geomdp.workloads import Workload

#: Certified slack tau (X-GRID): the ellipsoid of a rounded release is larger by this share than the
#: one found in float64, and the error with it. It covers all rounding in finding it.
SLACK = 1e-6
#: Largest universe whose pairs are all checked: the distances of 4096 points take a second.
MAX_CHECKED = 1 << 12
#: Working precision in bits of the residual of an inverse.
RESIDUAL_BITS = 256
#: Elements whose distances to all others are computed at a time: 16 MB.
ROWS = 512
#: Twice the largest relative error of one rounding in float64.
UNIT = 2.0**-52


@dataclass(frozen=True, eq=False)
class CertifiedRows:
    """Noise on r whole-number answers from which the others follow, as post-processing.

    Parameters
    ----------
    places : (r,) array
        Their numbers among the m answers.
    noise : Noise
        Fills R^r; private for the sums of these answers, as proved for the floats it holds.
    lift : (m, r) array
        Maps deviations of these means from `offset` to those of all means.
    offset : (m,) array
        A point of the affine hull of the means.
    slack : float
        Share by which the noise was made larger for the proof.
    """

    places: IntArray
    noise: Noise
    lift: FloatArray
    offset: FloatArray
    slack: float = SLACK

    def answers(self, noisy: FloatArray) -> FloatArray:
        """All means (m,) from the noisy ones (r,)."""
        return np.asarray(self.offset + self.lift @ (noisy - self.offset[self.places]))


def certified_rows(
    workload: Workload,
    root: FloatArray,
    adjacency: Adjacency,
    noise_of: Callable[[FloatArray], Noise],
) -> CertifiedRows | None:
    """The rows of an ellipsoid {root u : ||u||_2 <= 1} that determine the others, with its noise.

    A float64 root (m, r) spans the differences of sums of neighbours up to rounding only, and
    holds them up to rounding only. Its r most independent rows, made longer by `SLACK`, fill R^r;
    that their ellipsoid holds the differences of these r answers is proved pair by pair.

    Parameters
    ----------
    workload : Workload
        m queries.
    root : (m, r) array
        Found to hold all differences of neighbours in float64.
    adjacency : Adjacency
        Neighbour relation.
    noise_of : callable
        Root (r, r) -> noise that is private for changes in its ellipsoid.

    Returns
    -------
    CertifiedRows or None
        None for answers that are not whole, a universe above 2^12 elements, or no proof.
    """
    size = workload.universe.size
    if size is None or size > MAX_CHECKED or not workload.whole_answers:
        return None
    pivots = scipy.linalg.qr(root.T, mode="r", pivoting=True)[1]
    places = np.asarray(pivots[: root.shape[1]], dtype=np.int64)
    square = root[places] * (1 + SLACK)
    points = workload.evaluate(workload.universe.elements())[:, places]
    if not holds_differences(square, points, adjacency):
        return None
    offset = np.zeros(len(root))
    if adjacency is Adjacency.REPLACE_ONE:
        offset = answer_hull(workload, adjacency).offset
    lift = np.asarray(np.linalg.solve(root[places].T, root.T).T, dtype=np.float64)
    return CertifiedRows(places, noise_of(square), lift, offset)


def holds_differences(root: FloatArray, points: FloatArray, adjacency: Adjacency) -> bool:
    """Whether {root u : ||u||_2 <= 1} is proved to hold all differences of whole points (N, r).

    Under add/remove the points themselves.
    """
    pulled = pulled_back(root, points, adjacency)
    if pulled is None:
        return False
    images, error = pulled
    bound = proved_bound(longest_difference(images, adjacency), error, len(root))
    return bool(bound <= 1)


def pulled_back(
    root: FloatArray, points: FloatArray, adjacency: Adjacency
) -> tuple[FloatArray, float] | None:
    """A^-1 p for whole points p (N, r), relative to one of them under replace-one, with an error.

    The error bounds the Euclidean distance of each image from the exact one. None for a root A
    without an inverse that is found and proved.

    Notes
    -----
    With X an approximate inverse of A and R = I - A X, A^-1 v = X v + A^-1 R v and
    ||A^-1|| <= ||X|| / (1 - ||R||). Balls enclose R; the products X v are computed in float64, and
    their rounding errors added.
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
    # Differences of whole numbers below 2^53 are exact.
    moved = points - points[0] if adjacency is Adjacency.REPLACE_ONE else points
    rounding = rank * UNIT * np.linalg.norm(np.abs(moved) @ np.abs(inverse).T, axis=1).max()
    solved = 2 * residual * np.linalg.norm(inverse) * np.linalg.norm(moved, axis=1).max()
    return moved @ inverse.T, float(rounding + solved)


def longest_difference(
    images: FloatArray,
    adjacency: Adjacency,
    metric: Callable[[FloatArray, FloatArray], FloatArray] = cdist,
) -> float:
    """The largest distance of two images (N, r), under add/remove of one of them from 0."""
    if adjacency is Adjacency.ADD_REMOVE:
        return float(metric(images, np.zeros((1, images.shape[1]))).max())
    starts = range(0, len(images), ROWS)
    return max(float(metric(images[i : i + ROWS], images).max()) for i in starts)


def proved_bound(longest: float, error: float, rank: int) -> float:
    """A bound on an exact distance whose two ends are known up to `error`.

    The last factor covers the rounding of the distance, a norm of `rank` entries, and of the sum.
    """
    return (longest + 2 * error) * (1 + 4 * (rank + 8) * UNIT)
