"""Does pure DP need the Johnson-Lindenstrauss step, or does projecting K-norm noise suffice?

Paper: Nikolov 2022 (arXiv 2208.07410), Algorithm 1 and Theorem 21; formula sheet JL-A1, JL-T21,
JL-L13b. Algorithm 1 adds noise after a Johnson-Lindenstrauss map of the answers, and then projects
on the set of possible answers. Projection alone omits the map. The proof of the theorem's bound
needs the map: in some directions K-norm noise is wider than a Gaussian of the same energy. The
paper leaves open whether projection alone reaches the same error.

The error of projection alone is divided by the error with the best of three maps. The figure shows
two of eight families of workloads. Let r be the effective dimension. The first map has ceil(epsilon
n) rows, as in the theorem, but at most r - 1. The second has a quarter as many rows, and the third
has the number of rows with the least predicted error. The numbers of records make epsilon n about r
/ 32, r / 4 or r. K-norm noise uses the body of least energy among the bodies with an exact sampler.
There are eight families of workloads, each in growing sizes. Three are taken as they are. Five are
stretched so that K-norm noise is wide in directions where a Gaussian is not. In the first of these,
half of the queries repeat one query. In the second, the rows decay. In the third, one query is in
larger units. In the fourth, an eighth of the queries are in larger units (a long body next to a
wide one). The fifth is a ball with one long axis, called the needle. Recursive noise is measured
too where it differs from K-norm noise. The data are the worst that local searches find. The errors
on these data are measured again with fresh noise, so that no search profits from lucky draws.

Results at epsilon = 1: for n = r / 4 and n = r, projection alone errs no more than the map, up to
chance, on signs, marginals and parities. At n = r / 32 the result depends on the number m of
queries: on random signs the ratio grows with m and is 1.06 at m = 256. On the needle and other long
bodies, K-norm noise mostly errs less with the map than with projection alone, and the gain tends to
grow with the size. At m = 128 the largest factors are 2.1 on the needle (n = r / 4) and 1.5 on the
other families. Recursive noise, which the theorem itself uses, is different: wherever it splits the
body, at n = r / 4 and n = r, it errs no more with projection alone than with a map, up to chance.
At n = r / 32 the ratio is up to 1.08. Recursive noise does not split the needle. Intervals and
slopes are in the claims.

The results do not show that the gap keeps growing if the noise that errs least without a map is
used. They show nothing about other sizes, about noise without an exact sampler (for random signs,
the body with an exact sampler is a box, far from the tightest body), or about data that the search
misses. Only one map was drawn for each number of rows. The question therefore stays open for
pure-DP noise in general. For K-norm noise of a body chosen by its energy alone, the answer is that
projection does not always suffice.

Run time on one core: quick 4 s, full 3 minutes.
"""

import enum
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.shared import workloads as shared
from experiments.shared.workloads import Kind

PRIVACY = gd.PureDP(1.0)
#: Seed of the public map.
MAP_SEED = 0


class Family(enum.StrEnum):
    """Workloads: three as they are, five stretched on purpose."""

    SIGNS = "signs"
    MARGINALS = "marginals"
    PARITIES = "parities"
    REPEATED = "repeated query"
    DECAYING = "decaying rows"
    LONG = "long query"
    GLUED = "glued blocks"
    NEEDLE = "needle"


class Noise(enum.StrEnum):
    """Noise with an exact sampler, added to the answers or to their images under a map."""

    KNORM = "K-norm"
    RECURSIVE = "recursive"


class Route(enum.StrEnum):
    """Projection alone, or a map before the noise, with one of three numbers of rows."""

    ALONE = "projection alone"
    THEOREM = "map of the theorem"
    QUARTER = "map of a quarter of its rows"
    AUTO = "map with the best prediction"


