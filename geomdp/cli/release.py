"""The command `release`: private answers about a table, with their privacy record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from geomdp._validation import MOST_CONFIDENCE, probability
from geomdp.cli.display import check_together
from geomdp.cli.ledger import Payment
from geomdp.cli.options import (
    AUTO,
    PRIVACY,
    RECORDS,
    RESULT,
    Above10Option,
    AdjacencyFlag,
    AdjacencyOption,
    BudgetOption,
    ColumnsOption,
    CountOption,
    DataArgument,
    DatabaseOption,
    DeltaOption,
    EffortOption,
    EpsilonOption,
    ExactOption,
    ForceOption,
    LedgerOption,
    MechanismOption,
    RhoOption,
    SampleOption,
    SchemaOption,
    SeedOption,
    SqlOption,
    TablesOption,
    WeightOption,
    WorkloadOption,
    check_normaliser,
    check_whole,
    parse_released,
    real,
)
from geomdp.cli.output_files import OutputFiles

InferSchemaOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--infer-schema",
        metavar="",
        help="Read the schema from the records, to try something out. This is NOT private.",
        rich_help_panel=RECORDS,
    ),
]
SchedulerOption: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Count the records of files on a Dask cluster, for instance tcp://host:8786. Its "
        "workers must find the files under the same paths.",
        rich_help_panel=RECORDS,
    ),
]
OutOption: TypeAlias = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="FILE",
        help="File for the answers (.csv or .parquet), one row per cell. The privacy record is "
        "written beside it, with the ending .privacy.json.",
        rich_help_panel=RESULT,
    ),
]
UnbiasedOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--consistent/--unbiased",
        metavar="",
        help="Adjust answers so that no cell is negative and tables add up, or leave the noisy "
        "answers as they are.",
        rich_help_panel=RESULT,
    ),
]
IntegersOption: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--integers",
        metavar="",
        help="Round counts to whole numbers; consistent tables still add up.",
        rich_help_panel=RESULT,
    ),
]
ConfidenceOption: TypeAlias = Annotated[
    float,
    typer.Option(
        "--confidence",
        parser=real,
        metavar="C",
        help="Probability with which the interval of each answer contains the true answer.",
        rich_help_panel=RESULT,
    ),
]
PlanOption: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--plan",
        metavar="FILE",
        help="Use the mechanism that `geomdp advise --save-plan FILE` chose, without comparing "
        "mechanisms again.",
        rich_help_panel=PRIVACY,
    ),
]


def check_confidence(confidence: float) -> None:
    """Raise ``ValueError`` if --confidence is out of range: later, the ledger would have paid."""
    if probability(confidence, "--confidence") > MOST_CONFIDENCE:
        raise ValueError(f"--confidence must be at most {MOST_CONFIDENCE}, got {confidence!r}")


def release(
    data: DataArgument = None,
    *,
    sample: SampleOption = None,
    sql: SqlOption = None,
    database: DatabaseOption = None,
    schema: SchemaOption = None,
    infer_schema: InferSchemaOption = False,
    scheduler: SchedulerOption = None,
    n: CountOption = None,
    workload: WorkloadOption = None,
    tables: TablesOption = None,
    weight: WeightOption = None,
    columns: ColumnsOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    rho: RhoOption = None,
    epsilon_above_10: Above10Option = False,
    adjacency: AdjacencyOption = AdjacencyFlag.REPLACE_ONE,
    mechanism: MechanismOption = AUTO,
    effort: EffortOption = None,
    plan: PlanOption = None,
    exact: ExactOption = True,
    ledger: LedgerOption = None,
    budget: BudgetOption = None,
    consistent: UnbiasedOption = True,
    integers: IntegersOption = False,
    confidence: ConfidenceOption = 0.95,
    out: OutOption,
    seed: SeedOption = None,
    force: ForceOption = False,
) -> None:
    """Release private answers about the records in DATA, with their privacy record."""
    from geomdp.cli.options import parse_question

    files, relation, payment = OutputFiles(out), adjacency.relation(), Payment(ledger, budget)
    provable = exact and seed is None and not infer_schema
    privacy, question = check_together(
        lambda: parse_released(epsilon, delta, rho, epsilon_above_10 or seed is not None),
        lambda: parse_question(workload, tables, weight, columns),
        lambda: check_whole("--seed", seed, minimum=0),
        lambda: check_normaliser(n, relation),
        lambda: check_confidence(confidence),
        lambda: payment.check(provable=provable),
        lambda: files.check(force, inputs=(data, schema, ledger, plan)),
    )
    # Imported here: these modules import most of the library, and refusals should come at once.
    from geomdp.cli.inputs import RecordFlags
    from geomdp.cli.mechanism_flags import choice_of
    from geomdp.cli.release_request import Request, carry_out

    choice = choice_of(mechanism, exact, effort, plan)
    records = RecordFlags(data, sample, schema, infer_schema, sql, database)
    source = records.source(question.columns)
    request = Request(
        privacy, question, choice, relation, n, not consistent, integers, confidence, seed
    )
    carry_out(request, source, files, payment, scheduler)
