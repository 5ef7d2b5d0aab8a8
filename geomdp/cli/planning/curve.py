"""The command `curve`: error against the number of records, drawn for a workload of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from geomdp._numerics.written_files import write_together
from geomdp.cli import display
from geomdp.cli.errors import check_together
from geomdp.cli.options import (
    RECORDS,
    RESULT,
    AdjacencyOption,
    ColumnsOption,
    DeltaOption,
    EpsilonOption,
    ExactOption,
    ForceOption,
    RhoOption,
    SampleOption,
    SchemaOption,
    TablesOption,
    WeightOption,
    WorkloadOption,
)
from geomdp.cli.output_files import check_free, check_place
from geomdp.cli.privacy_flags import AdjacencyFlag, parse_privacy
from geomdp.cli.progress import working
from geomdp.privacy import Exact

if TYPE_CHECKING:
    import numpy.typing as npt
    import pandas as pd

    from geomdp.cli.inputs import RecordSource
    from geomdp.tabulation.specs import Task

#: Numbers of records per decade at which errors are predicted, both ends included.
PER_DECADE = 4
#: Largest number of records of a curve: measuring draws so many.
MOST_RECORDS = 10**7
NOT_PRIVATE = (
    "measured errors depend on the records and no noise protects them: keep the files to yourself "
    "unless the records are public"
)

MeasuredArgument: TypeAlias = Annotated[
    Path | None,
    typer.Argument(
        metavar="DATA",
        help="Records to measure errors on as well (.csv, .csv.gz, .parquet), with --schema. For "
        "public or synthetic records: what is measured is NOT private and no budget covers it.",
        show_default=False,
    ),
]
MeasureOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--measure",
        help="Measure errors on the records of --sample, as on DATA.",
        rich_help_panel=RECORDS,
    ),
]
RangeOption: TypeAlias = Annotated[
    str,
    typer.Option(
        "--n", metavar="LOW:HIGH", help="Numbers of records to cover.", rich_help_panel=RECORDS
    ),
]
FigureOption: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FILE.png",
        help="Where the figure goes; FILE.svg and FILE.csv stand beside it.",
        rich_help_panel=RESULT,
    ),
]


def curve(
    data: MeasuredArgument = None,
    *,
    sample: SampleOption = None,
    schema: SchemaOption = None,
    measure: MeasureOption = False,
    n: RangeOption = "100:1000000",
    workload: WorkloadOption = None,
    tables: TablesOption = None,
    weight: WeightOption = None,
    columns: ColumnsOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    adjacency: AdjacencyOption = AdjacencyFlag.REPLACE_ONE,
    exact: ExactOption = True,
    out: FigureOption = Path("curve.png"),
    force: ForceOption = False,
) -> None:
    """Draw predicted error against n for every mechanism, above what none of them can reach."""
    from geomdp.cli.inputs import asked_records, planned_task
    from geomdp.cli.questions import parse_question
    from geomdp.plotting import error_curve

    paths = {end: out.with_suffix(end) for end in (".png", ".svg", ".csv")}
    privacy, question = check_together(
        lambda: parse_privacy(epsilon, delta, rho),
        lambda: parse_question(workload, tables, weight, columns),
        lambda: parse_range(n),
        lambda: check_place(out, ".png"),
        lambda: check_free(paths.values(), force, inputs=(data, schema)),
    )
    ns = parse_range(n)
    if measure and data is None and sample is None:
        raise ValueError("--measure goes with --sample; for records of your own, name their file")
    records = None
    if data is None and not measure:
        task = planned_task(question, sample, schema)
    else:
        source, task = asked_records(data, sample, schema, False, question)
        display.warn(NOT_PRIVATE)
        with working("reading records"):
            records = _all_records(source, task)
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
    least = [_least(drawn.table, number) for number in (ns[0], ns[-1])]
    display.print_rows(
        [
            task.row,
            ("least error", "; ".join(least)),
            ("figure", f"{paths['.png']}, {paths['.svg']}"),
            ("numbers", str(paths[".csv"])),
        ]
    )


def parse_range(text: str) -> list[int]:
    """Numbers of records from LOW to HIGH, four a decade.

    Raises
    ------
    ValueError
        Unless the text is two whole numbers, LOW below HIGH, joined by a colon.
    """
    import numpy as np

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


def _all_records(source: RecordSource, task: Task) -> npt.NDArray[Any]:
    import numpy as np

    chunks = list(source.records(task))
    if not any(map(len, chunks)):
        raise ValueError(f"{source.name} must hold at least 1 record, got 0")
    return np.concatenate(chunks)


def _least(table: pd.DataFrame, n: int) -> str:
    """The least predicted error with n records, and whose it is; the figure marks it by a star."""
    from geomdp.plotting.error_curves import least_predicted

    best = least_predicted(table, n)
    heuristic = "" if best.sampler == str(Exact()) else ", heuristic"
    return f"{display.number(best.rmse)} with {n} records ({best.curve}{heuristic})"
