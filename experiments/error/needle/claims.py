"""Claims of the figure that shows the rates of the JL mechanism (theorems of Nikolov 2022)."""

from __future__ import annotations

import enum
import math

import numpy as np
import pandas as pd

from experiments.engine import margins
from experiments.engine.checks import is_below, slopes_by
from experiments.engine.claims import Claim
from experiments.engine.statistics import Slope, pooled_by
from experiments.error.needle.needle import Route, width
from geomdp.bounds.upper import from_width

#: Assumed ratio c2 / c1 of the constants in the bound w (c1 / m^(1/2) + c2 m^(1/2) / (eps n)), for
#: m rows and the Gaussian width w of the body. Theorem 21 leaves the ratio open. With K-norm noise,
#: the number of rows of a map is eps n divided by this ratio, rounded up, but at most k - 1. In the
#: panel `Panel.ROWS` the number of rows varies instead.
NOISE_TO_DISTORTION = 2.0
#: Measured errors must be at least this share of the bound.
LEAST_SHARE = 1 / 7
#: Largest value allowed for the constant C of Theorem 2 that a measured error implies.
LARGEST_CONSTANT = 16
#: At the smallest and at the largest number of rows, the error must be more than this factor times
#: the least error.
LEAST_RISE = 1.05
#: The error must not fall as (eps n)^(-1/3). To tell this rate from -1/2 takes minutes. So where
#: eps n varies by a factor below `WIDE`, as in the quick preset, it must just not be constant.
RIVAL, WIDE = -1 / 3, 16
#: Largest length allowed for the confidence interval of the slope in `additive`.
WIDEST = 0.8


class Panel(enum.StrEnum):
    """The quantity that varies in a panel."""

    RECORDS = "n"
    ROWS = "rows"
    EPSILON = "epsilon"
    DIMENSION = "k"


def rates(table: pd.DataFrame) -> list[Claim]:
    """With Gaussian maps, the error falls as (eps n)^(-1/2) and does not depend on k."""
    gaussian = table[table.route == Route.GAUSSIAN]
    product = gaussian[gaussian.panel.isin([Panel.RECORDS, Panel.EPSILON])]
    product = product.assign(product=(product.epsilon * product.n).round(9))
    (fall,) = slopes_by(product, ["route"], "product").values()
    rival = RIVAL if product["product"].max() >= WIDE * product["product"].min() else 0.0
    (flat,) = slopes_by(gaussian[gaussian.panel == Panel.DIMENSION], ["route"], "k").values()
    return [
        agrees("with Gaussian maps, the error falls as (epsilon n)^(-1/2)", fall, -1 / 2, rival),
        agrees("with Gaussian maps, the error does not depend on k", flat, 0.0, 1 / 2),
    ]


def agrees(name: str, slope: Slope, expected: float, rival: float) -> Claim:
    """The interval covers the expected slope and excludes the slope `rival`.

    Let h be the half-length of the interval. The margin used is the larger of two ratios: |slope -
    expected| / h and h / |slope - rival|. Each condition fails if its ratio is above 1.
    """
    half = (slope.high - slope.low) / 2
    return Claim(
        name,
        slope.covers(expected) and not slope.covers(rival),
        f"{slope}",
        f"{expected:g}, and not {rival:.3g}",
        "JL-T21, JL-T2",
        used=margins.share([abs(slope.value - expected), half], [half, abs(slope.value - rival)]),
    )


def optimum(table: pd.DataFrame) -> Claim:
    """The error is least near eps n / 2 rows, and larger for the fewest and for the most rows.

    Lemma 13 bounds the error by the sum of a noise term and a distortion term. The distortion is
    the larger term if there are few rows, and the noise is the larger term if there are many.
    """
    means = {rows: mean for (rows,), mean in pooled_by(table, ["rows"]).items()}
    best = min(means, key=lambda rows: means[rows].value)
    wanted = float((table.epsilon * table.n).iloc[0]) / NOISE_TO_DISTORTION
    ends = [means[rows].root / means[best].root for rows in (min(means), max(means))]
    return Claim(
        "the error is least for about epsilon n / 2 rows",
        bool(wanted / 4 <= best <= wanted * 4 and min(ends) > LEAST_RISE),
        f"least at {best} rows; {ends[0]:.2f} times the least error at {min(means)} rows, "
        f"{ends[1]:.2f} times at {max(means)} rows",
        f"{wanted:g} rows up to a factor 4; above {LEAST_RISE} times at both ends",
        "JL-T21, JL-L13",
        used=max(
            margins.position(math.log(best / wanted), -math.log(4), math.log(4)),
            margins.inverse_share(ends, LEAST_RISE),
        ),
    )


