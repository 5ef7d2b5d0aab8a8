r"""Gaussian width of the image of a set under maps that shrink distances or stretch them a little.

Paper: Nikolov 2022, "Private query release via the Johnson-Lindenstrauss transform"
(arXiv 2208.07410), Lemmas 10 and 11; formula sheet JL-L10, JL-L11.

Claims for a map f from a set S to R^m: if f increases no distance, the Gaussian width of the image
is at most the width w(S) of S. Rotations keep the width. If ||f(x) - f(y)|| <= ||x - y|| + delta
for all x and y in S, the width of the image is at most (w(S)^(1/2) + (delta m^(1/2))^(1/2))^2. This
bound is called sharp here. It is at most the bound printed in the paper, 2 w(S) + 2 delta m^(1/2).
Both bounds are of the right order: for a cube of any size that is blown up, the width of the image
is at least 0.285 times the sharp bound.

(a) The sets hold 64 points of the unit sphere in R^16. Four maps increase no distance: a rotation,
folding (absolute values), moving each point to the nearest point of a ball of radius 3/4, and
dropping half of the coordinates. (b) The cube [0, a]^16 is mapped to [0, 1]^16, so that
delta = 4 (1 - a); widths are in closed form.

Run time on one core: quick 1 s, full 10 s.
"""

import enum
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from geomdp.bounds.upper import near_contraction_width

#: Dimension, and number of points of a random set.
M, POINTS = 16, 64
#: Least possible ratio of the width of a blown-up cube to the sharp bound (by Cauchy's inequality).
CUBE_SHARE = 1 / (1 + math.sqrt(2 * math.pi))


class Image(enum.StrEnum):
    """Maps, in the order of the figure."""

    ROTATED = "rotation"
    FOLDED = "folding"
    SHRUNK = "to a ball"
    DROPPED = "halving"
    BLOWN_UP = "cube"


def rotated(points: ex.FloatArray, rng: np.random.Generator) -> ex.FloatArray:
    """The points multiplied by a random orthogonal matrix."""
    return np.asarray(points @ np.linalg.qr(rng.standard_normal((M, M)))[0])


def folded(points: ex.FloatArray, _: np.random.Generator) -> ex.FloatArray:
    """Absolute values of all coordinates."""
    return np.abs(points)


def shrunk(points: ex.FloatArray, _: np.random.Generator) -> ex.FloatArray:
    """The nearest points of the ball of radius 3/4 around the first point."""
    steps = points - points[0]
    lengths = np.linalg.norm(steps, axis=1, keepdims=True)
    return np.asarray(points[0] + steps * np.minimum(1, 0.75 / np.maximum(lengths, 0.75)))


