"""The commands `bracket`, `check-bound` and `width`: bounds on the least number of records.

`bracket` writes certificates, `check-bound` checks them, and `width` prints the Gaussian mean width
of a workload's sensitivity polytope.
"""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from geomdp.cli import display, flags
from geomdp.cli.display import check_together, working
from geomdp.cli.flags import QUERIES, RESULT, option, real, whole_number
from geomdp.cli.output_files import check_free, check_place

if TYPE_CHECKING:
    from geomdp.advice import Bracket
    from geomdp.bounds import Bound, Metric


# bracket

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
    option(
        "--alpha A",
        QUERIES,
        "Largest error allowed, as --metric measures it; answers are means over records.",
        real,
    ),
]
MetricOption: TypeAlias = Annotated[
    MetricFlag,
    option(
        "--metric NAME",
        QUERIES,
        "How the error is measured: mean-l2, rms or worst-case (over the queries).",
        _metric,
    ),
]
CertificateOption: TypeAlias = Annotated[
    Path | None,
    option(
        "--out FILE.json",
        RESULT,
        "File for the certificate of the lower bound; `geomdp check-bound` verifies it.",
    ),
]


def bracket(
    *,
    sample: flags.Sample = None,
    schema: flags.SchemaFile = None,
    workload: flags.Workload = None,
    tables: flags.Tables = None,
    weight: flags.Weight = None,
    columns: flags.Columns = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    alpha: AlphaOption,
    metric: MetricOption = MetricFlag.MEAN_L2,
    adjacency: flags.Neighbours = flags.AdjacencyFlag.REPLACE_ONE,
    out: CertificateOption = None,
    force: flags.Force = False,
) -> None:
    """Print lower and upper bounds on the least number of records that suffices for the error A."""
    from geomdp.advice import sample_complexity_bracket
    from geomdp.cli.inputs import planned_task

    privacy, question = check_together(
        lambda: flags.parse_privacy(epsilon, delta, rho),
        lambda: flags.parse_question(workload, tables, weight, columns),
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
    from geomdp.bounds.certificates import write_certificate

    certificate = found.lower.certificate
    if not isinstance(certificate, Certificate):
        raise ValueError(
            "--out has nothing to write, because the lower bound has no certificate: "
            f"{found.lower.statement}"
        )
    write_certificate(path, certificate.document())
    print()
    display.print_rows([("certificate", str(path)), ("verify with", f"geomdp check-bound {path}")])


# check-bound

#: Exit code for a certificate that does not prove its bound. For a missing file the code is 2.
REJECTED = 1

CertificateArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="A certificate (.json).", show_default=False)
]


def check_bound(file: CertificateArgument) -> None:
    """Check the lower bound in FILE: compute its numbers again, and show what the proof assumes."""
    from geomdp.bounds.checker import CertificateRejected, check_certificate

    with working("checking"):
        try:
            checked = check_certificate(file)
        except CertificateRejected as error:
            display.print_rows([("rejected", str(error))])
            raise typer.Exit(REJECTED) from error
    display.print_rows(
        [
            ("bound", f"sc > {checked.records}: {checked.records} records are not enough"),
            ("statement", checked.statement),
            *(("verified", text) for text in checked.verified),
            *(("provided", text) for text in checked.conditions or ("nothing",)),
        ]
    )


DirectionsOption: TypeAlias = Annotated[
    int | None,
    option(
        "--seed S",
        RESULT,
        "Seed of the directions; the same seed gives the same estimate.",
        whole_number,
    ),
]

# width

#: Largest probability that the printed interval does not contain the width.
LEVEL = 1e-3


def width(
    *,
    sample: flags.Sample = None,
    schema: flags.SchemaFile = None,
    workload: flags.Workload = None,
    tables: flags.Tables = None,
    weight: flags.Weight = None,
    columns: flags.Columns = None,
    seed: DirectionsOption = None,
) -> None:
    """Compute the Gaussian mean width of a workload's sensitivity polytope."""
    from geomdp.bodies import sensitivity_polytope
    from geomdp.cli.inputs import planned_task
    from geomdp.geometry import gaussian_width

    flags.check_whole("--seed", seed, minimum=0)
    question = flags.parse_question(workload, tables, weight, columns)
    task = planned_task(question, sample, schema)
    with working("estimating"):
        estimate = gaussian_width(sensitivity_polytope(task.workload), rng=seed, level=LEVEL)
    if estimate.samples == 0:
        value = f"{display.number(estimate.value)} (exact)"
    else:
        low, high = map(display.number, estimate.interval)
        value = (
            f"{display.number(estimate.value)}, in [{low}, {high}] at level {1 - LEVEL:.1%} "
            f"({estimate.samples} directions)"
        )
    hull = task.workload.affine_hull()
    dimension = f"{hull.dimension} of {hull.ambient}"
    display.print_rows([task.row, ("dimension", dimension), ("width", value)])
