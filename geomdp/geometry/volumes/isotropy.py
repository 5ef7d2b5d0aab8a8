"""Mean, covariance and isotropic constant of the uniform distribution on a body."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import whole
from geomdp.bodies.base import Body
from geomdp.bodies.polytopes.triangulated import triangulated
from geomdp.geometry.results import Estimate
from geomdp.geometry.sampling.samplers import sample_uniform
from geomdp.geometry.volumes.annealed import annealed_volume
from geomdp.geometry.volumes.volume import volume
from geomdp.privacy import Exact, SamplerStatus

#: Independent parts of the points whose spread gives the error of the isotropic constant.
PARTS = 16
#: Two-sided normal quantile of its interval.
NORMAL_95 = 1.959964


@dataclass(frozen=True)
class UniformMoments:
    """Mean and covariance of U uniform on a body, within its affine hull.

    Parameters
    ----------
    mean : (m,) array
        E U.
    covariance : (m, m) array
        E (U - E U)(U - E U)^T; its rank is the dimension of the hull.
    samples : int
        Points behind the estimate; 0 if both are known in closed form.
    sampler : Exact, Approximate or Heuristic
        Status of the points.
    """

    mean: FloatArray
    covariance: FloatArray
    samples: int
    sampler: SamplerStatus


def covariance(body: Body, rng: RandomState = None, samples: int = 10_000) -> UniformMoments:
    """Mean and covariance of the uniform distribution on a body.

    In closed form where the body knows its centroid and second moment, also by triangulation of a
    small polytope; otherwise of points of `sample_uniform`.

    Parameters
    ----------
    body : Body
        In R^m, with closed forms, an exact sampler or chords.
    rng : numpy Generator, int or None
        Randomness of the points.
    samples : int
        Number of points, at least 2.

    Returns
    -------
    UniformMoments

    Raises
    ------
    MissingOracle
        If the body has none of these.
    ValueError
        For `samples` < 2 or an unbounded body.
    """
    samples = whole(samples, "samples", minimum=2)
    closed = _closed(body)
    if closed is not None:
        return closed
    drawn = sample_uniform(body, samples, rng)
    spread = np.atleast_2d(np.cov(drawn.points, rowvar=False))
    return UniformMoments(drawn.points.mean(axis=0), spread, samples, drawn.sampler)


def isotropic_constant(body: Body, rng: RandomState = None, samples: int = 10_000) -> Estimate:
    """Isotropic constant L = (det Cov U)^(1/(2 r)) / vol(K)^(1/r), U uniform on K.

    r is the dimension of the affine hull, in which determinant and volume are taken. L does not
    change under invertible affine maps; it is least for ellipsoids, 1 / sqrt(12) for boxes, and
    bounded by an absolute constant (Klartag and Lehec 2024, arXiv 2412.15044): K-norm noise
    of a body in isotropic position costs L vol(K)^(1/r) in each direction.

    Parameters
    ----------
    body : Body
        K, not a single point; volume by `geomdp.volume` where that is exact, else by annealing.
    rng : numpy Generator, int or None
        Randomness of points and volumes.
    samples : int
        Number of points for the covariance, at least 32 (r + 1) if it has no closed form.

    Returns
    -------
    Estimate
        With the normal interval at 95% from the spread between 16 parts of the points and the
        error of the volume; exact if both are known.

    Raises
    ------
    MissingOracle
        If K has neither a sampler nor chords.
    ValueError
        For a single point, an unbounded body, or too few samples.

    References
    ----------
    Hardt and Talwar 2010 (K-norm noise and isotropic position); formula sheet GEN-4, JL-L14.
    """
    samples, generator = whole(samples, "samples", minimum=2), np.random.default_rng(rng)
    hull = body.affine_hull()
    rank = hull.dimension
    if rank == 0:
        raise ValueError(f"body must have more than one point, got {body!r}")
    size = _volume(body, generator)
    closed = _closed(body)
    if closed is not None:
        root = _root_determinant(hull.basis.T @ closed.covariance @ hull.basis)
        spread, count = 0.0, 0
    else:
        whole(samples, "samples", minimum=2 * PARTS * (rank + 1))
        points = hull.coordinates(sample_uniform(body, samples, generator).points)
        root = _root_determinant(np.atleast_2d(np.cov(points, rowvar=False)))
        parts = [
            _root_determinant(np.atleast_2d(np.cov(part, rowvar=False)))
            for part in np.array_split(points, PARTS)
        ]
        spread, count = float(np.std(parts, ddof=1)) / math.sqrt(PARTS) / root, samples
    value = root / size.value ** (1 / rank)
    relative = math.hypot(spread, size.stderr / size.value / rank)
    if relative == 0:
        return Estimate.exact(value)
    reach = NORMAL_95 * relative * value
    interval = (value - reach, value + reach)
    return Estimate(value, relative * value, interval, count + size.samples)


def _closed(body: Body) -> UniformMoments | None:
    """Moments in closed form, by the body itself or cut into simplices."""
    known: Body | None = body
    if not (
        body.implements(Body.second_moment) and (body.symmetric or body.implements(Body.centroid))
    ):
        known = triangulated(body)
    if known is None:
        return None
    mean = known.centroid()
    spread = known.second_moment() - np.outer(mean, mean)
    return UniformMoments(mean, spread, 0, Exact())


def _volume(body: Body, rng: np.random.Generator) -> Estimate:
    """Exact where there is a way, else by annealing."""
    if body.implements(Body.volume) or triangulated(body) is not None:
        return volume(body, rng)
    return annealed_volume(body, rng)


def _root_determinant(matrix: FloatArray) -> float:
    """(det S)^(1/(2 r))."""
    return math.exp(float(np.linalg.slogdet(matrix)[1]) / (2 * len(matrix)))
