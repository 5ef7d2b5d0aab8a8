"""One privacy budget for one data set, shared by all the mechanisms that read it.

A spend is written to disk and committed before it is granted, so a process killed between the
spend and the answer has spent: the count can be too high, never too low.
"""

from __future__ import annotations

import sqlite3
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from geomdp.privacy.guarantees import ZCDP, Adjacency, ApproxDP, Guarantee, Heuristic, PureDP
from geomdp.privacy.spends import Spend, affordable

#: Marks a file as a ledger of this layout (SQLite's application_id): "gdpl" in ASCII.
APPLICATION_ID = 0x6764706C
#: Seconds to wait for another process that is writing its spend.
WAIT = 60.0

SCHEMA = """
CREATE TABLE budget (definition TEXT NOT NULL, epsilon REAL, delta REAL, rho REAL,
                     adjacency TEXT NOT NULL);
CREATE TABLE spends (id INTEGER PRIMARY KEY, time TEXT NOT NULL, label TEXT NOT NULL,
                     definition TEXT NOT NULL, epsilon REAL, delta REAL, rho REAL);
"""


class BudgetExhausted(RuntimeError):  # noqa: N818 (the name users catch; design)
    """A mechanism or ledger has no privacy budget left for what was asked; no data was touched."""


class Ledger:
    """A privacy budget kept in one SQLite file, or in memory.

    Spends compose adaptively: under a `PureDP` budget epsilons add up; under an `ApproxDP` budget
    epsilons and deltas add up (basic composition), and zCDP spends are refused; under a `ZCDP`
    budget rhos add up, a pure spend counting epsilon^2 / 2, and the total implies
    (rho + 2 sqrt(rho ln(1/delta)), delta)-DP for every delta (GEN-2).

    A context manager: leaving it closes the file.

    Parameters
    ----------
    budget : PureDP, ApproxDP or ZCDP
        The total. A file that exists must hold the same budget and adjacency.
    adjacency : Adjacency
        The neighbour relation all spends must be stated for.
    path : str or Path, optional
        The file, created if need be; None keeps the ledger in memory.

    Raises
    ------
    ValueError
        If the file is not a ledger, or one with another budget or adjacency.
    OSError
        If the file cannot be opened or created.
    """

    def __init__(
        self,
        budget: PureDP | ApproxDP | ZCDP,
        *,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        path: str | Path | None = None,
    ) -> None:
        if not isinstance(budget, PureDP | ApproxDP | ZCDP):
            raise ValueError(f"budget must be PureDP, ApproxDP or ZCDP, got {budget!r}")
        if not isinstance(adjacency, Adjacency):
            raise ValueError(f"adjacency must be an Adjacency, got {adjacency!r}")
        self.budget = budget
        self.adjacency = adjacency
        self._path = ":memory:" if path is None else str(path)
        try:
            self._connection = sqlite3.connect(self._path, timeout=WAIT, isolation_level=None)
            # A ledger that is dropped rather than closed must not leave its file open.
            weakref.finalize(self, self._connection.close)
        except sqlite3.OperationalError as error:
            raise OSError(f"{self._path} cannot be opened: {error}") from error
        try:
            self._open()
        except sqlite3.OperationalError as error:
            self._connection.close()
            raise OSError(f"{self._path} cannot be read or created: {error}") from error
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise ValueError(f"{self._path} is not a privacy ledger: {error}") from error
        except ValueError:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def spends(self) -> list[Spend]:
        """All spends granted so far, oldest first, by whichever process."""
        rows = self._connection.execute(
            "SELECT label, definition, epsilon, delta, rho FROM spends ORDER BY id"
        )
        return [Spend(label, _privacy(*parameters)) for label, *parameters in rows]

    def require(self, guarantee: Guarantee, label: str) -> None:
        """Check, without recording anything, that a spend would be granted now.

        For a mechanism that reads its records before it can tell whether they are valid: it asks
        first, reads, and then spends.

        Raises
        ------
        BudgetExhausted, ValueError
            As `spend`.
        """
        self._check_affordable(self._entry(guarantee, label))

    def spend(self, guarantee: Guarantee, label: str) -> Spend:
        """Grant one spend, or refuse it.

        Parameters
        ----------
        guarantee : Guarantee
            The privacy record of the mechanism about to run. A heuristic sampler and a seeded
            generator have no proved cost and are refused.
        label : str
            A name for the record.

        Raises
        ------
        BudgetExhausted
            If the total would exceed the budget; nothing is recorded.
        ValueError
            If the guarantee is stated for another adjacency, has no proved cost, or the budget's
            definition cannot pay for it; nothing is recorded.
        OSError
            If the spend cannot be written; it is then not granted.
        """
        entry = self._entry(guarantee, label)
        try:
            with self._exclusive():
                self._check_affordable(entry)
                self._connection.execute(
                    "INSERT INTO spends (time, label, definition, epsilon, delta, rho) "
                    "VALUES (?, ?, ?, ?, ?, ?)",
                    (datetime.now(UTC).isoformat(), label, *_columns(entry.privacy)),
                )
        except sqlite3.OperationalError as error:
            raise OSError(f"{self._path} does not take the spend {label}: {error}") from error
        return entry

    def _entry(self, guarantee: Guarantee, label: str) -> Spend:
        if guarantee.adjacency is not self.adjacency:
            raise ValueError(
                f"guarantee must be for {self.adjacency.value}, got {guarantee.adjacency.value}"
            )
        if isinstance(guarantee.sampler, Heuristic) or guarantee.seeded:
            raise ValueError(f"guarantee must have a proved cost, got {str(guarantee)!r}")
        return Spend(label, guarantee.effective)

    def _check_affordable(self, entry: Spend) -> None:
        granted = self.spends()
        if not affordable(self.budget, [*granted, entry]):
            raise BudgetExhausted(
                f"{entry.label} ({entry.privacy}) does not fit: budget {self.budget}, "
                f"{len(granted)} spends so far"
            )

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _open(self) -> None:
        # Also syncs the folder after a commit: a committed spend survives a loss of power.
        self._connection.execute("PRAGMA synchronous = EXTRA")
        if self._is_blank():
            with self._exclusive():
                if self._is_blank():  # no other process created it meanwhile
                    self._create()
        self._check()

    def _is_blank(self) -> bool:
        """Whether the file is new, or its creation was interrupted before the first commit."""
        (tables,) = self._connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return tables == 0 and self._application_id() == 0

    def _application_id(self) -> int:
        (number,) = self._connection.execute("PRAGMA application_id").fetchone()
        return int(number)

    def _create(self) -> None:
        for statement in SCHEMA.split(";"):
            self._connection.execute(statement)
        self._connection.execute(
            "INSERT INTO budget VALUES (?, ?, ?, ?, ?)",
            (*_columns(self.budget), self.adjacency.value),
        )
        self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    def _check(self) -> None:
        rows = []
        if self._application_id() == APPLICATION_ID:
            rows = self._connection.execute("SELECT * FROM budget").fetchall()
        if len(rows) != 1:
            raise ValueError(f"{self._path} is not a privacy ledger")
        *parameters, adjacency = rows[0]
        stored = _privacy(*parameters)
        if (stored, adjacency) != (self.budget, self.adjacency.value):
            raise ValueError(
                f"{self._path} holds a budget of {stored} under {adjacency}, "
                f"not {self.budget} under {self.adjacency.value}"
            )


def _columns(
    privacy: PureDP | ApproxDP | ZCDP,
) -> tuple[str, float | None, float | None, float | None]:
    parameters = privacy.parameters()
    name = type(privacy).__name__
    return name, parameters.get("epsilon"), parameters.get("delta"), parameters.get("rho")


def _privacy(
    definition: str, epsilon: float | None, delta: float | None, rho: float | None
) -> PureDP | ApproxDP | ZCDP:
    match definition, epsilon, delta, rho:
        case "PureDP", float(), None, None:
            return PureDP(epsilon)
        case "ApproxDP", float(), float(), None:
            return ApproxDP(epsilon, delta)
        case "ZCDP", None, None, float():
            return ZCDP(rho)
    raise ValueError(f"the ledger holds an unknown entry of type {definition!r}")
