"""What a command that reads no records is asked about, from a declared schema alone."""

from __future__ import annotations

from pathlib import Path

from geomdp.cli.inputs import chosen_columns, described_schema, split_columns
from geomdp.cli.workload_specs import Task, parse_workload, takes_reals


def planned_task(
    workload: str, columns: str | None, sample: str | None, schema: Path | None
) -> Task:
    """The queries of a specification, on the columns of a bundled sample or a schema file."""
    described = described_schema(sample, schema)
    names, real = split_columns(columns), takes_reals(workload)
    return parse_workload(workload, chosen_columns(described.schema, names, real=real))


def asked(task: Task) -> list[tuple[str, str]]:
    """The workload in words, as a row to print."""
    return [("queries", f"{task.workload.n_queries}: {task.description}")]
