"""Run some mutants and keep their results for the figure: ``python -m experiments.mutants WORD``.

A mutant is the code with one planted mistake. A mutant is run if a word occurs in its name or in
the name of its figure; without a word all are run. If the store already holds a completed result
for this state of the code, the mutant is counted, but not run or shown again.
"""

import sys

from experiments.engine.cells import Outcome, Sweep
from experiments.engine.figures import Folders
from experiments.engine.run import run_sweep
from experiments.engine.script import Preset, load
from experiments.engine.store import Store
from experiments.mutants import mutants


def show(outcome: Outcome[mutants.Config]) -> None:
    """Print one line: what noticed the mutant, or why it could not be run."""
    cell, seconds = outcome.cell.configuration, f"{outcome.seconds:5.0f} s"
    if outcome.rows is None:
        found = f"FAILED {(outcome.traceback or '').strip().splitlines()[-1][:300]}"
    else:
        (row,) = outcome.rows
        found = f"claim: {row['claim_ids']} ({row['claim']})  test: {row['test']}"
    print(f"{seconds} {cell.figure} | {cell.mutant} | {found}", flush=True)


def main(words: list[str]) -> None:
    """Run the chosen mutants."""
    script = load(mutants.__name__)
    chosen = tuple(
        each
        for each in mutants.FULL.configurations
        if not words or any(word in f"{each.mutant} {each.figure}" for word in words)
    )
    if not chosen:
        raise SystemExit(f"no mutant or figure has {' or '.join(words)} in its name")
    with Store(Folders().store(script.name, Preset.FULL), script.code) as store:
        found = run_sweep(mutants.compute, Sweep(chosen, 1, mutants.FULL.seed), store, observe=show)
    print(f"{len(found.outcomes)} mutants, {len(found.failures)} could not be run")


if __name__ == "__main__":
    main(sys.argv[1:])
