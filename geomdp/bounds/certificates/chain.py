"""Chains of arguments that exclude every number of records from 1 on."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from geomdp.bounds.certificates.certificate import Question


class Link(Protocol):
    """The numbers of records that one argument excludes: all from `first` to `last`."""

    @property
    def first(self) -> int:
        """Least number of records excluded."""

    @property
    def last(self) -> int:
        """Largest number of records excluded."""

    @property
    def said(self) -> str:
        """What contradicts a mechanism at the last number of records."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the argument takes for granted."""

    def document(self, question: Question) -> dict[str, Any]:
        """The link as written to a certificate file."""


AnyLink = TypeVar("AnyLink", bound=Link)


def chain(rungs: Iterable[AnyLink]) -> tuple[AnyLink, ...]:
    """Fewest rungs that exclude 1, 2, ... as far as `rungs` reach without a gap.

    Greedy: of all that start no later than one beyond the reach, the one that reaches furthest.
    Empty if none starts at one record.
    """
    waiting = sorted(rungs, key=lambda rung: rung.first)
    reach = 0
    chosen: list[AnyLink] = []
    while True:
        best = max(
            (rung for rung in waiting if rung.first <= reach + 1),
            key=lambda rung: rung.last,
            default=None,
        )
        if best is None or best.last <= reach:
            return tuple(chosen)
        chosen.append(best)
        reach = best.last
