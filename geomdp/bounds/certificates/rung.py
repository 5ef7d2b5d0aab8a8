"""The numbers of records that one packing excludes: one step of a certificate, called a rung.

`geomdp.bounds.checker.check` has the proof (JL-L6) and the notation. For s = 1 and rho >= 1, the
range is all n <= T rho (JL-L7).
"""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from geomdp.bounds.certificates.problem import Problem, SideConditionError
from geomdp.bounds.metrics import Metric
from geomdp.bounds.rounding import rounded_down

#: Relative margin for rounding errors of the constants. A constant takes a few float64 operations
#: with a relative error of 2^-53 each. The margin is far above the sum of these errors.
MARGIN = 1e-12


Argument = TypeVar("Argument")


def without_dominated(
    found: Iterable[Argument], needs: Callable[[Argument], int], proves: Callable[[Argument], float]
) -> list[Argument]:
    """The proofs by `needs`, without those that prove at most 0 or no more than an earlier one."""
    ordered = sorted(found, key=lambda one: (needs(one), -proves(one)))
    best = itertools.accumulate(map(proves, ordered), max, initial=0.0)
    return [one for one, before in zip(ordered, best, strict=False) if proves(one) > before]


class Conditional:
    """A proof that holds under stated conditions; by default there are none."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The conditions that the proof assumes, in words."""
        return ()

    @property
    def failure(self) -> float:
        """Bound on the probability, over public draws, that a condition fails; 0 by default."""
        return 0.0


class PackingFamily(Conditional, abc.ABC):
    """M data sets Y_1..Y_M of `size` records each, listed or given by a rule."""

    @property
    @abc.abstractmethod
    def log_others(self) -> float:
        """ln(M - 1) or less, up to a float64 rounding error, which `MARGIN` covers."""

    @property
    @abc.abstractmethod
    def size(self) -> int:
        """Number of records s of each data set."""

    @property
    def distance(self) -> int:
        """d <= s: at most d replacements turn any of the data sets into any other."""
        return self.size

    @property
    @abc.abstractmethod
    def subject(self) -> object:
        """A key that identifies the workload; equal for all packings of one certificate."""

    @abc.abstractmethod
    def separation(self, metric: Metric) -> float:
        """A proved lower bound on the norms of all Q(Y_i) - Q(Y_j), i != j."""

    @abc.abstractmethod
    def document(self) -> dict[str, Any]:
        """The family as written to a certificate file (see `geomdp.bounds.checker.reading`)."""


@dataclass(frozen=True)
class ExcludedRange(Conditional, abc.ABC):
    """One step of a certificate: it excludes all numbers of records from `first` to `last`."""

    first: int
    last: int

    @property
    @abc.abstractmethod
    def said(self) -> str:
        """Why no mechanism reaches the error with `last` records, in words."""

    @abc.abstractmethod
    def document(self, problem: Problem) -> dict[str, Any]:
        """The step as written to a certificate file: all constants, and the data of the proof."""


