"""Add to a picture: projections, hyperplanes, walks, packings and noise; pictures that change."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from geomdp._numerics.randomness import PUBLIC_SEED
from geomdp._typing import FloatArray
from geomdp._validation import batch, finite_array, positive, probability, require_type, vector
from geomdp.bodies import Ball, Body, CrossPolytope, Halfspace, LinearImage, Scaled
from geomdp.bodies.base import checked_body
from geomdp.geometry import project
from geomdp.noise import GaussianNoise, KNormNoise, LaplaceNoise, Noise
from geomdp.noise.base import checked_noise
from geomdp.plotting.pictures import COLOURS, axes_of, equal_units, shadow_outline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


#: Length of a supporting line, divided by the body's diameter, and the distance, divided by its
#: radius, up to which a point counts as a point of the body.
TANGENT, MOVED = 0.3, 1e-7


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
    nearest points. ``ValueError`` for answers, a body or axes of other dimensions.

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

    Examples
    --------
    >>> import geomdp as gd
    >>> artists = gd.plotting.draw_projection(gd.bodies.Ball(2), [[3.0, 4.0], [0.1, 0.2]])
    >>> artists[1].get_xydata().round(6).tolist()
    [[0.6, 0.8], [0.1, 0.2]]
    """
    m = checked_body(body).dimension
    points = batch(answers, m, "answers")
    if m not in (2, 3):
        raise ValueError(f"body must have dimension 2 or 3 to be drawn, got {m}")
    ax = axes_of(m, ax)
    nearest = np.array([project(body, point).point for point in points])
    ring = ax.plot(*points.T, ls="", marker="o", mfc="white", color=colour, label=label or "_")
    dots = ax.plot(*nearest.T, ls="", marker="o", ms=4, color=colour, label="_")
    artists: list[Artist] = [*ring, *dots]
    for start, end in zip(points, nearest, strict=True):
        length = float(np.linalg.norm(start - end))
        if length <= MOVED * body.radius():
            continue
        artists += ax.plot(*np.array([start, end]).T, color=colour, lw=1.0, label="_")
        if m == 2:
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
    >>> artists = gd.plotting.draw(gd.bodies.Ball(2), ax)
    >>> separator = gd.bodies.Ball(2).separate(np.array([1.5, 1.0]))
    >>> (line,) = gd.plotting.draw_hyperplane(separator, ax, label="separates")
    """
    require_type(halfspace, Halfspace, "halfspace")
    normal = finite_array(halfspace.normal, "normal", ndim=1)
    if len(normal) != 2:
        raise ValueError(f"halfspace must lie in the plane, got dimension {len(normal)}")
    axes_of(2, ax)
    foot = normal * halfspace.offset / float(normal @ normal)
    x, y = map(float, foot)
    along = (x - float(normal[1]), y + float(normal[0]))
    return [ax.axline((x, y), along, color=colour, lw=1.2, label=label or "_")]


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
    >>> import geomdp as gd
    >>> path, start = gd.plotting.draw_path([[0.0, 0.0], [1.0, 0.5], [0.3, 0.8]])
    >>> start.get_xydata().tolist()
    [[0.0, 0.0]]
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

    Discs of a packing do not overlap: an answer with an error below `radius` tells which centre was
    the truth. ``ValueError`` for centres of another shape, a radius that is not above 0, or axes in
    space.

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
    >>> import geomdp as gd
    >>> artists = gd.plotting.draw_packing([[0.0, 0.0], [2.0, 0.0], [1.0, 1.8]], 1.0)
    >>> [type(artist).__name__ for artist in artists]
    ['Circle', 'Circle', 'Circle', 'Line2D']
    """
    from matplotlib.patches import Circle

    middles = finite_array(centres, "centres", ndim=2)
    if middles.shape[1] != 2:
        raise ValueError(f"centres must have shape (N, 2), got {middles.shape}")
    size = positive(radius, "radius")
    ax = axes_of(2, ax)
    artists: list[Artist] = [
        ax.add_patch(Circle((x, y), size, fill=False, color=colour, lw=0.9))
        for x, y in middles.tolist()
    ]
    dots = ax.plot(*middles.T, ls="", marker="o", ms=3, color=colour, label=label or "_")
    equal_units(ax)
    return [*artists, *dots]


