"""What a release writes and pays: the files of --out, and the privacy budget of --ledger."""

from __future__ import annotations

import base64
import csv
import fnmatch
import glob
import io
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from geomdp._numerics.files import room_for, write_together
from geomdp.cli import display, flags
from geomdp.cli.display import visible
from geomdp.privacy import Guarantee, Ledger, Privacy
from geomdp.privacy.ledger import relation_of, remaining

if TYPE_CHECKING:
    import pandas as pd

    from geomdp.data import CsvFormat, Schema
    from geomdp.tabulation.tasks import Task

# The files of --out, written under other names, then renamed. Only --force replaces files.

#: Endings of the files of tables. The ending determines the format.
CSV, PARQUET = ".csv", ".parquet"
#: Endings of the files of a figure.
FIGURE = (".png", ".svg", ".csv")
#: A spreadsheet takes text that begins with one of these characters for a formula.
FORMULA = "=+-@"
#: The columns of a table by name: lists of labels, None for no label, and arrays of numbers.
Columns: TypeAlias = Mapping[str, Sequence[str | None] | npt.NDArray[Any]]


@dataclass(frozen=True)
class OutputFiles:
    """Where the answers (.csv or .parquet), their record and `derived` numbers by group go."""

    answers: Path
    synthetic: Path | None = None
    derived: tuple[str, ...] = ()

    def beside(self, name: str) -> Path:
        """The file of derived numbers, such as answers.means.csv."""
        return self.answers.with_suffix(f".{name}{self.answers.suffix}")

    @property
    def record(self) -> Path:
        return self.answers.with_suffix(".privacy.json")

    def check(self, overwrite: bool, inputs: Iterable[Path | None]) -> None:
        """Raise ``ValueError`` for a wrong ending or folder, or a file that must not be written."""
        inputs = list(inputs)
        check_output(self.answers, (CSV, PARQUET), overwrite, inputs, beside=".privacy.json")
        check_free(map(self.beside, self.derived), overwrite, inputs)
        if self.synthetic is not None:
            if self.synthetic.resolve() in (self.answers.resolve(), self.record.resolve()):
                raise ValueError(f"--synthetic must not name a file of --out, got {self.synthetic}")
            check_output(self.synthetic, (CSV, PARQUET), overwrite, inputs, flag="--synthetic")

    def room(self, task: Task, schema: Schema) -> dict[Path, int]:
        """Bytes that the files need at most, in the order of writing."""
        # A row has three labels of at most six bytes for a character, and 280 bytes of numbers.
        longest = max(len(label.encode("utf-8", "replace")) for label in task.labels)
        row = 18 * longest + len(task.columns) + 280
        rest = record_room(schema)
        answers = rest + row * len(task.labels)
        more = {self.beside(name): answers for name in self.derived}
        return {self.record: rest, self.answers: answers, **more}

    def contents(
        self,
        answers: Columns,
        record: Mapping[str, object],
        derived: Mapping[str, pd.DataFrame] | None = None,
    ) -> dict[Path, bytes]:
        """The files, record first, so that new answers never exist without their record."""
        text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
        lines = map(visible, text.split("\n"))  # only line breaks stand between JSON texts
        tables = {self.answers: answers}
        tables |= {self.beside(name): columns_of(own) for name, own in (derived or {}).items()}
        written = {path: encoded(table, path) for path, table in tables.items()}
        return {self.record: "\n".join(lines).encode(), **written}


def columns_of(frame: pd.DataFrame) -> Columns:
    """The columns of a data frame: lists of texts or None, and arrays of numbers."""
    return {
        str(name): own.to_numpy()
        if own.dtype.kind in "if"
        else [each if isinstance(each, str) else None for each in own]
        for name, own in frame.items()
    }


def record_room(schema: Schema) -> int:
    """Bytes that a privacy record needs at most, and thus the names and labels of the schema."""
    return 2**16 + 12 * len(schema.to_json())


def warn_of_formulas(columns: Columns, path: Path) -> None:
    """Warn of labels that a spreadsheet would run; they stay: "-5 to 0" can be an answer."""
    found = []
    for name, column in columns.items():
        texts = [name] if isinstance(column, np.ndarray) else [name, *column]
        if count := sum(text is not None and _is_formula(text) for text in texts):
            found.append(f"{count} cells of {name}")
    if found and path.suffix == CSV:
        display.warn(
            f"a spreadsheet would run {', '.join(found)} in {path} as formulas; import them as text"
        )


