"""Smooth queries in closed form, of one to three variables, with every kind at least twice."""

import numpy as np

from geomdp.workloads.smooth import GaussianMixture, Logistic, Polynomial, SoftRange, Waves

FORMS = [
    GaussianMixture([[0.2]], [1.0], 0.4),
    GaussianMixture([[0.3, -0.5], [-0.8, 0.1]], [1.0, -0.5], 0.5),
    GaussianMixture([[0.3, -0.5, 1.4]], [2.0], 0.7),
    Polynomial([[4]], [1.0]),
    Polynomial([[3, 0], [1, 2], [0, 0]], [1.0, -2.0, 0.5]),
    Logistic([3.0], -0.5),
    Logistic([2.0, -1.0], 0.3),
    Waves([[3.0]], [1.0], [0.4]),
    Waves([[2.0, -1.0], [0.5, 3.0]], [1.0, -0.7], [0.0, 0.3]),
    SoftRange([-0.5], [0.6], 0.2),
    SoftRange([-0.5, -2.0], [0.6, 0.1], 0.25),
]


def cube_points(n: int, dimension: int, seed: int = 0) -> np.ndarray:
    """Random points of the cube [-1, 1]^dimension. The first two are its corners +-(1, ..., 1)."""
    points = np.random.default_rng(seed).uniform(-1, 1, (n, dimension))
    points[0], points[1] = 1, -1
    return points


def cosines(points: np.ndarray, size: int) -> np.ndarray:
    """prod_i T_{m_i}(x_i) of each point, by definition: an array (n, t, .., t) for t = `size`."""
    waves = np.cos(np.arccos(points)[:, :, None] * np.arange(size))
    letters = "abcdef"[: points.shape[1]]
    subscripts = ",".join(f"n{letter}" for letter in letters)
    return np.einsum(f"{subscripts}->n{letters}", *np.moveaxis(waves, 1, 0))
