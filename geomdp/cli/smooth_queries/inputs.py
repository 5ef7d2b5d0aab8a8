"""Inputs of the `smooth` commands: columns with their bounds, records, and queries."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from geomdp.data import RealColumn, Schema, encode, read_chunks
from geomdp.workloads.smooth import ClosedForm, query_from_dict
from geomdp.workloads.universe.universes import SymmetricCube


def parse_bounds(text: str) -> Schema:
    """A schema of real columns from ``NAME=LOW:HIGH,...``; ``ValueError`` names the wrong part."""
    columns = []
    for part in text.split(","):
        name, equals, interval = (piece.strip() for piece in part.rpartition("="))
        low, colon, high = interval.partition(":")
        if not (name and equals and colon):
            raise ValueError(f"--bounds must be NAME=LOW:HIGH,..., got {part.strip()!r}")
        try:
            numbers = float(low), float(high)
        except ValueError as error:
            raise ValueError(f"--bounds of {name!r} must be numbers, got {interval!r}") from error
        columns.append(RealColumn(name, numbers))
    return Schema(tuple(columns))


@dataclass(frozen=True)
class NamedQuery:
    """A query with the name under which its answer is printed."""

    name: str
    query: ClosedForm


def read_queries(path: Path) -> list[NamedQuery]:
    """The queries in a JSON file, named by kind and position where it gives no name.

    ``ValueError`` names the file and the wrong entry; an ``ExceptionGroup`` has several of them.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"--query {path}: {error}") from error
    descriptions = content if isinstance(content, list) else [content]
    if not descriptions:
        raise ValueError(f"--query {path} must hold at least 1 query, got 0")
    queries: list[NamedQuery] = []
    errors: list[ValueError] = []
    for position, description in enumerate(descriptions):
        try:
            queries.append(_named(description, position))
        except ValueError as error:
            errors.append(ValueError(f"--query {path}, query number {position}: {error}"))
    if errors:
        raise errors[0] if len(errors) == 1 else ExceptionGroup("bad queries", errors)
    return queries


def _named(description: object, position: int) -> NamedQuery:
    if not isinstance(description, dict):
        return NamedQuery("", query_from_dict(description))  # raises ValueError for a non-object
    parameters = {key: value for key, value in description.items() if key != "name"}
    query = query_from_dict(parameters)
    name = description.get("name", f"{type(query).__name__} {position}")
    if not isinstance(name, str) or not name:
        raise ValueError(f"name must be text of at least 1 character, got {name!r}")
    return NamedQuery(name, query)


def counted(data: Path, schema: Schema) -> int:
    """The number of records; ``ValueError`` for no records or a value that is not within bounds."""
    universe = SymmetricCube(len(schema.columns))
    chunks = encode(read_chunks(data, schema.names, csv=schema.csv), schema.confirm(), universe)
    count = sum(len(chunk) for chunk in chunks)
    if count == 0:
        raise ValueError(f"{data} must hold at least 1 record, got 0")
    return count