@dataclass(frozen=True)
class Rung(ExcludedRange):
    """The numbers of records that one packing excludes: all from `first` to `last`.

    The problem gives alpha, the factor c and the odds; rho = gamma / (c alpha). Excluded are the n
    from t s to t s rho for all t from some t_0 to T. T is the largest t with

        t d epsilon < ln(M - 1) + log odds      (2 t d epsilon on the left under add/remove),

    and t_0 the least t >= 1 whose range leaves no gap to that of t + 1: t s (rho - 1) >= s - 1.

    Parameters
    ----------
    first, last : int
        Least and largest number of records excluded.
    family : PackingFamily
        The packing of M data sets.
    log_others, separation : float
        ln(M - 1), and gamma, the least distance of two answers.
    size, distance : int
        Records s of a data set, and replacements d that turn any of the data sets into any other.
    copies : int
        Largest number of copies T of each data set.

    Examples
    --------
    >>> import textwrap
    >>> import geomdp as gd
    >>> bound = gd.bounds.marginal_bound(16, 1, epsilon=1.0, alpha=0.05)
    >>> rung = bound.certificate.rungs[0]
    >>> rung.first, rung.last, rung.copies
    (1, 15, 7)
    >>> print(textwrap.fill(rung.said, 80))
    there are 2039 data sets, at most 7 replacements apart, with answers at least
    0.202 apart
    """

    family: PackingFamily
    log_others: float
    separation: float
    size: int
    distance: int
    copies: int

    def __repr__(self) -> str:
        return f"Rung({self.first} <= n <= {self.last}, {self.family!r})"

    @property
    def count(self) -> str:
        """The number of data sets as text; a large number is written as a power of e."""
        if self.log_others < math.log(1e6):
            return str(round(math.exp(self.log_others)) + 1)
        return f"e^{rounded_down(self.log_others, 4)}"

    @property
    def said(self) -> str:
        apart = rounded_down(self.separation * self.copies * self.size / self.last, 4)
        return (
            f"there are {self.count} data sets, at most {self.copies * self.distance} replacements "
            f"apart, with answers at least {apart} apart"
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        return self.family.assumptions

    @property
    def failure(self) -> float:
        return self.family.failure

    def document(self, problem: Problem) -> dict[str, Any]:
        return {
            "log_others": self.log_others,
            "size": self.size,
            "distance": self.distance,
            "separation": self.separation,
            "largest_distance": reachable_distance(self.log_others, problem),
            "copies": self.copies,
            "first": self.first,
            "last": self.last,
            "assumptions": list(self.assumptions),
            "family": self.family.document(),
        }


def reachable_distance(log_others: float, problem: Problem) -> float:
    """(ln(M - 1) + log odds) / epsilon, rounded down, which t d must be below; see `Rung`."""
    log_odds = problem.metric.log_odds
    # Negative log odds can nearly cancel ln(M - 1), so the margin is relative to the two terms and
    # not to their sum.
    total = log_others + log_odds - MARGIN * (1 + abs(log_others) + abs(log_odds))
    return total / (problem.pure_epsilon * problem.changes)


def rung(family: PackingFamily, problem: Problem) -> Rung:
    """The rung of one packing; `SideConditionError` says why a packing excludes nothing."""
    reachable = reachable_distance(family.log_others, problem)
    if not reachable > 0:
        raise SideConditionError(
            "a packing of M data sets needs ln(M - 1) + log odds above 0 by more than rounding "
            "errors (at least 3 data sets at the default separation factor), "
            f"got {family.log_others + problem.metric.log_odds:.6g}"
        )
    separation, size, distance = family.separation(problem.metric), family.size, family.distance
    required = problem.required_separation
    rho = separation / required * (1 - MARGIN)
    if not (rho > 1 or (rho == 1 and size == 1)):
        raise SideConditionError(
            f"separation must be at least {problem.metric.separation:g} alpha = {required:.6g}"
            f"{', and above it for data sets of several records' * (size > 1)}, "
            f"got {separation:.6g}"
        )
    copies = math.ceil(reachable / distance) - 1
    least = 1 if size == 1 else math.ceil((size - 1) / (size * (rho - 1)) * (1 + MARGIN))
    if copies < max(1, least):
        raise SideConditionError(
            f"data sets are {distance} replacements apart, so {max(1, least)} copies of each are "
            f"{max(1, least) * distance} apart, which must be below (ln(M - 1) + log odds) / "
            f"(epsilon times changes per replacement) = {reachable:.6g}"
        )
    first, last = max(1, least) * size, math.floor(copies * size * rho)
    return Rung(first, last, family, family.log_others, separation, size, distance, copies)


def excluded_records(family: PackingFamily, problem: Problem) -> int:
    """Largest number of records that a packing excludes; 0 if the packing excludes nothing."""
    try:
        return rung(family, problem).last
    except SideConditionError:
        return 0


def rungs_of(families: Iterable[PackingFamily], problem: Problem) -> tuple[list[Rung], list[str]]:
    """A rung for each packing that excludes a range; for the others, why they exclude nothing."""
    rungs, reasons = [], []
    for family in families:
        try:
            rungs.append(rung(family, problem))
        except SideConditionError as reason:
            reasons.append(str(reason))
    return rungs, reasons
