"""Noise on single released numbers: from a generator, or from OpenDP's hardened samplers."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import positive
from geomdp.privacy.guarantees import FLOAT64_CAVEAT


class ScalarNoise(Protocol):
    """Adds independent Laplace noise to numbers; the noise itself never leaves the object."""

    def laplace(self, value: float, scale: float) -> float:
        """Return `value` + Lap(scale), density exp(-|x| / scale) / (2 scale)."""

    def laplace_many(self, values: FloatArray, scale: float) -> FloatArray:
        """Return `values` (k,) + independent Lap(scale) draws."""

    @property
    def arithmetic(self) -> str:
        """The caveat a guarantee carries about this source (SAM-6)."""


class GeneratorNoise:
    """Laplace noise by NumPy in float64: fast, private in real arithmetic only (SAM-6).

    Parameters
    ----------
    rng : Generator, int or None
        Source of randomness; None for operating-system entropy.
    """

    def __init__(self, rng: RandomState = None) -> None:
        self._rng = np.random.default_rng(rng)

    @property
    def arithmetic(self) -> str:
        """The caveat a guarantee carries about this source (SAM-6)."""
        return FLOAT64_CAVEAT

    def laplace(self, value: float, scale: float) -> float:
        """Return `value` + Lap(scale)."""
        return value + float(self._rng.laplace(0.0, scale))

    def laplace_many(self, values: FloatArray, scale: float) -> FloatArray:
        """Return `values` (k,) + independent Lap(scale) draws."""
        return np.asarray(values + self._rng.laplace(0.0, scale, size=len(values)))


class SecureNoise:
    """Laplace noise by OpenDP, whose samplers hold their guarantee in finite arithmetic.

    Takes no seed: its randomness is the operating system's. Needs the extra `secure`.

    Raises
    ------
    ImportError
        If OpenDP is not installed; names the extra.
    """

    def __init__(self) -> None:
        try:
            import opendp.prelude as dp
        except ImportError as error:
            raise ImportError("secure noise needs OpenDP: pip install 'geomdp[secure]'") from error
        dp.enable_features("contrib")
        self._dp = dp
        self._scalar: dict[float, Any] = {}
        self._vector: dict[float, Any] = {}

    @property
    def arithmetic(self) -> str:
        """The caveat a guarantee carries about this source (SAM-6)."""
        return "scalar noise by OpenDP, in finite arithmetic"

    def laplace(self, value: float, scale: float) -> float:
        """Return `value` + Lap(scale), rounded to OpenDP's grid."""
        if scale not in self._scalar:
            dp = self._dp
            space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
            self._scalar[scale] = dp.m.make_laplace(*space, scale=positive(scale, "scale"))
        return float(self._scalar[scale](float(value)))

    def laplace_many(self, values: FloatArray, scale: float) -> FloatArray:
        """Return `values` (k,) + independent Lap(scale) draws, rounded to OpenDP's grid."""
        if scale not in self._vector:
            dp = self._dp
            domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
            space = domain, dp.l1_distance(T=float)
            self._vector[scale] = dp.m.make_laplace(*space, scale=positive(scale, "scale"))
        noisy = self._vector[scale]([float(value) for value in values])
        return np.array(noisy, dtype=np.float64)


def scalar_noise(rng: RandomState, secure: bool) -> ScalarNoise:
    """The source a constructor's `rng` and `secure` ask for.

    Raises
    ------
    ValueError
        If a seed or generator is combined with ``secure=True``: a secure source takes none.
    """
    if not secure:
        return GeneratorNoise(rng)
    if rng is not None:
        raise ValueError(f"rng must be None with secure=True, got {type(rng).__name__}")
    return SecureNoise()