#: To estimate a density in the plane, `DRAWS` draws are counted on a grid of `CELLS` x `CELLS`
#: cells, smoothed by a Gaussian kernel of deviation `KERNEL` cells. Each axis has the share
#: `COVERED` of them.
DRAWS, CELLS, KERNEL, COVERED = 1 << 18, 128, 2.0, 0.999


def level_body(noise: Noise, share: float) -> Body | None:
    """The level set {z : density >= c} of noise that has the probability `share`; None if unknown.

    epsilon times the gauge of K-norm noise is Gamma(r) for the dimension r of K (JL-KN).
    """
    from scipy.stats import chi, gamma  # slow import

    if isinstance(noise, KNormNoise):
        radius = gamma(noise.effective_dimension).ppf(share) / noise.epsilon
        return Scaled(noise.body, float(radius))
    if isinstance(noise, LaplaceNoise):
        radius = gamma(noise.dimension).ppf(share)
        return CrossPolytope(noise.dimension, float(noise.scale * radius))
    if isinstance(noise, GaussianNoise):
        r = noise.effective_dimension
        return LinearImage(noise.basis, Ball(r, float(noise.scale * chi(r).ppf(share))))
    return None


def draw_noise(
    noise: Noise,
    ax: Axes | None = None,
    *,
    shares: Sequence[float] = (0.5, 0.9),
    rows: npt.ArrayLike | None = None,
    centre: npt.ArrayLike = (0.0, 0.0),
    colour: str = COLOURS[3],
    label: str = "",
) -> list[Artist]:
    """Draw curves of equal density of noise in a plane. Each curve encloses a given probability.

    The curves are exact for K-norm, Laplace and Gaussian noise on R^2 without `rows`. In all other
    cases, the density is estimated from 2^18 draws, counted on a grid and smoothed. ``ValueError``
    for no `shares`, arguments of another shape or out of range, missing `rows`, axes in space, and
    a share so near to 1 that the grid holds too few draws.

    Parameters
    ----------
    noise : Noise
        Noise on R^m.
    ax : Axes, optional
        Where to draw; by default a new figure.
    shares : sequence of float
        The probabilities, above 0 and below 1. One curve is drawn for each, the smallest
        share first.
    rows : (2, m) array_like, optional
        The linear map to the plane. Needed if m is not 2.
    centre : (2,) array_like
        The true answers. The curves are drawn around this point.
    colour, label : str
        As for `draw`.

    Examples
    --------
    >>> import geomdp as gd
    >>> noise = gd.noise.LaplaceNoise(dimension=2, scale=1.0)
    >>> artists = gd.plotting.draw_noise(noise, shares=(0.5, 0.9))
    >>> [type(artist).__name__ for artist in artists]
    ['LineCollection', 'LineCollection']
    """
    levels = sorted(probability(share, "share") for share in shares)
    if not levels:
        raise ValueError("shares must contain at least 1 number, got none")
    m = checked_noise(noise).dimension
    matrix = np.eye(2) if rows is None and m == 2 else rows
    if matrix is None:
        raise ValueError(f"rows must be given for noise in {m} dimensions")
    plane = finite_array(matrix, "rows", ndim=2)
    if plane.shape != (2, m):
        raise ValueError(f"rows must have shape (2, {m}), got {plane.shape}")
    middle = vector(centre, 2, "centre")
    ax = axes_of(2, ax)
    bodies = [level_body(noise, share) for share in levels] if rows is None else [None]
    curves: list[list[FloatArray]] = []
    for body in bodies:
        if body is None:
            curves = _estimated(noise, plane, levels)
            break
        ring = shadow_outline(body, np.eye(2)).points
        curves.append([np.vstack([ring, ring[:1]])])
    return _drawn(ax, curves, middle, colour, label)


def _drawn(
    ax: Axes, curves: list[list[FloatArray]], centre: FloatArray, colour: str, label: str
) -> list[Artist]:
    from matplotlib.collections import LineCollection

    artists: list[Artist] = []
    for number, rings in enumerate(curves):
        alpha = 1.0 - 0.6 * number / len(curves)  # outer curves are paler
        placed = [ring + centre for ring in rings]
        lines = LineCollection(placed, colors=colour, alpha=alpha, linewidths=1.3)
        lines.set_label(label if label and number == 0 else "_")
        ax.add_collection(lines)
        artists.append(lines)
    equal_units(ax)
    return artists


