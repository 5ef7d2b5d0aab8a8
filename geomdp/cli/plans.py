"""Commands that read no records: `advise`, `bracket`, `check-bound`, `width` and `curve`."""

from __future__ import annotations

import math
from collections.abc import Callable
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

if TYPE_CHECKING:
    import pandas as pd

    from geomdp.tabulation.tasks import Task

# advise

#: Two errors are called the same if the relative difference is at most this number.
SAME = 1e-3
#: The search for the number of records with half the error ends at this multiple of --n.
MOST_TIMES = 1 << 20

METRICS: dict[str, Callable[[], gd.bounds.Metric]] = {
    "mean-l2": lambda: gd.bounds.MeanL2(),
    "rms": lambda: gd.bounds.RMS(),
    "worst-case": lambda: gd.bounds.WorstCase(),
}


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
    privacy, question = check_together(
        lambda: flags.parse_privacy(epsilon, delta, rho),
        lambda: flags.parse_question(workload, tables, weight, columns),
        lambda: flags.check_whole("--n", n, minimum=1),
        lambda: flags.check_persons(max_rows_per_person, adjacency.relation()),
        lambda: check_plan(save_plan),
    )
    # Imported here: these modules import most of the library, and refusals should come at once.
    from geomdp.advice.advisor import advise_on
    from geomdp.advice.setting import Setting
    from geomdp.cli.inputs import budget_of, planned_task

    cost = budget_of(effort)
    task = planned_task(question, sample, schema, declared=True)
    own = gd.privacy.member_privacy(privacy, max_rows_per_person or 1)
    with working("comparing the mechanisms"):
        advice = advise_on(Setting(task.workload, n, own, adjacency.relation(), exact, cost))
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


def _advised(
    advice: gd.advice.Advice, task: Task, half: int | None, claim: str
) -> list[tuple[str, str]]:
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
        name, value = applies[1].mechanism, scale * applies[1].predicted_rmse
        rows.append(
            ("next best", f"{name}: {display.number(value)}{_compared(value, error.value)}")
        )
    return rows


def _compared(value: float, best: float) -> str:
    if math.isclose(value, best, rel_tol=SAME):
        return ", about the same"
    if value < best:
        return f", {1 - value / best:.1%} less, but not advised (see --verbose)"
    return f", {value / best - 1:.1%} more" if value < 2 * best else f", {value / best:.2g} times"


def records_for_half(mechanism: gd.mechanisms.Mechanism) -> int | None:
    """The least n, up to one percent, that halves the predicted error; None beyond 2^20 times n."""

    def reached(n: int) -> bool:
        accepted = _accepted(mechanism, n)
        return accepted is None or accepted.predicted_rmse.value <= target

    target, enough = mechanism.predicted_rmse.value / 2, mechanism.n
    while not reached(enough):
        enough *= 2
        if enough > MOST_TIMES * mechanism.n:
            return None
    short = enough // 2
    while enough - short > max(1, enough // 100):
        middle = (short + enough) // 2
        if reached(middle):
            enough = middle
        else:
            short = middle
    return enough if _accepted(mechanism, enough) is not None else None


def _accepted(mechanism: gd.mechanisms.Mechanism, n: int) -> gd.mechanisms.Mechanism | None:
    """`mechanism` for n records; None if there are too many for it."""
    from geomdp.mechanisms.additive_noise.few_queries import InexactSumsError

    if n > LARGEST_WHOLE:
        return None
    try:
        return mechanism.with_n(n)
    except InexactSumsError:
        return None


def _print_details(advice: gd.advice.Advice) -> None:
    """Print the reasons for the choice, and a row for every mechanism."""
    applies = [row for row in advice.rows if row.applies]
    print()
    display.print_rows(
        [
            *zip(["why", *[""] * len(advice.reasons)], advice.reasons, strict=False),
            ("set-up", f"{sum(row.seconds for row in applies):.1f} s for all that apply"),
        ]
    )
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
    chains = [
        (row.mechanism, row.sampler) for row in applies if row.sampler.startswith("heuristic")
    ]
    if chains:
        print()
        said = "chains (diagnostics can find a bad chain, but prove nothing)"
        display.print_table(["heuristic", said], chains)
    print()
    refused = [(row.mechanism, row.why) for row in advice.rows if not row.applies]
    display.print_table(["left out", "why"], refused)


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

    task = planned_task(question, sample, schema)
    with working("bounding"):
        found = gd.sample_complexity_bracket(
            task.workload,
            alpha=alpha,
            metric=METRICS[metric](),
            adjacency=adjacency.relation(),
            privacy=privacy,
        )
    low, high = found.lower.records_text, found.upper.records_text
    display.print_rows(
        [
            task.row,
            ("target", str(found.question)),
            ("records", f"more than {low}, at most {high}"),
            ("ratio", display.number(found.gap)),
        ]
    )
    _print_side("no mechanism with", found.lower_candidates)
    _print_side("enough records", found.upper_candidates)
    if out is not None:
        _write_certificate(found, out)


def _print_side(heading: str, bounds: tuple[gd.bounds.Bound, ...]) -> None:
    print()
    rows = []
    for bound in bounds[:SHOWN]:
        assumed = [f"assumes {text}" for text in bound.assumptions]
        rows.append((bound.records_text, "; ".join([bound.statement, *assumed])))
    display.print_table([heading, "why"], rows)


def _write_certificate(found: gd.advice.Bracket, path: Path) -> None:
    """Write the certificate of the lower bound; ``ValueError`` if the bound has none."""
    from geomdp.bounds.certificates import write_certificate

    certificate = found.lower.certificate
    if not isinstance(certificate, gd.bounds.Certificate):
        raise ValueError(
            "--out has nothing to write, because the lower bound has no certificate: "
            f"{found.lower.statement}"
        )
    write_certificate(path, certificate.document())
    print()
    display.print_rows([("certificate", str(path)), ("verify with", f"geomdp check-bound {path}")])


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
    display.print_rows(
        [
            ("bound", f"sc > {checked.records}: {checked.records} records are not enough"),
            ("statement", checked.statement),
            *(("verified", text) for text in checked.verified),
            *(("provided", text) for text in checked.conditions or ("nothing",)),
        ]
    )


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
    if estimate.samples == 0:
        value = f"{display.number(estimate.value)} (exact)"
    else:
        low, high = map(display.number, estimate.interval)
        value = (
            f"{display.number(estimate.value)}, in [{low}, {high}] at level {1 - LEVEL:.1%} "
            f"({estimate.samples} directions)"
        )
    hull = task.workload.affine_hull()
    dimension = f"{hull.dimension} of {hull.ambient}"
    display.print_rows([task.row, ("dimension", dimension), ("width", value)])


# curve

#: Errors are predicted at about this many values of n per factor of ten. The values include both
#: ends of the range of n.
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
    (privacy, question), ns = check_together(
        lambda: check_together(
            lambda: flags.parse_privacy(epsilon, delta, rho),
            lambda: flags.parse_question(workload, tables, weight, columns),
        ),
        lambda: parse_range(n),
        lambda: check_place(out, ".png"),
        lambda: check_free(paths.values(), force, inputs=(data, schema)),
    )
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

    unshaded = [("out of reach", NOTHING_EXCLUDED)] if nothing_excluded(drawn.table) else []
    display.print_rows(
        [
            task.row,
            ("least error", "; ".join(_least(drawn.table, number) for number in (ns[0], ns[-1]))),
            *unshaded,
            ("figure", f"{paths['.png']}, {paths['.svg']}"),
            ("numbers", str(paths[".csv"])),
        ]
    )


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
