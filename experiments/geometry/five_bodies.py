"""Five sensitivity polytopes of the papers and their difference bodies, as solids in space.

Papers: Nikolov 2022 (arXiv 2208.07410), sections 2 and 5; Wang, Fan, Zhang and Wang 2013 for smooth
queries. Formula sheet JL-DEF, JL-MARG, JL-COV, X-SIM, X-LKJ. Each body belongs to three queries:

* prefix sums of four elements, a simplex;
* one-way marginals of three columns, a cube;
* pair products of three signs, a tetrahedron; the elliptope around it is the relaxation used where
  a body has too many vertices to list;
* second moments of records in a disc, a cone of matrices that is cut at trace 1;
* three Chebyshev moments of records in [-1, 1], the hull of a curve.

K contains all possible mean answers. K - K contains all changes of the sum of the answers by one
replaced record. Claims: the drawn volumes of polytopes equal closed forms, and the drawn volumes of
smooth bodies agree with closed forms to 1%. (For Chebyshev moments the closed form follows from the
product of Beta functions of Karlin and Shapley (1953).) The volume of K - K is 8 to 20 times the
volume of K: exactly 8 times for symmetric bodies, and exactly 20 times for simplices (Rogers and
Shephard 1957). Run time on one core: 5 s.
"""

import enum
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.spatial
from mpl_toolkits.mplot3d.axes3d import Axes3D

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared.workloads import Kind, workload
from geomdp.bodies import Body
from geomdp.plotting import draw, shadow_outline


class Solid(enum.StrEnum):
    """The five bodies; the values are the titles of the panels."""

    PREFIXES = "prefix sums"
    MARGINALS = "1-way marginals"
    PAIRS = "pair products"
    MOMENTS = "second moments"
    SMOOTH = "smooth queries"


SIMPLICES = (Solid.PREFIXES, Solid.PAIRS)


class Role(enum.StrEnum):
    """The kinds of bodies in a panel; the relaxation is drawn for `Solid.PAIRS` only."""

    ANSWERS = "K: all answers"
    CHANGES = "K - K: changes by one record"
    RELAXED = "a relaxation of K"


@dataclass(frozen=True)
class Config:
    """One body in the panel of one solid."""

    solid: Solid  # The panel
    role: Role  # The body drawn in this panel
    grid: int  # Number of points on the curve of moments


def answers(config: Config) -> Body:
    """The sensitivity polytope K in R^3."""
    match config.solid:
        case Solid.PREFIXES:
            # The last prefix sum is the same for every record, so only the other three are used.
            return gd.bodies.VPolytope(np.tri(4, 3, -1))
        case Solid.MARGINALS:
            return gd.bodies.Box(np.zeros(3), np.ones(3))
        case Solid.PAIRS:
            return gd.sensitivity_polytope(workload(Kind.PARITIES_2, 3))
        case Solid.MOMENTS:
            return gd.bodies.Spectraplex(2)
        case Solid.SMOOTH:
            return gd.bodies.grid_moment_body(np.ones(4), config.grid)


def body(config: Config) -> Body:
    """The body that is drawn."""
    match config.role:
        case Role.ANSWERS:
            return answers(config)
        case Role.CHANGES:
            return gd.difference_body(answers(config))
        case Role.RELAXED:
            return gd.bodies.Elliptope(3)


#: Volumes of K in closed form. For smooth queries: the first three moments of distributions on
#: [0, 1] fill a volume of B(1, 1) B(2, 2) B(3, 3) = 1/180, and the map from these moments to
#: Chebyshev moments on [-1, 1] has determinant 2 * 8 * 32.
VOLUMES = {
    Solid.PREFIXES: 1 / 6,
    Solid.MARGINALS: 1.0,
    Solid.PAIRS: 8 / 3,
    # {psd, trace at most 1} is a cone over the disc of trace 1, which has radius 1 / sqrt(2). The
    # cone has height 1 / sqrt(2), because the trace grows by sqrt(2) per unit of length along its
    # axis.
    Solid.MOMENTS: math.pi / (6 * math.sqrt(2)),
    Solid.SMOOTH: 512 / 180,
}
ELLIPTOPE = math.pi**2 / 2


def compute(config: Config, _: np.random.Generator) -> list[ex.Row]:
    """The vertices of the outline, and the volume that they enclose."""
    points = shadow_outline(body(config), np.eye(3)).points
    volume = float(scipy.spatial.ConvexHull(points).volume)
    # Nine decimals are far finer than a pixel, and they halve the size of the table.
    return [{"volume": volume, "x": x, "y": y, "z": z} for x, y, z in points.round(9).tolist()]


def volumes(table: pd.DataFrame) -> dict[tuple[str, str], float]:
    """Volume drawn, by solid and role."""
    first = table.groupby(["solid", "role"]).volume.first()
    return {(solid, role): float(v) for (solid, role), v in first.items()}


