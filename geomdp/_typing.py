"""Array and random-generator types used in signatures across the library."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: The `rng` argument of public functions: a generator, a seed, or None to take a seed from the
#: operating system's entropy.
RandomState = np.random.Generator | int | None
