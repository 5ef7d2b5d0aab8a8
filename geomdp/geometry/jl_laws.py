"""Distributions of Johnson-Lindenstrauss maps, as parameters of mechanisms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from geomdp._typing import FloatArray, RandomState
from geomdp.geometry.jl import checked_density, jl_map, rademacher_jl_map, sparse_jl_map


@runtime_checkable
class JLLaw(Protocol):
    """The distribution of a random matrix A (k, m) with independent subgaussian rows.

    E A_i A_i^T = I / k for every row A_i, so E||A x||_2^2 = ||x||_2^2 (JL-D8).

    Examples
    --------
    >>> import geomdp as gd
    >>> isinstance(gd.geometry.RademacherMap(), gd.geometry.JLLaw)
    True
    """

    def draw(self, k: int, m: int, rng: RandomState = None) -> FloatArray:
        """Draw one matrix A, an array (k, m)."""


@dataclass(frozen=True)
class GaussianMap:
    """Independent N(0, 1/k) entries: see `jl_map`.

    Only for this law does the library give the constant of the distortion bound (JL-T9).

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.geometry.GaussianMap().draw(2, 3, rng=0).shape
    (2, 3)
    """

    def draw(self, k: int, m: int, rng: RandomState = None) -> FloatArray:
        """Draw one matrix A, an array (k, m)."""
        return jl_map(k, m, rng)


@dataclass(frozen=True)
class RademacherMap:
    """Independent entries +1/sqrt(k) or -1/sqrt(k): see `rademacher_jl_map`.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.geometry.RademacherMap().draw(4, 1, rng=0).ravel().tolist()
    [0.5, 0.5, 0.5, -0.5]
    """

    def draw(self, k: int, m: int, rng: RandomState = None) -> FloatArray:
        """Draw one matrix A, an array (k, m)."""
        return rademacher_jl_map(k, m, rng)


@dataclass(frozen=True)
class SparseMap:
    """Independent entries: 0 with probability 1 - q, else +-1/sqrt(q k); see `sparse_jl_map`.

    Parameters
    ----------
    density : float
        q, above 0 and at most 1. Any other q raises ``ValueError``.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.geometry.SparseMap(density=0.1).draw(50, 200, rng=0).shape
    (50, 200)
    """

    density: float = 1 / 3

    def __post_init__(self) -> None:
        checked_density(self.density)

    def draw(self, k: int, m: int, rng: RandomState = None) -> FloatArray:
        """Draw one matrix A, an array (k, m)."""
        return sparse_jl_map(k, m, rng, density=self.density)
