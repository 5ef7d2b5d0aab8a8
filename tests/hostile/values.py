"""Values that no argument of this library may be, by the kind of argument."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

#: What is no number at all.
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
#: Numbers that are out of every range.
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
#: Numbers that some arguments can be, at the ends of what floats hold.
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
#: What a whole number cannot be, besides the above.
NOT_WHOLE: dict[str, Any] = {
    "half": 1.5,
    "whole float": 2.0,
    "numpy float": np.float64(3),
    "fraction": Fraction(3, 2),
}