@cache
def workload(family: Family, size: int) -> gd.workloads.Workload:
    """The workload: `size` queries, or all 2-way marginals or 3-way parities of `size` attributes.

    Random signs have m = `size` queries (rows) on 4 m elements. Four families are stretched random
    signs. Repeated query: half of all rows are copies of the first. Decaying rows: row i is divided
    by i^(1/2). Long query: all rows but the first are divided by m^(1/2), so that the sum of their
    squared lengths is about the squared length of the first. Glued blocks: all rows but the first
    eighth are divided by m^(1/2), so that the body is long in m / 8 directions and short in the
    others. The needle is a ball of radius m^(-1/2) whose first semi-axis is stretched to length 1.
    """
    builders: dict[Family, Callable[[], gd.workloads.Workload]] = {
        Family.SIGNS: lambda: shared.workload(Kind.SIGNS, size, 4 * size),
        Family.MARGINALS: lambda: shared.workload(Kind.MARGINALS_2, size),
        Family.PARITIES: lambda: shared.workload(Kind.PARITIES_3, size),
        Family.REPEATED: lambda: repeated(size),
        Family.DECAYING: lambda: scaled_signs(1 / np.sqrt(np.arange(1, size + 1))),
        Family.LONG: lambda: scaled_signs(long_rows(size, 1)),
        Family.GLUED: lambda: scaled_signs(long_rows(size, size // 8)),
        Family.NEEDLE: lambda: gd.workloads.LinearMap(
            shared.workload(Kind.MEANS, size), np.diag(long_rows(size, 1))
        ),
    }
    return builders[family]()


def long_rows(m: int, count: int) -> ex.FloatArray:
    """1 for the first `count` of m rows, m^(-1/2) for the others."""
    return np.where(np.arange(m) < count, 1.0, m**-0.5)


def scaled_signs(scales: ex.FloatArray) -> gd.workloads.Workload:
    """Random signs, with row i multiplied by ``scales[i]``."""
    m = len(scales)
    matrix = shared.random_signs(m, 4 * m).matrix
    return gd.workloads.Explicit(scales[:, None] * matrix)


def repeated(m: int) -> gd.workloads.Workload:
    """Random signs; half of the m rows are copies of the first row."""
    matrix = shared.random_signs(m - m // 2, 4 * m).matrix
    return gd.workloads.Explicit(np.vstack([matrix, np.repeat(matrix[:1], m // 2, axis=0)]))


def elements(family: Family, size: int, count: int, rng: np.random.Generator) -> npt.NDArray[Any]:
    """`count` random elements; for the needle, each is one of its ends with probability 1/2."""
    if family is not Family.NEEDLE:
        return np.asarray(workload(family, size).universe.sample(count, rng))
    points = rng.standard_normal((count, size))
    points[rng.random(count) < 0.5, 1:] = 0
    # Rounding must not carry points out of the unit ball.
    return np.asarray(points / (np.linalg.norm(points, axis=1, keepdims=True) * (1 + 1e-12)))


def effective(family: Family, size: int) -> int:
    """Dimension of the affine hull of all answer vectors."""
    return int(workload(family, size).affine_hull().dimension)


@cache
def levels(family: Family, size: int) -> int:
    """Number of levels of recursive noise; with one level it is K-norm noise."""
    return len(gd.mechanisms.Recursive(workload(family, size), n=1, privacy=PRIVACY).noise.levels)


def noisy(family: Family, size: int, noise: Noise, n: int) -> gd.mechanisms.AdditiveMechanism:
    """Additive mechanism on n records."""
    Q = workload(family, size)
    if noise is Noise.KNORM:
        return gd.mechanisms.KNorm(Q, n=n, privacy=PRIVACY, exact=True)
    return gd.mechanisms.Recursive(Q, n=n, privacy=PRIVACY)


@cache
def built(family: Family, size: int, noise: Noise, route: Route, n: int) -> gd.mechanisms.Mechanism:
    """The mechanism of a route: noise, then projection, with or without a map before the noise.

    The theorem's map has ceil(epsilon n) rows. This number minimises the bound only up to
    constants, so two other numbers are tried: a quarter of it, and the number with the least
    predicted error. The theorem's number and its quarter are capped below the effective dimension.
    """
    inner = noisy(family, size, noise, n)
    if route is Route.ALONE:
        return gd.mechanisms.Projected(inner)
    if route is Route.AUTO:
        return gd.mechanisms.JL(inner, gd.mechanisms.AutoDimension(), rng=MAP_SEED)
    rows = PRIVACY.epsilon * n / (4 if route is Route.QUARTER else 1)
    below = effective(family, size) - 1
    return gd.mechanisms.JL(inner, min(math.ceil(rows), below), rng=MAP_SEED)


def squared_errors(
    M: gd.mechanisms.Mechanism, records: npt.NDArray[Any], rngs: list[np.random.Generator]
) -> ex.FloatArray:
    """Mean squared error per query of one release for each generator."""
    truth = M.workload.answers(records)
    errors = [M.release(records, rng=rng).answers - truth for rng in rngs]
    return np.asarray([np.mean(error**2) for error in errors])


@dataclass(frozen=True)
class Judgement:
    """Error and mean of releases of one data set, with noise draws common to all data sets."""

    error: float  # Mean squared error per query
    answers: ex.FloatArray  # Mean of the released answers (m,)


#: Number of releases that judge an exchange of `Search`. All exchanges are judged with the same
#: draws of noise.
JUDGES = 8
#: Seeds of the noise that judges exchanges, and of the noise that compares searches.
DURING, AFTER = range(JUDGES), range(JUDGES, 3 * JUDGES)
#: Number of elements among which a directed exchange chooses.
POOL = 64


def judged(M: gd.mechanisms.Mechanism, records: npt.NDArray[Any], seeds: range) -> Judgement:
    """Mean squared error and mean answers, with one release for each of the `seeds`."""
    answers = [M.release(records, rng=np.random.default_rng(seed)).answers for seed in seeds]
    off = np.asarray(answers) - M.workload.answers(records)
    return Judgement(float(np.mean(off**2)), np.mean(answers, axis=0))


@dataclass(frozen=True)
class Search:
    """A local search for the worst data, run `restarts` times; the worst result counts.

    An exchange replaces a share of the records by one new element, and is kept if this raises the
    error under common noise. Random and directed exchanges take turns. A random exchange draws the
    new element at random. A directed exchange takes, among 64 elements, the element whose answers
    are furthest from the mean of the releases. If the releases did not change, data at this element
    would have the largest error.
    """

    family: Family  # Workload
    size: int  # Size of the workload
    M: gd.mechanisms.Mechanism  # The mechanism that is attacked
    exchanges: int  # Number of exchanges tried from the worst start
    #: Independent searches. Their results are compared by noise that none of them has used.
    restarts: int

    def worst(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        """The n records with the largest error that the searches found."""
        found = [self._once(child) for child in rng.spawn(self.restarts)]
        return max(found, key=lambda records: judged(self.M, records, AFTER).error)

    def _once(self, rng: np.random.Generator) -> npt.NDArray[Any]:
        records = max(self._starts(rng), key=lambda start: judged(self.M, start, DURING).error)
        worst = judged(self.M, records, DURING)
        for step in range(self.exchanges):
            moved = rng.random(self.M.n) < rng.choice([1 / self.M.n, 0.25, 0.5, 1.0])
            trial = records.copy()
            trial[moved] = self._element(worst if step % 2 else None, rng)
            found = judged(self.M, trial, DURING)
            if found.error > worst.error:
                worst, records = found, trial
        return records

    def _starts(self, rng: np.random.Generator) -> list[npt.NDArray[Any]]:
        n = self.M.n
        drawn = [elements(self.family, self.size, min(n, count), rng) for count in (1, 10, n)]
        return [np.resize(some, (n, *some.shape[1:])) for some in drawn]

    def _element(self, released: Judgement | None, rng: np.random.Generator) -> npt.NDArray[Any]:
        """A random element, or the element of a pool with answers furthest from the releases."""
        pool = elements(self.family, self.size, 1 if released is None else POOL, rng)
        if released is None:
            return np.asarray(pool[0])
        # For a release Y and the answers q of an element, E ||Y - q||^2 is ||q||^2 - 2 <E Y, q>
        # plus a constant.
        answers = self.M.workload.evaluate(pool)
        distance = (answers**2).sum(axis=1) - 2 * answers @ released.answers
        return np.asarray(pool[distance.argmax()])


KEYS = ["family", "divisor", "noise"]
#: A curve and a value of m, the number of queries. A curve is (family, divisor, noise). The divisor
#: is r / (epsilon n), where r is the effective dimension.
Point = tuple[str, int, str, int]


def ratios(table: pd.DataFrame) -> dict[Point, ex.MeanSquare]:
    """Error of projection alone over the error with the best map, for each curve and m.

    The results are ratios of mean squares; their roots are the ratios of errors. Standard errors
    follow by the delta method. The best map is the one with the least measured error, so chance
    favours the maps a little.
    """
    means = ex.pooled_by(table, [*KEYS, "m", "route"])
    found = {}
    for *place, route in means:
        if route != Route.ALONE:
            continue
        alone = means[*place, route]
        mapped = min(
            (mean for key, mean in means.items() if list(key[:-1]) == place and key[-1] != route),
            key=lambda mean: mean.value,
        )
        relative = math.hypot(alone.stderr / alone.value, mapped.stderr / mapped.value)
        value = alone.value / mapped.value
        found[tuple(place)] = ex.MeanSquare(value, value * relative, min(alone.count, mapped.count))
    return found


def slopes(points: dict[Point, ex.MeanSquare]) -> dict[tuple[str, int, str], ex.Slope]:
    """Slope against m of each curve with two points or more."""
    curves: dict[tuple[str, int, str], dict[int, ex.MeanSquare]] = {}
    for (family, divisor, noise, m), ratio in points.items():
        curves.setdefault((family, divisor, noise), {})[m] = ratio
    long = {key: curve for key, curve in curves.items() if len(curve) > 1}
    return {
        key: ex.log_log_slope([*curve], [*curve.values()], ex.LEVEL, len(long))
        for key, curve in long.items()
    }


def geometric_mean(ratios: list[ex.MeanSquare]) -> ex.MeanSquare:
    """Geometric mean of independent mean squares, with a standard error by the delta method."""
    value = math.exp(np.mean([math.log(ratio.value) for ratio in ratios]))
    relative = math.hypot(*(ratio.stderr / ratio.value for ratio in ratios)) / len(ratios)
    return ex.MeanSquare(value, value * relative, min(ratio.count for ratio in ratios))


def stated(points: dict[Point, ex.MeanSquare], key: Point) -> str:
    """A ratio of errors in words, with its interval, curve and m."""
    low, high = points[key].root_interval(ex.LEVEL, len(points))
    return f"{points[key].root:.3f} [{low:.3f}, {high:.3f}] ({curve_name(key[:3])}, m = {key[3]})"


def curve_name(key: tuple[str, int, str]) -> str:
    """Family, noise and number of records in words; the last part, r/divisor, is epsilon n."""
    family, divisor, noise = key
    return f"{family}, {noise}, r/{divisor}"


AS_THEY_ARE = (Family.SIGNS, Family.MARGINALS, Family.PARITIES)
#: Families with recursive noise. On all others recursion stops at the first level, so that the
#: noise is K-norm noise.
RECURSED = (Family.DECAYING, Family.LONG, Family.GLUED)
#: Effective dimension divided by epsilon n, from the fewest records to the most.
FAR, MIDDLE, END = 32, 4, 1


@dataclass(frozen=True)
class Config:
    """One way to answer one workload."""

    family: Family  # Workload
    size: int  # Its size; see `jl.problems.workload`
    divisor: int  # Effective dimension divided by epsilon n, before n is rounded up
    noise: Noise
    route: Route  # Projection alone, or the kind of map before the noise
    exchanges: int  # Number of exchanges tried in one search
    releases_per_trial: int  # Number of releases for the worst data found


#: Number of independent searches for the worst data.
RESTARTS = 2


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Error on the worst data found, under fresh noise."""
    family, size = config.family, config.size
    n = math.ceil(effective(family, size) / config.divisor)
    M = built(family, size, config.noise, config.route, n)
    records = Search(family, size, M, config.exchanges, RESTARTS).worst(rng)
    squares = squared_errors(M, records, rng.spawn(config.releases_per_trial))
    return {
        **ex.MeanSquare.of(squares).columns(),
        **ex.predicted_columns(M.predicted_rmse),
        "n": n,
        "m": M.workload.n_queries,
        "map_rows": M.matrix.shape[0] if isinstance(M, gd.mechanisms.JL) else 0,
        "levels": levels(family, size),
        "distinct": len(np.unique(records, axis=0)),
    }


def claims(table: pd.DataFrame) -> ex.Claims:
    points = ratios(table)
    yield ex.stays_below_prediction(
        "without a map, the error after projection stays below its bound on all data sets found",
        "JL-L13b",
        table[table.route == Route.ALONE],
        [*KEYS, "size"],
    )
    yield same_noise(table)
    yield no_gap(
        "signs, marginals and parities at n = r/4 and r: projection alone errs no more than "
        "with the best map, up to chance",
        {key: r for key, r in points.items() if key[0] in AS_THEY_ARE and key[1] != FAR},
    )
    yield no_gap(
        "stretched families at n = r/4 and r: recursive noise errs no more without a map than "
        "with the best one, up to chance",
        {key: r for key, r in points.items() if key[2] == Noise.RECURSIVE and key[1] != FAR},
    )
    if FAR in set(table.divisor):
        yield from gaps(points)
        yield trend_far_below(points)


def same_noise(table: pd.DataFrame) -> ex.Claim:
    """Recursive noise is left out only where it has one level and therefore is K-norm noise."""
    found = set(table[~table.family.isin(RECURSED)].levels)
    name = "recursive noise is left out only where it has one level, and thus is K-norm noise"
    verdict = ex.each_case(found == {1})
    return ex.Claim(name, verdict, f"{sorted(found)} levels", "1 level", "JL-SPLIT, early stopping")


def no_gap(name: str, points: dict[Point, ex.MeanSquare]) -> ex.Claim:
    """No ratio is above 1 beyond chance; the slopes in m are stated."""
    lows = {key: ratio.root_interval(ex.LEVEL, len(points))[0] for key, ratio in points.items()}
    largest = max(points, key=lambda key: points[key].root)
    trends = [f"{curve_name(key)} {slope}" for key, slope in slopes(points).items()]
    measured = f"{len(points)} ratios, at most {stated(points, largest)}; slopes in m: " + (
        "; ".join(trends) or "one size only"
    )
    theory = "at most 1 within the interval"
    return ex.Claim(name, ex.at_most(max(lows.values()), 1), measured, theory, "JL-T21")


#: Families and divisors for which K-norm noise is claimed to err less with a map than without one.
GAPS = ((Family.LONG, MIDDLE), (Family.GLUED, MIDDLE), (Family.GLUED, END), (Family.NEEDLE, FAR))


def gaps(points: dict[Point, ex.MeanSquare]) -> ex.Claims:
    """On long bodies K-norm noise errs more with projection alone than with a map, on average."""
    for family, divisor in GAPS:
        mine = {key: r for key, r in points.items() if key[:3] == (family, divisor, Noise.KNORM)}
        mean = geometric_mean([*mine.values()])
        low, high = mean.root_interval(ex.LEVEL)
        (slope,) = slopes(mine).values()
        yield ex.Claim(
            f"{family} at n = r/{divisor}: projected K-norm noise errs more without a map "
            "than with the best one",
            ex.above(low, 1),
            f"ratio {mean.root:.3f} [{low:.3f}, {high:.3f}], the mean over sizes; slope in m "
            f"{slope}; at the largest m {stated(mine, max(mine, key=lambda key: key[-1]))}",
            "above 1 on average",
            "JL-T21",
        )


def trend_far_below(points: dict[Point, ex.MeanSquare]) -> ex.Claim:
    """On random signs at n = r / 32, the ratio of errors grows with the number of queries."""
    mine = {key: r for key, r in points.items() if key[:2] == (Family.SIGNS, FAR)}
    (slope,) = slopes(mine).values()
    last = max(mine, key=lambda key: key[-1])
    name = "signs at n = r/32: the error without a map over that with the best map grows with m"
    measured = f"slope in m {slope}; at the largest m {stated(mine, last)}"
    return ex.Claim(name, ex.in_order(slope.low > 0), measured, "slope above 0", "JL-T21")


LOOKS = {FAR: ex.Look("C2", "^"), MIDDLE: ex.Look("C5", "s"), END: ex.Look("C0", "o")}
REGIMES = {FAR: r"$\varepsilon n=r/32$", MIDDLE: r"$\varepsilon n=r/4$", END: r"$\varepsilon n=r$"}
#: Two of the families, of which the second is the least favourable to projection alone.
DRAWN = (Family.SIGNS, Family.NEEDLE)
TICKS = (0.4, 0.6, 1, 1.4, 2)


def plot(table: pd.DataFrame) -> ex.Figure:
    figure, panels = ex.panels(
        (7.2, 3.6), DRAWN, "queries $m$", "RMSE, no map over best map", sharey=True
    )
    points = ratios(table[table.noise == Noise.KNORM])
    for axes, family in zip(panels, DRAWN, strict=True):
        draw_family(axes, {key[1:]: ratio for key, ratio in points.items() if key[0] == family})
        axes.set_yscale("log")
        axes.set_yticks(*ex.ticks(*TICKS))
        axes.minorticks_off()
    ex.label_curves(panels[1])
    return ex.headline(
        figure,
        "A random map before projection helps for a needle, not for random queries",
        r"1-DP, K-norm noise, effective dimension $r$. Below the dashed line, no map is better.",
    )


def draw_family(axes: ex.Axes, points: dict[tuple[int, str, int], ex.MeanSquare]) -> None:
    """The curves of one family and the line on which both errors are equal."""
    ms = sorted({m for *_, m in points})
    for divisor, look in LOOKS.items():
        mine = {m: ratio for (part, _, m), ratio in points.items() if part == divisor}
        ex.draw_measured(axes, mine, look, REGIMES[divisor])
    axes.axhline(1.0, color=ex.GREY, ls=(0, (4, 2)), lw=1.1)
    axes.set_xscale("log")
    ex.label_ticks(axes, ms)


def grid(
    sizes: dict[Family, tuple[int, ...]], divisors: Iterable[int], exchanges: int, releases: int
) -> tuple[Config, ...]:
    """All ways to answer every workload, at every size and with every divisor."""
    return tuple(
        Config(family, size, divisor, noise, route, exchanges, releases)
        for family, mine in sizes.items()
        for size in mine
        for divisor in divisors
        for noise in (Noise if family in RECURSED else [Noise.KNORM])
        for route in Route
    )


SIZES = {
    Family.SIGNS: (32, 64, 128, 256),
    Family.MARGINALS: (7, 9, 11),
    Family.PARITIES: (6, 7, 8),
    **dict.fromkeys(
        (Family.REPEATED, Family.DECAYING, Family.LONG, Family.GLUED, Family.NEEDLE), (32, 64, 128)
    ),
}
#: Half of the families, in small sizes; the panel of another family stays empty.
SMALL = {Family.SIGNS: (16, 32), Family.MARGINALS: (5,), Family.PARITIES: (5,), Family.GLUED: (16,)}
QUICK = ex.Sweep(grid(SMALL, (MIDDLE,), 2, 60))
FULL = ex.Sweep(grid(SIZES, (FAR, MIDDLE, END), 6, 200))
