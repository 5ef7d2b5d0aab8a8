"""The JL mechanism with the noise of its theorem: error against n, rows, epsilon and dimension.

Paper: Nikolov 2022, "Private query release via the Johnson-Lindenstrauss transform"
(arXiv 2208.07410), Algorithm 1, Theorems 2 and 21, Lemma 16; formula sheet JL-A1, JL-D8, JL-T2,
JL-L13, JL-L16, JL-T21.

Claims, for worst-case data that depend on the public map: with m = eps n / 2 rows the error falls
as (eps n)^(-1/2), in n and in eps, and not as (eps n)^(-1/3). The error does not grow as k^(1/2)
with the dimension k; the measurements agree with no growth at all. With more rows the error first
falls, because the map distorts less. From about eps n / 2 rows on, the error rises, because there
is more noise. The error stays below w (c1 / m^(1/2) + c2 m^(1/2) / (eps n)), where w is the
Gaussian width of the body and the constants are explicit. The error is at least 1/7 of this bound,
or 1/7 of the body's diameter 2 if the bound is larger than 2.
The number of records used is 1 to 16 times the number that Theorem 2 with C = 1 asks for at the
measured error. Sign maps and sparse maps err as Gaussian maps do, up to a factor 1.25 on average.
At the largest k, the error is larger without a map. With ball noise, the JL mechanism uses fewer
rows and errs more.

The body is a needle: an ellipsoid with one semi-axis of length 1 and all others of length k^(-1/2).
Its width is about 1.35, at most 2^(1/2). The images of the body under the maps are ellipsoids, so
all noise has an exact sampler. Errors are in Euclidean norm, not divided by k^(1/2). The constant
c2 is computed from the noise and is about 2. For Gaussian maps, c1 w = 2 w + 0.61 diam(K).

Run time on one core: quick 9 s, full 7 minutes.
"""

import enum
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from geomdp.bounds.upper import from_width, jl_mechanism_error, jl_mechanism_rows

#: Records are scaled by this factor, so that rounding cannot take them out of the unit ball.
INSIDE = 1 - 1e-12


class Route(ex.Curve):
    """How the queries are answered, in the order of the legend."""

    GAUSSIAN = "Gaussian map", "C0", "o"
    RADEMACHER = "sign map", "C5", "s"
    SPARSE = "sparse map", "C2", "v", ex.HOLLOW
    BALL = "Gaussian map, ball noise", "C4", "^"
    UNMAPPED = "no map, projected", "C6", "D"
    ADDITIVE = "no map, not projected", ex.GREY, "X"


LAWS: dict[Route, gd.geometry.JLLaw] = {
    Route.GAUSSIAN: gd.geometry.GaussianMap(),
    Route.RADEMACHER: gd.geometry.RademacherMap(),
    Route.SPARSE: gd.geometry.SparseMap(1 / 3),
}


def axes_of(k: int) -> ex.FloatArray:
    """Semi-axes of the needle, shape (k,)."""
    return np.where(np.arange(k) < 1, 1.0, k**-0.5)


@cache
def needle(k: int) -> gd.workloads.LinearMap:
    """Means of k coordinates on the unit ball, where all but the first are divided by k^(1/2)."""
    return gd.workloads.LinearMap(gd.workloads.Means(k), np.diag(axes_of(k)))


@cache
def width(k: int) -> float:
    """Gaussian width of the needle, in closed form."""
    return gd.gaussian_width(gd.sensitivity_polytope(needle(k))).value


@cache
def knorm(k: int, n: int, epsilon: float) -> gd.mechanisms.KNorm:
    """K-norm noise of the needle, which is the same for all maps."""
    return gd.mechanisms.KNorm(needle(k), n=n, privacy=gd.PureDP(epsilon), exact=True)


def mechanism(
    route: Route, k: int, n: int, epsilon: float, rows: int, rng: np.random.Generator
) -> gd.mechanisms.Mechanism:
    """The mechanism of a route; `rng` draws the public map of a route that has one."""
    if route is Route.BALL:
        ball = gd.mechanisms.Ball(needle(k), n=n, privacy=gd.PureDP(epsilon))
        return gd.mechanisms.JL(ball, rows, rng=rng)
    inner = knorm(k, n, epsilon)
    match route:
        case Route.UNMAPPED:
            return gd.mechanisms.Projected(inner)
        case Route.ADDITIVE:
            return inner
        case _:
            return gd.mechanisms.JL(inner, rows, rng=rng, law=LAWS[route])


