"""Checks of arguments. Most raise ``ValueError`` with the valid range and the offending value."""

from __future__ import annotations

import math
from collections.abc import Iterable
from numbers import Real
from typing import TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from geomdp._typing import FloatArray, IntArray

#: Largest whole number that `whole` accepts by default: the product of three is within float64.
LARGEST_WHOLE = 1 << 256
#: Largest modulus of an entry that `whole_array` accepts. float64 holds all whole numbers up to it.
LARGEST_INDEX = 2.0**53
#: Kinds of dtype that are real numbers: booleans, whole numbers, floats, and Python objects.
NUMERIC = "biufO"

Item = TypeVar("Item")


def positive(value: float, name: str) -> float:
    """Return `value` as a float; ``ValueError`` if it is not finite or not above 0."""
    number = real_number(value)
    if not (math.isfinite(number) and number > 0):
        raise ValueError(f"{name} must be a finite number above 0, got {_short(value)}")
    return number


#: Largest confidence of intervals that are computed from public draws. It needs 20 million draws.
MOST_CONFIDENCE = 0.999999


def probability(value: float, name: str) -> float:
    """Return `value` as a float; ``ValueError`` if it is not above 0 and below 1."""
    number = real_number(value)
    if not 0 < number < 1:
        raise ValueError(f"{name} must be above 0 and below 1, got {_short(value)}")
    return number


def real_number(value: object) -> float:
    """`value` as a float; NaN for anything but a real number, for example text or a boolean."""
    # NumPy counts durations among the whole numbers.
    if isinstance(value, bool | np.timedelta64) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:  # a whole number whose modulus is too large for float64
        return -math.inf if value < 0 else math.inf


def universe_size(value: int) -> int:
    """The number of elements as an int, which may be above any float; ``ValueError`` below 2."""
    if is_whole(value) and value >= 2:
        return int(value)
    raise ValueError(f"size must be a whole number, at least 2, got {_short(value)}")


def whole(value: int, name: str, minimum: int = 1, maximum: int | None = None) -> int:
    """`value` as an int; ``ValueError`` outside `minimum` to `maximum` (or `LARGEST_WHOLE`)."""
    upper = "" if maximum is None else f" and at most {maximum}"
    if not is_whole(value) or value < minimum or (maximum is not None and value > maximum):
        raise ValueError(
            f"{name} must be a whole number, at least {minimum}{upper}, got {_short(value)}"
        )
    if maximum is None and value > LARGEST_WHOLE:
        raise ValueError(f"{name} must be at most 2^256, got a number of {value.bit_length()} bits")
    return int(value)


def is_whole(value: object) -> TypeGuard[int | np.integer]:
    """Whether `value` is a whole number; booleans and durations of NumPy do not count."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def _short(value: object) -> str:
    """`value` as text for a message; Python refuses to print integers of more than 4300 digits."""
    if isinstance(value, int) and value.bit_length() > LARGEST_WHOLE.bit_length():
        return f"a number of {value.bit_length()} bits"
    return repr(value)


def require_type(value: object, kind: type, name: str) -> None:
    """Raise ``ValueError`` if `value` is not an instance of the class or protocol `kind`."""
    if not isinstance(value, kind):
        article = "an" if kind.__name__[0] in "AEIOUn" else "a"
        raise ValueError(f"{name} must be {article} {kind.__name__}, got {type(value).__name__}")


def finite_array(values: npt.ArrayLike, name: str, ndim: int) -> FloatArray:
    """Return `values` as a C-contiguous float64 array of `ndim` axes without NaN or infinity."""
    try:
        given = np.asarray(values)
        if given.dtype.kind not in NUMERIC:
            raise ValueError(f"{name} must be numeric, got dtype {given.dtype}")
        array = np.ascontiguousarray(given, dtype=np.float64)
    except OverflowError as error:
        raise ValueError(f"{name} must be finite, got a number beyond float64") from error
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numeric, got {type(values).__name__}") from error
    if given.ndim != ndim:
        raise ValueError(f"{name} must have {ndim} axes, got shape {given.shape}")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise ValueError(f"{name} must be finite, got {array[where]} at index {where}")
    return array


def whole_array(values: npt.ArrayLike, name: str, ndim: int) -> IntArray:
    """`values` as int64 of `ndim` axes; ``ValueError`` if not whole or of modulus above 2^53."""
    array = finite_array(values, name, ndim)
    outside = (array != np.rint(array)) | (np.abs(array) > LARGEST_INDEX)
    if outside.any():
        where = tuple(int(i) for i in np.argwhere(outside)[0])
        raise ValueError(
            f"{name} must hold whole numbers up to 2^53, got {array[where]} at index {where}"
        )
    return array.astype(np.int64)


def listed(values: Iterable[Item], name: str) -> tuple[Item, ...]:
    """Return `values` as a tuple; ``ValueError`` if it is not iterable."""
    try:
        return tuple(values)
    except TypeError as error:
        raise ValueError(f"{name} must be a sequence, got {type(values).__name__}") from error


def batch(values: npt.ArrayLike, dimension: int, name: str) -> FloatArray:
    """Return `values` as a finite (b, dimension) float64 array; the first axis is the batch."""
    array = finite_array(values, name, ndim=2)
    if array.shape[1] != dimension:
        raise ValueError(f"{name} must have shape (b, {dimension}), got {array.shape}")
    return array


def vector(values: npt.ArrayLike, dimension: int, name: str) -> FloatArray:
    """Return `values` as a finite (dimension,) float64 array."""
    array = finite_array(values, name, ndim=1)
    if array.shape[0] != dimension:
        raise ValueError(f"{name} must have shape ({dimension},), got {array.shape}")
    return array


def plural(count: int, noun: str) -> str:
    """A number with its noun, such as "1 spend" or "2 queries"."""
    many = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{count} {noun if count == 1 else many}"
