"""Compute a public array once. Later calls with the same inputs read the array from disk."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from geomdp._typing import FloatArray
from geomdp.cache.files import CacheFiles

#: An input on which the result of a computation depends.
Input: TypeAlias = str | float | tuple[int, ...] | npt.NDArray[Any]


def recalled(
    kind: str,
    inputs: tuple[Input, ...],
    shape: tuple[int, ...],
    compute: Callable[[], FloatArray],
    *,
    check: Callable[[FloatArray], bool],
) -> FloatArray:
    """The array that `compute` returns, read from the user's cache if it was computed before.

    Cache only results of public inputs: nothing that depends on records, and no noise of a release.
    Anyone who can write to the folder can change its arrays. So `check` decides whether a stored
    array is used. It must refuse an array that would weaken a privacy claim, make a stated error
    wrong, or make the noise clearly larger than the computed array would. Numbers of which a cheap
    check can't tell this are computed each time.

    Parameters
    ----------
    kind : str
        Name of the computation, in letters and hyphens.
    inputs : tuple of str, float, tuple of int or array
        Everything that the result depends on, besides the code.
    shape : tuple of int
        Shape of the result; a stored array of another shape is not used.
    compute : callable
        Function without arguments that returns a finite float64 array of that shape. The array must
        be the same in every process.
    check : callable
        Says of a stored array, which is finite and has the given shape, whether it can be used. An
        arithmetic error in it counts as no. It is not called for a computed array.

    Returns
    -------
    array of the given shape
        The stored array or the computed one.

    Examples
    --------
    >>> import numpy as np
    >>> from geomdp.cache import recalled
    >>> def squares():
    ...     return np.arange(4.0) ** 2
    ...
    >>> def right(stored):
    ...     return bool((stored[:2] == [0, 1]).all())
    ...
    >>> recalled("example-squares", inputs=(4,), shape=(4,), compute=squares, check=right).tolist()
    [0.0, 1.0, 4.0, 9.0]
    """
    files = CacheFiles.of_user()
    name = f"{kind}-{_digest(inputs)}"
    stored = files.read(name, shape)
    if stored is not None:
        if _passes(stored, check):
            return stored
        files.ignore(name, "the array is not a result of this computation")
    array = np.asarray(compute(), dtype=np.float64)
    if np.isfinite(array).all():
        files.write(name, array)
    return array


def _passes(stored: FloatArray, check: Callable[[FloatArray], bool]) -> bool:
    """Whether `check` accepts a stored array, which anyone can have written."""
    try:
        with np.errstate(all="ignore"):
            return check(stored)
    except (ArithmeticError, np.linalg.LinAlgError):
        return False


def _digest(inputs: tuple[Input, ...]) -> str:
    """Hash of the inputs, of all code of `geomdp` and of the versions of numpy and scipy."""
    digest = hashlib.sha256(_code().encode())
    for part in inputs:
        if isinstance(part, np.ndarray):
            digest.update(f"array {part.dtype.str} {part.shape}".encode())
            digest.update(np.ascontiguousarray(part).tobytes())
        else:
            digest.update(f"{type(part).__name__} {part!r};".encode())
    return digest.hexdigest()[:40]


@functools.cache
def _code() -> str:
    """Hash of all modules of `geomdp` and of the versions of numpy and scipy."""
    digest = hashlib.sha256(f"numpy {np.__version__} scipy {scipy.__version__}".encode())
    root = Path(__file__).parents[1]
    for path in sorted(root.rglob("*.py")):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.hexdigest()
