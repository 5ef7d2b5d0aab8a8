"""Commands that read no records: `advise`, `budget`, `bracket`, `check-bound`, `width`, `curve`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

import geomdp as gd
from geomdp._numerics.files import write_together
from geomdp._validation import LARGEST_WHOLE
from geomdp.cli import display, flags
from geomdp.cli.display import check_together, working
from geomdp.cli.flags import options, real, whole_number
from geomdp.cli.outputs import FIGURE, check_free, check_output, check_place, check_plan
from geomdp.privacy import Privacy
from geomdp.privacy.definitions import printed

if TYPE_CHECKING:
    import pandas as pd

    from geomdp.advice.setting import Target
    from geomdp.tabulation.tasks import Task

# advise

#: Two errors are called the same if the relative difference is at most this number.
SAME = 1e-3
#: The search for the number of records with half the error ends at this multiple of --n.
MOST_TIMES = 1 << 20

#: Names in `geomdp.bounds` of the values of --metric.
METRICS = {"mean-l2": "MeanL2", "rms": "RMS", "worst-case": "WorstCase"}


def _metric(text: str) -> str:
    if text not in METRICS:
        raise typer.BadParameter(f"must be one of {', '.join(METRICS)}, got {text!r}")
    return text


_option = options("""
Records:
--n N  Number of records.
--measure  Measure errors on the records of --sample.
--n LOW:HIGH  Numbers of records to cover.
Result:
--verbose  Also explain the choice, and list every mechanism with its error, or with the reason why
    it was left out.
--save-plan FILE  Write the choice to a new file, for `geomdp release --plan FILE`.
--out FILE.json  File for the certificate of the lower bound; `geomdp check-bound` verifies it.
--seed S  Seed of the directions; the same seed gives the same estimate.
--out FILE.png  File for the figure. FILE.svg and FILE.csv are written beside it.
Queries:
--alpha A  Largest error allowed, as --metric measures it; answers are means over records.
--metric NAME  How the error is measured: mean-l2, rms or worst-case (over the queries).
Arguments:
FILE  A certificate (.json).
DATA  File of records (.csv, .csv.gz or .parquet) on which errors are measured, besides the
    predictions; needs --schema. Use only public or synthetic records: measured errors are NOT
    private.
