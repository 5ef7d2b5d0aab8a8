"""The symmetric hull of a box with a corner at 0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from geomdp._typing import FloatArray
from geomdp.bodies.arguments import check_all_above_0, frozen_array
from geomdp.bodies.base import Body
from geomdp.bodies.oracles import Facets


@dataclass(frozen=True, eq=False)
class SymmetrisedBox(Body):
    """The convex hull of B and -B for the box B = [0, u_1] x ... x [0, u_m].

    With y_i = x_i / u_i, the body is {x : max_i (y_i)_+ + max_i (y_i)_- <= 1}, where a_+ = max(a,
    0) and a_- = max(-a, 0). In the coordinates y, it is the image of the cube [0, 1]^(m+1) under
    the map c -> (c_i - c_0)_i. For u = (1, ..., 1), it is the hull of all changes that adding or
    removing a record makes to the column sums of a table with m binary columns. Support, gauge,
    facets and exact uniform samples cost O(m) per point.

    Parameters
    ----------
    upper : (m,) array
        Side lengths u, finite and above 0, m >= 1.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> hexagon = gd.bodies.SymmetrisedBox([1.0, 1.0])
    >>> hexagon.gauge(np.array([[1.0, 1.0], [1.0, -1.0]])).tolist()
    [1.0, 2.0]
    >>> hexagon.volume()
    3.0
    """

    upper: FloatArray

    symmetric = True

    def __post_init__(self) -> None:
        upper = frozen_array(self.upper, "upper", ndim=1)
        check_all_above_0(upper, "upper")
        object.__setattr__(self, "upper", upper)

    def _summary(self) -> str:
        return f"sides {self.upper.min():g} to {self.upper.max():g}"

    @property
    def dimension(self) -> int:
        return len(self.upper)

    def support(self, directions: FloatArray) -> FloatArray:
        """The larger of sum (v_i u_i)_+ and sum (v_i u_i)_-, for each direction v."""
        above, below = np.maximum(directions, 0), np.maximum(-directions, 0)
        return np.asarray(np.maximum(above @ self.upper, below @ self.upper))

    def extreme_point(self, directions: FloatArray) -> FloatArray:
        above, below = directions > 0, directions < 0
        positive = (np.abs(directions) * self.upper * np.where(above, 1, -1)).sum(axis=1) >= 0
        return np.where(positive[:, None], above * self.upper, -(below * self.upper))

    def gauge(self, points: FloatArray) -> FloatArray:
        """max_i (x_i / u_i)_+ + max_i (x_i / u_i)_-."""
        ratios = points / self.upper
        high, low = ratios.max(axis=1), ratios.min(axis=1)
        return np.asarray(np.maximum(high, 0) - np.minimum(low, 0))

    def facets(self, points: FloatArray) -> Facets:
        """Normals e_i / u_i - e_j / u_j for the largest ratio x_i / u_i and the smallest x_j / u_j;
        the first term needs a ratio above 0, the second a ratio below 0.
        """
        ratios = points / self.upper
        rows = np.arange(len(ratios))
        first, last = ratios.argmax(axis=1), ratios.argmin(axis=1)
        normals = np.zeros(ratios.shape)
        normals[rows, first] += (ratios[rows, first] > 0) / self.upper[first]
        normals[rows, last] -= (ratios[rows, last] < 0) / self.upper[last]
        return Facets(self.gauge(points), normals)

    def radius(self) -> float:
        """||u||_2, the largest norm of a point."""
        return float(np.linalg.norm(self.upper))

    def sample_uniform(self, n: int, rng: np.random.Generator) -> FloatArray:
        """Exact uniform points, at cost O(m) each.

        For y = x / u, the set of all y with k given entries non-negative and the others negative
        has volume k! (m - k)! / m!, so the number k of non-negative entries is uniform on 0..m.
        Given k, the largest positive part, the largest negative part, and 1 minus their sum are
        Dirichlet(k, m - k, 1). Every other entry is uniform between 0 and the entry of the same
        sign with the largest modulus.
        """
        m = self.dimension
        sizes = rng.integers(m + 1, size=n)
        positive = np.arange(m) < sizes[:, None]
        # Gamma variables of shapes k, m - k and 1; the variable of shape 0 is 0.
        shapes = np.stack([sizes, m - sizes, np.ones(n)], axis=1).astype(np.float64)
        gammas = rng.standard_gamma(np.maximum(shapes, 1)) * (shapes > 0)
        tops = gammas[:, :2] / gammas.sum(axis=1, keepdims=True)
        heights = rng.random((n, m))
        for part in (positive, ~positive):
            # The first entry of each sign has the largest modulus.
            heights[part & (np.cumsum(part, axis=1) == 1)] = 1.0
        signed = np.where(positive, tops[:, :1], -tops[:, 1:]) * heights
        return np.asarray(rng.permuted(signed, axis=1) * self.upper)

    def second_moment(self) -> FloatArray:
        """E[x x^T] = (p / 2) (diag(u)^2 + u u^T) for uniform x, with p = (m + 3) / (6 (m + 1)).

        With y = x / u, k and the largest positive part a as in `sample_uniform`, E[a^2] given k is
        k (k + 1) / ((m + 1) (m + 2)). Hence E ||y||^2 = sum_k E[a^2] (1 + (k - 1) / 3) 2 / (m + 1)
        = m p. As y_i = z_i - z_0 for exchangeable z_0, ..., z_m, E[y_i y_j] = p / 2 for i != j.
        """
        m = self.dimension
        share = (m + 3) / (6 * (m + 1))
        return np.asarray(share / 2 * (np.diag(self.upper**2) + np.outer(self.upper, self.upper)))

    def volume(self) -> float:
        """(m + 1) times the product of the sides."""
        return float((self.dimension + 1) * np.prod(self.upper))

    def cvxpy_constraints(self, variable: Any) -> list[Any]:
        import cvxpy as cp

        parts = cp.Variable(2, nonneg=True)
        return [
            variable <= parts[0] * self.upper,
            variable >= -parts[1] * self.upper,
            cp.sum(parts) <= 1,
        ]
