"""The command `release`: private answers about a table, with their privacy record."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

from geomdp._validation import MOST_CONFIDENCE, probability
from geomdp.cli import flags
from geomdp.cli.display import check_together
from geomdp.cli.flags import PRIVACY, RECORDS, RESULT, option, real
from geomdp.cli.ledger import Payment
from geomdp.cli.output_files import OutputFiles

InferSchemaOption: TypeAlias = Annotated[
    bool,
    option(
        "--infer-schema",
        RECORDS,
        "Read the schema from the records, to try something out. This is NOT private.",
    ),
]
SchedulerOption: TypeAlias = Annotated[
    str | None,
    option(
        "--scheduler ADDRESS",
        RECORDS,
        "Count the records of files on a Dask cluster, for instance tcp://host:8786. Its "
        "workers must find the files under the same paths.",
    ),
]
OutOption: TypeAlias = Annotated[
    Path,
    option(
        "--out FILE",
        RESULT,
        "File for the answers (.csv or .parquet), one row per cell. The privacy record is "
        "written beside it, with the ending .privacy.json.",
    ),
]
UnbiasedOption: TypeAlias = Annotated[
    bool,
    option(
        "--consistent/--unbiased",
        RESULT,
        "Adjust answers so that no cell is negative and tables add up, or leave the noisy "
        "answers as they are.",
    ),
]
IntegersOption: TypeAlias = Annotated[
    bool,
    option("--integers", RESULT, "Round counts to whole numbers; consistent tables still add up."),
]
ConfidenceOption: TypeAlias = Annotated[
    float,
    option(
        "--confidence C",
        RESULT,
        "Probability with which the interval of each answer contains the true answer.",
        real,
    ),
]
PlanOption: TypeAlias = Annotated[
    Path | None,
    option(
        "--plan FILE",
        PRIVACY,
        "Use the mechanism that `geomdp advise --save-plan FILE` chose, without comparing "
        "mechanisms again.",
    ),
]


def check_confidence(confidence: float) -> None:
    """Raise ``ValueError`` if --confidence is out of range: later, the ledger would have paid."""
    if probability(confidence, "--confidence") > MOST_CONFIDENCE:
        raise ValueError(f"--confidence must be at most {MOST_CONFIDENCE}, got {confidence!r}")


def release(
    data: flags.Data = None,
    *,
    sample: flags.Sample = None,
    sql: flags.Sql = None,
    database: flags.Database = None,
    schema: flags.SchemaFile = None,
    infer_schema: InferSchemaOption = False,
    scheduler: SchedulerOption = None,
    n: flags.Count = None,
    workload: flags.Workload = None,
    tables: flags.Tables = None,
    weight: flags.Weight = None,
    columns: flags.Columns = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    epsilon_above_10: flags.Above10 = False,
    adjacency: flags.Neighbours = flags.AdjacencyFlag.REPLACE_ONE,
    mechanism: flags.Mechanism = flags.AUTO,
    effort: flags.Effort = None,
    plan: PlanOption = None,
    exact: flags.ExactOnly = True,
    ledger: flags.LedgerFile = None,
    budget: flags.Budget = None,
    consistent: UnbiasedOption = True,
    integers: IntegersOption = False,
    confidence: ConfidenceOption = 0.95,
    out: OutOption,
    seed: flags.Seed = None,
    force: flags.Force = False,
) -> None:
    """Release private answers about the records in DATA, with their privacy record."""

    files, relation, payment = OutputFiles(out), adjacency.relation(), Payment(ledger, budget)
    provable = exact and seed is None and not infer_schema
    privacy, question = check_together(
        lambda: flags.parse_released(epsilon, delta, rho, epsilon_above_10 or seed is not None),
        lambda: flags.parse_question(workload, tables, weight, columns),
        lambda: flags.check_whole("--seed", seed, minimum=0),
        lambda: flags.check_normaliser(n, relation),
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