""")


def advise(
    *,
    sample: flags.Sample = None,
    schema: flags.SchemaFile = None,
    n: Annotated[int, _option("--n N", whole_number)],
    workload: flags.Workload = None,
    tables: flags.Tables = None,
    weight: flags.Weight = None,
    columns: flags.Columns = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    adjacency: flags.Neighbours = flags.AdjacencyFlag.REPLACE_ONE,
    max_rows_per_person: flags.MaxRows = None,
    exact: flags.ExactOnly = True,
    effort: flags.Effort = None,
    save_plan: Annotated[Path | None, _option("--save-plan FILE")] = None,
    verbose: Annotated[bool, _option("--verbose")] = False,
) -> None:
    """Compare the mechanisms for a workload, without any records."""
    relation = adjacency.relation()
    privacy, question = check_together(
        lambda: flags.parse_privacy(epsilon, delta, rho),
        lambda: flags.parse_question(workload, tables, weight, columns),
        lambda: flags.check_whole("--n", n, minimum=1),
        lambda: flags.check_persons(max_rows_per_person, relation),
        lambda: check_plan(save_plan),
    )
    # Imported here: these modules import most of the library, and refusals should come at once.
    from geomdp.cli.inputs import checked_effort, planned_task

    seconds = checked_effort(effort)
    task = planned_task(question, sample, schema, declared=True)
    own = gd.privacy.member_privacy(privacy, max_rows_per_person or 1)
    with working("comparing the mechanisms"):
        advice = gd.advise(
            task.workload, n=n, privacy=own, exact_only=exact, adjacency=relation, effort=seconds
        )
        half = records_for_half(advice.best)
    claim = advice.best.guarantee.for_persons(max_rows_per_person).without_claim(task.caveat)
    said = str(claim) + display.implied(claim, privacy)
    rows = [task.row, *_advised(advice, task, half, said)]
    if save_plan is not None:
        gd.advice.save_plan(gd.advice.plan_of(advice, max_rows_per_person), save_plan)
        rows.append(("plan", f"{save_plan}, for geomdp release --plan"))
    display.print_rows(rows)
    if verbose:
        _print_details(advice)
    else:
        print("\n--verbose explains the choice and lists all mechanisms.")


def _advised(advice: gd.advice.Advice, task: Task, half: int | None, claim: str) -> display.Rows:
    """Rows about the best mechanism, its error, the n that halves the error, and the next best."""
    # `Advice.table` is not used here, because it imports pandas.
    applies, best = [row for row in advice.rows if row.applies], advice.best
    error = task.predicted(best)
    weighted = task.weights is not None and bool((task.weights != 1).any())
    counts = task.tables and not weighted
    said = f"; as a count {display.number(error.value * best.n)} of {best.n} records"
    rows = [
        ("best", f"{applies[0].mechanism}, of {len(applies)} mechanisms that apply"),
        *display.error_rows(best, error, said if counts else "", weighted=weighted, task=task),
        ("half of rmse", "no number of records found" if half is None else f"with {half} records"),
        ("privacy", claim),
    ]
    if not math.isnan(applies[0].simulated_rmse):
        simulated = display.number(applies[0].simulated_rmse)
        rows.append(("simulated", f"rmse {simulated} on uniform data"))
    if len(applies) > 1:
        # The errors are those of the measured tables, of which the cells asked are sums.
        scale = error.value / best.predicted_rmse.value
        value = scale * applies[1].predicted_rmse
        shown = f"{applies[1].mechanism}: {display.number(value)}"
        rows.append(("next best", shown + _compared(value, error.value)))
    return rows


def _compared(value: float, best: float) -> str:
    if math.isclose(value, best, rel_tol=SAME):
        return ", about the same"
    if value < best:
        return f", {1 - value / best:.1%} less, but not advised (see --verbose)"
    return f", {value / best - 1:.1%} more" if value < 2 * best else f", {value / best:.2g} times"


def records_for_half(mechanism: gd.mechanisms.Mechanism) -> int | None:
    """The least n, up to 1%, that halves the predicted error; None beyond 2^20 times n."""
    from geomdp.mechanisms.additive_noise.base import InexactSumsError

    def reached(n: int) -> bool:
        return mechanism.with_n(n).predicted_rmse.value <= target

    target, enough = mechanism.predicted_rmse.value / 2, 2 * mechanism.n
    most = min(MOST_TIMES * mechanism.n, LARGEST_WHOLE)
    try:
        while enough <= most and not reached(enough):
            enough *= 2
    except InexactSumsError:
        return None
    if enough > most:
        return None
    short = enough // 2
    while enough - short > max(1, enough // 100):
        middle = (short + enough) // 2
        short, enough = (short, middle) if reached(middle) else (middle, enough)
    return enough


def _print_details(advice: gd.advice.Advice) -> None:
    """Print the reasons for the choice, and a row for every mechanism."""
    applies = [row for row in advice.rows if row.applies]
    why = zip(["why", *[""] * len(advice.reasons)], advice.reasons, strict=False)
    seconds = sum(row.seconds for row in applies)
    print()
    display.print_rows([*why, ("set-up", f"{seconds:.1f} s for all that apply")])
    print()
    display.print_table(
        ["mechanism", "rmse", "prediction", "simulated", "set-up", "sampler"],
        [
            (
                row.mechanism,
                display.number(row.predicted_rmse),
                row.kind,
                "" if math.isnan(row.simulated_rmse) else display.number(row.simulated_rmse),
                f"{row.seconds:.1f} s",
                row.sampler.partition(" ")[0],
            )
            for row in applies
        ],
    )
    chains = [(r.mechanism, r.sampler) for r in applies if r.sampler.startswith("heuristic")]
    if chains:
        print()
        said = "chains (diagnostics can find a bad chain, but prove nothing)"
        display.print_table(["heuristic", said], chains)
    print()
    refused = [(row.mechanism, row.why) for row in advice.rows if not row.applies]
    display.print_table(["left out", "why"], refused)


# budget

_budget_option = options("""
Accuracy:
--rmse X  Largest root mean squared error of shares. X is a number for all queries, A,B:number for
    the table of the columns A and B, or A=level,B=level:number for one cell. Repeat each flag for
    more targets; all are met.
--half-width X  Largest half-width of the 95% interval of each query, written like --rmse.
--largest X  Largest error over the queries, kept with probability 0.95, written like --rmse.
Privacy:
--delta D  Find epsilon for (epsilon, D)-DP instead of epsilon-DP.
--zcdp  Find rho for zero-concentrated privacy.
Result:
--save-plan FILE  Write the mechanism, the budget and the weights of tables to a new file, for
    `geomdp release --plan FILE`.
