"""Draw a body of two or three dimensions, or a linear image or a slice of any body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray
from geomdp._validation import finite_array, vector
from geomdp.bodies import Body
from geomdp.bodies.operand import checked_body
from geomdp.plotting.looks import COLOURS, axes_of, equal_units
from geomdp.plotting.outlines import Outline, shadow_outline, slice_outline

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

#: Default opacity of the inside of a body, for pictures in the plane and in space.
PLANE_ALPHA, SPACE_ALPHA = 0.2, 0.75
#: Direction from which light comes.
LIGHT = np.array([-0.35, -0.6, 0.72])
#: Let c be the cosine of the angle between the normal of a face and the light, or 0 if this cosine
#: is negative. The brightness of the face is 1 - `DIFFUSE` (1 - c), but at least
#: `LEAST_BRIGHTNESS`.
DIFFUSE, LEAST_BRIGHTNESS = 0.55, 0.6


def draw(
    body: Body,
    ax: Axes | None = None,
    *,
    colour: str = COLOURS[0],
    alpha: float | None = None,
    label: str = "",
) -> list[Artist]:
    """Draw a body of two or three dimensions.

    A body in R^2 or R^3 is drawn in its own coordinates. A body of dimension two or three in a
    larger space is drawn in orthonormal coordinates of its affine hull. For any other body, draw a
    linear image (`draw_shadow`) or a slice (`draw_slice`).

    Parameters
    ----------
    body : Body
        K, with a support function or listed vertices.
    ax : Axes, optional
        Axes to draw in, made with ``projection="3d"`` for three dimensions. By default, the axes of
        a new figure.
    colour : str
        Any colour of matplotlib.
    alpha : float, optional
        Opacity of the inside, in [0, 1]; by default 0.2 in the plane and 0.75 in space.
    label : str
        Entry of the legend; none by default.

    Returns
    -------
    list of Artist
        In the plane, a polygon, or a marker for a single point. In space, the surface and, if there
        are any, the edges. For a point or a segment in space, a line with markers. The attribute
        ``axes`` of every artist is set.

    Raises
    ------
    ValueError
        For a body of another dimension, or axes of another dimension than the picture.
    MissingOracle
        If the body has no support function and lists no vertices.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import geomdp as gd
    >>> figure, ax = plt.subplots()
    >>> artists = gd.plotting.draw(gd.bodies.CrossPolytope(2), ax, label="l1 ball")
    >>> [type(artist).__name__ for artist in artists]
    ['Polygon']
    >>> ax.get_aspect()
    1.0
    >>> plt.close(figure)
    """
    m, r = checked_body(body).dimension, body.effective_dimension
    if m in (2, 3):
        rows: FloatArray = np.eye(m)
    elif r in (2, 3):
        rows = body.affine_hull().basis.T
    else:
        raise ValueError(
            f"body must have 2 or 3 dimensions to be drawn, got {r}; "
            "draw_shadow and draw_slice draw bodies of other dimensions"
        )
    return draw_shadow(body, rows, ax, colour=colour, alpha=alpha, label=label)


def draw_shadow(
    body: Body,
    rows: npt.ArrayLike,
    ax: Axes | None = None,
    *,
    colour: str = COLOURS[0],
    alpha: float | None = None,
    label: str = "",
) -> list[Artist]:
    """Draw the linear image {rows @ x : x in K} of a body K of any dimension.

    Errors are as for `draw`, and ``ValueError`` also for rows of another shape.

    Parameters
    ----------
    body : Body
        K in R^m, with a support function or listed vertices.
    rows : (2, m) or (3, m) array_like
        Matrix of the map to the picture. Orthonormal rows give an orthogonal projection.
    ax, colour, alpha, label : Axes, str, float, str
        As for `draw`, which returns the same artists.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> import geomdp as gd
    >>> figure, ax = plt.subplots()
    >>> rows = np.array([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    >>> (polygon,) = gd.plotting.draw_shadow(gd.bodies.CrossPolytope(4), rows, ax)
    >>> sorted({tuple(corner) for corner in polygon.get_xy().round(6).tolist()})
    [(-1.0, 0.0), (0.0, -1.0), (0.0, 1.0), (1.0, 0.0)]
    >>> plt.close(figure)
    """
    rows = _picture_rows(rows, body)
    ax = axes_of(len(rows), ax)
    return _draw_outline(shadow_outline(body, rows), ax, colour, alpha, label)


def draw_slice(
    body: Body,
    centre: npt.ArrayLike,
    rows: npt.ArrayLike,
    ax: Axes | None = None,
    *,
    colour: str = COLOURS[0],
    alpha: float | None = None,
    label: str = "",
) -> list[Artist]:
    """Draw the slice {t : centre + t @ rows in K} of a body K of any dimension.

    ``ValueError`` for rows of another shape, a `centre` outside of K, or axes of another dimension
    than the picture; `MissingOracle` if the body has no membership test or no chords.

    Parameters
    ----------
    body : Body
        K in R^m, with a membership test and chords.
    centre : (m,) array_like
        A point of K, drawn at the origin of the picture.
    rows : (2, m) or (3, m) array_like
        Directions of the slice, one for each axis of the picture. Orthonormal rows keep lengths.
    ax, colour, alpha, label : Axes, str, float, str
        As for `draw`, which returns the same artists.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import numpy as np
    >>> import geomdp as gd
    >>> figure, ax = plt.subplots()
    >>> rows = np.eye(3)[:2]
    >>> (polygon,) = gd.plotting.draw_slice(gd.bodies.Ball(3), [0.0, 0.0, 0.6], rows, ax)
    >>> round(float(np.abs(polygon.get_xy()).max()), 6)
    0.8
    >>> plt.close(figure)
    """
    rows = _picture_rows(rows, body)
    found = slice_outline(body, vector(centre, body.dimension, "centre"), rows)
    return _draw_outline(found, axes_of(len(rows), ax), colour, alpha, label)


def _picture_rows(rows: npt.ArrayLike, body: Body) -> FloatArray:
    checked = finite_array(rows, "rows", ndim=2)
    m = checked_body(body).dimension
    if checked.shape not in ((2, m), (3, m)):
        raise ValueError(f"rows must have shape (2, {m}) or (3, {m}), got {checked.shape}")
    return checked


def _draw_outline(
    outline: Outline, ax: Axes, colour: str, alpha: float | None, label: str
) -> list[Artist]:
    if ax.name == "3d":
        artists = _draw_in_space(outline, ax, colour, SPACE_ALPHA if alpha is None else alpha)
    else:
        artists = _draw_in_plane(outline, ax, colour, PLANE_ALPHA if alpha is None else alpha)
    if label:
        artists[0].set_label(label)
    equal_units(ax)
    return artists


def _draw_in_plane(outline: Outline, ax: Axes, colour: str, alpha: float) -> list[Artist]:
    from matplotlib.colors import to_rgba
    from matplotlib.patches import Polygon

    face = to_rgba(colour, alpha)
    polygon = Polygon(outline.points, closed=True, facecolor=face, edgecolor=colour, linewidth=1.4)
    ax.add_patch(polygon)
    if len(outline.points) == 1:
        # A patch of one point leaves no mark.
        polygon.set_visible(False)
        return [*ax.plot(*outline.points.T, marker="o", markersize=4, color=colour)]
    return [polygon]


def _draw_in_space(outline: Outline, ax: Any, colour: str, alpha: float) -> list[Artist]:
    from matplotlib.colors import to_rgba
    from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection

    if len(outline.points) < 3:
        return [*ax.plot(*outline.points.T, color=colour, marker="o", markersize=3)]
    if not len(outline.triangles):
        ring = Poly3DCollection([outline.points], facecolors=to_rgba(colour, alpha))
        ring.set_edgecolor(colour)
        ax.add_collection3d(ring)
        return [ring]
    faces = outline.points[outline.triangles]
    shades = _shaded(faces, np.array(to_rgba(colour, alpha)))
    # Rendering leaves thin gaps between faces. If the edges of a face are drawn in its colour, the
    # gaps close. On transparent faces, such edges would be visible, so they are left out.
    surface = Poly3DCollection(faces, facecolors=shades, linewidths=0.3 if alpha == 1 else 0.0)
    if alpha == 1:
        surface.set_edgecolor([*shades])
    ax.add_collection3d(surface)
    artists: list[Artist] = [surface]
    if len(outline.edges):
        lines = outline.points[outline.edges]
        artists.append(Line3DCollection(lines, colors=to_rgba("black", 0.55), linewidths=0.8))
        ax.add_collection3d(artists[-1])
    # In old versions of matplotlib, a collection that is added to axes in space does not change the
    # limits of the axes, so set them. With `had_data`, the new limits also include everything drawn
    # before.
    ax.auto_scale_xyz(*outline.points.T, had_data=True)
    return artists


def _shaded(faces: FloatArray, colour: FloatArray) -> FloatArray:
    """Colours (T, 4) of T triangles. Triangles that face the light are lighter."""
    normals = np.cross(faces[:, 1] - faces[:, 0], faces[:, 2] - faces[:, 0])
    lengths = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = np.divide(normals, lengths, out=np.zeros_like(normals), where=lengths > 0)
    light = LIGHT / np.linalg.norm(LIGHT)
    cosines = np.clip(normals @ light, 0.0, 1.0)
    brightness = np.maximum(1 - DIFFUSE * (1 - cosines), LEAST_BRIGHTNESS)
    # Faces in the light are mixed with white, faces in the shade with black.
    rgb = colour[:3] + (1 - colour[:3]) * 0.55 * cosines[:, None] ** 2
    shades = np.column_stack([rgb * brightness[:, None], np.full(len(faces), 1.0)])
    shades[:, 3] = colour[3]
    return np.asarray(np.clip(shades, 0.0, 1.0))