def worst_points(M: gd.mechanisms.Mechanism, k: int) -> ex.FloatArray:
    """Two points of the unit ball with answers that the map hardly tells apart, shape (2, k).

    The image of a point is the map applied to its answers. Let a be the image of e_1, an end of the
    needle. The first point is the unit vector orthogonal to e_1 whose image has the largest inner
    product with -a. The second point is the multiple of e_1 in the unit ball whose image is nearest
    to the image of the first point. Without a map, the points are e_2 and 0. A sparse map can have
    a = 0; the points are then -e_1 and e_1.
    """
    points = np.zeros((2, k))
    if not isinstance(M, gd.mechanisms.JL):
        points[0, 1] = 1
        return points * INSIDE
    mapped = M.matrix * axes_of(k)
    end, thin = mapped[:, 0], mapped[:, 1:]
    if not end.any():
        points[:, 0] = [-1, 1]
        return points * INSIDE
    against = thin.T @ end
    points[0, 1:] = -against / np.linalg.norm(against)
    points[1, 0] = max(-1.0, (thin @ points[0, 1:]) @ end / (end @ end))
    return points * INSIDE


def squared_errors(M: gd.mechanisms.Mechanism, k: int, rng: np.random.Generator) -> ex.FloatArray:
    """||M(X) - Q(X)||^2 of one release for data at each of the two points, shape (2,)."""
    found = []
    for point in worst_points(M, k):
        records = np.repeat(point[None], M.n, axis=0)
        error = M.release(records, rng=rng).answers - M.workload.answers(records)
        found.append(float(error @ error))
    return np.array(found)


def noise_factor(M: gd.mechanisms.JL, k: int, epsilon: float) -> float:
    """c2 of Theorem 21 for one map: (E||Z||^2)^(1/2) eps / (m^(1/2) w(K)) for noise Z on sums."""
    moment = M.inner.noise.second_moment().value
    return math.sqrt(moment / len(M.matrix)) * epsilon / width(k)


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


def rates(table: pd.DataFrame) -> ex.Claims:
    """With Gaussian maps, the error falls as (eps n)^(-1/2) and does not depend on k."""
    gaussian = table[table.route == Route.GAUSSIAN]
    product = gaussian[gaussian.panel.isin([Panel.RECORDS, Panel.EPSILON])]
    product = product.assign(product=(product.epsilon * product.n).round(9))
    (fall,) = ex.slopes_by(product, ["route"], "product").values()
    rival = RIVAL if product["product"].max() >= WIDE * product["product"].min() else 0.0
    (flat,) = ex.slopes_by(gaussian[gaussian.panel == Panel.DIMENSION], ["route"], "k").values()
    yield agrees("with Gaussian maps, the error falls as (epsilon n)^(-1/2)", fall, -1 / 2, rival)
    yield agrees("with Gaussian maps, the error does not depend on k", flat, 0.0, 1 / 2)


def agrees(name: str, slope: ex.Slope, expected: float, rival: float) -> ex.Claim:
    """The interval covers the expected slope and excludes the slope `rival`.

    Let h be the half-length of the interval. The margin used is the larger of two ratios: |slope -
    expected| / h and h / |slope - rival|. Each condition fails if its ratio is above 1.
    """
    half = (slope.high - slope.low) / 2
    verdict = ex.Verdict(
        slope.covers(expected) and not slope.covers(rival),
        ex.share([abs(slope.value - expected), half], [half, abs(slope.value - rival)]),
    )
    measured = f"{slope}"
    return ex.Claim(name, verdict, measured, f"{expected:g}, and not {rival:.3g}", "JL-T21, JL-T2")


def optimum(table: pd.DataFrame) -> ex.Claim:
    """The error is least near eps n / 2 rows, and larger for the fewest and for the most rows.

    Lemma 13 bounds the error by the sum of a noise term and a distortion term. The distortion is
    the larger term if there are few rows, and the noise is the larger term if there are many.
    """
    means = ex.pooled_along(table, "rows")
    best = min(means, key=lambda rows: means[rows].value)
    wanted = float((table.epsilon * table.n).iloc[0]) / NOISE_TO_DISTORTION
    ends = [means[rows].root / means[best].root for rows in (min(means), max(means))]
    return ex.Claim(
        "the error is least for about epsilon n / 2 rows",
        ex.Verdict(
            wanted / 4 <= best <= wanted * 4 and min(ends) > LEAST_RISE,
            max(
                ex.position(math.log(best / wanted), -math.log(4), math.log(4)),
                ex.inverse_share(ends, LEAST_RISE),
            ),
        ),
        f"least at {best} rows; {ends[0]:.2f} times the least error at {min(means)} rows, "
        f"{ends[1]:.2f} times at {max(means)} rows",
        f"{wanted:g} rows up to a factor 4; above {LEAST_RISE} times at both ends",
        "JL-T21, JL-L13",
    )