--out FILE  FILE.png draws the errors against the budget, with FILE.svg and FILE.csv beside it.
    FILE.json holds the proof that a smaller budget is impossible, for `geomdp check-bound`.
""")

#: At most this many tables are printed, those with the largest errors.
TABLES_SHOWN = 12


def budget(
    *,
    sample: flags.Sample = None,
    schema: flags.SchemaFile = None,
    n: Annotated[int, _option("--n N", whole_number)],
    workload: flags.Workload = None,
    tables: flags.Tables = None,
    weight: flags.Weight = None,
    columns: flags.Columns = None,
    rmse: Annotated[list[str] | None, _budget_option("--rmse X")] = None,
    half_width: Annotated[list[str] | None, _budget_option("--half-width X")] = None,
    largest: Annotated[list[str] | None, _budget_option("--largest X")] = None,
    delta: Annotated[float | None, _budget_option("--delta D", real)] = None,
    zcdp: Annotated[bool, _budget_option("--zcdp")] = False,
    adjacency: flags.Neighbours = flags.AdjacencyFlag.REPLACE_ONE,
    max_rows_per_person: flags.MaxRows = None,
    exact: flags.ExactOnly = True,
    save_plan: Annotated[Path | None, _budget_option("--save-plan FILE")] = None,
    out: Annotated[Path | None, _budget_option("--out FILE")] = None,
    force: flags.Force = False,
) -> None:
    """Find the least budget for the errors that you allow, without any records."""
    asked = zip(("--rmse", "--half-width", "--largest"), (rmse, half_width, largest), strict=True)
    given = [(flag, texts or []) for flag, texts in asked]
    endings = (".json", ".npz") if out is not None and out.suffix == ".json" else FIGURE
    paths = [] if out is None else [out.with_suffix(end) for end in endings]
    definition, question = check_together(
        lambda: _definition(delta, zcdp),
        lambda: flags.parse_question(workload, tables, weight, columns),
        lambda: flags.check_whole("--n", n, minimum=1),
        lambda: flags.check_persons(max_rows_per_person, adjacency.relation()),
        lambda: _check_targets(given),
        lambda: check_plan(save_plan),
        lambda: None if out is None else check_place(out, ".png", ".json"),
        lambda: check_free(paths, force, inputs=(schema,)),
    )
    from geomdp.cli.inputs import described_schema, planned_task

    task = planned_task(question, sample, schema)
    planned = (sample, schema) if save_plan is not None and task.tables else None
    if planned is not None and described_schema(*planned)[0].select(task.columns).forbidden:
        said = "budget does not use what the schema declares impossible, as release does"
        raise ValueError(f"--save-plan must be left out: {said}; use `geomdp advise --save-plan`")
    targets = _targets(given, task)
    with working("looking for the budget"):
        found = gd.budget_for(
            task.workload,
            n=n,
            targets=list(targets),
            privacy=definition,
            adjacency=adjacency.relation(),
            exact_only=exact,
            max_rows_per_person=max_rows_per_person,
        )
    claim = found.mechanism.guarantee.for_persons(max_rows_per_person).without_claim(task.caveat)
    rows = [task.row, *_found(found, targets, claim)]
    if save_plan is not None:
        gd.advice.save_plan(found.plan, save_plan)
        rows.append(("plan", f"{save_plan}, for geomdp release --plan {save_plan}"))
    if out is not None and out.suffix == ".json":
        rows += _certified(found, out)
    elif out is not None:
        with working("drawing"):
            encoded = gd.plotting.budget_curve(found, title=task.description).encoded()
        write_together({path: encoded[path.suffix] for path in paths})
        rows.append(("figure", ", ".join(map(str, paths))))
    display.print_rows(rows)
    _print_tables(found)


def _definition(delta: float | None, zcdp: bool) -> Callable[[float], Privacy]:
    if delta is None:
        return gd.ZCDP if zcdp else gd.PureDP
    if zcdp:
        raise ValueError(f"--delta excludes --zcdp, got {delta!r}")
    try:
        gd.ApproxDP(1.0, delta)
    except ValueError as error:
        raise ValueError(f"--{error}") from error
    return partial(gd.ApproxDP, delta=delta)


def _check_targets(given: Sequence[tuple[str, list[str]]]) -> None:
    """Raise ``ValueError`` if there is no target, or the number of one is no limit."""
    if not any(texts for _, texts in given):
        raise ValueError("give an error to reach, for instance --half-width 0.02")
    for flag, texts in given:
        for text in texts:
            limit = 0.0
            with suppress(ValueError):
                limit = float(text.rpartition(":")[2])
            if not 0 < limit < float("inf"):
                raise ValueError(
                    f"{flag} must end with a finite number above 0, such as 0.02 or "
                    f"region,age:0.02, got {text!r}"
                )


def _targets(given: Sequence[tuple[str, list[str]]], task: Task) -> dict[Target, str]:
    """The targets, with the words for their queries."""
    kinds: dict[str, Callable[..., Target]] = {
        "--rmse": gd.advice.RootMeanSquare,
        "--half-width": gd.advice.HalfWidth,
        "--largest": gd.advice.LargestError,
    }
    targets: dict[Target, str] = {}
    for flag, texts in given:
        for text in texts:
            place, _, limit = text.rpartition(":")
            names = tuple(name.strip() for name in place.split(","))
            over: Sequence[str] | int | None = names if place else None
            if place in task.labels:
                over = task.labels.index(place)
            target = kinds[flag](float(limit), over)
            try:
                target.queries(task.workload)
            except ValueError as error:
                wanted = f"it must name a table or a query of {task.description}"
                raise ValueError(f"{flag} {text}: {wanted}") from error
            targets[target] = f"{target.name} of {place or 'all queries'}"
    return targets


def _found(
    found: gd.advice.LeastBudget, targets: dict[Target, str], claim: gd.privacy.Guarantee
) -> display.Rows:
    """Rows about the budget, the targets, the mechanism and what is impossible."""
    least = f"{printed(found.budget)} is the least budget that meets all targets"
    rows = [(found.parameter, least)]
    for target, error in found.errors():
        binds = ", which binds" if target == found.binding and len(targets) > 1 else ""
        said = f"{targets[target]}: {display.number(error)}, at most {target.limit:g}{binds}"
        rows.append(("target", said))
    mechanism, weighted = found.mechanism, found.weights is not None
    rows += [
        ("mechanism", found.name),
        *display.error_rows(mechanism, mechanism.predicted_rmse, weighted=weighted),
        ("privacy", str(claim)),
        ("impossible", found.excluded),
    ]
    if (low := found.impossible) is not None:
        rows.append(("because", f"{low.statement}; {targets[low.target]}"))
    return rows


def _certified(found: gd.advice.LeastBudget, path: Path) -> display.Rows:
    """Write the proof of the lower side, or warn why no file can hold it."""
    proof = None if found.impossible is None else found.impossible.certificate
    if not isinstance(proof, gd.bounds.Certificate):
        why = "nothing is proved" if found.impossible is None else found.impossible.statement
        display.warn(f"--out {path} was not written, as the proof has no file: {why}")
        return []
    proof.save(path)
    return [("certificate", f"{path}; verify it with: geomdp check-bound {path}")]


def _print_tables(found: gd.advice.LeastBudget) -> None:
    """Print the errors of each table before post-processing, the largest first."""
    ordered = sorted(found.predictions(), key=lambda row: -row.rmse)
    print()
    rows = [
        (row.table, f"{row.weight:g}", display.number(row.rmse), display.number(row.half_width))
        for row in ordered[:TABLES_SHOWN]
    ]
    display.print_table(["table", "weight", "noise rmse", "half-width of 95%"], rows)
    if len(ordered) > TABLES_SHOWN:
        print(f"and {len(ordered) - TABLES_SHOWN} tables with smaller errors")


# bracket

#: At most this many lower bounds and this many upper bounds are printed, the best first.
SHOWN = 5


def bracket(
    *,
    sample: flags.Sample = None,
    schema: flags.SchemaFile = None,
    workload: flags.Workload = None,
    tables: flags.Tables = None,
    weight: flags.Weight = None,
    columns: flags.Columns = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    alpha: Annotated[float, _option("--alpha A", real)],
    metric: Annotated[str, _option("--metric NAME", _metric)] = "mean-l2",
    adjacency: flags.Neighbours = flags.AdjacencyFlag.REPLACE_ONE,
    out: Annotated[Path | None, _option("--out FILE.json")] = None,
    force: flags.Force = False,
) -> None:
    """Print lower and upper bounds on the least number of records that suffices for the error A."""
    privacy, question = check_together(
        lambda: flags.parse_privacy(epsilon, delta, rho),
        lambda: flags.parse_question(workload, tables, weight, columns),
        lambda: check_output(out, (".json",), force, inputs=(schema,), beside=".npz"),
    )
    from geomdp.cli.inputs import planned_task  # after the refusals, which should come at once

    task, kind = planned_task(question, sample, schema), getattr(gd.bounds, METRICS[metric])
    with working("bounding"):
        found = gd.sample_complexity_bracket(
            task.workload, None, alpha, kind(), adjacency.relation(), privacy=privacy
        )
    records = f"more than {found.lower.records_text}, at most {found.upper.records_text}"
    rows = [task.row, ("target", str(found.question)), ("records", records)]
    display.print_rows([*rows, ("ratio", display.number(found.gap))])
    _print_side("no mechanism with", found.lower_candidates)
    _print_side("enough records", found.upper_candidates)
    if out is None:
        return
    certificate = found.lower.certificate
    if not isinstance(certificate, gd.bounds.Certificate):
        raise ValueError(
            "--out has nothing to write, because the lower bound has no certificate: "
            f"{found.lower.statement}"
        )
    certificate.save(out)
    print()
    display.print_rows([("certificate", str(out)), ("verify with", f"geomdp check-bound {out}")])


def _print_side(heading: str, bounds: tuple[gd.bounds.Bound, ...]) -> None:
    print()
    rows = []
    for bound in bounds[:SHOWN]:
        assumed = [f"assumes {text}" for text in bound.assumptions]
        rows.append((bound.records_text, "; ".join([bound.statement, *assumed])))
    display.print_table([heading, "why"], rows)


# check-bound

#: Exit code for a certificate that does not prove its bound. For a missing file the code is 2.
REJECTED = 1


def check_bound(file: Annotated[Path, _option("FILE")]) -> None:
    """Check the lower bound in FILE: compute its numbers again, and show what the proof assumes."""
    with working("checking"):
        try:
            checked = gd.bounds.check_certificate(file)
        except gd.bounds.CertificateRejected as error:
            display.print_rows([("rejected", str(error))])
            raise typer.Exit(REJECTED) from error
    bound = f"sc > {checked.records}: {checked.records} records are not enough"
    verified = [("verified", text) for text in checked.verified]
    provided = [("provided", text) for text in checked.conditions or ("nothing",)]
    rows = [("bound", bound), ("statement", checked.statement)]
    display.print_rows([*rows, *verified, *provided])


# width

#: Largest probability that the printed interval does not contain the width.
LEVEL = 1e-3


def width(
    *,
    sample: flags.Sample = None,
    schema: flags.SchemaFile = None,
    workload: flags.Workload = None,
    tables: flags.Tables = None,
    weight: flags.Weight = None,
    columns: flags.Columns = None,
    seed: Annotated[int | None, _option("--seed S", whole_number)] = None,
) -> None:
    """Compute the Gaussian mean width of a workload's sensitivity polytope."""
    flags.check_whole("--seed", seed, minimum=0)
    question = flags.parse_question(workload, tables, weight, columns)
    from geomdp.cli.inputs import planned_task  # after the refusals, which should come at once

    task = planned_task(question, sample, schema)
    with working("estimating"):
        body = gd.sensitivity_polytope(task.workload)
        estimate = gd.gaussian_width(body, rng=seed, level=LEVEL)
    low, high = map(display.number, estimate.interval)
    interval = f", in [{low}, {high}] at level {1 - LEVEL:.1%} ({estimate.samples} directions)"
    value = display.number(estimate.value) + (interval if estimate.samples else " (exact)")
    hull = task.workload.affine_hull()
    dimension = f"{hull.dimension} of {hull.ambient}"
    display.print_rows([task.row, ("dimension", dimension), ("width", value)])


