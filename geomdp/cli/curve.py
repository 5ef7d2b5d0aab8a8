"""The command `curve`: a figure of error against the number of records, for any workload."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
import typer

import geomdp as gd
from geomdp._numerics.files import write_together
from geomdp.cli import display, flags
from geomdp.cli.display import check_together, working
from geomdp.cli.flags import RECORDS, RESULT, option
from geomdp.cli.output_files import check_free, check_place
from geomdp.privacy import Exact

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd


#: Errors are predicted at about this many values of n per factor of ten. The values include both
#: ends of the range of n.
PER_DECADE = 4
#: Largest n of a curve. Measuring an error at n draws n records.
MOST_RECORDS = 10**7
NOTHING_EXCLUDED = (
    "no region is shaded, because the known lower bounds for this workload and guarantee exclude "
    "no error as large as 1% of the largest difference between answers"
)
NOT_PRIVATE = (
    "measured errors depend on the records and have no noise that would protect them: publish the "
    "files only if the records are public"
)

MeasuredArgument: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="DATA",
        help="File of records (.csv, .csv.gz or .parquet) on which errors are measured, besides "
        "the predictions; needs --schema. Use only public or synthetic records: measured errors "
        "are NOT private.",
        show_default=False,
    ),
]
MeasureOption: TypeAlias = Annotated[
    bool, option("--measure", RECORDS, "Measure errors on the records of --sample.")
]
RangeOption: TypeAlias = Annotated[
    str, option("--n LOW:HIGH", RECORDS, "Numbers of records to cover.")
]
FigureOption: TypeAlias = Annotated[
    Path,
    option(
        "--out FILE.png",
        RESULT,
        "File for the figure. FILE.svg and FILE.csv are written beside it.",
    ),
]


def curve(
    data: MeasuredArgument = None,
    *,
    sample: flags.Sample = None,
    schema: flags.SchemaFile = None,
    measure: MeasureOption = False,
    n: RangeOption = "100:1000000",
    workload: flags.Workload = None,
    tables: flags.Tables = None,
    weight: flags.Weight = None,
    columns: flags.Columns = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    adjacency: flags.Neighbours = flags.AdjacencyFlag.REPLACE_ONE,
    exact: flags.ExactOnly = True,
    out: FigureOption = Path("curve.png"),
    force: flags.Force = False,
) -> None:
    """Draw predicted error against n for every mechanism, and a lower bound for all mechanisms."""
    from geomdp.plotting import error_curve

    paths = {end: out.with_suffix(end) for end in (".png", ".svg", ".csv")}
    (privacy, question), ns = check_together(
        lambda: check_together(
            lambda: flags.parse_privacy(epsilon, delta, rho),
            lambda: flags.parse_question(workload, tables, weight, columns),
        ),
        lambda: parse_range(n),
        lambda: check_place(out, ".png"),
        lambda: check_free(paths.values(), force, inputs=(data, schema)),
    )
    task, records = _asked(question, data, sample, schema, measure)
    with working("preparing the mechanisms"):
        drawn = error_curve(
            task.workload,
            ns=ns,
            privacy=privacy,
            exact_only=exact,
            adjacency=adjacency.relation(),
            records=records,
            title=task.description,
        )
    encoded = drawn.encoded()
    write_together({path: encoded[end] for end, path in paths.items()})
    display.print_rows([task.row, *_summary(drawn.table, ns, paths)])


def _asked(
    question: flags.Question,
    data: Path | None,
    sample: str | None,
    schema: Path | None,
    measure: bool,
) -> tuple[gd.tabulation.Task, npt.NDArray[Any] | None]:
    """The workload that is asked for, and the records to measure errors on, if any."""
    from geomdp.cli.inputs import planned_task, record_source
    from geomdp.data.counting import encode_source

    if measure and data is None and sample is None:
        raise ValueError("--measure needs --sample; for your own records, give their file as DATA")
    if data is None and not measure:
        return planned_task(question, sample, schema), None
    source = record_source(question.columns, data, sample, schema)
    task = question.task(source.schema)
    display.warn(NOT_PRIVATE)
    with working("reading records"):
        public = source.schema.select(task.columns).confirm()
        chunks = list(encode_source(source.table, public, task.workload.universe))
        if not any(map(len, chunks)):
            raise ValueError(f"{source.name} must hold at least 1 record, got 0")
        return task, np.concatenate(chunks)


def _summary(table: pd.DataFrame, ns: list[int], paths: dict[str, Path]) -> list[tuple[str, str]]:
    """Rows about the least errors at both ends of the range, missing shading, and the files."""
    from geomdp.plotting.error_curves import nothing_excluded

    least = [_least(table, number) for number in (ns[0], ns[-1])]
    unshaded = [("out of reach", NOTHING_EXCLUDED)] if nothing_excluded(table) else []
    return [
        ("least error", "; ".join(least)),
        *unshaded,
        ("figure", f"{paths['.png']}, {paths['.svg']}"),
        ("numbers", str(paths[".csv"])),
    ]


def parse_range(text: str) -> list[int]:
    """About four n per factor of ten in LOW:HIGH; ``ValueError`` unless 1 <= LOW < HIGH <= 10^7."""
    low, colon, high = text.partition(":")
    whole = all(part.isascii() and part.isdigit() for part in (low, high))
    if not (colon and whole and 1 <= int(low) < int(high) <= MOST_RECORDS):
        raise ValueError(
            f"--n must be LOW:HIGH with whole numbers 1 <= LOW < HIGH <= {MOST_RECORDS}, "
            f"got {text!r}"
        )
    ends = int(low), int(high)
    count = max(2, round(PER_DECADE * np.log10(ends[1] / ends[0])) + 1)
    return [int(number) for number in np.unique(np.geomspace(*ends, count).round())]


def _least(table: pd.DataFrame, n: int) -> str:
    """The least predicted error with n records, and the mechanism that has this error, as text."""
    from geomdp.plotting.error_curves import least_predicted

    best = least_predicted(table, n)
    heuristic = "" if best.sampler == str(Exact()) else ", heuristic"
    return f"{display.number(best.rmse)} with {n} records ({best.curve}{heuristic})"
