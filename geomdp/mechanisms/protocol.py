"""The one order in which a mechanism that is released once sets up, asks, reads, pays and draws."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

from geomdp._typing import RandomState
from geomdp.privacy import Adjacency, Guarantee, Ledger

Prepared = TypeVar("Prepared")
Statistic = TypeVar("Statistic")
Output = TypeVar("Output")


def source_and_record(
    rng: RandomState, guarantee: Guarantee
) -> tuple[np.random.Generator, Guarantee]:
    """The generator of one release and its privacy record, which says whether it was seeded.

    None draws from the operating system's entropy; any other `rng` makes the release reproducible,
    so that its record makes no claim. ``TypeError`` or ``ValueError`` for an `rng` that is no seed.
    """
    generator = np.random.default_rng(rng)
    return generator, guarantee if rng is None else guarantee.as_seeded()


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
    """Run the steps of one release in the order that every mechanism must keep.

    1. `set_up` does all public work, so that nothing can fail once the ledger has paid.
    2. The ledger says whether it can pay; `BudgetExhausted` if not, and the records are not read.
    3. `read` goes through the records once, checks them, and returns their number and what `draw`
       needs to know of them. It may draw noise before it reads, never afterwards.
    4. Under replace-one, any other number of records than `n` is a ``ValueError``.
    5. The ledger pays, under the name `label`.
    6. `draw` adds the noise and returns the release.

    A failure in steps 1 to 5 leaves the ledger as it was, and no noise has met the records.
    `guarantee` is the privacy record of this release, from `source_and_record`.
    """
    prepared = set_up()
    if ledger is not None:
        ledger.require(guarantee, label)
    count, statistic = read()
    if guarantee.adjacency is Adjacency.REPLACE_ONE and count != n:
        raise ValueError(f"records must number n = {n}, got {count}")
    if ledger is not None:
        ledger.spend(guarantee, label)
    return draw(prepared, statistic)
