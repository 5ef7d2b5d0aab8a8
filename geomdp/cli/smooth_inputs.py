"""What the `smooth` commands read: columns with their bounds, records within them, and queries."""

from __future__ import annotations

import json
from pathlib import Path

from geomdp.data import RealColumn, Schema, encode, read_chunks
from geomdp.workloads.smooth import ClosedForm, query_from_dict
from geomdp.workloads.universe.universes import SymmetricCube


def parse_bounds(text: str) -> Schema:
    """Real columns from ``NAME=LOW:HIGH,...``.

    Raises
    ------
    ValueError
        For another form, or bounds that are not increasing; names the column.
    """
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


def read_queries(path: Path) -> list[ClosedForm]:
    """The queries in a JSON file.

    Raises
    ------
    ValueError
        Naming the file and the position of what is not a query.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"--query {path}: {error}") from error
    descriptions = content if isinstance(content, list) else [content]
    if not descriptions:
        raise ValueError(f"--query {path} must hold at least 1 query, got 0")
    queries = []
    for position, description in enumerate(descriptions):
        try:
            queries.append(query_from_dict(description))
        except ValueError as error:
            raise ValueError(f"--query {path}, query number {position}: {error}") from error
    return queries


def counted(data: Path, schema: Schema) -> int:
    """Number of records, after checking that every one is within the bounds."""
    universe = SymmetricCube(len(schema.columns))
    chunks = encode(read_chunks(data, schema.names), schema, universe)
    count = sum(len(chunk) for chunk in chunks)
    if count == 0:
        raise ValueError(f"{data} must hold at least 1 record, got 0")
    return count
