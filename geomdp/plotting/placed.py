"""Add points and lines to a picture: projections, hyperplanes, random walks and packings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from geomdp._validation import batch, finite_array, positive, require_type
from geomdp.bodies import Body, Halfspace
from geomdp.bodies.base import checked_body
from geomdp.geometry import project
from geomdp.plotting.looks import COLOURS, axes_of, equal_units

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

#: Length of the supporting line drawn through a projected point, divided by the body's diameter.
TANGENT = 0.3
#: A point at a distance of at most `MOVED` times the body's radius from the body counts as a point
#: of the body.
MOVED = 1e-7


def draw_projection(
    body: Body,
    answers: npt.ArrayLike,
    ax: Axes | None = None,
    *,
    colour: str = COLOURS[3],
    label: str = "",
) -> list[Artist]:
    """Draw noisy answers, the nearest points of a body, and the segments that join them.

    A segment is normal to the boundary of the body at the nearest point. In the plane, the
    supporting line through that point is drawn as well. Answers inside the body are their own
    nearest points.

    Parameters
    ----------
    body : Body
        K in R^2 or R^3.
    answers : (b, m) array_like
        b noisy answers; m is the dimension of K.
    ax, colour, label : Axes, str, str
        As for `draw`, which draws the body itself.

    Returns
    -------
    list of Artist
        The answers as rings and the nearest points as dots. Then, for each answer outside the body,
        the segment and, in the plane, the supporting line.

    Raises
    ------
    ValueError
        For answers, a body or axes of other dimensions.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import geomdp as gd
    >>> figure, ax = plt.subplots()
    >>> disc = gd.bodies.Ball(2)
    >>> artists = gd.plotting.draw_projection(disc, [[3.0, 4.0], [0.1, 0.2]], ax)
    >>> answers, nearest = artists[:2]
    >>> nearest.get_xydata().round(6).tolist()
    [[0.6, 0.8], [0.1, 0.2]]
    >>> len(artists)
    4
    >>> plt.close(figure)
    """
    points = batch(answers, checked_body(body).dimension, "answers")
    ax = axes_of(_planar_or_spatial(body), ax)
    nearest = np.array([project(body, point).point for point in points])
    ring = ax.plot(*points.T, ls="", marker="o", mfc="white", color=colour, label=label or "_")
    dots = ax.plot(*nearest.T, ls="", marker="o", ms=4, color=colour, label="_")
    artists: list[Artist] = [*ring, *dots]
    for start, end in zip(points, nearest, strict=True):
        length = float(np.linalg.norm(start - end))
        if length <= MOVED * body.radius():
            continue
        artists += ax.plot(*np.array([start, end]).T, color=colour, lw=1.0, label="_")
        if body.dimension == 2:
            normal = (start - end) / length
            along = TANGENT * body.half_diameter() * np.array([-normal[1], normal[0]])
            ends = np.array([end - along, end + along])
            artists += ax.plot(*ends.T, color=colour, lw=0.8, ls=(0, (4, 2)), label="_")
    equal_units(ax)
    return artists


def draw_hyperplane(
    halfspace: Halfspace, ax: Axes, *, colour: str = COLOURS[6], label: str = ""
) -> list[Artist]:
    """Draw the line {x : <normal, x> = offset}, the boundary of a halfspace, across a picture.

    ``ValueError`` for a halfspace of another dimension, or axes in space.

    Parameters
    ----------
    halfspace : Halfspace
        A halfspace of R^2, for instance from `Body.separate`.
    ax, colour, label : Axes, str, str
        As for `draw`; the axes must already contain a picture.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> import geomdp as gd
    >>> figure, ax = plt.subplots()
    >>> disc = gd.bodies.Ball(2)
    >>> artists = gd.plotting.draw(disc, ax)
    >>> separator = disc.separate(np.array([1.5, 1.0]))
    >>> (line,) = gd.plotting.draw_hyperplane(separator, ax, label="separates")
    >>> line.get_label()
    'separates'
    >>> plt.close(figure)
    """
    require_type(halfspace, Halfspace, "halfspace")
    normal = finite_array(halfspace.normal, "normal", ndim=1)
    if len(normal) != 2:
        raise ValueError(f"halfspace must lie in the plane, got dimension {len(normal)}")
    axes_of(2, ax)
    foot = normal * halfspace.offset / float(normal @ normal)
    line = ax.axline(
        (float(foot[0]), float(foot[1])),
        (float(foot[0] - normal[1]), float(foot[1] + normal[0])),
        color=colour,
        lw=1.2,
        label=label or "_",
    )
    return [line]


def draw_path(
    points: npt.ArrayLike, ax: Axes | None = None, *, colour: str = COLOURS[2], label: str = ""
) -> list[Artist]:
    """Draw the positions of a random walk, joined in order, with a ring at the start.

    ``ValueError`` for points of another shape, or axes of another dimension than the points.

    Parameters
    ----------
    points : (T, 2) or (T, 3) array_like
        T positions, for instance of one chain of `geomdp.geometry.sampling.run_chains`.
    ax, colour, label : Axes, str, str
        As for `draw`. The path comes first in the result, then the ring at its start.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> import geomdp as gd
    >>> from geomdp.geometry import sampling
    >>> disc, rng = gd.bodies.Ball(2), np.random.default_rng(0)
    >>> chains = sampling.run_chains(sampling.HitAndRun(), disc, np.zeros((1, 2)), rng, draws=20)
    >>> figure, ax = plt.subplots()
    >>> path, start = gd.plotting.draw_path(chains.draws[0], ax)
    >>> path.get_xydata().shape, start.get_xydata().shape
    ((20, 2), (1, 2))
    >>> plt.close(figure)
    """
    path = finite_array(points, "points", ndim=2)
    if len(path) == 0 or path.shape[1] not in (2, 3):
        raise ValueError(f"points must have shape (T, 2) or (T, 3), T >= 1, got {path.shape}")
    ax = axes_of(path.shape[1], ax)
    steps = ax.plot(*path.T, color=colour, marker="o", ms=2.5, lw=0.7, label=label or "_")
    start = ax.plot(*path[:1].T, color=colour, marker="o", ms=7, mfc="white", ls="", label="_")
    equal_units(ax)
    return [*steps, *start]


def draw_packing(
    centres: npt.ArrayLike,
    radius: float,
    ax: Axes | None = None,
    *,
    colour: str = COLOURS[4],
    label: str = "",
) -> list[Artist]:
    """Draw a packing: points of the plane, and a disc of the same radius around each point.

    Discs of a packing do not overlap. So an answer with an error below `radius` tells which centre
    was the truth. Discs that overlap are drawn in the same way. ``ValueError`` for centres of
    another shape, a radius that is not above 0, or axes in space.

    Parameters
    ----------
    centres : (N, 2) array_like
        Centres of the N discs.
    radius : float
        Radius of every disc, above 0.
    ax, colour, label : Axes, str, str
        As for `draw`. The discs come first in the result, then the centres.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import geomdp as gd
    >>> figure, ax = plt.subplots()
    >>> artists = gd.plotting.draw_packing([[0.0, 0.0], [2.0, 0.0], [1.0, 1.8]], 1.0, ax)
    >>> [type(artist).__name__ for artist in artists]
    ['Circle', 'Circle', 'Circle', 'Line2D']
    >>> plt.close(figure)
    """
    from matplotlib.patches import Circle

    middles = finite_array(centres, "centres", ndim=2)
    if middles.shape[1] != 2:
        raise ValueError(f"centres must have shape (N, 2), got {middles.shape}")
    size = positive(radius, "radius")
    ax = axes_of(2, ax)
    artists: list[Artist] = []
    for x, y in middles:
        disc = Circle((float(x), float(y)), size, fill=False, color=colour, lw=0.9)
        artists.append(ax.add_patch(disc))
    dots = ax.plot(*middles.T, ls="", marker="o", ms=3, color=colour, label=label or "_")
    equal_units(ax)
    return [*artists, *dots]


def _planar_or_spatial(body: Body) -> int:
    if body.dimension not in (2, 3):
        raise ValueError(f"body must have dimension 2 or 3 to be drawn, got {body.dimension}")
    return body.dimension
