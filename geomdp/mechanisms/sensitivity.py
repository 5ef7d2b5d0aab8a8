"""The largest change that one record causes, and the public subspace of the answers."""

from __future__ import annotations

import math

import numpy as np

from geomdp._numerics.linalg import RANK_TOLERANCE, AffineHull
from geomdp.privacy import Adjacency, PureDP
from geomdp.privacy.definitions import checked_adjacency
from geomdp.workloads import Workload

#: Limits on the largest l1 norm of an answer vector. Within these limits, fourth powers of noise
#: scales stay in the range of float64 for every epsilon that mechanisms accept.
LEAST_ANSWER, LARGEST_ANSWER = 1e-60, 1e60


def checked_workload(workload: object) -> Workload:
    if not isinstance(workload, Workload):
        raise ValueError(f"workload must be a Workload, got {type(workload).__name__}")
    return workload


def checked_size(workload: Workload) -> Workload:
    """Return `workload`; ``ValueError`` if its l1 radius is neither 0 nor from 1e-60 to 1e60."""
    with np.errstate(over="ignore"):
        radius = workload.l1_radius()
    if radius != 0 and not LEAST_ANSWER <= radius <= LARGEST_ANSWER:
        raise ValueError(
            f"workload must have answers with a largest l1 norm from {LEAST_ANSWER:g} to "
            f"{LARGEST_ANSWER:g}, got {radius:g}: choose another unit"
        )
    return workload


def pure_only(privacy: object, mechanism: str) -> PureDP:
    if not isinstance(privacy, PureDP):
        raise ValueError(f"privacy must be PureDP for {mechanism}, got {privacy!r}")
    return privacy


def l1_sensitivity(workload: Workload, adjacency: Adjacency) -> float:
    """Upper bound on the l1 change of the sum of answer vectors between neighbours (GEN-1).

    ``ValueError`` if it is not finite, or if it is 0: the sums of neighbours then need no noise.
    """
    replace_one = _checked(workload, adjacency)
    return _not_constant(workload.l1_diameter() if replace_one else workload.l1_radius())


def l2_sensitivity(workload: Workload, adjacency: Adjacency) -> float:
    """Upper bound on the l2 change of the sum of answer vectors, as `l1_sensitivity`."""
    replace_one = _checked(workload, adjacency)
    return _not_constant(workload.l2_diameter() if replace_one else workload.l2_radius())


def whole_square(sensitivity: float) -> int:
    """Upper bound on the squared l2 sensitivity of whole-number answers, which is a whole number.

    `sensitivity` is its root in float64, with a relative error far below 1e-9.
    """
    return math.floor(sensitivity**2 * (1 + 1e-9))


def _checked(workload: object, adjacency: object) -> bool:
    """Check both arguments, and return whether the neighbour relation is replace-one."""
    checked_workload(workload)
    return checked_adjacency(adjacency) is Adjacency.REPLACE_ONE


def _not_constant(sensitivity: float) -> float:
    if not (math.isfinite(sensitivity) and sensitivity > 0):
        raise ValueError(
            f"workload must have a sensitivity that is finite and above 0, got {sensitivity!r}; "
            "a workload that is constant (under add-remove: that is 0) needs no mechanism"
        )
    return sensitivity


def answer_hull(workload: Workload, adjacency: Adjacency) -> AffineHull:
    """The public subspace, of dimension r >= 1, that contains the mean answers of every data set.

    Under replace-one it is the affine hull of the answers, under add/remove the linear span of this
    hull (JL-DEF). The basis (m, r) is orthonormal. ``ValueError`` for dimension 0.
    """
    hull = checked_workload(workload).affine_hull()
    if checked_adjacency(adjacency) is Adjacency.ADD_REMOVE:
        hull = _linear_span(hull)
    if hull.dimension == 0:
        raise ValueError("workload must have answers that vary over its universe, got a constant")
    return hull


def _linear_span(hull: AffineHull) -> AffineHull:
    """Linear span of an affine subspace, as an affine subspace through 0."""
    normal = hull.offset - hull.basis @ (hull.basis.T @ hull.offset)
    # Repeat, because the first pass leaves a rounding error along the basis.
    normal = normal - hull.basis @ (hull.basis.T @ normal)
    length = float(np.linalg.norm(normal))
    origin = np.zeros_like(hull.offset)
    if length <= RANK_TOLERANCE * float(np.linalg.norm(hull.offset)):
        return AffineHull(origin, hull.basis)
    return AffineHull(origin, np.column_stack([hull.basis, normal / length]))
