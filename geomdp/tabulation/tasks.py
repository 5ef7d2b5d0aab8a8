"""Tasks: the workloads that users ask for, with names for columns, queries and tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from geomdp._numerics.linalg import spread
from geomdp._typing import FloatArray
from geomdp._validation import plural as _plural
from geomdp._validation import positive, require_type, whole
from geomdp.data.columns import CategoricalColumn
from geomdp.data.possible import joined_columns
from geomdp.data.schema import Schema, Table, places_of
from geomdp.mechanisms import Mechanism, Prediction
from geomdp.tabulation.possible import Possible, joined_tables
from geomdp.tabulation.ways import MEAN, PREFIXES, RANGES, WAYS, Way, ordered, spans
from geomdp.workloads import (
    ChosenTables,
    Histogram,
    Marginals,
    MarginalTables,
    Parities,
    ProductQueries,
    RandomSigns,
    SecondMoment,
)
from geomdp.workloads.base import Workload

#: The chosen columns in order, each with the labels of its codes 0, 1, ....
ColumnLabels = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Task:
    """A workload to release, with names for its columns and queries, and for its tables and their
    weights (m,), or for the tables `products` of queries if columns are asked by `ways`. With
    `possible`, answers to `workload` determine the possible cells. Without `schema`: labels only.
    """

    workload: Workload
    columns: tuple[str, ...]
    description: str
    labels: list[str]
    tables: tuple[Table, ...] = ()
    weights: FloatArray | None = None
    schema: Schema | None = None
    products: tuple[Table, ...] = ()
    ways: Mapping[str, Way] = field(default_factory=dict)
    possible: Possible | None = None

    @property
    def shown(self) -> tuple[Table, ...]:
        """All tables, of cells or of products."""
        return self.tables or self.products

    @property
    def table_weights(self) -> list[float]:
        """The weight of each of `tables`."""
        if self.weights is None:
            return [1.0] * len(self.tables)
        return [float(self.weights[place.start]) for place in places_of(self.tables)]

    def spread(self, cells: FloatArray) -> FloatArray:
        """All cells (m,) from those that are possible."""
        return cells if self.possible is None else spread(cells, self.possible.live)

    @property
    def undeclared(self) -> str:
        """A warning, if the schema declares combinations impossible and `possible` does not."""
        assert self.schema is not None
        if self.possible is not None or not self.schema.forbidden:
            return ""
        return (
            "what the schema declares impossible is not used here: beside prefixes, ranges and "
            "means, all combinations of levels count as possible"
        )

    @property
    def disordered(self) -> str:
        """A warning, if prefixes or ranges take categories in the order of their declaration."""
        assert self.schema is not None
        for name in [name for name, way in self.ways.items() if way is not MEAN]:
            found = spans(inside := ordered(self.schema.labels[name]))
            increase = found is not None and (np.diff(found[:, 0]) > 0).all()
            if isinstance(self.schema.column(name), CategoricalColumn) and not increase:
                said = " < ".join([*inside[:4], *["..."] * (len(inside) > 4)])
                return f"the categories of {name} are taken in the declared order, {said}"
        return ""

    @property
    def caveat(self) -> str:
        """Why no release has a privacy claim, as `Schema.caveat` states; empty if it can have."""
        return "" if self.schema is None else self.schema.caveat

    @property
    def row(self) -> tuple[str, str]:
        """The queries in words, as a row to print."""
        said = f"{len(self.labels)}: {self.description}"
        if self.possible is not None:
            said += f"; {int((~self.possible.live).sum())} cells are declared impossible, and are 0"
        return ("queries", said)

    def predicted(self, mechanism: Mechanism) -> Prediction:
        """The predicted error per query of the task, for a mechanism that answers `workload`."""
        possible = self.possible
        return mechanism.predicted_rmse if possible is None else possible.predicted(mechanism)

    @property
    def tables_share_columns(self) -> bool:
        """Whether tables can disagree, about a column in two, or about what is possible."""
        if self.possible is not None:
            return True
        columns = [name for table in self.tables for name in table.columns]
        return len(set(columns)) < len(columns)


def chosen_columns(
    schema: Schema, names: Sequence[str] | None, *, real: bool = False
) -> dict[str, tuple[str, ...]]:
    """Check the names of columns, and return each column with the labels of its levels, by code."""
    require_type(schema, Schema, "schema")
    sort = "real" if real else "discrete"
    labels = schema.labels
    if real:
        labels = {column.name: () for column in schema.real_columns}
    if names is None:
        if not labels:
            raise ValueError(f"the schema must have at least 1 {sort} column, it has 0")
        return labels
    for name in names:
        if name not in labels:
            raise ValueError(
                f"columns must name {sort} columns of the schema ({', '.join(labels)}), "
                f"got {name!r}"
            )
        if names.count(name) > 1:
            raise ValueError(f"columns must name each column once, got {name!r} twice")
    return {name: labels[name] for name in names}


# Workload specifications such as ``marginals:2``, and the table `WORKLOAD_KINDS` of all kinds

#: Largest number of queries, except for ``marginals``; some mechanisms accept fewer.
MAX_QUERIES = 32768
#: Largest number of cells of all tables of ``marginals``. All 3-way tables of 100 binary columns
#: have 1.3 million cells. Their release takes half a minute and a gigabyte.
MAX_CELLS = 1 << 21
#: Largest number of random signs (2^24 float64 are 128 MB), and their public seed.
MAX_SIGNS, SIGNS_SEED = 1 << 24, 0


@dataclass(frozen=True)
class WorkloadKind:
    """One kind of specification: a row of the table `WORKLOAD_KINDS`."""

    name: str
    argument: str
    summary: str
    build: Callable[[ColumnLabels, str], Task]
    real: bool = False

    @property
    def usage(self) -> str:
        """How to write a specification of this kind, such as ``marginals:K``."""
        return f"{self.name}:{self.argument}" if self.argument else self.name


def parse_workload(spec: str, columns: ColumnLabels) -> Task:
    """The task that the specification `spec` describes; ``ValueError`` names the wrong part."""
    if not isinstance(spec, str):
        raise ValueError(f"workload must be text such as 'marginals:2', got {spec!r}")
    name, colon, argument = spec.partition(":")
    kind = next((kind for kind in WORKLOAD_KINDS if kind.name == name), None)
    if kind is None:
        known = ", ".join(kind.usage for kind in WORKLOAD_KINDS)
        raise ValueError(f"workload must be one of {known}; got {spec!r}")
    if bool(argument) != bool(kind.argument) or (colon and not argument):
        raise ValueError(f"workload {name} must be written {kind.usage}; got {spec!r}")
    return kind.build(columns, argument)


def _number(argument: str, name: str, maximum: int | None = None) -> int:
    """The number in a specification; ``ValueError`` if it is no whole number in range."""
    given: Any = int(argument) if argument.isascii() and argument.isdigit() else argument
    return whole(given, name, maximum=maximum)


def _limit(n_queries: int, spec: str, largest: int = MAX_QUERIES) -> None:
    if n_queries > largest:
        raise ValueError(
            f"workload {spec} must have at most {largest} queries, got {n_queries}: "
            "choose fewer columns or a smaller K"
        )


def _marginals(columns: ColumnLabels, argument: str) -> Task:
    order, comma, asked = argument.partition(",")
    k = _number(order, "K in workload marginals:K", len(columns))
    parts = [_column_asked(columns, part) for part in asked.split(",")] if comma else []
    ways = _agreed(parts, argument)
    # Each table has a cell, so too many tables are refused before they are listed.
    _limit(math.comb(len(columns), k), f"marginals:{argument}", MAX_CELLS)
    tables = list(itertools.combinations(columns, k))
    described = f"{_plural(len(tables), f'{k}-way table')} of {_plural(len(columns), 'column')}"
    named = [described, *(f"{name} by {way.name}" for name, way in ways.items() if way)]
    return _products(columns, tables, ways, ", ".join(named), k=k)


def _histogram(columns: ColumnLabels, argument: str) -> Task:
    del argument  # always empty
    elements = math.prod(map(len, columns.values()))
    _limit(elements, "histogram")
    described = f"joint histogram of {_plural(len(columns), 'column')}"
    task = _products(columns, [tuple(columns)], {}, described)
    return replace(task, workload=Histogram(elements))


def _column_asked(columns: ColumnLabels, text: str) -> tuple[str, Way | None]:
    """A column such as ``age`` or ``age[ranges]``, and how it is asked; None for its levels."""
    text = text.strip()
    if text in columns:
        return text, None
    name, _, rest = text.partition("[")
    way = next((way for way in WAYS if rest == f"{way.name}]"), None)
    if way is None or name not in columns:
        known = ", ".join(f"COLUMN[{way.name}]" for way in WAYS)
        raise ValueError(
            f"a column must be written COLUMN, {known}, with COLUMN among {', '.join(columns)}; "
            f"got {text!r}"
        )
    return name, way


def _agreed(asked: Iterable[tuple[str, Way | None]], said: str) -> dict[str, Way | None]:
    """How each column is asked; ``ValueError`` if one is asked in two ways."""
    ways: dict[str, Way | None] = {}
    for name, way in asked:
        if ways.setdefault(name, way) != way:
            raise ValueError(
                f"column {name!r} must be asked in the same way in all tables; got {said!r}"
            )
    return ways


def _tables(columns: ColumnLabels, argument: str) -> Task:
    parts = [
        [_column_asked(columns, text) for text in part.split("*")] for part in argument.split(",")
    ]
    ways = _agreed(itertools.chain(*parts), argument)
    tables = [tuple(name for name, _ in part) for part in parts]
    used = {name: labels for name, labels in columns.items() if name in ways}
    return _products(used, tables, ways, f"{_plural(len(tables), 'table')}: {argument}")


def _products(
    columns: ColumnLabels,
    tables: Sequence[tuple[str, ...]],
    ways: Mapping[str, Way | None],
    described: str,
    weights: Sequence[float] | None = None,
    k: int | None = None,
) -> Task:
    """The task of tables, of which some columns can be asked by ways; `k` if all have k columns."""
    asked = {name: way for name, way in ways.items() if way is not None}
    labels = {name: [f"{name}={level}" for level in levels] for name, levels in columns.items()}
    shown = dict(columns)
    for name, way in asked.items():
        labels[name], shown[name] = way.texts(name, columns[name])
    crossed = [tuple(name for name in columns if name in table) for table in tables]
    for each in (columns, labels):
        count = sum(math.prod(len(each[name]) for name in table) for table in crossed)
        _limit(count, described, MAX_CELLS)
    sizes = {name: len(levels) for name, levels in columns.items()}
    named = [
        ",".join(product)
        for table in crossed
        for product in itertools.product(*(labels[name] for name in table))
    ]
    workload: ChosenTables | ProductQueries | MarginalTables
    if asked:
        queries = {name: way.queries(columns[name]) for name, way in asked.items()}
        workload = ProductQueries(sizes, tables, queries, weights)
    elif k is not None:
        workload = MarginalTables(sizes, k)
    else:
        workload = ChosenTables(sizes, tables, weights)
    given = None if weights is None else workload.weights
    made = tuple(Table(own, tuple(tuple(shown[name]) for name in own)) for own in crossed)
    cells, products = ((), made) if asked else (made, ())
    return Task(workload, tuple(columns), described, named, cells, given, None, products, asked)


def _of_one(columns: ColumnLabels, name: str, way: Way, described: str) -> Task:
    """The queries of one column, as a product only if some levels have no place in the order."""
    if name not in columns:
        known = f"{', '.join(columns)}; got {name!r}"
        raise ValueError(f"COLUMN in workload {way.name}:COLUMN must be one of {known}")
    levels = columns[name]
    _limit(way.rows(levels).n_queries, f"{way.name}:{name}")
    described = f"all {described} of the {len(ordered(levels))} levels of {name}"
    if len(ordered(levels)) < len(levels):
        return _products({name: levels}, [(name,)], {name: way}, described)
    labels, cells = way.texts(name, levels)
    made = (Table((name,), (tuple(cells),)),)
    return Task(way.queries(levels), (name,), described, labels, (), None, None, made, {name: way})


_prefixes = partial(_of_one, way=PREFIXES, described="prefixes")
_ranges = partial(_of_one, way=RANGES, described="intervals")


def _of_binary(
    columns: ColumnLabels, argument: str, kind: type[Parities | Marginals], described: str
) -> Task:
    """The queries of K columns; ``ValueError`` if a column is not binary or K is wrong."""
    k = _number(argument, f"K in workload {described}:K", len(columns))
    for column, levels in columns.items():
        if len(levels) != 2:
            raise ValueError(
                f"workload {described}:{k} needs columns with 2 levels, "
                f"column {column!r} has {len(levels)}"
            )
    _limit(math.comb(len(columns), k), f"{described}:{k}")
    chosen = itertools.combinations(columns, k)
    if kind is Parities:
        labels = [f"parity({','.join(names)})" for names in chosen]
    else:
        labels = [",".join(f"{name}={columns[name][1]}" for name in names) for names in chosen]
    described = f"{k}-way {described} of {_plural(len(columns), 'binary column')}"
    return Task(kind(len(columns), k), tuple(columns), described, labels)


_conjunctions = partial(_of_binary, kind=Marginals, described="conjunctions")
_parities = partial(_of_binary, kind=Parities, described="parities")


def _signs(columns: ColumnLabels, argument: str) -> Task:
    elements = math.prod(len(levels) for levels in columns.values())
    m = _number(argument, "M in signs:M")
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
    del argument  # always empty
    d = len(columns)
    _limit(d * (d + 1) // 2, "second-moments")
    labels = [f"{a}*{b}" for a, b in itertools.combinations_with_replacement(columns, 2)]
    described = (
        f"second moments of {_plural(d, 'real column')}, scaled to [-1, 1] / sqrt({d}); products "
        "of two different columns are multiplied by sqrt(2)"
    )
    return Task(SecondMoment(d), tuple(columns), described, labels)


WORKLOAD_KINDS = (
    WorkloadKind("marginals", "K", "all cells of all K-way tables of the columns", _marginals),
    WorkloadKind(
        "tables",
        "COLUMN*COLUMN,...",
        "cells of chosen tables; age[prefixes], age[ranges] or age[mean] asks for these in place "
        "of each age; so does marginals:K,age[ranges]",
        _tables,
    ),
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


# The workload that a user asks for: one specification, or several tables with weights

#: A specification such as ``"marginals:2"``, or the names of the columns of one table.
Asked: TypeAlias = str | Sequence[str]


def task_of(
    schema: Schema,
    asked: Sequence[Asked],
    *,
    columns: Sequence[str] | None = None,
    weights: Sequence[float] | None = None,
) -> Task:
    """One workload of specifications and tables over the columns of a schema; `weights` has one for
    each of `asked`, or for each table of all of them.
    """
    if not asked:
        raise ValueError("workload must be at least 1 specification or table, got 0")
    parts = [_part(schema, each, columns) for each in asked]
    counts = [len(part.shown) for part in parts]
    given = [1.0] * len(asked) if weights is None else weights
    if len(given) not in (len(asked), sum(counts)):
        raise ValueError(
            f"weights must have {len(asked)} entries, one for each workload or table, "
            f"got {len(given)}"
        )
    checked = [positive(weight, "weights") for weight in given]
    if len(asked) == len(checked) == 1:
        task = parts[0]
    else:
        each = np.repeat(checked, counts).tolist() if len(checked) == len(asked) else checked
        task = _mixed(schema, parts, each)
    return _possible(replace(task, schema=schema.select(task.columns)))


def _part(schema: Schema, asked: Asked, columns: Sequence[str] | None) -> Task:
    if not isinstance(asked, str) and any("[" in str(text) for text in {*asked} - {*schema.names}):
        asked, columns = f"tables:{'*'.join(asked)}", None
    if isinstance(asked, str):
        name, _, argument = asked.partition(":")
        real = any(kind.real for kind in WORKLOAD_KINDS if kind.name == name)
        for column in schema.real_columns:
            if f",{column.name}[" in "," + argument.replace("*", ",").replace(" ", ""):
                raise ValueError(
                    f"column {column.name!r} is real, so no table can ask it: declare it with "
                    "edges, and it has a mean and quantiles by group, up to its bins"
                )
        return parse_workload(asked, chosen_columns(schema, columns, real=real))
    labels = chosen_columns(schema, asked)
    # Columns of a table are always in the order of the schema.
    used = {name: labels[name] for name in schema.names if name in labels}
    task = parse_workload(f"marginals:{len(used)}", used)
    return replace(task, description=f"the table {' x '.join(used)}")


def _mixed(schema: Schema, parts: Sequence[Task], weights: Sequence[float]) -> Task:
    for part in parts:
        if not part.shown:
            raise ValueError(
                f"each of several workloads must consist of tables, got {part.description}"
            )
    shown = [(table.columns, part.ways) for part in parts for table in part.shown]
    words, left = [part.description for part in parts], iter(weights)
    if len(set(weights)) > 1:
        for i, part in enumerate(parts):
            own = {*itertools.islice(left, len(part.shown))}
            words[i] += f" (weight {own.pop():g})" if len(own) == 1 else " (own weights)"
    said = "; ".join(words)
    ways = _agreed(((name, own.get(name)) for table, own in shown for name in table), said)
    order = parts[0].columns if len(parts) == 1 else schema.labels
    labels: ColumnLabels = {name: schema.labels[name] for name in order if name in ways}
    return _products(labels, [table for table, _ in shown], ways, said, weights)


def _possible(task: Task) -> Task:
    """The task with measured tables of possible cells, if its schema declares impossible ones."""
    assert task.schema is not None
    if not task.tables or not task.schema.forbidden:
        return task
    labels = task.schema.labels
    joined = joined_columns(labels, task.schema.forbidden, all_linked=True)
    weights = task.table_weights
    model, _ = joined_tables(task.tables, weights, joined, weighted=False)
    live = np.diff(model.matrix.indptr) > 0
    measured, own = joined_tables(
        task.tables, weights, [*task.schema.joined.values()], weighted=True
    )
    used = {name for table in measured.tables for name in table.columns}
    sizes = {name: len(c.codes) for name, c in measured.columns.items() if name in used}
    k = len(measured.tables[0].columns)
    named = [table.columns for table in measured.tables]
    if task.weights is None and named == [*itertools.combinations(sizes, k)]:
        workload: Workload = MarginalTables(sizes, k)
    else:
        workload = ChosenTables(sizes, named, own)
    measured, model = (replace(own, matrix=own.matrix[live]) for own in (measured, model))
    return replace(task, workload=workload, possible=Possible(live, measured, model))
