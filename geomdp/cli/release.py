"""The commands `release` and `covariance`: private answers about a table, with their record."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import geomdp as gd
from geomdp._numerics.files import write_together
from geomdp._validation import MOST_CONFIDENCE, positive, probability
from geomdp.cli import display, flags, outputs
from geomdp.cli.display import Rows, check_together, naming_flags, working
from geomdp.cli.flags import options, real
from geomdp.cli.outputs import OutputFiles, Payment, paid_files, warn_of_formulas

if TYPE_CHECKING:
    import pandas as pd

    from geomdp.cli.inputs import Choice, RecordSource
    from geomdp.tabulation import CovarianceTable, Regression

_option = options("""
Records:
--infer-schema  Read the schema from the records, to try something out. This is NOT private.
--person COLUMN  With --max-rows-per-person: the column that names the person of each row. It is no
    part of the queries, and needs no place in the schema.
--scheduler ADDRESS  Count the records of files on a Dask cluster, for instance tcp://host:8786. Its
    workers must find the files under the same paths.
Result:
--out FILE  File for the answers (.csv or .parquet), one row per cell. The privacy record is written
    beside it, with the ending .privacy.json.
--consistent/--unbiased  Adjust answers so that no cell is negative and tables add up, or leave the
    noisy answers as they are.
--projected  Adjust answers by moving them to the nearest attainable ones, not by fitting a
    distribution to tables. Their error is at most that of the noise.
--integers  Counts are whole numbers. Fitted tables become those of synthetic records, and agree;
    other consistent tables are rounded, and still add up.
--synthetic FILE  Also write synthetic records to FILE (.csv or .parquet): as many as there are
    records, drawn from the distribution fitted to the tables, at no further cost.
--flag-above X  Flag an answer in the column flag if its 95% interval reaches further than X times
    the answer to each side.
--confidence C  Probability with which the interval of each answer contains the true answer.
--quantiles Q,...  Also give these quantiles, for instance 0.25,0.5,0.75, of columns that are asked
    by [prefixes], at no further cost.
Privacy:
--plan FILE  Use the mechanism that `geomdp advise` or `budget` saved with --save-plan FILE, its
    privacy, and the weights of tables that `budget` found.
