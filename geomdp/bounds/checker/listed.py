"""Check of listed packings: distances, and answers of known workloads, are computed again."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from geomdp.bounds.checker.norms import Norm
from geomdp.bounds.checker.values import CertificateRejected, Part, require
from geomdp.bounds.checker.verified import VerifiedPacking

Answers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]

#: Relative error allowed for each float64 operation: four times the rounding error 2^-53. The
#: factor is needed because the numbers in the certificate may come from sums in another order.
UNIT = 2.0**-51
#: Largest number of answers: 2^26 float64 numbers take 512 MB. `MOST_ATTRIBUTES` is the largest
#: number of attributes (or columns) of a workload that the certificate gives by name.
MOST_ANSWERS, MOST_ATTRIBUTES = 1 << 26, 1 << 12


def verify_listed(part: Part, norm: Norm) -> VerifiedPacking:
    """Compute the number, the distance and the separation of the listed data sets."""
    answers, subject, queries, conditions = answers_of(part)
    datasets = part.whole_array("datasets", axes=2)
    inside = datasets.min() >= 0 and datasets.max() < len(answers)
    require(bool(inside), "datasets hold row numbers of elements that are not listed")
    count, size = datasets.shape
    # NumPy compares pairs of answers. Python compares pairs of data sets, at a far higher cost.
    part.work.spend(count * (20_000 + 200 * size + size * answers.shape[1]))
    part.work.spend(2 * count**2 * (answers.shape[1] + (size > 1) * (500 + 100 * size)))
    require(count * answers.shape[1] <= MOST_ANSWERS, "there are too many answers of data sets")
    means = np.array([answers[row].sum(axis=0) / size for row in datasets])
    closest = math.inf
    for i in range(1, count):
        distances = norm(means[:i] - means[i])
        require(bool(np.isfinite(distances).all()), "a distance of two answers is not finite")
        closest = min(closest, float(distances.min()))
    # A mean adds `size` answers, and a norm squares and adds the differences of all queries. The
    # number 8 is a margin.
    operations = size + 2 * answers.shape[1] + 8
    slack = operations * UNIT * float(np.abs(answers).max())
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
    if datasets.shape[1] == 1:
        return int(datasets.min() != datasets.max())
    multisets = [Counter(row) for row in datasets.tolist()]
    return max(
        (sum((a - b).values()) for a, b in itertools.combinations(multisets, 2)),
        default=0,
    )


def answers_of(part: Part) -> tuple[Answers, tuple[object, ...], str, tuple[str, ...]]:
    """Answers of the elements, a key of the workload, its description, and untested assumptions."""
    if "answers" in part.values:
        answers = part.array("answers", axes=2)
        k = answers.shape[1]
        taken = "the answers of the elements are those of the file, all of one workload"
        return answers, ("answers", k), f"{k} queries with the answers of the file", (taken,)
    workload, elements = part.part("workload"), part.whole_array("elements")
    name = workload.word("name")
    if name not in EVALUATORS:
        raise CertificateRejected(f"the workload {name!r} is unknown")
    evaluate, keys = EVALUATORS[name]
    require(set(workload.values) == {"name", *keys}, f"{name} must have the parameters {keys}")
    answers = evaluate(workload, elements)
    plain = {key: str(np.asarray(value).tolist()) for key, value in workload.values.items()}
    parameters = ", ".join(f"{key} = {plain[key]}" for key in keys)
    return answers, tuple(sorted(plain.items())), f"{name} of {parameters}", ()


def _afford(workload: Part, elements: Codes, queries: int, passes: int, tables: int = 0) -> None:
    """Reject too many answers; spend the work of `passes` over them and of small `tables`."""
    # The product can have thousands of digits, so compare each factor first.
    require(
        queries <= MOST_ANSWERS and len(elements) * queries <= MOST_ANSWERS,
        f"there are more than {MOST_ANSWERS} answers",
    )
    workload.work.spend(passes * queries * (20 * len(elements) + 300))
    workload.work.spend(20_000 * passes * tables)


def _subsets(workload: Part, elements: Codes) -> Codes:
    """All sets of k of the d attributes, as rows, after a check that elements are in {0, 1}^d."""
    d, k = workload.whole("d", most=MOST_ATTRIBUTES), workload.whole("k", most=MOST_ATTRIBUTES)
    require(k <= d, f"k is above {d}")
    require(elements.ndim == 2 and elements.shape[1] == d, f"elements do not have {d} attributes")
    require(bool(((elements == 0) | (elements == 1)).all()), "elements are not 0 or 1")
    _afford(workload, elements, math.comb(d, k), k)
    return np.array(list(itertools.combinations(range(d), k)))


def _marginals(workload: Part, elements: Codes) -> Answers:
    return _products(elements, _subsets(workload, elements))


def _parities(workload: Part, elements: Codes) -> Answers:
    return _products(1 - 2 * elements, _subsets(workload, elements))


def _products(factors: Codes, subsets: Codes) -> Answers:
    """The product of the `factors` (E, d) of each element over each of the `subsets` (q, k)."""
    columns = np.ascontiguousarray(factors.T, dtype=np.float64)
    answers = np.ones((len(subsets), len(factors)))
    for attributes in subsets.T:
        answers *= columns[attributes]
    return np.ascontiguousarray(answers.T)


def _codes(workload: Part, elements: Codes) -> tuple[Codes, Codes]:
    """The elements as a column, checked to be codes from 0 to N - 1; and all codes."""
    size = workload.whole("N", most=MOST_ANSWERS)
    require(elements.ndim == 1, "elements are not single codes")
    inside = elements.min() >= 0 and elements.max() < size
    require(bool(inside), f"elements are not codes from 0 to {size - 1}")
    _afford(workload, elements, size, 1)
    return elements[:, None], np.arange(size)


def _histogram(workload: Part, elements: Codes) -> Answers:
    elements, codes = _codes(workload, elements)
    return np.asarray(elements == codes, dtype=np.float64)


def _prefixes(workload: Part, elements: Codes) -> Answers:
    elements, codes = _codes(workload, elements)
    return np.asarray(elements <= codes, dtype=np.float64)


def _ranges(workload: Part, elements: Codes) -> Answers:
    elements, codes = _codes(workload, elements)
    _afford(workload, elements, len(codes) * (len(codes) + 1) // 2, 1)
    low, high = np.triu_indices(len(codes))
    return np.asarray((low <= elements) & (elements <= high), dtype=np.float64)


def _tables(workload: Part, elements: Codes) -> Answers:
    levels = workload.whole_array("columns", axes=1).tolist()
    k, width = workload.whole("k", most=MOST_ATTRIBUTES), len(levels)
    require(k <= width <= MOST_ATTRIBUTES, f"k is above {width}, or there are too many columns")
    require(
        elements.ndim == 2 and elements.shape[1] == width, f"elements do not have {width} columns"
    )
    inside = (elements >= 0).all() and (elements < np.array(levels)).all()
    require(bool(inside), "elements are not level codes of the columns")
    tables = math.comb(width, k)
    require(tables <= MOST_ANSWERS, f"there are more than {MOST_ANSWERS} answers")
    workload.work.spend(300 * width * k)
    # All k-way tables together have e_k cells, where e_k is the k-th elementary symmetric
    # polynomial of the columns' numbers of levels. Every term of e_k is at least as large as the
    # part of it from the first columns, so all numbers above the limit can be set to one number.
    cells = [1] + [0] * k
    for level in levels:
        above = (min(cells[i] + level * cells[i - 1], MOST_ANSWERS + 1) for i in range(1, k + 1))
        cells = [1, *above]
    _afford(workload, elements, cells[k], k, tables)
    return np.column_stack(
        [_cells(elements, table, levels) for table in itertools.combinations(range(width), k)]
    )


def _cells(elements: Codes, table: tuple[int, ...], levels: list[int]) -> Answers:
    """For each element, 1 in its cell of the `table` of some columns, else 0; row by row."""
    number = np.zeros(len(elements), dtype=np.int64)
    for column in table:
        number = number * levels[column] + elements[:, column]
    size = math.prod(levels[column] for column in table)
    return np.asarray(number[:, None] == np.arange(size), dtype=np.float64)


#: For each name of a workload: the function that computes answers, and the names of the parameters
#: of the workload.
EVALUATORS: dict[str, tuple[Callable[[Part, Codes], Answers], tuple[str, ...]]] = {
    "marginals": (_marginals, ("d", "k")),
    "parities": (_parities, ("d", "k")),
    "histogram": (_histogram, ("N",)),
    "prefixes": (_prefixes, ("N",)),
    "ranges": (_ranges, ("N",)),
    "marginal tables": (_tables, ("columns", "k")),
}
