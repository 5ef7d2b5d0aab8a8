"""QR factors of an affinely independent set of points, updated when a point joins or leaves.

The columns of the (d+1, k) matrix M are the lifted points (p_j, 1). Points p_1..p_k in R^d are
affinely independent if and only if M has full column rank. The factors of M = Q R are kept as
arrays. The point of the affine hull nearest to a target b in R^d is sum_j w_j p_j, where

    R w = Q^T (b, 0) + nu Q^T e,   e = (0, .., 0, 1),

and nu makes sum_j w_j = e^T M w = 1. No normal equations are formed, so the nearest point is
accurate even if some points are nearly equal. M does not depend on b, so the factors serve every
target. The caller scales the points to norm about 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from geomdp._numerics.compilation import numba
from geomdp._typing import FloatArray, IntArray

#: A lifted point nearer than this to the span of the others counts as dependent. The value is 45
#: machine epsilons. It is just above the rounding error of one orthogonalisation pass over points
#: of norm about 1.
DEPENDENT = 1e-14
#: If a pass shortens a vector to this share of its length or less, another pass follows. A share
#: near 1/sqrt 2 keeps Q orthonormal to machine precision (Daniel, Gragg, Kaufman and Stewart 1976).
CANCELLATION = 0.7
#: Largest number of passes. A vector that even the last pass shortens to the share `CANCELLATION`
#: or less counts as dependent. Two passes suffice for an independent vector; the third pass is a
#: safety margin.
PASSES = 3


class Factor(NamedTuple):
    """The factors Q and R, the points p_1..p_k (rows of the caller's table of lifted points), and
    their convex weights; the first k = `size[0]` of the `capacity` entries are in use.
    """

    basis: FloatArray  # (capacity, d+1): rows are the columns of Q
    triangle: FloatArray  # (capacity, capacity): R
    image: FloatArray  # (capacity,): Q^T (b, 0)
    target: FloatArray  # (d+1,): (b, 0)
    members: IntArray  # (capacity,): row of each point in the table
    weights: FloatArray  # (capacity,)
    size: IntArray  # (1,): number of points k


def empty_factor(target: FloatArray, capacity: int) -> Factor:
    """Factors of no points, with room for `capacity` points and with the `target` b (d,)."""
    return Factor(
        basis=np.zeros((capacity, len(target) + 1)),
        triangle=np.zeros((capacity, capacity)),
        image=np.zeros(capacity),
        target=np.append(target, 0.0),
        members=np.zeros(capacity, dtype=np.int64),
        weights=np.zeros(capacity),
        size=np.zeros(1, dtype=np.int64),
    )


def with_capacity(factor: Factor, capacity: int) -> Factor:
    """Return `factor`, or a larger copy if `factor` has no room for `capacity` points."""
    old = len(factor.members)
    if capacity <= old:
        return factor
    grown = empty_factor(factor.target[:-1], max(capacity, 2 * old))
    grown.basis[:old] = factor.basis
    grown.triangle[:old, :old] = factor.triangle
    for name in ("image", "members", "weights"):
        getattr(grown, name)[:old] = getattr(factor, name)
    grown.size[0] = factor.size[0]
    return grown


def load(factor: Factor, points: FloatArray, weights: FloatArray) -> None:
    """Make the rows of `points` (n, d+1) the members, with `weights` (n,) scaled to sum to 1;
    dependent rows, and rows beyond the capacity, are left out.
    """
    count = len(points)
    factor.size[0] = 0
    if 1 < count <= min(len(factor.members), points.shape[1]):
        columns, triangle = np.linalg.qr(points.T)
        diagonal = np.abs(np.diag(triangle))
        if diagonal.min() > DEPENDENT:
            factor.basis[:count], factor.triangle[:count, :count] = columns.T, triangle
            factor.image[:count] = columns.T @ factor.target
            factor.members[:count] = np.arange(count)
            factor.size[0] = count
    if factor.size[0] == 0:
        for row in range(count):
            insert(factor, points, row)
    kept = weights[factor.members[: factor.size[0]]]
    factor.weights[: factor.size[0]] = kept / kept.sum()


@numba.njit(cache=True)
def insert(factor: Factor, points: FloatArray, row: int) -> bool:
    """Append the lifted point points[row] with weight 0; False if dependent or without room."""
    k = factor.size[0]
    if k == factor.basis.shape[0]:
        return False
    basis = factor.basis[:k]
    rest = points[row].copy()
    length = np.sqrt(np.dot(rest, rest))
    coefficients = np.zeros(k)
    settled = False
    for _ in range(PASSES):
        part = np.dot(basis, rest)
        rest -= np.dot(part, basis)
        coefficients += part
        shorter = np.sqrt(np.dot(rest, rest))
        settled = shorter > CANCELLATION * length
        length = shorter
        if settled or length <= DEPENDENT:
            break
    if not settled or length <= DEPENDENT:
        return False
    factor.triangle[:k, k] = coefficients
    factor.triangle[k, k] = length
    factor.basis[k] = rest / length
    factor.image[k] = np.dot(factor.basis[k], factor.target)
    factor.members[k] = row
    factor.weights[k] = 0.0
    factor.size[0] = k + 1
    return True


@numba.njit(cache=True)
def delete(factor: Factor, position: int) -> None:
    """Drop the point at `position`; Givens rotations make R triangular again."""
    k = factor.size[0]
    triangle, basis, image = factor.triangle, factor.basis, factor.image
    for j in range(position, k - 1):
        factor.members[j] = factor.members[j + 1]
        factor.weights[j] = factor.weights[j + 1]
    for i in range(k):
        for j in range(max(position, i - 1), k - 1):
            triangle[i, j] = triangle[i, j + 1]
    for i in range(position, k - 1):
        radius = np.hypot(triangle[i, i], triangle[i + 1, i])
        cosine, sine = triangle[i, i] / radius, triangle[i + 1, i] / radius
        for j in range(i, k - 1):
            upper, lower = triangle[i, j], triangle[i + 1, j]
            triangle[i, j] = cosine * upper + sine * lower
            triangle[i + 1, j] = cosine * lower - sine * upper
        for j in range(basis.shape[1]):
            upper, lower = basis[i, j], basis[i + 1, j]
            basis[i, j] = cosine * upper + sine * lower
            basis[i + 1, j] = cosine * lower - sine * upper
        upper, lower = image[i], image[i + 1]
        image[i] = cosine * upper + sine * lower
        image[i + 1] = cosine * lower - sine * upper
    factor.size[0] = k - 1


@numba.njit(cache=True)
def affine_weights(factor: Factor) -> FloatArray:
    """Weights (k,) of the point of the affine hull nearest to the target.

    They sum to 1 up to a rounding error proportional to the largest weight, which can be huge. So
    the caller shortens the step towards them first, and only then scales the result to sum to 1.
    """
    k = factor.size[0]
    last = factor.basis[:k, -1].copy()
    image = factor.image[:k]
    shift = (1.0 - np.dot(last, image)) / np.dot(last, last)
    result: FloatArray = image + shift * last
    for i in range(k - 1, -1, -1):
        if i + 1 < k:
            result[i] -= np.dot(factor.triangle[i, i + 1 : k], result[i + 1 : k])
        result[i] /= factor.triangle[i, i]
    return result
