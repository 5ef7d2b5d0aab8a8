"""Speed of the geometry core: chords, samples, projections and widths beside named peers.

Every line of the benchmark solves the same instances with geomdp and, unless they are too large,
with peers, in one process, and compares the answers. The peers are linear programs for chords
(scipy's linprog, and HiGHS models that start from their last basis), quadprog on the dual form and
CVXPY with SCS for projections, hopsy for walks, hit-and-run for spectral draws, and a dense product
for widths (formula sheet X-RAY, X-MNP, X-LOCK, X-SPX). Vertices are Gaussian, or 0/1 answers to
marginal queries with ties and duplicates.

Claims: geomdp's certificates hold (the gauge is 1 at the ends of chords, projections have a
relative gap of at most 1e-12, every vertex is on one side of a separator), and every peer agrees.
For hit-and-run on spectral bodies only the time is measured. Speed is not claimed. It has goals,
which may be missed. Times are processor seconds of one core. In each of five runs, geomdp, its
peers and a physical limit are timed on the same instances, one after the other, and the ratios of
the runs have the shown medians. A line is done if it is as many times as fast as its peer as was
aimed at. Otherwise its goal is half of the limit: the share of the limit is the time of the limit
divided by that of geomdp.

The limits are work that cannot be left out. For a single projection it is one pass over the
vertices, with one product of m vertices with their transpose if all support the nearest point; for
chords, one matrix product per batch; for draws, one matrix product and the random numbers. For the
width of 2-way marginals of d attributes, whose vertices are never listed, the limit is one pass
over the 2^d elements. The time of 4,096 directions at d = 24 is extrapolated from 512 directions.

What was tried on lines below half of their limits: the rotations and products of short rows in
projections near full support were compiled to vector instructions, which saved a quarter of their
time. The chains of a box keep their layout from step to step (a tenth less); one pass over the
facets for two coordinates at once saved a sixth on random polytopes but nothing on boxes, and was
left out. Spectra of differences of spectraplexes are drawn by blocks of 210 sweeps at d = 30. With
168 sweeps, 0.85 of the blocks coalesce, and a draw costs the same; a heat bath takes 2 to 3
microseconds, of which 1.5 are quadrature and the inversion of its integral.

Run time on one core: quick 9 s, full 12 minutes.
"""

from collections.abc import Callable, Iterable

import numpy as np
import pandas as pd

import experiments.engine.tools as ex
from experiments.benchmarks import limits
from experiments.benchmarks.geometry_work import instances
from experiments.benchmarks.geometry_work.instances import GEOMDP, LOCKSTEP, Config, Vertices, Work
from experiments.engine.script import Needs

#: Columns that tell lines apart.
KEYS = ["work", "vertices", "dimension", "count"]
BOTH = (Vertices.GAUSSIAN, Vertices.MARGINALS)
ALONE = (Vertices.NONE,)