def bounded(table: pd.DataFrame) -> ex.Claim:
    """Measured errors lie between min(B, 2) / 7 and min(B, 2), where B is the bound."""
    means = ex.pooled_by(table, ["panel", "rows", "n", "epsilon", "k"])
    bounds = table.groupby(["panel", "rows", "n", "epsilon", "k"]).bound.first()
    # True and released answers lie in K, so no error exceeds 2, the diameter of K.
    shares = [mean.root / min(bounds[key], 2.0) for key, mean in means.items()]
    return ex.Claim(
        "with Gaussian maps, the error is 1/7 to 1 times min(B, 2): B is the bound of Theorem 21 "
        "with explicit constants, and 2 is the diameter of the body",
        ex.at_least(shares, LEAST_SHARE) & ex.at_most(shares, 1),
        f"{len(shares)} points, {min(shares):.3f} to {max(shares):.3f} times min(B, 2)",
        "1/7 to 1 times min(B, 2)",
        "JL-L13, JL-T21, JL-T2",
    )


def records(table: pd.DataFrame) -> ex.Claim:
    """The number of records is 1 to 16 times the number that Theorem 2 asks for with C = 1."""
    best = table[table.panel != Panel.ROWS]
    means = ex.pooled_by(best, ["panel", "n", "epsilon", "k"])
    constants = [
        n / from_width(width(k), k, epsilon=epsilon, alpha=mean.root / math.sqrt(k), constant=1.0)
        for (_, n, epsilon, k), mean in means.items()
    ]
    name = "at the measured error, Theorem 2 asks for the number of records used, up to a constant"
    verdict = ex.at_least(constants, 1) & ex.at_most(constants, LARGEST_CONSTANT)
    words = f"{len(constants)} points, {min(constants):.2f} to {max(constants):.2f} in place of C"
    return ex.Claim(name, verdict, words, f"1 to {LARGEST_CONSTANT}", "JL-T2")


def noisy(table: pd.DataFrame) -> ex.Claim:
    """For every number m of rows, c2 is near 2 ((m + 1) / m)^(1/2).

    Lemma 14 gives this value for ellipsoids, if w is replaced by the root of the sum of their
    squared semi-axes.
    """
    ratio = table.noise_factor / np.sqrt((table.rows + 1) / table.rows)
    return ex.Claim(
        "the K-norm noise of mapped answers is about 2 w (m + 1)^(1/2) / (epsilon n), for every "
        "number m of rows",
        ex.Verdict(ratio.between(1.8, 2.4).all(), (ratio - 2.1).abs().max() / 0.3),
        f"{len(ratio)} cells, {ratio.min():.3f} to {ratio.max():.3f} in place of 2",
        "1.8 to 2.4",
        "JL-L16, JL-L12",
    )


def alike(table: pd.DataFrame) -> ex.Claim:
    """Sign maps and sparse maps err as Gaussian maps, up to a factor 1.25 on average."""
    place = ["panel", "rows", "n", "epsilon", "k"]
    means = ex.pooled_by(table, ["route", *place])
    ratios = {
        key: mean.root / means[Route.GAUSSIAN, *key[1:]].root
        for key, mean in means.items()
        if key[0] != Route.GAUSSIAN
    }
    worst = max(ratios, key=lambda key: abs(math.log(ratios[key])))
    mean = math.exp(np.mean([math.log(ratio) for ratio in ratios.values()]))
    name = "sign maps and sparse maps err about as much as Gaussian maps"
    verdict = ex.Verdict(0.8 <= mean <= 1.25, abs(math.log(mean)) / math.log(1.25))
    measured = f"{mean:.3f} times on average, furthest {ratios[worst]:.2f} ({worst[0]})"
    return ex.Claim(name, verdict, measured, "0.8 to 1.25", "JL-D8")


