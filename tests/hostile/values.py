"""Bad and extreme values for arguments of the library, by the kind of argument."""

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

#: Arrays that are refused in place of a number. Some arguments take an array of these.
ARRAYS: list[Any] = [np.array([1.0, 2.0]), np.array([]), np.array([1.0])]
#: Values that are refused in place of a number and of an array.
NEITHER: list[Any] = [
    None, True, np.True_, "1", b"1", 1 + 1j, [[1, 2], [3]], [], np.array([None, "a"], dtype=object),
    {"a": 1}, {1}, math.sqrt, float, datetime.date(2020, 1, 1), Decimal("nan"), ...,
]  # fmt: skip
#: Values that are refused in place of a number.
NO_NUMBERS: list[Any] = [*NEITHER, [1], *ARRAYS]
#: Numbers that are refused in place of a finite number above 0.
OUT_OF_RANGE: list[Any] = [
    math.nan, math.inf, -math.inf, np.float64("nan"), np.float32("inf"), 0, -0.0, -1, -5e-324,
    Fraction(-1, 3), -(10**400),
]  # fmt: skip
#: Very small and very large floats and fractions. Any of them may be refused.
ENDS: list[Any] = [5e-324, 1.7976931348623157e308, Fraction(1, 10**400)]
#: The same, and numbers beyond the range of floats or of 64-bit integers.
EXTREME: list[Any] = [
    *ENDS, 2.0**-1022, 10**400, 2**63, np.uint64(2**64 - 1), Fraction(10**400),
]  # fmt: skip
#: Numbers that are refused in place of a whole number, besides those in `OUT_OF_RANGE`.
NOT_WHOLE: list[Any] = [1.5, 2.0, np.float64(3), Fraction(3, 2)]
#: Values that are refused in place of an object of a class of this library.
NO_OBJECTS: list[Any] = [*NO_NUMBERS, *OUT_OF_RANGE, *EXTREME, 1, 1.5, "", "ab", [None], {"": [1]}]


def no_arrays(good: Any) -> list[Any]:
    """Values that are refused in place of the finite array `good`: other axes, entries or types."""
    finite = np.asarray(good, dtype=np.float64)
    spoilt = [finite.copy() for _ in range(3)]
    for array, entry in zip(spoilt, (math.nan, math.inf, -math.inf), strict=True):
        array.flat[-1] = entry
    return [
        *spoilt, *(finite.astype(kind) for kind in ("c16", "U2", "S2")),
        *(np.zeros(finite.shape, kind) for kind in ("M8[s]", "m8[s]")),
        *(np.full(finite.shape, entry, dtype=object) for entry in (None, "ab")),
        *(np.zeros((size,) * axes) for axes in range(5) if axes != finite.ndim for size in (0, 2)),
        [[1.0, 2.0], [3.0]], [[1.0], []], [10**400], [None], 0.5, "ab", *NEITHER,
    ]  # fmt: skip


def refused_of(kind: str, good: Any) -> list[Any]:
    """Values that an argument of this kind must refuse; `good` is a value that is accepted."""
    if kind == "array":
        return no_arrays(good)
    others = {"whole": NOT_WHOLE, "share": [1, 1.0, 2.0, 10**400]}.get(kind, [])
    return NO_OBJECTS if kind == "object" else [*NO_NUMBERS, *OUT_OF_RANGE, *others]
