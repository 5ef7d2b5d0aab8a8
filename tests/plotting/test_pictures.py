"""Pictures show all that is drawn; outlines have known areas; arguments that misfit are refused."""

import io
import math

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.patches import Polygon
from scipy.stats import binom

import geomdp as gd
from geomdp.bodies import MissingOracle
from geomdp.geometry.sampling import ExactSampler
from geomdp.noise import ConeNoise, GaussianNoise, KNormNoise, LaplaceNoise
from geomdp.plotting import (
    SteadyPictures,
    draw,
    draw_hyperplane,
    draw_noise,
    draw_packing,
    draw_path,
    draw_projection,
    draw_shadow,
    draw_slice,
)
from geomdp.plotting.pictures import (
    Outline,
    hull_of,
    shadow_outline,
    slice_outline,
)
from geomdp.plotting.placed import level_body

TRIANGLE = gd.bodies.VPolytope(np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]]))
BALL = gd.bodies.Ball(2, 2.0)


@pytest.fixture
def plane():
    return Figure().add_subplot()


@pytest.fixture
def space():
    return Figure().add_subplot(projection="3d")


def test_a_polygon_is_drawn_with_its_vertices(plane):
    (polygon,) = draw(TRIANGLE, plane, label="K")
    assert isinstance(polygon, Polygon)
    # The first vertex is repeated at the end.
    assert sorted(map(tuple, polygon.get_xy()[:-1])) == sorted(map(tuple, TRIANGLE.vertices))
    assert plane.get_legend_handles_labels()[1] == ["K"]
    assert plane.get_aspect() == 1


def test_everything_drawn_is_in_view(plane, space):
    draw(BALL, plane)
    assert plane.get_xlim()[0] <= -2 < 2 <= plane.get_xlim()[1]
    draw(gd.bodies.Ball(3, 5.0), space)
    for low, high in (space.get_xlim(), space.get_ylim(), space.get_zlim()):
        assert low <= -4.9 < 4.9 <= high


def test_faces_to_the_light_are_lighter(space):
    surface = draw(gd.bodies.CrossPolytope(3), space)[0]
    brightness = np.asarray(surface._facecolor3d)[:, :3].sum(axis=1)
    assert brightness.max() > 1.2 * brightness.min()


@pytest.mark.parametrize(("call", "message"), [
    (lambda ax: draw(gd.bodies.Ball(4), ax), "must have 2 or 3 dimensions"),
    (lambda ax: draw(gd.bodies.Ball(3), ax), "projection='3d'"),
    (lambda ax: draw_shadow(gd.bodies.Ball(4), np.eye(4), ax), "rows must have shape"),
    (lambda ax: draw_slice(BALL, [3.0, 0.0], np.eye(2), ax), "centre must lie in the body"),
    (lambda ax: draw_noise(LaplaceNoise(3, 1.0), ax), "rows must be given"),
    (lambda ax: draw_noise(LaplaceNoise(2, 1.0), ax, shares=[1.0]), "share must be above 0"),
    (lambda ax: draw_noise(LaplaceNoise(2, 1.0), ax, rows=np.eye(2), shares=[0.5, 0.999999]),
     r"shares must be below 0\.99\d*, the share .* got 0\.999999"),
    (lambda ax: draw_noise(LaplaceNoise(2, 1.0), ax, shares=[]), "at least 1 number, got none"),
    (lambda ax: draw_noise(LaplaceNoise(2, 1.0), ax, centre=[0.0]), "centre must have shape"),
    (lambda ax: draw_packing(np.zeros((2, 3)), 1.0, ax), "centres must have shape"),
    (lambda ax: draw_packing(np.zeros((2, 2)), 0.0, ax), "radius must be"),
    (lambda ax: draw_path(np.zeros((0, 2)), ax), "points must have shape"),
    (lambda ax: draw_projection(gd.bodies.Ball(4), np.zeros((1, 4)), ax), "dimension 2 or 3"),
])  # fmt: skip
def test_what_does_not_fit_is_refused(plane, call, message):
    with pytest.raises(ValueError, match=message):
        call(plane)


