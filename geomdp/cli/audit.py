"""The command `audit`: try to refute the privacy claims of mechanisms, without any records."""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

import geomdp as gd
from geomdp.cli import display, flags
from geomdp.cli.display import check_together, naming_flags, working
from geomdp.cli.flags import options, real, whole_number
from geomdp.privacy.definitions import printed, printed_down

if TYPE_CHECKING:
    from geomdp.advice.setting import Setting


#: Without --mechanism and --all, mechanisms are audited while their number times queries times
#: trials is at most this, which mostly takes less than 20 s; the first is always audited.
MOST_NUMBERS = 4_000_000


class LeftOutError(Exception):
    """Why a mechanism is not audited."""


def _candidate(flag: str, setting: Setting) -> gd.mechanisms.Mechanism:
    """The mechanism that the user did not name; `LeftOutError` if it does not apply."""
    from geomdp.advice.candidates import CANDIDATES
    from geomdp.advice.setting import InapplicableError

    row = next(row for row in CANDIDATES if row.flag == flag)
    if row.is_stronger(setting):
        raise LeftOutError(f"it has the stronger guarantee {setting.pure}: audit it with --epsilon")
    try:
        built = row.built(setting)
    except (InapplicableError, gd.workloads.WorkloadSizeError, gd.MissingOracle) as error:
        raise LeftOutError(str(error)) from error
    if setting.exact_only and not isinstance(built.guarantee.sampler, gd.privacy.Exact):
        raise LeftOutError(f"its sampler is {built.guarantee.sampler}")
    return built


def _check_cost(flag: str, mechanism: gd.mechanisms.Mechanism, earlier: int, trials: int) -> None:
    """Raise `LeftOutError` if an audit is slow, or with the `earlier` ones beyond the limit."""
    more = f"to audit it, add --mechanism {flag}, or --all"
    if not isinstance(mechanism, gd.mechanisms.AdditiveMechanism):
        raise LeftOutError(f"each of its outputs takes a full run: {more}")
    numbers = (earlier + 1) * mechanism.workload.n_queries * trials
    if earlier and numbers > MOST_NUMBERS:
        raise LeftOutError(f"by default, {earlier} audits of this size are made: {more}")


# The command

#: Exit code if a claim was refuted.
REFUTED = 1
#: What the results say of a refuted claim.
REFUTES = "REFUTED"
#: Least number of trials: with fewer, some audits cannot choose an event and test it.
FEWEST_TRIALS = 64
NO_CLASSIFIER = (
    "scikit-learn is not installed, so no classifier chooses events for noise of unknown density; "
    'to use one: pip install "geomdp[audit]"'
)

_option = options("""
Privacy:
--mechanism NAME  The mechanism to audit, see `geomdp mechanisms`. Repeat the flag for several
    mechanisms. By default, the first ones are audited, mostly in less than 20 s.
--all  Audit all mechanisms that apply. This can take minutes.
Result:
--trials T  Number of outputs drawn on each of two neighbouring tables. Half of them are used to
    choose an event, the other half to test it. More outputs show smaller violations; the line below
    the results says which.
--level L  Largest probability of refuting a true claim, for each mechanism.
--n N  Number of records of the two tables, which are random.
--seed S  Seed of the random outputs; the same seed gives the same result.
""")


COMPUTED = (
    "for sparse vector, the probability of each output is computed without draws: "
    "gd.audit.SparseVectorLaw gives them for true answers that you choose"
)
MOMENTS = "it releases moments of real columns, which gd.audit.audit_pairs can audit"
#: Commands whose releases, not to a fixed workload, are not audited here, with the reason.
OTHER_RELEASES = (("ask", COMPUTED), ("smooth", MOMENTS))