def bounded(table: pd.DataFrame) -> Claim:
    """Measured errors lie between min(B, 2) / 7 and min(B, 2), where B is the bound."""
    means = pooled_by(table, ["panel", "rows", "n", "epsilon", "k"])
    bounds = table.groupby(["panel", "rows", "n", "epsilon", "k"]).bound.first()
    # True and released answers lie in K, so no error exceeds 2, the diameter of K.
    shares = [mean.root / min(bounds[key], 2.0) for key, mean in means.items()]
    return Claim(
        "with Gaussian maps, the error is 1/7 to 1 times min(B, 2): B is the bound of Theorem 21 "
        "with explicit constants, and 2 is the diameter of the body",
        bool(min(shares) >= LEAST_SHARE and max(shares) <= 1),
        f"{len(shares)} points, {min(shares):.3f} to {max(shares):.3f} times min(B, 2)",
        "1/7 to 1 times min(B, 2)",
        "JL-L13, JL-T21, JL-T2",
        used=max(margins.inverse_share(shares, LEAST_SHARE), max(shares)),
    )


def records(table: pd.DataFrame) -> Claim:
    """The number of records is 1 to 16 times the number that Theorem 2 asks for with C = 1.

    The error in Theorem 2 is per query. Here it is the measured error divided by k^(1/2).
    """
    best = table[table.panel != Panel.ROWS]
    means = pooled_by(best, ["panel", "n", "epsilon", "k"])
    constants = [
        n / from_width(width(k), k, epsilon=epsilon, alpha=mean.root / math.sqrt(k), constant=1.0)
        for (_, n, epsilon, k), mean in means.items()
    ]
    return Claim(
        "at the measured error, Theorem 2 asks for the number of records used, up to a constant",
        bool(min(constants) >= 1 and max(constants) <= LARGEST_CONSTANT),
        f"{len(constants)} points, {min(constants):.2f} to {max(constants):.2f} in place of C",
        f"1 to {LARGEST_CONSTANT}",
        "JL-T2",
        used=max(max(constants) / LARGEST_CONSTANT, 1 / min(constants)),
    )


def noisy(table: pd.DataFrame) -> Claim:
    """For every number m of rows, c2 is near 2 ((m + 1) / m)^(1/2).

    Lemma 14 gives this value for ellipsoids, if w is replaced by the root of the sum of their
    squared semi-axes.
    """
    ratio = table.noise_factor / np.sqrt((table.rows + 1) / table.rows)
    return Claim(
        "the K-norm noise of mapped answers is about 2 w (m + 1)^(1/2) / (epsilon n), for every "
        "number m of rows",
        bool(ratio.between(1.8, 2.4).all()),
        f"{len(ratio)} cells, {ratio.min():.3f} to {ratio.max():.3f} in place of 2",
        "1.8 to 2.4",
        "JL-L16, JL-L12",
        used=float((ratio - 2.1).abs().max() / 0.3),
    )


def alike(table: pd.DataFrame) -> Claim:
    """Sign maps and sparse maps err as Gaussian maps, up to a factor 1.25 on average."""
    place = ["panel", "rows", "n", "epsilon", "k"]
    means = pooled_by(table, ["route", *place])
    ratios = {
        key: mean.root / means[Route.GAUSSIAN, *key[1:]].root
        for key, mean in means.items()
        if key[0] != Route.GAUSSIAN
    }
    worst = max(ratios, key=lambda key: abs(math.log(ratios[key])))
    mean = math.exp(np.mean([math.log(ratio) for ratio in ratios.values()]))
    return Claim(
        "sign maps and sparse maps err about as much as Gaussian maps",
        bool(0.8 <= mean <= 1.25),
        f"{mean:.3f} times on average, furthest {ratios[worst]:.2f} ({worst[0]})",
        "0.8 to 1.25",
        "JL-D8",
        used=abs(math.log(mean)) / math.log(1.25),
    )


def better(table: pd.DataFrame) -> Claim:
    """At the largest k, K-norm noise after a map errs less than K-norm noise without a map."""
    means = pooled_by(table[table.k == table.k.max()], ["route", "k"])
    return is_below(
        "at the largest k, projected K-norm noise errs less with a Gaussian map than without one",
        "JL-T21",
        {key[1:]: mean for key, mean in means.items() if key[0] == Route.GAUSSIAN},
        {key[1:]: mean for key, mean in means.items() if key[0] == Route.UNMAPPED},
    )


def additive(table: pd.DataFrame) -> Claim:
    """Noise that is not projected grows with the dimension as k^(1/2)."""
    (slope,) = slopes_by(table, ["route"], "k").values()
    return Claim(
        "without projection, the error of the noise grows as k^(1/2)",
        bool(slope.covers(0.5) and slope.high - slope.low <= WIDEST),
        f"{slope}",
        "1/2",
        "JL-L14",
        used=abs(slope.value - 0.5) / WIDEST,
    )