def claims(table: pd.DataFrame) -> ex.Claims:
    drawn = volumes(table)
    exact = {
        **{(s, Role.ANSWERS): v for s, v in VOLUMES.items()},
        (Solid.PAIRS, Role.RELAXED): ELLIPTOPE,
    }
    off = {key: drawn[key] / value - 1 for key, value in exact.items()}
    flat = [off[s, Role.ANSWERS] for s in (Solid.PREFIXES, Solid.MARGINALS, Solid.PAIRS)]
    round_ = [
        off[Solid.MOMENTS, Role.ANSWERS],
        off[Solid.SMOOTH, Role.ANSWERS],
        off[Solid.PAIRS, Role.RELAXED],
    ]
    # vol(K - K) / vol(K): C(6, 3) = 20 for simplices, 2^3 for symmetric bodies.
    ratios = {s: drawn[s, Role.CHANGES] / drawn[s, Role.ANSWERS] for s in Solid}
    name = "the polytopes that are drawn have their exact volumes"
    measured = f"3 volumes, off by {max(map(abs, flat)):.0e} at most"
    yield ex.Claim(name, ex.at_most(max(map(abs, flat)), 1e-12), measured, "equal", "JL-DEF")
    name = "the drawn volumes of smooth bodies are 0 to 1% below the exact volumes"
    verdict = ex.at_most([-min(round_), max(round_)], [0.01, 1e-12])
    measured = f"3 volumes, furthest off by {min(round_):.2%}"
    yield ex.Claim(name, verdict, measured, "0 to 1% below", "X-LKJ")
    name = "for simplices, vol(K - K) attains Rogers and Shephard's bound"
    verdict = ex.near([ratios[Solid.PREFIXES], ratios[Solid.PAIRS]], 20, 20e-9)
    measured = f"{ratios[Solid.PREFIXES]:.6f} and {ratios[Solid.PAIRS]:.6f}"
    yield ex.Claim(name, verdict, measured, "vol(K - K) = C(6, 3) vol(K) = 20 vol(K)", "X-SIM")
    name = "for the other bodies, vol(K - K) / vol(K) is 8 (the cube) or between 8 and 20"
    others = [ratios[Solid.MOMENTS], ratios[Solid.SMOOTH]]
    inside = ex.between(others, 8, 20) & ex.in_order(min(others) > 8 and max(others) < 20)
    verdict = ex.near(ratios[Solid.MARGINALS], 8, 8e-9) & inside
    measured = ", ".join(f"{s}: {r:.2f}" for s, r in ratios.items() if s not in SIMPLICES)
    theory = "8 for the cube; between 8 and 20 for the two others"
    yield ex.Claim(name, verdict, measured, theory, "JL-DEF")


#: How each role is drawn, from back to front: colour and opacity.
LOOKS = {Role.CHANGES: ("0.55", 0.15), Role.RELAXED: ("C2", 0.35), Role.ANSWERS: ("C0", 1.0)}
#: Names of the three axes of each panel.
AXES = {
    Solid.PREFIXES: ("$q_1$", "$q_2$", "$q_3$"),
    Solid.MARGINALS: ("$q_1$", "$q_2$", "$q_3$"),
    Solid.PAIRS: ("$x_1x_2$", "$x_1x_3$", "$x_2x_3$"),
    Solid.MOMENTS: ("$x_1^2$", r"$\sqrt{2}\,x_1x_2$", "$x_2^2$"),
    Solid.SMOOTH: ("$T_1$", "$T_2$", "$T_3$"),
}


def plot(table: pd.DataFrame) -> ex.Figure:
    figure = ex.Figure(figsize=(7.2, 5.4))
    for number, (solid, letter) in enumerate(zip(Solid, "abcde", strict=True), start=1):
        axes = figure.add_subplot(2, 3, number, projection="3d", computed_zorder=False)
        axes.set_title(f"({letter}) {solid}")
        mine = table[table.solid == solid]
        for height, (role, (colour, alpha)) in enumerate(LOOKS.items()):
            points = mine[mine.role == role][["x", "y", "z"]].to_numpy()
            if len(points):
                # Thousands of faces and edges would make a vector file of megabytes.
                for part in draw(gd.bodies.VPolytope(points), axes, colour=colour, alpha=alpha):
                    part.set(rasterized=True, zorder=height)
        tidy(axes, AXES[solid])
    for height, (role, (colour, _)) in enumerate(LOOKS.items()):
        name = role.replace(": ", ":\n")
        figure.text(0.71, 0.13 + 0.1 * height, name, color=ex.ink(colour), size=10, weight="bold")
    return ex.headline(
        figure,
        "Each set of queries has a body of possible answers",
        "Three queries each. Blue: all mean answers. Grey: all changes by one replaced record.",
    )


def tidy(axes: Axes3D, names: tuple[str, str, str]) -> None:
    """Name the three axes and give each two ticks: the shapes matter more than the numbers."""
    reach = [high - low for low, high in (axes.get_xlim(), axes.get_ylim(), axes.get_zlim())]
    # Names of the axes lie outside of the box, which takes all of its panel by default.
    axes.set_box_aspect(reach, zoom=0.82)
    for axis, name in zip((axes.xaxis, axes.yaxis, axes.zaxis), names, strict=True):
        axis.set_label_text(name)
        axis.labelpad = 1 if len(name) > 12 else -4
        axis.set_ticks([-1, 1])
        axis.set_tick_params(pad=-3)


def cells(grid: int) -> tuple[Config, ...]:
    """K and K - K of all solids, and the elliptope."""
    pairs = [(solid, role) for solid in Solid for role in (Role.ANSWERS, Role.CHANGES)]
    return tuple(Config(s, r, grid) for s, r in [*pairs, (Solid.PAIRS, Role.RELAXED)])


QUICK = ex.Sweep(cells(60))
FULL = ex.Sweep(cells(400))
