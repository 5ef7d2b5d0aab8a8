"""Properties of the hull of a list of points: symmetry, diameter, equal edges."""

from __future__ import annotations

import math

import numpy as np

from geomdp._typing import FloatArray

#: `half_diameter_of` compares all pairs of points if the comparison takes at most this many
#: multiplications.
PAIRS_WORK = 10**8
#: Squared lengths count as equal up to this relative difference, which rounding can cause.
EQUAL_LENGTHS = 1e-12
#: Largest number N of points that are tested for equal distances. In R^m the test takes O(N^2 m).
LARGEST_TESTED = 2048


def closed_under_negation(points: FloatArray) -> bool:
    """Whether the set of rows equals the set of their negatives exactly."""
    if not np.array_equal(points.min(axis=0), -points.max(axis=0)):
        return False  # decided without sorting the rows
    # Adding 0 turns -0 into 0. The two numbers compare equal, but their bits differ.
    return np.array_equal(np.unique(points + 0.0, axis=0), np.unique(-points + 0.0, axis=0))


def image_closed_under_negation(points: FloatArray, matrix: FloatArray) -> FloatArray:
    """Distinct rows of points @ matrix^T with their exact negatives, for points in pairs x and -x;
    without 0, unless 0 is alone.
    """
    if not points.any():
        return np.zeros((1, len(matrix)))
    first = np.argmax(points != 0, axis=1)
    # From each pair of opposite points, take the point whose first nonzero entry is above 0.
    half = points[points[np.arange(len(points)), first] > 0] @ matrix.T
    return np.unique(np.vstack([half, -half]) + 0.0, axis=0)


def half_diameter_of(points: FloatArray) -> float:
    """Half the largest distance between two points, or an upper bound for too many pairs."""
    centred = points - points.mean(axis=0)
    squares = np.einsum("nm,nm->n", centred, centred)
    if len(points) * points.size > PAIRS_WORK:
        return math.sqrt(squares.max())
    largest = (squares[:, None] + squares - 2 * centred @ centred.T).max()
    return math.sqrt(max(largest, 0.0)) / 2


def common_edge(vertices: FloatArray) -> float | None:
    """The distance between any two points if all are equal; None if not, or for too many points."""
    count = len(vertices)
    if count == 1:
        return 0.0
    if count > LARGEST_TESTED:
        return None
    centred = vertices - vertices.mean(axis=0)
    products = centred @ centred.T
    squares = np.diag(products)[:, None] + np.diag(products) - 2 * products
    squares = squares[np.triu_indices(count, 1)]
    if np.ptp(squares) > EQUAL_LENGTHS * squares.max():
        return None
    return math.sqrt(squares.mean())
