"""Objects with noise inside: a copy of one would use the same noise twice."""

from __future__ import annotations

import os
from typing import NoReturn, Self, SupportsIndex


class NotCopied:
    """Base of objects that hold noise or a budget, which a second object must not use again.

    Two releases with the same noise give the exact difference of what they release. So copying and
    pickling raise ``TypeError``, and `_require_own_process` raises in a forked child.
    """

    _process: int

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """The object, which notes the process that made it."""
        del args, kwargs
        made = super().__new__(cls)
        object.__setattr__(made, "_process", os.getpid())
        return made

    def _require_own_process(self) -> None:
        if os.getpid() != self._process:
            raise RuntimeError(
                f"{type(self).__name__} works in the process that made it only: a forked process "
                "would use the same noise again"
            )

    def _refuse(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} cannot be copied or pickled: a copy would use the same noise "
            "again"
        )

    def __copy__(self) -> NoReturn:
        """Raise ``TypeError``."""
        self._refuse()

    def __deepcopy__(self, memo: object) -> NoReturn:
        """Raise ``TypeError``."""
        self._refuse()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Raise ``TypeError``."""
        self._refuse()
