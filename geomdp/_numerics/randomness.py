"""Public and secret randomness: the seed that most parts share, and noise that is used once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn, Self

#: Seed of most simulations, random starts and random maps that depend on public objects only
#: (bodies, workloads, n, epsilon), so that repeated calls agree; never of the noise of a release.
#: It is the name of the library in ASCII, because users often draw data with seed 0.
PUBLIC_SEED = int.from_bytes(b"geomdp", "big")


# Objects that hold noise or a privacy budget: one use at a time, and no copies


class Turn:
    """A lock: other threads wait, and its own is refused, which would pay two questions once."""

    def __init__(self) -> None:
        self._process = os.getpid()
        self._lock = threading.RLock()  # only the thread that holds it can take it again
        self._taken = False

    def __reduce__(self) -> tuple[type[Turn], tuple[()]]:
        return Turn, ()

    @contextmanager
    def take(self, name: str) -> Iterator[None]:
        """Wait for other threads. ``RuntimeError`` if this thread is using `name` already."""
        if os.getpid() != self._process:  # a thread of the parent process may hold the lock
            vars(self).update(vars(Turn()))
        with self._lock:
            if self._taken:
                raise RuntimeError(
                    f"{name} is in use by this thread: code that it calls, such as a query, must "
                    "not use it again"
                )
            self._taken = True
            try:
                yield
            finally:
                self._taken = False


class NotCopied:
    """Base class of objects that may use their noise or privacy budget only once: two answers with
    the same noise show the exact difference of the true ones. All uses are in `_alone`.
    """

    _process: int
    _turn: Turn

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        del args, kwargs
        made = super().__new__(cls)
        object.__setattr__(made, "_process", os.getpid())
        object.__setattr__(made, "_turn", Turn())
        return made

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One use by one thread; ``RuntimeError`` in a forked process and for a nested use."""
        self._require_own_process()
        with self._turn.take(type(self).__name__):
            yield

    def _require_own_process(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                f"{type(self).__name__} must be used in the process that created it: a forked "
                "process would use the same noise again"
            )

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} cannot be copied or pickled: a copy would use the same noise "
            "again"
        )

    __copy__ = __deepcopy__ = __reduce_ex__ = _refuse
