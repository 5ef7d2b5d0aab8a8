"""Listed packings: every answer, distance and separation computed again."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from geomdp.bounds.checker.norms import Norm
from geomdp.bounds.checker.reading import (
    CertificateRejected,
    array,
    part_of,
    require,
    whole_array,
    whole_number,
)
from geomdp.bounds.checker.verified import VerifiedPacking

Answers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

#: Largest float64 error per operation, with room for another order of additions (2^-53 each).
UNIT = 2.0**-51


def verify_listed(part: Mapping[str, Any], norm: Norm) -> VerifiedPacking:
    """Number, distance and separation of the data sets of a listed packing."""
    answers, subject, queries, conditions = answers_of(part)
    datasets = whole_array(part, "datasets", axes=2)
    inside = datasets.min() >= 0 and datasets.max() < len(answers)
    require(bool(inside), "datasets name elements that are not listed")
    count, size = datasets.shape
    means = np.array([answers[row].sum(axis=0) / size for row in datasets])
    closest = np.inf
    for i in range(1, count):
        closest = min(closest, float(norm(means[:i] - means[i]).min()))
    operations = size + 2 * answers.shape[1] + 8
    slack = operations * UNIT * max(1.0, float(np.abs(answers).max()))
    return VerifiedPacking(
        subject=subject,
        queries=queries,
        log_count=float(np.log(count)),
        size=size,
        distance=_largest_distance(datasets),
        separation=closest,
        slack=slack,
        verified=(
            f"{count} data sets of {size} record{'s' * (size > 1)}: all "
            f"{count * (count - 1) // 2} pairs of answers",
        ),
        conditions=conditions,
    )


def _largest_distance(datasets: Codes) -> int:
    """Most records of one data set that are not matched by records of another."""
    multisets = [Counter(row) for row in datasets.tolist()]
    if datasets.shape[1] == 1:
        return int(len({row[0] for row in datasets.tolist()}) > 1)
    return max(
        (sum((a - b).values()) for a, b in itertools.combinations(multisets, 2)),
        default=0,
    )


def answers_of(
    part: Mapping[str, Any],
) -> tuple[Answers, tuple[object, ...], str, tuple[str, ...]]:
    """Answers of the elements, what tells the workload, its words, what is taken from the file."""
    if "answers" in part:
        answers = array(part, "answers", axes=2)
        k = answers.shape[1]
        taken = "the answers of the elements are those of the file, all of one workload"
        return answers, ("answers", k), f"{k} queries with the answers of the file", (taken,)
    workload = part_of(part, "workload")
    elements = whole_array(part, "elements")
    for name, (evaluate, keys) in EVALUATORS.items():
        if workload.get("name") == name:
            require(set(workload) == {"name", *keys}, f"{name} do not have {keys} alone")
            answers = evaluate(workload, elements)
            subject = tuple(sorted((key, str(v)) for key, v in workload.items()))
            parameters = ", ".join(f"{key} = {workload[key]}" for key in keys)
            return answers, subject, f"{name} of {parameters}", ()
    raise CertificateRejected(f"the workload {workload.get('name')!r} is unknown")


def _bits(workload: Mapping[str, Any], elements: Codes) -> tuple[Codes, list[list[int]]]:
    d, k = whole_number(workload, "d"), whole_number(workload, "k")
    require(k <= d, f"k is above {d}")
    require(elements.ndim == 2 and elements.shape[1] == d, f"elements do not have {d} attributes")
    require(bool(((elements == 0) | (elements == 1)).all()), "elements are not 0 or 1")
    return elements, [list(subset) for subset in itertools.combinations(range(d), k)]


def _marginals(workload: Mapping[str, Any], elements: Codes) -> Answers:
    bits, subsets = _bits(workload, elements)
    return np.column_stack([bits[:, s].min(axis=1) for s in subsets]).astype(np.float64)


def _parities(workload: Mapping[str, Any], elements: Codes) -> Answers:
    bits, subsets = _bits(workload, elements)
    return np.column_stack([1.0 - 2.0 * (bits[:, s].sum(axis=1) % 2) for s in subsets])


def _codes(workload: Mapping[str, Any], elements: Codes) -> tuple[Codes, int]:
    size = whole_number(workload, "N")
    require(elements.ndim == 1, "elements are not single codes")
    require(elements.min() >= 0 and elements.max() < size, f"elements are not below {size}")
    return elements, size


def _histogram(workload: Mapping[str, Any], elements: Codes) -> Answers:
    codes, size = _codes(workload, elements)
    return np.array([[float(x == t) for t in range(size)] for x in codes.tolist()])


def _prefixes(workload: Mapping[str, Any], elements: Codes) -> Answers:
    codes, size = _codes(workload, elements)
    return np.array([[float(x <= t) for t in range(size)] for x in codes.tolist()])


def _ranges(workload: Mapping[str, Any], elements: Codes) -> Answers:
    codes, size = _codes(workload, elements)
    ends = list(itertools.combinations_with_replacement(range(size), 2))
    return np.array([[float(a <= x <= b) for a, b in ends] for x in codes.tolist()])


def _tables(workload: Mapping[str, Any], elements: Codes) -> Answers:
    levels, k = whole_array(workload, "columns", axes=1).tolist(), whole_number(workload, "k")
    width = len(levels)
    require(k <= width, f"k is above {width}")
    require(elements.ndim == 2 and elements.shape[1] == width, f"elements lack {width} columns")
    inside = (elements >= 0).all() and (elements < np.array(levels)).all()
    require(bool(inside), "elements are not level codes of the columns")
    columns = [
        (elements[:, list(table)] == np.array(cell)).all(axis=1)
        for table in itertools.combinations(range(width), k)
        for cell in itertools.product(*(range(levels[i]) for i in table))
    ]
    return np.column_stack(columns).astype(np.float64)


#: Answers of a workload by its name, and the parameters that determine it.
EVALUATORS: dict[str, tuple[Callable[[Mapping[str, Any], Codes], Answers], tuple[str, ...]]] = {
    "marginals": (_marginals, ("d", "k")),
    "parities": (_parities, ("d", "k")),
    "histogram": (_histogram, ("N",)),
    "prefixes": (_prefixes, ("N",)),
    "ranges": (_ranges, ("N",)),
    "marginal tables": (_tables, ("columns", "k")),
}