def audit(
    *,
    sample: flags.Sample = None,
    schema: flags.SchemaFile = None,
    workload: flags.Workload = None,
    tables: flags.Tables = None,
    weight: flags.Weight = None,
    columns: flags.Columns = None,
    n: Annotated[int, _option("--n N", whole_number)] = 100,
    epsilon: flags.Epsilon = None,
    delta: flags.Delta = None,
    rho: flags.Rho = None,
    adjacency: flags.Neighbours = flags.AdjacencyFlag.REPLACE_ONE,
    exact: flags.ExactOnly = True,
    mechanism: Annotated[list[str] | None, _option("--mechanism NAME")] = None,
    all_of_them: Annotated[bool, _option("--all")] = False,
    trials: Annotated[int, _option("--trials T", whole_number)] = 1000,
    level: Annotated[float, _option("--level L", real)] = 1e-6,
    seed: Annotated[int | None, _option("--seed S", whole_number)] = None,
) -> None:
    """Try to refute the privacy claims of mechanisms on neighbouring tables.

    An audit can show that a claim is false, but never that it is true. The exit code is 1 if a
    claim was refuted.
    """
    privacy, question = check_together(
        lambda: flags.parse_privacy(epsilon, delta, rho),
        lambda: flags.parse_question(workload, tables, weight, columns),
        lambda: flags.check_whole("--n", n, minimum=1),
        lambda: flags.check_whole("--trials", trials, minimum=FEWEST_TRIALS),
        lambda: flags.check_whole("--seed", seed, minimum=0),
        lambda: _check_level(level),
        lambda: _check_choice(mechanism, all_of_them),
    )
    # A refused parameter must not wait for these imports.
    from geomdp.advice.setting import Setting
    from geomdp.cli.inputs import planned_task

    task = planned_task(question, sample, schema, declared=True)
    setting = Setting(task.workload, n, privacy, adjacency.relation(), exact)
    audited, left_out = _audited(mechanism, setting, all_of_them, trials, level, seed)
    of_what = " of the mechanism" if task.caveat else ""
    rows = [task.row, ("claim", f"{privacy}, {setting.adjacency.value}{of_what}")]
    if task.caveat:
        rows.append(("release", f"no privacy claim: {task.caveat}"))
    display.print_rows([*rows, ("level", f"{level:g} for each mechanism")])
    print()
    headings = ["mechanism", "claim", "epsilon >=", "claimed", "outputs", "time", "event"]
    display.print_table(headings, audited)
    print("\nAn audit can refute a claim, not prove it; the mechanism's docstring has the proof.")
    print(_limits(privacy, trials, level))
    if mechanism is None:
        left_out += OTHER_RELEASES
    if left_out:
        print()
        display.print_table(["left out", "why"], left_out)
    if any(row[1] == REFUTES for row in audited):
        raise typer.Exit(REFUTED)


def _audited(
    named: Sequence[str] | None,
    setting: Setting,
    all_of_them: bool,
    trials: int,
    level: float,
    seed: int | None,
) -> tuple[list[tuple[str, ...]], list[tuple[str, str]]]:
    """Rows on the audits, and the mechanisms that are left out, with the reasons."""
    from geomdp.advice.candidates import CANDIDATES
    from geomdp.cli.inputs import build_mechanism

    learners, left_out = [gd.audit.CLASSIFIER], []
    audited: list[tuple[str, ...]] = []
    if importlib.util.find_spec("sklearn") is None:
        display.warn(NO_CLASSIFIER)
        learners.clear()
    for name in named or [row.flag for row in CANDIDATES]:
        with working(f"auditing {name}"):
            try:
                build = _candidate if named is None else build_mechanism
                mechanism, begun = build(name, setting), time.perf_counter()
                if not named and not all_of_them:
                    _check_cost(name, mechanism, len(audited), trials)
            except LeftOutError as error:
                left_out.append((name, str(error)))
                continue
            result = gd.audit.audit_mechanism(
                mechanism, trials=trials, without_density=learners, level=level, rng=seed
            )
            audited.append(_row(name, result, time.perf_counter() - begun))
    if not audited:
        raise ValueError(
            "no audit was made, because each would be slow or does not apply: name a mechanism "
            "with --mechanism, or add --all"
        )
    return audited, left_out


def _check_level(level: float) -> None:
    from geomdp.audit.claims import checked_level

    with naming_flags("level"):
        checked_level(level)


def _check_choice(mechanism: Sequence[str] | None, all_of_them: bool) -> None:
    if mechanism and all_of_them:
        raise ValueError("give either --mechanism or --all, not both")


def _limits(privacy: gd.privacy.Privacy, trials: int, level: float) -> str:
    """The smallest violation that so many trials can show, and ten times as many."""
    from geomdp.audit.claims import smallest_violation

    name = "rho" if isinstance(privacy, gd.ZCDP) else "epsilon"
    least = smallest_violation(privacy, trials=trials // 2, level=level)
    less = smallest_violation(privacy, trials=10 * trials // 2, level=level)
    shown = f"a true {name} of {least:.3g} or more" if least < math.inf else "no violation"
    return (
        f"{trials} trials can show {shown}, and find nothing below that; "
        f"--trials {10 * trials} can show {less:.3g}."
    )


def _row(name: str, result: gd.audit.AuditResult, seconds: float) -> tuple[str, ...]:
    rho = result.rho_lower_bound
    more = "" if rho is None else f"; Renyi divergences show rho >= {printed_down(rho, 4)}"
    at = "" if result.delta == 0 else f" at delta {printed(result.delta, 2)}"
    hits = f"{result.event} in {result.hits_a} and {result.hits_b} outputs"
    said, claimed = REFUTES if result.refuted else "not refuted", printed(result.claimed_epsilon)
    shown, event = printed_down(result.epsilon_lower_bound, 4), f"{hits}, on {result.pair}{more}"
    outputs, duration = f"2 x {result.trials}", f"{seconds:.1f} s"
    return name, said, f"{shown}{at}", claimed, outputs, duration, event
