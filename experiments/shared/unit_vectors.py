"""Records on the unit sphere: uniform on it, or concentrated near few directions."""

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
    """Gaussian vectors divided by their lengths, as the rows of an array (count, d).

    Before the division, entry i = 0, 1, ... of a vector has standard deviation 1, or 2^-i for the
    decaying spectrum.
    """
    decay = 2.0 ** -np.arange(d) if spectrum is Spectrum.DECAYING else 1.0
    normal = rng.standard_normal((count, d)) * decay
    return np.asarray(normal / np.linalg.norm(normal, axis=1, keepdims=True))
