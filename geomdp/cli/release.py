"""The command `release`: private answers about a table, with their privacy record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from geomdp.cli import display
from geomdp.cli.errors import check_together, naming_flags
from geomdp.cli.options import (
    AUTO,
    AdjacencyOption,
    BudgetOption,
    ColumnsOption,
    ConfidenceOption,
    CountOption,
    DataArgument,
    DatabaseOption,
    DeltaOption,
    EpsilonOption,
    ExactOption,
    ForceOption,
    InferSchemaOption,
    IntegersOption,
    LedgerOption,
    MechanismOption,
    OutOption,
    RhoOption,
    SampleOption,
    SchedulerOption,
    SchemaOption,
    SeedOption,
    SqlOption,
    TablesOption,
    UnbiasedOption,
    WeightOption,
    WorkloadOption,
    check_normaliser,
    check_whole,
)
from geomdp.cli.privacy_flags import AdjacencyFlag, parse_privacy
from geomdp.cli.progress import working

if TYPE_CHECKING:
    from geomdp.cli.output_files import OutputFiles
    from geomdp.cli.record import Provenance
    from geomdp.tabulation import Tabulation


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
    adjacency: AdjacencyOption = AdjacencyFlag.REPLACE_ONE,
    mechanism: MechanismOption = AUTO,
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
    from geomdp._validation import probability
    from geomdp.cli.inputs import asked_records, connected, sql_query
    from geomdp.cli.ledger_flags import check_payment, in_words, opened_ledger
    from geomdp.cli.mechanism_flags import Choice
    from geomdp.cli.output_files import OutputFiles
    from geomdp.cli.questions import parse_question
    from geomdp.cli.record import Provenance
    from geomdp.tabulation import release as released

    files, relation = OutputFiles(out), adjacency.relation()
    inexact = not exact or seed is not None or infer_schema
    privacy, question = check_together(
        lambda: parse_privacy(epsilon, delta, rho),
        lambda: parse_question(workload, tables, weight, columns),
        lambda: Choice(mechanism, exact),
        lambda: check_whole("--seed", seed, minimum=0),
        lambda: check_normaliser(n, relation),
        lambda: probability(confidence, "--confidence"),
        lambda: check_payment(ledger, budget, provable=not inexact),
        lambda: files.check(force, inputs=(data, schema, ledger)),
    )
    query = sql_query(sql, database)
    source, _ = asked_records(data, sample, schema, infer_schema, question, query)
    if source.described.caveat is not None:
        display.warn(source.described.caveat)
    chosen = Choice(mechanism, exact)
    provenance = Provenance(question.spec, source.described, chosen.by, n, seed, confidence)
    with (
        connected(scheduler) as client,
        opened_ledger(ledger, budget, relation) as account,
        working("checking the request"),
        naming_flags("n"),
    ):
        answers = released(
            source.table,
            source.described.schema,
            question.asked,
            privacy=privacy,
            n=n,
            adjacency=relation,
            columns=question.columns,
            weights=question.weights,
            mechanism=chosen,
            unbiased=not consistent,
            integers=integers,
            ledger=account,
            client=client,
            rng=seed,
        )
        files.write(answers.to_frame(confidence), provenance.record(answers))
        left = [] if account is None else [("budget", in_words(account))]
    display.print_rows([*_summary(answers, provenance, source.name, files), *left])


def _summary(
    answers: Tabulation, provenance: Provenance, source: str, files: OutputFiles
) -> list[tuple[str, str]]:
    """What was released, by whom, how private and how exact it is, and where it stands."""
    from geomdp.cli.record import mechanism_name

    weights = answers.task.weights
    equal = weights is None or bool((weights == 1).all())
    weighted = "" if equal else ", each error times its weight"
    intervals = (
        f", with {100 * provenance.confidence:.6g}% intervals" if answers.has_intervals else ""
    )
    return [
        ("records", f"{answers.mechanism.n} ({provenance.n_source}), {source}"),
        answers.task.row,
        ("mechanism", f"{mechanism_name(answers.mechanism)}, chosen by {provenance.chosen_by}"),
        ("privacy", provenance.claim(answers)),
        ("rmse", display.in_words(answers.predicted_rmse) + weighted),
        ("answers", answers.statement),
        ("written to", f"{files.answers}{intervals}"),
        ("record", str(files.record)),
    ]
