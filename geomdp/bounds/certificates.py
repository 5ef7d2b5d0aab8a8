"""Certificates: proofs that together exclude every number of records up to the lower bound.

The bound sc > v is proved only if *every* n <= v is excluded. Packings of larger data sets exclude
larger numbers n, but no small n. A certificate may therefore need several steps, called rungs, and
each excludes a range of numbers n. The first range starts at 1, and no number between the ranges is
left out.
"""

from __future__ import annotations

import abc
import hashlib
import io
import itertools
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from geomdp._numerics.files import write_together
from geomdp._typing import FloatArray
from geomdp._validation import plural, require_type
from geomdp.bounds.problem import MEAN_L2, Bound, Metric, Problem, Side, SideConditionError
from geomdp.privacy import Adjacency
from geomdp.privacy.definitions import printed, printed_down
from geomdp.workloads import (
    Histogram,
    Marginals,
    MarginalTables,
    Parities,
    Prefixes,
    Ranges,
    Workload,
)

# The records that one rung excludes; `geomdp.bounds.checker.check` has the proof (JL-L6, JL-L7).

#: Relative margin for rounding errors of a few operations.
MARGIN = 1e-12


class PackingFamily(abc.ABC):
    """M data sets Y_1..Y_M of `size` records each, listed or given by a rule."""

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The conditions that the proof assumes, in words."""
        return ()

    @property
    def failure(self) -> float:
        """Bound on the probability, over public draws, that a condition fails."""
        return 0.0

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


@dataclass(frozen=True, eq=False)
class Rung:
    """One step of a certificate: it excludes all numbers of records from `first` to `last`."""

    first: int
    last: int
    #: One or two words for the kind of proof.
    kind: str
    #: The data sets, lines or elements of the proof, with a method `document`.
    family: Any
    #: Why no mechanism reaches the error with `last` records, in words.
    said: str
    #: The numbers and the long lists of the proof, as written to a certificate file.
    constants: dict[str, Any]
    lists: dict[str, Any] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    failure: float = 0.0

    def __repr__(self) -> str:
        return f"Rung({self.first} <= n <= {self.last}, {self.family!r})"

    def document(self) -> dict[str, Any]:
        """The step as written to a certificate file: all constants, and the data of the proof."""
        return {
            **self.constants,
            "first": self.first,
            "last": self.last,
            "assumptions": list(self.assumptions),
            **self.lists,
            "family": self.family.document(),
        }


@dataclass(frozen=True, eq=False)
class Plan:
    """Data sets of `records` or more records, on one of which the error is at least `scale` / n."""

    kind: str
    family: Any
    records: int
    #: What the data sets are made of, in words.
    made_of: str
    #: As in `Rung`, with "scale" and with "copies": how often the data sets have each record, or
    #: how many records one step replaces.
    constants: dict[str, Any]
    lists: dict[str, Any] = field(default_factory=dict)

    @property
    def scale(self) -> float:
        """n times the excluded error, rounded down."""
        return float(self.constants["scale"])


def rungs_of_plans(plans: Iterable[Plan], alpha: float) -> list[Rung]:
    """The rungs of the plans that exclude the error `alpha` for at least one n."""
    rungs = []
    for plan in plans:
        last = math.floor(plan.scale / alpha)
        if plan.records <= last:
            error = printed_down(plan.scale / last, 4)
            said = f"the error is at least {error} on some data set of {plan.made_of}"
            parts = (plan.kind, plan.family, said, plan.constants, plan.lists)
            rungs.append(Rung(plan.records, last, *parts))
    return rungs


def best_plans(plans: Iterable[Plan]) -> tuple[Plan, ...]:
    """The plans by records, without those that need more records for no larger scale."""
    ordered = sorted(plans, key=lambda plan: (plan.records, -plan.scale))
    best = itertools.accumulate((plan.scale for plan in ordered), max, initial=0.0)
    return tuple(plan for plan, before in zip(ordered, best, strict=False) if plan.scale > before)


def reachable_distance(log_others: float, problem: Problem) -> float:
    """(ln(M - 1) + log odds) / epsilon, rounded down, which t d must be below."""
    log_odds = problem.metric.log_odds
    # Negative log odds can nearly cancel ln(M - 1), so the margin is relative to the two terms and
    # not to their sum.
    total = log_others + log_odds - MARGIN * (1 + abs(log_others) + abs(log_odds))
    return total / (problem.pure_epsilon * problem.changes)


def packing_rung(family: PackingFamily, problem: Problem) -> Rung:
    """The rung of one packing, for the n from t_0 s to T s rho in the notation of `checker.check`;
    `SideConditionError` says why a packing excludes nothing.
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
    least = max(1, least)
    if copies < least:
        raise SideConditionError(
            f"data sets are {plural(distance, 'replacement')} apart, so {least} "
            f"{'copy of each is' if least == 1 else 'copies of each are'} {least * distance} "
            f"apart, which must be below (ln(M - 1) + log odds) / "
            f"(epsilon times changes per replacement) = {reachable:.6g}"
        )
    last = math.floor(copies * size * rho)
    apart = printed_down(separation * copies * size / last, 4)
    said = (
        f"there are {count_in_words(family.log_others)} data sets, at most "
        f"{plural(copies * distance, 'replacement')} apart, with answers at least {apart} apart"
    )
    constants = {
        "log_others": family.log_others,
        "size": size,
        "distance": distance,
        "separation": separation,
        "largest_distance": reachable,
        "copies": copies,
    }
    conditions = (family.assumptions, family.failure)
    return Rung(least * size, last, "packing", family, said, constants, {}, *conditions)


