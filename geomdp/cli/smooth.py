"""The commands `smooth summarize` and `smooth answer`."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

import geomdp as gd
from geomdp._numerics.files import write_together
from geomdp._typing import FloatArray
from geomdp.cli import display, flags, outputs
from geomdp.cli.display import check_together, working
from geomdp.cli.flags import options, whole_number
from geomdp.cli.outputs import CSV, PARQUET, Columns, Payment

if TYPE_CHECKING:
    from geomdp.workloads.smooth import Polynomial
    from geomdp.workloads.smooth.queries import ClosedForm


app = typer.Typer(
    help="One private summary that answers any smooth query later, without the records.",
    no_args_is_help=True,
)


_option = options("""
Records:
--bounds NAME=LOW:HIGH,...  The columns to use, each with public bounds. Queries have these columns
    as their variables, in this order.
Queries:
--smoothness K  Number of bounded derivatives that the queries are expected to have.
--query FILE  A JSON file with a query or a list of queries, in the format below.
--cube-units/--original-units  Units of the queries: cube units, in which each column goes from -1
    at LOW to 1 at HIGH, or the units of the columns. A bandwidth or width is always in cube units:
    a multiple of half the range of a column.
Privacy:
--degree T  Release moments of degrees 0..T-1 in each variable; by default T minimises the predicted
    error.
Result:
--out FILE.npz  File for the summary.
--out FILE  Also write the answers to this file (.csv or .parquet), one row per query.
Arguments:
DATA  Records, one per row, with a header: .csv, .csv.gz or .parquet.
FILE.npz  A file from `geomdp smooth summarize`.
""")


#: Names of the columns that hold the errors of the answers.
ERRORS = ("noise_std", "approximation_error", "error_bound")

#: The format of queries, for the help. Each line becomes a paragraph.
FORMAT_HELP = """
The file of --query holds one object or a list of objects; "name" can be left out.

The arrays "low", "high" and the "weights" of Logistic have one entry for each column of the \
summary, in the same order.

The other kinds are sums of terms. The arrays "exponents", "centres" and "frequencies" have one \
row for each term, with one entry for each column. The other arrays have one entry for each term.

{"kind": "SoftRange", "name": "young", "low": [18, 0], "high": [30, 900], "width": 0.1}, in \
original units

{"kind": "Logistic", "weights": [3.0, 0.0], "bias": -0.5}: 1 / (1 + exp(-<w, x> - b))

{"kind": "Polynomial", "exponents": [[2, 1], [0, 1]], "coefficients": [1.0, -0.5]}: the mean of \
x1^2 x2 - 0.5 x2

{"kind": "GaussianMixture", "centres": [[0.2, -0.5]], "weights": [1.0], "bandwidth": 0.4}

