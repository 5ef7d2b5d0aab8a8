"""Measures of error: a norm of answer differences, and how far apart a packing must be in it.

Let Y be the norm of M(X) - Q(X) for a mechanism of error at most alpha. Markov's inequality gives
Y < c alpha / 2 with probability at least p, where c is the *separation factor*. Balls of that
radius around answers that are c alpha apart are disjoint, so with M data sets within r changes of
each other, group privacy gives 1 >= p + (M - 1) p e^(-epsilon r): a contradiction as soon as

    epsilon r < ln(M - 1) + ln(p / (1 - p))                                          (JL-L6).

A larger c raises the odds p / (1 - p) and asks for more separation; the default makes them 1.
"""

from __future__ import annotations

import abc
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from geomdp._typing import FloatArray
from geomdp._validation import real_number


@dataclass(frozen=True)
class Metric(abc.ABC):
    """How the error of a mechanism is measured.

    If E Y^p <= alpha^p for the `moment` p, then Y < c alpha / 2 with probability at least
    1 - (2 / c)^p, whose odds are (c / 2)^p - 1.

    Parameters
    ----------
    separation : float
        Factor c, above 2: the answers of a packing are at least c alpha apart.

    Raises
    ------
    ValueError
        If `separation` is not above 2: Markov's inequality then says nothing.
    """

    separation: float

    #: The error in words.
    name: ClassVar[str]
    #: The moment p of the error that is at most alpha^p.
    moment: ClassVar[int]

    def __post_init__(self) -> None:
        number = real_number(self.separation)
        if not (math.isfinite(number) and number > 2):
            raise ValueError(f"separation must be a finite number above 2, got {self.separation!r}")

    @property
    def log_odds(self) -> float:
        """ln((c / 2)^p - 1), never rounded up where the odds are 1: c = 4 or 2 sqrt(2)."""
        odds = (self.separation / 2) ** self.moment - 1
        return math.log(odds) if abs(odds - 1) > 1e-12 else min(0.0, math.log(odds))

    @abc.abstractmethod
    def norm(self, differences: FloatArray) -> FloatArray:
        """Norms (b,) of answer differences (b, k), normalised so that alpha is per query."""

    def of_squares(self, k: int) -> Callable[[FloatArray], FloatArray] | None:
        """The norm on R^k as a function of the squared Euclidean length; None if it is not one."""
        del k
        return None


class _Euclidean(Metric):
    """A metric whose norm is the Euclidean norm over sqrt(k)."""

    def norm(self, differences: FloatArray) -> FloatArray:
        """Euclidean norms over sqrt(k) of the rows of `differences` (b, k): (b,)."""
        squares: FloatArray = np.einsum("ij,ij->i", differences, differences)
        return np.asarray(np.sqrt(squares / differences.shape[1]))

    def of_squares(self, k: int) -> Callable[[FloatArray], FloatArray]:
        """Root of the squared length over k."""
        return lambda squares: np.asarray(np.sqrt(squares / k))


@dataclass(frozen=True)
class MeanL2(_Euclidean):
    """Error max over X of E ||M(X) - Q(X)||_2 / sqrt(k): err^2 of JL-DEF."""

    separation: float = 4.0

    name = "mean l2 error per query"
    moment = 1


@dataclass(frozen=True)
class RMS(_Euclidean):
    """Error max over X of (E ||M(X) - Q(X)||_2^2 / k)^(1/2): root mean square, JL-DEF."""

    separation: float = 2 * math.sqrt(2)

    name = "root mean squared error per query"
    moment = 2


@dataclass(frozen=True)
class WorstCase(Metric):
    """Error max over X of E ||M(X) - Q(X)||_inf: err^inf of JL-DEF."""

    separation: float = 4.0

    name = "worst-case error over the queries"
    moment = 1

    def norm(self, differences: FloatArray) -> FloatArray:
        """Largest moduli of the rows of `differences` (b, k): (b,)."""
        return np.asarray(np.abs(differences).max(axis=1))


#: The error of JL-DEF with the separation of JL-L6.
MEAN_L2 = MeanL2()
