"""Hit-and-run on the bodies of K-norm noise: how many steps until the error of a release is right.

Papers: Hardt and Talwar 2010, "On the geometry of differential privacy", section 4; Smith 1984 and
Lovasz 1999 (hit-and-run). Formula sheet SAM-3, JL-KN, JL-L14.

Claim: the squared error of K-norm noise is (m + 1)(m + 2) / epsilon^2 times E ||U||^2, for U
uniform on the body of dimension m. Chains that start at the centre of the body and move in random
directions underestimate this error; the gap closes geometrically. Two laws are exact. In the unit
ball, a step in a random direction takes s = E ||X||^2 to (2/3)(1 - 1/m) s + 1/3. In a cube, a point
is uniform after one sweep over all coordinates. In the cube, the cross-polytope and the difference
body of a simplex, chains come near the error after a number of steps that grows with the dimension.
In a box whose longest side is 100 times the shortest, chains need more than three times the steps
that they need in the cube of the same dimension. Bodies are therefore made round by a linear map
before a chain runs. Nothing here proves how far a finite chain is from uniform, so a release that
uses a finite chain is called heuristic.

Run time on one core: quick 5 s, full 1 minute.
"""

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from geomdp.geometry.sampling import CoordinateHitAndRun, HitAndRun, Kernel

#: Ratio of the longest to the shortest side of the long box.
LONG = 100.0
#: A squared error is near the exact error if it is at least 1 - `NEAR` times the exact error.
NEAR = 0.05


class Walk(ex.Curve):
    """Body and kernel, in the order of the legend."""

    BALL = "ball, random directions", "C0", "o"
    CUBE = "cube, sweeps of coordinates", "C5", "s"
    TURNED = "cube, random directions", "C2", "v"
    CROSS = "cross-polytope, random directions", "C6", "D"
    SIMPLEX = "simplex difference, random directions", "C4", "^"
    LONG = f"box 1 to {LONG:g}, random directions", ex.GREY, "X", ex.HOLLOW


KNOWN = (Walk.BALL, Walk.CUBE)


@dataclass(frozen=True)
class Config:
    walk: Walk  # Body and kernel
    dimension: int  # Dimension m of the body
    doublings: int  # Steps are recorded at 1, 2, 4, ..., 2^doublings
    chains: int  # Independent chains


def body_and_kernel(config: Config) -> tuple[gd.bodies.Body, Kernel]:
    """A full-dimensional symmetric body, and the kernel that moves its points."""
    m, ones = config.dimension, np.ones(config.dimension)
    sides = np.geomspace(1, LONG, m)
    builders: dict[Walk, Callable[[], gd.bodies.Body]] = {
        Walk.BALL: lambda: gd.bodies.Ball(m),
        Walk.CUBE: lambda: gd.bodies.SlabBody(np.eye(m), ones),
        Walk.TURNED: lambda: gd.bodies.Box.centred(ones),
        Walk.CROSS: lambda: gd.bodies.CrossPolytope(m),
        Walk.SIMPLEX: lambda: gd.bodies.SimplexDifference(np.vstack([np.zeros(m), np.eye(m)])),
        Walk.LONG: lambda: gd.bodies.Box.centred(sides),
    }
    kernel = CoordinateHitAndRun() if config.walk is Walk.CUBE else HitAndRun()
    return builders[config.walk](), kernel


def squared_length(config: Config) -> float:
    """E ||U||^2 for U uniform on the body. The cube given by slabs is replaced by the equal box."""
    walk = Walk.TURNED if config.walk is Walk.CUBE else config.walk
    body, _ = body_and_kernel(dataclasses.replace(config, walk=walk))
    return gd.geometry.second_moment(body).value


def exact_share(config: Config, steps: int) -> float | None:
    """E ||X_t||^2 over its limit, after t = `steps` steps from the centre; None if unknown."""
    if config.walk is Walk.CUBE:
        return 1.0
    rate = (2 / 3) * (1 - 1 / config.dimension)
    return -math.expm1(steps * math.log(rate)) if config.walk is Walk.BALL else None


def compute(config: Config, rng: np.random.Generator) -> ex.Rows:
    """Mean squared length divided by the exact mean, after 1, 2, 4, ... steps from the centre."""
    body, kernel = body_and_kernel(config)
    limit = squared_length(config)
    points, done = np.zeros((config.chains, config.dimension)), 0
    for power in range(config.doublings + 1):
        for _ in range(2**power - done):
            points = kernel.step(rng, body, points)
        done = 2**power
        shares = (points**2).sum(axis=1) / limit
        yield {
            "steps": done,
            "share": float(shares.mean()),
            "share_stderr": float(shares.std(ddof=1)) / math.sqrt(config.chains),
            "exact": exact_share(config, done),
        }


