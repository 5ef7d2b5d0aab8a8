"""Goals for the speed of the geometry core: ratios to named peers, draws per second, seconds."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pandas as pd

from experiments.benchmarks.geometry_work.instances import GEOMDP, Vertices, Work
from experiments.engine.goals import Aim, Goal

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
    (Work.PROJECTION, BOTH, 500, "CVXPY", 500),
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


def ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of peers, with the ratio of their seconds to the seconds of geomdp, and a goal for it.

    The goal applies to the fastest of the methods whose names begin with the same word. It is NaN
    where `RATIOS` has no goal.
    """
    own = table[table.method == GEOMDP].set_index(KEYS).seconds
    peers = table[table.method != GEOMDP].copy()
    peers["ratio"] = [
        row.seconds / own[tuple(row[key] for key in KEYS)] for _, row in peers.iterrows()
    ]
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


def goals_of(table: pd.DataFrame) -> list[Goal]:
    """The goals whose operations are in the table, with geomdp's time over the physical limit."""
    own = table[table.method == GEOMDP].set_index(KEYS, drop=False)
    peers = ratios(table)
    found = []
    for key, rows in peers[peers.word != ""].groupby([*KEYS, "word"], sort=False):
        line, fastest = key[:-1], rows.loc[rows.ratio.idxmin()]
        name = f"{_name(*line)}: times as fast as {fastest.method}"
        reason, beside = _reason(own.loc[line]), _limit(own.loc[line])
        found.append(Goal(name, fastest.ratio, fastest.goal, Aim.AT_LEAST, reason, beside))
    for _, row in own.iterrows():
        key, name = (row.work, row.dimension), _name(*row[KEYS])
        if rate := RATES.get(key):
            found.append(
                Goal(
                    f"{name}: effective draws per second",
                    1 / row.seconds,
                    rate,
                    Aim.AT_LEAST,
                    _reason(row),
                    _limit(row),
                )
            )
        if seconds := SECONDS.get(key):
            found.append(
                Goal(
                    f"{name}: seconds of {DIRECTIONS:,} directions{_extrapolated(row)}",
                    DIRECTIONS * row.seconds,
                    seconds,
                    Aim.AT_MOST,
                    _reason(row),
                    _limit(row),
                )
            )
    return found


def _extrapolated(row: pd.Series) -> str:
    """Words that state the number of timed directions if it is below `DIRECTIONS`; else empty."""
    timed = int(row.operations)
    return f", extrapolated from {timed:,}" if timed < DIRECTIONS else ""


def _name(work: str, vertices: str, dimension: int, count: int) -> str:
    size = f"({dimension}, {count})" if count else f"d = {dimension}"
    kind = "" if vertices == Vertices.NONE else f", {vertices}"
    return f"{work}, {size}{kind}"


def _limit(row: pd.Series) -> str:
    return f"{row.seconds / row.limit_seconds:,.3g} times {row.limit}"


def _reason(row: pd.Series) -> str:
    return f"{REASONS[Work(row.work)]}; one operation takes {row.seconds:.2g} s"
