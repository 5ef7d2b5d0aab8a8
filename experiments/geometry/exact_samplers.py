"""Points drawn uniformly from convex bodies by exact samplers, compared with their known laws.

Papers: Nikolov 2022 (arXiv 2208.07410), Lemma 14; Hardt and Talwar 2010; Lewandowski, Kurowicka and
Joe 2009 (elliptope). Formula sheet SAM-4, JL-L14, JL-COV, X-SIM, X-SPX, X-LKJ, X-PSDBOX.

Claim: pure privacy needs noise of exactly the stated law, and K-norm noise is made from a point U
that is uniform on the m-dimensional body K. All bodies here have an exact sampler. They are: l_p
balls; linear images of balls and of cubes; simplices; differences of simplices; triangulated
polytopes; the hull of a box and its negative; bodies of matrices. For each of them, all entries of
E U U^T agree with their closed forms. If K is symmetric, let the depth of U be ||U||_K^m, the share
of the volume of K in which the gauge is below ||U||_K. The depth is uniform on [0, 1].

Run time on one core: quick 3 s, full 1 minute.
"""

import enum
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
import scipy.stats

import experiments.engine.tools as ex
import geomdp as gd


class Family(enum.StrEnum):
    """Bodies, from the top of the figure to the bottom."""

    BALL = "ball"
    CROSS = "cross-polytope"
    LP = r"$\ell_{3/2}$ ball"
    ELLIPSOID = "ellipsoid"
    PARALLELOTOPE = "parallelotope"
    SIMPLEX = "simplex"
    DIFFERENCE = "simplex difference"
    TRIANGULATED = "triangulated polytope"
    HULL = "box and its negative"
    SPECTRAPLEX = "spectraplex"
    SPECTRAL_DIFFERENCE = "spectraplex difference"
    NUCLEAR = "nuclear ball"
    ELLIPTOPE = "elliptope"
    PSD_BOX = "psd box"


@dataclass(frozen=True)
class Config:
    """One body at one size."""

    family: Family  # Body
    size: int  # Dimension of vectors, or order of matrices
    draws: int  # Number of uniform points