def count_in_words(log_others: float) -> str:
    """The number M of data sets from ln(M - 1); a large number is written as a power of e."""
    if log_others < math.log(1e6):
        return str(round(math.exp(log_others)) + 1)
    return f"e^{printed_down(log_others, 4)}"


def excluded_records(family: PackingFamily, problem: Problem) -> int:
    """Largest number of records that a packing excludes; 0 if the packing excludes nothing."""
    try:
        return packing_rung(family, problem).last
    except SideConditionError:
        return 0


def rungs_of(families: Iterable[PackingFamily], problem: Problem) -> tuple[list[Rung], list[str]]:
    """A rung for each packing that excludes a range; for the others, why they exclude nothing."""
    rungs, reasons = [], []
    for family in families:
        try:
            rungs.append(packing_rung(family, problem))
        except SideConditionError as reason:
            reasons.append(str(reason))
    return rungs, reasons


# Certificates, and the bounds that they prove.


@dataclass(frozen=True)
class Certificate:
    """Ranges that together exclude every number of records from 1 to `value`.

    Parameters
    ----------
    problem : Problem
        Privacy, error, metric and neighbour relation.
    rungs : tuple of Rung
        The excluded ranges, in increasing order.

    Examples
    --------
    >>> import geomdp as gd
    >>> bound = gd.bounds.marginal_bound(16, 1, epsilon=1.0, alpha=0.05)
    >>> bound.certificate
    Certificate(sc > 15, 1-DP (replace-one) and mean l2 error per query at most 0.05, 1 rungs)
    """

    problem: Problem
    rungs: tuple[Rung, ...]

    def __repr__(self) -> str:
        return f"Certificate(sc > {self.value}, {self.problem}, {len(self.rungs)} rungs)"

    @property
    def value(self) -> int:
        """Largest number of records excluded."""
        return self.rungs[-1].last

    def save(self, path: str | Path) -> None:
        """Write the certificate to a .json file at `path`, and large arrays to an .npz file.

        ``ValueError`` for numbers except 0 outside 1e-100 to 1e100, or whole numbers of 2^256 or
        more.
        """
        write_certificate(Path(path), self.document())

    def document(self) -> dict[str, Any]:
        """The certificate as written to a file: every constant, and the data of every rung."""
        problem, privacy = self.problem, self.problem.guarantee
        definition = {"definition": type(privacy).__name__, **privacy.parameters()}
        pure = problem.epsilon is not None
        return {
            **({"epsilon": problem.epsilon} if pure else {"privacy": definition}),
            "alpha": problem.alpha,
            "metric": problem.metric.name,
            "separation_factor": problem.metric.separation,
            "log_odds": problem.metric.log_odds,
            "required_separation": problem.required_separation,
            "adjacency": problem.adjacency.value,
            "lower_bound": self.value,
            "rungs": [rung.document() for rung in self.rungs],
        }


