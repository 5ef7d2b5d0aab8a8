"""Which mechanisms the accuracy table compares on which lines, and how."""

import experiments.engine.tools as ex
from experiments.shared.accuracy_lines import Config, Method
from experiments.shared.workloads import Line

#: From this many records on, mechanisms are compared before projection. Random signs are the
#: exception: for them, projected mechanisms are compared too, at every number of records.
MANY = 1000


def compared_before(line: Line | str, n: int) -> bool:
    """Whether the mechanisms on a line are compared by their errors before projection."""
    return n >= MANY and line != Line.SIGNS


#: `TRIED` lists the mechanisms of each line, to which `grid` adds a few. The two peers in
#: `COMPARED` run on every line of `TRIED`. `CONES`, `LEVELS` and `AFTER_PEERS` are groups of
#: mechanisms that several lines share.
COMPARED = (Method.LAPLACE, Method.MATRIX)
CONES = (Method.CONE, Method.TIGHT_CONE, Method.PROJECTED_CONE, Method.FITTED_CONE)
LEVELS = (Method.HIERARCHICAL, Method.FITTED_HIERARCHICAL)
AFTER_PEERS = (Method.PROJECTED_LAPLACE, Method.PROJECTED_MATRIX, Method.FITTED_MATRIX)
TRIED: dict[Line, tuple[Method, ...]] = {
    Line.BINARY: (*CONES, Method.SPECTRAL, Method.HIERARCHICAL, *COMPARED),
    Line.CATEGORICAL: (Method.CONE, Method.TIGHT_CONE, Method.FITTED_CONE, *LEVELS, *COMPARED),
    Line.THREE_WAY: (*LEVELS, Method.PROJECTED_HIERARCHICAL, Method.KNORM, *COMPARED),
    Line.TWELVE: (Method.HIERARCHICAL, *COMPARED),
    Line.FEW_COLUMNS: (Method.CONE, Method.TIGHT_CONE, *COMPARED),
    Line.HUNDRED: (Method.CONE, Method.PROJECTED_CONE, Method.FITTED_CONE, *COMPARED),
    Line.PREFIXES: (Method.HIERARCHICAL, Method.KNORM, *COMPARED),
    Line.RANGES: (Method.HIERARCHICAL, Method.KNORM, *COMPARED),
    Line.SIGNS: (
        Method.FITTED_HIERARCHICAL,
        Method.PROJECTED_KNORM,
        Method.JL,
        Method.BALL,
        *COMPARED,
        *AFTER_PEERS,
    ),
}
#: Lines on which, with few records, our best mechanism errs clearly less than all peers. On 3-way
#: tables and on random signs, our best mechanism and the best peer err alike.
CLEAR_WITH_FEW = (Line.BINARY, Line.CATEGORICAL, Line.HUNDRED)
#: Goals for the ratio of our least error before projection to the least error of the peers. On
#: other lines, and with fewer than `MANY` records, the goal is 1.
GOALS = {
    Line.BINARY: 0.55,
    Line.CATEGORICAL: 0.7,
    Line.THREE_WAY: 0.9,
    Line.FEW_COLUMNS: 0.5,
    Line.HUNDRED: 0.3,
}


def goal_of(line: Line | str, n: int) -> float:
    """The goal for the ratio of our least error to that of the peers."""
    return GOALS.get(Line(line), 1.0) if n >= MANY else 1.0


#: Lines on which a graphical model is fitted. Here a model of all pairs or triples of columns fits
#: in memory.
MODELLED = (Line.BINARY, Line.CATEGORICAL, Line.THREE_WAY)
#: Lines on which cone noise of a lifted elliptope (see `predictions.Lifted`) is compared with all
#: other methods. Its error is known in closed form.
LIFTED_LINES = (Line.TWELVE, Line.SIXTEEN, Line.TWENTY, Line.FOUR_WAY)
#: Lines on which the error of recursive noise is predicted. On each of these lines some other
#: mechanism errs less. Recursive noise is listed because the claim about `advise` covers it.
RECURSIVE_LINES = (*MODELLED, Line.PREFIXES, Line.RANGES, Line.TWELVE)
#: Number of releases of the advised mechanism, by line and number of records; 0 where predictions
#: alone are compared. For a hundred columns there are few releases, because a draw of the noise
#: takes seconds: 20 releases take a minute and a half.
ADVISED: dict[tuple[Line, int], int] = {
    **dict.fromkeys(
        (
            (line, 5000)
            for line in (*MODELLED, Line.HUNDRED, Line.PREFIXES, Line.RANGES, *LIFTED_LINES)
        ),
        0,
    ),
    (Line.BINARY, 200): 200,
    (Line.CATEGORICAL, 200): 200,
    (Line.THREE_WAY, 200): 300,
    (Line.HUNDRED, 200): 20,
    **dict.fromkeys(((Line.SIGNS, n) for n in (100, 300, 1000, 3000)), 100),
}
#: Epsilons for one counting query. The larger epsilon is, the less geometric noise errs compared
#: with Laplace noise.
EPSILONS = (0.02, 0.1, 1.0, 3.0, 10.0)

