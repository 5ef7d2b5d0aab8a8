"""Write the files of a script: first the CSV, then the figure drawn from it, then the record."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments.engine.script import Preset

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parents[2]
STYLE = ROOT / "experiments" / "style.mplstyle"
#: Pixels for each inch of a figure that is committed, and of one that is not.
FINE, COARSE = 200, 120


class RecordError(Exception):
    """A stored record cannot be read."""


@dataclass(frozen=True)
class Outputs:
    """Paths of the files of one script in one folder."""

    folder: Path
    name: str
    #: Whether the figure is committed: with more pixels, and as SVG, too.
    fine: bool = True

    @property
    def csv(self) -> Path:
        """The table of all rows."""
        return self.folder / f"{self.name}.csv"

    @property
    def record(self) -> Path:
        """Configurations, seed, versions, commit, seconds and claims."""
        return self.folder / f"{self.name}.json"

    @property
    def png(self) -> Path:
        """The figure."""
        return self.folder / f"{self.name}.png"

    @property
    def svg(self) -> Path:
        """The figure, if it is `fine`."""
        return self.folder / f"{self.name}.svg"

    @property
    def images(self) -> tuple[Path, ...]:
        """The files of the figure."""
        return (self.png, self.svg) if self.fine else (self.png,)


@dataclass(frozen=True)
class Folders:
    """Where results and figures go.

    The full preset writes figures to `figures`, whose content is committed. The quick preset writes
    to the subfolder ``quick`` of `figures`, which git ignores. A quick run therefore never replaces
    a committed figure. It writes no SVG, because half of its time to draw would go into that.
    """

    results: Path = ROOT / "experiments" / "results"
    figures: Path = ROOT / "paper_figures"

    def store(self, name: str, preset: Preset) -> Path:
        """The SQLite file of a sweep."""
        return self.results / f"{name}-{preset}.sqlite"

    def outputs(self, name: str, preset: Preset) -> Outputs:
        """The files of a figure."""
        full = preset is Preset.FULL
        return Outputs(self.figures if full else self.figures / "quick", name, fine=full)


def write_table(outputs: Outputs, table: pd.DataFrame) -> None:
    """Write the CSV; floats keep all their digits."""
    with replacing(outputs.csv) as temporary:
        table.to_csv(temporary, index=False)


def read_table(outputs: Outputs) -> pd.DataFrame:
    """Read the CSV back, exactly as plots and claims see it."""
    import pandas as pd

    # Every supported pandas has this parser, and it is known to round to the nearest float.
    return pd.read_csv(outputs.csv, engine="pyarrow")


@contextmanager
def drawing() -> Iterator[None]:
    """Use the common style of all figures, whatever the user's Matplotlib settings are."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.style.use(STYLE)
        yield


def write_figure(outputs: Outputs, figure: Figure) -> None:
    """Write the images; the same figure gives the same bytes (no date, fixed identifiers)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with replacing(outputs.png) as temporary:
        figure.set_dpi(FINE if outputs.fine else COARSE)
        # `savefig` writes the same bytes, but it draws the figure once more to lay it out.
        FigureCanvasAgg(figure).print_png(temporary, metadata={"Software": None})
    if outputs.fine:
        with replacing(outputs.svg) as temporary:
            figure.savefig(temporary, format="svg", metadata={"Date": None})
    else:
        outputs.svg.unlink(missing_ok=True)  # of a time when quick figures had one


def write_record(outputs: Outputs, record: Mapping[str, object]) -> None:
    """Write the JSON record."""
    with replacing(outputs.record) as temporary:
        temporary.write_text(json.dumps(record, indent=1, allow_nan=False) + "\n")


def read_record(outputs: Outputs) -> dict[str, Any] | None:
    """The JSON record; None if there is none."""
    if not outputs.record.exists():
        return None
    try:
        record = json.loads(outputs.record.read_text(encoding="utf-8"))
        if not isinstance(record, dict) or not {"code", "claims", "seconds"} <= record.keys():
            raise ValueError("code, claims or seconds are missing")
    except ValueError as error:
        raise RecordError(f"{outputs.record} is not the record of a script: {error}") from error
    return record


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path that replaces `path` at the end, so that readers never see half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    for left in path.parent.glob(f".{path.name}.*"):
        if not Path("/proc", left.suffix[1:]).exists() and Path("/proc").exists():
            left.unlink(missing_ok=True)  # a process was killed while it wrote this file
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