def _estimated(noise: Noise, rows: FloatArray, shares: Sequence[float]) -> list[list[FloatArray]]:
    """For each probability, curves around the densest region that has it, from counts of draws."""
    from contourpy import contour_generator
    from scipy.ndimage import gaussian_filter

    draws = noise.sample(np.random.default_rng(PUBLIC_SEED), DRAWS) @ rows.T
    reach = np.quantile(np.abs(draws), COVERED, axis=0) * 1.1
    edges = [np.linspace(-r, r, CELLS + 1) for r in reach]
    counts, _, _ = np.histogram2d(draws[:, 0], draws[:, 1], bins=edges)
    # The distribution of the noise is symmetric about 0, so average the counts at z and -z.
    density = gaussian_filter((counts + counts[::-1, ::-1]) / 2, KERNEL)
    falling = np.sort(density.ravel())[::-1]
    held = np.cumsum(falling) / DRAWS
    if max(shares) >= held[-1]:
        raise ValueError(
            f"shares must be below {held[-1]:.4f}, the share of the draws that the picture holds, "
            f"got {max(shares)}"
        )
    middles = [(edge[1:] + edge[:-1]) / 2 for edge in edges]
    lines = contour_generator(middles[0], middles[1], density.T)
    levels = [float(falling[int(np.searchsorted(held, share))]) for share in shares]
    # By default `contour_generator` returns separate lines: a list of arrays (p, 2).
    return [cast(list[FloatArray], lines.lines(level)) for level in levels]


# Pictures under a slider in a notebook

#: Inches beside the axes for longer tick labels of later drawings, and pixels per inch.
MARGIN, DPI = 0.12, 150


class SteadyPictures:
    """PNG images of figures that keep the layout of the first drawing.

    A constrained layout takes time to compute, and moves the axes if a tick label gets longer. So
    it is computed only for the first figure of each name.

    Examples
    --------
    >>> import matplotlib.pyplot as plt
    >>> import geomdp as gd
    >>> pictures = gd.plotting.SteadyPictures()
    >>> for width in (1.0, 2.0):
    ...     figure, axes = plt.subplots(layout="constrained")
    ...     lines = axes.plot([0, width], [0, 1000 * width])
    ...     image = pictures.png(figure, "a line")
    ...     print(image[1:4])
    b'PNG'
    b'PNG'
    """

    def __init__(self) -> None:
        self._layouts: dict[str, list[tuple[float, float, float, float]]] = {}

    def png(self, figure: Figure, name: str) -> bytes:
        """The PNG file of a figure with a constrained layout, which is drawn once.

        All figures of one `name` must have the same number of axes. ``ValueError`` if the figure
        has no constrained layout, or another number of axes than the first figure of this name.
        """
        from matplotlib.layout_engine import ConstrainedLayoutEngine

        engine = figure.get_layout_engine()
        if not isinstance(engine, ConstrainedLayoutEngine):
            raise ValueError(f"figure must have a constrained layout, got {engine}")
        engine.set(w_pad=MARGIN)
        known = self._layouts.get(name)
        if known is not None:
            if (count := len(figure.axes)) != len(known):
                like = f"{len(known)} axes like the first figure {name!r}"
                raise ValueError(f"figure must have {like}, got {count}")
            figure.set_layout_engine(None)
            for axes, place in zip(figure.axes, known, strict=True):
                axes.set_position(place)
        file = io.BytesIO()
        figure.savefig(file, dpi=DPI, pil_kwargs={"compress_level": 1})
        if known is None:
            self._layouts[name] = [axes.get_position(original=True).bounds for axes in figure.axes]
        return file.getvalue()


def power_of_ten(value: float, position: int | None = None) -> str:
    """A tick label such as 10⁻² for a power of ten, for `axis.set_major_formatter`.

    It is plain text: Matplotlib's own mathematical text is parsed anew in each figure. Matplotlib
    passes the number `position` of the tick, which is not used.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.plotting.power_of_ten(0.01), gd.plotting.power_of_ten(1000.0)
    ('10⁻²', '10³')
    """
    del position
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return "10" + str(round(math.log10(value))).translate(raised)