#: Number of releases where a hundred might not tell which error is smaller.
RELEASES = {(Line.CATEGORICAL, 200): 200, (Line.THREE_WAY, 200): 300}


def grid(line: Line, n: int, releases: int, *extra: Method) -> tuple[Config, ...]:
    """All mechanisms on one line."""
    few = AFTER_PEERS if n < MANY and line in GOALS else ()
    # Shrinkage is tried for a hundred columns only. On the other lines its bound is at most 3%
    # below the bound for projection.
    shrunk = (Method.SHRUNK_CONE,) if n < MANY and line is Line.HUNDRED else ()
    methods = (*TRIED[line], *shrunk, *few, *extra)
    return tuple(Config(line, n, method, releases) for method in methods)


def predicted(lines: Line | tuple[Line, ...], *methods: Method) -> tuple[Config, ...]:
    """Predictions with many records; nothing is released."""
    return ex.product(Config, lines, 5000, methods, 0)


def one_count() -> tuple[Config, ...]:
    """Predictions for one counting query at several epsilons."""
    methods = (Method.LAPLACE, Method.GEOMETRIC, Method.ADVISED)
    return tuple(
        Config(Line.ONE_COUNT, 5000, method, 0, epsilon)
        for epsilon in EPSILONS
        for method in methods
    )


def advised() -> tuple[Config, ...]:
    """The mechanism that `advise` offers, predicted and, where `ADVISED` says so, released."""
    return tuple(
        Config(line, n, Method.ADVISED, releases)
        for (line, n), most in ADVISED.items()
        for releases in sorted({0, most})
    )


def full_grid() -> tuple[Config, ...]:
    """All points of the full sweep. Four workloads of tables run with 5000 and with 200 records."""
    tables = (
        config
        for line in (*MODELLED, Line.HUNDRED)
        for n in (5000, 200)
        for config in grid(
            line,
            n,
            RELEASES.get((line, n), 100),
            *((Method.GRAPHICAL,) if line in MODELLED else ()),
        )
    )
    return (
        *tables,
        # Only 3 releases, because each takes seconds and the error is known in closed form.
        Config(Line.HUNDRED, 5000, Method.SPECTRAL, 3),
        *grid(Line.PREFIXES, 5000, 100),
        *grid(Line.RANGES, 5000, 100),
        *(config for n in (100, 300, 1000, 3000) for config in grid(Line.SIGNS, n, 100)),
        *grid(Line.TWELVE, 5000, 30),
        *predicted(LIFTED_LINES, Method.JOINT, Method.LIFTED),
        *predicted((Line.SIXTEEN, Line.TWENTY, Line.FOUR_WAY), *COMPARED, Method.HIERARCHICAL),
        *predicted(MODELLED, Method.JOINT),
        *predicted(RECURSIVE_LINES, Method.RECURSIVE),
        *advised(),
        *one_count(),
    )


def quick_grid() -> tuple[Config, ...]:
    """Lines with many and with few records, random signs at two n for a slope, and predictions."""
    ends = (Method.PROJECTED_KNORM, Method.PROJECTED_LAPLACE)
    few = (Method.FITTED_CONE, Method.PROJECTED_LAPLACE, Method.FITTED_MATRIX)
    predictions = (
        *predicted(Line.TWELVE, *COMPARED, Method.HIERARCHICAL, Method.JOINT, Method.LIFTED),
        *predicted(Line.THREE_WAY, Method.ADVISED),
        Config(Line.THREE_WAY, 200, Method.ADVISED, 100),
        *one_count(),
    )
    return (
        *ex.product(Config, Line.BINARY, 200, few, 60),
        *grid(Line.FEW_COLUMNS, 5000, 40),
        *grid(Line.THREE_WAY, 200, 100),
        *ex.product(Config, Line.SIGNS, (100, 1000), ends, 100),
        *predictions,
    )
