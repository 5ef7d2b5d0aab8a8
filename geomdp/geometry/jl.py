"""Johnson-Lindenstrauss maps: random matrices that nearly preserve distances in bounded sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from geomdp._typing import FloatArray, RandomState
from geomdp._validation import positive, whole


def jl_map(k: int, m: int, rng: RandomState = None) -> FloatArray:
    """Gaussian map A: R^m -> R^k with independent N(0, 1/k) entries, an array (k, m).

    E||A x||_2^2 = ||x||_2^2 for every x, and for every bounded set S of Gaussian width w(S)

        E sup over x, y in S of | ||A (x - y)|| - ||x - y|| |  <=  6.5 w(S) / sqrt(k).

    E w(A S) = (mu_k / sqrt(k)) w(S) for the mean norm mu_k of a Gaussian vector in R^k. Source:
    Nikolov (2022), Definition 8, Theorem 9 and Lemma 12; JL-D8, JL-T9, JL-L12.

    Parameters
    ----------
    k, m : int
        Numbers of rows and of columns, at least 1.
    rng : numpy Generator, int or None
        Source of the entries, independent of all records. The map can then be published.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> A = gd.jl_map(k=400, m=1000, rng=0)
    >>> x = np.ones(1000) / np.sqrt(1000)
    >>> A.shape, round(float(np.linalg.norm(A @ x)), 1)
    ((400, 1000), 1.0)
    """
    k, m = whole(k, "k"), whole(m, "m")
    return np.asarray(np.random.default_rng(rng).standard_normal((k, m)) / np.sqrt(k))


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
    """Independent N(0, 1/k) entries, for which `jl_map` gives a distortion bound (JL-T9).

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.geometry.GaussianMap().draw(2, 3, rng=0).shape
    (2, 3)
    """

    def draw(self, k: int, m: int, rng: RandomState = None) -> FloatArray:
        return jl_map(k, m, rng)


@dataclass(frozen=True)
class RademacherMap:
    """Independent entries, +1/sqrt(k) or -1/sqrt(k) equally likely.

    The distortion bound of `jl_map` holds with another constant in place of 6.5 (JL-D8). The closed
    form for the width of the image does not hold in general.

    Examples
    --------
    >>> import geomdp as gd
    >>> gd.geometry.RademacherMap().draw(4, 1, rng=0).ravel().tolist()
    [0.5, 0.5, 0.5, -0.5]
    """

    def draw(self, k: int, m: int, rng: RandomState = None) -> FloatArray:
        k, m = whole(k, "k"), whole(m, "m")
        signs = 2.0 * np.random.default_rng(rng).integers(2, size=(k, m)) - 1
        return np.asarray(signs / np.sqrt(k))


@dataclass(frozen=True)
class SparseMap:
    """Independent entries: +1/sqrt(q k) or -1/sqrt(q k) with probability q / 2 each, else 0.

    The distortion bound of `jl_map` holds with a constant of order 1/q in place of 6.5. For
    q = 1/3, an entry has the fourth moment of an N(0, 1/k) entry. If x has few large entries, the
    norm of A x varies more for a smaller q. Source: Achlioptas (2003); JL-D8.

    Parameters
    ----------
    density : float
        Expected share q of entries that are not 0, above 0 and at most 1, else ``ValueError``.

    Examples
    --------
    >>> import numpy as np
    >>> import geomdp as gd
    >>> A = gd.geometry.SparseMap().draw(k=3, m=1000, rng=0)
    >>> np.unique(A).tolist(), round(float(np.mean(A != 0)), 2)
    ([-1.0, 0.0, 1.0], 0.34)
    """

    density: float = 1 / 3

    def __post_init__(self) -> None:
        if positive(self.density, "density") > 1:
            raise ValueError(f"density must be above 0 and at most 1, got {self.density!r}")

    def draw(self, k: int, m: int, rng: RandomState = None) -> FloatArray:
        k, m, q = whole(k, "k"), whole(m, "m"), positive(self.density, "density")
        generator = np.random.default_rng(rng)
        signs = 2.0 * generator.integers(2, size=(k, m)) - 1
        kept = generator.random((k, m)) < q
        return np.asarray(np.where(kept, signs, 0.0) / np.sqrt(q * k))