#: Each row holds the work, the kinds of vertices, the dimension, the first word of the peers'
#: names, and the ratio aimed at. The ratio is the time of the fastest of these peers over the time
#: of geomdp.
_AIMED: tuple[tuple[Work, tuple[Vertices, ...], int, str, float], ...] = (
    (Work.CHORD, BOTH, 10, "linprog", 150),
    (Work.CHORD, BOTH, 20, "linprog", 120),
    (Work.CHORD, BOTH, 50, "linprog", 70),
    (Work.CHORD, BOTH, 10, "HiGHS", 25),
    (Work.CHORD, BOTH, 20, "HiGHS", 40),
    (Work.CHORD, (Vertices.GAUSSIAN,), 50, "HiGHS", 40),
    (Work.CHORD, (Vertices.MARGINALS,), 50, "HiGHS", 25),
    (Work.DRAW, (Vertices.GAUSSIAN,), 20, "HiGHS", 25),
    (Work.BOX, ALONE, 50, "hopsy", 40),
    (Work.POLYTOPE, ALONE, 20, "hopsy", 15),
    (Work.STRETCHED, ALONE, 20, "hopsy", 20),
    (Work.SPECTRAPLEX, ALONE, 10, "hit-and-run", 1e5),
    (Work.SPECTRAPLEX, ALONE, 20, "hit-and-run", 1e5),
    (Work.SPECTRAPLEX, ALONE, 50, "hit-and-run", 1e5),
    (Work.SPECTRAPLEX_DIFFERENCE, ALONE, 30, "hit-and-run", 100),
    (Work.PROJECTION, BOTH, 200, "quadprog", 20),
    (Work.PROJECTION, BOTH, 500, "quadprog", 20),
    (Work.PROJECTION, BOTH, 200, "CVXPY", 20),
    (Work.FULL_SUPPORT, BOTH, 200, "quadprog", 15),
    (Work.MANY, BOTH, 200, "gd.project", 5),
    (Work.MEMBERSHIP, BOTH, 200, "linprog", 50),
    (Work.MEMBERSHIP, BOTH, 200, "quadprog", 5),
    (Work.WIDTH, ALONE, 16, "dense", 100),
)
RATIOS: dict[tuple[str, str, int, str], float] = {
    (work, kind, dimension, word): goal
    for work, kinds, dimension, word, goal in _AIMED
    for kind in kinds
}
#: Goals for the number of draws per second, by work and dimension.
RATES = {(Work.DRAW, 20): 50.0}
#: `DIRECTIONS` is the number of directions that `gaussian_width` takes by default. `SECONDS` holds
#: the goals for the time of all these directions, by work and number of attributes.
DIRECTIONS, SECONDS = 4096, {(Work.WIDTH, 24): 30.0}

#: Why an operation does not take less time, for each kind of work.
REASONS: dict[Work, str] = {
    Work.CHORD: "each end of a chord is a linear program: its pivots follow one another, and each "
    "pivot prices all vertices",
    Work.DRAW: "a draw takes as many chords as the walk needs to forget its start",
    Work.BOX: "a sweep moves one coordinate after the other",
    Work.POLYTOPE: "a sweep moves one coordinate after the other, each along all facets",
    Work.STRETCHED: "a sweep moves one coordinate after the other, each along all facets",
    Work.SPECTRAPLEX: "a draw needs a Wishart matrix, and d (d + 1) normal numbers for it",
    Work.SPECTRAPLEX_DIFFERENCE: "eigenvalues are drawn by coupling from the past, which runs "
    "until all chains meet",
    Work.PROJECTION: "vertices enter the support one by one, each with a solve on the support",
    Work.FULL_SUPPORT: "almost as many vertices as dimensions enter the support one by one, each "
    "with a solve on the support",
    Work.MANY: "targets share the vertices, but each target needs solves on a support of its own",
    Work.MEMBERSHIP: "only a complete projection proves that a point is inside",
    Work.WIDTH: "every direction looks at all 2^d elements; to look at fewer, bounds on many "
    "answers at once would be needed",
}


def medians(table: pd.DataFrame) -> pd.DataFrame:
    """One row per line and method, with medians over the runs.

    `ratio` is the median ratio of the method's seconds to those of geomdp in the same run, `share`
    that of the seconds of the limit to those of the method.
    """
    own = table[table.method == GEOMDP].set_index([*KEYS, "trial"]).seconds
    places = [tuple(row[key] for key in (*KEYS, "trial")) for row in _of(table)]
    paired = table.assign(
        ratio=[row.seconds / own[place] for row, place in zip(_of(table), places, strict=True)],
        share=table.limit_seconds / table.seconds,
    )
    grouped = paired.groupby([*KEYS, "method"], sort=False)
    middle = grouped[["seconds", "ratio", "share"]].median()
    worst = grouped[["slowest", "disagreement"]].max()
    first = grouped[["limit", "operations"]].first()
    return pd.concat([middle, worst, first], axis=1).reset_index()


def ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of peers of `medians`, with the goal for the ratio to geomdp, and its word."""
    found = medians(table)
    peers = found[found.method != GEOMDP].copy()
    peers["word"] = [_word(row.work, row.vertices, row.dimension, row.method) for row in _of(peers)]
    peers["goal"] = [
        RATIOS.get((row.work, row.vertices, row.dimension, row.word), np.nan) for row in _of(peers)
    ]
    return peers


def _of(table: pd.DataFrame) -> Iterable[pd.Series]:
    return (row for _, row in table.iterrows())


def _word(work: str, vertices: str, dimension: int, method: str) -> str:
    """The beginning of the name `method` for which `RATIOS` has a goal; empty if there is none."""
    words = (word for *line, word in RATIOS if line == [work, vertices, dimension])
    return next((word for word in words if method.startswith(word)), "")


def goals(table: pd.DataFrame) -> ex.Goals:
    """Ratios to peers, rates and seconds, or half the limit; only the full preset has goals."""
    found = medians(table)
    own = found[found.method == GEOMDP].set_index(KEYS, drop=False)
    peers = ratios(table)

    def goal(row: pd.Series, words: str, measured: float, least: float, aim: ex.Aim) -> ex.Goal:
        aimed = ex.Goal(f"{_name(*row[KEYS])}: {words}", measured, least, aim, _reason(row))
        return limits.rebased(aimed, row["share"], row["limit"])

    for key, rows in peers[peers.word != ""].groupby([*KEYS, "word"], sort=False):
        fastest = rows.loc[rows.ratio.idxmin()]
        words = f"times as fast as {fastest.method}"
        yield goal(own.loc[key[:-1]], words, fastest.ratio, fastest.goal, ex.Aim.AT_LEAST)
    for _, row in own.iterrows():
        key = (row.work, row.dimension)
        if rate := RATES.get(key):
            yield goal(row, "effective draws per second", 1 / row.seconds, rate, ex.Aim.AT_LEAST)
        if seconds := SECONDS.get(key):
            words = f"seconds of {DIRECTIONS:,} directions{_extrapolated(row)}"
            yield goal(row, words, DIRECTIONS * row.seconds, seconds, ex.Aim.AT_MOST)


def _extrapolated(row: pd.Series) -> str:
    """Words that state the number of timed directions if it is below `DIRECTIONS`; else empty."""
    timed = int(row.operations)
    return f", extrapolated from {timed:,}" if timed < DIRECTIONS else ""


def _name(work: str, vertices: str, dimension: int, count: int) -> str:
    size = f"({dimension}, {count})" if count else f"d = {dimension}"
    kind = "" if vertices == Vertices.NONE else f", {vertices}"
    return f"{work}, {size}{kind}"


def _reason(row: pd.Series) -> str:
    return f"{REASONS[Work(row.work)]}; one operation takes {row.seconds:.2g} s"


def vertices_with_batch(batch: int) -> Callable[[Config, np.random.Generator], limits.Limit]:
    """Limit of pricing all vertices for a batch of points, in seconds per point."""

    def limit(config: Config, rng: np.random.Generator) -> limits.Limit:
        seconds = limits.seconds_of_product(config.count, config.dimension, batch, rng)
        return limits.Limit(f"one product of the vertices with {batch} points, per point", seconds)

    return limit


def one_pass(config: Config, rng: np.random.Generator) -> limits.Limit:
    """Limit of reading all vertices once, for one product with a vector."""
    seconds = limits.seconds_of_product(config.count, config.dimension, 1, rng)
    return limits.Limit("one pass over the vertices", seconds)


def pass_and_support(config: Config, rng: np.random.Generator) -> limits.Limit:
    """Limit of reading all vertices once, and of the inner products of m support vertices."""
    m = config.dimension
    support = rng.standard_normal((m, m))
    seconds = one_pass(config, rng).seconds + limits.timed_product(support, support.T)
    return limits.Limit("one pass over the vertices and the inner products of m of them", seconds)


def facets_with_batch(config: Config, rng: np.random.Generator) -> limits.Limit:
    """Limit of the slacks of all facets for `LOCKSTEP` chains and of m uniform numbers."""
    facets = config.count or 2 * config.dimension
    seconds = limits.seconds_of_product(facets, config.dimension, LOCKSTEP, rng)
    return limits.Limit(
        f"one product of the facets with {LOCKSTEP} points, and m random numbers, per point",
        seconds + config.dimension * limits.seconds_of_numbers(rng.random),
    )


def square(config: Config, rng: np.random.Generator) -> limits.Limit:
    """Limit of a Wishart matrix: a matrix (d, d + 1) of normal numbers times its transpose."""
    d = config.dimension
    batch = rng.standard_normal((LOCKSTEP, d, d + 1))
    seconds = limits.timed_product(batch, batch.transpose(0, 2, 1)) / LOCKSTEP
    return limits.Limit(
        "one product of a matrix with its transpose, and its d (d + 1) normal numbers",
        seconds + d * (d + 1) * limits.seconds_of_numbers(rng.standard_normal),
    )


def one_look_at_elements(config: Config, rng: np.random.Generator) -> limits.Limit:
    """Limit of finding the largest of 2^d numbers, block by block, in seconds per direction."""
    elements = 2**config.dimension
    block = rng.standard_normal(min(elements, limits.BLOCK))
    seconds = limits.seconds_of(block.max, len(block)) * elements / len(block)
    return limits.Limit("one pass over the 2^d elements per direction", seconds)


LIMITS: dict[Work, Callable[[Config, np.random.Generator], limits.Limit]] = {
    **dict.fromkeys((Work.CHORD, Work.DRAW), vertices_with_batch(instances.CHAINS)),
    **dict.fromkeys((Work.BOX, Work.POLYTOPE, Work.STRETCHED), facets_with_batch),
    **dict.fromkeys((Work.SPECTRAPLEX, Work.SPECTRAPLEX_DIFFERENCE), square),
    **dict.fromkeys((Work.PROJECTION, Work.LARGE, Work.MEMBERSHIP), one_pass),
    Work.FULL_SUPPORT: pass_and_support,
    Work.MANY: vertices_with_batch(instances.TARGETS),
    Work.WIDTH: one_look_at_elements,
}


TIMED = "chords, samples, projections and widths, and their peers"
CLOCK = ("seconds", "slowest", "limit_seconds")
NEEDS = Needs(("hopsy", "quadprog"), extra="bench")


def compute(config: Config, rng: np.random.Generator) -> list[ex.Row]:
    """Seconds per operation of every method, with certificates, disagreements and the limit."""
    # This import is local because the module imports the peers, which are not needed to draw a
    # stored table.
    from experiments.benchmarks.geometry_work.timers import TIMERS

    limit = LIMITS[config.work](config, np.random.default_rng(0))
    columns = {"limit": limit.name, "limit_seconds": limit.seconds}
    return [{**row, **columns} for row in TIMERS[config.work](config, rng)]


def claims(table: pd.DataFrame) -> ex.Claims:
    for own, name in (
        (True, "the certificates of our results hold"),
        (False, "the peers' results agree with ours"),
    ):
        for work, rows in table[(table.method == GEOMDP) == own].groupby("work", sort=False):
            shares = rows.disagreement - rows.allowed
            worst = rows.loc[shares.idxmax()]
            statement = f"{work}: {name}"
            verdict = ex.allowed(rows.disagreement, rows.allowed)
            measured = f"{worst.disagreement:.2g} ({worst.method}, m = {worst.dimension})"
            theory = f"at most {worst.allowed:.2g}"
            yield ex.Claim(statement, verdict, measured, theory, "X-RAY, X-MNP, X-LOCK, X-SPX")


def plot(table: pd.DataFrame) -> ex.Figure:
    compared = ratios(table)
    compared["peer"] = compared.method.str.split(",").str[0].str.split(" ").str[0]
    best = compared.groupby([*KEYS, "peer"], sort=False).ratio.min().reset_index()
    spread = best.groupby(["work", "peer"], sort=False).ratio.agg(["min", "median", "max"])
    heights = np.arange(len(spread))
    figure = ex.Figure(figsize=(7.2, 1.4 + 0.24 * len(spread)))
    axes = figure.subplots()
    axes.hlines(heights, spread["min"], spread["max"], color="C0", lw=2.5, alpha=0.4)
    ex.draw_points(axes, spread["median"], heights, ex.Look("C0", "o"), "_", line="none")
    axes.axvline(1, color=ex.GREY, linewidth=0.8)
    names = [f"{work}: {peer}".replace("effective sample, ", "") for work, peer in spread.index]
    axes.set_yticks(heights, names)
    axes.set(ylim=(len(spread) - 0.5, -0.5), xlabel="time of the peer over that of geomdp")
    ex.log_axes(axes, "x")
    result = "The geometry core is faster than its peers, often by more than ten times"
    settings = "One core, paired runs. Median and range over dimensions and kinds of vertices."
    return ex.headline(figure, result, settings)


def both(work: Work, dimension: int, count: int, operations: int, peers: int) -> list[Config]:
    """Two lines: one with Gaussian vertices and one with 0/1 marginals."""
    return [Config(work, kind, dimension, count, operations, peers) for kind in BOTH]


def alone(work: Work, dimension: int, count: int, operations: int, peers: int) -> Config:
    """A line of the benchmark on a body that is not given by vertices."""
    return Config(work, Vertices.NONE, dimension, count, operations, peers)


QUICK = ex.Sweep(
    (
        *both(Work.CHORD, 6, 60, 3, 2),
        Config(Work.DRAW, Vertices.GAUSSIAN, 4, 30, 256, 2),
        alone(Work.BOX, 8, 0, 50, 300),
        alone(Work.POLYTOPE, 5, 30, 50, 300),
        alone(Work.STRETCHED, 5, 30, 50, 300),
        alone(Work.SPECTRAPLEX, 3, 0, 1000, 16),
        *both(Work.PROJECTION, 20, 200, 3, 1),
        *both(Work.FULL_SUPPORT, 20, 200, 2, 1),
        *both(Work.MANY, 20, 200, 1, 5),
        *both(Work.MEMBERSHIP, 10, 100, 4, 4),
        alone(Work.WIDTH, 8, 0, 64, 32),
    )
)
FULL = ex.Sweep(
    (
        *both(Work.CHORD, 10, 200, 50, 20),
        *both(Work.CHORD, 20, 1000, 10, 10),
        *both(Work.CHORD, 50, 2000, 1, 2),
        Config(Work.DRAW, Vertices.GAUSSIAN, 20, 1000, 512, 10),
        alone(Work.BOX, 50, 0, 200, 2000),
        alone(Work.POLYTOPE, 20, 200, 200, 1000),
        alone(Work.STRETCHED, 20, 200, 200, 1000),
        alone(Work.SPECTRAPLEX, 10, 0, 10000, 16),
        alone(Work.SPECTRAPLEX, 20, 0, 5000, 8),
        alone(Work.SPECTRAPLEX, 50, 0, 1000, 4),
        alone(Work.SPECTRAPLEX_DIFFERENCE, 30, 0, 100, 4),
        *both(Work.PROJECTION, 50, 1000, 10, 2),
        *both(Work.PROJECTION, 200, 5000, 5, 1),
        *both(Work.PROJECTION, 500, 20000, 3, 1),
        *both(Work.FULL_SUPPORT, 200, 5000, 3, 1),
        *both(Work.MANY, 200, 5000, 1, 8),
        *both(Work.MEMBERSHIP, 200, 5000, 4, 2),
        Config(Work.LARGE, Vertices.GAUSSIAN, 500, 100_000, 2, 0),
        Config(Work.LARGE, Vertices.GAUSSIAN, 100, 1_000_000, 2, 0),
        alone(Work.WIDTH, 16, 0, 4096, 64),
        alone(Work.WIDTH, 20, 0, 2048, 0),
        alone(Work.WIDTH, 24, 0, 512, 0),
    ),
    trials=5,
)
