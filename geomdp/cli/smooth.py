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

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

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
    check_whole,
    whole_number,
)
from geomdp.cli.output_files import check_free, check_place, write_together
from geomdp.cli.privacy_flags import AdjacencyFlag, parse_privacy
from geomdp.privacy import Adjacency

if TYPE_CHECKING:
    from geomdp.mechanisms import SmoothRelease

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
    from geomdp.cli.smooth_inputs import counted, parse_bounds
    from geomdp.data import encode, read_chunks
    from geomdp.mechanisms import SmoothSummary

    check_place(out, ".npz")
    check_free([out], force)
    schema = parse_bounds(bounds)
    privacy, relation = parse_privacy(epsilon, delta, rho), adjacency.relation()
    check_whole("--smoothness", smoothness, minimum=1)
    check_whole("--seed", seed, minimum=0)
    check_whole("--n", n, minimum=1)
    if n is None and relation is Adjacency.ADD_REMOVE:
        raise ValueError("--adjacency add-remove needs --n: the true number of records is private")
    source = "declared" if n is not None else "counted"
    if n is None:
        with display.working("reading records"):
            n = counted(data, schema)
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
    from geomdp.cli.smooth_inputs import read_queries
    from geomdp.mechanisms import SmoothRelease

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