{"kind": "Waves", "frequencies": [[1.0, 0.0]], "amplitudes": [1.0], "phases": [0.0]}
"""


@app.command()
def summarize(
    data: Annotated[Path, _option("DATA")],
    *,
    bounds: Annotated[str, _option("--bounds NAME=LOW:HIGH,...")],
    n: flags.Count = None,
    smoothness: Annotated[int, _option("--smoothness K", whole_number)],
    degree: Annotated[int | None, _option("--degree T", whole_number)] = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    epsilon_above_10: flags.Above10 = False,
    adjacency: flags.Neighbours = flags.AdjacencyFlag.REPLACE_ONE,
    ledger: flags.LedgerFile = None,
    budget: flags.Budget = None,
    out: Annotated[Path, _option("--out FILE.npz")],
    seed: flags.Seed = None,
    force: flags.Force = False,
) -> None:
    """Release noisy Chebyshev moments of the records in DATA as one file."""
    relation, payment = adjacency.relation(), Payment(ledger, budget)
    schema, privacy = check_together(
        lambda: _parsed_bounds(bounds),
        lambda: flags.parse_released(epsilon, delta, rho, epsilon_above_10 or seed is not None),
        lambda: flags.check_whole("--smoothness", smoothness, minimum=1),
        lambda: flags.check_whole("--seed", seed, minimum=0),
        lambda: flags.check_normaliser(n, relation),
        lambda: payment.check(provable=seed is None),
        lambda: outputs.check_place(out, ".npz"),
        lambda: outputs.check_free([out], force, inputs=(data, ledger)),
    )
    claim = gd.privacy.Guarantee(privacy, relation, gd.privacy.Exact())
    with payment.opened(claim, "SmoothSummary") as account, working("reading records"):
        summary = gd.SmoothSummary(
            len(schema.columns),
            n=_counted(data, schema) if n is None else n,
            smoothness=smoothness,
            privacy=privacy,
            degree=degree,
            adjacency=relation,
            schema=schema,
        )
        chunks = gd.data.read_chunks(data, schema.names, csv=schema.csv)
        points = gd.data.encode(chunks, schema.confirm(), summary.workload.universe)
        # Two numbers for each moment, of 8 bytes, and the record.
        room = 16 * (summary.workload.n_queries + 1) + 2**16 + 2 * len(schema.to_json())
        with outputs.paid_files({out: room}) as write:
            released = summary.release(points, rng=seed, ledger=account)
            charged = payment.charged(released.guarantee)
            write({out: released.to_bytes()}, charged)
        left = outputs.left_in(account)
    deviations = released.noise_std.ravel()[1:]
    low, high = map(display.number, (float(deviations.min()), float(deviations.max())))
    rows = [
        ("records", f"{released.n} ({display.counted(n)}), {data}"),
        ("moments", f"{released.moments.size - 1}: {_degrees(released)}"),
        ("privacy", str(released.guarantee)),
        ("noise", f"standard deviation from {low} to {high} per moment"),
        ("summary", str(out)),
        *left,
    ]
    with display.printing(f"{charged}, and the summary is in {out}"):
        display.print_rows(rows)


def _parsed_bounds(text: str) -> gd.data.Schema:
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
        columns.append(gd.data.RealColumn(name, numbers))
    return gd.data.Schema(tuple(columns))


def _counted(data: Path, schema: gd.data.Schema) -> int:
    """The number of records; ``ValueError`` for no records or a value that is not within bounds."""
    universe = gd.workloads.SymmetricCube(len(schema.columns))
    chunks = gd.data.read_chunks(data, schema.names, csv=schema.csv)
    count = sum(len(chunk) for chunk in gd.data.encode(chunks, schema.confirm(), universe))
    if count == 0:
        raise ValueError(f"{data} must hold at least 1 record, got 0")
    return count


def _degrees(release: gd.mechanisms.SmoothRelease) -> str:
    """The degrees of the moments, in words."""
    variables = f"each of {release.d} variables" if release.d > 1 else "1 variable"
    return f"degrees 0 to {release.degree - 1} in {variables}"


@app.command(epilog=FORMAT_HELP)
def answer(
    summary: Annotated[Path, _option("FILE.npz")],
    *,
    query: Annotated[Path, _option("--query FILE")],
    cube: Annotated[bool, _option("--cube-units/--original-units")] = True,
    out: Annotated[Path | None, _option("--out FILE")] = None,
    force: flags.Force = False,
) -> None:
    """Answer the queries in a file from a summary; the records are not needed."""
    release, queries = check_together(
        lambda: gd.mechanisms.SmoothRelease.load(summary),
        lambda: _read_queries(query),
        lambda: outputs.check_output(out, (CSV, PARQUET), force, inputs=(summary, query)),
    )
    answers = _answers(release, queries, cube=cube)
    variables = str(release.d) if release.schema is None else ", ".join(release.schema.names)
    state = "as released"
    if release.post_processed:
        state = "projected onto attainable moments; noise std is the value before the projection"
    rows = [
        ("summary", f"{release.n} records, {_degrees(release)}"),
        ("variables", variables),
        ("privacy", str(release.guarantee)),
        ("moments", state),
    ]
    if release.guarantee.adjacency is not gd.Adjacency.REPLACE_ONE:
        said = f"if there are fewer than {release.n} records, each missing record adds the constant"
        rows.append(("answers", f"sums / {release.n}; {said} part of the query"))
    display.print_rows(rows)
    print()
    display.print_table(
        ["query", "answer", "noise std", "approximation error", "proved at most"],
        [
            # The privacy noise is usually larger than the digits after the eighth.
            (name, f"{answer:.8g}", *map(display.number, errors))
            for name, answer, *errors in zip(
                *(answers[heading] for heading in ("query", "answer", *ERRORS)), strict=True
            )
        ],
    )
    if out is not None:
        write_together({out: outputs.encoded(answers, out)})
        outputs.warn_of_formulas(answers, out)
        print(f"\nwritten to {display.visible(str(out))}")


def _answers(
    release: gd.mechanisms.SmoothRelease, queries: list[tuple[str, ClosedForm]], *, cube: bool
) -> Columns:
    """The name, kind, answer and errors of each query, and what missing records add."""
    if not cube and release.schema is None:
        raise ValueError("--original-units needs a summary with the bounds of its columns")
    schema = None if cube else release.schema
    asked = [query if schema is None else _in_cube(query, schema) for _, query in queries]
    found = np.array([release.answer(query) for query in asked], dtype=np.float64)
    names = ["answer", *ERRORS]
    # Under replace-one the number of records is n, so no record can be missing.
    if release.guarantee.adjacency is not gd.Adjacency.REPLACE_ONE:
        names.append("missing_record")
    kinds = [type(query).__name__ for query in asked]
    numbers = dict(zip(names, found.T, strict=False))
    return {"query": [name for name, _ in queries], "kind": kinds, **numbers}


def _read_queries(path: Path) -> list[tuple[str, ClosedForm]]:
    """The names and queries in a JSON file; one ``ValueError`` for each wrong entry."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"--query {path}: {error}") from error
    descriptions = content if isinstance(content, list) else [content]
    if not descriptions:
        raise ValueError(f"--query {path} must hold at least 1 query, got 0")
    queries, errors = [], []
    for position, description in enumerate(descriptions):
        try:
            queries.append(_named(description, position))
        except ValueError as error:
            errors.append(ValueError(f"--query {path}, query number {position}: {error}"))
    if errors:
        raise errors[0] if len(errors) == 1 else ExceptionGroup("bad queries", errors)
    return queries