def deviations(table: pd.DataFrame, expected: pd.Series | float) -> pd.Series:
    """Differences between measured and expected shares, in standard errors."""
    return (table.share - expected) / table.share_stderr


def claims(table: pd.DataFrame) -> ex.Claims:
    known = table[table.walk.isin(KNOWN)]
    off = deviations(known, known.exact).abs()
    reach = ex.quantile(ex.LEVEL / (2 * len(known)), int(table.chains.min()))
    last = table[table.steps == table.steps.groupby(table.walk).transform("max")]
    round_ends = last[last.walk != Walk.LONG]
    ends = deviations(round_ends, 1.0).abs()
    limit = ex.quantile(ex.LEVEL / (2 * len(round_ends)), int(table.chains.min()))
    long = table[table.walk == Walk.LONG]
    cube = table[(table.walk == Walk.TURNED) & table.dimension.isin(long.dimension)]
    slow, fast = first_near(long), first_near(cube)
    # A walk that never came near would need more steps than were recorded.
    times = (slow.fillna(long.steps.max()) / fast.fillna(math.inf)).min()
    name = "squared errors follow the exact laws of ball and cube"
    measured = f"{len(known)} points, off by at most {off.max():.1f} standard errors"
    theory = f"within {reach:.1f} standard errors"
    yield ex.Claim(name, ex.at_most(off, reach), measured, theory, "JL-L14")
    name = "walks in round bodies end at the exact squared error"
    measured = f"{len(round_ends)} walks, off by at most {ends.max():.1f} standard errors"
    theory = f"within {limit:.1f} standard errors"
    yield ex.Claim(name, ex.at_most(ends, limit), measured, theory, "SAM-3")
    yield ex.Claim(
        "in each dimension, a walk comes near the exact error over three times later in a long "
        "box than in a cube",
        ex.above(times, 3),
        f"within {NEAR:.0%} after {', '.join(f'{steps:g}' for steps in fast)} steps in cubes; "
        + ", ".join(
            f"after {steps:g}" if math.isfinite(steps) else f"not in {long.steps.max():g} steps"
            for steps in slow
        )
        + " in boxes",
        "more than 3 times",
        "SAM-3",
    )


def first_near(table: pd.DataFrame) -> pd.Series:
    """For each dimension, the least number of steps with a share >= 1 - `NEAR`, or NaN if none."""
    near = table[table.share >= 1 - NEAR].groupby("dimension").steps.min()
    return near.reindex(sorted(table.dimension.unique()))


LOOKS = Walk.looks()


def plot(table: pd.DataFrame) -> ex.Figure:
    dimensions = sorted(table.dimension.unique())
    titles = [f"dimension {m}" for m in dimensions]
    error = "squared error over its exact value"
    figure, panels = ex.panels((7.2, 3.7), titles, "steps from the centre", error, sharey=True)
    for axes, m in zip(panels, dimensions, strict=True):
        draw(axes, table[table.dimension == m])
        ex.log_axes(axes, "x")
    ex.label_curves(panels[-1])
    return ex.headline(
        figure,
        "Hit-and-run needs more steps in high dimension, far more in a long box",
        "Random directions, or sweeps of coordinates. Dashed: exact laws; dotted: uniform points.",
    )


def draw(axes: ex.Axes, table: pd.DataFrame) -> None:
    """All walks of one dimension, and the exact laws of the walks in `KNOWN`."""
    for walk, look in LOOKS.items():
        mine = table[table.walk == walk].sort_values("steps")
        if mine.empty:
            continue
        reach = ex.quantile(ex.BAND_LEVEL / 2, int(mine.chains.iloc[0])) * mine.share_stderr
        band = mine.share - reach, mine.share + reach
        name = (
            walk.removesuffix(", random directions").replace(", ", ",\n").replace("ex d", "ex\nd")
        )
        ex.draw_points(axes, mine.steps, mine.share, look, name, band=band)
        if walk in KNOWN:
            ex.draw_theory(axes, mine.steps, mine.exact, "black", "_")
    axes.axhline(1, color="0.5", lw=1.0, ls=(0, (1, 2)))


def grid(dimensions: tuple[int, ...], doublings: int, chains: int) -> tuple[Config, ...]:
    """All walks in all dimensions."""
    return tuple(Config(walk, m, doublings, chains) for m in dimensions for walk in Walk)


QUICK = ex.Sweep(grid((5, 20), 8, 500))
FULL = ex.Sweep(grid((5, 20, 50), 10, 3000))
