"""Projection of one target on a body, directly or through a linear map."""

from __future__ import annotations

import numpy.typing as npt

from geomdp.bodies.base import Body
from geomdp.geometry.projection.projector import Projector
from geomdp.geometry.results import Projection


def project(
    body: Body, target: npt.ArrayLike, tol: float = 1e-8, warm_start: Projection | None = None
) -> Projection:
    """Nearest point of a body to a target: argmin over y in K of ||y - target||_2.

    Parameters
    ----------
    body : Body
        K in R^m, with `project`, a list of vertices, or `extreme_point`.
    target : (m,) array
        Where to project from.
    tol : float
        Relative tolerance: converged when gap <= tol * scale^2. Scale is the largest distance of a
        vertex from the mean of the vertices; for a body known by its extreme points, of those met
        from the midpoint of the first two, which is at most the diameter; for a closed form,
        `body.radius()`.
    warm_start : Projection, optional
        An earlier projection on the same body; its active set is the start.

    Returns
    -------
    Projection
        The point, with the Frank-Wolfe gap max over x in K of <target - y, x - y> recomputed at the
        end; ||y - y*||^2 <= gap. A target inside K is returned itself, with gap 0. Without progress
        the search ends with `converged` False and the gap it has.

    Raises
    ------
    MissingOracle
        If K offers none of the three routes.
    ValueError
        For a target of the wrong shape or not finite, or tol <= 0.

    Notes
    -----
    Cost on N listed vertices: 5 to 15 products of the (N, m) vertices with a vector, and 2 to 4
    exchanges per member of the active set at O(m k), k <= m + 1 its size. By oracle: about one
    call per exchange.

    References
    ----------
    Wolfe (1976), "Finding the nearest point in a polytope"; formula sheet X-MNP.
    """
    return Projector(body).nearest(target, tol=tol, warm_start=warm_start)


def project_image(
    matrix: npt.ArrayLike,
    body: Body,
    target: npt.ArrayLike,
    tol: float = 1e-8,
    warm_start: Projection | None = None,
) -> Projection:
    """Point of a body whose image is nearest to a target: argmin over y in K of ||A y - target||_2.

    Parameters
    ----------
    matrix : (d, m) array
        A.
    body : Body
        K in R^m, with a list of vertices or `extreme_point`.
    target : (d,) array
        Where to project from.
    tol : float
        Relative tolerance: converged when gap <= tol * scale^2, scale as for `project` on A K.
    warm_start : Projection, optional
        An earlier projection with the same body and matrix; its active set is the start.

    Returns
    -------
    Projection
        `point` y in K (m,), not its image; gap max over x in K of <target - A y, A x - A y>, so
        ||A y - A y*||^2 <= gap. Where A is not injective y is one of many.

    Raises
    ------
    MissingOracle
        If K offers neither route.
    ValueError
        For shapes that do not fit, entries that are not finite, or tol <= 0.

    References
    ----------
    Nikolov (2022), Algorithm 1; formula sheet JL-A1, X-MNP.
    """
    return Projector(body, matrix).nearest(target, tol=tol, warm_start=warm_start)
