"""Volume radii of sensitivity polytopes and of their projections, against Gaussian width.

Papers: Nikolov 2022 (arXiv 2208.07410), Lemmas 17 and 20, equation (13); Urysohn 1924. Formula
sheet JL-L17, JL-L20, JL-URY.

Claim: let V be a random subspace of dimension j, Pi_V K the projection of K on V, kappa_j the
volume of the unit ball in R^j, mu_k the mean norm of a Gaussian vector in R^k, and vr the volume
radius. The mean projection radii of a body K in R^k are Q_j(K) = (E_V vol(Pi_V K) / kappa_j)^(1/j).
By Alexandrov and Fenchel's inequality they fall with j, from Q_1 = w(K) / mu_k to Q_k = vr(K).
The case Q_k <= Q_1 is Urysohn's inequality vr(K) <= w(K) / mu_k, with equality for balls. As k
grows, the left side divided by the right side falls to e^(-1/2) for cubes, and to 0 for the
stretched bodies (the long box and the symmetric hull of prefix answers). Let vr_i(K) be the largest
volume radius of a projection on i dimensions. Alexandrov and Fenchel's inequality for the largest
projection shows that vr_i(K) falls as i grows (Lemma 17). Urysohn's inequality for projections
gives i vr_i(K) <= sqrt(i + 1) w(K) (Lemma 20). `volume_radii` proves lower bounds on vr_i(K). These
bounds fall as i grows, too, and for a ball each of them is the radius.

Volumes are exact: closed forms, or polytopes cut into simplices. Mean projections are averages over
random subspaces. Widths without a closed form have certified intervals. Run time on one core: quick
3 s, full 1 minute.
"""

import enum
import itertools
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.spatial
import scipy.stats

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared import volume_bodies
from experiments.shared.volume_bodies import LOOKS, Family, symmetric_body, vertices
from geomdp.bounds import volume_radii
from geomdp.bounds.widths import urysohn

#: Level of each certified interval of a width: a thousand such intervals hold together with
#: probability at least 1 - 1e-6.
CERTIFIED = ex.LEVEL / 1000
#: Relative tolerance for proved radii: they are rounded down by 1e-9.
ROUNDED_DOWN = 1.01e-9
#: Bodies with measured projections: hulls of few points.
PROJECTED = (Family.CUBE, Family.MARGINALS, Family.HISTOGRAM, Family.SIGNS, Family.PREFIXES)


class Part(enum.StrEnum):
    """The quantities that a cell measures."""

    PROJECTIONS = "projections"
    WIDTHS = "widths"


@dataclass(frozen=True)
class Config:
    part: Part  # Quantities measured
    family: Family  # Body
    size: int  # Number of queries k; dimension of the records for second moments
    draws: int  # Number of random subspaces, or of Gaussian directions