def dropped(points: ex.FloatArray, _: np.random.Generator) -> ex.FloatArray:
    """The first half of the coordinates."""
    return points[:, : M // 2]


MAPS: Mapping[Image, Callable[[ex.FloatArray, np.random.Generator], ex.FloatArray]] = {
    Image.ROTATED: rotated,
    Image.FOLDED: folded,
    Image.SHRUNK: shrunk,
    Image.DROPPED: dropped,
}


@dataclass(frozen=True)
class Config:
    image: Image  # Map
    side: float  # Side a of the cube; 1 for random sets
    draws: int  # Gaussian directions for a set, and the same number for its image


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Widths of the image and of the set, and the largest increase of a distance."""
    if config.image is Image.BLOWN_UP:
        before, after = (
            gd.gaussian_width(gd.bodies.Box(np.zeros(M), np.full(M, side))).value
            for side in (config.side, 1.0)
        )
        excess = math.sqrt(M) * (1 - config.side)
        return {"before": before, "after": after, "stderr": 0.0, "excess": excess}
    points = rng.standard_normal((POINTS, M))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    images = MAPS[config.image](points, rng)
    stretched = distances(images) - distances(points)
    before, after = (
        gd.gaussian_width(gd.bodies.VPolytope(each), rng=child, samples=config.draws)
        for each, child in zip((points, images), rng.spawn(2), strict=True)
    )
    return {
        "before": before.value,
        "after": after.value,
        "stderr": math.hypot(before.stderr, after.stderr),
        "excess": float(max(0.0, stretched.max())),
    }


def distances(points: ex.FloatArray) -> ex.FloatArray:
    """All distances between two of the n `points`, shape (n, n)."""
    return np.asarray(np.linalg.norm(points[:, None] - points[None], axis=2))


def claims(table: pd.DataFrame) -> ex.Claims:
    sets, cubes = table[table.image != Image.BLOWN_UP], table[table.image == Image.BLOWN_UP]
    rotations = sets[sets.image == Image.ROTATED]
    reach = ex.quantile(ex.LEVEL / (2 * len(sets)), int(sets.draws.min()))
    grown = (sets.after - sets.before) / sets.stderr
    off = ((rotations.after - rotations.before) / rotations.stderr).abs()
    ratio = sets.after / sets.before
    sharp = cubes.after / bounds(cubes)
    printed = 2 * cubes.before + 2 * cubes.excess * math.sqrt(M)
    name = "maps that increase no distance increase no width"
    verdict = ex.Verdict(
        (grown <= reach).all() and (sets.excess <= 1e-12).all(), max(0.0, grown.max()) / reach
    )
    measured = f"{len(sets)} sets, images {ratio.min():.3f} to {ratio.max():.3f} times as wide"
    yield ex.Claim(name, verdict, measured, "at most 1, up to chance", "JL-L10")
    name = "rotations keep the width"
    measured = f"{len(rotations)} rotations, off by at most {off.max():.1f} standard errors"
    yield ex.Claim(name, ex.at_most(off, reach), measured, f"within {reach:.1f}", "JL-L10")
    name = "the width of a blown-up cube is 1/3.51 to 1 times the sharp bound"
    verdict = ex.Verdict(
        (sharp <= 1 + 1e-12).all() and (sharp >= CUBE_SHARE * (1 - 1e-12)).all(), sharp.max()
    )
    measured = f"{len(cubes)} cubes, {sharp.min():.4f} to {sharp.max():.4f} of it"
    yield ex.Claim(name, verdict, measured, f"{CUBE_SHARE:.4f} to 1", "JL-L11")
    yield ex.Claim(
        "the sharp bound is 1/2 to 1 times the printed one",
        ex.Verdict(
            bool((bounds(cubes) <= printed * (1 + 1e-12)).all())
            and bool((bounds(cubes) >= printed / 2 * (1 - 1e-12)).all()),
            (bounds(cubes) / printed).max(),
        ),
        f"{(bounds(cubes) / printed).min():.3f} to {(bounds(cubes) / printed).max():.3f} of it",
        "1/2 to 1",
        "JL-L11",
    )


def bounds(cubes: pd.DataFrame) -> ex.FloatArray:
    """The sharp bound on the width of the image, for every cube."""
    return np.array(
        [near_contraction_width(row.before, row.excess, rows=M) for row in cubes.itertuples()]
    )


SET = ex.Look("C5", "o", filled=False)
CUBE = ex.Look("C0", "o")


def plot(table: pd.DataFrame) -> ex.Figure:
    titles = ["no distance increases", r"distances grow by $\delta=4(1-a)$"]
    labels = ["", "side $a$ of the cube that is blown up"]
    heights = ["width of the image / width", "Gaussian width"]
    figure, (left, right) = ex.panels((7.2, 3.5), titles, labels, heights)
    for place, image in enumerate(MAPS):
        mine = table[table.image == image]
        shares = mine.after / mine.before
        ex.draw_points(left, np.full(len(mine), place), shares, SET, "_", "none")
    left.axhline(1, color=ex.GREY, linestyle=(0, (4, 2)), linewidth=1.1)
    ex.note(left, (2, 1), "Lemma 10: at most 1")
    left.set_xticks(range(len(MAPS)), [*MAPS])
    left.set_ylim(0, 1.15)
    cubes = table[table.image == Image.BLOWN_UP].sort_values("side")
    printed = 2 * cubes.before + 2 * cubes.excess * math.sqrt(M)
    ex.draw_theory(right, cubes.side, printed, ex.GREY, "printed bound", (1, 2))
    ex.draw_theory(right, cubes.side, bounds(cubes), "C2", "sharp bound")
    ex.draw_points(right, cubes.side, cubes.after, CUBE, "width of\nthe image")
    right.set_ylim(0)
    ex.label_curves(right)
    return ex.headline(
        figure,
        "Maps that increase no distance increase no Gaussian width",
        f"(a) {POINTS} random points in dimension {M}; (b) a cube, with the bounds of Lemma 11.",
    )


def grid(sides: tuple[float, ...], draws: int) -> tuple[Config, ...]:
    """Configurations: random sets under each map, and a cube of each side in `sides`."""
    return (
        *ex.product(Config, MAPS, 1.0, draws),
        *ex.product(Config, Image.BLOWN_UP, sides, draws),
    )


QUICK = ex.Sweep(grid((0.001, 0.1, 0.5, 1.0), draws=20_000), trials=3)
FULL = ex.Sweep(
    grid((0.001, 0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1.0), draws=50_000), trials=8
)
