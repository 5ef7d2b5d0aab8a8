"""Chaining against packing at every scale: how far a net's upper bound is from the lower bound.

Papers: Nikolov 2022 (arXiv 2208.07410), Lemmas 26 and 27, Theorem 4; formula sheet JL-A2, JL-L27,
JL-T4, with the constants worked out in `geomdp.bounds.widths`.

Claim: the Gaussian width w of an alpha-net of answers to k queries is at most the sum of its
chaining links, one for each scale (Lemma 27). The square of a link at scale t, divided by
k alpha^2 epsilon, is at most 8 t / alpha times the certified packing bound at that scale, plus
terms that do not depend on this bound. The coarse mechanism, which rounds answers to the net, has
the upper bound w^2 / (k alpha^2 epsilon). By these two facts, this upper bound is at most a
multiple of D / alpha times the lower bound at error alpha / 4 (Theorem 4). Here D is the diameter
of the answers per query. For a large lower bound the multiple is at most about 46.6. It grows with
D / alpha no faster than the square of a sum over the scales, and this sum converges. So the two
bounds are proved to be within a constant factor of each other for constant D / alpha only.

The upper bound is known up to its constant only; the lower bounds are certified. Run time on one
core: quick 2 s, full 1 min.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.lower_bounds.bracket_problems import Size
from experiments.shared.workloads import Kind, workload

#: Largest ratio of the upper bound to (D / alpha) * (lower bound), in the limit of large bounds.
MOST = 8 / (math.sqrt(2) - 1) ** 2
#: Largest probability that the interval of a simulated width misses the true width.
LEVEL = 1e-6


SIZES: dict[Size, dict[Kind, tuple[int, ...]]] = {
    Size.SMALL: {
        Kind.PREFIXES: (64,),
        Kind.MARGINALS_1: (7,),
        Kind.MARGINALS_2: (7,),
        Kind.SIGNS: (30, 120),
    },
    Size.STANDARD: {
        Kind.PREFIXES: (512,),
        Kind.MARGINALS_1: (11,),
        Kind.MARGINALS_2: (11,),
        Kind.SIGNS: (60, 2000),
    },
}


@dataclass(frozen=True)
class Config:
    queries: Kind  # Workload
    size: Size  # How large the workload is
    halvings: int  # The separation of the net is the diameter of the answers times 2^-halvings
    epsilon: float  # Parameter of pure differential privacy


def asked(queries: Kind, size: Size) -> gd.workloads.Workload:
    """The workload of one kind in one size."""
    return workload(queries, *SIZES[size][queries])


@cache
def answers(queries: Kind, size: Size) -> ex.FloatArray:
    """The distinct answer vectors of a workload, as the rows of an array."""
    return np.unique(gd.workloads.explicit_answers(asked(queries, size)), axis=0)


def width(config: Config, alpha: float) -> float:
    """Lower confidence limit for w(net) / sqrt(k), for the net that the chaining bound is about."""
    points = answers(config.queries, config.size)
    net = points[gd.bounds.greedy_separated(points, gd.bounds.MeanL2(), alpha)]
    estimate = gd.gaussian_width(gd.bodies.VPolytope(net), rng=0, level=LEVEL)
    return estimate.interval[0] / math.sqrt(points.shape[1])


def compute(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """One row for each scale of the chain."""
    del rng  # nets are greedy, and `width` has a fixed seed
    Q = asked(config.queries, config.size)
    diameter = Q.l2_diameter() / math.sqrt(Q.n_queries)
    found = gd.bounds.instance_optimality(
        Q, epsilon=config.epsilon, alpha=diameter / 2**config.halvings
    )
    measured = width(config, found.alpha)
    return [
        {
            "alpha": found.alpha,
            "diameter": found.diameter,
            "scale": scale.separation,
            "count": scale.count,
            "link": scale.chaining,
            "records": scale.records,
            "width": measured,
            "chain": found.width,
            "upper": found.upper,
            "lower": found.lower,
            "limit": found.limit,
            "excess": found.excess,
        }
        for scale in found.scales
    ]


def claims(table: pd.DataFrame) -> ex.Claims:
    share = (table.width / table.chain).max()
    name = "the width of the net is at most the sum of the links of the chain"
    measured = (
        f"lower limits of the width are {(table.width / table.chain).min():.3f} to {share:.3f} "
        "times the sum"
    )
    yield ex.Claim(name, ex.at_most(share, 1), measured, "at most 1", "JL-L27")
    yield links_hold(table)
    yield limit_is_the_sum(table)
    yield grows_as_the_diameter(table)


#: At least one link must reach this share of its bound. A first run gave 0.91.
NEARLY = 0.8


def links_hold(table: pd.DataFrame) -> ex.Claim:
    """The packing bound s at a scale bounds the square of the link at the same scale.

    Here a link is a term of the bound on w / sqrt(k). In the units of the upper bound, the squared
    link at scale t is then link^2 / (alpha^2 epsilon). It is at most
    8 (t / alpha) (s + 1) + 8 (t / alpha)^2 (1 + ln 2 / epsilon).
    """
    steps = table.scale / table.alpha
    allowed = 8 * steps * (table.records + 1) + 8 * steps**2 * (1 + math.log(2) / table.epsilon)
    share = (in_records(table) / allowed).max()
    name = "the packing at each scale bounds the link of the chain at this scale"
    verdict = ex.at_most([share, NEARLY / share], 1 + 1e-9)
    measured = f"squared links are at most {share:.3f} times the bound, at {len(table)} scales"
    theory = f"at most 1, and {NEARLY:g} or more at some scale"
    return ex.Claim(name, verdict, measured, theory, "JL-L7, JL-T4")


def in_records(table: pd.DataFrame) -> pd.Series:
    """The squared links, in the units of the upper bound."""
    return table.link**2 / (table.alpha**2 * table.epsilon)


def nets(table: pd.DataFrame) -> pd.DataFrame:
    """One row for each net."""
    return table.drop_duplicates(["queries", "halvings"])


#: Packings bound the links of a net. For at least one net, the sum of these bounds must be at least
#: this share of its largest possible value, the square root of the limit (see `limit_is_the_sum`).
#: For a large lower bound, the sum over all scales is a series of terms 2^(-j/2), j = 1, 2, ...
#: Its first three terms are 0.65 of it.
LEAST_SHARE = 0.6


def limit_is_the_sum(table: pd.DataFrame) -> ex.Claim:
    """The largest links that packings allow add up to at most the root of the limit.

    The limit is the bound of Theorem 4 on the upper bound. Its root adds up these links over the
    scales D / 2^j for all j >= 1, and over the scale alpha. A net has finitely many of these
    scales, so its sum is below the root of the limit.
    """
    steps = table.scale / table.alpha
    parts = np.sqrt(8 * steps * (table.lower + 1)) + steps * np.sqrt(
        8 * (1 + math.log(2) / table.epsilon)
    )
    groups = [table.queries, table.halvings]
    shares = parts.groupby(groups).sum() / np.sqrt(table.limit.groupby(groups).first())
    return ex.Claim(
        "the largest links that packings allow add up to at most the root of the bound of Theorem "
        "4",
        ex.at_most([*shares, LEAST_SHARE / shares.max()], 1 + 1e-9),
        f"sums of links are {shares.min():.3f} to {shares.max():.3f} times the root; upper bounds "
        f"are at most {(table.upper / table.limit).max():.3f} times the bound of Theorem 4",
        f"at most 1, and {LEAST_SHARE:g} or more for some net",
        "JL-T4",
    )


def grows_as_the_diameter(table: pd.DataFrame) -> ex.Claim:
    """When alpha is halved, the ratio of the bounds divided by D / alpha grows only a little.

    This quotient is called the multiple. It must not fall, either. Take a net of h halvings. For a
    large lower bound, the largest links that packings allow are proportional to 2^(-j/2) for the
    scales j = 1, ..., h. So from one h to the next, the multiple may grow at most by the factor by
    which the squared sum of these h numbers grows. This factor tends to 1.
    """
    last = nets(table).sort_values("halvings").set_index(["queries", "halvings"]).excess
    found = []
    for _, multiples in last.groupby("queries"):
        halvings = multiples.index.get_level_values("halvings").to_numpy()
        sums = np.array([np.sum(2.0 ** (-np.arange(1, h + 1) / 2)) for h in halvings])
        growth = np.diff(np.log(multiples.to_numpy()))
        found.append(growth / np.diff(np.log(sums**2)))
    shares = np.concatenate(found)
    return ex.Claim(
        "the ratio of upper bound to 1 + lower bound is D / alpha times a factor that converges "
        "as scales are added",
        ex.between(shares, 0, 1),
        f"the logarithm of this factor grows {shares.min():.3f} to {shares.max():.3f} times as "
        f"much as that of (sum of 2^(-j/2))^2; factors are {last.min():.2f} to {last.max():.2f}, "
        f"in theory at most {MOST:.1f} for large bounds",
        "0 to 1 times as much",
        "JL-T4",
    )


LOOKS = {
    Kind.PREFIXES: ex.Look("C0", "o"),
    Kind.MARGINALS_1: ex.Look("C5", "s", filled=False),
    Kind.MARGINALS_2: ex.Look("C2", "D"),
    Kind.SIGNS: ex.Look("C4", "^"),
}
#: Sizes of markers. The two kinds of marginals coincide, so the larger marker is seen around.
MARKS = {Kind.MARGINALS_1: 10.0, Kind.MARGINALS_2: 4.0}
FACTOR = r"Theorem 4: $46.6\,D/\alpha$"


def plot(table: pd.DataFrame) -> ex.Figure:
    most = int(table.halvings.max())
    titles = [rf"scale by scale, $\alpha=D/{2**most}$", "all scales together"]
    labels = ["scale $t$ (distance per query)", r"$D/\alpha$"]
    heights = ["records $n$", "upper bound / (1 + lower bound)"]
    figure, (scales, ratio) = ex.panels((7.2, 3.8), titles, labels, heights)
    finest = table[table.halvings == most]
    for queries, look in LOOKS.items():
        mine = finest[finest.queries == queries].sort_values("scale")
        size = MARKS.get(queries)
        ex.draw_points(scales, mine.scale, in_records(mine), look, "_", size=size)
        ex.draw_theory(scales, mine.scale, mine.records, look.colour, "_")
        points = nets(table[table.queries == queries]).sort_values("alpha")
        shares = points.upper / (points.lower + 1)
        scaled = points.diameter / points.alpha
        ex.draw_points(ratio, scaled, shares, look, str(queries), size=size)
    steps = np.array([2.0, 2.0**most])
    ex.draw_theory(ratio, steps, MOST * steps, ex.GREY, FACTOR)
    for axes in (scales, ratio):
        ex.log_axes(axes)
    ex.label_ticks(ratio, [2**i for i in range(1, most + 1)])
    ex.label_curves(ratio)
    result = r"The gap between the bounds of a net grows no faster than D/$\mathbf{\alpha}$"
    settings = "Mean error. (a) Marks: squared links of the chain; dashed: certified packings."
    return ex.headline(figure, result, settings)


QUICK = ex.Sweep(ex.product(Config, SIZES[Size.SMALL], Size.SMALL, (1, 2, 3), 0.1))
FULL = ex.Sweep(ex.product(Config, SIZES[Size.STANDARD], Size.STANDARD, range(1, 7), 0.1))
