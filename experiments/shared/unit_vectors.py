"""Records on the unit sphere: uniform on it, or concentrated near few directions."""

from __future__ import annotations

import enum

import numpy as np
import numpy.typing as npt


class Spectrum(enum.StrEnum):
    """How the records are spread over directions."""

    ISOTROPIC = "isotropic"
    DECAYING = "decaying"


def unit_vectors(
    spectrum: Spectrum, count: int, d: int, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Directions (count, d) of Gaussian vectors. Entry i has deviation 1, or 2^-i if decaying."""
    decay = 2.0 ** -np.arange(d) if spectrum is Spectrum.DECAYING else 1.0
    normal = rng.standard_normal((count, d)) * decay
    return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True))
