"""Measures of error: a norm of answer differences, and how far apart a packing must be in it.

Let Y be the norm of M(X) - Q(X) for a mechanism of error at most alpha. Markov's inequality gives
Y < c alpha / 2 with probability at least p, where c is the *separation factor*. Balls of that
radius around answers that are c alpha apart are disjoint, so with M data sets within r changes of
each other, group privacy gives 1 >= p + (M - 1) p e^(-epsilon r): a contradiction as soon as

    epsilon r < ln(M - 1) + ln(p / (1 - p))                                          (JL-L6).

A larger c raises the odds p / (1 - p) and asks for more separation; the default makes them 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import real_number


class Metric(Protocol):
    """How the error of a mechanism is measured."""

    @property
    def name(self) -> str:
        """The error in words."""

    @property
    def separation(self) -> float:
        """Factor c: the answers of a packing are at least c alpha apart."""

    @property
    def log_odds(self) -> float:
        """ln(p / (1 - p)) for the probability p of an error below c alpha / 2."""

    def norm(self, differences: FloatArray) -> FloatArray:
        """Norms (b,) of answer differences (b, k), normalised so that alpha is per query."""


@dataclass(frozen=True)
class MeanL2:
    """Error max over X of E ||M(X) - Q(X)||_2 / sqrt(k): err^2 of JL-DEF.

    Parameters
    ----------
    separation : float
        Factor c above 2. E Y <= alpha, so Y < c alpha / 2 with probability p >= 1 - 2 / c: odds
        c / 2 - 1, which are 1 at c = 4.
    """

    separation: float = 4.0

    def __post_init__(self) -> None:
        _check_separation(self.separation)

    @property
    def name(self) -> str:
        """The error in words."""
        return "mean l2 error per query"

    @property
    def log_odds(self) -> float:
        """ln(c / 2 - 1)."""
        return math.log(self.separation / 2 - 1)

    def norm(self, differences: FloatArray) -> FloatArray:
        """Euclidean norms over sqrt(k) of the rows of `differences` (b, k): (b,)."""
        return _root_mean_squares(differences)


@dataclass(frozen=True)
class RMS:
    """Error max over X of (E ||M(X) - Q(X)||_2^2 / k)^(1/2), the root mean squared error (JL-DEF).

    Parameters
    ----------
    separation : float
        Factor c above 2. E Y^2 <= alpha^2, so Y < c alpha / 2 with probability p >= 1 - 4 / c^2:
        odds c^2 / 4 - 1, which are 1 at c = 2 sqrt(2).
    """

    separation: float = 2 * math.sqrt(2)

    def __post_init__(self) -> None:
        _check_separation(self.separation)

    @property
    def name(self) -> str:
        """The error in words."""
        return "root mean squared error per query"

    @property
    def log_odds(self) -> float:
        """ln(c^2 / 4 - 1), rounded down: 0 at c = 2 sqrt(2), where floating point gives 2e-16."""
        odds = self.separation**2 / 4 - 1
        return math.log(odds) if abs(odds - 1) > 1e-12 else min(0.0, math.log(odds))

    def norm(self, differences: FloatArray) -> FloatArray:
        """Euclidean norms over sqrt(k) of the rows of `differences` (b, k): (b,)."""
        return _root_mean_squares(differences)


@dataclass(frozen=True)
class WorstCase:
    """Error max over X of E ||M(X) - Q(X)||_inf: err^inf of JL-DEF.

    Parameters
    ----------
    separation : float
        Factor c above 2; odds c / 2 - 1 as for `MeanL2`.
    """

    separation: float = 4.0

    def __post_init__(self) -> None:
        _check_separation(self.separation)

    @property
    def name(self) -> str:
        """The error in words."""
        return "worst-case error over the queries"

    @property
    def log_odds(self) -> float:
        """ln(c / 2 - 1)."""
        return math.log(self.separation / 2 - 1)

    def norm(self, differences: FloatArray) -> FloatArray:
        """Largest moduli of the rows of `differences` (b, k): (b,)."""
        return np.asarray(np.abs(differences).max(axis=1))


def _root_mean_squares(differences: FloatArray) -> FloatArray:
    squares: FloatArray = np.einsum("ij,ij->i", differences, differences)
    return np.asarray(np.sqrt(squares / differences.shape[1]))


def _check_separation(factor: float) -> None:
    """Markov's inequality says nothing about an error below alpha itself."""
    number = real_number(factor)
    if not (math.isfinite(number) and number > 2):
        raise ValueError(f"separation must be a finite number above 2, got {factor!r}")


#: The error of JL-DEF with the separation of JL-L6.
MEAN_L2 = MeanL2()
