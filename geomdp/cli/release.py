"""The command `release`: private answers about a table, with their privacy record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geomdp.cli import display
from geomdp.cli.options import (
    AUTO,
    AdjacencyOption,
    ColumnsOption,
    CountOption,
    DataArgument,
    DeltaOption,
    EpsilonOption,
    ExactOption,
    ForceOption,
    InferSchemaOption,
    MechanismOption,
    OutOption,
    RhoOption,
    SampleOption,
    SchemaOption,
    SeedOption,
    WorkloadOption,
    check_whole,
)
from geomdp.cli.privacy_flags import AdjacencyFlag, parse_privacy
from geomdp.privacy import Adjacency

if TYPE_CHECKING:
    from geomdp.advice.setting import Setting
    from geomdp.cli.inputs import RecordSource
    from geomdp.mechanisms import Mechanism
    from geomdp.tabulation.specs import Task


def release(
    data: DataArgument = None,
    *,
    sample: SampleOption = None,
    schema: SchemaOption = None,
    infer_schema: InferSchemaOption = False,
    n: CountOption = None,
    workload: WorkloadOption,
    columns: ColumnsOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    adjacency: AdjacencyOption = AdjacencyFlag.REPLACE_ONE,
    mechanism: MechanismOption = AUTO,
    exact: ExactOption = True,
    out: OutOption,
    seed: SeedOption = None,
    force: ForceOption = False,
) -> None:
    """Release private answers about the records in DATA, with their privacy record."""
    from geomdp.advice.setting import Setting
    from geomdp.cli.inputs import asked_records
    from geomdp.cli.output_files import OutputFiles, answers_csv
    from geomdp.cli.record import Provenance, mechanism_name

    files = OutputFiles(out)
    files.check(overwrite=force)
    check_whole("--seed", seed, minimum=0)
    check_whole("--n", n, minimum=1)
    privacy, relation = parse_privacy(epsilon, delta, rho), adjacency.relation()
    if relation is Adjacency.ADD_REMOVE and n is None:
        raise ValueError("--adjacency add-remove needs --n: the true number of records is private")
    source, task = asked_records(data, sample, schema, infer_schema, workload, columns)
    if source.described.caveat is not None:
        display.warn(source.described.caveat)
    n_source = "declared" if n is not None else "counted"
    with display.working("reading records"):
        n = _number_of_records(n, relation, source, task)
    with display.working("preparing the mechanism"):
        setting = Setting(task.workload, n, privacy, relation, exact)
        chosen, chosen_by = _choose(mechanism, setting)
    provenance = Provenance(workload, task, source.described, chosen, chosen_by, n_source, seed)
    with display.working("releasing"):
        released = chosen.release(source.records(task), rng=seed)
        files.write(answers_csv(task.labels, released), provenance.record(released))
    display.print_rows(
        [
            ("records", f"{n} ({n_source}), {source.name}"),
            task.row,
            ("mechanism", f"{mechanism_name(chosen)}, chosen by {chosen_by}"),
            ("privacy", provenance.claim(released)),
            ("rmse", display.in_words(released.predicted_rmse)),
            ("answers", str(files.answers)),
            ("record", str(files.record)),
        ]
    )


def _choose(flag: str, setting: Setting) -> tuple[Mechanism, str]:
    """The mechanism, and who chose it."""
    from geomdp.advice.advisor import advise_on
    from geomdp.cli.mechanism_flags import build_mechanism

    if flag != AUTO:
        return build_mechanism(flag, setting), "the user"
    advice = advise_on(setting)
    return advice.best, f"predicted error among {advice.table.predicted_rmse.count()}"


def _number_of_records(
    declared: int | None, relation: Adjacency, source: RecordSource, task: Task
) -> int:
    """The public n, after every record has been checked against the schema."""
    counted = source.count(task)
    if relation is Adjacency.REPLACE_ONE and declared not in (None, counted):
        raise ValueError(f"--n must be the number of records, {counted}, got {declared}")
    if counted == 0:
        raise ValueError(f"{source.name} must hold at least 1 record, got 0")
    return counted if declared is None else declared
