"""The ellipsoid of least volume around points: Khachiyan's algorithm with away steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from geomdp._linalg import RANK_TOLERANCE
from geomdp._typing import FloatArray
from geomdp._validation import finite_array, positive, whole

#: Rank-one updates between two factorisations from scratch.
REFACTOR = 100


@dataclass(frozen=True)
class VolumeEllipsoid:
    """The ellipsoid {centre + root @ u : ||u||_2 <= 1} around all points, with its certificate.

    Parameters
    ----------
    centre : (r,) array
        A convex combination of the points.
    root : (r, r) array
        Symmetric and positive definite.
    gap : float
        The volume is at most (1 + gap)^((r + 1) / 2) times the least.
    steps : int
        Steps taken.
    converged : bool
        Whether the gap fell to the tolerance. All points are inside in any case.
    """

    centre: FloatArray
    root: FloatArray
    gap: float
    steps: int
    converged: bool


def least_volume_ellipsoid(
    points: FloatArray, *, tolerance: float = 1e-2, max_steps: int = 100_000
) -> VolumeEllipsoid:
    """Ellipsoid of least volume around points, to a relative duality gap.

    Maximises log det of sum_i p_i q_i q_i^T over weights p, q_i = (v_i, 1), whose dual is the
    ellipsoid. A step moves weight to the point with the largest q^T M^(-1) q, or away from the one
    with the smallest that has any. Scaled by r about its centre the ellipsoid of least volume
    lies in the hull of the points, by sqrt(r) if they are symmetric about it (John 1948).

    Parameters
    ----------
    points : (N, r) array
        Not all in one hyperplane.
    tolerance : float
        Gap at which to stop: the points' largest squared norm in the ellipsoid's own coordinates
        is then known to be least up to this share.
    max_steps : int
        Steps at most.

    Returns
    -------
    VolumeEllipsoid

    Raises
    ------
    ValueError
        If the points lie in a hyperplane, are not finite, or there are none.

    Notes
    -----
    Cost O(N r) a step, O(r log(1 / tolerance)) steps where few points touch.

    References
    ----------
    Khachiyan 1996; Todd and Yildirim 2007, "On Khachiyan's algorithm for the computation of
    minimum-volume enclosing ellipsoids", algorithm 4.2 (with away steps).
    """
    points = finite_array(points, "points", ndim=2)
    if 0 in points.shape:
        raise ValueError(f"points must have shape (N, r), N, r >= 1, got {points.shape}")
    tolerance, max_steps = positive(tolerance, "tolerance"), whole(max_steps, "max_steps")
    # In coordinates in which the points have covariance I; the answer does not depend on them.
    mean = points.mean(axis=0)
    _, singular, axes = np.linalg.svd(points - mean, full_matrices=False)
    if len(singular) < points.shape[1] or singular[-1] <= RANK_TOLERANCE * singular[0]:
        raise ValueError("points must not lie in one hyperplane")
    scales = singular / np.sqrt(len(points))
    search = _Search((points - mean) @ axes.T / scales)
    steps = search.run(tolerance, max_steps)
    centre, root, gap = search.ellipsoid()
    stretch = axes.T * scales
    # Left singular vectors and values of a root give the symmetric one, small axes included.
    left, lengths, _ = np.linalg.svd(stretch @ root)
    return VolumeEllipsoid(
        mean + stretch @ centre, (left * lengths) @ left.T, gap, steps, gap <= tolerance
    )


class _Search:
    """Weights p on points v_i, with M = sum p_i q_i q_i^T inverted and q_i^T M^(-1) q_i."""

    def __init__(self, points: FloatArray) -> None:
        self._points = points
        self._lifted = np.column_stack([points, np.ones(len(points))])
        self._weights = np.full(len(points), 1 / len(points))
        self._refactor()

    def _refactor(self) -> None:
        self._inverse = np.linalg.inv((self._lifted.T * self._weights) @ self._lifted)
        self._heights = np.einsum("ni,ij,nj->n", self._lifted, self._inverse, self._lifted)

    def run(self, tolerance: float, max_steps: int) -> int:
        """Steps until no height exceeds (1 + tolerance) (r + 1)."""
        size = self._lifted.shape[1]
        for step in range(max_steps):
            if step % REFACTOR == 0:
                self._refactor()
            far = int(self._heights.argmax())
            above = self._heights[far] / size - 1
            if above <= tolerance:
                return step
            near = int(np.where(self._weights > 0, self._heights, np.inf).argmin())
            self._move(far if above >= 1 - self._heights[near] / size else near)
        return max_steps

    def _move(self, i: int) -> None:
        """Weights (1 - b) p + b e_i with the best b, at least the one that takes all from i."""
        size, height = self._lifted.shape[1], self._heights[i]
        b = (height - size) / (size * (height - 1)) if height > 1 else -np.inf
        b = max(b, -self._weights[i] / (1 - self._weights[i]))
        self._weights *= 1 - b
        self._weights[i] = max(self._weights[i] + b, 0.0)
        image = self._inverse @ self._lifted[i]
        heights = self._lifted @ image
        share = b / (1 - b + b * height)
        self._inverse = (self._inverse - share * np.outer(image, image)) / (1 - b)
        self._heights = (self._heights - share * heights**2) / (1 - b)

    def ellipsoid(self) -> tuple[FloatArray, FloatArray, float]:
        """Centre and root, scaled to hold all points, and the gap."""
        self._refactor()
        centre = self._weights @ self._points
        spread = self._points - centre
        values, vectors = np.linalg.eigh((spread.T * self._weights) @ spread)
        images = spread @ vectors / np.sqrt(values)
        reach = float(np.sqrt((images**2).sum(axis=1).max()))
        gap = float(self._heights.max() / self._lifted.shape[1] - 1)
        return centre, vectors * (np.sqrt(values) * reach), gap
