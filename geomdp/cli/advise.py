"""The command `advise`: the mechanisms for a workload compared, without any records."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from geomdp.cli import display
from geomdp.cli.options import (
    AdjacencyOption,
    ColumnsOption,
    DeltaOption,
    EpsilonOption,
    ExactOption,
    PlannedCountOption,
    RhoOption,
    SampleOption,
    SchemaOption,
    WorkloadOption,
    check_whole,
)
from geomdp.cli.privacy_flags import AdjacencyFlag, parse_privacy


def advise(
    *,
    sample: SampleOption = None,
    schema: SchemaOption = None,
    n: PlannedCountOption,
    workload: WorkloadOption,
    columns: ColumnsOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    adjacency: AdjacencyOption = AdjacencyFlag.REPLACE_ONE,
    exact: ExactOption = True,
) -> None:
    """Compare the mechanisms for a workload, without any records."""
    from geomdp.advice.advisor import advise_on
    from geomdp.advice.setting import Setting
    from geomdp.cli.inputs import planned_task

    check_whole("--n", n, minimum=1)
    privacy = parse_privacy(epsilon, delta, rho)
    task = planned_task(workload, columns, sample, schema)
    with display.working("preparing the mechanisms"):
        advice = advise_on(Setting(task.workload, n, privacy, adjacency.relation(), exact))
    table = advice.table
    applies = table.predicted_rmse.notna()
    display.print_rows(
        [
            task.row,
            ("best", f"{table.mechanism[0]} for {n} records"),
            ("set-up", f"{table['set-up seconds'].sum():.1f} s for all that apply"),
            *zip(["why", *[""] * len(advice.reasons)], advice.reasons, strict=False),
        ]
    )
    print()
    compared = table[applies].to_dict("records")
    display.print_table(
        ["mechanism", "rmse", "prediction", "set-up", "sampler"],
        [
            (
                row["mechanism"],
                display.number(row["predicted_rmse"]),
                row["kind"],
                f"{row['set-up seconds']:.1f} s",
                row["sampler"].partition(" ")[0],
            )
            for row in compared
        ],
    )
    _print_chains(compared)
    print()
    refused = table[~applies].to_dict("records")
    display.print_table(["left out", "as"], [(row["mechanism"], row["why"]) for row in refused])


def _print_chains(rows: list[dict[Hashable, Any]]) -> None:
    """The diagnostics of the Markov chains among the candidates, if there are any."""
    chains = [row for row in rows if row["sampler"].startswith("heuristic")]
    if chains:
        print()
        display.print_table(
            ["heuristic", "chains (diagnostics refute, they never prove)"],
            [(row["mechanism"], row["sampler"]) for row in chains],
        )
