"""From packings to a lower bound that holds at every number of records up to its value.

**One packing.** Take data sets Y_1..Y_M of s records, any two of them within d replacements, their
answers at least gamma apart. At n records let X_i be t copies of Y_i and n - t s copies of one
fixed element (t s <= n). Then ||Q(X_i) - Q(X_j)|| >= gamma t s / n, and X_i is within t d
replacements of X_j. By JL-L6 no epsilon-DP mechanism has error at most alpha at n if

    t s <= n <= t s rho,   rho = gamma / (c alpha),   and   t d epsilon < ln(M - 1) + log odds.

(c and the odds are those of the metric; a replacement is one change under replace-one and two under
add/remove.) Let T be the largest t with the last inequality. The ranges of t and t + 1 leave no gap
once t s rho >= (t + 1) s - 1, that is for t >= t_0 = max(1, (s - 1) / (s (rho - 1))): all n from
t_0 s to T s rho are excluded. For s = 1 that is every n <= T rho, as soon as rho >= 1: the padded
construction of JL-L7.

**Several arguments.** sc > v needs *every* n <= v excluded. Packings of larger data sets reach
further but start later, so a certificate is a chain of links: each starts no later than one record
beyond the reach of those before it, the first at one record. A link is what one packing excludes
(`Rung`) or one set of orthogonal lines (`LineRung` of `orthogonal_lines`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from geomdp._validation import positive
from geomdp.bounds.bound import Bound, Side
from geomdp.bounds.certificates.chain import Link, chain
from geomdp.bounds.certificates.family import PackingFamily
from geomdp.bounds.certificates.files import write_certificate
from geomdp.bounds.metrics import MEAN_L2, RMS, MeanL2, Metric, WorstCase
from geomdp.privacy import Adjacency

#: Relative margin for the few float64 operations on the constants of a rung, far above 2^-52.
MARGIN = 1e-12
#: Changes of neighbouring data sets that one replacement takes.
CHANGES = {Adjacency.REPLACE_ONE: 1, Adjacency.ADD_REMOVE: 2}


class SideConditionError(ValueError):
    """A packing proves nothing here; the message names the condition that fails."""


@dataclass(frozen=True)
class Question:
    """What a lower bound is about.

    Parameters
    ----------
    epsilon : float
        Privacy, pure DP, above 0.
    alpha : float
        Error, in units of one answer, above 0.
    metric : MeanL2, RMS or WorstCase
        How the error is measured.
    adjacency : Adjacency
        Neighbour relation. Under add/remove, n is the public normaliser and the mechanism is asked
        to be accurate on data sets of exactly n records.
    """

    epsilon: float
    alpha: float
    metric: Metric = MEAN_L2
    adjacency: Adjacency = Adjacency.REPLACE_ONE

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", positive(self.epsilon, "epsilon"))
        object.__setattr__(self, "alpha", positive(self.alpha, "alpha"))
        if not isinstance(self.metric, MeanL2 | RMS | WorstCase):
            raise ValueError(f"metric must be MeanL2, RMS or WorstCase, got {self.metric!r}")
        if not isinstance(self.adjacency, Adjacency):
            raise ValueError(f"adjacency must be an Adjacency, got {self.adjacency!r}")

    @property
    def required_separation(self) -> float:
        """How far apart answers must be: c alpha."""
        return self.metric.separation * self.alpha

    def __str__(self) -> str:
        return f"{self.epsilon:g}-DP ({self.adjacency.value}), {self.metric.name} {self.alpha:g}"


@dataclass(frozen=True)
class Rung:
    """The numbers of records that one packing excludes: all from `first` to `last`.

    Parameters
    ----------
    family : PackingFamily
        The packing.
    log_others, separation : float
        Its ln(M - 1) and gamma.
    size, distance : int
        Its s and d.
    copies : int
        Most copies T of each data set.
    first, last : int
        Least and largest number of records excluded.
    """

    family: PackingFamily
    log_others: float
    separation: float
    size: int
    distance: int
    copies: int
    first: int
    last: int

    @property
    def count(self) -> str:
        """Number of data sets, in words."""
        few = self.log_others < math.log(1e6)
        return str(round(math.exp(self.log_others)) + 1) if few else f"e^{self.log_others:.4g}"

    @property
    def said(self) -> str:
        """How many data sets, how close, with answers how far apart."""
        return (
            f"{self.count} data sets {self.copies * self.distance} replacements apart have "
            f"answers {self.separation * self.copies * self.size / self.last:.4g} apart"
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Those of the packing."""
        return self.family.assumptions

    def document(self, question: Question) -> dict[str, Any]:
        """The rung as written to a certificate file: its constants, and the packing in full."""
        return {
            "log_others": self.log_others,
            "size": self.size,
            "distance": self.distance,
            "separation": self.separation,
            "largest_distance": reachable_distance(self.log_others, question),
            "copies": self.copies,
            "first": self.first,
            "last": self.last,
            "assumptions": list(self.assumptions),
            "family": self.family.document(),
        }


