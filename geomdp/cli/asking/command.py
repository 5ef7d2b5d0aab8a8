"""The command `ask`: answers to adaptive questions about a table, within one budget.

The noise of a run is never written to a file, so a run that was killed cannot be continued.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from geomdp.cli.asking.session import Table, add_line, answer_all, exclusive, questions_of
from geomdp.cli.asking.setting import Setting, Technique
from geomdp.cli.options import (
    QUERIES,
    RESULT,
    Above10Option,
    AdjacencyOption,
    BudgetOption,
    ColumnsOption,
    CountOption,
    DataArgument,
    DatabaseOption,
    DeltaOption,
    EpsilonOption,
    LedgerOption,
    SampleOption,
    SchemaOption,
    SqlOption,
    check_normaliser,
    real,
    whole_number,
)
from geomdp.cli.privacy_flags import AdjacencyFlag, parse_released
from geomdp.cli.progress import working
from geomdp.privacy import Adjacency, ApproxDP, Exact, Guarantee, PureDP

TechniqueOption = Annotated[
    Technique,
    typer.Option(
        "--technique",
        help="above-threshold: stop at the first share above T. sparse: find up to C shares above "
        "T. numeric-sparse: also print the values of these shares. online: print a value for each "
        "of K questions.",
        rich_help_panel=QUERIES,
    ),
]
ThresholdOption = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        parser=real,
        metavar="T",
        help="Share of records to compare with; for all techniques but online.",
        rich_help_panel=QUERIES,
    ),
]
CutoffOption = Annotated[
    int | None,
    typer.Option(
        "--cutoff",
        parser=whole_number,
        metavar="C",
        help="Stop after C shares above the threshold; for sparse and numeric-sparse.",
        rich_help_panel=QUERIES,
    ),
]
QuestionsOption = Annotated[
    int | None,
    typer.Option(
        "--questions",
        parser=whole_number,
        metavar="K",
        help="Largest number of questions; for online.",
        rich_help_panel=QUERIES,
    ),
]
AlphaOption = Annotated[
    float | None,
    typer.Option(
        "--alpha",
        parser=real,
        metavar="A",
        help="Answers from public guesses may be off by about 3 A; for online. By default the "
        "least A with proved accuracy. With few records there is none, and A must be given.",
        rich_help_panel=QUERIES,
    ),
]
QueriesOption = Annotated[
    str,
    typer.Option(
        "--queries",
        metavar="FILE",
        help="A file with one question per line. region=north,smoker=true asks for the share of "
        "records with both levels. With -, questions come from standard input, one by one.",
        rich_help_panel=QUERIES,
    ),
]
StateOption = Annotated[
    Path,
    typer.Option(
        "--state",
        metavar="FILE",
        help="A new file for the questions and answers of this run, one JSON object per line. A "
        "run cannot be continued.",
        rich_help_panel=RESULT,
    ),
]


def ask(
    data: DataArgument = None,
    *,
    sample: SampleOption = None,
    sql: SqlOption = None,
    database: DatabaseOption = None,
    schema: SchemaOption = None,
    n: CountOption = None,
    columns: ColumnsOption = None,
    queries: QueriesOption,
    technique: TechniqueOption,
    threshold: ThresholdOption = None,
    cutoff: CutoffOption = None,
    questions: QuestionsOption = None,
    alpha: AlphaOption = None,
    epsilon: EpsilonOption = None,
    delta: DeltaOption = None,
    epsilon_above_10: Above10Option = False,
    adjacency: AdjacencyOption = AdjacencyFlag.REPLACE_ONE,
    ledger: LedgerOption = None,
    budget: BudgetOption = None,
    state: StateOption,
) -> None:
    """Answer adaptive questions about the records in DATA, one by one, within one budget."""
    from geomdp.cli.errors import naming_flags
    from geomdp.cli.inputs import RecordFlags, warn_of
    from geomdp.cli.ledger_flags import Payment
    from geomdp.cli.output_files import record_room
    from geomdp.cli.questions import split_columns
    from geomdp.cli.releasing.record import privacy_record
    from geomdp.data import CountedRecords, count_records
    from geomdp.workloads import Histogram

    relation, privacy = adjacency.relation(), parse_released(epsilon, delta, None, epsilon_above_10)
    assert isinstance(privacy, PureDP | ApproxDP)  # the command has no --rho
    check_normaliser(n, relation)
    payment = Payment(ledger, budget)
    payment.check(provable=True)
    setting = Setting(technique, threshold, cutoff, questions, alpha, privacy, relation)
    names = None if columns is None else split_columns(columns)
    source = RecordFlags(data, sample, schema, False, sql, database).source(names)
    declared = source.schema
    declared = declared.select(list(declared.levels) if names is None else names)
    table, caveat = Table(declared.labels), declared.caveat
    warn_of(caveat)
    with (
        questions_of(queries, table) as lines,
        exclusive(state, record_room(declared)) as file,
        payment.opened(relation) as account,
    ):
        if account is not None:
            account.require(Guarantee(privacy, relation, Exact(), withdrawn=caveat), "ask")
        with working("reading records"):
            workload = Histogram(table.size)
            counted = count_records(source.table, declared.confirm(), workload)
        number = _number_of_records(n, relation, counted.count)
        assert isinstance(counted, CountedRecords)
        histogram = counted.totals(workload).sums.astype(np.int64)
        with naming_flags("alpha"):
            mechanism = setting.mechanism(table.size, number, account)
        claim = mechanism.guarantee.without_claim(caveat)
        own = {"mechanism": setting.record(mechanism)}
        record = privacy_record(claim, privacy, own, declared, source.origin, number, n)
        charged = payment.charged(claim)
        add_line(file, record, f"{charged}, and no question was answered")
        answer_all(lines, mechanism, histogram, number, file, charged)


def _number_of_records(n: int | None, relation: Adjacency, counted: int) -> int:
    if relation is Adjacency.ADD_REMOVE:
        assert n is not None  # by `check_normaliser`
        return n
    if n not in (None, counted):
        raise ValueError(f"--n must be the number of records, {counted}, got {n}")
    if counted == 0:
        raise ValueError("DATA must hold at least 1 record, got 0")
    return counted
