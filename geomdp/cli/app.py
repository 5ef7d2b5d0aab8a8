"""The commands: release, advise, bracket, curve, width, mechanisms, workloads."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import typer

from geomdp.advice import Advice, advise
from geomdp.advice.candidates import Question
from geomdp.bodies import sensitivity_polytope
from geomdp.cli import display
from geomdp.cli.bracket import bracket
from geomdp.cli.check_bound import check_bound
from geomdp.cli.curve import curve
from geomdp.cli.inputs import (
    RecordSource,
    chosen_columns,
    record_source,
    split_columns,
)
from geomdp.cli.mechanism_names import (
    AUTO,
    FITTED,
    MECHANISM_KINDS,
    PROJECTED,
    SHRUNK,
    build_mechanism,
)
from geomdp.cli.options import (
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
    PlannedCountOption,
    RhoOption,
    SampleOption,
    SchemaOption,
    SeedOption,
    WorkloadOption,
)
from geomdp.cli.output_files import OutputFiles, answers_csv
from geomdp.cli.planned import asked, planned_task
from geomdp.cli.privacy_flags import AdjacencyFlag, parse_privacy
from geomdp.cli.record import Provenance, mechanism_name
from geomdp.cli.smooth import app as smooth
from geomdp.cli.workload_specs import WORKLOAD_KINDS, Task, parse_workload, takes_reals
from geomdp.geometry import gaussian_width
from geomdp.mechanisms import Mechanism
from geomdp.privacy import Adjacency

app = typer.Typer(
    help="Private answers to a fixed set of queries about a table of records.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.command("release")
def release_answers(
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
    files = OutputFiles(out)
    files.check(overwrite=force)
    _check_whole("--seed", seed, minimum=0)
    _check_whole("--n", n, minimum=1)
    privacy, relation = parse_privacy(epsilon, delta, rho), adjacency.relation()
    if relation is Adjacency.ADD_REMOVE and n is None:
        raise ValueError("--adjacency add-remove needs --n: the true number of records is private")
    names = split_columns(columns)
    source = record_source(data, sample, schema, infer_schema, names)
    chosen_names = chosen_columns(source.described.schema, names, real=takes_reals(workload))
    task = parse_workload(workload, chosen_names)
    if source.described.caveat is not None:
        display.warn(source.described.caveat)
    n_source = "declared" if n is not None else "counted"
    with display.working("reading records"):
        n = _number_of_records(n, relation, source, task)
    with display.working("preparing the mechanism"):
        question = Question(task.workload, n, privacy, relation, exact)
        chosen, chosen_by = _choose(mechanism, question)
    provenance = Provenance(workload, task, source.described, chosen, chosen_by, n_source, seed)
    with display.working("releasing"):
        released = chosen.release(source.records(task), rng=seed)
        files.write(answers_csv(task.labels, released), provenance.record(released))
    display.print_rows(
        [
            ("records", f"{n} ({n_source}), {source.name}"),
            *asked(task),
            ("mechanism", f"{mechanism_name(chosen)}, chosen by {chosen_by}"),
            ("privacy", provenance.claim(released)),
            ("rmse", display.in_words(released.predicted_rmse)),
            ("answers", str(files.answers)),
            ("record", str(files.record)),
        ]
    )


@app.command("advise")
def advise_mechanism(
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
    _check_whole("--n", n, minimum=1)
    privacy = parse_privacy(epsilon, delta, rho)
    task = planned_task(workload, columns, sample, schema)
    with display.working("preparing the mechanisms"):
        advice = _advice(Question(task.workload, n, privacy, adjacency.relation(), exact))
    table = advice.table
    applies = table.predicted_rmse.notna()
    display.print_rows(
        [
            *asked(task),
            ("best", f"{table.mechanism[0]} for {n} records"),
            ("set-up", f"{table['set-up seconds'].sum():.1f} s for all that apply"),
            *zip(["why", *[""] * len(advice.reasons)], advice.reasons, strict=False),
        ]
    )
    print()
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
            for row in table[applies].to_dict("records")
        ],
    )
    _print_chains(table[applies].to_dict("records"))
    print()
    refused = table[~applies].to_dict("records")
    display.print_table(["left out", "as"], [(row["mechanism"], row["why"]) for row in refused])


app.command()(bracket)
app.command()(curve)
app.command()(check_bound)
app.add_typer(smooth, name="smooth")


@app.command()
def width(
    *,
    sample: SampleOption = None,
    schema: SchemaOption = None,
    workload: WorkloadOption,
    columns: ColumnsOption = None,
    seed: SeedOption = None,
) -> None:
    """Gaussian mean width of a workload's sensitivity polytope."""
    _check_whole("--seed", seed, minimum=0)
    task = planned_task(workload, columns, sample, schema)
    with display.working("estimating"):
        estimate = gaussian_width(sensitivity_polytope(task.workload), rng=seed, level=WIDTH_LEVEL)
    if estimate.samples == 0:
        value = f"{display.number(estimate.value)} (exact)"
    else:
        low, high = map(display.number, estimate.interval)
        value = (
            f"{display.number(estimate.value)}, in [{low}, {high}] at level {1 - WIDTH_LEVEL:.1%} "
            f"({estimate.samples} directions)"
        )
    hull = task.workload.affine_hull()
    display.print_rows(
        [*asked(task), ("dimension", f"{hull.dimension} of {hull.ambient}"), ("width", value)]
    )


@app.command()
def mechanisms() -> None:
    """List the mechanisms."""
    rows = [(kind.name, kind.flags, kind.summary) for kind in MECHANISM_KINDS]
    display.print_table(["--mechanism", "with", "what it is"], rows)
    print()
    print(f"{PROJECTED}NAME moves the answers of NAME to the nearest attainable ones;")
    print("on n records its error is never larger.")
    print(f"{FITTED}NAME takes the attainable answers that fit best under the noise of NAME: the")
    print("error is mostly less still, its bound twice as large.")
    print(f"{SHRUNK}NAME moves them towards those of uniform data first: for few records.")
    print(f"{AUTO} compares all but {FITTED}NAME without reading records; see `geomdp advise`.")


@app.command()
def workloads() -> None:
    """List the workload specifications."""
    rows = [(kind.usage, kind.summary) for kind in WORKLOAD_KINDS]
    display.print_table(["--workload", "queries; every answer is a mean over records"], rows)


#: Probability that the interval printed by `width` misses the width.
WIDTH_LEVEL = 1e-3


def _choose(name: str, question: Question) -> tuple[Mechanism, str]:
    """The mechanism, and who chose it."""
    if name != AUTO:
        return build_mechanism(name, question), "the user"
    advice = _advice(question)
    return advice.best, f"predicted error among {advice.table.predicted_rmse.count()}"


def _advice(question: Question) -> Advice:
    return advise(
        question.workload,
        n=question.n,
        privacy=question.privacy,
        exact_only=question.exact_only,
        adjacency=question.adjacency,
    )


def _print_chains(rows: list[dict[Hashable, Any]]) -> None:
    """What is known of the Markov chains among the candidates, if there are any."""
    chains = [row for row in rows if row["sampler"].startswith("heuristic")]
    if chains:
        print()
        display.print_table(
            ["heuristic", "chains (diagnostics refute, they never prove)"],
            [(row["mechanism"], row["sampler"]) for row in chains],
        )


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


def _check_whole(flag: str, value: int | None, minimum: int) -> None:
    if value is not None and value < minimum:
        raise ValueError(f"{flag} must be a whole number, at least {minimum}, got {value}")