def cover(rungs: Iterable[Rung]) -> tuple[Rung, ...]:
    """The fewest rungs, chosen greedily, that exclude 1, ..., v for the largest possible v."""
    waiting = sorted(rungs, key=lambda rung: rung.first)
    reach = 0
    chosen: list[Rung] = []
    while True:
        next_ones = (rung for rung in waiting if rung.first <= reach + 1)
        best = max(next_ones, key=lambda rung: rung.last, default=None)
        if best is None or best.last <= reach:
            return tuple(chosen)
        chosen.append(best)
        reach = best.last


def covering_bound(rungs: Sequence[Rung], problem: Problem, reasons: Sequence[str] = ()) -> Bound:
    """The lower bound that `rungs` prove; `reasons` say why other proofs exclude nothing."""
    chosen = cover(rungs)
    if not chosen:
        starts = [f"the excluded range starts at {rung.first} records, not at 1" for rung in rungs]
        found = "; ".join(dict.fromkeys([*reasons, *starts]))
        raise SideConditionError(found or "no packing given")
    failure = math.fsum(rung.failure for rung in chosen)
    if not failure < 1:
        raise SideConditionError(
            f"failure probabilities of a certificate must add up to less than 1, got {failure:.6g}"
        )
    certificate = Certificate(problem, chosen)
    statement = (
        f"no mechanism has {problem} with {certificate.value} records or fewer; with "
        f"{certificate.value} records, {chosen[-1].said}"
    )
    assumptions = dict.fromkeys(text for rung in chosen for text in rung.assumptions)
    if failure > max(rung.failure for rung in chosen):
        assumptions[f"together with probability at least 1 - {printed(failure)}"] = None
    return Bound(certificate.value, Side.LOWER, statement, tuple(assumptions), certificate)


def certify(
    families: Iterable[PackingFamily],
    *,
    epsilon: float,
    alpha: float,
    metric: Metric = MEAN_L2,
    adjacency: Adjacency = Adjacency.REPLACE_ONE,
) -> Bound:
    """The lower bound that all the given packings prove together (JL-L6, JL-L7).

    Parameters
    ----------
    families : iterable of PackingFamily
        Packings for one workload. A packing that excludes nothing is left out.
    epsilon, alpha, metric, adjacency : as for `Problem`
        Privacy, error, how the error is measured, and the neighbour relation.

    Raises
    ------
    ValueError
        If a family is no packing or is for another workload, or a parameter is out of range.
    SideConditionError
        If not even one record is excluded; the message gives the reason for each packing. Also if
        the failure probabilities of the packings used add up to 1 or more.

    Examples
    --------
    Each element of the universe is a data set of one record. The answers of any two of these data
    sets are far apart:

    >>> import numpy as np
    >>> import geomdp as gd
    >>> workload = gd.workloads.Histogram(8)
    >>> packing = gd.bounds.single_elements(workload, np.arange(8), np.arange(8), "all elements")
    >>> gd.bounds.certify([packing], epsilon=0.1, alpha=0.05)
    Bound(sc > 47, 0 assumptions)
    """
    if not isinstance(families, Iterable):
        raise ValueError(f"families must be a list of packings, got {type(families).__name__}")
    families = tuple(families)
    for family in families:
        require_type(family, PackingFamily, "each of families")
        if family.subject != families[0].subject:
            raise ValueError(
                f"packings must be of one workload, got {families[0].subject} and {family.subject}"
            )
    problem = Problem(epsilon, alpha, metric, adjacency)
    rungs, reasons = rungs_of(families, problem)
    return covering_bound(rungs, problem, reasons)


# Workloads that a certificate describes by name and parameters instead of a list of answers.

#: For each class of workload, the name and the parameters in certificate files.
NAMED_WORKLOADS: dict[type[Workload], Callable[[Any], dict[str, Any]]] = {
    Marginals: lambda W: {"name": "marginals", "d": W.d, "k": W.k},
    Parities: lambda W: {"name": "parities", "d": W.d, "k": W.k},
    Histogram: lambda W: {"name": "histogram", "N": W.N},
    Prefixes: lambda W: {"name": "prefixes", "N": W.N},
    Ranges: lambda W: {"name": "ranges", "N": W.N},
    MarginalTables: lambda W: {"name": "marginal tables", "columns": list(W.levels), "k": W.k},
}
#: Largest modulus of an answer in a certificate: sums of squares of such numbers do not overflow.
MAX_ANSWER = 1e100


