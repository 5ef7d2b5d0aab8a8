"""The command `bracket`: bounds on the least number of records for an error, and a certificate."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from geomdp.cli import display
from geomdp.cli.errors import check_together
from geomdp.cli.options import (
    QUERIES,
    RESULT,
    AdjacencyOption,
    ColumnsOption,
    DeltaOption,
    EpsilonOption,
    ForceOption,
    RhoOption,
    SampleOption,
    SchemaOption,
    TablesOption,
    WeightOption,
    WorkloadOption,
    real,
)
from geomdp.cli.output_files import check_free, check_place
from geomdp.cli.privacy_flags import AdjacencyFlag, parse_privacy
from geomdp.cli.progress import working

if TYPE_CHECKING:
    from geomdp.advice import Bracket
    from geomdp.bounds import Bound, Metric

#: At most this many lower bounds and this many upper bounds are printed, the best first.
SHOWN = 5


class MetricFlag(enum.StrEnum):
    """Values of --metric."""

    MEAN_L2 = "mean-l2"
    RMS = "rms"
    WORST_CASE = "worst-case"

    def metric(self) -> Metric:
        from geomdp.bounds import RMS, MeanL2, WorstCase

        metrics: dict[MetricFlag, Metric] = {
            MetricFlag.MEAN_L2: MeanL2(),
            MetricFlag.RMS: RMS(),
            MetricFlag.WORST_CASE: WorstCase(),
        }
        return metrics[self]


def _metric(text: str) -> MetricFlag:
    try:
        return MetricFlag(text)
    except ValueError as error:
        raise typer.BadParameter(f"must be one of {', '.join(MetricFlag)}, got {text!r}") from error


AlphaOption: TypeAlias = Annotated[
    float,
    typer.Option(
        "--alpha",
        parser=real,
        metavar="A",
        help="Largest error allowed, as --metric measures it; answers are means over records.",
        rich_help_panel=QUERIES,
    ),
]
MetricOption: TypeAlias = Annotated[
    MetricFlag,
    typer.Option(
        "--metric",
        parser=_metric,
        metavar="NAME",
        help="How the error is measured: mean-l2, rms or worst-case (over the queries).",
        rich_help_panel=QUERIES,
    ),
]
CertificateOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE.json",
        help="File for the certificate of the lower bound; `geomdp check-bound` verifies it.",
        rich_help_panel=RESULT,
    ),
]


def bracket(
    *,
    sample: SampleOption = None,
    schema: SchemaOption = None,
    workload: WorkloadOption = None,
    tables: TablesOption = None,
    weight: WeightOption = None,
    columns: ColumnsOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    alpha: AlphaOption,
    metric: MetricOption = MetricFlag.MEAN_L2,
    adjacency: AdjacencyOption = AdjacencyFlag.REPLACE_ONE,
    out: CertificateOption = None,
    force: ForceOption = False,
) -> None:
    """Print lower and upper bounds on the least number of records that suffices for the error A."""
    from geomdp.advice import sample_complexity_bracket
    from geomdp.cli.inputs import planned_task
    from geomdp.cli.questions import parse_question

    privacy, question = check_together(
        lambda: parse_privacy(epsilon, delta, rho),
        lambda: parse_question(workload, tables, weight, columns),
        lambda: _check_output(out, schema, force),
    )
    task = planned_task(question, sample, schema)
    with working("bounding"):
        found = sample_complexity_bracket(
            task.workload,
            alpha=alpha,
            metric=metric.metric(),
            adjacency=adjacency.relation(),
            privacy=privacy,
        )
    low, high = found.lower.records_text, found.upper.records_text
    display.print_rows(
        [
            task.row,
            ("target", str(found.question)),
            ("records", f"more than {low}, at most {high}"),
            ("ratio", display.number(found.gap)),
        ]
    )
    _print_side("no mechanism with", found.lower_candidates)
    _print_side("enough records", found.upper_candidates)
    if out is not None:
        _write(found, out)


def _check_output(out: Path | None, schema: Path | None, force: bool) -> None:
    if out is not None:
        check_place(out, ".json")
        check_free((out, out.with_suffix(".npz")), force, inputs=(schema,))


def _print_side(heading: str, bounds: tuple[Bound, ...]) -> None:
    print()
    rows = []
    for bound in bounds[:SHOWN]:
        assumed = [f"assumes {text}" for text in bound.assumptions]
        rows.append((bound.records_text, "; ".join([bound.statement, *assumed])))
    display.print_table([heading, "why"], rows)


def _write(found: Bracket, path: Path) -> None:
    """Write the certificate of the lower bound; ``ValueError`` if the bound has none."""
    from geomdp.bounds import Certificate
    from geomdp.bounds.certificates.files import write_certificate

    certificate = found.lower.certificate
    if not isinstance(certificate, Certificate):
        raise ValueError(
            "--out has nothing to write, because the lower bound has no certificate: "
            f"{found.lower.statement}"
        )
    write_certificate(path, certificate.document())
    print()
    display.print_rows([("certificate", str(path)), ("verify with", f"geomdp check-bound {path}")])