# curve

#: Errors are predicted at about this many n per factor of ten, and at both ends of the range.
PER_DECADE = 4
#: Largest n of a curve. Measuring an error at n draws n records.
MOST_RECORDS = 10**7
NOTHING_EXCLUDED = (
    "no region is shaded, because the known lower bounds for this workload and guarantee exclude "
    "no error as large as 1% of the largest difference between answers"
)
NOT_PRIVATE = (
    "measured errors depend on the records and have no noise that would protect them: publish the "
    "files only if the records are public"
)


def curve(
    data: Annotated[Path | None, _option("DATA")] = None,
    *,
    sample: flags.Sample = None,
    schema: flags.SchemaFile = None,
    measure: Annotated[bool, _option("--measure")] = False,
    n: Annotated[str, _option("--n LOW:HIGH")] = "100:1000000",
    workload: flags.Workload = None,
    tables: flags.Tables = None,
    weight: flags.Weight = None,
    columns: flags.Columns = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    adjacency: flags.Neighbours = flags.AdjacencyFlag.REPLACE_ONE,
    exact: flags.ExactOnly = True,
    out: Annotated[Path, _option("--out FILE.png")] = Path("curve.png"),
    force: flags.Force = False,
) -> None:
    """Draw predicted error against n for every mechanism, and a lower bound for all mechanisms."""
    paths = {end: out.with_suffix(end) for end in FIGURE}
    privacy, question = check_together(
        lambda: flags.parse_privacy(epsilon, delta, rho),
        lambda: flags.parse_question(workload, tables, weight, columns),
        lambda: parse_range(n),
        lambda: check_place(out, ".png"),
        lambda: check_free(paths.values(), force, inputs=(data, schema)),
    )
    ns = parse_range(n)
    task, records = _asked(question, data, sample, schema, measure)
    with working("preparing the mechanisms"):
        drawn = gd.plotting.error_curve(
            task.workload,
            ns=ns,
            privacy=privacy,
            exact_only=exact,
            adjacency=adjacency.relation(),
            records=records,
            title=task.description,
        )
    encoded = drawn.encoded()
    write_together({path: encoded[end] for end, path in paths.items()})
    from geomdp.plotting.error_curves import nothing_excluded

    least = "; ".join(_least(drawn.table, number) for number in (ns[0], ns[-1]))
    rows = [task.row, ("least error", least)]
    if nothing_excluded(drawn.table):
        rows.append(("out of reach", NOTHING_EXCLUDED))
    rows.append(("figure", f"{paths['.png']}, {paths['.svg']}"))
    display.print_rows([*rows, ("numbers", str(paths[".csv"]))])