""")


def check_confidence(confidence: float) -> None:
    """Raise ``ValueError`` if --confidence is out of range: later, the ledger would have paid."""
    if probability(confidence, "--confidence") > MOST_CONFIDENCE:
        raise ValueError(f"--confidence must be at most {MOST_CONFIDENCE}, got {confidence!r}")


def check_form(*, consistent: bool, projected: bool, synthetic: Path | None) -> None:
    """Raise ``ValueError`` if two forms of the answers are asked for."""
    if synthetic is not None and (projected or not consistent):
        given = "--projected" if consistent else "--unbiased"
        raise ValueError(f"--synthetic needs fitted tables and excludes {given}")
    if projected and not consistent:
        raise ValueError("give either --unbiased or --projected: projected answers are biased")


#: At most this many groups are printed.
SHOWN = 12


def parse_quantiles(text: str | None) -> list[float]:
    """The numbers of --quantiles; ``ValueError`` if one is not above 0 and below 1."""
    try:
        return [probability(float(q), "--quantiles") for q in text.split(",")] if text else []
    except ValueError as error:
        raise ValueError(f"--quantiles must be numbers in (0, 1), got {text!r}") from error


def release(
    data: flags.Data = None,
    *,
    sample: flags.Sample = None,
    sql: flags.Sql = None,
    database: flags.Database = None,
    schema: flags.SchemaFile = None,
    infer_schema: Annotated[bool, _option("--infer-schema")] = False,
    scheduler: Annotated[str | None, _option("--scheduler ADDRESS")] = None,
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
    person: Annotated[str | None, _option("--person COLUMN")] = None,
    max_rows_per_person: flags.MaxRows = None,
    mechanism: flags.Mechanism = flags.AUTO,
    effort: flags.Effort = None,
    plan: Annotated[Path | None, _option("--plan FILE")] = None,
    exact: flags.ExactOnly = True,
    ledger: flags.LedgerFile = None,
    budget: flags.Budget = None,
    consistent: Annotated[bool, _option("--consistent/--unbiased")] = True,
    projected: Annotated[bool, _option("--projected")] = False,
    integers: Annotated[bool, _option("--integers")] = False,
    confidence: Annotated[float, _option("--confidence C", real)] = 0.95,
    quantiles: Annotated[str | None, _option("--quantiles Q,...")] = None,
    flag_above: Annotated[float, _option("--flag-above X", real)] = 0.65,
    out: Annotated[Path, _option("--out FILE")],
    synthetic: Annotated[Path | None, _option("--synthetic FILE")] = None,
    seed: flags.Seed = None,
    force: flags.Force = False,
) -> None:
    """Release private answers about the records in DATA, with their privacy record."""
    means = any("[mean]" in text for text in [*(workload or []), *(tables or [])])
    derived = ("means",) * means + ("quantiles",) * (quantiles is not None)
    files, relation = OutputFiles(out, synthetic, derived), adjacency.relation()
    payment = Payment(ledger, budget)
    provable = exact and seed is None and not infer_schema
    (privacy, saved), question = check_together(
        lambda: _parse_privacy(
            epsilon, delta, rho, epsilon_above_10 or seed is not None, plan, max_rows_per_person
        ),
        lambda: flags.parse_question(workload, tables, weight, columns),
        lambda: parse_quantiles(quantiles),
        lambda: flags.check_whole("--seed", seed, minimum=0),
        lambda: flags.check_normaliser(n, relation),
        lambda: flags.check_persons(max_rows_per_person, relation),
        lambda: flags.check_person(person, max_rows_per_person),
        lambda: check_confidence((1 + confidence) / 2 if means else confidence),
        lambda: positive(flag_above, "--flag-above"),
        lambda: check_form(consistent=consistent, projected=projected, synthetic=synthetic),
        lambda: payment.check(provable=provable),
        lambda: files.check(force, inputs=(data, schema, ledger, plan)),
    )
    # Imported here: this module imports most of the library, and refusals should come at once.
    from geomdp.cli.inputs import choice_of, planned_choice, record_source

    if plan is None or saved is None:
        choice = choice_of(mechanism, exact, effort)
    elif mechanism != flags.AUTO or effort is not None:
        raise ValueError("--plan excludes --mechanism and --effort: the plan names the mechanism")
    else:
        choice = planned_choice(plan, saved, exact, max_rows_per_person)
    source = record_source(question.columns, data, sample, schema, infer_schema, sql, database)
    if choice.weights is not None:
        if question.weights is not None:
            raise ValueError(f"--weight must be left out: --plan {plan} has weights of its own")
        question = replace(question, weights=tuple(choice.weights))
    # A prefix such as projected- in --mechanism asks for the answers of this step.
    projected = projected or (consistent and choice.has_step)
    request = Request(
        privacy,
        question,
        choice,
        relation,
        person,
        max_rows_per_person,
        n,
        not consistent,
        projected,
        integers,
        flag_above,
        confidence,
        parse_quantiles(quantiles),
        seed,
    )
    _carry_out(request, source, files, payment, scheduler)


def _parse_privacy(
    epsilon: float | None,
    delta: float | None,
    rho: float | None,
    above_10: bool,
    plan: Path | None,
    max_rows: int | None,
) -> tuple[gd.privacy.Privacy, gd.advice.Plan | None]:
    """The privacy of the flags, or of the plan, which is for a row, if there is none; the plan."""
    saved = None if plan is None else gd.advice.load_plan(plan)
    if saved is not None and epsilon is delta is rho is None:
        names = ("epsilon", "delta", "rho")
        row = flags.parse_privacy(*map(saved.parameters.get, names))
        person = gd.privacy.group_privacy(row, max_rows or 1).parameters()
        epsilon, delta, rho = map(person.get, names)
    return flags.parse_released(epsilon, delta, rho, above_10), saved


@dataclass(frozen=True)
class Request:
    """The flags that describe the answers of a release: the queries, the privacy and the form."""

    privacy: gd.privacy.Privacy
    question: flags.Question
    choice: Choice
    adjacency: gd.Adjacency
    person: str | None
    max_rows: int | None
    n: int | None
    unbiased: bool
    projected: bool
    integers: bool
    flag_above: float
    confidence: float
    quantiles: list[float]
    seed: int | None


def _carry_out(
    request: Request,
    source: RecordSource,
    files: OutputFiles,
    payment: Payment,
    scheduler: str | None,
) -> None:
    from geomdp.cli.inputs import connected, warn_of
    from geomdp.tabulation.ways import PREFIXES

    question = request.question
    task = question.task(source.schema)  # if columns are missing, the error names the flag
    warn_of(task.caveat)
    if request.quantiles and PREFIXES not in task.ways.values():
        raise ValueError("--quantiles needs a column asked by its prefixes, as in 'age[prefixes]'")
    claim = gd.privacy.Guarantee(
        request.privacy,
        request.adjacency,
        gd.privacy.Exact(),
        withdrawn=task.caveat,
        max_rows_per_person=request.max_rows,
        person=None if request.max_rows is None else request.person,
    )
    with (
        connected(scheduler) as client,
        paid_files(files.room(task, source.schema)) as write,
        payment.opened(claim, "release") as account,
        working("checking the request"),
        naming_flags("n", "person"),
    ):
        answers = gd.release(
            source.table,
            source.schema,
            question.asked,
            privacy=request.privacy,
            n=request.n,
            adjacency=request.adjacency,
            person=request.person,
            max_rows_per_person=request.max_rows,
            columns=question.columns,
            weights=question.weights,
            mechanism=request.choice.rule,
            unbiased=request.unbiased,
            projected=request.projected,
            integers=request.integers,
            synthetic=files.synthetic is not None,
            ledger=account,
            client=client,
            rng=request.seed,
        )
        columns = answers.columns(request.confidence, flag_above=request.flag_above)
        derived = _derived(answers, request)
        contents = files.contents(columns, _record(answers, request, source.origin), derived)
        charged = payment.charged(answers.guarantee)
        write(contents, charged)
        left = outputs.left_in(account)
    warn_of_formulas(columns, files.answers)
    with display.printing(f"{charged}, and the answers are in {files.answers}"):
        drawn = _synthetic(answers, request.seed, files.synthetic)
        more = [(name, str(files.beside(name))) for name in derived]
        display.print_rows([*_summary(answers, request, source.name, files), *more, *drawn, *left])
        for frame in derived.values():
            _print_groups(frame)


def _derived(answers: gd.tabulation.Tabulation, request: Request) -> dict[str, pd.DataFrame]:
    """The means and quantiles by group; none if the noise has no known law."""
    from geomdp.tabulation.ways import MEAN

    found = {}
    if answers.has_intervals and MEAN in answers.task.ways.values():
        found["means"] = answers.means(request.confidence)
    if answers.has_intervals and request.quantiles:
        found["quantiles"] = answers.quantiles(request.quantiles, request.confidence)
    return found


def _print_groups(frame: pd.DataFrame) -> None:
    """Print numbers by group, without the intervals of counts and totals."""
    short = frame[[name for name in frame if not str(name).endswith(("_low", "_high"))]]
    shown = short.head(SHOWN).astype(object).where(short.notna(), "-")
    print(f"\n{shown.to_string(index=False, float_format='{:.6g}'.format)}")
    if len(short) > SHOWN:
        print(f"and {len(short) - SHOWN} more rows in the file")


def _synthetic(answers: gd.tabulation.Tabulation, seed: int | None, path: Path | None) -> Rows:
    """Write synthetic records, if asked for; a row says where they are, or why there are none."""
    if path is None:
        return []
    if answers.fit is None:
        return [("synthetic", "no records, because they need tables fitted to one distribution")]
    drawn = answers.synthetic(rng=seed)
    columns = outputs.columns_of(drawn)
    assert answers.task.schema is not None  # `geomdp.release` sets it
    write_together({path: outputs.encoded(columns, path, answers.task.schema.csv)})
    warn_of_formulas(columns, path)
    return [("synthetic", f"{len(drawn)} records drawn from the fitted distribution, {path}")]


def _summary(
    answers: gd.tabulation.Tabulation, request: Request, source: str, files: OutputFiles
) -> Rows:
    """Rows about the records, the mechanism, its privacy and error, and the files."""
    weights = answers.task.weights
    equal = weights is None or bool((weights == 1).all())
    intervals = f", with {100 * request.confidence:.6g}% intervals" if answers.has_intervals else ""
    fitted = "; of fitted tables, twice the noise; --projected keeps that of the noise"
    rmse = "" if answers.fit is None else fitted
    if request.integers:
        rmse += ", before counts are made whole"
    if answers.estimated_rmse is not None:
        rmse += f"; {answers.estimated_rmse:.4g} by an estimate from this release (Stein)"
    mechanism, privacy = answers.mechanism, answers.guarantee
    rows = [
        ("records", f"{mechanism.n} ({display.counted(request.n)}), {source}"),
        answers.task.row,
        ("mechanism", f"{_mechanism_name(mechanism)}, chosen by {request.choice.by}"),
        ("privacy", str(privacy) + display.implied(privacy, request.privacy)),
        *display.error_rows(
            mechanism, answers.predicted_rmse, rmse, weighted=not equal, task=answers.task
        ),
        ("answers", answers.statement),
    ]
    if answers.has_intervals:
        flags = answers.flagged(request.flag_above)
        said = f"95% intervals reach further than {request.flag_above:.3g} times the answer"
        rows.append(("flagged", f"{flags.sum()} of {len(flags)} answers, whose {said}"))
    rows.append(("written to", f"{files.answers}{intervals}"))
    return [*rows, ("record", str(files.record))]


def _record(answers: gd.tabulation.Tabulation, request: Request, origin: str) -> dict[str, object]:
    """The privacy record of a release, for a schema from `origin`."""
    task, has_intervals = answers.task, answers.has_intervals
    assert task.schema is not None  # `geomdp.release` sets it
    own = {
        "predicted_rmse": answers.predicted_rmse.to_dict(),
        "estimated_rmse": answers.estimated_rmse,
        "mechanism": {"name": _mechanism_name(answers.mechanism), "chosen_by": request.choice.by},
        "answers": {
            "form": answers.statement,
            "confidence": request.confidence if has_intervals else None,
            "flag_above": request.flag_above if has_intervals else None,
        },
        "workload": {
            "spec": request.question.spec,
            "description": task.description,
            "columns": list(task.columns),
            "queries": len(task.labels),
        },
        "seed": request.seed,
        "person": request.person,
    }
    claim, n = answers.guarantee, answers.mechanism.n
    return privacy_record(claim, request.privacy, own, task.schema, origin, n, request.n)


#: A record states the versions of these packages, which take part in computing the answers.
RECORDED_DISTRIBUTIONS = ("geomdp", "numpy", "scipy", "numba", "python-flint")


def privacy_record(
    guarantee: gd.privacy.Guarantee,
    asked: gd.privacy.Privacy,
    own: Mapping[str, object],
    schema: gd.data.Schema,
    origin: str,
    n: int,
    declared_n: int | None,
) -> dict[str, object]:
    """The privacy record: the claim, what was `asked`, and the facts `own` to the command."""
    from importlib.metadata import version  # slow import

    return {
        "claim": str(guarantee),
        "guarantee": guarantee.to_dict(),
        "asked": str(asked),
        **own,
        "schema": {"source": origin, **schema.to_dict()},
        "n": {"value": n, "source": display.counted(declared_n)},
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in RECORDED_DISTRIBUTIONS},
        },
    }


def _mechanism_name(mechanism: gd.mechanisms.Mechanism) -> str:
    """The name of the class and of any wrapped mechanism, for instance Projected(KNorm)."""
    inner = getattr(mechanism, "inner", None)
    name = type(mechanism).__name__
    return name if inner is None else f"{name}({_mechanism_name(inner)})"


# covariance

_covariance_option = options("""
Columns:
--columns A,B,...  Columns of kind real; by default all of the schema.
--regress NAME  Also predict this column from the others by linear regression, at no further cost.
Result:
--out FILE  File for the means and covariances (.csv or .parquet), one row per column. The privacy
    record is written beside it, with the ending .privacy.json.
