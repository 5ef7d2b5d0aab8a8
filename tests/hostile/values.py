"""Bad and extreme values for arguments of the library, in four groups."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

#: Values that are refused in place of a number.
NO_NUMBERS: dict[str, Any] = {
    "None": None,
    "true": True,
    "numpy true": np.True_,
    "text": "1",
    "bytes": b"1",
    "complex": 1 + 1j,
    "list": [1],
    "nested list": [[1, 2], [3]],
    "empty list": [],
    "array": np.array([1.0, 2.0]),
    "empty array": np.array([]),
    "array of one": np.array([1.0]),
    "objects": np.array([None, "a"], dtype=object),
    "dict": {"a": 1},
    "set": {1},
    "function": math.sqrt,
    "class": float,
    "date": datetime.date(2020, 1, 1),
    "decimal": Decimal("nan"),
    "ellipsis": ...,
}
#: Numbers that are refused in place of a finite number above 0.
OUT_OF_RANGE: dict[str, Any] = {
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "numpy nan": np.float64("nan"),
    "numpy inf": np.float32("inf"),
    "zero": 0,
    "minus zero": -0.0,
    "negative": -1,
    "negative subnormal": -5e-324,
    "negative fraction": Fraction(-1, 3),
    "huge negative": -(10**400),
}
#: Very small and very large numbers, some beyond the range of floats. Any of them may be refused.
EXTREME: dict[str, Any] = {
    "subnormal": 5e-324,
    "smallest normal": 2.0**-1022,
    "largest": 1.7976931348623157e308,
    "huge whole": 10**400,
    "2^63": 2**63,
    "2^64 - 1": np.uint64(2**64 - 1),
    "tiny fraction": Fraction(1, 10**400),
    "huge fraction": Fraction(10**400),
}
#: Numbers that are refused in place of a whole number, besides those in `OUT_OF_RANGE`.
NOT_WHOLE: dict[str, Any] = {
    "half": 1.5,
    "whole float": 2.0,
    "numpy float": np.float64(3),
    "fraction": Fraction(3, 2),
}
