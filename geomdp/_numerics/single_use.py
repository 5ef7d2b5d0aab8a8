"""Base class of objects that hold noise or a privacy budget and must not be copied."""

from __future__ import annotations

import os
from typing import NoReturn, Self, SupportsIndex


class NotCopied:
    """Base class of objects that may use their noise or privacy budget only once.

    A copy would hold the same noise. If two answers contain the same noise, their difference is the
    exact difference of the true answers. A copy would also spend the same budget again. Copying and
    pickling therefore raise ``TypeError``. A forked child process also holds a copy of the object,
    and `_require_own_process` raises ``RuntimeError`` in the child process.
    """

    _process: int

    def __new__(cls, *args: object, **kwargs: object) -> Self:
        """Create the object and store the number of the current process."""
        del args, kwargs
        made = super().__new__(cls)
        object.__setattr__(made, "_process", os.getpid())
        return made

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
        """Raise ``TypeError``."""
        self._refuse()

    def __deepcopy__(self, memo: object) -> NoReturn:
        """Raise ``TypeError``."""
        self._refuse()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        """Raise ``TypeError``."""
        self._refuse()
