"""Rounding answers to a net: noise in fewer dimensions, but an error of rounding.

Paper: Nikolov 2022 (arXiv 2208.07410), Algorithm 2, Lemmas 26 and 27; formula sheet JL-A2, JL-L26,
JL-L27.

Claim: the 64 prefix sums are answered through a net. The net is a maximal subset of the answer
vectors such that any two of its points are at least the radius apart, in root mean square. For all
data the error is at most the rounding error plus the error of K-norm noise for the net alone. The
rounding error is less than the radius. The measured data are copies of the element whose answers
are farthest from the net. With few records a coarse net errs least, and with many records the
finest net does. The Gaussian width of the net falls as the radius grows. The width stays below the
chaining sum of Lemma 27. This is the sum of diam 2^(1-j) sqrt(2 ln N_j) over j = 1, 2, ..., up to
the first j for which N_j counts all points of the net. Here diam is the diameter of the net, and
N_j is the size of a maximal subset of the net with distances of at least diam 2^(-j). For 64 points
at equal distances, the sum has one term, and the width is more than half of the sum. For the nets
of prefix sums, the width is less than a third of the sum.

All noise has an exact sampler. Run time on one core: quick 2 s, full 15 s.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared.workloads import Kind, workload
from geomdp._numerics.linalg import farthest_points

ELEMENTS = 64
WORKLOAD = workload(Kind.PREFIXES, ELEMENTS)
PRIVACY = gd.PureDP(1.0)
#: Seed of the public draws behind an estimated width.
WIDTH_SEED = 0


@dataclass(frozen=True)
class Config:
    n: int  # Number of records
    radius: float  # Least distance that two points of the net may have, RMS per query
    releases_per_cell: int  # Releases in one cell


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Error on copies of the element farthest from the net, its bound, and the net's width."""
    inner = gd.mechanisms.KNorm(WORKLOAD, n=config.n, privacy=PRIVACY, exact=True)
    mechanism = gd.mechanisms.Coarse(inner, config.radius)
    records = np.full(config.n, rounded_most(mechanism.net))
    measured = ex.release_columns(mechanism, records, config.releases_per_cell, rng)
    net = gd.bodies.VPolytope(mechanism.net)
    width = gd.gaussian_width(net, rng=WIDTH_SEED)
    return {
        **measured,
        "points": len(mechanism.net),
        "rounding": mechanism.rounding,
        "width": width.value,
        "width_low": width.interval[0],
        "chaining": chaining(mechanism.net),
        "equidistant": equidistant_share(),
        "sampler": str(mechanism.guarantee.sampler),
    }


def rounded_most(net: np.ndarray) -> int:
    """The element whose answers are farthest from the net."""
    answers = WORKLOAD.evaluate(np.arange(ELEMENTS))
    distances = np.linalg.norm(answers[:, None] - net, axis=2).min(axis=1)
    return int(distances.argmax())


def equidistant_share() -> float:
    """Gaussian width of the unit vectors (at equal distances) divided by their chaining sum."""
    points = np.eye(ELEMENTS)
    return gd.gaussian_width(gd.bodies.Simplex(points)).value / chaining(points)


def chaining(net: np.ndarray) -> float:
    """The sum of Lemma 27 for the rows of `net`, with l2 distances, as for the Gaussian width."""
    order = farthest_points(net, lambda rows: np.asarray(np.linalg.norm(rows, axis=1)))
    diameter = gd.workloads.Explicit(net.T).l2_diameter()
    total, level, count = 0.0, 0, 1
    while count < len(net):
        level += 1
        count = order.count(diameter * 2.0**-level)
        total += diameter * 2.0 ** (1 - level) * math.sqrt(2 * math.log(count))
    return total


def claims(table: pd.DataFrame) -> ex.Claims:
    name = "errors stay below the rounding error plus the error of noise on the net"
    yield ex.stays_below_prediction(name, "JL-A2", table, ["n", "radius"])
    shares = table.rounding / table.radius
    name = "rounding moves the answers by less than the radius of the net"
    measured = f"at most {shares.max():.3f} of it"
    yield ex.Claim(name, ex.below(shares, 1), measured, "below 1", "JL-A2 (22)")
    yield width_is_below_the_chain(table)
    share = float(table.equidistant.iloc[0])
    name = (
        f"the width of {ELEMENTS} points at equal distances is more than half of their chaining sum"
    )
    verdict = ex.between(share, 0.5, 1)
    measured = f"{share:.3f} of it"
    yield ex.Claim(name, verdict, measured, "0.5 to 1; 1 / sqrt(2) for many points", "JL-L27")
    yield few_records_want_a_coarse_net(table)


