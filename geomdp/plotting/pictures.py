"""Draw a body of two or three dimensions, or a linear image or a slice of any body."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from geomdp._numerics.linalg import AffineHull
from geomdp._typing import FloatArray, IntArray
from geomdp._validation import finite_array, vector
from geomdp.bodies import Body, MissingOracle
from geomdp.bodies.base import checked_body

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


#: The colours of Okabe and Ito (2008), which most colour-blind readers can tell apart. Most
#: neighbours in this list also differ when printed in grey.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
#: Fonts and lines of all pictures. SVG files keep text as text, and repeat up to their dates.
SETTINGS: dict[Any, Any] = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#E3E3E3",
    "legend.fontsize": 9,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "geomdp",
}


@contextmanager
def library_style() -> Iterator[None]:
    """Draw with the defaults of Matplotlib and `SETTINGS`, without the settings of the user."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        yield


def axes_of(dimension: int, ax: Axes | None) -> Axes:
    """The axes to draw on: `ax`, or new ones; ``ValueError`` if `ax` has not this dimension."""
    if ax is None:
        from matplotlib import pyplot

        figure = pyplot.figure(layout="constrained")
        return figure.add_subplot(projection="3d" if dimension == 3 else None)
    has = 3 if ax.name == "3d" else 2
    if has != dimension:
        needed = "projection='3d'" if dimension == 3 else "no projection"
        raise ValueError(f"ax must be made with {needed} for {dimension} dimensions, got {ax.name}")
    return ax


def equal_units(ax: Axes) -> None:
    """Give one unit the same length on all axes, with limits that fit everything drawn so far."""
    ax.autoscale_view()
    ax.set_aspect("equal", adjustable=None if ax.name == "3d" else "box")


# Outlines of shadows (linear images) and slices, in the plane or in space

#: Number of directions in the plane (half a degree apart) and in space (about 4 degrees apart). In
#: space, `unit_directions` adds the six directions of the axes.
PLANE_DIRECTIONS, SPACE_DIRECTIONS = 720, 3000
#: A body that lists more vertices is drawn from extreme points. Points closer than about
#: `MERGED` times the size of the body are one.
MAX_VERTICES, MERGED = 1 << 16, 1e-9
#: An edge is drawn if the normals of its faces differ by more than 15 degrees.
CREASE = np.cos(np.deg2rad(15.0))


@dataclass(frozen=True)
class Outline:
    """Convex hull of points in the plane or in space."""

    points: FloatArray
    triangles: IntArray
    edges: IntArray


def unit_directions(k: int) -> FloatArray:
    """Evenly spread directions on the circle (k = 2) or sphere (k = 3), each with its opposite."""
    if k == 2:
        angles = 2 * np.pi * np.arange(PLANE_DIRECTIONS) / PLANE_DIRECTIONS
        return np.column_stack([np.cos(angles), np.sin(angles)])
    # Fibonacci lattice on the upper half: steps of constant height turn by the golden angle.
    half = SPACE_DIRECTIONS // 2
    heights = (np.arange(half) + 0.5) / half
    angles = np.pi * (3 - np.sqrt(5)) * np.arange(half)
    rings = np.sqrt(1 - heights**2)
    upper = np.column_stack([rings * np.cos(angles), rings * np.sin(angles), heights])
    axes = np.eye(3)
    return np.vstack([upper, -upper, axes, -axes])


def shadow_outline(body: Body, rows: FloatArray) -> Outline:
    """Outline of the linear image {rows @ x : x in K} in the plane or in space.

    It is computed from the vertices if the body lists at most 2^16, and else from extreme points in
    many directions. `MissingOracle` if it has neither, and ``ValueError`` if it is no `Body`.

    Parameters
    ----------
    body : Body
        K in R^m, with extreme points or listed vertices.
    rows : (2, m) or (3, m) array
        The map to the plane or to space.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> cube = gd.bodies.Box.centred([1.0, 1.0, 1.0])
    >>> rows = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, -2.0]]) / np.sqrt([[2.0], [6.0]])
    >>> hexagon = gd.plotting.shadow_outline(cube, rows)
    >>> hexagon.points.shape, hexagon.triangles.shape
    ((6, 2), (0, 3))
    """
    if checked_body(body).implements(Body.vertex_list) and len(body.vertex_list()) <= MAX_VERTICES:
        return hull_of(body.vertex_list() @ rows.T)
    directions = unit_directions(len(rows))
    if body.implements(Body.extreme_point):
        return hull_of(body.extreme_point(directions @ rows) @ rows.T)
    raise MissingOracle(body, "a shadow", "extreme_point or vertex_list")


def slice_outline(body: Body, centre: FloatArray, rows: FloatArray) -> Outline:
    """Outline of {t : centre + t @ rows in K}: the hull of the ends of chords through `centre`."""
    if not checked_body(body).contains(centre[None])[0]:
        raise ValueError("centre must lie in the body, got a point outside")
    directions = unit_directions(len(rows))
    _, reach = body.chord(np.tile(centre, (len(directions), 1)), directions @ rows)
    return hull_of(reach[:, None] * directions)