def _is_formula(text: str) -> bool:
    """Whether a spreadsheet would take a cell with this text for a formula, not for a number."""
    try:
        float(text)
    except ValueError:
        return len(text) > 1 and text[0] in FORMULA
    return False


def encoded(columns: Columns, path: Path, csv_format: CsvFormat | None = None) -> bytes:
    """A table in the format of the ending of `path`. CSV has the shortest exact decimals."""
    shown = {
        visible(name): column
        if isinstance(column, np.ndarray)
        else [cell if cell is None else visible(cell) for cell in column]
        for name, column in columns.items()
    }
    if path.suffix == CSV:
        text = io.StringIO()
        separator = "," if csv_format is None else csv_format.separator
        writer = csv.writer(text, lineterminator="\n", delimiter=separator)
        writer.writerow(shown)
        cells = (part.tolist() if isinstance(part, np.ndarray) else part for part in shown.values())
        writer.writerows(zip(*cells, strict=True))
        encoding = "utf-8" if csv_format is None else csv_format.encoding
        return text.getvalue().encode(encoding, "backslashreplace")
    import pandas as pd  # imported here because pandas is slow to import

    buffer = io.BytesIO()
    pd.DataFrame(shown).to_parquet(buffer, index=False)
    return buffer.getvalue()


@contextmanager
def paid_files(sizes: Mapping[Path, int]) -> Iterator[Callable[[Mapping[Path, bytes], str], None]]:
    """Take room for files before payment; yield what writes or else saves them after it."""
    with room_for(sizes) as write:

        def write_or_save(contents: Mapping[Path, bytes], charged: str) -> None:
            try:
                write(contents)
            except OSError as error:
                said = f"{charged}, and the answers are {_saved(contents)}: do not pay again"
                raise OSError(error.errno, f"{error.strerror}; {said}", error.filename) from error

        yield write_or_save