def _asked(
    question: flags.Question,
    data: Path | None,
    sample: str | None,
    schema: Path | None,
    measure: bool,
) -> tuple[Task, npt.NDArray[Any] | None]:
    """The workload that is asked for, and the records to measure errors on, if any."""
    from geomdp.cli.inputs import planned_task, record_source, undeclared
    from geomdp.data.tallies import encode_source

    if measure and data is None and sample is None:
        raise ValueError("--measure needs --sample; for your own records, give their file as DATA")
    if data is None and not measure:
        return planned_task(question, sample, schema), None
    source = record_source(question.columns, data, sample, schema)
    task = question.task(undeclared(source.schema))
    display.warn(NOT_PRIVATE)
    with working("reading records"):
        public = source.schema.select(task.columns).confirm()
        chunks = list(encode_source(source.table, public, task.workload.universe))
        if not any(map(len, chunks)):
            raise ValueError(f"{source.name} must hold at least 1 record, got 0")
        return task, np.concatenate(chunks)


def parse_range(text: str) -> list[int]:
    """About four n per factor of ten in LOW:HIGH; ``ValueError`` unless 1 <= LOW < HIGH <= 10^7."""
    low, colon, high = text.partition(":")
    whole = all(part.isascii() and part.isdigit() for part in (low, high))
    if not (colon and whole and 1 <= int(low) < int(high) <= MOST_RECORDS):
        raise ValueError(
            f"--n must be LOW:HIGH with whole numbers 1 <= LOW < HIGH <= {MOST_RECORDS}, "
            f"got {text!r}"
        )
    ends = int(low), int(high)
    count = max(2, round(PER_DECADE * np.log10(ends[1] / ends[0])) + 1)
    return [int(number) for number in np.unique(np.geomspace(*ends, count).round())]


def _least(table: pd.DataFrame, n: int) -> str:
    """The least predicted error with n records, and the mechanism that has this error, as text."""
    from geomdp.plotting.error_curves import least_predicted

    best = least_predicted(table, n)
    heuristic = "" if best.sampler == str(gd.privacy.Exact()) else ", heuristic"
    return f"{display.number(best.rmse)} with {n} records ({best.curve}{heuristic})"