def body(family: Family, size: int) -> gd.bodies.Body:
    """The body. A random map or random vertices belong to the problem, so their seed is fixed."""
    square = np.random.default_rng(2010).standard_normal((2 * size, size))
    corners = square[: size + 1]
    bodies: dict[Family, Callable[[], gd.bodies.Body]] = {
        Family.BALL: lambda: gd.bodies.Ball(size),
        Family.CROSS: lambda: gd.bodies.CrossPolytope(size),
        Family.LP: lambda: gd.bodies.LpBall(1.5, size),
        Family.ELLIPSOID: lambda: gd.bodies.Ellipsoid(square[:size]),
        Family.PARALLELOTOPE: lambda: gd.bodies.LinearImage(
            square[:size], gd.bodies.Box.centred(np.ones(size))
        ),
        Family.SIMPLEX: lambda: gd.bodies.Simplex(corners),
        Family.DIFFERENCE: lambda: gd.bodies.SimplexDifference(corners),
        Family.TRIANGULATED: lambda: gd.bodies.TriangulatedPolytope(np.vstack([square, -square])),
        Family.HULL: lambda: gd.bodies.SymmetrisedBox(np.ones(size)),
        Family.SPECTRAPLEX: lambda: gd.bodies.Spectraplex(size),
        Family.SPECTRAL_DIFFERENCE: lambda: gd.bodies.SpectraplexDifference(size),
        Family.NUCLEAR: lambda: gd.bodies.NuclearBall(size),
        Family.ELLIPTOPE: lambda: gd.bodies.Elliptope(size),
        Family.PSD_BOX: lambda: gd.bodies.PsdBox(size),
    }
    return bodies[family]()


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Compare second moments with their closed forms, and depths with the uniform law."""
    K, n = body(config.family, config.size), config.draws
    points, exact = K.sample_uniform(n, rng), K.second_moment()
    products = points[:, :, None] * points[:, None]
    stderrs = products.std(axis=0, ddof=1) / math.sqrt(n)
    squares = (points**2).sum(axis=1) / np.trace(exact)
    row: ex.Row = {
        "share": float(squares.mean()),
        "share_stderr": float(squares.std(ddof=1)) / math.sqrt(n),
        "worst": float(np.abs((products.mean(axis=0) - exact) / stderrs).max()),
        "entries": exact.size,
        "distance": None,
        "p_value": None,
    }
    if K.symmetric:
        depths = K.gauge(points) ** K.effective_dimension
        test = scipy.stats.kstest(depths, "uniform")
        row |= {"distance": float(test.statistic), "p_value": float(test.pvalue)}
    return row


def claims(table: pd.DataFrame) -> ex.Claims:
    count = int(table.entries.sum())
    reach = ex.quantile(ex.LEVEL / (2 * count), int(table.draws.min()))
    depths = table[table.p_value.notna()]
    off = (table.share - 1).abs() / table.share_stderr
    spread = ex.quantile(ex.LEVEL / (2 * len(table)), int(table.draws.min()))
    name = "every second moment of uniform points agrees with its closed form"
    measured = (
        f"{count} entries of {len(table)} bodies, furthest off by {table.worst.max():.1f} "
        "standard errors"
    )
    theory = f"within {reach:.1f} standard errors"
    yield ex.Claim(name, ex.at_most(table.worst, reach), measured, theory, "SAM-4")
    yield ex.Claim(
        "mean squared lengths, which set the error of K-norm noise, agree with their closed forms",
        ex.at_most(off, spread),
        f"{len(table)} bodies, off by at most {(table.share - 1).abs().max():.2%} and by at "
        f"most {off.max():.1f} standard errors",
        f"within {spread:.1f} standard errors",
        "JL-L14",
    )
    yield ex.Claim(
        "the depth of a uniform point is uniform on [0, 1]",
        ex.not_rare(depths.p_value, ex.LEVEL / len(depths)),
        f"{len(depths)} symmetric bodies, smallest p-value {depths.p_value.min():.3g} "
        "(Kolmogorov and Smirnov)",
        f"above {ex.LEVEL / len(depths):.1e}",
        "SAM-4",
    )


#: Looks of the smaller and of the larger body of each family.
LOOKS = (ex.Look("C0", "o"), ex.Look("C2", "o", filled=False))


def plot(table: pd.DataFrame) -> ex.Figure:
    titles = ["squared length", "depth, symmetric bodies"]
    labels = [r"$\|U\|^2$, mean over exact mean", r"$\sqrt{n}\,\times$ Kolmogorov distance"]
    figure, (lengths, depths) = ex.panels((7.2, 4.8), titles, labels, sharey=True)
    heights = {family: len(Family) - i for i, family in enumerate(Family)}
    rank = table.groupby("family")["size"].rank().astype(int)
    reach = ex.quantile(ex.BAND_LEVEL / 2, int(table.draws.min()))
    for place, look in enumerate(LOOKS, 1):
        mine = table[rank == place]
        y = mine.family.map(heights) + 0.4 * (1.5 - place)
        ends = [mine.share + side * reach * mine.share_stderr for side in (-1, 1)]
        ex.draw_intervals(lengths, mine.share, np.transpose(ends), y, look, "_")
        distances = mine.distance * np.sqrt(mine.draws)
        ex.draw_points(depths, distances, y, look, "_", line="none")
    top = (0.4, len(Family) + 0.6)
    critical = scipy.stats.kstwobign.isf(ex.BAND_LEVEL)
    ex.draw_theory(lengths, [1, 1], top, ex.GREY, "_")
    ex.draw_theory(depths, [critical] * 2, top, ex.GREY, "_")
    lengths.set_yticks([*heights.values()], [*heights])
    lengths.set_ylim(top)
    depths.set_xlim(left=0)
    return ex.headline(
        figure,
        "Exact samplers draw from the laws that the privacy proofs assume",
        "Filled: dimension or order 2 or 3; open: 4 or 8. Dashed: the exact mean, and the\n"
        "distance that chance exceeds in 5% of tests.",
    )


#: Sizes: dimension 3 and 8 for bodies of vectors, except 2 and 4 for the triangulated polytope;
#: order 2 and 4 for bodies of matrices.
SIZES: dict[Family, tuple[int, int]] = {
    family: (3, 8) if i < [*Family].index(Family.SPECTRAPLEX) else (2, 4)
    for i, family in enumerate(Family)
} | {Family.TRIANGULATED: (2, 4)}


def grid(draws: int) -> tuple[Config, ...]:
    """Every body at two sizes."""
    return tuple(Config(family, size, draws) for family in Family for size in SIZES[family])


QUICK = ex.Sweep(grid(1500))
FULL = ex.Sweep(grid(50_000))
