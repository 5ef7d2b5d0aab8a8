"""Array and random-generator types used in signatures across the library."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: What the outermost public calls accept: a generator, a seed, or None for system entropy.
RandomState = np.random.Generator | int | None
