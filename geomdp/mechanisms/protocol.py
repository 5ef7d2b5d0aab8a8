"""The order of the steps of an offline release: set up, ask the ledger, read, pay, draw."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from geomdp._typing import RandomState
from geomdp._validation import require_type
from geomdp.privacy import Adjacency, Guarantee, Ledger
from geomdp.privacy.parameter_range import weakness

Prepared = TypeVar("Prepared")
Statistic = TypeVar("Statistic")
Output = TypeVar("Output")


def source_and_record(
    rng: RandomState, guarantee: Guarantee
) -> tuple[np.random.Generator, Guarantee]:
    """The generator and the privacy record of one release; any `rng` but None voids the claim."""
    generator = np.random.default_rng(rng)
    return generator, guarantee if rng is None else guarantee.as_seeded()


def warn_if_weak(guarantee: Guarantee) -> None:
    """Warn of an unseeded epsilon or rho above 10, at the line that calls the library."""
    meaning = "" if guarantee.seeded else weakness(guarantee.privacy)
    if not meaning:
        return
    level, frame = 1, sys._getframe().f_back
    while frame is not None and str(frame.f_globals.get("__name__")).startswith("geomdp."):
        level, frame = level + 1, frame.f_back
    warnings.warn(meaning, UserWarning, stacklevel=level + 1)


def release_once(
    label: str,
    n: int,
    guarantee: Guarantee,
    ledger: Ledger | None,
    *,
    set_up: Callable[[], Prepared],
    read: Callable[[], tuple[int, Statistic]],
    draw: Callable[[Prepared, Statistic], Output],
) -> Output:
    """Run the steps of one release in the order that every offline mechanism must keep.

    Public work comes first, so that it cannot fail after the ledger has paid. The ledger is asked
    before the records are read, and pays after they are found valid, before noise is drawn. A
    failure before `draw` leaves the ledger unchanged, and nothing has been released.
    """
    if ledger is not None:
        require_type(ledger, Ledger, "ledger")
    prepared = set_up()
    if ledger is not None:
        ledger.require(guarantee, label)
    count, statistic = read()
    if guarantee.adjacency is Adjacency.REPLACE_ONE and count != n:
        raise ValueError(f"records must number n = {n}, got {count}")
    warn_if_weak(guarantee)
    if ledger is not None:
        ledger.spend(guarantee, label)
    return draw(prepared, statistic)