def _saved(contents: Mapping[Path, bytes]) -> str:
    """Save files in a new folder for temporary files, or else print them; say where they are."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="geomdp-"))
        write_together({folder / path.name: content for path, content in contents.items()})
    except OSError:
        for path, content in contents.items():
            print(f"{visible(path.name)} in base64:\n{base64.encodebytes(content).decode()}")
        return "on standard output"
    return f"in {folder}"


def check_output(
    out: Path | None,
    endings: Sequence[str],
    force: bool,
    inputs: Iterable[Path | None],
    beside: str = "",
    flag: str = "--out",
) -> None:
    """`check_place` and `check_free` for the file of `flag`, if given, and the one `beside` it."""
    if out is not None:
        check_place(out, *endings, flag=flag)
        written = [out.with_suffix(beside)] if beside else []
        check_free([out, *written], force, inputs, flag=flag)


def check_place(out: Path, *endings: str, flag: str = "--out") -> None:
    """Raise ``ValueError`` if --out ends in none of `endings`, or its folder does not exist."""
    if out.suffix not in endings:
        wanted = " or ".join(endings)
        raise ValueError(f"{flag} must name a file ending in {wanted}, got {str(out)!r}")
    if not out.parent.is_dir():
        raise ValueError(f"{flag} must be in an existing folder, got {str(out)!r}")


def check_plan(path: Path | None) -> None:
    if path is not None:
        check_place(path, path.suffix, flag="--save-plan")
        if path.exists():
            raise ValueError(f"--save-plan must name a new file, got {str(path)!r}, which exists")


def check_free(
    paths: Iterable[Path], overwrite: bool, inputs: Iterable[Path | None] = (), flag: str = "--out"
) -> None:
    """Raise ``ValueError`` for a folder, a file that exists, or an input or a link to one."""
    given = list(inputs)
    for path in paths:
        if path.is_dir():
            raise ValueError(f"{flag} would write the file {str(path)!r}, but that is a folder")
        for other in given:
            if other is not None and is_input(path, other):
                raise ValueError(
                    f"{flag} would overwrite the input {str(other)!r} by {str(path)!r}, or add "
                    "that file to it; --force allows neither"
                )
        if path.exists() and not overwrite:
            raise ValueError(f"{flag} would overwrite {str(path)!r}; use --force to allow it")


def is_input(path: Path, given: Path) -> bool:
    """Whether `path` is, or would become, a file of `given`: a file, a folder or a pattern."""
    from geomdp.data.files import paths_at

    place = path.resolve()
    if given.is_dir() and any(_is_same(folder, given) for folder in place.parents):
        return True
    if any(_is_same(path, file) for file in paths_at(given)):
        return True
    # A new file can match a pattern; a last part ** matches folders, too, at any depth.
    pattern = given if given.name == "**" else given.parent
    folders = glob.iglob(str(pattern), recursive=True)
    matches = fnmatch.fnmatchcase(path.name, given.name) and not given.is_file()
    return matches and any(_is_same(place.parent, Path(folder)) for folder in folders)


def _is_same(path: Path, other: Path) -> bool:
    try:
        return os.path.samefile(path, other)
    except OSError:  # a name leads to no file or folder
        return False


# The command `ledger`, and the flags --ledger and --budget, which create or continue the budget

_option = flags.options("FILE  A file that --ledger created.")


def ledger(file: Annotated[Path, _option("FILE")]) -> None:
    """List what the privacy budget in FILE was spent on, after verifying every entry."""
    if not file.exists():
        raise ValueError(f"{file}: no such ledger; --ledger with --budget creates one")
    with Ledger.existing(file) as opened:
        spends = opened.spends()
        budget = f"{opened.budget}, {opened.relation}"
        left = f"{remaining(opened.budget, spends)} left"
        display.print_rows([("budget", budget), ("unspent", left), ("spends", str(len(spends)))])
    if spends:
        rows = [
            (str(number), spend.time[:19].replace("T", " "), str(spend.privacy), spend.label)
            for number, spend in enumerate(spends, start=1)
        ]
        print()
        display.print_table(["no.", "when (UTC)", "cost", "mechanism"], rows)


#: Names of the parameters that --budget accepts.
NAMES = ("epsilon", "delta", "rho")


def parse_budget(text: str) -> Privacy:
    """The budget of a text such as ``epsilon=3,delta=1e-6`` or ``rho=0.5``, or ``ValueError``."""
    given: dict[str, float] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        try:
            if not equals or name not in NAMES or name in given:
                raise ValueError
            given[name] = float(value)
        except ValueError:
            wanted = "'epsilon=X', 'epsilon=X,delta=Y' or 'rho=X' with numbers"
            raise ValueError(f"--budget must be {wanted}, got {text!r}") from None
    try:
        return flags.parse_privacy(*map(given.get, NAMES))
    except ValueError as error:
        raise ValueError(f"--budget {text}: {error}") from error


@dataclass(frozen=True)
class Payment:
    """The flags --ledger and --budget: the privacy budget that a release is charged to, if any."""

    path: Path | None
    budget: str | None

    def check(self, *, provable: bool) -> None:
        """Raise ``ValueError`` if the flags are wrong, or the release has no `provable` cost."""
        if self.path is None and self.budget is not None:
            raise ValueError(f"--budget needs --ledger, got --budget {self.budget} alone")
        if self.budget is not None:
            parse_budget(self.budget)
        if self.path is not None and not provable:
            raise ValueError(
                "--ledger excludes --seed, --infer-schema and --allow-heuristic, because a release "
                "with one of them has no proved cost"
            )

    @contextmanager
    def opened(self, claim: Guarantee, label: str) -> Iterator[Ledger | None]:
        """Yield the ledger, which can pay `claim`; None without --ledger. Create none in vain."""
        if self.path is None:
            yield None
            return
        if self.budget is not None:
            total = parse_budget(self.budget)
            create = partial(Ledger, total, adjacency=claim.adjacency, person=claim.person)
            if not self.path.exists():
                create().require(claim, label)
            opened = create(path=self.path)
        elif self.path.exists():
            opened = Ledger.existing(self.path)
        else:
            raise ValueError(
                f"--ledger {self.path} does not exist: give --budget, for instance --budget "
                "epsilon=3, to create it"
            )
        with opened as ledger:
            if ledger.relation != (asked := relation_of(claim.adjacency, claim.person)):
                raise ValueError(f"--ledger {self.path} is for {ledger.relation}, not for {asked}")
            ledger.require(claim, label)
            yield ledger

    def charged(self, guarantee: Guarantee) -> str:
        """Words that say what a release with this guarantee has cost, after it was paid."""
        return f"{guarantee.privacy} was charged to {self.path or 'no ledger'}"


def left_in(ledger: Ledger | None) -> display.Rows:
    """A row of output with the rest of the budget; no row if there is no ledger."""
    if ledger is None:
        return []
    return [("budget", f"{remaining(ledger.budget, ledger.spends())} left ({ledger.path})")]
