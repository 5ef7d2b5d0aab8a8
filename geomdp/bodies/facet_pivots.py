"""Compiled simplex pivots on the facets of conv(+-v_i) or conv(v_i), used by ray shooting.

A facet is kept as the indices and signs of m vertices b_1..b_m on it and the inverse of the matrix
they form; its normal z solves <z, b_k> = (bound of b_k). See `ray_shooting` for the algorithm.
"""

from __future__ import annotations

import numba
import numpy as np

from geomdp.bodies.ray_shooting import PIVOT

#: Slack of the ratio test; far below the perturbation, far above rounding in <z, v_i>.
HARRIS_SLACK = 1e-12
#: A coordinate above minus this share of the sum of all their sizes counts as not negative.
NEGATIVE = 1e-11
#: Pivots between two recomputations of the inverse.
REFACTOR = 100
#: Facets of earlier rays among which the next one looks for its start; as dear as a few pivots.
POOL = 128
#: Pivots allowed per ray and dimension; steepest-edge runs need about 6 from a cold start.
PIVOTS_PER_DIMENSION = 200


@numba.njit(cache=True)
def inverse_of(columns, basis, signs):  # type: ignore[no-untyped-def]
    """Row j is the solution w of <w, b_k> = (1 if k == j else 0)."""
    size = columns.shape[1]
    matrix = np.empty((size, size))
    for k in range(size):
        matrix[k] = signs[k] * columns[basis[k]]
    return np.ascontiguousarray(np.linalg.inv(matrix).T)


@numba.njit(cache=True)
def _steepest(inverse, coordinates):  # type: ignore[no-untyped-def]
    """The negative coordinate with the steepest edge, or -1 if none is negative."""
    tolerance = -NEGATIVE * np.abs(coordinates).sum()
    best, leaving = 0.0, -1
    for k in range(len(coordinates)):
        if coordinates[k] < tolerance:
            gain = coordinates[k] ** 2 / (inverse[k] @ inverse[k])
            if gain > best:
                best, leaving = gain, k
    return leaving


@numba.njit(cache=True)
def _entering(bounds, lower, values, slopes):  # type: ignore[no-untyped-def]
    """Vertex whose bound stops z first, by the ratio test of Harris, and the length of the step.

    The products stay in [-lower * bound, bound]; `lower` is 1, or infinite for one-sided bounds.
    """
    smallest = PIVOT * (np.abs(slopes).max() if lower == 1.0 else slopes.max())
    limit = np.inf
    for i in range(len(slopes)):
        size = abs(slopes[i])
        if size > smallest:
            gap = bounds[i] - values[i] if slopes[i] > 0 else lower * bounds[i] + values[i]
            limit = min(limit, (gap + HARRIS_SLACK) / size)
    pivot, entering, length = 0.0, -1, 0.0
    for i in range(len(slopes)):
        size = abs(slopes[i])
        if size > smallest and size > pivot:
            gap = bounds[i] - values[i] if slopes[i] > 0 else lower * bounds[i] + values[i]
            if gap / size <= limit:
                pivot, entering, length = size, i, gap / size
    return entering, max(length, 0.0)


@numba.njit(cache=True)
def _exchange(inverse, vertex, leaving):  # type: ignore[no-untyped-def]
    """Put the signed `vertex` in the place of the basis vertex `leaving`: a rank-one update."""
    column = inverse @ vertex
    inverse[leaving] /= column[leaving]
    pivot_row = inverse[leaving]
    for k in range(len(column)):
        if k != leaving:
            factor = column[k]
            for i in range(len(column)):
                inverse[k, i] -= factor * pivot_row[i]


@numba.njit(cache=True)
def _coordinates(inverse, normal, point, direction):  # type: ignore[no-untyped-def]
    """Coordinates in the basis of the point where the ray meets the plane of the facet."""
    reach = normal @ direction
    along = inverse @ direction
    if reach <= NEGATIVE * np.abs(along).sum():
        return along  # the plane is met at infinity
    time = (1.0 - normal @ point) / reach
    return inverse @ point + time * along


@numba.njit(cache=True)
def _exit_facet(columns, bounds, lower, basis, signs, point, direction):  # type: ignore[no-untyped-def]
    """Pivot `basis`, `signs` in place to the facet the ray leaves through; normal and pivots."""
    size = columns.shape[1]
    inverse = inverse_of(columns, basis, signs)
    normal = bounds[basis] @ inverse
    if lower == 1.0 and normal @ direction < 0:  # the opposite facet is met first
        signs[:] = -signs
        inverse, normal = -inverse, -normal
    values = columns @ normal
    pivots, converged = 0, False
    while pivots < PIVOTS_PER_DIMENSION * size:
        leaving = _steepest(inverse, _coordinates(inverse, normal, point, direction))
        if leaving < 0:
            converged = True
            break
        edge = -inverse[leaving]
        slopes = columns @ edge
        entering, length = _entering(bounds, lower, values, slopes)
        if entering < 0:  # an unbounded edge: 0 is on the boundary
            break
        basis[leaving] = entering
        signs[leaving] = 1.0 if slopes[entering] > 0 else -1.0
        _exchange(inverse, signs[leaving] * columns[entering], leaving)
        normal = normal + length * edge
        values += length * slopes
        pivots += 1
        if pivots % REFACTOR == 0:
            inverse = inverse_of(columns, basis, signs)
            normal = bounds[basis] @ inverse
            values = columns @ normal
    # True bounds 1 on the same vertices; the division makes the slab hold every vertex.
    normal = np.ones(size) @ inverse_of(columns, basis, signs)
    values = columns @ normal
    height = values.max()
    if lower == 1.0:
        height = max(height, -values.min())
    return normal / height, pivots, converged


@numba.njit(cache=True)
def shoot(columns, bounds, lower, basis, signs, points, directions):  # type: ignore[no-untyped-def]
    """Exit facets of a batch of rays, each started at the best of the last facets found."""
    rays, size = points.shape
    normals = np.empty((rays, size))
    pivots = np.empty(rays, dtype=np.int64)
    converged = np.empty(rays, dtype=np.bool_)
    bases = np.empty((rays + 1, size), dtype=np.int64)
    orientations = np.empty((rays + 1, size))
    bases[0], orientations[0] = basis, signs
    for ray in range(rays):
        start, best = 0, np.inf
        for k in range(max(0, ray - POOL), ray):
            reach, depth = 0.0, 0.0
            for i in range(size):
                reach += normals[k, i] * directions[ray, i]
                depth += normals[k, i] * points[ray, i]
            time = np.inf
            if reach > 0:
                time = (1.0 - depth) / reach
            elif reach < 0 and lower == 1.0:  # the opposite facet
                time = (1.0 + depth) / -reach
            if time < best:
                start, best = k + 1, time
        facet, orientation = bases[ray + 1], orientations[ray + 1]
        facet[:], orientation[:] = bases[start], orientations[start]
        normals[ray], pivots[ray], converged[ray] = _exit_facet(
            columns, bounds, lower, facet, orientation, points[ray], directions[ray]
        )
    return normals, pivots, converged
