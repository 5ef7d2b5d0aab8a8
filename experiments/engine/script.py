"""The parts that every experiment script must define."""

from __future__ import annotations

import enum
import importlib
import importlib.util
import re
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from experiments.engine.provenance import Code, texts_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from experiments.engine.cells import Sweep
    from experiments.engine.claims import Claim, Claims, Goals
    from experiments.engine.run import Compute


class Preset(enum.StrEnum):
    """How much to compute."""

    #: Takes seconds and serves tests. Claims are checked at the same levels as in the full preset.
    QUICK = "quick"
    #: Computes what the committed figures show.
    FULL = "full"


@runtime_checkable
class Script(Protocol):
    """A module with one figure.

    ``Config`` is the frozen dataclass of its configurations; ``QUICK`` and ``FULL`` are sweeps over
    configurations; ``compute(config, rng)`` gives the rows of one cell, which is one trial of one
    configuration; ``plot(table)`` and ``claims(table)`` read the stored CSV and nothing else.
    """

    __name__: str
    __doc__: str | None
    QUICK: Sweep[Any]
    FULL: Sweep[Any]
    compute: Compute[Any]

    def plot(self, table: pd.DataFrame) -> Figure:
        """Draw the figure of the stored rows."""

    def claims(self, table: pd.DataFrame) -> Claims:
        """Check statements of theory against the stored rows."""


@runtime_checkable
class HasGoals(Protocol):
    """A script with goals: numbers that its measurements should reach but may miss."""

    def goals(self, table: pd.DataFrame) -> Goals:
        """The goals with their measurements, computed from the stored CSV and nothing else."""


@runtime_checkable
class TakesTime(Protocol):
    """A script that measures time: its cells run one by one, whatever the executor.

    ``TIMED`` names what is timed. Other work on the machine would disturb the measurement.
    """

    TIMED: str


@runtime_checkable
class ReadsClock(Protocol):
    """A script with columns that depend on the speed of the machine and on what else runs there.

    ``CLOCK`` names these columns. They are drawn, and goals may use them, but claims
    are checked on the table without them. A claim that failed only because the machine was busy
    would be no statement about the code.
    """

    CLOCK: tuple[str, ...]


@dataclass(frozen=True)
class Needs:
    """Packages that ``compute`` of a script calls and the core installation does not bring."""

    packages: tuple[str, ...]  # Names to import
    extra: str  # The extra of geomdp that installs them

    @property
    def missing(self) -> tuple[str, ...]:
        """The packages that cannot be imported here."""
        return tuple(name for name in self.packages if importlib.util.find_spec(name) is None)


@runtime_checkable
class ComparesWithPeers(Protocol):
    """A script that runs other packages beside geomdp, and is left out where they are missing."""

    NEEDS: Needs


@dataclass(frozen=True)
class LoadedScript:
    """A script with its short name."""

    name: str  # Last part of the module's name; output files have this name
    module: Script  # The module
    texts: tuple[str, ...] = field(repr=False)  # Result of `texts_of` when the module was loaded

    @cached_property
    def code(self) -> Code:
        """Content hashes of the script as loaded, and of geomdp when the engine started."""
        return Code.of_texts(self.texts)

    @property
    def package(self) -> str:
        """The package the module lies in; its docstring is the question the script answers."""
        return self.module.__name__.rpartition(".")[0]

    @property
    def headline(self) -> str:
        """First line of the docstring."""
        return (self.module.__doc__ or "").strip().splitlines()[0]

    @property
    def left_out(self) -> str | None:
        """Why the script cannot run in this environment, and what to install; None if it can."""
        if not isinstance(self.module, ComparesWithPeers) or not self.module.NEEDS.missing:
            return None
        packages, extra = ", ".join(self.module.NEEDS.missing), self.module.NEEDS.extra
        return f"needs {packages} (extra `{extra}`: pip install -e '.[{extra}]')"

    @property
    def quick_seconds(self) -> float:
        """Seconds of the quick preset on one core that the docstring states; 5 if it does not."""
        stated = re.search(r"quick\s+(\d+)\s+s\b", self.module.__doc__ or "")
        return float(stated[1]) if stated else 5.0

    def claims(self, table: pd.DataFrame) -> tuple[Claim, ...]:
        """The claims, checked on the stored rows without what a clock measured."""
        clock = self.module.CLOCK if isinstance(self.module, ReadsClock) else ()
        return tuple(self.module.claims(table.drop(columns=[*clock])))

    def sweep(self, preset: Preset) -> Sweep[Any]:
        """The sweep of a preset."""
        return self.module.FULL if preset is Preset.FULL else self.module.QUICK


def load(module_name: str) -> LoadedScript:
    """Import a script and check that it has every part of `Script`."""
    source = importlib.import_module(module_name)
    module: object = source
    if not isinstance(module, Script) or not module.__doc__:
        raise TypeError(
            f"{module_name} must have a docstring, QUICK, FULL, compute, plot and claims"
        )
    if module.compute.__module__ != module_name:
        # Workers find a script by the name of the module that defines its ``compute``.
        raise TypeError(f"compute must be defined in {module_name}, not imported there")
    return LoadedScript(module_name.rpartition(".")[2], module, texts_of(source))
