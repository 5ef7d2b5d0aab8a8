"""Import numba for this package, and log the first compilation in each process."""

from __future__ import annotations

import logging

import numba as numba
from numba.core.event import Event, Listener, register

logger = logging.getLogger("geomdp.compilation")


class _Announcement(Listener):
    """Logs one line before the first compilation; nothing if all functions are in numba's cache."""

    def __init__(self) -> None:
        self._said = False

    def on_start(self, event: Event) -> None:
        del event
        if not self._said:
            self._said = True
            logger.info("compiling, once in this environment: later runs use the compiled files")

    def on_end(self, event: Event) -> None:
        del event


register("numba:compile", _Announcement())


@numba.njit(cache=True)
def copy_into(target, source):  # type: ignore[no-untyped-def]
    """target[:] = source (n,), as a loop: numba needs seconds to compile the assignment."""
    for i in range(len(target)):
        target[i] = source[i]
