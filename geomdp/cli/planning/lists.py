"""The commands `mechanisms` and `workloads`: lists of the values of --mechanism and --workload."""

from __future__ import annotations

from geomdp.cli import display
from geomdp.cli.options import AUTO


def mechanisms() -> None:
    """List the mechanisms."""
    from geomdp.advice.candidates import CANDIDATES
    from geomdp.advice.steps import FITTED, PROJECTED, SHRUNK

    rows = [(row.flag, row.guarantees.value, row.summary) for row in CANDIDATES]
    display.print_table(["--mechanism", "with", "what it is"], rows)
    print()
    print("Answers are attainable if they are the exact answers of some table.")
    print(f"{PROJECTED.prefix}NAME moves the answers of NAME to the nearest attainable ones;")
    print("for a table of n records this move never makes the error larger.")
    print(
        f"{FITTED.prefix}NAME takes the attainable answers that fit the noisy answers of NAME best;"
    )
    print(
        f"the error is usually smaller than for {PROJECTED.prefix}NAME, but its proved bound is "
        "twice as large."
    )
    print(
        f"{SHRUNK.prefix}NAME moves answers towards those of uniform data before it moves them to"
    )
    print("attainable ones; this helps if there are few records.")
    print(f"{AUTO} compares them without reading records; see `geomdp advise`. For few records, it")
    print(f"takes {FITTED.prefix}NAME if this errs less in simulations on public data.")


def workloads() -> None:
    """List the workload specifications."""
    from geomdp.tabulation.specs import WORKLOAD_KINDS

    rows = [(kind.usage, kind.summary) for kind in WORKLOAD_KINDS]
    display.print_table(["--workload", "queries; every answer is a mean over records"], rows)
