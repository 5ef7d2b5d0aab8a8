"""Check of the rungs whose data sets or elements are listed, apart from lines.

Distances, and answers of known workloads, are computed again.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geomdp.bounds.checker.reading import (
    MEASURES,
    CertificateRejected,
    Measure,
    Norm,
    Part,
    Stated,
    Verified,
    VerifiedPacking,
    excluded_records,
    require,
    require_at_most,
    rounded_down,
)

# Listed packings, and the answers of listed elements.

Answers = npt.NDArray[np.float64]
Codes = npt.NDArray[np.int64]
#: Relative error allowed for each float64 operation: the certificate may add in another order.
UNIT = 2.0**-51
#: Largest number of answers (512 MB), and of attributes or columns of a workload given by name.
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
    return max((sum((a - b).values()) for a, b in itertools.combinations(multisets, 2)), default=0)


class Listing(NamedTuple):
    """Answers (E, k) of listed elements, a key of the workload, it in words, and assumptions."""

    answers: Answers
    subject: tuple[object, ...]
    queries: str
    conditions: tuple[str, ...]

    def verified(self, text: str) -> Verified:
        """The result of checking a rung on these elements: `text` says what was verified."""
        return Verified(self.subject, self.queries, (text,), self.conditions)


def answers_of(part: Part) -> Listing:
    """The elements of a family: their answers as stated, or computed for a known workload."""
    if "answers" in part.values:
        answers = part.array("answers", axes=2)
        k = answers.shape[1]
        taken = "the answers of the elements are those of the file, all of one workload"
        words = f"{k} queries with the answers of the file"
        return Listing(answers, ("answers", k), words, (taken,))
    workload, elements = part.part("workload"), part.whole_array("elements")
    name = workload.word("name")
    if name not in EVALUATORS:
        raise CertificateRejected(f"the workload {name!r} is unknown")
    evaluate, keys = EVALUATORS[name]
    require(set(workload.values) == {"name", *keys}, f"{name} must have the parameters {keys}")
    answers = evaluate(workload, elements)
    plain = {key: str(np.asarray(value).tolist()) for key, value in workload.values.items()}
    parameters = ", ".join(f"{key} = {plain[key]}" for key in keys)
    return Listing(answers, tuple(sorted(plain.items())), f"{name} of {parameters}", ())


def _afford(workload: Part, elements: Codes, queries: int, passes: int, tables: int = 0) -> None:
    """Reject too many answers; spend the work of `passes` over them and of small `tables`."""
    # The product can have thousands of digits, so compare each factor first.
    few = queries <= MOST_ANSWERS and len(elements) * queries <= MOST_ANSWERS
    require(few, f"there are more than {MOST_ANSWERS} answers")
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


def _compared(relation: np.ufunc, workload: Part, elements: Codes) -> Answers:
    return np.asarray(relation(*_codes(workload, elements)), dtype=np.float64)


def _ranges(workload: Part, elements: Codes) -> Answers:
    elements, codes = _codes(workload, elements)
    _afford(workload, elements, len(codes) * (len(codes) + 1) // 2, 1)
    low, high = np.triu_indices(len(codes))
    return np.asarray((low <= elements) & (elements <= high), dtype=np.float64)


def _tables(workload: Part, elements: Codes) -> Answers:
    levels = workload.whole_array("columns", axes=1).tolist()
    k, width = workload.whole("k", most=MOST_ATTRIBUTES), len(levels)
    require(k <= width <= MOST_ATTRIBUTES, f"k is above {width}, or there are too many columns")
    fitting = elements.ndim == 2 and elements.shape[1] == width
    require(fitting, f"elements do not have {width} columns")
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
    "marginals": (lambda W, x: _products(x, _subsets(W, x)), ("d", "k")),
    "parities": (lambda W, x: _products(1 - 2 * x, _subsets(W, x)), ("d", "k")),
    "histogram": (partial(_compared, np.equal), ("N",)),
    "prefixes": (partial(_compared, np.less_equal), ("N",)),
    "ranges": (_ranges, ("N",)),
    "marginal tables": (_tables, ("columns", "k")),
}

# The average error of guessing an element.

Vectors = npt.NDArray[np.float64]
#: The types of families with elements that are far apart.
TYPES = ("separated elements", "distant elements")
#: Largest privacy loss of all copies together, and the norm for separated elements.
MOST_LOG_RATIO = 600.0
EUCLIDEAN = MEASURES["root mean squared error per query"].norm


def verify_guesses(rung: Part, problem: Stated) -> tuple[Verified, int, int]:
    """Check a rung; return the result, and the first and last n that it excludes.

    Take elements x_1, ..., x_M and a number t of copies. For n >= t records let X_i have t copies
    of x_i and n - t copies of a fixed element. Let epsilon be the privacy loss of one replaced
    record. The densities f_i of an output differ by a factor of at most R = e^(epsilon t). Shifted
    and scaled, the output is an estimate v of the answer a_i of x_i. Let r_i = ||v - a_i||. The
    error for X_i is t r_i / n. If for a uniform prior on i, the mean of r_i^p is at least lambda^p
    for every v, an error alpha is excluded for all n with t <= n < t lambda / alpha. Scale the f_i
    to numbers between 1 and R. It is enough that sum_i f_i (r_i^p - lambda^p) >= 0 for every v. Let
    any two answers be at least gamma apart, and let distances be computed again from the answers.

    Separated elements: lambda^p = min((gamma / sqrt 2)^p, G M / (M - 1 + R)), where the norm is the
    root mean square and G is the minimum over v of (r_1^p + ... + r_M^p) / M. The bound also holds
    for the largest error. Proof. The sum is at least

        sum_i (r_i^p - lambda^p) - (R - 1) sum_i max(0, lambda^p - r_i^p).

    The first sum is at least M (G - lambda^p). The second is over the s elements with r_i < lambda.
    The sum of their r_i^2 is at least that of the squared distances of their a_i from the mean of
    these, which is at least (s - 1) gamma^2 / 2 >= (s - 1) lambda^2. So for p = 2 the second sum is
    at most lambda^2. For p = 1 it is at most lambda, because lambda - r <= (lambda^2 - r^2) /
    lambda.

    Distant elements: let d_ij = ||a_i - a_j||, and D the least over i of the mean of d_ij over the
    other M - 1 elements j. lambda is the smaller of gamma / 2 and

        D (M - 1) / (M - 1 + R)  for p = 1,     D (R (M - 1))^(1/2) / (M - 1 + R)  for p = 2.

    Proof. Since r_i + r_j >= d_ij >= 2 lambda, at most one r_i is below lambda. Let r = r_i be this
    distance. The other terms are at least 0, because r_j >= d_ij - r >= lambda. So the sum is at
    least

        R (r^p - lambda^p) + sum over j other than i of ((d_ij - r)^p - lambda^p)
          >= R r^p + (M - 1) (D - r)^p - (M - 1 + R) lambda^p,

    because (d - r)^p is convex and increasing in d >= r, and D >= gamma > r. For p = 1 this is
    linear in r, and at least 0 at r = 0 and r = lambda. For p = 2 the least value of R r^2 + (M -
    1) (D - r)^2 over all r is R (M - 1) D^2 / (M - 1 + R).
    """
    family = rung.part("family")
    epsilon = problem.pure_epsilon(family.word("type"))
    listing = answers_of(family)
    answers = listing.answers
    require(len(answers) >= 2, "there are fewer than 2 elements")
    # A difference of two answers is computed, squared and added.
    family.work.spend(4 * answers.size * len(answers) + 50_000 * len(answers))
    copies, scale = rung.whole("copies"), rung.number("scale")
    require(epsilon * copies <= MOST_LOG_RATIO, "epsilon of all copies is above 600")
    proved = _separated if family.word("type") == "separated elements" else _distant
    least = copies * proved(rung, answers, math.exp(epsilon * copies), problem.measure)
    require_at_most(scale, least * (1 - 1e-12), "scale")
    first, last = excluded_records(rung, copies, scale / problem.alpha)
    verified = (
        f"{len(answers)} elements with answers at least {rounded_down(rung.number('separation'))} "
        f"apart, and the average error of guessing which of them a data set of {copies} "
        f"cop{'ies' if copies > 1 else 'y'} holds"
    )
    return listing.verified(verified), first, last


def _separated(rung: Part, answers: Vectors, ratio: float, measure: Measure) -> float:
    """The checked number lambda for elements with answers far apart in root mean square."""
    count, k = answers.shape
    separation = _separation(rung, answers, EUCLIDEAN)
    centre, spread = rung.part("family").array("centre", axes=1), rung.number("spread")
    require(len(centre) == k, f"centre does not have {k} entries")
    # Rounding errors of `_spread` are relative to the largest distance from the centre.
    steps = answers - centre
    slack = _rounding(answers) * float(EUCLIDEAN(steps).max()) ** measure.moment
    power = max(0.0, _spread(steps, separation, measure.moment) - slack)
    require_at_most(spread, power ** (1 / measure.moment) * (1 - UNIT), "spread")
    share = count / (count - 1 + ratio)
    return min(separation / math.sqrt(2), spread * float(share ** (1 / measure.moment)))


def _distant(rung: Part, answers: Vectors, ratio: float, measure: Measure) -> float:
    """The checked number lambda for elements with answers far apart in the norm of `measure`."""
    others, distance = len(answers) - 1, rung.number("distance")
    separation = _separation(rung, answers, measure.norm)
    found = min(float(measure.norm(answers - answer).sum()) for answer in answers) / others
    require_at_most(distance, found * (1 - _rounding(answers)), "distance")
    # The formulas for the two moments differ only in `share`.
    share = others if measure.moment == 1 else math.sqrt(others) * math.sqrt(ratio)
    return min(separation / 2, distance * share / (others + ratio))


def _separation(rung: Part, answers: Vectors, norm: Norm) -> float:
    """The separation that the rung states, after a check that no two answers are closer."""
    closest = min(float(norm(answers[:i] - answers[i]).min()) for i in range(1, len(answers)))
    separation = rung.number("separation")
    require_at_most(separation, closest * (1 - _rounding(answers)), "separation")
    return separation


def _rounding(answers: Vectors) -> float:
    """Bound on the relative error of a distance, or mean distance, of exact answers."""
    # The answers are exact: they are the floats of the file, or whole numbers. So each entry of a
    # difference has a relative error of one rounding, however close the two answers are. Squares
    # that underflow do not matter, because no distance below `LEAST` is accepted.
    operations: int = 2 * answers.shape[1] + len(answers) + 8
    return operations * UNIT


def _spread(steps: Vectors, separation: float, moment: int) -> float:
    """A lower bound on the mean over i of ||a_i - v||^p, for every v and p = `moment`."""
    if moment == 2:
        return float(((steps - steps.mean(axis=0)) ** 2).mean(axis=1).mean())
    # Let z_i, the `directions`, be vectors of length at most 1 that add up to 0. For any v, the
    # mean of ||a_i - v|| is at least the mean of <z_i, a_i - v>, which equals the mean of <z_i, a_i
    # - c> for any centre c. A best v is in the convex hull of the answers, so no farther from c
    # than the farthest answer. Therefore rounding errors, also of the sum of the z_i, are relative
    # to this distance.
    lengths = EUCLIDEAN(steps)
    directions = steps / np.maximum(lengths, separation / 2)[:, None]
    directions = directions - directions.mean(axis=0)
    longest = max(1.0, float(EUCLIDEAN(directions).max()))
    return float((directions * steps).mean(axis=1).mean()) / longest