--confidence C  Probability with which each interval of --regress contains the true coefficient.
""")


def covariance(
    data: flags.Data = None,
    *,
    sql: flags.Sql = None,
    database: flags.Database = None,
    schema: flags.SchemaFile = None,
    n: flags.Count = None,
    columns: Annotated[str | None, _covariance_option("--columns A,B,...")] = None,
    regress: Annotated[str | None, _covariance_option("--regress NAME")] = None,
    confidence: Annotated[float, _covariance_option("--confidence C", real)] = 0.95,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    epsilon_above_10: flags.Above10 = False,
    ledger: flags.LedgerFile = None,
    budget: flags.Budget = None,
    out: Annotated[Path, _covariance_option("--out FILE")],
    seed: flags.Seed = None,
    force: flags.Force = False,
) -> None:
    """Release private means and covariances of real columns of DATA, and regressions from them."""
    relation, files, payment = gd.Adjacency.REPLACE_ONE, OutputFiles(out), Payment(ledger, budget)
    privacy, _ = check_together(
        lambda: flags.parse_released(epsilon, delta, rho, epsilon_above_10 or seed is not None),
        lambda: flags.check_whole("--seed", seed, minimum=0),
        lambda: flags.check_whole("--n", n, minimum=1),
        lambda: check_confidence(confidence),
        lambda: payment.check(provable=seed is None),
        lambda: files.check(force, inputs=(data, schema, ledger)),
    )
    from geomdp.cli.inputs import record_source, warn_of
    from geomdp.tabulation.tasks import chosen_columns

    names = None if columns is None else flags.split_columns(columns)
    source = record_source(names, data, None, schema, False, sql, database)
    with naming_flags("columns"):
        chosen = list(chosen_columns(source.schema, names, real=True))
    if regress is not None and (regress not in chosen or len(chosen) < 2):
        raise ValueError(f"--regress must be one of two or more columns {chosen}, got {regress!r}")
    declared = source.schema.select(chosen)
    warn_of(declared.caveat)
    rest = outputs.record_room(declared)
    claim = gd.privacy.Guarantee(privacy, relation, gd.privacy.Exact(), withdrawn=declared.caveat)
    sizes = {files.record: rest, files.answers: rest + 64 * (len(chosen) + 2) ** 2}
    with (
        paid_files(sizes) as write,
        payment.opened(claim, "Covariance") as account,
        working("reading records"),
        naming_flags("n"),
    ):
        released = gd.tabulation.covariance(
            source.table, declared, privacy=privacy, n=n, ledger=account, rng=seed
        )
        found, missing = _regression(released, regress, confidence)
        own: dict[str, object] = {
            "predicted_rmse": released.predicted_rmse.to_dict(),
            "mechanism": {"name": type(released.mechanism).__name__},
            "columns": chosen,
            "regression": None if found is None else _stated(found, confidence),
            "seed": seed,
        }
        number, proved = released.mechanism.n, released.guarantee
        record = privacy_record(proved, privacy, own, declared, source.origin, number, n)
        table, charged = _columns(released), payment.charged(proved)
        write(files.contents(table, record), charged)
        left = outputs.left_in(account)
    warn_of_formulas(table, files.answers)
    with display.printing(f"{charged}, and the covariances are in {files.answers}"):
        rows = [
            ("records", f"{number} ({display.counted(n)}), {source.name}"),
            ("columns", ", ".join(chosen)),
            ("rmse", f"{display.in_words(released.predicted_rmse)}, for columns in the unit ball"),
            ("privacy", str(released.guarantee)),
            ("written to", f"{files.answers}, covariances in the units of the columns"),
            ("record", str(files.record)),
        ]
        display.print_rows([*rows, *left])
        if found is not None:
            _print_regression(found, confidence)
        if missing:
            display.warn(f"no regression of {regress}: {missing}")


def _regression(
    released: CovarianceTable, target: str | None, confidence: float
) -> tuple[Regression | None, str]:
    """The regression of `target`, or the reason why there is none although it was asked for."""
    if target is None:
        return None, ""
    try:
        return released.regression(target, confidence=confidence), ""
    except ValueError as error:
        # The release is paid, so its covariances are written all the same.
        return None, str(error)


def _columns(released: CovarianceTable) -> outputs.Columns:
    """The columns of the file: names, means and covariances, each with the size of its noise."""
    matrix, noise = released.frame, released.noise_std
    return {
        "column": list(matrix.columns),
        "mean": released.mean.to_numpy(),
        "noise_std of the mean": released.mean_noise_std.to_numpy(),
        **{f"covariance with {name}": matrix[name].to_numpy() for name in matrix.columns},
        **{f"noise_std with {name}": noise[name].to_numpy() for name in matrix.columns},
    }


def _stated(found: Regression, confidence: float) -> dict[str, object]:
    own = {"target": found.target, "intercept": found.level.to_dict(), "confidence": confidence}
    return {**own, "coefficients": found.frame.to_dict("index")}


def _print_regression(found: Regression, confidence: float) -> None:
    print(f"\n{found.target} = intercept + the sum of coefficient * column:")
    interval = f"{100 * confidence:g}% interval"
    display.print_table(
        ["column", "coefficient", "standard error", "of it noise", interval],
        [
            (
                str(name),
                *(f"{row[key]:.4g}" for key in ("coefficient", "standard_error", "noise_error")),
                f"{row['low']:.4g} to {row['high']:.4g}",
            )
            for name, row in [*found.frame.iterrows(), ("(intercept)", found.level)]
        ],
    )
