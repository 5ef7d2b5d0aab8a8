"""Which mechanisms the accuracy table compares on which lines, and how."""

from __future__ import annotations

from experiments.shared.accuracy_lines import Config, Method
from experiments.shared.workloads import Line

#: From this many records on, mechanisms are compared before projection. Random signs are the
#: exception: their noise is far larger than the body, so that projection always helps.
MANY = 1000


def compared_before(line: Line | str, n: int) -> bool:
    """Whether mechanisms are compared before projection."""
    return n >= MANY and line != Line.SIGNS


#: Mechanisms tried on each line; those that cannot run on it are left out.
COMPARED = (Method.LAPLACE, Method.MATRIX)
CONES = (Method.CONE, Method.TIGHT_CONE, Method.PROJECTED_CONE, Method.FITTED_CONE)
LEVELS = (Method.HIERARCHICAL, Method.FITTED_HIERARCHICAL)
TRIED: dict[Line, tuple[Method, ...]] = {
    Line.BINARY: (*CONES, Method.SPECTRAL, Method.HIERARCHICAL, *COMPARED),
    Line.CATEGORICAL: (
        Method.CONE,
        Method.TIGHT_CONE,
        Method.FITTED_CONE,
        *LEVELS,
        *COMPARED,
    ),
    Line.THREE_WAY: (*LEVELS, Method.PROJECTED_HIERARCHICAL, Method.KNORM, *COMPARED),
    Line.TWELVE: (Method.HIERARCHICAL, *COMPARED),
    Line.FEW_COLUMNS: (Method.CONE, Method.TIGHT_CONE, *COMPARED),
    Line.HUNDRED: (Method.CONE, Method.PROJECTED_CONE, Method.FITTED_CONE, *COMPARED),
    Line.PREFIXES: (Method.HIERARCHICAL, Method.KNORM, *COMPARED),
    Line.RANGES: (Method.HIERARCHICAL, Method.KNORM, *COMPARED),
    Line.SIGNS: (
        Method.FITTED_HIERARCHICAL,
        Method.PROJECTED_MATRIX,
        Method.PROJECTED_KNORM,
        Method.JL,
        Method.LAPLACE,
        Method.BALL,
        Method.PROJECTED_LAPLACE,
    ),
}
#: Ratio to the best peer that is aimed at before projection; 1 on the other lines.
GOALS = {
    Line.BINARY: 0.5,
    Line.CATEGORICAL: 0.7,
    Line.THREE_WAY: 0.7,
    Line.FEW_COLUMNS: 0.5,
    Line.HUNDRED: 0.3,
}
#: Tables of many columns, of which the closed form of a lifted elliptope is compared with all else.
LIFTED_LINES = (Line.TWELVE, Line.SIXTEEN, Line.TWENTY)
#: Lines on which what `advise` offers is compared with everything else in the table.
ADVISED_LINES = (
    Line.BINARY,
    Line.CATEGORICAL,
    Line.THREE_WAY,
    Line.HUNDRED,
    Line.PREFIXES,
    Line.RANGES,
    Line.TWELVE,
)
#: Tables on which a graphical model over all pairs or triples fits in memory.
MODELLED = (Line.BINARY, Line.CATEGORICAL, Line.THREE_WAY)


def grid(line: Line, n: int, releases: int, *extra: Method) -> tuple[Config, ...]:
    """All mechanisms on one line."""
    goal = GOALS.get(line, 1.0) if n >= MANY else 1.0
    few = (Method.PROJECTED_LAPLACE,) if n < MANY and line in GOALS else ()
    # On the other lines the bound of shrinkage is no smaller than that of projection.
    shrunk = (Method.SHRUNK_CONE,) if n < MANY and line is Line.HUNDRED else ()
    methods = (*TRIED[line], *shrunk, *few, *extra)
    return tuple(Config(line, n, method, goal, releases) for method in methods)


def predicted(line: Line, n: int, *methods: Method) -> tuple[Config, ...]:
    """Predictions on one line; nothing is released."""
    return tuple(Config(line, n, method, GOALS.get(line, 1.0), 0) for method in methods)


def full_grid() -> tuple[Config, ...]:
    """All lines; tables with many and with few records."""
    tables = (
        config
        for line in (Line.BINARY, Line.CATEGORICAL, Line.THREE_WAY, Line.HUNDRED)
        for n in (5000, 200)
        for config in grid(
            line,
            n,
            # Of the lines with few records, this one has the closest errors: a hundred releases
            # might not tell which error is smaller.
            300 if (line, n) == (Line.THREE_WAY, 200) else 100,
            *((Method.GRAPHICAL,) if line in MODELLED else ()),
        )
    )
    return (
        *tables,
        # 3 releases of 14 s each; its error is known in closed form.
        Config(Line.HUNDRED, 5000, Method.SPECTRAL, GOALS[Line.HUNDRED], 3),
        *grid(Line.PREFIXES, 5000, 100),
        *grid(Line.RANGES, 5000, 100),
        *(config for n in (100, 300, 1000, 3000) for config in grid(Line.SIGNS, n, 100)),
        *grid(Line.TWELVE, 5000, 30),
        *(
            config
            for line in LIFTED_LINES
            for config in predicted(line, 5000, Method.JOINT, Method.LIFTED)
        ),
        *(
            config
            for line in (Line.SIXTEEN, Line.TWENTY)
            for config in predicted(line, 5000, *COMPARED, Method.HIERARCHICAL)
        ),
        *(config for line in ADVISED_LINES for config in predicted(line, 5000, Method.ADVISED)),
        *predicted(Line.BINARY, 200, Method.ADVISED),
        *predicted(Line.THREE_WAY, 200, Method.ADVISED),
        *predicted(Line.SIGNS, 1000, Method.ADVISED),
    )


def quick_grid() -> tuple[Config, ...]:
    """Lines with many and with few records, two n for a slope, and predictions."""
    ends = (
        Config(Line.SIGNS, n, method, 1.0, 100)
        for n in (100, 1000)
        for method in (Method.PROJECTED_KNORM, Method.PROJECTED_LAPLACE)
    )
    predictions = (
        *predicted(Line.TWELVE, 5000, *COMPARED, Method.HIERARCHICAL),
        *predicted(Line.TWELVE, 5000, Method.JOINT, Method.LIFTED),
        *predicted(Line.THREE_WAY, 200, Method.ADVISED),
    )
    return (
        *grid(Line.FEW_COLUMNS, 5000, 40),
        *grid(Line.THREE_WAY, 200, 100),
        *ends,
        *predictions,
    )
