"""Public and secret randomness: the seed that most parts share, and noise that is used once."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn, Self, SupportsIndex

#: Seed of most simulations, random starts and random maps that depend on public objects only
#: (bodies, workloads, n, epsilon). The fixed seed makes repeated calls give the same result. The
#: noise of a release never comes from this seed. The number is the name of the library in ASCII. It
#: is not 0, because users often draw data with seed 0, and random directions must not equal these
#: data.
PUBLIC_SEED = int.from_bytes(b"geomdp", "big")


# Objects that hold noise or a privacy budget: one use at a time, and no copies


class Turn:
    """A lock for which other threads wait, and which refuses the thread that holds it.

    If a query could ask again while it is evaluated, both questions would be paid once.
    """

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
    """Base class of objects that may use their noise or privacy budget only once.

    Two answers with the same noise show the exact difference of the true answers. So copying and
    pickling raise ``TypeError``, use in a forked process raises ``RuntimeError``, and all uses are
    in `_alone`.
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

    def _refuse(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} cannot be copied or pickled: a copy would use the same noise "
            "again"
        )

    def __copy__(self) -> NoReturn:
        self._refuse()

    def __deepcopy__(self, memo: object) -> NoReturn:
        self._refuse()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        self._refuse()
