"""A program that plants an edit, runs a script and prints failed claims; `red_claims` starts it.

The command is ``python -m experiments.planting.figure MODULE EDIT``, with the edit as JSON.
"""

import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

from experiments.engine.figures import Outputs, read_table, write_table
from experiments.engine.run import SweepResult, run_cell
from experiments.engine.script import LoadedScript, Preset, load
from experiments.planting.edits import Edit, planted
from experiments.planting.runs import RedClaim


def red(script: LoadedScript) -> list[RedClaim]:
    """The claims that fail. An error in a cell, or in the check of the claims, is listed alone."""
    outcomes = []
    for cell in script.sweep(Preset.QUICK).cells():
        outcome = run_cell(script.module.compute, cell)
        if outcome.traceback is not None:
            return [_failure("a cell", outcome.traceback.strip().splitlines()[-1])]
        outcomes.append(outcome)
    with tempfile.TemporaryDirectory() as folder:
        outputs = Outputs(Path(folder), script.name)
        write_table(outputs, SweepResult(tuple(outcomes)).table())
        table = read_table(outputs)
    try:
        claims = script.claims(table)
    except Exception as error:
        return [_failure("the check of the claims", f"{type(error).__name__}: {error}")]
    return [RedClaim(claim.id, claim.name) for claim in claims if not claim.passed]


def _failure(what: str, error: str) -> RedClaim:
    return RedClaim("", f"{what} fails: {error[:200]}")


if __name__ == "__main__":
    _, module, text = sys.argv
    with planted(Edit(**json.loads(text))):
        print(json.dumps([asdict(claim) for claim in red(load(module))]))
