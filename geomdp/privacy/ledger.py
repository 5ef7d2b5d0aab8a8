"""One privacy budget for one data set, shared by all the mechanisms that read it.

A spend is written to disk and committed before it is granted, so a process killed between the
spend and the answer has spent: the count can be too high, never too low.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from geomdp.privacy.guarantees import ZCDP, Adjacency, ApproxDP, Guarantee, Heuristic, PureDP

#: Marks a file as a ledger of this layout (SQLite's application_id): "gdpl" in ASCII.
APPLICATION_ID = 0x6764706C
#: Relative rounding allowed when spends are added up to exactly the budget.
ROUNDING = 1e-12

SCHEMA = """
CREATE TABLE budget (definition TEXT NOT NULL, epsilon REAL, delta REAL, rho REAL,
                     adjacency TEXT NOT NULL);
CREATE TABLE spends (id INTEGER PRIMARY KEY, time TEXT NOT NULL, label TEXT NOT NULL,
                     definition TEXT NOT NULL, epsilon REAL, delta REAL, rho REAL);
"""


class BudgetExhausted(RuntimeError):  # noqa: N818 (the name users catch; design)
    """A mechanism or ledger has no privacy budget left for what was asked; no data was touched."""


@dataclass(frozen=True)
class Spend:
    """One granted spend.

    Parameters
    ----------
    label : str
        What the caller named it.
    privacy : PureDP, ApproxDP or ZCDP
        What it costs.
    """

    label: str
    privacy: PureDP | ApproxDP | ZCDP


class Ledger:
    """A privacy budget kept in one SQLite file, or in memory.

    Spends compose adaptively: under a `PureDP` budget epsilons add up; under an `ApproxDP` budget
    epsilons and deltas add up (basic composition), with zCDP spends pooled and converted once;
    under a `ZCDP` budget rhos add up, a pure spend counting epsilon^2 / 2 (GEN-2).

    Parameters
    ----------
    budget : PureDP, ApproxDP or ZCDP
        The total. A file that exists must hold the same budget and adjacency.
    adjacency : Adjacency
        The neighbour relation all spends must be stated for.
    path : str or Path, optional
        The file; None keeps the ledger in memory.

    Raises
    ------
    ValueError
        If the file is not a ledger, or one with another budget or adjacency.
    """

    def __init__(
        self,
        budget: PureDP | ApproxDP | ZCDP,
        *,
        adjacency: Adjacency = Adjacency.REPLACE_ONE,
        path: str | Path | None = None,
    ) -> None:
        self.budget = budget
        self.adjacency = adjacency
        self._path = ":memory:" if path is None else str(path)
        fresh = path is None or not Path(path).exists()
        self._connection = sqlite3.connect(self._path, isolation_level=None)
        try:
            if fresh:
                self._create()
            else:
                self._check()
            self._connection.execute("PRAGMA synchronous = FULL")
        except sqlite3.DatabaseError as error:
            self._connection.close()
            raise ValueError(f"{self._path} is not a privacy ledger: {error}") from error
        except ValueError:
            self._connection.close()
            raise

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def spends(self) -> list[Spend]:
        """All spends granted so far, oldest first, by whichever process."""
        rows = self._connection.execute(
            "SELECT label, definition, epsilon, delta, rho FROM spends ORDER BY id"
        )
        return [Spend(label, _privacy(*parameters)) for label, *parameters in rows]

    def spend(self, guarantee: Guarantee, label: str) -> Spend:
        """Grant one spend, or refuse it.

        Parameters
        ----------
        guarantee : Guarantee
            The privacy record of the mechanism about to run. A heuristic sampler has no proved
            cost and is refused.
        label : str
            A name for the record.

        Raises
        ------
        BudgetExhausted
            If the total would exceed the budget; nothing is recorded.
        ValueError
            If the guarantee is stated for another adjacency, its sampler is heuristic, or the
            budget's definition cannot pay for it; nothing is recorded.
        """
        if guarantee.adjacency is not self.adjacency:
            raise ValueError(
                f"guarantee must be for {self.adjacency.value}, got {guarantee.adjacency.value}"
            )
        if isinstance(guarantee.sampler, Heuristic):
            raise ValueError(f"a {guarantee.sampler} sampler has no proved cost to account for")
        entry = Spend(label, guarantee.effective)
        with self._exclusive():
            total = [*self.spends(), entry]
            if not self._affordable(total):
                raise BudgetExhausted(
                    f"{label} ({entry.privacy}) does not fit: budget {self.budget}, "
                    f"{len(total) - 1} spends so far"
                )
            self._connection.execute(
                "INSERT INTO spends (time, label, definition, epsilon, delta, rho) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (datetime.now(UTC).isoformat(), label, *_columns(entry.privacy)),
            )
        return entry

    def _affordable(self, spends: list[Spend]) -> bool:
        slack = 1 + ROUNDING
        match self.budget:
            case PureDP(epsilon=limit):
                return math.fsum(_pure_epsilon(s.privacy) for s in spends) <= limit * slack
            case ZCDP(rho=limit):
                return math.fsum(_rho(s.privacy) for s in spends) <= limit * slack
            case ApproxDP(epsilon=limit, delta=delta_limit):
                epsilon, delta, rho = _basic_totals(spends)
                if delta > delta_limit * slack:
                    return False
                if rho > 0:
                    left = delta_limit - delta
                    if left <= 0:
                        return False
                    epsilon += rho + 2 * math.sqrt(rho * math.log(1 / left))
                return epsilon <= limit * slack

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def _create(self) -> None:
        with self._exclusive():
            for statement in SCHEMA.split(";"):
                self._connection.execute(statement)
            self._connection.execute(
                "INSERT INTO budget VALUES (?, ?, ?, ?, ?)",
                (*_columns(self.budget), self.adjacency.value),
            )
            self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")

    def _check(self) -> None:
        with closing(self._connection.execute("PRAGMA application_id")) as cursor:
            if cursor.fetchone()[0] != APPLICATION_ID:
                raise ValueError(f"{self._path} is not a privacy ledger")
        *parameters, adjacency = self._connection.execute("SELECT * FROM budget").fetchone()
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
    if rho is not None:
        return ZCDP(rho)
    if epsilon is None:
        raise ValueError(f"the ledger holds an unknown spend of type {definition}")
    return PureDP(epsilon) if delta is None else ApproxDP(epsilon, delta)


def _pure_epsilon(privacy: PureDP | ApproxDP | ZCDP) -> float:
    if not isinstance(privacy, PureDP):
        raise ValueError(f"a pure budget cannot pay for {privacy}")
    return privacy.epsilon


def _rho(privacy: PureDP | ApproxDP | ZCDP) -> float:
    match privacy:
        case ZCDP(rho=rho):
            return rho
        case PureDP(epsilon=epsilon):
            return epsilon**2 / 2
        case ApproxDP():
            raise ValueError(f"a zCDP budget cannot pay for {privacy}")


def _basic_totals(spends: list[Spend]) -> tuple[float, float, float]:
    epsilon = math.fsum(s.privacy.epsilon for s in spends if not isinstance(s.privacy, ZCDP))
    delta = math.fsum(s.privacy.delta for s in spends if isinstance(s.privacy, ApproxDP))
    rho = math.fsum(s.privacy.rho for s in spends if isinstance(s.privacy, ZCDP))
    return epsilon, delta, rho