def compute(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Mean volumes of projections by their dimension, or volume radii and width."""
    return {Part.PROJECTIONS: projections, Part.WIDTHS: widths}[config.part](config, rng)


def projections(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Volumes of projections divided by volumes of unit balls, averaged over random subspaces."""
    k, points = config.size, vertices(config.family, config.size)
    shares = np.empty((config.draws, k))
    for i in range(config.draws):
        image = points @ scipy.stats.ortho_group.rvs(k, random_state=rng)
        shares[i] = [hull_volume(image[:, :j]) / ball_volume(j) for j in range(1, k + 1)]
    stderrs = shares.std(axis=0, ddof=1) / math.sqrt(config.draws)
    cube = config.family is Family.CUBE
    return [
        {
            "j": j,
            "share": float(shares[:, j - 1].mean()),
            "share_stderr": float(stderrs[j - 1]),
            # The intrinsic volume C(k, j) 2^j of the cube, divided by the intrinsic volume
            # C(k, j) kappa_k / kappa_(k-j) of the unit ball.
            "exact_share": 2.0**j * ball_volume(k - j) / ball_volume(k) if cube else None,
        }
        for j in range(1, k + 1)
    ]


def hull_volume(points: ex.FloatArray) -> float:
    """Volume of the convex hull of the rows of `points`, shape (N, j) with j >= 1."""
    if points.shape[1] == 1:
        return float(np.ptp(points))
    return float(scipy.spatial.ConvexHull(points).volume)


def ball_volume(dimension: int) -> float:
    """Volume of the unit ball in R^`dimension`; 1 in dimension 0."""
    return gd.bodies.Ball(dimension).volume() if dimension else 1.0


def widths(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Volume radii of the body and of its projections, and its Gaussian width."""
    K = symmetric_body(config.family, config.size)
    radii = volume_radii(K, rng)
    width = gd.gaussian_width(K, rng=rng, samples=config.draws, level=CERTIFIED)
    k = radii[-1].dimension
    return [
        {
            "dimension": k,
            "radius": gd.geometry.volume_radius(K).value,
            "width": width.value,
            "width_high": width.interval[1],
            "urysohn": urysohn(width.value, k),
            "lemma": max(r.dimension * r.lower / math.sqrt(r.dimension + 1) for r in radii),
            "least": min(r.lower for r in radii),
            "most": max(r.lower for r in radii),
            "rise": max([0.0, *(b.lower - a.lower for a, b in itertools.pairwise(radii))]),
        }
    ]


def projection_radii(table: pd.DataFrame, level: float) -> pd.DataFrame:
    """Q_j of every body, with intervals that all hold with probability at least 1 - `level`."""
    rows = table[table.part == Part.PROJECTIONS].sort_values(["family", "j"])
    reach = ex.quantile(level / (2 * len(rows)), int(rows.draws.min())) * rows.share_stderr
    ends = {"low": rows.share - reach, "value": rows.share, "high": rows.share + reach}
    radii = {name: np.maximum(end, 0.0) ** (1 / rows.j) for name, end in ends.items()}
    return rows.assign(**radii, exact=rows.exact_share ** (1 / rows.j))


def claims(table: pd.DataFrame) -> ex.Claims:
    radii = projection_radii(table, ex.LEVEL)
    bodies = table[table.part == Part.WIDTHS]
    share = bodies.radius / bodies.urysohn
    most = bodies.urysohn * bodies.width_high / bodies.width
    balls = bodies[bodies.family == Family.MEANS]
    equality = float((balls.radius / balls.urysohn - 1).abs().max())
    lemma = bodies.lemma / bodies.width
    yield falling(radii)
    yield of_the_cube(radii[radii.exact.notna()])
    yield proved_radii_fall(bodies, balls)
    yield ex.Claim(
        "every body satisfies Urysohn's inequality, and balls attain equality",
        ex.each_case(equality <= 1e-9) & ex.at_most(bodies.radius, most * (1 + 1e-9)),
        f"{len(bodies)} bodies, volume radius {share.min():.1g} to {share.max():.3f} of the "
        f"bound; balls off by {equality:.0e}",
        "at most 1, with equality for balls",
        "JL-URY",
    )
    yield cube_share(bodies[bodies.family == Family.CUBE])
    name = "i times the proved lower bound on vr_i stays below sqrt(i + 1) times the width"
    measured = f"{len(bodies)} bodies, all i, at most {lemma.max():.3f} of it"
    theory = "at most 1"
    yield ex.Claim(name, ex.at_most(bodies.lemma, bodies.width_high), measured, theory, "JL-L20")


def falling(radii: pd.DataFrame) -> ex.Claim:
    """Mean projection radii fall with the dimension."""
    groups = [rows for _, rows in radii.groupby("family")]
    rises = [
        low - high
        for rows in groups
        for low, high in zip(rows.low.iloc[1:], rows.high.iloc[:-1], strict=True)
    ]
    ends = [rows.value.iloc[-1] / rows.value.iloc[0] for rows in groups]
    return ex.Claim(
        "mean projection radii fall with the dimension",
        # No rise beyond chance, and none at all in the measured values.
        ex.in_order(max(rises) <= 0 and all(rows.value.is_monotonic_decreasing for rows in groups)),
        f"{len(rises)} steps, each by at most {max(rises):+.4f}; Q_k / Q_1 is {min(ends):.3f} to "
        f"{max(ends):.3f} for {len(groups)} bodies",
        "falling",
        "JL-L17",
    )


def of_the_cube(cube: pd.DataFrame) -> ex.Claim:
    """Mean projection radii of the cube agree with their closed form."""
    rounding = 1e-9 * cube.exact
    inside = (cube.low - rounding <= cube.exact) & (cube.exact <= cube.high + rounding)
    half = np.maximum(cube.high - cube.value, rounding)
    off = float((cube.value / cube.exact - 1).abs().max())
    name = "mean projection radii of the cube are 2 (kappa_(k-j) / kappa_k)^(1/j)"
    verdict = ex.Verdict(inside.all(), ex.share((cube.value - cube.exact).abs(), half))
    measured = f"{len(cube)} dimensions, off by {off:.2%} at most, all within their intervals"
    return ex.Claim(name, verdict, measured, "equal", "JL-L17")


def proved_radii_fall(bodies: pd.DataFrame, balls: pd.DataFrame) -> ex.Claim:
    """The lower bounds of `volume_radii` fall; all projections of a ball have its radius."""
    off = max(
        float((balls.least / balls.radius - 1).abs().max()),
        float((balls.most / balls.radius - 1).abs().max()),
    )
    return ex.Claim(
        "proved lower bounds on radii of projections fall with the dimension, and those of a ball "
        "are its radius",
        ex.in_order((bodies.rise <= 0).all()) & ex.at_most(off, ROUNDED_DOWN),
        f"{len(bodies)} bodies, largest rise {bodies.rise.max():.1g}; balls off by {off:.1g}",
        f"falling; within {ROUNDED_DOWN:g}, by which they are rounded down",
        "JL-L17",
    )


def cube_share(cubes: pd.DataFrame) -> ex.Claim:
    """For cubes, the volume radius divided by Urysohn's bound falls to e^(-1/2)."""
    cubes = cubes.sort_values("dimension")
    shares = cubes.radius / cubes.urysohn
    limit = math.exp(-0.5)
    return ex.Claim(
        "for cubes, the volume radius divided by Urysohn's bound falls towards e^(-1/2)",
        ex.in_order(shares.is_monotonic_decreasing) & ex.between(shares.iloc[-1] / limit, 1, 1.15),
        f"{shares.iloc[0]:.4f} in dimension {cubes.dimension.iloc[0]:g}, {shares.iloc[-1]:.4f} in "
        f"dimension {cubes.dimension.iloc[-1]:g}",
        f"falling to {limit:.4f}, within 15% of it at the end",
        "JL-URY",
    )


def plot(table: pd.DataFrame) -> ex.Figure:
    figure = ex.Figure(figsize=(7.2, 3.9))
    left, *rights = figure.subplots(1, 3)
    drawn = int((table.part == Part.PROJECTIONS).sum())
    draw_projections(left, projection_radii(table, ex.BAND_LEVEL * drawn))
    bodies = table[table.part == Part.WIDTHS]
    for right, families in zip(rights, (volume_bodies.EVEN, volume_bodies.STRETCHED), strict=True):
        for family in families:
            mine = bodies[bodies.family == family].sort_values("dimension")
            ex.draw_points(
                right,
                mine.dimension,
                mine.radius / mine.urysohn,
                LOOKS[family],
                volume_bodies.short(family),
            )
        right.axhline(1, color=ex.GREY, lw=1.1, ls=(0, (4, 2)))
        right.set_xscale("log", base=2)
        right.xaxis.set_major_formatter("{x:g}")
        right.set_xlabel("dimension $k$")
    rights[0].axhline(math.exp(-0.5), color=ex.GREY, lw=1.1, ls=(0, (1, 2)))
    rights[0].set_ylabel(r"$\mathrm{vr}(K)\,/\,(w(K)/\mu_k)$")
    rights[0].set_title("(b) round bodies")
    rights[1].set_title("(c) stretched bodies")
    for axes in (left, *rights):
        axes.set_ylim(0, 1.05)
    for axes in rights:
        ex.label_curves(axes)
    return ex.headline(
        figure,
        "The volume of round bodies follows their width; stretched bodies lose it",
        r"Dashed: Urysohn's bound $\mathrm{vr}\leq w/\mu_k$. "
        r"Dotted: cube, exact in (a), limit $e^{-1/2}$ in (b).",
    )


def draw_projections(axes: ex.Axes, radii: pd.DataFrame) -> None:
    """Q_j divided by the measured Q_1, for each body."""
    for family in PROJECTED:
        mine, look = radii[radii.family == family], LOOKS[family]
        first = mine.value.iloc[0]
        band = mine.low / first, mine.high / first
        ex.draw_points(axes, mine.j, mine.value / first, look, "_", band=band)
        if family is Family.CUBE:
            ex.draw_theory(axes, mine.j, mine.exact / mine.exact.iloc[0], "black", "_", (1, 2))
    axes.set(xlabel="dimension $j$", ylabel=r"mean radius $Q_j\,/\,Q_1$")
    axes.set_title(f"(a) projections from {radii['size'].iloc[0]}")
    axes.set_xticks(radii.j.unique())


def grid(
    dimension: int, subspaces: int, sizes: tuple[int, ...], moments: tuple[int, ...], count: int
) -> tuple[Config, ...]:
    """Projections of bodies in R^`dimension`, and widths of all bodies at all their sizes."""
    special = {Family.MOMENTS: moments, Family.SIGNS: tuple(range(2, dimension + 1))}
    return (
        *ex.product(Config, Part.PROJECTIONS, PROJECTED, dimension, subspaces),
        *[Config(Part.WIDTHS, family, k, count)
          for family in Family for k in special.get(family, sizes)],
    )  # fmt: skip


QUICK = ex.Sweep(grid(4, 200, (2, 4, 8, 16), (1, 2, 3), 2000))
FULL = ex.Sweep(grid(6, 600, (2, 3, 4, 6, 8, 12, 16, 24, 32), (1, 2, 3, 4, 5, 7), 20_000))