def better(table: pd.DataFrame) -> ex.Claim:
    """At the largest k, K-norm noise after a map errs less than K-norm noise without a map."""
    means = ex.pooled_by(table[table.k == table.k.max()], ["route", "k"])
    return ex.is_below(
        "at the largest k, projected K-norm noise errs less with a Gaussian map than without one",
        "JL-T21",
        {key[1:]: mean for key, mean in means.items() if key[0] == Route.GAUSSIAN},
        {key[1:]: mean for key, mean in means.items() if key[0] == Route.UNMAPPED},
    )


def additive(table: pd.DataFrame) -> ex.Claim:
    """Noise that is not projected grows with the dimension as k^(1/2)."""
    (slope,) = ex.slopes_by(table, ["route"], "k").values()
    name = "without projection, the error of the noise grows as k^(1/2)"
    verdict = ex.Verdict(
        slope.covers(0.5) and slope.high - slope.low <= WIDEST, abs(slope.value - 0.5) / WIDEST
    )
    return ex.Claim(name, verdict, f"{slope}", "1/2", "JL-L14")


#: 0.61 diam(K), with diameter 2: c1 is (2 w + DRIFT) / w (JL-L13).
DRIFT = 0.61 * 2


@dataclass(frozen=True)
class Config:
    panel: Panel  # Panel that shows the point
    route: Route  # Mechanism
    k: int  # Number of queries and dimension of the body
    n: int  # Number of records
    epsilon: float  # Parameter of pure differential privacy
    rows: int  # Rows of the map; 0 if there is no map
    maps: int  # Number of independent maps in one trial; without a map, number of releases


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean squared error over the maps for the worse of two data sets, and the bound."""
    squares = np.empty((config.maps, 2))
    factors = []
    M = mechanism(config.route, config.k, config.n, config.epsilon, config.rows, rng)
    for i, row in enumerate(squares):
        if i > 0 and config.rows > 0:
            M = mechanism(config.route, config.k, config.n, config.epsilon, config.rows, rng)
        row[:] = squared_errors(M, config.k, rng)
        if isinstance(M, gd.mechanisms.JL):
            factors.append(noise_factor(M, config.k, config.epsilon))
    found: ex.Row = dict(ex.MeanSquare.of(squares[:, squares.mean(axis=0).argmax()]).columns())
    w = width(config.k)
    if config.route in LAWS:
        bound = jl_mechanism_error(
            w,
            1,
            config.rows,
            n=config.n,
            epsilon=config.epsilon,
            distortion=2 + DRIFT / w,
            noise=float(np.mean(factors)),
        )
        found |= {"bound": bound, "noise_factor": float(np.mean(factors))}
    return {"bound": None, "noise_factor": None, **found}


def claims(table: pd.DataFrame) -> ex.Claims:
    mapped = table[table.route.isin(LAWS)]
    yield from rates(mapped)
    yield optimum(mapped[(mapped.panel == Panel.ROWS) & (mapped.route == Route.GAUSSIAN)])
    yield bounded(mapped[mapped.route == Route.GAUSSIAN])
    yield records(mapped[mapped.route == Route.GAUSSIAN])
    yield noisy(mapped)
    yield alike(mapped[mapped.panel != Panel.DIMENSION])
    yield better(table[table.panel == Panel.DIMENSION])
    yield additive(table[(table.panel == Panel.DIMENSION) & (table.route == Route.ADDITIVE)])


LOOKS = Route.looks()
BOUND = r"bound: $w\,(c_1/\sqrt{m}+c_2\sqrt{m}/(\varepsilon n))$"
OPTIMUM = r"$m=\varepsilon n/2$"
LABELS = {
    Panel.RECORDS: "records $n$",
    Panel.ROWS: "rows of the map $m$",
    Panel.EPSILON: r"$\varepsilon$",
    Panel.DIMENSION: "queries $k$",
}


def plot(table: pd.DataFrame) -> ex.Figure:
    parts = {panel: table[table.panel == panel] for panel in Panel}
    titles = [fixed(rows, panel) for panel, rows in parts.items()]
    error = r"error $\Vert M(X)-Q(X)\Vert_2$ (RMS)"
    figure, panels = ex.panels((7.2, 6.4), titles, [*LABELS.values()], error, rows=2)
    for axes, (panel, rows) in zip(panels, parts.items(), strict=True):
        draw(axes, rows, panel)
    columns = {"mechanism": [*LOOKS][:3], " ": [*LOOKS][3:], "theory": [BOUND, OPTIMUM]}
    ex.shared_legend(figure, columns)
    result = r"With a random map, the error does not grow with the number of queries"
    return ex.headline(figure, result, "Pure DP, for data that are worst for the map. Bands: 95%.")


def fixed(rows: pd.DataFrame, panel: Panel) -> str:
    """Text with the parameters that are fixed in a panel."""
    first = rows[rows.route == Route.GAUSSIAN].iloc[0]
    parts = {
        "k": f"$k={first.k}$",
        "n": f"$n={first.n}$",
        "epsilon": rf"$\varepsilon={first.epsilon:g}$",
    }
    return ", ".join(text for name, text in parts.items() if name != panel)


def draw(axes: ex.Axes, rows: pd.DataFrame, panel: Panel) -> None:
    """All mechanisms of a panel, with the bound for Gaussian maps."""
    gaussian = rows[rows.route == Route.GAUSSIAN].sort_values(panel)
    ex.draw_theory(axes, gaussian[panel], gaussian.bound, LOOKS[Route.GAUSSIAN].colour, BOUND)
    for route, look in LOOKS.items():
        mine = rows[rows.route == route]
        if mine.empty:
            continue
        means = ex.pooled_along(mine, panel)
        if panel is Panel.ROWS and route is Route.UNMAPPED:
            (mean,) = means.values()
            means = dict.fromkeys((gaussian.rows.min(), gaussian.rows.max()), mean)
        ex.draw_measured(axes, means, look, route)
    ex.log_axes(axes)
    if panel is Panel.ROWS:
        best = float((gaussian.epsilon * gaussian.n).iloc[0]) / NOISE_TO_DISTORTION
        axes.axvline(best, color="black", linestyle=(0, (1, 2)), linewidth=1.1, label=OPTIMUM)
    else:
        ex.label_ticks(axes, sorted(rows[panel].unique()))


def grid(
    k: int,
    records: Sequence[int],
    rows: Sequence[int],
    epsilons: Sequence[float],
    dimensions: Sequence[int],
    n: int,
    maps: int,
    many: int,
) -> tuple[Config, ...]:
    """The points of panels (a) to (d), each against one of the sequences.

    All but (d) have k queries, and all but (a) have n records. `many` is the number of Gaussian
    maps for each point of panels (a), (c) and (d), and `maps` that of maps for other points.
    """

    def point(panel: Panel, route: Route, k: int, n: int, epsilon: float) -> Config:
        if route is Route.BALL:
            mapped = math.ceil(math.pow(epsilon * n, 2 / 3))
        elif route in LAWS:
            mapped = jl_mechanism_rows(k - 1, n=n, epsilon=epsilon, noise=NOISE_TO_DISTORTION)
        else:
            mapped = 0
        # Releases without a map are cheap, so there are four times as many.
        few = maps if mapped > 0 else 4 * maps
        drawn = many if route is Route.GAUSSIAN else few
        return Config(panel, route, k, n, epsilon, mapped, drawn)

    beside = [Route.GAUSSIAN, Route.BALL, Route.UNMAPPED]
    return (
        *(point(Panel.RECORDS, route, k, each, 1.0) for route in beside for each in records),
        *ex.product(Config, Panel.ROWS, LAWS, k, n, 1.0, rows, maps),
        point(Panel.ROWS, Route.UNMAPPED, k, n, 1.0),
        *(point(Panel.EPSILON, Route.GAUSSIAN, k, n, each) for each in epsilons),
        *(
            point(Panel.DIMENSION, route, each, n, 1.0)
            for route in (Route.GAUSSIAN, Route.UNMAPPED, Route.ADDITIVE)
            for each in dimensions
        ),
    )


QUICK = ex.Sweep(
    grid(
        k=64,
        records=(16, 48),
        rows=(2, 16, 63),
        epsilons=(0.75, 2.25),
        dimensions=(32, 128),
        n=24,
        maps=20,
        many=60,
    )
)
FULL = ex.Sweep(
    grid(
        k=256,
        records=(16, 32, 64, 125, 250),
        rows=(2, 6, 16, 32, 80, 250),
        epsilons=(0.25, 0.5, 2.0, 4.0),
        dimensions=(32, 64, 128, 256),
        n=64,
        maps=40,
        many=160,
    )
)
