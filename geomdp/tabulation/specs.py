"""Workload specifications such as ``marginals:2``, and the table `WORKLOAD_KINDS` of all kinds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from geomdp._validation import whole
from geomdp.tabulation.tasks import ColumnLabels, Table, Task, cell_labels
from geomdp.workloads import (
    Histogram,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    RandomSigns,
    Ranges,
    SecondMoment,
)

#: Largest number of queries of a specification other than ``marginals``. Mechanisms that store a
#: basis of the affine hull of the answers accept fewer queries.
MAX_QUERIES = 32768
#: Largest number of cells of all tables of ``marginals``. All 3-way tables of 100 binary columns
#: have 1.3 million cells. Their release takes half a minute and a gigabyte.
MAX_CELLS = 1 << 21
#: Largest number of signs of random sign queries (2^24 float64 are 128 MB), and the public seed
#: from which the signs are drawn.
MAX_SIGNS, SIGNS_SEED = 1 << 24, 0


@dataclass(frozen=True)
class WorkloadKind:
    """One kind of specification: a row of the table `WORKLOAD_KINDS`.

    Parameters
    ----------
    name : str
        The word before the colon, such as ``marginals``.
    argument : str
        Name of the argument after the colon, in capitals, such as ``K``; empty if there is none.
    summary : str
        The queries in a few words.
    build : callable
        Makes the task from the columns and the argument.
    real : bool
        Whether the queries are about real columns.

    Examples
    --------
    >>> import geomdp as gd
    >>> [kind.usage for kind in gd.tabulation.WORKLOAD_KINDS][:2]
    ['marginals:K', 'histogram']
    >>> [kind.name for kind in gd.tabulation.WORKLOAD_KINDS if kind.real]
    ['second-moments']
    """

    name: str
    argument: str
    summary: str
    build: Callable[[ColumnLabels, str], Task]
    real: bool = False

    @property
    def usage(self) -> str:
        """How to write a specification of this kind, such as ``marginals:K``."""
        return f"{self.name}:{self.argument}" if self.argument else self.name


def takes_reals(spec: str) -> bool:
    """Whether a specification is about real columns; False if its name is unknown.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.tabulation.takes_reals("marginals:2"), gd.tabulation.takes_reals("second-moments")
    (False, True)
    """
    name = _parts(spec)[0]
    return any(kind.real for kind in WORKLOAD_KINDS if kind.name == name)


def parse_workload(spec: str, columns: ColumnLabels) -> Task:
    """The task that the specification `spec` describes, for `columns`.

    ``ValueError`` for a wrong `spec` or column names the wrong part and what is allowed.

    Parameters
    ----------
    spec : str
        A specification such as ``marginals:2``.
    columns : mapping of str to sequence of str
        The columns in order, with the labels of their levels.

    Examples
    --------
    >>> import geomdp as gd
    >>> columns = {"sex": ["female", "male"], "smokes": ["no", "yes"]}
    >>> task = gd.tabulation.parse_workload("histogram", columns)
    >>> task.workload
    Histogram(N=4)
    >>> task.labels[0]
    'sex=female,smokes=no'
    """
    name, colon, argument = _parts(spec)
    kind = next((kind for kind in WORKLOAD_KINDS if kind.name == name), None)
    if kind is None:
        known = ", ".join(kind.usage for kind in WORKLOAD_KINDS)
        raise ValueError(f"workload must be one of {known}; got {spec!r}")
    if bool(argument) != bool(kind.argument) or (colon and not argument):
        raise ValueError(f"workload {name} must be written {kind.usage}; got {spec!r}")
    return kind.build(columns, argument)


def _parts(spec: str) -> tuple[str, str, str]:
    """Name, colon and argument of a specification; ``ValueError`` if it is not text."""
    if not isinstance(spec, str):
        raise ValueError(f"workload must be text such as 'marginals:2', got {spec!r}")
    return spec.partition(":")


def _order(argument: str, name: str, columns: ColumnLabels) -> int:
    """The number K of columns in one query; ``ValueError`` if K is no whole number in range."""
    if not (argument.isascii() and argument.isdigit()):
        raise ValueError(
            f"K in workload {name}:K must be a whole number from 1 to {len(columns)}, "
            f"got {argument!r}"
        )
    return whole(int(argument), f"K in workload {name}:K", maximum=len(columns))


def _limit(n_queries: int, spec: str, largest: int = MAX_QUERIES) -> None:
    if n_queries > largest:
        raise ValueError(
            f"workload {spec} must have at most {largest} queries, got {n_queries}: "
            "choose fewer columns or a smaller K"
        )


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _table(columns: ColumnLabels, names: tuple[str, ...]) -> Table:
    return Table(names, tuple(tuple(columns[name]) for name in names))


def _marginals(columns: ColumnLabels, argument: str) -> Task:
    k = _order(argument, "marginals", columns)
    sizes = {name: len(levels) for name, levels in columns.items()}
    # Each table has at least one cell. So if the number of tables is above the limit on cells,
    # refuse the tables before they are listed.
    _limit(math.comb(len(sizes), k), f"marginals:{k}", MAX_CELLS)
    tables = list(itertools.combinations(columns, k))
    cells = sum(math.prod(sizes[name] for name in table) for table in tables)
    _limit(cells, f"marginals:{k}", MAX_CELLS)
    labels = [label for table in tables for label in cell_labels(columns, table)]
    described = f"{_plural(len(tables), f'{k}-way table')} of {_plural(len(columns), 'column')}"
    crossed = tuple(_table(columns, table) for table in tables)
    return Task(MarginalTables(sizes, k), tuple(columns), described, labels, crossed)


def _histogram(columns: ColumnLabels, argument: str) -> Task:
    del argument  # always empty: this kind takes no argument
    sizes = tuple(len(levels) for levels in columns.values())
    _limit(math.prod(sizes), "histogram")
    described = f"joint histogram of {_plural(len(columns), 'column')}"
    labels = cell_labels(columns, tuple(columns))
    joint = (_table(columns, tuple(columns)),)
    return Task(Histogram(math.prod(sizes)), tuple(columns), described, labels, joint)


def _prefixes(columns: ColumnLabels, argument: str) -> Task:
    levels = _levels(columns, argument, "prefixes")
    _limit(len(levels), f"prefixes:{argument}")
    labels = [f"{argument}<={level}" for level in levels]
    described = f"all prefixes of the {len(levels)} levels of {argument}"
    return Task(Prefixes(len(levels)), (argument,), described, labels)


def _ranges(columns: ColumnLabels, argument: str) -> Task:
    levels = _levels(columns, argument, "ranges")
    workload = Ranges(len(levels))
    _limit(workload.n_queries, f"ranges:{argument}")
    pairs = itertools.combinations_with_replacement(levels, 2)
    labels = [f"{low}<={argument}<={high}" for low, high in pairs]
    described = f"all intervals of the {len(levels)} levels of {argument}"
    return Task(workload, (argument,), described, labels)


def _parities(columns: ColumnLabels, argument: str) -> Task:
    k = _binary_order(columns, argument, "parities")
    labels = ["parity(" + ",".join(names) + ")" for names in itertools.combinations(columns, k)]
    described = f"{k}-way parities of {_plural(len(columns), 'binary column')}"
    return Task(Parities(len(columns), k), tuple(columns), described, labels)


def _conjunctions(columns: ColumnLabels, argument: str) -> Task:
    k = _binary_order(columns, argument, "conjunctions")
    labels = [
        ",".join(f"{name}={columns[name][1]}" for name in names)
        for names in itertools.combinations(columns, k)
    ]
    described = f"{k}-way conjunctions of {_plural(len(columns), 'binary column')}"
    return Task(Marginals(len(columns), k), tuple(columns), described, labels)


def _signs(columns: ColumnLabels, argument: str) -> Task:
    elements = math.prod(len(levels) for levels in columns.values())
    if not (argument.isascii() and argument.isdigit() and int(argument) > 0):
        raise ValueError(f"M in signs:M must be a whole number, at least 1, got {argument!r}")
    m = int(argument)
    _limit(m, f"signs:{m}")
    if m * elements > MAX_SIGNS:
        raise ValueError(
            f"workload signs:{m} must have at most {MAX_SIGNS} signs, got {m} for each of "
            f"{elements} combinations of levels"
        )
    labels = [f"sign{i}" for i in range(1, m + 1)]
    described = f"{m} random signs on the {elements} combinations of levels"
    return Task(RandomSigns(m, elements, SIGNS_SEED), tuple(columns), described, labels)


def _second_moments(columns: ColumnLabels, argument: str) -> Task:
    del argument  # always empty: this kind takes no argument
    d = len(columns)
    _limit(d * (d + 1) // 2, "second-moments")
    labels = [f"{a}*{b}" for a, b in itertools.combinations_with_replacement(columns, 2)]
    described = (
        f"second moments of {_plural(d, 'real column')}, scaled to [-1, 1] / sqrt({d}); products "
        "of two different columns are multiplied by sqrt(2)"
    )
    return Task(SecondMoment(d), tuple(columns), described, labels)


def _levels(columns: ColumnLabels, name: str, kind: str) -> Sequence[str]:
    if name not in columns:
        raise ValueError(
            f"COLUMN in workload {kind}:COLUMN must be one of {', '.join(columns)}; got {name!r}"
        )
    return columns[name]


def _binary_order(columns: ColumnLabels, argument: str, name: str) -> int:
    """K of a workload on binary columns; ``ValueError`` if a column is not binary or K is wrong."""
    k = _order(argument, name, columns)
    for column, levels in columns.items():
        if len(levels) != 2:
            raise ValueError(
                f"workload {name}:{k} needs columns with 2 levels, "
                f"column {column!r} has {len(levels)}"
            )
    _limit(math.comb(len(columns), k), f"{name}:{k}")
    return k


WORKLOAD_KINDS = (
    WorkloadKind("marginals", "K", "all cells of all K-way tables of the columns", _marginals),
    WorkloadKind("histogram", "", "all cells of the joint table of the columns", _histogram),
    WorkloadKind("prefixes", "COLUMN", "share of records at or below each level", _prefixes),
    WorkloadKind("ranges", "COLUMN", "share of records in each interval of levels", _ranges),
    WorkloadKind(
        "conjunctions", "K", "share with the second level in all of K binary columns", _conjunctions
    ),
    WorkloadKind(
        "parities", "K", "mean product of K binary columns with the levels +1 and -1", _parities
    ),
    WorkloadKind(
        "signs", "M", "M random queries that are +1 or -1 on each combination of levels", _signs
    ),
    WorkloadKind(
        "second-moments",
        "",
        "mean products of all pairs of real columns, scaled to the unit ball",
        _second_moments,
        real=True,
    ),
)