def bounded_answers(workload: Workload, elements: np.ndarray[Any, Any]) -> FloatArray:
    """The answers (E, k) of `workload` on `elements`; ``ValueError`` for NaN and beyond +-1e100."""
    answers = workload.evaluate(elements)
    largest = float(np.abs(answers).max())
    if not largest <= MAX_ANSWER:
        raise ValueError(f"answers must be at most {MAX_ANSWER:g} in modulus, got {largest:g}")
    return answers


def workload_document(workload: Workload) -> dict[str, Any] | None:
    """Name and parameters of a workload in `NAMED_WORKLOADS`; None for any other workload."""
    named = NAMED_WORKLOADS.get(type(workload))
    return None if named is None else named(workload)


def workload_subject(workload: Workload) -> str:
    """A key that identifies a workload: name and parameters if it is named, else `repr` and id."""
    named = workload_document(workload)
    return f"{workload!r} at {id(workload)}" if named is None else str(named)


def listing_document(
    workload: Workload, elements: np.ndarray[Any, Any], answers: FloatArray
) -> dict[str, Any]:
    """A named workload with its `elements` (E, ...); for any other, only the `answers` (E, k)."""
    named = workload_document(workload)
    return {"answers": answers} if named is None else {"workload": named, "elements": elements}


# Writing a certificate to its files, in the format that `geomdp.bounds.checker` reads.

FORMAT, VERSION = "geomdp packing certificate", 1
#: Largest number of entries of an array written as JSON, which has one line for each.
MAX_JSON_ENTRIES = 4096
#: The range of the numbers in a file, except 0. Whole numbers are below `MOST`.
LEAST, LARGEST, MOST = 1e-100, 1e100, 1 << 256
Arrays = dict[str, np.ndarray[Any, Any]]


def write_certificate(path: Path, document: dict[str, Any]) -> None:
    """Write `document`, which can contain NumPy arrays, to `path` and, if needed, an .npz file."""
    if path.suffix != ".json":
        raise ValueError(f"a certificate's path must end in .json, got {str(path)!r}")
    arrays: Arrays = {}
    content = _without_arrays(document, "", arrays)
    plain = {"format": FORMAT, "version": VERSION, **content, "arrays": sorted(arrays)}
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True, separators=(",", ":")).encode())
    for name in sorted(arrays):
        digest.update(name.encode() + np.ascontiguousarray(arrays[name]).tobytes())
    beside, contents = path.with_suffix(".npz"), {}
    if arrays:
        packed = io.BytesIO()
        np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
        contents[beside] = packed.getvalue()
    sealed = plain | {"digest": digest.hexdigest()}
    contents[path] = (json.dumps(sealed, indent=1) + "\n").encode()
    write_together(contents)
    if not arrays:
        beside.unlink(missing_ok=True)


def _without_arrays(value: Any, name: str, arrays: Arrays) -> Any:
    """`value` without NumPy types; large arrays go to `arrays` under `name` and their keys."""
    if isinstance(value, np.ndarray):
        _require(bool(np.abs(value).max(initial=0) <= LARGEST), name, f"at most {LARGEST:g}")
        if value.size <= MAX_JSON_ENTRIES:
            return value.tolist()
        arrays[name] = value
        return {"array": name}
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        inside = value == 0 or LEAST <= abs(value) <= LARGEST
        _require(inside, name, f"0, or from {LEAST:g} to {LARGEST:g}, got {value!r}")
    elif isinstance(value, int):
        _require(abs(value) < MOST, name, f"below 2^256, got {value.bit_length()} bits")
    if isinstance(value, dict):
        return {key: _without_arrays(item, f"{name}{key}.", arrays) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_arrays(item, f"{name}{i}.", arrays) for i, item in enumerate(value)]
    return value


def _require(inside: bool, name: str, limits: str) -> None:
    """Refuse a number outside the `limits`; `name` is the path to it, with a dot at the end."""
    if not inside:
        raise ValueError(f"{name.rstrip('.')} must be {limits}: a certificate has no other number")