def test_projections_are_normal_to_the_body(plane):
    answers = np.array([[2.0, 0.5], [0.9, 0.3]])
    _ring, dots, way, tangent = draw_projection(TRIANGLE, answers, plane)
    np.testing.assert_allclose(dots.get_xydata(), [[1.0, 0.5], [0.9, 0.3]], atol=1e-9)
    step, along = (np.diff(line.get_xydata(), axis=0)[0] for line in (way, tangent))
    assert step @ along == pytest.approx(0, abs=1e-9)


def test_a_hyperplane_touches_what_it_separates(plane):
    found = TRIANGLE.separate(np.array([-1.0, 1.0]))
    assert found is not None
    (line,) = draw_hyperplane(found, plane)
    (x, y), slope = line.get_xy1(), line.get_slope()
    assert found.normal @ [x, y] == pytest.approx(found.offset)
    assert slope is None or found.normal @ [1, slope] == pytest.approx(0, abs=1e-9)


def test_a_packing_and_a_path(plane):
    *discs, _centres = draw_packing([[0, 0], [2, 0]], 0.5, plane)
    assert [disc.get_radius() for disc in discs] == [0.5, 0.5]
    steps, start = draw_path([[0, 0], [1, 1], [2, 0]], plane)
    assert len(steps.get_xdata()) == 3
    assert start.get_xydata().tolist() == [[0, 0]]


HEXAGON = gd.bodies.TriangulatedPolytope(
    np.array([[1.0, 0], [1, 1], [0, 1], [-1, 0], [-1, -1], [0, -1]])
)
NOISES = [
    KNormNoise(HEXAGON, 1.0, ExactSampler(HEXAGON)),
    LaplaceNoise(2, 2.0),
    GaussianNoise(np.eye(2), 3.0),
    GaussianNoise(np.eye(3)[:, :2], 3.0),
]


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_level_bodies_hold_their_share(noise, share):
    count = 20_000
    body = level_body(noise, share)
    assert body is not None
    draws = noise.sample(np.random.default_rng(0), count)
    inside = int(body.contains(draws).sum())
    low, high = binom.interval(1 - 1e-6, count, share)
    assert low <= inside <= high


def test_estimated_levels_are_those_of_the_law(plane):
    # The noise is drawn first with exact levels. The map `rows` is the identity, and makes
    # `draw_noise` estimate the levels from draws.
    noise = GaussianNoise(np.eye(2), 2.0)
    exact = draw_noise(noise, plane)
    estimated = draw_noise(noise, plane, rows=np.eye(2))
    for curve, other in zip(exact, estimated, strict=True):
        radius = np.linalg.norm(curve.get_segments()[0], axis=1)
        rough = np.linalg.norm(max(other.get_segments(), key=len), axis=1)
        assert np.ptp(radius) < 1e-9 * radius.max()
        # Smoothing with a standard deviation of 2 cells, 0.11 wide each, widens a Gaussian of
        # scale 2 by 0.6%.
        assert abs(np.median(rough) / radius.mean() - 1) < 0.02


def test_cone_noise_is_no_gauge_and_drawn_all_the_same(plane):
    noise = ConeNoise(gd.bodies.Simplex(np.eye(3)), 0.5, np.full(3, 1 / 3))
    assert level_body(noise, 0.5) is None
    artists = draw_noise(noise, plane, rows=np.eye(2, 3), shares=[0.9, 0.5], centre=[1.0, 2.0])
    widths = [np.ptp(max(a.get_segments(), key=len)[:, 0]) for a in artists]
    assert widths == sorted(widths)


def figure(height: float, axes: int = 1, layout: str | None = "constrained") -> Figure:
    drawn = Figure(figsize=(3, 2), layout=layout)
    for place in drawn.subplots(1, axes, squeeze=False)[0]:
        place.plot([0, 1], [0, height])
    return drawn


def left(drawn: Figure) -> float:
    return float(drawn.axes[0].get_position().x0)


