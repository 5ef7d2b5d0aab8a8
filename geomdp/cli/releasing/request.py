"""Compute and write the release that the flags describe, and print a summary."""

from __future__ import annotations

from dataclasses import dataclass

from geomdp.cli import display
from geomdp.cli.errors import naming_flags
from geomdp.cli.inputs import RecordSource, connected, warn_of
from geomdp.cli.ledger_flags import Payment, left_in
from geomdp.cli.mechanism_flags import Choice
from geomdp.cli.output_files import OutputFiles, paid_files, warn_of_formulas
from geomdp.cli.progress import working
from geomdp.cli.questions import Question
from geomdp.cli.releasing.record import Provenance, mechanism_name, n_source
from geomdp.privacy import Adjacency, Privacy
from geomdp.tabulation import Tabulation
from geomdp.tabulation import release as released


@dataclass(frozen=True)
class Request:
    """The flags that describe the answers of a release: the queries, the privacy and the form."""

    privacy: Privacy
    question: Question
    choice: Choice
    adjacency: Adjacency
    n: int | None
    unbiased: bool
    integers: bool
    confidence: float
    seed: int | None


def carry_out(
    request: Request,
    source: RecordSource,
    files: OutputFiles,
    payment: Payment,
    scheduler: str | None,
) -> None:
    question = request.question
    task = question.task(source.schema)  # if columns are missing, the error names the flag
    warn_of(task.caveat)
    provenance = Provenance(
        question.spec,
        source.origin,
        request.privacy,
        request.choice.by,
        request.n,
        request.seed,
        request.confidence,
    )
    with (
        connected(scheduler) as client,
        paid_files(files.room(task, source.schema)) as write,
        payment.opened(request.adjacency) as account,
        working("checking the request"),
        naming_flags("n"),
    ):
        answers = released(
            source.table,
            source.schema,
            question.asked,
            privacy=request.privacy,
            n=request.n,
            adjacency=request.adjacency,
            columns=question.columns,
            weights=question.weights,
            mechanism=request.choice,
            unbiased=request.unbiased,
            integers=request.integers,
            ledger=account,
            client=client,
            rng=request.seed,
        )
        columns = answers.columns(request.confidence)
        contents = files.contents(columns, provenance.record(answers))
        charged = payment.charged(answers.guarantee)
        write(contents, charged)
        left = left_in(account)
    warn_of_formulas(columns, files.answers)
    with display.printing(f"{charged}, and the answers are in {files.answers}"):
        display.print_rows([*_summary(answers, provenance, source.name, files), *left])


def _summary(
    answers: Tabulation, provenance: Provenance, source: str, files: OutputFiles
) -> list[tuple[str, str]]:
    """Rows about the records, the mechanism, its privacy and error, and the files."""
    weights = answers.task.weights
    equal = weights is None or bool((weights == 1).all())
    weighted = "" if equal else ", each error times its weight"
    intervals = (
        f", with {100 * provenance.confidence:.6g}% intervals" if answers.has_intervals else ""
    )
    return [
        ("records", f"{answers.mechanism.n} ({n_source(provenance.declared_n)}), {source}"),
        answers.task.row,
        ("mechanism", f"{mechanism_name(answers.mechanism)}, chosen by {provenance.chosen_by}"),
        ("privacy", str(answers.guarantee) + display.implied(answers.guarantee, provenance.asked)),
        ("rmse", display.in_words(answers.predicted_rmse) + weighted),
        ("answers", answers.statement),
        ("written to", f"{files.answers}{intervals}"),
        ("record", str(files.record)),
    ]
