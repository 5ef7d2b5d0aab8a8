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
    """Return `workload`; ``ValueError`` if it is not a `Workload`."""
    if not isinstance(workload, Workload):
        raise ValueError(f"workload must be a Workload, got {type(workload).__name__}")
    return workload


def checked_size(workload: Workload) -> Workload:
    """Return `workload`; ``ValueError`` if its answers are too large or too small.

    The largest l1 norm of an answer vector must be 0 or from 1e-60 to 1e60.
    """
    with np.errstate(over="ignore"):
        radius = workload.l1_radius()
    if radius != 0 and not LEAST_ANSWER <= radius <= LARGEST_ANSWER:
        raise ValueError(
            f"workload must have answers with a largest l1 norm from {LEAST_ANSWER:g} to "
            f"{LARGEST_ANSWER:g}, got {radius:g}: choose another unit"
        )
    return workload


def pure_only(privacy: object, mechanism: str) -> PureDP:
    """Return `privacy`; ``ValueError`` if it is not pure differential privacy."""
    if not isinstance(privacy, PureDP):
        raise ValueError(f"privacy must be PureDP for {mechanism}, got {privacy!r}")
    return privacy


def l1_sensitivity(workload: Workload, adjacency: Adjacency) -> float:
    """Upper bound on the l1 change of the sum of answer vectors between neighbours.

    Q(x) is the answer vector of an element x. The result bounds max ||Q(x) - Q(x')||_1 under
    replace-one and max ||Q(x)||_1 under add/remove (GEN-1, in units of sums). ``ValueError`` if
    the bound is not finite, or if it is 0: the sums of neighbours are then the same and need no
    noise.
    """
    replace_one = _checked(workload, adjacency)
    return _not_constant(workload.l1_diameter() if replace_one else workload.l1_radius())


def l2_sensitivity(workload: Workload, adjacency: Adjacency) -> float:
    """Upper bound on the Euclidean change of the sum of answer vectors between neighbours.

    The same as `l1_sensitivity`, with l2 norms in place of l1 norms.
    """
    replace_one = _checked(workload, adjacency)
    return _not_constant(workload.l2_diameter() if replace_one else workload.l2_radius())


def whole_square(sensitivity: float) -> int:
    """Upper bound on the squared l2 sensitivity of whole-number answers.

    The exact square is a whole number. `sensitivity` is its root in float64, computed from closed
    forms or from sums of squares with a relative error far below 1e-9. The result allows for this
    error.
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
    """The public subspace that contains the mean answers of every data set.

    Let Q(x) be the answers of an element x to the m queries. Under replace-one the subspace is the
    affine hull of {Q(x)}. Under add/remove sums are divided by a declared n. The subspace is then
    the linear span of this hull, with offset 0. The dimension of the subspace is the effective
    dimension r >= 1 of the workload (JL-DEF), and the basis (m, r) of the subspace is orthonormal.
    ``ValueError`` if the dimension is 0. Under replace-one, this happens if the workload is
    constant. Under add/remove, it happens if all answers are 0.
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
