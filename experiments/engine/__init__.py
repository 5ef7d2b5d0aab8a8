"""The engine: sweeps of configurations that resume, and figures that check themselves."""

from experiments.engine.cells import Cell, Outcome, Row, Sweep
from experiments.engine.claims import Claim
from experiments.engine.run import Executor, in_process, run_sweep
from experiments.engine.script import Preset
from experiments.engine.store import Store, StoreError

__all__ = [
    "Cell",
    "Claim",
    "Executor",
    "Outcome",
    "Preset",
    "Row",
    "Store",
    "StoreError",
    "Sweep",
    "in_process",
    "run_sweep",
]
