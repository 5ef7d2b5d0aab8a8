"""Mean squared norm of a uniform point of a body. It determines the error of K-norm noise."""

from __future__ import annotations

import math

import numpy as np

from geomdp._typing import RandomState
from geomdp._validation import probability, whole
from geomdp.bodies.base import Body
from geomdp.bodies.operand import checked_body
from geomdp.bodies.operations.products import Product
from geomdp.bodies.oracles import MissingOracle
from geomdp.bodies.polytopes.triangulated import triangulated
from geomdp.geometry.concentration import hoeffding_deviation
from geomdp.geometry.results import Estimate


def second_moment(
    body: Body, rng: RandomState = None, samples: int = 10_000, level: float = 1e-3
) -> Estimate:
    """E ||U||_2^2 for U uniform on a body (within its affine hull).

    The value is exact if the body has the matrix E U U^T in closed form, for small polytopes with
    listed vertices, and for products of bodies with exact values. For any other body, it is a mean
    over exact uniform points.

    epsilon-DP K-norm noise Z of a body with an affine hull of dimension r has
    E||Z||^2 = (r + 1) (r + 2) E||U||^2 / epsilon^2.

    Parameters
    ----------
    body : Body
        K, with a closed-form second moment or an exact uniform sampler.
    rng : numpy Generator, int or None
        Randomness of the points.
    samples : int
        Number of points n, at least 2.
    level : float
        Bound on the probability that the interval misses E ||U||^2, in (0, 1).

    Returns
    -------
    Estimate
        If the value is not exact, the interval is mean -+ R^2 sqrt(ln(2 / level) / (2 n)), cut to
        [0, R^2], with R = `body.radius()`, by Hoeffding's inequality.

    Raises
    ------
    MissingOracle
        If K has no closed form and no exact sampler: for the mean of points from Markov chains, no
        error bound is proved.
    ValueError
        For `samples` < 2 or `level` outside (0, 1).

    References
    ----------
    Hardt and Talwar (2010); formula sheet JL-L14.

    Examples
    --------
    >>> import geomdp as gd
    >>> round(gd.geometry.second_moment(gd.bodies.Ball(3)).value, 6)
    0.6
    >>> cylinder = gd.bodies.Product([gd.bodies.Ball(2), gd.bodies.Box.centred([1.0])])
    >>> round(gd.geometry.second_moment(cylinder).value, 6)
    0.833333
    """
    samples, level = whole(samples, "samples", minimum=2), probability(level, "level")
    closed = _closed(checked_body(body))
    if closed is not None:
        return Estimate.exact(closed)
    if not body.implements(Body.sample_uniform):
        raise MissingOracle(body, "second moment", "a closed form or an exact uniform sampler")
    points = body.sample_uniform(samples, np.random.default_rng(rng))
    squares = np.einsum("nm,nm->n", points, points)
    largest = body.radius() ** 2
    mean, reach = float(squares.mean()), hoeffding_deviation(largest, samples, level)
    interval = (max(mean - reach, 0.0), min(mean + reach, largest))
    return Estimate(mean, float(squares.std(ddof=1)) / math.sqrt(samples), interval, samples)


def _closed(body: Body) -> float | None:
    """The trace of the second moment in closed form, or None; products add up their factors."""
    if isinstance(body, Product):
        parts = [_closed(factor) for factor in body.bodies]
        known = [part for part in parts if part is not None]
        return math.fsum(known) if len(known) == len(parts) else None
    if body.implements(Body.second_moment):
        return float(np.trace(body.second_moment()))
    simplices = triangulated(body)
    return None if simplices is None else float(np.trace(simplices.second_moment()))