@dataclass(frozen=True)
class Certificate:
    """A chain of arguments that excludes every number of records from 1 to `value`.

    Parameters
    ----------
    question : Question
        Privacy, error, metric and neighbour relation.
    rungs : tuple of Rung or LineRung
        In order of reach.
    """

    question: Question
    rungs: tuple[Link, ...]

    @property
    def value(self) -> int:
        """Largest number of records excluded."""
        return self.rungs[-1].last

    def save(self, path: str | Path) -> None:
        """Write the certificate to `path` (.json; see `certificate_file` for the format)."""
        write_certificate(Path(path), self.document())

    def document(self) -> dict[str, Any]:
        """The certificate as written to a file: every constant, and the families in full."""
        question = self.question
        return {
            "epsilon": question.epsilon,
            "alpha": question.alpha,
            "metric": question.metric.name,
            "separation_factor": question.metric.separation,
            "log_odds": question.metric.log_odds,
            "required_separation": question.required_separation,
            "adjacency": question.adjacency.value,
            "lower_bound": self.value,
            "rungs": [rung.document(question) for rung in self.rungs],
        }


def reachable_distance(log_others: float, question: Question) -> float:
    """Replacements below which a packing is contradictory: (ln(M - 1) + log odds) / epsilon.

    Half of it under add/remove.
    """
    log_odds = question.metric.log_odds
    total = log_others + log_odds
    if abs(total) < MARGIN * abs(log_odds):
        total = 0.0  # rounding is all that is left
    return total / (question.epsilon * CHANGES[question.adjacency])


def rung(family: PackingFamily, question: Question) -> Rung:
    """What one packing excludes.

    Raises
    ------
    SideConditionError
        If there are too few data sets, they are too close together in their answers, or too far
        apart as data sets; the message says which.
    """
    reachable = reachable_distance(family.log_others, question)
    if not reachable > 0:
        raise SideConditionError(
            "a packing needs ln(M - 1) + log odds above 0 (at least 3 data sets at the usual "
            f"separation), got {family.log_others + question.metric.log_odds:.6g}"
        )
    separation, size, distance = family.separation(question.metric), family.size, family.distance
    required = question.required_separation
    rho = separation / required * (1 - MARGIN)
    if not (rho > 1 or (rho == 1 and size == 1)):
        raise SideConditionError(
            f"separation must be at least {question.metric.separation:g} alpha = {required:.6g}"
            f"{' and more, for data sets of several records' * (size > 1)}, got {separation:.6g}"
        )
    copies = math.ceil(reachable / distance * (1 - MARGIN)) - 1
    least = 1 if size == 1 else math.ceil((size - 1) / (size * (rho - 1)) * (1 + MARGIN))
    if copies < max(1, least):
        raise SideConditionError(
            f"{max(1, least)} copies of data sets {distance} replacements apart must stay below "
            f"(ln(M - 1) + log odds) / epsilon = {reachable:.6g} replacements"
        )
    first, last = max(1, least) * size, math.floor(copies * size * rho)
    return Rung(family, family.log_others, separation, size, distance, copies, first, last)


def certify(
    families: Iterable[PackingFamily],
    *,
    epsilon: float,
    alpha: float,
    metric: Metric = MEAN_L2,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
) -> Bound:
    """The lower bound that a set of packings proves together (JL-L6, JL-L7).

    Parameters
    ----------
    families : iterable of PackingFamily
        Packings for one workload; those that prove nothing here are left out.
    epsilon : float
        Pure DP, above 0.
    alpha : float
        Error, above 0.
    metric : MeanL2, RMS or WorstCase
        How the error is measured.
    adjacency : Adjacency
        Neighbour relation.

    Returns
    -------
    Bound
        ``Side.LOWER``; its certificate is a `Certificate`.

    Raises
    ------
    ValueError
        If the packings are not of one workload.
    SideConditionError
        If not even one record is excluded; the message gives the reason for each packing.
    """
    question = Question(epsilon, alpha, metric, adjacency)
    rungs: list[Rung] = []
    reasons, subjects = [], []
    for family in families:
        subjects.append(family.subject)
        if family.subject != subjects[0]:
            raise ValueError(
                f"packings must be of one workload, got {subjects[0]} and {family.subject}"
            )
        try:
            rungs.append(rung(family, question))
        except SideConditionError as error:
            reasons.append(str(error))
    chosen = chain(rungs)
    if not chosen:
        starts = [f"a packing starts at {r.first} records, none below" for r in rungs]
        raise SideConditionError("; ".join(dict.fromkeys(reasons + starts)) or "no packing given")
    return bound_of(Certificate(question, chosen))


def bound_of(certificate: Certificate) -> Bound:
    """The bound that a certificate proves."""
    rungs, question = certificate.rungs, certificate.question
    statement = (
        f"no mechanism has {question} with {certificate.value} records or fewer; at the last, "
        f"{rungs[-1].said}"
    )
    assumptions = dict.fromkeys(text for rung in rungs for text in rung.assumptions)
    return Bound(certificate.value, Side.LOWER, statement, tuple(assumptions), certificate)
