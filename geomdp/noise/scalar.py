"""Noise on single released numbers: by NumPy, or by OpenDP's finite-arithmetic samplers."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import positive
from geomdp.privacy.guarantees import FLOAT64_CAVEAT


class ScalarNoise(Protocol):
    """Adds noise to one released number or index; the noise itself never leaves the object."""

    def laplace(self, value: float, scale: float) -> float:
        """Return `value` + Lap(scale), density exp(-|x| / scale) / (2 scale)."""

    def laplace_many(self, values: FloatArray, scale: float) -> FloatArray:
        """Return `values` (k,) + independent Lap(scale) draws."""

    def noisy_argmax(self, scores: FloatArray, scale: float) -> int:
        """An index drawn with probability growing exponentially in `scores` (k,) (GEN-3).

        eps-DP if `scale` is 2 / eps times the sensitivity of a score.
        """

    @property
    def arithmetic(self) -> str:
        """The caveat about arithmetic in a guarantee that uses this noise (SAM-6)."""


class GeneratorNoise:
    """Laplace and Gumbel noise by NumPy in float64: fast, private in real arithmetic only (SAM-6).

    Parameters
    ----------
    rng : Generator, int or None
        Source of randomness; None for operating-system entropy.
    """

    def __init__(self, rng: RandomState = None) -> None:
        self._rng = np.random.default_rng(rng)

    @property
    def arithmetic(self) -> str:
        """The caveat about arithmetic in a guarantee that uses this noise (SAM-6)."""
        return FLOAT64_CAVEAT

    def laplace(self, value: float, scale: float) -> float:
        """Return `value` + Lap(scale)."""
        return value + float(self._rng.laplace(0.0, scale))

    def laplace_many(self, values: FloatArray, scale: float) -> FloatArray:
        """Return `values` (k,) + independent Lap(scale) draws."""
        return np.asarray(values + self._rng.laplace(0.0, scale, size=len(values)))

    def noisy_argmax(self, scores: FloatArray, scale: float) -> int:
        """Exponential mechanism by Gumbel-max: Pr[i] proportional to exp(scores[i] / scale)."""
        return int(np.argmax(scores + self._rng.gumbel(0.0, scale, size=len(scores))))


class SecureNoise:
    """Laplace and noisy-max by OpenDP, whose samplers hold their guarantee in finite arithmetic.

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
        self._argmax: dict[float, Any] = {}

    @property
    def arithmetic(self) -> str:
        """The caveat about arithmetic in a guarantee that uses this noise (SAM-6)."""
        return "noise by OpenDP's finite-arithmetic samplers; true answers computed in float64"

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
        noisy = self._vector[scale](values.tolist())
        return np.array(noisy, dtype=np.float64)

    def noisy_argmax(self, scores: FloatArray, scale: float) -> int:
        """Report noisy max with exponential noise, which is permute-and-flip.

        As private as the exponential mechanism at the same scale, and never less accurate.
        """
        if scale not in self._argmax:
            dp = self._dp
            domain = dp.vector_domain(dp.atom_domain(T=float, nan=False))
            space = domain, dp.linf_distance(T=float), dp.max_divergence()
            self._argmax[scale] = dp.m.make_noisy_max(*space, scale=positive(scale, "scale"))
        return int(self._argmax[scale](scores.tolist()))


def scalar_noise(rng: RandomState, secure: bool) -> ScalarNoise:
    """The noise that a constructor's `rng` and `secure` ask for.

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
