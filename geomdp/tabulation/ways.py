"""Columns that tables ask by prefixes, by ranges or by their mean, and the numbers of each group.

A level for missing or other values has no place in the order and no number: it is asked by itself.
Means and quantiles are computed from a release alone.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from geomdp._typing import FloatArray, IntArray
from geomdp._validation import probability
from geomdp.data.columns import MISSING, OTHER, as_text
from geomdp.workloads import Explicit, Prefixes, Ranges, Workload, explicit_answers

if TYPE_CHECKING:
    import pandas as pd


class Way(NamedTuple):
    """How to ask a column, such as age[prefixes]: `rows` are the queries on the levels in order,
    `cells` their texts. A label is the column's name, `join` and such a text.
    """

    name: str
    join: str
    rows: Callable[[Sequence[str]], Workload]
    cells: Callable[[Sequence[str]], list[str]]

    def queries(self, levels: Sequence[str]) -> Workload:
        """The queries on all levels; first those on the levels in order."""
        inside = self.rows(ordered(levels))
        apart = len(levels) - len(ordered(levels))
        if not apart:
            return inside
        return Explicit(scipy.linalg.block_diag(explicit_answers(inside).T, np.eye(apart)))

    def texts(self, name: str, levels: Sequence[str]) -> tuple[list[str], list[str]]:
        """The label of each query, and its text without the name of the column."""
        cells, apart = self.cells(ordered(levels)), list(levels[len(ordered(levels)) :])
        labels = [f"{name}{self.join}{a}" for a in cells] + [f"{name}={a}" for a in apart]
        return labels, cells + apart


def ordered(levels: Sequence[str]) -> Sequence[str]:
    """The levels without those for other and for missing values, which come last."""
    inside = len(levels)
    while inside > 1 and levels[inside - 1] in (OTHER, MISSING):
        inside -= 1
    return levels[:inside]


#: A number as the label of a level, or a bin, or a truth value.
_NUMBER = r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
_LEVEL = re.compile(rf"{_NUMBER}|[\[(]{_NUMBER}, {_NUMBER}[)\]]")
_TRUTH = {"false": "0", "true": "1"}


def spans(levels: Sequence[str]) -> FloatArray | None:
    """The least and the largest number (l, 2) of each level; None if a level has no number."""
    found = [_LEVEL.fullmatch(_TRUTH.get(level, level)) for level in levels]
    bounds = [(own[1] or own[2], own[1] or own[3]) for own in found if own]
    return np.array(bounds, dtype=np.float64) if len(bounds) == len(levels) else None


#: Scaled values are multiples of 1 / GRID.
GRID = 2**23


def scale_of(levels: Sequence[str]) -> tuple[FloatArray, float, float, FloatArray]:
    """The u from -1 to 1 (l,), m and h for levels m + h u, and the largest distance of a value from
    them, the least and the largest value (3,); ``ValueError`` if levels have no different numbers.
    """
    found = spans(levels)
    if found is None:
        said = ", ".join(levels[:3])
        raise ValueError(f"[mean] needs numbers, bins or a boolean as levels, got {said}")
    centres = found.mean(axis=1)
    half = float(np.ptp(centres)) / 2
    if not 0 < half < np.inf:
        raise ValueError(f"[mean] needs 2 or more finite numbers that differ, got {levels[0]}")
    middle = float(centres.min() + half)
    # On this grid the shares (1 - u) / 2 and (1 + u) / 2 of a record have exact sums.
    scaled = np.clip(np.rint((centres - middle) / half * GRID) / GRID, -1, 1)
    apart = np.abs(found - (middle + half * scaled)[:, None]).max()
    return scaled, middle, half, np.array([apart, found.min(), found.max()])


def _mean_rows(levels: Sequence[str]) -> Workload:
    # Scaled to [-1, 1], a total changes by as much as a count, and least for this middle.
    return Explicit(np.stack([np.ones(len(levels)), scale_of(levels)[0]]))


def _pairs(levels: Sequence[str]) -> list[str]:
    pairs = itertools.combinations_with_replacement(levels, 2)  # in the order of `Ranges`
    return [f"{low} to {high}" for low, high in pairs]


COUNT, TOTAL = "[count]", "[scaled total]"
PREFIXES = Way(
    "prefixes", "", lambda own: Prefixes(len(own)), lambda own: [f"<={level}" for level in own]
)
RANGES = Way("ranges", "=", lambda own: Ranges(len(own)), _pairs)
MEAN = Way("mean", "", _mean_rows, lambda _: [COUNT, TOTAL])
WAYS = (PREFIXES, RANGES, MEAN)


# What a release says of each group, which is a cell of the other columns of a table.

#: Columns of `Tabulation.means` and of `Tabulation.quantiles`, besides those of the groups.
MEANS = (
    *("column", "count", "count_low", "count_high", "total", "total_low", "total_high"),
    *("mean", "low", "high"),
)
QUANTILES = ("column", "quantile", "level", "low", "high")
#: Prefixes are shares in float64. A rounding error must not move a quantile to the next level.
ROUNDING = 1e-12


#: A column asked in some way: the labels of the groups with the column's name, its levels in
#: order, and the query numbers (q, groups).
Groups: TypeAlias = tuple[dict[str, npt.NDArray[Any]], Sequence[str], IntArray]


def asked_by(
    way: Way,
    ways: Mapping[str, Way],
    levels: Mapping[str, Sequence[str]],
    names: Mapping[str, Sequence[str | None]],
) -> Iterator[Groups]:
    """Each column of `ways` that is asked by `way`, from its `levels` and `Tabulation.names`."""
    texts = {name: np.array(own, dtype=object) for name, own in names.items() if name != "table"}
    for name in (name for name, own in ways.items() if own is way):
        inside = ordered(levels[name])
        places = np.array([np.flatnonzero(texts[name] == cell) for cell in way.cells(inside)])
        for other, own in ways.items():
            if own is MEAN and other != name:  # totals of other columns are no groups
                places = places[:, texts[other][places[0]] != TOTAL]
        labels = {each: texts[each][places[0]] for each in texts}
        labels[name] = np.full(places.shape[1], None)
        yield labels | {"column": np.full(places.shape[1], name, dtype=object)}, inside, places


def _joined(parts: Sequence[Mapping[str, npt.NDArray[Any]]]) -> pd.DataFrame:
    """The rows of all parts, without columns that are in no group."""
    import pandas as pd

    frame = pd.concat([pd.DataFrame(part) for part in parts], ignore_index=True)
    kept = [name for name in frame if name in MEANS + QUANTILES or frame[name].notna().any()]
    return frame[kept]


def means_of(
    asked: Iterable[Groups], low: FloatArray, high: FloatArray, sums: FloatArray
) -> pd.DataFrame:
    """The data frame of `Tabulation.means`, from intervals (m,) of all sums of answers."""
    parts = []
    for labels, levels, places in asked:
        least, most = low[places], high[places]
        least[0], most[0] = np.maximum(least[0], 0), np.maximum(most[0], 0)
        numbers = numbers_of(levels, least, most, np.clip(sums[places], least, most))
        parts.append(labels | dict(zip(MEANS[1:], numbers, strict=True)))
    return _joined(parts)


def numbers_of(
    levels: Sequence[str], least: FloatArray, most: FloatArray, answers: FloatArray
) -> FloatArray:
    """The columns `MEANS` from the count on (9, groups), from counts and scaled totals (2, groups),
    which lie between `least` and `most`: over this box, the ratio has its extremes at corners.
    """
    _, middle, half, (apart, least_value, most_value) = scale_of(levels)
    (c, t), (c_low, t_low), (c_high, t_high) = answers, least, most
    with np.errstate(divide="ignore", invalid="ignore"):
        lowest, highest = np.where(t_low > 0, c_high, c_low), np.where(t_high > 0, c_low, c_high)
        ratios = np.stack([t / c, t_low / lowest, t_high / highest])
    wider = apart * np.array([[0], [-1], [1]])
    means = np.clip(middle + half * ratios + wider, least_value, most_value)
    means[:, c_low <= 0] = np.nan  # the group may be empty
    ends = np.sort([middle * c_low, middle * c_high], axis=0)
    totals = np.stack([middle * c, *ends]) + half * np.stack([t, t_low, t_high]) + wider * c_high
    floor = np.minimum(least_value * c_low, least_value * c_high)
    totals = np.clip(totals, floor, np.maximum(most_value * c_low, most_value * c_high))
    return np.stack([c, c_low, c_high, *totals, *means])


def quantiles_of(
    asked: Iterable[Groups],
    probabilities: Sequence[float],
    lows: FloatArray,
    highs: FloatArray,
    answers: FloatArray,
) -> pd.DataFrame:
    """The data frame of `Tabulation.quantiles`, from intervals (m,) that hold together."""
    wanted = [probability(q, "probabilities") for q in probabilities]
    parts = []
    for labels, levels, places in asked:
        bounds = spans(levels)
        ends = [(a, a) for a in levels] if bounds is None else bounds.tolist()
        texts = []
        for own in places.T:  # true prefixes increase, so bounds hold for other levels, too
            least = np.maximum.accumulate(lows[own])
            most = np.minimum.accumulate(highs[own][::-1])[::-1]
            fitted = np.asarray(scipy.optimize.isotonic_regression(answers[own]).x)
            for q in wanted:
                low, level, high = quantile_of(q, fitted, least, most)
                known = least[-1] > 0  # else the group may be empty
                row = levels[level], as_text(ends[low][0]), as_text(ends[high][1])
                texts.append(row if known else (None,) * 3)
        repeated = {key: np.repeat(own, len(wanted)) for key, own in labels.items()}
        repeated["quantile"] = np.tile(wanted, places.shape[1])
        columns = np.array(texts, dtype=object).reshape(-1, 3).T
        parts.append(repeated | dict(zip(QUANTILES[2:], columns, strict=True)))
    return _joined(parts)


def quantile_of(
    q: float, fitted: FloatArray, least: FloatArray, most: FloatArray
) -> tuple[int, int, int]:
    """The first level up to which there are at least q times the records of the group, between the
    least and the largest it can be; the last prefixes count the whole group.
    """
    low = int(np.argmax(most + ROUNDING >= q * least[-1]))
    certain = least >= q * most[-1]
    high = int(np.argmax(certain)) if certain.any() else len(least) - 1
    level = int(np.argmax(fitted + ROUNDING >= q * fitted[-1]))
    return low, min(max(level, low), high), high
