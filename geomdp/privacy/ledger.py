"""One privacy budget for one data set, shared by all the mechanisms that read the data set."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sqlite3
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from operator import sub
from pathlib import Path
from typing import Any

from geomdp._numerics.randomness import Turn
from geomdp._validation import plural, require_type
from geomdp.privacy.definitions import (
    ZCDP,
    Adjacency,
    ApproxDP,
    Privacy,
    PureDP,
    check_privacy,
    checked_adjacency,
    printed,
    printed_down,
    privacy_from_parameters,
    rho_of_pure,
    rounded_up,
    sum_of_costs,
)
from geomdp.privacy.guarantees import Guarantee

#: Relative rounding error allowed in a sum, so that spends can add up to exactly the budget.
ROUNDING = 1e-12
#: What follows the neighbour relation in a ledger of persons.
OF_A_PERSON = " of a person by the column "


class BudgetExhausted(RuntimeError):  # noqa: N818 (users rely on this public name)
    """A mechanism or ledger has too little privacy budget for a request, and nothing is released.

    Examples
    --------
    >>> import geomdp as gd
    >>> mechanism = gd.mechanisms.Laplace(gd.workloads.Histogram(3), n=100, privacy=gd.PureDP(1.5))
    >>> try:
    ...     gd.Ledger(gd.PureDP(1.0)).spend(mechanism.guarantee, "histogram")
    ... except gd.BudgetExhausted as refusal:
    ...     print(refusal)
    histogram (1.5-DP) does not fit: budget 1-DP, 0 spends so far, left is epsilon 1 of 1
    """


@dataclass(frozen=True)
class Spend:
    """One granted spend."""

    label: str
    privacy: Privacy
    time: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        require_type(self.label, str, "label")
        check_privacy(self.privacy)


class Ledger(AbstractContextManager["Ledger"]):
    """A privacy budget kept in one SQLite file, or in memory.

    Spends compose adaptively. Under a `PureDP` budget, epsilons add up, and only pure spends are
    granted. Under an `ApproxDP` budget, epsilons and deltas add up (basic composition), and zCDP
    spends are refused. Under a `ZCDP` budget, rhos add up, a pure spend counts as
    rho = epsilon tanh(epsilon / 2), and approximate spends are refused. The total rho implies
    (rho + 2 sqrt(rho ln(1/delta)), delta)-DP for every delta (GEN-2, X-TANH).

    A spend is on disk before it is granted, and the whole file is verified before every spend: if
    recorded spends were lost or changed, no more are granted. Only a ledger that was open before
    notices that an older copy replaced the file, or that somebody changed entries and computed all
    digests anew. A ledger works only in the process that opened it, for one thread at a time. As a
    context manager, it closes the file.

    Parameters
    ----------
    budget : PureDP, ApproxDP or ZCDP
        The largest total cost. An existing file must hold the same budget for the same neighbours.
    adjacency : Adjacency
        The neighbour relation for which all spends must be stated.
    person : str, optional
        If given, all spends must protect persons, named by this column, and not rows.
    path : str or Path, optional
        The file; None keeps the ledger in memory.
    create : bool
        Whether to create a missing file. For a data set that has a ledger, use False: a mistyped
        path is then an error and not a fresh budget.

    Raises
    ------
    ValueError
        If the file is empty, damaged, not a ledger, or has another budget or adjacency.
    OSError
        If the file cannot be opened or created.

    Examples
    --------
    A mechanism that releases with ``ledger=ledger`` spends its own cost. The file keeps the first
    spend, so a later program can make the second:

    >>> import geomdp as gd
    >>> mechanism = gd.mechanisms.Laplace(gd.workloads.Histogram(3), n=100, privacy=gd.PureDP(0.4))
    >>> with gd.Ledger(gd.PureDP(1.0), path="survey.ledger") as ledger:
    ...     first = ledger.spend(mechanism.guarantee, "histogram of regions")
    >>> with gd.Ledger.existing("survey.ledger") as ledger:
    ...     second = ledger.spend(mechanism.guarantee, "histogram of ages")
    ...     print(round(ledger.left()["epsilon"], 3))
    0.2
    """

    def __init__(
        self,
        budget: Privacy,
        *,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        person: str | None = None,
        path: str | Path | None = None,
        create: bool = True,
    ) -> None:
        check_privacy(budget, name="budget")
        checked_adjacency(adjacency)
        if person is not None:
            require_type(person, str, "person")
        if str(path) in ("", ":memory:"):  # SQLite opens a temporary database for these names
            raise ValueError(f"path must name a file, or be None for memory; got {path!r}")
        self.budget = budget
        self.adjacency = adjacency
        self.relation = relation_of(adjacency, person)
        self.path = None if path is None else Path(path)
        opening = _record(budget, {"adjacency": self.relation})
        self._file = LedgerFile(self.path, opening, create=create)
        stored = self._file.entries()[0]
        if stored != opening:
            self.close()
            record = json.loads(stored)
            raise ValueError(
                f"{path} holds a budget of {_privacy(record)} under {record['adjacency']}, "
                f"not {budget} under {self.relation}"
            )

    @classmethod
    def existing(cls, path: str | Path) -> Ledger:
        """The ledger in a file, with the budget and neighbour relation that the file holds.

        ``ValueError`` if it is empty, damaged or not a ledger; ``OSError`` if it cannot be opened.
        """
        file = LedgerFile(Path(path), "", create=False)
        record = json.loads(file.entries()[0])
        file.close()
        name, _, person = record["adjacency"].partition(OF_A_PERSON)
        budget, adjacency = _privacy(record), Adjacency(name)
        return cls(budget, adjacency=adjacency, person=person or None, path=path, create=False)

    def left(self) -> dict[str, float]:
        """Unspent part of each budget parameter, rounded down; errors of the file as in `spend`."""
        return _left(self.budget, self.spends())

    def __repr__(self) -> str:
        where = "in memory" if self.path is None else str(self.path)
        spends = plural(self._file.count - 1, "spend")  # the first entry is the budget
        return f"Ledger({self.budget}, {self.relation}: {spends} so far, {where})"

    def close(self) -> None:
        """Close the file, if there is one."""
        self._file.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    def spends(self) -> list[Spend]:
        """All spends granted by any process, oldest first. Errors of the file are as in `spend`."""
        return _spends(self._file.entries())

    def require(self, guarantee: Guarantee, label: str) -> None:
        """`spend` without recording, for mechanisms that must first validate the records."""
        self._check_affordable(self._entry(guarantee, label), self.spends())

    def spend(self, guarantee: Guarantee, label: str) -> Spend:
        """Record one spend. A refused spend raises an error.

        Parameters
        ----------
        guarantee : Guarantee
            The guarantee of the mechanism about to run. A heuristic sampler, a seed or a withdrawn
            claim has no proved cost and is refused.
        label : str
            Name of the spend in the ledger.

        Raises
        ------
        BudgetExhausted
            If the total would exceed the budget by more than a relative 1e-12, for rounding.
        ValueError
            For another type or adjacency, no proved cost, a definition that the budget cannot pay
            for, or a damaged file. In all cases, nothing is recorded.
        OSError
            If the spend cannot be written.
        RuntimeError
            In a forked process, if the parent process opened the ledger.
        """
        entry = self._entry(guarantee, label)

        def checked(entries: list[str]) -> str:
            self._check_affordable(entry, _spends(entries))
            time = datetime.now(UTC).isoformat()
            return _record(entry.privacy, {"label": label, "time": time})

        self._file.add(checked)
        return entry

    def _entry(self, guarantee: Guarantee, label: str) -> Spend:
        require_type(guarantee, Guarantee, "guarantee")
        if guarantee.max_rows_per_person is not None and guarantee.person is None:
            raise ValueError("guarantee must name the column of the person, got None")
        stated = relation_of(guarantee.adjacency, guarantee.person)
        if stated != self.relation:
            raise ValueError(f"guarantee must be for {self.relation}, got {stated}")
        if not guarantee.is_claim:
            raise ValueError(f"guarantee must have a proved cost, got {str(guarantee)!r}")
        return Spend(label, guarantee.effective)

    def _check_affordable(self, entry: Spend, granted: Sequence[Spend]) -> None:
        if not affordable(self.budget, [*granted, entry]):
            raise BudgetExhausted(
                f"{entry.label} ({entry.privacy}) does not fit: budget {self.budget}, "
                f"{plural(len(granted), 'spend')} so far, left is {remaining(self.budget, granted)}"
            )


def relation_of(adjacency: Adjacency, person: str | None) -> str:
    """The neighbour relation, in words."""
    return adjacency.value + (f"{OF_A_PERSON}{person}" if person is not None else "")


def _record(privacy: Privacy, about: Mapping[str, str]) -> str:
    definition = type(privacy).__name__
    return json.dumps({"definition": definition, "parameters": privacy.parameters(), **about})


def _privacy(record: Mapping[str, Any]) -> Privacy:
    return privacy_from_parameters(record["definition"], record["parameters"])


def _spends(entries: Sequence[str]) -> list[Spend]:
    records = map(json.loads, entries[1:])
    return [Spend(record["label"], _privacy(record), record["time"]) for record in records]


def affordable(budget: Privacy, spends: Sequence[Spend]) -> bool:
    """Whether `spends`, composed adaptively, fit `budget` (GEN-2), by the rules of `Ledger`."""
    # Sums bound the loss even for spends chosen after earlier answers (Rogers-Roth-Ullman-Vadhan
    # 2016 for epsilons and deltas, Feldman-Zrnic 2021 for rhos). These theorems do not cover a
    # delta that is chosen after answers, so an approximate budget takes no zCDP spend.
    spent, limits = spent_parameters(budget, spends), budget.parameters()
    return all(spent[name] <= limit * (1 + ROUNDING) for name, limit in limits.items())


def spent_parameters(budget: Privacy, spends: Sequence[Spend]) -> dict[str, float]:
    """The sum of `spends` in each parameter of `budget`."""
    costs = [_cost(spend.privacy, budget) for spend in spends]
    return {name: sum_of_costs([cost[name] for cost in costs]) for name in budget.parameters()}


def _left(budget: Privacy, spends: Sequence[Spend]) -> dict[str, float]:
    spent, limits = spent_parameters(budget, spends), budget.parameters()
    over = {name: rounded_up(sub, spent[name], limit) for name, limit in limits.items()}
    return {name: max(0.0, -excess) for name, excess in over.items()}


def remaining(budget: Privacy, spends: Sequence[Spend]) -> str:
    """The rest of a budget, as text such as ``epsilon 0.5 of 3``. A spend of it is granted."""
    # With this allowance, 0.1 of a budget of 0.5 is left after a spend of 0.4.
    left = {name: rest * (1 + ROUNDING) for name, rest in _left(budget, spends).items()}
    return ", ".join(
        f"{name} {printed_down(left[name])} of {printed(limit)}"
        for name, limit in budget.parameters().items()
    )


def _cost(privacy: Privacy, budget: Privacy) -> dict[str, float]:
    """What a spend takes from each parameter of a budget; ``ValueError`` if it cannot pay."""
    if type(privacy) is type(budget):
        return privacy.parameters()
    match budget, privacy:
        case ApproxDP(), PureDP(epsilon=epsilon):
            return {"epsilon": epsilon, "delta": 0.0}
        case ZCDP(), PureDP(epsilon=epsilon):
            return {"rho": rho_of_pure(epsilon)}
        case ApproxDP(), _:
            # Let L = ln(1/delta). The solution of rho + 2 sqrt(rho L) = epsilon has
            # sqrt(rho) = sqrt(L + epsilon) - sqrt(L) = epsilon / (sqrt(L + epsilon) + sqrt(L)).
            log = math.log(1 / budget.delta)
            rho = (budget.epsilon / (math.sqrt(log + budget.epsilon) + math.sqrt(log))) ** 2
            # Rounding to six digits raises rho by a share of 5e-6 at most: less than the factor.
            raise ValueError(
                f"an approximate budget cannot pay for {privacy}: open a ledger of "
                f"ZCDP({rho * (1 - 1e-5):.6g}), which implies {budget} and takes pure and zCDP "
                "spends"
            )
    name = "pure" if isinstance(budget, PureDP) else "zCDP"
    raise ValueError(f"a {name} budget cannot pay for {privacy}")


# The file of a ledger.


#: Marks a file as a ledger of this layout (SQLite's application_id): "gdp2" in ASCII.
APPLICATION_ID = 0x67647032
#: Mode of a new file, for its owner only: labels tell what was asked about the data.
PRIVATE = 0o600
#: Seconds to wait for another process that is writing.
WAIT = 60.0

SCHEMA = """
CREATE TABLE entries (id INTEGER PRIMARY KEY, content TEXT NOT NULL, digest TEXT NOT NULL);
CREATE TABLE head (count INTEGER NOT NULL, digest TEXT NOT NULL);
INSERT INTO head VALUES (0, '');
"""


class LedgerFile:
    """Entries in the SQLite file `path`, or in memory; a new one starts with the entry `first`.

    The digest of an entry is the SHA-256 of the digest before it and of its content. The table
    `head` holds the number of entries and the last digest.
    """

    def __init__(self, path: Path | None, first: str, *, create: bool) -> None:
        self.name = "a ledger in memory" if path is None else str(path)
        self._process = os.getpid()
        self._turn = Turn()
        self._seen = 0, ""  # number of entries and last digest when the file was last read
        with self._translated():
            if path is not None:
                if create and not path.exists():
                    _create(path, first)
                if path.is_file() and path.stat().st_size == 0:
                    raise ValueError(
                        f"{path} is empty: a ledger is never empty, so its spends are lost; delete "
                        "the file only if there were no spends"
                    )
            self._connection = _connect(path)
            # Close the file also if the ledger is deleted without a call of `close`.
            weakref.finalize(self, _close, self._connection, self._process)
            try:
                if path is None:
                    _initialise(self._connection, first)
                self.entries()
            except BaseException:
                self.close()
                raise

    @property
    def count(self) -> int:
        return self._seen[0]

    def close(self) -> None:
        _close(self._connection, self._process)

    def entries(self) -> list[str]:
        """Verify and return all entries, oldest first; errors as in `Ledger.spend`."""
        with self._transaction("DEFERRED"):
            return self._verified()

    def add(self, decide: Callable[[list[str]], str]) -> None:
        """Add the entry that `decide` returns for all entries so far, in one transaction."""
        with self._transaction("IMMEDIATE"):
            head = _add(self._connection, decide(self._verified()))
        self._seen = head

    def _verified(self) -> list[str]:
        (number,) = self._connection.execute("PRAGMA application_id").fetchone()
        if number != APPLICATION_ID:
            raise ValueError(f"{self.name} is not a privacy ledger of this version")
        rows = self._connection.execute("SELECT * FROM entries ORDER BY id").fetchall()
        count, digest = 0, ""
        seen = self._seen == (count, digest)
        for count, (number, content, stored) in enumerate(rows, start=1):
            digest = _digest(digest, content)
            if (number, stored) != (count, digest):
                raise ValueError(f"{self.name} is damaged: entry {count} is not as it was written")
            seen = seen or self._seen == (count, digest)
        if self._connection.execute("SELECT * FROM head").fetchall() != [(count, digest)]:
            raise ValueError(f"{self.name} is damaged: its last entries are missing")
        if not seen:
            raise ValueError(f"{self.name} was replaced: it lacks entries that it held before")
        self._seen = count, digest
        return [content for _, content, _ in rows]

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[None]:
        if os.getpid() != self._process:
            raise RuntimeError(
                f"{self.name} belongs to the process that forked this one: open a ledger with a "
                "path in every process (each fork of a ledger in memory would have its own budget)"
            )
        with self._turn.take(self.name), self._translated():
            self._connection.execute(f"BEGIN {kind}")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _translated(self) -> Iterator[None]:
        """Turn errors of SQLite into ``OSError``, or ``ValueError`` if the file is damaged."""
        try:
            yield
        except sqlite3.ProgrammingError:  # the ledger is closed
            raise
        except sqlite3.DatabaseError as error:
            # The code SQLITE_ERROR means that the content is wrong, for example its file format.
            outside = getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_ERROR
            if isinstance(error, sqlite3.OperationalError) and outside:
                raise OSError(f"{self.name} cannot be opened, read or written: {error}") from error
            raise ValueError(f"{self.name} is not a privacy ledger, or damaged: {error}") from error


def _digest(before: str, content: str) -> str:
    return hashlib.sha256(f"{before}\n{content}".encode()).hexdigest()


def _connect(path: Path | None) -> sqlite3.Connection:
    name = ":memory:" if path is None else f"{path.absolute().as_uri()}?mode=rw"
    # `LedgerFile` lets one thread at a time use the connection.
    connection = sqlite3.connect(
        name, timeout=WAIT, isolation_level=None, check_same_thread=False, uri=True
    )
    # Bytes that are not UTF-8 are read as other letters. The entry then fails its digest.
    connection.text_factory = lambda raw: raw.decode(errors="replace")
    # EXTRA also syncs the folder after a commit. A committed spend then survives a power cut.
    connection.execute("PRAGMA synchronous = EXTRA")
    return connection


def _close(connection: sqlite3.Connection, process: int) -> None:
    # A forked child must not close the connection, because that could undo a spend of the parent.
    if os.getpid() == process:
        connection.close()


def _create(path: Path, first: str) -> None:
    """Create a ledger under a temporary name, then link it: no process sees an unfinished file."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
        new = Path(folder) / path.name
        new.touch(mode=PRIVATE)
        with closing(_connect(new)) as connection:
            _initialise(connection, first)
        try:
            path.hardlink_to(new)
        except FileExistsError:
            return  # another process has created a ledger in the meantime


def _initialise(connection: sqlite3.Connection, first: str) -> None:
    connection.execute("BEGIN IMMEDIATE")
    for statement in SCHEMA.split(";"):
        connection.execute(statement)
    _add(connection, first)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("COMMIT")


def _add(connection: sqlite3.Connection, content: str) -> tuple[int, str]:
    """Add an entry; return the new number of entries and the new last digest."""
    ((count, before),) = connection.execute("SELECT * FROM head").fetchall()
    head = count + 1, _digest(before, content)
    connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (head[0], content, head[1]))
    connection.execute("UPDATE head SET count = ?, digest = ?", head)
    return head
