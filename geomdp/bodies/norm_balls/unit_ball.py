"""The Euclidean unit ball: volume, uniform points and chords, shared by balls and ellipsoids."""

from __future__ import annotations

import math

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import whole
from geomdp.bodies.norm_balls.lp_balls import log_lp_ball_volume


def log_unit_ball_volume(dimension: int) -> float:
    """Logarithm of kappa_m = pi^(m/2) / Gamma(m/2 + 1), the volume of the unit ball (GEN-4)."""
    return log_lp_ball_volume(dimension, 2.0)


def unit_ball_volume(dimension: int) -> float:
    """Volume kappa_m = pi^(m/2) / Gamma(m/2 + 1) of the Euclidean unit ball of R^m (GEN-4).

    Parameters
    ----------
    dimension : int
        m, at least 1.

    Returns
    -------
    float
        kappa_m.

    Examples
    --------
    >>> import geomdp as gd
    >>> [round(gd.geometry.unit_ball_volume(m), 4) for m in (1, 2, 3, 20)]
    [2.0, 3.1416, 4.1888, 0.0258]
    """
    return math.exp(log_unit_ball_volume(whole(dimension, "dimension")))


def unit_ball_points(n: int, dimension: int, rng: np.random.Generator) -> FloatArray:
    """Uniform points (n, m) of the unit ball: Gaussian directions times norms U^(1/m)."""
    points = rng.standard_normal((n, dimension))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    return np.asarray(points * rng.random((n, 1)) ** (1 / dimension))


def ball_chord(points: FloatArray, directions: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Ends lo, hi (b,) of {t : ||x + t u||_2 <= 1} for x in the ball, u != 0, to full accuracy."""
    square = np.einsum("bm,bm->b", directions, directions)
    slope = np.einsum("bm,bm->b", points, directions)
    below = np.minimum(np.einsum("bm,bm->b", points, points) - 1, 0.0)
    far = -(slope + np.copysign(np.sqrt(slope**2 - square * below), slope))
    first = far / square
    second = np.divide(below, far, out=np.zeros_like(far), where=far != 0)
    return np.minimum(first, second), np.maximum(first, second)
