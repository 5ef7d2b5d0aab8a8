"""The command `advise`: the best mechanism for a workload on one screen, without any records."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

from geomdp._validation import LARGEST_WHOLE
from geomdp.cli import display, flags
from geomdp.cli.display import check_together, working
from geomdp.cli.flags import RECORDS, RESULT, option, whole_number

if TYPE_CHECKING:
    from geomdp.advice import Advice
    from geomdp.advice.advisor import Row
    from geomdp.mechanisms import Mechanism
    from geomdp.tabulation import Task


#: Two errors are called the same if the relative difference is at most this number.
SAME = 1e-3
#: The search for the number of records with half the error ends at this multiple of --n.
MOST_TIMES = 1 << 20

CountOption: TypeAlias = Annotated[
    int, option("--n N", RECORDS, "Number of records.", whole_number)
]
VerboseOption: TypeAlias = Annotated[
    bool,
    option(
        "--verbose",
        RESULT,
        "Also explain the choice, and list every mechanism with its error, or with the reason "
        "why it was left out.",
    ),
]
SavePlanOption: TypeAlias = Annotated[
    Path | None,
    option(
        "--save-plan FILE",
        RESULT,
        "Write the choice to a new file, for `geomdp release --plan FILE`.",
    ),
]


def advise(
    *,
    sample: flags.Sample = None,
    schema: flags.SchemaFile = None,
    n: CountOption,
    workload: flags.Workload = None,
    tables: flags.Tables = None,
    weight: flags.Weight = None,
    columns: flags.Columns = None,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    adjacency: flags.Neighbours = flags.AdjacencyFlag.REPLACE_ONE,
    exact: flags.ExactOnly = True,
    effort: flags.Effort = None,
    save_plan: SavePlanOption = None,
    verbose: VerboseOption = False,
) -> None:
    """Compare the mechanisms for a workload, without any records."""

    privacy, question = check_together(
        lambda: flags.parse_privacy(epsilon, delta, rho),
        lambda: flags.parse_question(workload, tables, weight, columns),
        lambda: flags.check_whole("--n", n, minimum=1),
        lambda: _check_plan(save_plan),
    )
    # Imported here: these modules import most of the library, and refusals should come at once.
    from geomdp.advice.advisor import advise_on
    from geomdp.advice.setting import Setting
    from geomdp.cli.inputs import budget_of, planned_task

    cost = budget_of(effort)
    task = planned_task(question, sample, schema)
    with working("comparing the mechanisms"):
        advice = advise_on(Setting(task.workload, n, privacy, adjacency.relation(), exact, cost))
        half = records_for_half(advice.best)
    display.print_rows([task.row, *_summary(advice, task, half), *_saved(advice, save_plan)])
    if verbose:
        _print_details(advice)
    else:
        print("\n--verbose explains the choice and lists all mechanisms.")


def _check_plan(path: Path | None) -> None:
    if path is None:
        return
    if path.exists():
        raise ValueError(f"--save-plan must name a new file, got {str(path)!r}, which exists")
    if not path.parent.is_dir():
        raise ValueError(f"--save-plan must be in an existing folder, got {str(path)!r}")


def _saved(advice: Advice, path: Path | None) -> list[tuple[str, str]]:
    """With --save-plan, write the plan and return a row about the file. Without it, no row."""
    from geomdp.advice import plan_of, save_plan

    if path is None:
        return []
    save_plan(plan_of(advice), path)
    return [("plan", f"{path}, for geomdp release --plan")]


def _summary(advice: Advice, task: Task, half: int | None) -> list[tuple[str, str]]:
    """Rows about the best mechanism, its error, the n that halves the error, and the next best."""
    applies, best = _applying(advice), advice.best
    error, claim = best.predicted_rmse, best.guarantee.without_claim(task.caveat)
    said = display.in_words(error)
    if task.weights is not None and (task.weights != 1).any():
        said += ", each error times its weight"
    elif task.tables:
        said += f"; as a count {display.number(error.value * best.n)} of {best.n} records"
    rows = [
        ("best", f"{applies[0].mechanism}, of {len(applies)} mechanisms that apply"),
        ("rmse", said),
        ("half of rmse", "no number of records found" if half is None else f"with {half} records"),
        ("privacy", str(claim) + display.implied(claim, advice.asked)),
    ]
    if not math.isnan(applies[0].simulated_rmse):
        simulated = display.number(applies[0].simulated_rmse)
        rows.append(("simulated", f"rmse {simulated} on uniform data"))
    if len(applies) > 1:
        name, value = applies[1].mechanism, applies[1].predicted_rmse
        rows.append(
            ("next best", f"{name}: {display.number(value)}{_compared(value, error.value)}")
        )
    return rows


def _applying(advice: Advice) -> list[Row]:
    # `Advice.table` is not used here, because it imports pandas.
    return [row for row in advice.rows if row.applies]


def _compared(value: float, best: float) -> str:
    if math.isclose(value, best, rel_tol=SAME):
        return ", about the same"
    if value < best:
        return f", {1 - value / best:.1%} less, but not advised (see --verbose)"
    return f", {value / best - 1:.1%} more" if value < 2 * best else f", {value / best:.2g} times"


def records_for_half(mechanism: Mechanism) -> int | None:
    """The least n, up to one percent, that halves the predicted error; None beyond 2^20 times n."""
    target = mechanism.predicted_rmse.value / 2
    enough = mechanism.n
    while not _reached(mechanism, enough, target):
        enough *= 2
        if enough > MOST_TIMES * mechanism.n:
            return None
    short = enough // 2
    while enough - short > max(1, enough // 100):
        middle = (short + enough) // 2
        if _reached(mechanism, middle, target):
            enough = middle
        else:
            short = middle
    return enough if _accepted(mechanism, enough) is not None else None


def _reached(mechanism: Mechanism, n: int, target: float) -> bool:
    """Whether the error for n records is at most `target`, or n is too large for `mechanism`."""
    accepted = _accepted(mechanism, n)
    return accepted is None or accepted.predicted_rmse.value <= target


def _accepted(mechanism: Mechanism, n: int) -> Mechanism | None:
    from geomdp.mechanisms.additive_noise.few_queries import InexactSumsError

    if n > LARGEST_WHOLE:
        return None
    try:
        return mechanism.with_n(n)
    except InexactSumsError:
        return None


def _print_details(advice: Advice) -> None:
    """Print the reasons for the choice, and a row for every mechanism."""
    applies = _applying(advice)
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
    _print_chains(applies)
    print()
    refused = [(row.mechanism, row.why) for row in advice.rows if not row.applies]
    display.print_table(["left out", "why"], refused)


def _print_chains(rows: list[Row]) -> None:
    """Print the diagnostics of the candidates that sample by Markov chains, if there are any."""
    chains = [(row.mechanism, row.sampler) for row in rows if row.sampler.startswith("heuristic")]
    if chains:
        print()
        display.print_table(
            ["heuristic", "chains (diagnostics can find a bad chain, but prove nothing)"],
            chains,
        )
