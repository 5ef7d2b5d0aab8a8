"""Error against the number of records under pure DP: additive noise, projection and JL.

Paper: Nikolov 2022, "Private query release via the Johnson-Lindenstrauss transform"
(arXiv 2208.07410), Theorem 1 and Lemmas 13 to 15; formula sheet JL-T1, JL-L13b, JL-L14, JL-L15.

Claim: additive pure-DP noise errs as 1/n, exactly as predicted before seeing data. K-norm noise
errs less than Laplace noise. For K-norm noise Z / n, projecting the noisy answers onto the
sensitivity polytope K changes the rate to n^(-1/2) while the noise is larger than K. Wherever the
data lie, the mean squared length of the error after projection stays below E h_K(Z) / n, where h_K
is the support function of K. The workloads are all 2-way marginal tables of ten binary columns, on
a real sample and on uniform data, and 200 random sign queries over 1000 elements. The rate n^(-1/2)
is claimed for the random signs only. The answers to the marginals span only 55 dimensions, so their
error goes from the size of the polytope to the rate 1/n within a decade of n.

All noise here has an exact sampler, so every release is 1-DP (in real arithmetic). The JL map has
(epsilon n)^(2/3) rows. The bound on the error of JL has two terms. The distortion by the map is of
order rows^(-1/2). The noise, with the exact sampler used here, adds a term of order
rows^(1/4) n^(-1/2). With this number of rows the squares of both terms are of order n^(-2/3).
Theorem 21 takes epsilon n rows, for K-norm noise without a known exact sampler. JL is left out
where the map would have as many rows as the answers have dimensions, or more. With few rows the
bound of JL is the diameter of the polytope, which no error exceeds. Errors of JL are therefore
compared with the bound only where the bound is less than the diameter. The distortion is checked at
every n.

Run time on one core: quick 5 s, full 7 minutes.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
import geomdp as gd
from experiments.error.every_mechanism import ball_error, balls_in_closed_form
from experiments.shared.records import Data, Queries, dimension, draw_records, workload

EPSILON = 1.0


class Family(ex.Curve):
    """Mechanisms, in the order of the legend."""

    LAPLACE = "Laplace", "C1", "s"
    BALL = "ball", "C5", "^"
    KNORM = "K-norm", "C0", "o"
    PROJECTED = "projected K-norm", "C2", "D"
    JL = "JL", "C4", "v", ex.HOLLOW


ADDITIVE = (Family.LAPLACE, Family.BALL, Family.KNORM)


def rows_of_map(n: int) -> int:
    """Number of rows of the JL map, (epsilon n)^(2/3) rounded up."""
    return math.ceil(math.pow(EPSILON * n, 2 / 3))


@cache
def additive(queries: Queries, family: Family) -> gd.mechanisms.AdditiveMechanism:
    """Additive mechanism for n = 1; its `with_n` changes n without a new set-up."""
    privacy = gd.PureDP(EPSILON)
    Q = workload(queries)
    builders: dict[Family, Callable[[], gd.mechanisms.AdditiveMechanism]] = {
        Family.LAPLACE: lambda: gd.mechanisms.Laplace(Q, n=1, privacy=privacy),
        Family.BALL: lambda: gd.mechanisms.Ball(Q, n=1, privacy=privacy),
        Family.KNORM: lambda: gd.mechanisms.KNorm(Q, n=1, privacy=privacy, exact=True),
    }
    return builders[family]()


@cache
def projected(queries: Queries) -> gd.mechanisms.Projected:
    """Projected K-norm noise for one record."""
    return gd.mechanisms.Projected(additive(queries, Family.KNORM))


def mechanism(
    queries: Queries, family: Family, n: int, rng: np.random.Generator
) -> gd.mechanisms.Mechanism:
    """The mechanism for n records; `rng` draws the public JL map, anew for each trial."""
    if family is Family.JL:
        inner = additive(queries, Family.BALL).with_n(n)
        return gd.mechanisms.JL(inner, rows_of_map(n), rng=rng)
    if family is Family.PROJECTED:
        return projected(queries).with_n(n)
    return additive(queries, family).with_n(n)


#: The largest loss of a distance between vertices, as a mean over maps, must be at least this share
#: of the stated distortion. The stated distortion is an upper bound: it adds two suprema over the
#: body, which no single pair of vertices needs to attain. The share was set after single maps had
#: given shares from 0.48 to 0.73.
LEAST = 0.4


@cache
def vertices(queries: Queries) -> ex.FloatArray:
    """Answers of each element alone to all queries, one row for each element."""
    Q = workload(queries)
    return np.vstack([Q.answers(each[None]) for each in Q.universe.elements(0, Q.universe.size)])


def distances(points: ex.FloatArray) -> ex.FloatArray:
    """Euclidean distances between all pairs of rows of `points`."""
    squares = (points**2).sum(axis=1)
    return np.asarray(np.sqrt(np.maximum(squares[:, None] + squares - 2 * points @ points.T, 0.0)))


def distortion_columns(queries: Queries, M: gd.mechanisms.Mechanism) -> ex.Row:
    """Largest loss between vertices, stated distortion, and diameter; empty if `M` is not JL.

    The distortion delta(A) of a map A is the largest loss of a distance between any two points of
    the polytope. The largest loss between vertices is therefore at most delta(A). The stated
    distortion is a bound on the mean of delta(A) over maps.
    """
    if not isinstance(M, gd.mechanisms.JL):
        return {}
    V = vertices(queries)
    lost = float((distances(V) - distances(V @ M.matrix.T)).max())
    return {
        "distortion": lost,
        "stated_distortion": M.mean_distortion,
        "diameter": M.workload.l2_diameter() / math.sqrt(M.workload.n_queries),
    }


def stays_below_where_it_says_more(table: pd.DataFrame, keys: Sequence[str]) -> ex.Claim:
    """Claim that JL errors stay below their bound wherever this bound is below the diameter."""
    return ex.stays_below_prediction(
        "the error of the JL mechanism stays below its bound, wherever this is less than the "
        "diameter",
        "JL-L13",
        table[table.predicted < (1 - 1e-9) * table.diameter],
        keys,
    )


def maps_distort(table: pd.DataFrame) -> ex.Claim:
    """Claim that the mean largest loss is `LEAST` to 1 times its bound, at every point."""
    points = table.groupby(["queries", "data", "n"])[["distortion", "stated_distortion"]].mean()
    # Where the stated distortion is 0, the share is infinite.
    with np.errstate(divide="ignore"):
        shares = points.distortion.to_numpy() / points.stated_distortion.to_numpy()
    name = "the largest loss of a distance between vertices is 0.4 to 1 times the stated distortion"
    measured = (
        f"{len(table)} maps, means at {len(points)} points {shares.min():.3f} to "
        f"{shares.max():.3f} of the stated distortion"
    )
    theory = f"{LEAST:g} to 1"
    return ex.Claim(name, ex.between(shares, LEAST, 1.0), measured, theory, "JL-T9, JL-L13")


#: Draws of the noise in one cell.
DRAWS = 100


def noise_columns(M: gd.mechanisms.Mechanism, rng: np.random.Generator) -> ex.Row:
    """Mean square of measurement noise divided by its stated value; empty if `M` is not JL.

    The sums are set to S = 0. Then A S = 0 for every map A, and a measurement is noise alone.
    """
    if not isinstance(M, gd.mechanisms.JL):
        return {}
    zero = np.zeros(M.workload.n_queries)
    stated = M.inner.predicted_rmse.value**2
    squares = [np.mean(M.draw(rng)(zero) ** 2) / stated for _ in range(DRAWS)]
    measured = ex.MeanSquare.of(squares)
    return {"noise": measured.value, "noise_stderr": measured.stderr}


def measurements_have_their_noise(table: pd.DataFrame) -> ex.Claim:
    """Two-sided: the noise has the mean square of the ball mechanism for the mapped workload."""
    off = ((table.noise - 1) / table.noise_stderr).abs()
    reach = ex.quantile(ex.LEVEL / (2 * len(table)), DRAWS)
    name = "the JL mechanism adds the noise of the ball mechanism to the mapped answers"
    measured = (
        f"{len(table)} maps, mean squares {table.noise.min():.3f} to {table.noise.max():.3f} of "
        f"the stated ones, off by at most {off.max():.1f} standard errors"
    )
    theory = f"1 within {reach:.1f} standard errors"
    return ex.Claim(name, ex.at_most(off, reach), measured, theory, "JL-A1, JL-L15")


#: Number of queries, dimension and l2 diameter of all 2-way tables of ten binary columns.
MARGINALS = (180, 55, math.sqrt(90))


@dataclass(frozen=True)
class Config:
    queries: Queries  # Workload
    data: Data  # Records; drawn anew for each release
    family: Family  # Mechanism
    n: int  # Number of records
    releases_per_trial: int  # Independent releases in one trial


#: Kinds of data at known places in the polytope.
PLACED = (Data.VERTEX, Data.MIX, Data.CENTRE)


def grid(
    ns: tuple[int, ...], positions: tuple[int, ...], releases: int, projections: int
) -> tuple[Config, ...]:
    """Three problems for n in `ns`; projected noise on three kinds of data for n in `positions`."""
    curves = [
        Config(queries, data, family, n, releases if family in ADDITIVE else projections)
        for queries, data in (
            (Queries.MARGINALS, Data.REAL),
            (Queries.MARGINALS, Data.UNIFORM),
            (Queries.SIGNS, Data.UNIFORM),
        )
        for family in Family
        for n in ns
        if family is not Family.JL or rows_of_map(n) < dimension(queries)
    ]
    placed = ex.product(Config, Queries, PLACED, Family.PROJECTED, positions, projections)
    return (*curves, *placed)


def compute(config: Config, rng: np.random.Generator) -> ex.Row:
    """Mean squared error per query over the releases of one trial, with the prediction."""
    Q = workload(config.queries)
    M = mechanism(config.queries, config.family, config.n, rng)
    squares = np.empty(config.releases_per_trial)
    for i in range(config.releases_per_trial):
        data = draw_records(config.queries, config.data, config.n, rng)
        squares[i] = np.mean((M.release(data, rng=rng).answers - Q.answers(data)) ** 2)
    return {
        **ex.MeanSquare.of(squares).columns(),
        **ex.predicted_columns(M.predicted_rmse),
        **noise_columns(M, rng.spawn(1)[0]),
        **distortion_columns(config.queries, M),
        "sampler": str(M.guarantee.sampler),
        "query_count": Q.n_queries,
        "universe_size": Q.universe.size,
    }


POINT = ("queries", "data", "family", "n")
#: Range of n over which the error of projected noise must fall as n^(-1/2) on the random signs, and
#: the allowed slopes. The slopes were set after a first run, which gave -0.44. The bound has the
#: slope -1/2, and errors for data far from the corners of the polytope fall a little more slowly.
#: The allowed slopes exclude -1/3.
PROJECTED_RANGE = (100, 3000)
PROJECTED_SLOPES = (-0.5, -0.4)
#: Up to this n, K-norm noise is so large on all workloads that projection must help.
NOISY = 100


def claims(table: pd.DataFrame) -> ex.Claims:
    noise_only = table[table.family.isin(ADDITIVE)]
    bounded = table[table.family == Family.PROJECTED]
    random_map = table[table.family == Family.JL]
    uniform = bounded[bounded.data == Data.UNIFORM]
    spread = uniform[(uniform.queries == Queries.SIGNS) & uniform.n.between(*PROJECTED_RANGE)]
    placed = bounded[bounded.data.isin(PLACED)]
    per_point = {
        family: ex.pooled_by(noise_only[noise_only.family == family], ["queries", "data", "n"])
        for family in ADDITIVE
    }
    curve = ["queries", "data", "family"]
    projected_points = ex.pooled_by(bounded.drop(placed.index), ["queries", "data", "n"])
    name = "the error of additive noise falls as 1/n"
    yield ex.slopes_are(name, "JL-L14", ex.slopes_by(noise_only, curve, "n"), -1.0, 0.05)
    name = "additive noise has the predicted error"
    yield ex.agrees_with_prediction(name, "JL-L14, JL-L15", noise_only, POINT)
    yield balls_in_closed_form(
        [
            (row.n * row.predicted, ball_error(*MARGINALS, EPSILON))
            for row in noise_only[noise_only.family == Family.BALL].itertuples()
            if row.queries == Queries.MARGINALS
        ]
    )
    name = "K-norm noise errs less than Laplace noise"
    yield ex.is_below(name, "JL-L14", per_point[Family.KNORM], per_point[Family.LAPLACE])
    yield ex.slopes_lie_within(
        "on random signs with uniform data and n = 100 to 3000, the error after projection "
        "falls nearly as n^(-1/2)",
        "JL-T1, third term",
        ex.slopes_by(spread, ["queries"], "n"),
        *PROJECTED_SLOPES,
    )
    yield ex.is_below(
        f"projection lowers the error of K-norm noise up to n = {NOISY}",
        "JL-L13b",
        {key: mean for key, mean in projected_points.items() if key[-1] <= NOISY},
        {key: mean for key, mean in per_point[Family.KNORM].items() if key[-1] <= NOISY},
    )
    name = (
        "the error after projection stays below its bound for data at a vertex, at a mix of "
        "ten elements and at the centre"
    )
    yield ex.stays_below_prediction(name, "JL-L13b", placed, POINT)
    name = "the error after projection stays below its bound on the real sample and on uniform data"
    yield ex.stays_below_prediction(name, "JL-L13b", bounded.drop(placed.index), POINT)
    yield stays_below_where_it_says_more(random_map, POINT)
    yield maps_distort(random_map)
    yield measurements_have_their_noise(random_map)


LOOKS = Family.looks()
BOUND = "bound, projected"
PANELS = ((Queries.MARGINALS, Data.REAL), (Queries.SIGNS, Data.UNIFORM))


def plot(table: pd.DataFrame) -> ex.Figure:
    figure, panels = ex.panels(
        (7.2, 3.9),
        [f"{queries}, {data}" for queries, data in PANELS],
        "number of records $n$",
        "error over that of K-norm noise",
        sharey=True,
    )
    for axes, (queries, data) in zip(panels, PANELS, strict=True):
        draw_families(axes, in_units_of_knorm(table, queries, data))
        ex.log_axes(axes)
    panels[0].set_ylim(0.05, 8)
    ex.label_curves(panels[1])
    result = "With few records, projection removes most of the noise; with many, none"
    settings = "1-DP. (a) ten binary columns; (b) 200 queries, 1,000 elements. Dashed: predicted."
    return ex.headline(figure, result, settings)


def in_units_of_knorm(table: pd.DataFrame, queries: Queries, data: Data) -> pd.DataFrame:
    """Rows of `data`, with errors divided by the exactly predicted error of K-norm noise."""
    mine = table[table.queries == queries]
    knorm = mine[mine.family == Family.KNORM]
    # K-norm noise errs as c / n. Any row of `knorm` gives c, so c / n is known at every n.
    unit = float((knorm.n * knorm.predicted).iloc[0]) / mine.n
    scaled = mine.assign(
        unit=unit,
        predicted=mine.predicted / unit,
        mean_square=mine.mean_square / unit**2,
        mean_square_stderr=mine.mean_square_stderr / unit**2,
    )
    return scaled[scaled.data == data]


def draw_families(axes: ex.Axes, table: pd.DataFrame) -> None:
    """Draw the mechanisms with their predictions."""
    for family in LOOKS:
        if family in (*ADDITIVE, Family.PROJECTED):
            predicted = table[table.family == family].groupby("n").predicted.first()
            name = BOUND if family is Family.PROJECTED else "_"
            ex.draw_theory(axes, predicted.index, predicted, LOOKS[family].colour, name)
    for family, look in LOOKS.items():
        means = ex.pooled_along(table[table.family == family], "n")
        ex.draw_measured(axes, means, look, family, joined=family not in ADDITIVE)


QUICK = ex.Sweep(grid((100, 1000, 3000), positions=(300,), releases=130, projections=20))
FULL = ex.Sweep(
    grid(
        (30, 55, 100, 170, 300, 550, 1000, 1700, 3000, 5500, 10000, 20000),
        positions=(30, 100, 300, 1000, 3000, 10000),
        releases=125,
        projections=125,
    ),
    trials=4,
)
