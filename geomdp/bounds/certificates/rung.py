"""The numbers of records that one packing excludes: one step of a certificate, called a rung.

A packing has data sets Y_1..Y_M of s records each. At most d replacements turn any Y_i into any
Y_j, and any two answers Q(Y_i) are at least gamma apart. For n >= t s records let X_i be t copies
of Y_i and n - t s copies of one fixed element. Then ||Q(X_i) - Q(X_j)|| >= gamma t s / n, and t d
replacements turn X_i into X_j. By JL-L6 no epsilon-DP mechanism has error at most alpha on data
sets of n records if

    t s <= n <= t s rho,   rho = gamma / (c alpha),   and   t d epsilon < ln(M - 1) + log odds.

The metric determines the number c and the odds. The last inequality is for replace-one adjacency.
Under add/remove a replacement is two changes, so the last inequality has 2 t d epsilon on the left.
Let T be the largest t that satisfies the last inequality. The ranges of t and t + 1 leave no gap if
t s rho >= (t + 1) s - 1. This holds if t >= (s - 1) / (s (rho - 1)). Let t_0 be the least such
whole number t >= 1. Then all n from t_0 s to T s rho are excluded. For s = 1 and rho >= 1 these are
all n <= T rho, as in the padded construction of JL-L7.
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
    """The proofs `found` in increasing order of `needs`, without dominated proofs.

    A proof A is dominated by a proof B if needs(B) <= needs(A) and proves(B) >= proves(A). Of equal
    proofs the first one is kept. A proof A with proves(A) <= 0 is dropped, too.
    """
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
    """M data sets Y_1..Y_M of `size` records each, listed or given by a rule.

    A bound needs only four facts about the data sets: their size, how many there are, how far apart
    the answers are, and how many replacements turn one data set into another. Attributes and
    methods of this class return these facts.
    """

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
        """The family as written to a certificate file (see `geomdp.bounds.certificates.files`)."""


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

    Parameters
    ----------
    first, last : int
        Least and largest number of records excluded.
    family : PackingFamily
        The packing.
    log_others, separation : float
        ln(M - 1) and gamma of the packing.
    size, distance : int
        s and d of the packing.
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
        """The number of data sets, the replacements between them, and the distance of answers."""
        apart = rounded_down(self.separation * self.copies * self.size / self.last, 4)
        return (
            f"there are {self.count} data sets, at most {self.copies * self.distance} replacements "
            f"apart, with answers at least {apart} apart"
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The conditions of the packing."""
        return self.family.assumptions

    @property
    def failure(self) -> float:
        """The failure probability of the packing."""
        return self.family.failure

    def document(self, problem: Problem) -> dict[str, Any]:
        """The step as written to a certificate file: all constants, and the packing or its rule."""
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
    """(ln(M - 1) + log odds) / epsilon under replace-one, and half of this number under add/remove.

    The result is rounded down. Negative log odds can nearly cancel ln(M - 1), so the margin for
    rounding errors is relative to the two terms and not to their sum.

    M is the number of data sets of a packing. Suppose that fewer replacements than the returned
    number turn any of the data sets into any other, and that their answers are far enough apart
    (`Problem.required_separation`). Then no mechanism is both private and accurate.
    """
    log_odds = problem.metric.log_odds
    total = log_others + log_odds - MARGIN * (1 + abs(log_others) + abs(log_odds))
    return total / (problem.pure_epsilon * problem.changes)


def rung(family: PackingFamily, problem: Problem) -> Rung:
    """The numbers of records that one packing excludes.

    Raises
    ------
    SideConditionError
        In three cases: there are too few data sets, the answers are too close together, or the data
        sets are too many replacements apart. The message names the case.
    """
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
