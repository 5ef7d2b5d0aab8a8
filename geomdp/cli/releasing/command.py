"""The command `release`: private answers about a table, with their privacy record."""

from __future__ import annotations

from geomdp.cli.errors import check_together
from geomdp.cli.ledger_flags import Payment
from geomdp.cli.options import (
    AUTO,
    Above10Option,
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
)
from geomdp.cli.output_files import OutputFiles
from geomdp.cli.privacy_flags import AdjacencyFlag, parse_released
from geomdp.cli.releasing.options import (
    ConfidenceOption,
    InferSchemaOption,
    IntegersOption,
    OutOption,
    PlanOption,
    SchedulerOption,
    UnbiasedOption,
    check_confidence,
)


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
    from geomdp.cli.questions import parse_question

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
    from geomdp.cli.releasing.request import Request, carry_out

    choice = choice_of(mechanism, exact, effort, plan)
    records = RecordFlags(data, sample, schema, infer_schema, sql, database)
    source = records.source(question.columns)
    request = Request(
        privacy, question, choice, relation, n, not consistent, integers, confidence, seed
    )
    carry_out(request, source, files, payment, scheduler)
