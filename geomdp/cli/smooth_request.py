"""The work of the `smooth` commands: their inputs, the summary, and the units of queries."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from geomdp._typing import FloatArray
from geomdp.cli import display
from geomdp.cli.display import working
from geomdp.cli.ledger import Payment, left_in
from geomdp.cli.output_files import paid_files
from geomdp.data import RealColumn, Schema, encode, read_chunks
from geomdp.mechanisms import SmoothRelease, SmoothSummary
from geomdp.privacy import Adjacency, Exact, Guarantee, Privacy
from geomdp.workloads.smooth import (
    ClosedForm,
    GaussianMixture,
    Logistic,
    Polynomial,
    SoftRange,
    Waves,
    query_from_dict,
)
from geomdp.workloads.universes import SymmetricCube

# Inputs: columns with their bounds, records, and queries


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


# Compute and write the summary, and print rows about it


@dataclass(frozen=True)
class Request:
    """The values of the flags that describe a summary; `degree` None is that of the least error."""

    schema: Schema
    privacy: Privacy
    adjacency: Adjacency
    n: int | None
    smoothness: int
    degree: int | None
    seed: int | None


def carry_out(request: Request, data: Path, out: Path, payment: Payment) -> None:
    """Release the summary of the records in `data` to the file `out`, and print rows about it."""
    schema, n = request.schema, request.n
    with payment.opened(request.adjacency) as account, working("reading records"):
        if account is not None:
            claim = Guarantee(request.privacy, request.adjacency, Exact())
            account.require(claim, "SmoothSummary")
        summary = SmoothSummary(
            len(schema.columns),
            n=counted(data, schema) if n is None else n,
            smoothness=request.smoothness,
            privacy=request.privacy,
            degree=request.degree,
            adjacency=request.adjacency,
            schema=schema,
        )
        points = encode(
            read_chunks(data, schema.names, csv=schema.csv),
            schema.confirm(),
            summary.workload.universe,
        )
        # Two numbers for each moment, of 8 bytes, and the record.
        room = 16 * (summary.workload.n_queries + 1) + 2**16 + 2 * len(schema.to_json())
        with paid_files({out: room}) as write:
            released = summary.release(points, rng=request.seed, ledger=account)
            charged = payment.charged(released.guarantee)
            write({out: released.to_bytes()}, charged)
        left = left_in(account)
    counting = "declared" if n is not None else "counted"
    rows = [
        ("records", f"{released.n} ({counting}), {data}"),
        ("moments", f"{released.moments.size - 1}: {degrees(released)}"),
        ("privacy", str(released.guarantee)),
        ("noise", _noise(released)),
        ("summary", str(out)),
        *left,
    ]
    with display.printing(f"{charged}, and the summary is in {out}"):
        display.print_rows(rows)


def degrees(release: SmoothRelease) -> str:
    """The degrees of the moments in a summary, in words."""
    variables = f"each of {release.d} variables" if release.d > 1 else "1 variable"
    return f"degrees 0 to {release.degree - 1} in {variables}"


def _noise(release: SmoothRelease) -> str:
    deviations = release.noise_std.ravel()[1:]
    low, high = map(display.number, (float(deviations.min()), float(deviations.max())))
    return f"standard deviation from {low} to {high} per moment"


# From the units of the columns to units of the cube [-1, 1]^d

#: Largest number of terms in the expansion of one polynomial, before equal monomials are added.
MAX_TERMS = 10_000


def in_cube(query: ClosedForm, schema: Schema) -> ClosedForm:
    """A query on the cube with the same values as `query` on the columns of `schema`.

    A point x represents y_i = c_i + r_i x_i, for the middle c_i and half width r_i of the bounds.
    Widths and bandwidths are in units of the cube. ``ValueError`` for another number of variables,
    a kind that cannot be converted, or polynomials of more than 10,000 terms.
    """
    bounds = np.array([column.bounds for column in schema.real_columns])
    middle, half = bounds.mean(axis=1), np.diff(bounds, axis=1)[:, 0] / 2
    if query.dimension != len(bounds):
        raise ValueError(f"a query must have {len(bounds)} variables, got {query.dimension}")
    match query:
        case GaussianMixture():
            centres = (query.centres - middle) / half
            return GaussianMixture(centres, query.weights, query.bandwidth)
        case Logistic():
            bias = query.bias + float(query.weights @ middle)
            return Logistic(query.weights * half, bias)
        case Waves():
            phases = query.phases + query.frequencies @ middle
            return Waves(query.frequencies * half, query.amplitudes, phases)
        case SoftRange():
            low, high = (query.low - middle) / half, (query.high - middle) / half
            return SoftRange(low, high, query.width)
        case Polynomial():
            return _expanded(query, middle, half)
        case _:
            raise ValueError(f"{type(query).__name__} cannot be given in units of the columns")


def _expanded(query: Polynomial, middle: FloatArray, half: FloatArray) -> Polynomial:
    """The polynomial sum_j a_j prod_i (c_i + r_i x_i)^(e_ji) of `query`, as monomials in x."""
    exponents = query.exponents.astype(np.int64)
    if sum(math.prod(row) for row in (exponents + 1).tolist()) > MAX_TERMS:
        raise ValueError(f"a polynomial must expand to at most {MAX_TERMS} monomials")
    terms: dict[tuple[int, ...], float] = {}
    for powers, coefficient in zip(exponents.tolist(), query.coefficients.tolist(), strict=True):
        for chosen in itertools.product(*(range(power + 1) for power in powers)):
            factors = [
                math.comb(power, k) * r**k * c ** (power - k)
                for power, k, c, r in zip(powers, chosen, middle, half, strict=True)
            ]
            terms[chosen] = terms.get(chosen, 0.0) + coefficient * math.prod(factors)
    return Polynomial(np.array(list(terms)), np.array(list(terms.values())))
