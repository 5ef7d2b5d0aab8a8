"""The command `width`: the Gaussian mean width of a workload's sensitivity polytope."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from geomdp.cli import display
from geomdp.cli.options import (
    RESULT,
    ColumnsOption,
    SampleOption,
    SchemaOption,
    TablesOption,
    WeightOption,
    WorkloadOption,
    check_whole,
    whole_number,
)
from geomdp.cli.progress import working

DirectionsOption: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--seed",
        parser=whole_number,
        metavar="S",
        help="Seed of the directions; the same seed gives the same estimate.",
        rich_help_panel=RESULT,
    ),
]

#: Largest probability that the printed interval does not contain the width.
LEVEL = 1e-3


def width(
    *,
    sample: SampleOption = None,
    schema: SchemaOption = None,
    workload: WorkloadOption = None,
    tables: TablesOption = None,
    weight: WeightOption = None,
    columns: ColumnsOption = None,
    seed: DirectionsOption = None,
) -> None:
    """Compute the Gaussian mean width of a workload's sensitivity polytope."""
    from geomdp.bodies import sensitivity_polytope
    from geomdp.cli.inputs import planned_task
    from geomdp.cli.questions import parse_question
    from geomdp.geometry import gaussian_width

    check_whole("--seed", seed, minimum=0)
    question = parse_question(workload, tables, weight, columns)
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
