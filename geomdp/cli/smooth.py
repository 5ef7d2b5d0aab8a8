"""The commands `smooth summarize` and `smooth answer`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from geomdp._numerics.files import write_together
from geomdp.cli import display, flags
from geomdp.cli.display import check_together
from geomdp.cli.flags import PRIVACY, QUERIES, RECORDS, RESULT, option, whole_number
from geomdp.cli.ledger import Payment
from geomdp.cli.output_files import (
    CSV,
    PARQUET,
    Columns,
    check_free,
    check_place,
    encoded,
    warn_of_formulas,
)

if TYPE_CHECKING:
    from geomdp.cli.smooth_request import NamedQuery
    from geomdp.mechanisms import SmoothRelease


app = typer.Typer(
    help="One private summary that answers any smooth query later, without the records.",
    no_args_is_help=True,
)


BoundsOption: TypeAlias = Annotated[
    str,
    option(
        "--bounds NAME=LOW:HIGH,...",
        RECORDS,
        "The columns to use, each with public bounds. Queries have these columns as their "
        "variables, in this order.",
    ),
]
SmoothnessOption: TypeAlias = Annotated[
    int,
    option(
        "--smoothness K",
        QUERIES,
        "Number of bounded derivatives that the queries are expected to have.",
        whole_number,
    ),
]
DegreeOption: TypeAlias = Annotated[
    int | None,
    option(
        "--degree T",
        PRIVACY,
        "Release moments of degrees 0..T-1 in each variable; by default T minimises the "
        "predicted error.",
        whole_number,
    ),
]
FileOption: TypeAlias = Annotated[Path, option("--out FILE.npz", RESULT, "File for the summary.")]
RecordsArgument: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help="Records, one per row, with a header: .csv, .csv.gz or .parquet."
    ),
]
SummaryArgument: TypeAlias = Annotated[
    Path, typer.Argument(metavar="FILE.npz", help="A file from `geomdp smooth summarize`.")
]
QueryOption: TypeAlias = Annotated[
    Path,
    option(
        "--query FILE",
        QUERIES,
        "A JSON file with a query or a list of queries, in the format below.",
    ),
]
UnitsOption: TypeAlias = Annotated[
    bool,
    option(
        "--cube-units/--original-units",
        QUERIES,
        "Units of the queries: cube units, in which each column goes from -1 at LOW to 1 at "
        "HIGH, or the units of the columns. A bandwidth or width is always in cube units: a "
        "multiple of half the range of a column.",
    ),
]
AnswersOption: TypeAlias = Annotated[
    Path | None,
    option(
        "--out FILE",
        RESULT,
        "Also write the answers to this file (.csv or .parquet), one row per query.",
    ),
]

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
    data: RecordsArgument,
    *,
    bounds: BoundsOption,
    n: flags.Count = None,
    smoothness: SmoothnessOption,
    degree: DegreeOption = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    epsilon_above_10: flags.Above10 = False,
    adjacency: flags.Neighbours = flags.AdjacencyFlag.REPLACE_ONE,
    ledger: flags.LedgerFile = None,
    budget: flags.Budget = None,
    out: FileOption,
    seed: flags.Seed = None,
    force: flags.Force = False,
) -> None:
    """Release noisy Chebyshev moments of the records in DATA as one file."""
    from geomdp.cli.smooth_request import Request, carry_out, parse_bounds

    relation, payment = adjacency.relation(), Payment(ledger, budget)
    schema, privacy = check_together(
        lambda: parse_bounds(bounds),
        lambda: flags.parse_released(epsilon, delta, rho, epsilon_above_10 or seed is not None),
        lambda: flags.check_whole("--smoothness", smoothness, minimum=1),
        lambda: flags.check_whole("--seed", seed, minimum=0),
        lambda: flags.check_normaliser(n, relation),
        lambda: payment.check(provable=seed is None),
        lambda: check_place(out, ".npz"),
        lambda: check_free([out], force, inputs=(data, ledger)),
    )
    request = Request(schema, privacy, relation, n, smoothness, degree, seed)
    carry_out(request, data, out, payment)


@app.command(epilog=FORMAT_HELP)
def answer(
    summary: SummaryArgument,
    *,
    query: QueryOption,
    cube: UnitsOption = True,
    out: AnswersOption = None,
    force: flags.Force = False,
) -> None:
    """Answer the queries in a file from a summary; the records are not needed."""
    from geomdp.cli.smooth_request import degrees, read_queries
    from geomdp.mechanisms import SmoothRelease

    release, queries = check_together(
        lambda: SmoothRelease.load(summary),
        lambda: read_queries(query),
        lambda: _check_answers(out, force, inputs=(summary, query)),
    )
    answers = _answers(release, queries, cube=cube)
    names = [] if release.schema is None else list(release.schema.names)
    display.print_rows(
        [
            ("summary", f"{release.n} records, {degrees(release)}"),
            ("variables", ", ".join(names) if names else str(release.d)),
            ("privacy", str(release.guarantee)),
            ("moments", _state(release)),
            *_counted(release),
        ]
    )
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
        write_together({out: encoded(answers, out)})
        warn_of_formulas(answers, out)
        print(f"\nwritten to {display.visible(str(out))}")


def _check_answers(out: Path | None, force: bool, inputs: tuple[Path, ...]) -> None:
    if out is not None:
        check_place(out, CSV, PARQUET)
        check_free([out], force, inputs)


def _answers(release: SmoothRelease, queries: list[NamedQuery], *, cube: bool) -> Columns:
    """Columns with the name, the kind, the answer and the errors of each query.

    Under add/remove, one more holds what each record missing from the declared n adds to the sum.
    """
    import numpy as np

    from geomdp.cli.smooth_request import in_cube
    from geomdp.privacy import Adjacency

    if not cube and release.schema is None:
        raise ValueError("--original-units needs a summary with the bounds of its columns")
    kinds, found = [], []
    for each in queries:
        asked = each.query
        if not cube and release.schema is not None:
            asked = in_cube(asked, release.schema)
        kinds.append(type(asked).__name__)
        found.append(release.answer(asked))
    names = ["answer", *ERRORS]
    # Under replace-one the number of records is n, so no record can be missing.
    if release.guarantee.adjacency is not Adjacency.REPLACE_ONE:
        names.append("missing_record")
    numbers = dict(zip(names, np.array(found, dtype=np.float64).T, strict=False))
    return {"query": [each.name for each in queries], "kind": kinds, **numbers}


def _counted(release: SmoothRelease) -> list[tuple[str, str]]:
    """Under add/remove, a row about the divisor of the sums. Under replace-one, no row."""
    from geomdp.privacy import Adjacency

    if release.guarantee.adjacency is Adjacency.REPLACE_ONE:
        return []
    said = (
        f"sums / {release.n}; if there are fewer than {release.n} records, each missing record "
        "adds the constant part of the query"
    )
    return [("answers", said)]


def _state(release: SmoothRelease) -> str:
    if release.post_processed:
        return "projected onto attainable moments; noise std is the value before the projection"
    return "as released"