def test_later_figures_have_the_axes_where_the_first_had_them():
    pictures = SteadyPictures()
    first, wider, other = figure(1.0), figure(1e-7 + 1e5), figure(1e5)
    size = imread(io.BytesIO(pictures.png(first, "a"))).shape
    again = imread(io.BytesIO(pictures.png(wider, "a")))
    pictures.png(other, "b")
    assert again.shape == size == (300, 450, 4)
    assert left(wider) == left(first)
    # Under another name, a figure with longer labels has its axes further to the right.
    assert left(other) > left(first) + 0.01
    assert np.ptp(again) > 0
    for misfit, message in (
        (figure(1.0, layout=None), "figure must have a constrained layout, got None"),
        (figure(1.0, axes=2), "must have 1 axes like the first figure 'a', got 2"),
    ):
        with pytest.raises(ValueError, match=message):
            pictures.png(misfit, "a")


def solid_volume(outline: Outline) -> float:
    """Volume by the divergence theorem, which needs triangles that are all turned outwards."""
    a, b, c = (outline.points[outline.triangles[:, i]] for i in range(3))
    return float(np.einsum("tk,tk->t", a, np.cross(b, c)).sum() / 6)


def ring_area(outline: Outline) -> float:
    """Area inside a ring of points, positive if the points run counter-clockwise."""
    x, y = outline.points.T
    return float(x @ np.roll(y, -1) - y @ np.roll(x, -1)) / 2


BOX = gd.bodies.Box(np.array([-1.0, -2.0, 0.0]), np.array([1.0, 2.0, 3.0]))


@pytest.mark.parametrize(("body", "volume", "vertices", "edges"), [
    (BOX, 24.0, 8, 12),
    (gd.bodies.CrossPolytope(3), 4 / 3, 6, 12),
    # The last point lies inside the hull of the others, so it is no vertex.
    (gd.bodies.VPolytope(np.vstack([np.zeros(3), np.eye(3), np.full(3, 0.2)])), 1 / 6, 4, 6),
], ids=["box", "cross-polytope", "simplex"])  # fmt: skip
def test_polytopes_are_drawn_exactly(body, volume, vertices, edges):
    outline = shadow_outline(body, np.eye(3))
    assert solid_volume(outline) == pytest.approx(volume, rel=1e-12)
    assert (len(outline.points), len(outline.edges)) == (vertices, edges)


@pytest.mark.parametrize(("body", "volume"), [
    (gd.bodies.Ball(3, 2.0), 4 / 3 * math.pi * 8),
    # Joe (2006): the volume of 3 x 3 correlation matrices.
    (gd.bodies.Elliptope(3), math.pi**2 / 2),
    (gd.difference_body(gd.bodies.Spectraplex(2)),
     gd.difference_body(gd.bodies.Spectraplex(2)).volume()),
], ids=["ball", "elliptope", "difference"])  # fmt: skip
def test_smooth_bodies_are_drawn_from_inside(body, volume):
    drawn = solid_volume(shadow_outline(body, np.eye(3)))
    # The 3000 directions are about 4 degrees apart, so the outline of a unit ball cuts off caps of
    # height 1 - cos(2 degrees).
    assert (1 - 0.01) * volume < drawn <= volume * (1 + 1e-9)


@pytest.mark.parametrize("body", [gd.bodies.Ball(2), gd.bodies.Elliptope(3)], ids=["disc", "3-D"])
def test_slices_through_the_middle_lie_in_shadows(body):
    rows = np.eye(2, body.dimension)
    inner = slice_outline(body, np.zeros(body.dimension), rows)
    outer = shadow_outline(body, rows)
    assert 0 < ring_area(inner) <= ring_area(outer) * (1 + 1e-3)
    assert body.contains(inner.points @ rows, 1e-9).all()


def test_missing_oracles_are_named():
    with pytest.raises(MissingOracle, match="extreme_point or vertex_list"):
        shadow_outline(gd.bodies.TableMoments([2, 2]), np.eye(3)[:, :2])


@pytest.mark.parametrize(("k", "count"), [(1, 1), (2, 2), (3, 3)])
def test_flat_hulls(k, count):
    points = np.eye(3)[:k]
    found = hull_of(np.vstack([points, points.mean(axis=0)]))
    assert len(found.points) == count
    assert len(found.triangles) == len(found.edges) == 0
