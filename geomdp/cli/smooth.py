"""The commands `smooth summarize` and `smooth answer`: any smooth query from one released file.

The file of ``--query`` holds one query, or a list of them, as JSON objects: the name of a class
under ``"kind"`` and its parameters under their names. Variables are those of the summary, in
order, in the units of the cube: a column with bounds low and high has x = -1 at low and 1 at high.

.. code-block:: json

    [
      {"kind": "GaussianMixture", "centres": [[0.2, -0.5]], "weights": [1.0], "bandwidth": 0.4},
      {"kind": "Logistic", "weights": [3.0, 0.0], "bias": -0.5},
      {"kind": "Polynomial", "exponents": [[2, 1]], "coefficients": [1.0]}
    ]

Kinds and parameters are the classes of `geomdp.workloads.smooth` with `to_dict`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from geomdp._validation import whole
from geomdp.cli import display
from geomdp.cli.options import (
    PRIVACY,
    QUERIES,
    RECORDS,
    RESULT,
    AdjacencyOption,
    CountOption,
    DeltaOption,
    EpsilonOption,
    ForceOption,
    RhoOption,
    SeedOption,
    whole_number,
)
from geomdp.cli.output_files import check_free, write_together
from geomdp.cli.privacy_flags import AdjacencyFlag, parse_privacy
from geomdp.data import RealColumn, Schema, encode, read_chunks
from geomdp.mechanisms import SmoothRelease, SmoothSummary
from geomdp.privacy import Adjacency
from geomdp.workloads.smooth import ClosedForm, query_from_dict
from geomdp.workloads.universe.universes import SymmetricCube

app = typer.Typer(
    help="One private summary that answers any smooth query later, without the records.",
    no_args_is_help=True,
)


BoundsOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--bounds",
        metavar="NAME=LOW:HIGH,...",
        help="The columns to use, each with public bounds; the variables of queries, in order.",
        rich_help_panel=RECORDS,
    ),
]
SmoothnessOption: TypeAlias = Annotated[
    int,
    typer.Option(
        "--smoothness",
        parser=whole_number,
        metavar="K",
        help="Number of bounded derivatives of the queries expected.",
        rich_help_panel=QUERIES,
    ),
]
DegreeOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--degree",
        parser=whole_number,
        metavar="T",
        help="Degrees 0..T-1 in each variable; by default from the predicted error.",
        rich_help_panel=PRIVACY,
    ),
]
FileOption: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--out", metavar="FILE.npz", help="Where the summary goes.", rich_help_panel=RESULT
    ),
]
RecordsArgument: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="Records, one a row, with a header: .csv, .csv.gz or .parquet."
    ),
]
SummaryArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE.npz", help="A summary of `geomdp smooth summarize`.")
]
QueryOption: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--query",
        metavar="FILE",
        help="A query or a list of them (JSON): kernels, logistic functions, polynomials, in the "
        "units of the cube, -1 at LOW and 1 at HIGH.",
        rich_help_panel=QUERIES,
    ),
]


@app.command()
def summarize(
    data: RecordsArgument,
    *,
    bounds: BoundsOption,
    n: CountOption = None,
    smoothness: SmoothnessOption,
    degree: DegreeOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    adjacency: AdjacencyOption = AdjacencyFlag.REPLACE_ONE,
    out: FileOption,
    seed: SeedOption = None,
    force: ForceOption = False,
) -> None:
    """Release noisy Chebyshev moments of the records in DATA as one file."""
    _check_output(out, force)
    schema = parse_bounds(bounds)
    privacy, relation = parse_privacy(epsilon, delta, rho), adjacency.relation()
    smoothness = whole(smoothness, "--smoothness")
    if seed is not None:
        whole(seed, "--seed", minimum=0)
    if n is not None:
        n = whole(n, "--n")
    elif relation is Adjacency.ADD_REMOVE:
        raise ValueError("--adjacency add-remove needs --n: the true number of records is private")
    source = "declared" if n is not None else "counted"
    if n is None:
        with display.working("reading records"):
            n = _count(data, schema)
    with display.working("preparing the summary"):
        summary = SmoothSummary(
            len(schema.columns),
            n=n,
            smoothness=smoothness,
            privacy=privacy,
            degree=degree,
            adjacency=relation,
            schema=schema,
        )
    with display.working("releasing"):
        points = encode(read_chunks(data, schema.names), schema, summary.workload.universe)
        released = summary.release(points, rng=seed)
        write_together({out: released.to_bytes()})
    display.print_rows(
        [
            ("records", f"{n} ({source}), {data}"),
            ("moments", f"{released.moments.size - 1}: {_degrees(released)}"),
            ("privacy", str(released.guarantee)),
            ("noise", _noise(released)),
            ("summary", str(out)),
        ]
    )


@app.command()
def answer(summary: SummaryArgument, *, query: QueryOption) -> None:
    """Answer the queries in a file from a summary; the records are not needed."""
    release = SmoothRelease.load(summary)
    queries = read_queries(query)
    answers = [release.answer(each) for each in queries]
    names = [] if release.schema is None else list(release.schema.names)
    display.print_rows(
        [
            ("summary", f"{release.n} records, {_degrees(release)}"),
            ("variables", ", ".join(names) if names else str(release.d)),
            ("privacy", str(release.guarantee)),
            ("moments", _state(release)),
        ]
    )
    print()
    display.print_table(
        ["query", "answer", "noise std", "approximation error", "proved at most"],
        [
            (
                type(each).__name__,
                # As many digits as the privacy noise of any summary leaves meaningful.
                f"{found.value:.8g}",
                *(display.number(error) for error in found[1:]),
            )
            for each, found in zip(queries, answers, strict=True)
        ],
    )


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


def _check_output(out: Path, overwrite: bool) -> None:
    if out.suffix != ".npz":
        raise ValueError(f"--out must name a file ending in .npz, got {str(out)!r}")
    if not out.parent.is_dir():
        raise ValueError(f"--out must be in an existing folder, got {str(out)!r}")
    check_free([out], overwrite)


def _count(data: Path, schema: Schema) -> int:
    """Number of records, after checking that every one is within the bounds."""
    universe = SymmetricCube(len(schema.columns))
    chunks = encode(read_chunks(data, schema.names), schema, universe)
    count = sum(len(chunk) for chunk in chunks)
    if count == 0:
        raise ValueError(f"{data} must hold at least 1 record, got 0")
    return count


def _noise(release: SmoothRelease) -> str:
    deviations = release.noise_std.ravel()[1:]
    low, high = map(display.number, (float(deviations.min()), float(deviations.max())))
    return f"standard deviation from {low} to {high} a moment"


def _degrees(release: SmoothRelease) -> str:
    variables = f"each of {release.d} variables" if release.d > 1 else "1 variable"
    return f"degrees 0 to {release.degree - 1} in {variables}"


def _state(release: SmoothRelease) -> str:
    if release.post_processed:
        return "projected on true ones; noise std is that of before"
    return "as released"
