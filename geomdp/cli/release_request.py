"""The work of `release`: compute and write the release, and print a summary.

The privacy records of `release` and `ask` are JSON with the claim, the question and the method.
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
from collections.abc import Mapping
from dataclasses import dataclass

from geomdp.cli import display
from geomdp.cli.display import naming_flags, working
from geomdp.cli.flags import Question
from geomdp.cli.inputs import RecordSource, connected, warn_of
from geomdp.cli.ledger import Payment, left_in
from geomdp.cli.mechanism_flags import Choice
from geomdp.cli.output_files import OutputFiles, paid_files, warn_of_formulas
from geomdp.data import Schema
from geomdp.mechanisms import Mechanism
from geomdp.privacy import Adjacency, Guarantee, Privacy
from geomdp.tabulation import Tabulation
from geomdp.tabulation import release as released

# Privacy records

#: A record states the versions of these packages, which take part in computing the answers.
RECORDED_DISTRIBUTIONS = ("geomdp", "numpy", "scipy", "numba", "python-flint")


@dataclass(frozen=True)
class Provenance:
    """Facts about a release that its answers do not show.

    The guarantee of the release can be stronger than the one `asked`. `declared_n` is None if
    records were counted.
    """

    spec: str
    source: str
    asked: Privacy
    chosen_by: str
    declared_n: int | None
    seed: int | None
    confidence: float

    def record(self, release: Tabulation) -> str:
        assert release.task.schema is not None  # `geomdp.release` sets it
        own = {
            "predicted_rmse": release.predicted_rmse.to_dict(),
            "mechanism": {"name": mechanism_name(release.mechanism), "chosen_by": self.chosen_by},
            "answers": {
                "form": release.statement,
                "confidence": self.confidence if release.has_intervals else None,
            },
            "workload": {
                "spec": self.spec,
                "description": release.task.description,
                "columns": list(release.task.columns),
                "queries": release.task.workload.n_queries,
            },
            "seed": self.seed,
        }
        schema, n = release.task.schema, release.mechanism.n
        record = privacy_record(
            release.guarantee, self.asked, own, schema, self.source, n, self.declared_n
        )
        return json.dumps(record, indent=2, ensure_ascii=False) + "\n"


def privacy_record(
    guarantee: Guarantee,
    asked: Privacy,
    own: Mapping[str, object],
    schema: Schema,
    source: str,
    n: int,
    declared_n: int | None,
) -> dict[str, object]:
    """The privacy record of any command; `own` are the facts that only this command states."""
    return {
        "claim": str(guarantee),
        "guarantee": guarantee.to_dict(),
        "asked": str(asked),
        **own,
        "schema": {"source": source, **schema.to_dict()},
        "n": {"value": n, "source": n_source(declared_n)},
        "versions": {
            "python": platform.python_version(),
            **{name: importlib.metadata.version(name) for name in RECORDED_DISTRIBUTIONS},
        },
    }


def n_source(declared_n: int | None) -> str:
    """How the number of records is known: it was counted or declared."""
    return "counted" if declared_n is None else "declared"


def mechanism_name(mechanism: Mechanism) -> str:
    """The name of the class and of any wrapped mechanism, for instance Projected(KNorm)."""
    inner = getattr(mechanism, "inner", None)
    name = type(mechanism).__name__
    return name if inner is None else f"{name}({mechanism_name(inner)})"


# The release that the flags describe


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
