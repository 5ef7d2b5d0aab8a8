"""The command `budget`: the least budget for an accuracy that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import geomdp as gd
from geomdp._numerics.files import write_together
from geomdp.cli import display, flags
from geomdp.cli.display import check_together, working
from geomdp.cli.flags import options, whole_number
from geomdp.cli.outputs import FIGURE, check_free, check_place, check_plan
from geomdp.privacy import Privacy
from geomdp.privacy.definitions import printed

if TYPE_CHECKING:
    from geomdp.advice.targets import Target
    from geomdp.tabulation.tasks import Task

_option = options("""
Accuracy:
--rmse X  Largest root mean squared error of shares. X is a number for all queries, A,B:number for
    the table of the columns A and B, or A=level,B=level:number for one cell. Repeat each flag for
    more targets; all are met.
--half-width X  Largest half-width of the 95% interval of each query, written like --rmse.
--largest X  Largest error over the queries, kept with probability 0.95, written like --rmse.
Privacy:
--delta D  Find epsilon for (epsilon, D)-DP instead of epsilon-DP.
--zcdp  Find rho for zero-concentrated privacy.
Records:
--n N  Number of records.
Result:
--save-plan FILE  Write the mechanism, the budget and the weights of tables to a new file, for
    `geomdp release --plan FILE`.
--out FILE  FILE.png draws the errors against the budget, with FILE.svg and FILE.csv beside it.
    FILE.json holds the proof that a smaller budget is impossible, for `geomdp check-bound`.
""")

#: At most this many tables are printed, those with the largest errors.
SHOWN = 12


def budget(
    *,
    sample: flags.Sample = None,
    schema: flags.SchemaFile = None,
    n: Annotated[int, _option("--n N", whole_number)],
    workload: flags.Workload = None,
    tables: flags.Tables = None,
    weight: flags.Weight = None,
    columns: flags.Columns = None,
    rmse: Annotated[list[str] | None, _option("--rmse X")] = None,
    half_width: Annotated[list[str] | None, _option("--half-width X")] = None,
    largest: Annotated[list[str] | None, _option("--largest X")] = None,
    delta: Annotated[float | None, _option("--delta D", flags.real)] = None,
    zcdp: Annotated[bool, _option("--zcdp")] = False,
    adjacency: flags.Neighbours = flags.AdjacencyFlag.REPLACE_ONE,
    max_rows_per_person: flags.MaxRows = None,
    exact: flags.ExactOnly = True,
    save_plan: Annotated[Path | None, _option("--save-plan FILE")] = None,
    out: Annotated[Path | None, _option("--out FILE")] = None,
    force: flags.Force = False,
) -> None:
    """Find the least budget for the errors that you allow, without any records."""
    given = [
        ("--rmse", rmse or []),
        ("--half-width", half_width or []),
        ("--largest", largest or []),
    ]
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
    # Imported here: these modules import most of the library, and refusals should come at once.
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
            number = text.rpartition(":")[2]
            try:
                limit = float(number)
            except ValueError:
                limit = 0.0
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
                raise ValueError(
                    f"{flag} {text}: it must name a table or a query of {task.description}"
                ) from error
            targets[target] = f"{target.name} of {place or 'all queries'}"
    return targets


def _found(
    found: gd.advice.LeastBudget, targets: dict[Target, str], claim: gd.privacy.Guarantee
) -> list[tuple[str, str]]:
    """Rows about the budget, the targets, the mechanism and what is impossible."""
    rows = [
        (found.parameter, f"{printed(found.budget)} is the least budget that meets all targets")
    ]
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


def _certified(found: gd.advice.LeastBudget, path: Path) -> list[tuple[str, str]]:
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
    display.print_table(
        ["table", "weight", "noise rmse", "half-width of 95%"],
        [
            (row.table, f"{row.weight:g}", display.number(row.rmse), display.number(row.half_width))
            for row in ordered[:SHOWN]
        ],
    )
    if len(ordered) > SHOWN:
        print(f"and {len(ordered) - SHOWN} tables with smaller errors")