def width_is_below_the_chain(table: pd.DataFrame) -> ex.Claim:
    """The width of the net falls as the radius grows, and stays below the chaining sum."""
    nets = table.drop_duplicates("radius").sort_values("radius")
    shares = nets.width_low / nets.chaining
    falling = bool((nets.width.diff().dropna() <= 1e-9 * nets.width.max()).all())
    name = "the width of the net is at most its chaining sum, and falls as the radius grows"
    verdict = ex.each_case(falling) & ex.at_most(shares, 1)
    measured = f"at most {shares.max():.3f} of the sum; {'falling' if falling else 'not falling'}"
    return ex.Claim(name, verdict, measured, "at most 1; falling", "JL-L27")


def few_records_want_a_coarse_net(table: pd.DataFrame) -> ex.Claim:
    """The radius with the least measured error, for the fewest and the most records."""
    errors = {key: mean.root for key, mean in ex.pooled_by(table, ["n", "radius"]).items()}
    best = {
        n: min((radius for m, radius in errors if m == n), key=lambda radius: errors[n, radius])
        for n in (table.n.min(), table.n.max())
    }
    finest = table.radius.min()
    fewest, most = best.values()
    gain = errors[table.n.min(), finest] / errors[table.n.min(), fewest]
    return ex.Claim(
        "with few records a coarse net errs least, and with many records the finest net",
        ex.in_order(fewest > finest == most) & ex.above(gain, 1.3),
        f"radius {fewest:g} at n = {table.n.min()}, where the finest net errs {gain:.2f} times as "
        f"much; radius {most:g} at n = {table.n.max()}",
        f"radius above {finest:g}, the finest net errs over 1.3 times as much; radius {finest:g}",
        "JL-L26",
    )


LOOKS = (ex.Look("C5", "o"), ex.Look("C4", "s"), ex.Look("C2", "v"), ex.Look("C0", "D"))
#: The least error on the axis. One error is far below it, and is written.
LEAST = 0.08
WIDTH, CHAIN = "Gaussian width", "chaining sum"


def plot(table: pd.DataFrame) -> ex.Figure:
    heights = ["error per query (RMSE)", "Gaussian width of the net"]
    titles, xlabel = ["error", "width"], "radius of the net (RMS per query)"
    figure, (errors, nets) = ex.panels((7.2, 3.7), titles, xlabel, heights)
    for n, look in zip(sorted(table.n.unique()), LOOKS, strict=False):
        mine = table[table.n == n]
        ex.draw_predicted(errors, mine, "radius", look, f"$n={n}$")
        radius, mean = min(ex.pooled_along(mine, "radius").items())
        if mean.root > LEAST:
            ex.note(errors, (radius, mean.root), f"$n={n}$", look.colour, (-6, 0), "right")
        else:
            words = f"$n={n}$ (first: {mean.root:.1g})"
            ex.note(errors, (0.17, 1.15 * LEAST), words, look.colour, (0, 0), "left")
    ex.log_axes(errors, "y")
    errors.set_ylim(LEAST, 3)
    net = table.drop_duplicates("radius").set_index("radius").sort_index()
    nets.plot(net.index, net.width, "o-", color="C0", label=WIDTH)
    ex.draw_theory(nets, net.index, net.chaining, ex.GREY, CHAIN)
    for axes in (errors, nets):
        axes.set_xlim(left=-0.09)
    nets.set_ylim(bottom=0)
    ex.label_curves(nets)
    result = "With few records a coarse net errs least, with many the finest net"
    settings = "64 prefix sums, worst data. Marks: measured; dashed: proved bounds."
    return ex.headline(figure, result, settings)


RADII = (0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6)
QUICK = ex.Sweep(ex.product(Config, (5, 20, 1280), (0.1, 0.2, 0.4), 100))
FULL = ex.Sweep(ex.product(Config, (5, 20, 80, 1280), RADII, 1000), trials=2)
