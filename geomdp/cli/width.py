"""The command `width`: the Gaussian mean width of a workload's sensitivity polytope."""

from __future__ import annotations

from geomdp.cli import display
from geomdp.cli.options import (
    ColumnsOption,
    SampleOption,
    SchemaOption,
    SeedOption,
    WorkloadOption,
    check_whole,
)

#: Probability that the interval printed misses the width.
LEVEL = 1e-3


def width(
    *,
    sample: SampleOption = None,
    schema: SchemaOption = None,
    workload: WorkloadOption,
    columns: ColumnsOption = None,
    seed: SeedOption = None,
) -> None:
    """Gaussian mean width of a workload's sensitivity polytope."""
    from geomdp.bodies import sensitivity_polytope
    from geomdp.cli.inputs import planned_task
    from geomdp.geometry import gaussian_width

    check_whole("--seed", seed, minimum=0)
    task = planned_task(workload, columns, sample, schema)
    with display.working("estimating"):
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