def hull_of(points: FloatArray) -> Outline:
    """The convex hull of `points` (N, k), k = 2 or 3, which may be flat, a segment or one point."""
    from scipy.spatial import ConvexHull

    none = np.zeros((0, 3), dtype=np.int64)
    size = float(np.ptp(points, axis=0).max(initial=0.0))
    cell = MERGED * size
    cells = np.rint(points / cell) if cell > 0 else np.zeros_like(points)
    _, first = np.unique(cells, axis=0, return_index=True)
    points = points[np.sort(first)]
    hull = AffineHull.of_points(points)
    flat = hull.coordinates(points)
    if hull.dimension <= 1:
        along = flat.sum(axis=1)
        ends = sorted({int(along.argmin()), int(along.argmax())})
        return Outline(points[ends], none, none[:, :2])
    found = ConvexHull(flat)
    if hull.dimension == 2:
        return Outline(points[found.vertices], none, none[:, :2])
    return _solid(points, found.simplices.astype(np.int64), found.equations[:, :3])


def _solid(points: FloatArray, faces: IntArray, normals: FloatArray) -> Outline:
    """The outline of a solid, with triangles oriented outwards and the edges where it bends."""
    first, second, third = (points[faces[:, i]] - points.mean(axis=0) for i in range(3))
    inward = np.einsum("tk,tk->t", np.cross(second - first, third - first), first) < 0
    faces = np.where(inward[:, None], faces[:, ::-1], faces)
    sides = np.sort(np.vstack([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    owners = np.tile(np.arange(len(faces)), 3)
    order = np.lexsort((sides[:, 1], sides[:, 0]))
    # On a closed surface each side belongs to two triangles.
    pairs, owners = sides[order][::2], owners[order].reshape(-1, 2)
    bends = np.einsum("ek,ek->e", normals[owners[:, 0]], normals[owners[:, 1]]) < CREASE
    used, numbers = np.unique(faces, return_inverse=True)
    place = np.zeros(len(points), dtype=np.int64)
    place[used] = np.arange(len(used))
    return Outline(points[used], numbers.reshape(faces.shape), place[pairs[bends]])


# Pictures

#: Default opacity of the inside of a body, for pictures in the plane and in space.
PLANE_ALPHA, SPACE_ALPHA = 0.2, 0.75
#: Direction from which light comes. A face whose normal has the cosine c >= 0 with it has the
#: brightness 1 - `DIFFUSE` (1 - c), but at least `LEAST_BRIGHTNESS`.
LIGHT, DIFFUSE, LEAST_BRIGHTNESS = np.array([-0.35, -0.6, 0.72]), 0.55, 0.6


def draw(
    body: Body,
    ax: Axes | None = None,
    *,
    colour: str = COLOURS[0],
    alpha: float | None = None,
    label: str = "",
) -> list[Artist]:
    """Draw a body of two or three dimensions.

    A body in R^2 or R^3 is drawn in its own coordinates, and a body of dimension two or three in a
    larger space in orthonormal coordinates of its affine hull. ``ValueError`` for a body of another
    dimension, which `draw_shadow` and `draw_slice` draw, or axes of another dimension than the
    picture; `MissingOracle` if the body has no extreme points and lists no vertices.

    Parameters
    ----------
    body : Body
        K, with extreme points or listed vertices.
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

    Examples
    --------
    >>> import geomdp as gd
    >>> artists = gd.plotting.draw(gd.bodies.CrossPolytope(2), label="l1 ball")
    >>> [type(artist).__name__ for artist in artists]
    ['Polygon']
    """
    m, r = checked_body(body).dimension, body.effective_dimension
    if not {m, r} & {2, 3}:
        raise ValueError(
            f"body must have 2 or 3 dimensions to be drawn, got {r}; "
            "draw_shadow and draw_slice draw bodies of other dimensions"
        )
    rows = np.eye(m) if m in (2, 3) else body.affine_hull().basis.T
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
        K in R^m, with extreme points or listed vertices.
    rows : (2, m) or (3, m) array_like
        Matrix of the map to the picture. Orthonormal rows give an orthogonal projection.
    ax, colour, alpha, label : Axes, str, float, str
        As for `draw`, which returns the same artists.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> (polygon,) = gd.plotting.draw_shadow(gd.bodies.CrossPolytope(4), np.eye(4)[:2])
    >>> sorted({tuple(corner) for corner in polygon.get_xy().round(6).tolist()})
    [(-1.0, 0.0), (0.0, -1.0), (0.0, 1.0), (1.0, 0.0)]
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
    >>> import numpy as np
    >>> import geomdp as gd
    >>> (polygon,) = gd.plotting.draw_slice(gd.bodies.Ball(3), [0.0, 0.0, 0.6], np.eye(3)[:2])
    >>> round(float(np.abs(polygon.get_xy()).max()), 6)
    0.8
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
    if len(outline.points) == 1:  # of which a patch leaves no mark
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
    # Edges in the colour of the face close thin gaps, but would be visible on transparent faces.
    surface = Poly3DCollection(faces, facecolors=shades, linewidths=0.3 if alpha == 1 else 0.0)
    if alpha == 1:
        surface.set_edgecolor([*shades])
    ax.add_collection3d(surface)
    artists: list[Artist] = [surface]
    if len(outline.edges):
        lines = outline.points[outline.edges]
        artists.append(Line3DCollection(lines, colors=to_rgba("black", 0.55), linewidths=0.8))
        ax.add_collection3d(artists[-1])
    # Old versions of matplotlib do not adapt the limits. `had_data` keeps what was drawn before.
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