def _named(description: object, position: int) -> tuple[str, ClosedForm]:
    from geomdp.workloads.smooth.queries import query_from_dict

    if not isinstance(description, dict):
        return "", query_from_dict(description)  # raises ValueError for a non-object
    parameters = {key: value for key, value in description.items() if key != "name"}
    query = query_from_dict(parameters)
    name = description.get("name", f"{type(query).__name__} {position}")
    if not isinstance(name, str) or not name:
        raise ValueError(f"name must be text of at least 1 character, got {name!r}")
    return name, query


# From the units of the columns to units of the cube [-1, 1]^d

#: Largest number of terms in the expansion of one polynomial, before equal monomials are added.
MAX_TERMS = 10_000


def _in_cube(query: ClosedForm, schema: gd.data.Schema) -> ClosedForm:
    """A query on the cube with the values of `query` on columns: x stands for c_i + r_i x_i."""
    from geomdp.workloads.smooth import GaussianMixture, Logistic, Polynomial, SoftRange, Waves

    bounds = np.array([column.bounds for column in schema.real_columns])
    middle, half = bounds.mean(axis=1), np.diff(bounds, axis=1)[:, 0] / 2
    if query.dimension != len(bounds):
        raise ValueError(f"a query must have {len(bounds)} variables, got {query.dimension}")
    match query:
        case GaussianMixture():
            return replace(query, centres=(query.centres - middle) / half)
        case Logistic():
            bias = query.bias + float(query.weights @ middle)
            return replace(query, weights=query.weights * half, bias=bias)
        case Waves():
            phases = query.phases + query.frequencies @ middle
            return replace(query, frequencies=query.frequencies * half, phases=phases)
        case SoftRange():
            low, high = (query.low - middle) / half, (query.high - middle) / half
            return replace(query, low=low, high=high)
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
            each = zip(powers, chosen, middle, half, strict=True)
            factors = (math.comb(power, k) * r**k * c ** (power - k) for power, k, c, r in each)
            terms[chosen] = terms.get(chosen, 0.0) + coefficient * math.prod(factors)
    return type(query)(np.array(list(terms)), np.array(list(terms.values())))
