"""Tables with cells that a schema declares impossible: how they are measured, and their noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._typing import BoolArray, FloatArray
from geomdp.data.possible import JoinedColumn
from geomdp.geometry.projection import Estimate
from geomdp.mechanisms import AdditiveMechanism, Mechanism, Prediction, PredictionKind, Release
from geomdp.mechanisms.additive_noise.base import NEGLIGIBLE, additive_within
from geomdp.noise.base import mean_estimate
from geomdp.noise.differences import DRAWS
from geomdp.noise.knorm import MappedNoise, Part
from geomdp.noise.tails import public_blocks

#: Largest dimension of noise whose covariance matrix (128 MB) is computed.
MAX_COVARIANCE = 1 << 12
#: Number of draws of larger noise that are in memory at a time.
BLOCK_DRAWS = 16
#: Largest number of cells of the tables of joined columns, from which those asked are summed.
MAX_MODEL = 1 << 22


@dataclass(frozen=True)
class Table:
    """A table: each cell is a query, in row-major order of the labelled levels."""

    columns: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]

    @property
    def n_cells(self) -> int:
        return math.prod(map(len, self.levels))


@dataclass(frozen=True, eq=False)
class JoinedTables:
    """Tables of joined columns, and `matrix` (live, cells), which maps their cells to those asked.

    Only the cells asked that are possible have a row. Cells of asked tables have their weights.
    """

    columns: dict[str, JoinedColumn]
    tables: tuple[Table, ...]
    matrix: sp.csr_array


def spread(cells: FloatArray, live: BoolArray) -> FloatArray:
    """All cells (..., m) from those that are `live`; the others are 0."""
    found = np.zeros((*cells.shape[:-1], len(live)))
    found[..., live] = cells
    return found


def codes_of(
    columns: Mapping[str, JoinedColumn], levels: Mapping[str, npt.NDArray[np.intp]]
) -> dict[str, npt.NDArray[np.intp]]:
    """The codes (n,) of columns, from the levels (n,) of joined columns."""
    return {
        name: codes
        for joined, own in levels.items()
        for name, codes in zip(columns[joined].names, columns[joined].codes[own].T, strict=True)
    }


@dataclass(frozen=True, eq=False)
class Possible:
    """The possible cells of tables: which they are, how they are measured, and when they agree.

    Cells (m,) that are not `live` are impossible. The tables `measured` have few cells. Those of
    `model` have no impossible cells, so the cells asked agree if they follow from a distribution.
    """

    live: BoolArray
    measured: JoinedTables
    model: JoinedTables
    _last: PossibleNoise | None = None

    def noise(self, mechanism: AdditiveMechanism) -> PossibleNoise:
        """The noise on the possible cells; that of the last mechanism is kept."""
        if self._last is None or self._last.mechanism is not mechanism:
            object.__setattr__(self, "_last", PossibleNoise(self.measured.matrix, mechanism))
        assert self._last is not None
        return self._last

    def spread(self, cells: FloatArray) -> FloatArray:
        """All cells (m,) from those that are possible."""
        return spread(cells, self.live)

    def refined(self, tables: Sequence[Table]) -> Iterator[tuple[slice, slice, sp.csr_array]]:
        """The slices of two tables, and the map to the cells of the first from the second.

        The first is one of `tables` whose cells are sums of those of another one on all possible
        records; the second is the (first) table of most possible cells for which this holds.

        Yields
        ------
        (slice, slice, csr_array)
            The places of the coarser table, of the finer one, and the sums.
        """
        ends = [*itertools.accumulate((table.n_cells for table in tables), initial=0)]
        rows, cells = np.flatnonzero(self.live), self.model.matrix.shape[1]
        found = self.model.matrix.tocoo()
        inside = sp.csr_array(
            (np.ones(found.nnz), (rows[found.row], found.col)), (len(self.live), cells)
        )
        parts = [inside[a:b] for a, b in itertools.pairwise(ends)]
        sizes = [int(self.live[a:b].sum()) for a, b in itertools.pairwise(ends)]
        for t, part in enumerate(parts):
            best, sums = t, part
            for f, other in enumerate(parts):
                apart = part.indices.min() != other.indices.min()  # other tables of the model
                if apart or (sizes[f], -f) <= (sizes[best], -best):
                    continue
                both = part @ other.T
                if both.nnz == sizes[f]:  # each of its cells meets one of the first table
                    best, sums = f, both.sign()
            if best != t:
                yield slice(ends[t], ends[t + 1]), slice(ends[best], ends[best + 1]), sums

    def spread_release(self, found: Release) -> Release:
        """The release of all cells (m,), of which the impossible ones are 0."""
        noisy = None if found.noisy is None else self.spread(found.noisy)
        return replace(found, answers=self.spread(found.answers), noisy=noisy)

    def released(self, found: Release, mechanism: Mechanism) -> Release:
        """The release of the possible cells, from that of the measured tables."""
        matrix = self.measured.matrix
        # Other mechanisms have noisy answers to other queries, such as random combinations.
        noisy = None if additive_within(mechanism) is None else found.noisy
        return replace(
            found,
            answers=matrix @ found.answers,
            noisy=None if noisy is None else matrix @ noisy,
            predicted_rmse=self.predicted(mechanism),
            workload=None,
        )

    def predicted(self, mechanism: Mechanism) -> Prediction:
        """Root mean squared error over the possible cells, before tables are made consistent."""
        additive = additive_within(mechanism)
        if additive is not None:
            return self.noise(additive).predicted
        inner, matrix = mechanism.predicted_rmse, self.measured.matrix
        # The largest singular value of a matrix is at most the root of its largest sums.
        square = matrix.sum(axis=0).max() * matrix.sum(axis=1).max()
        stretch = math.sqrt(square * matrix.shape[1] / matrix.shape[0])
        source = f"{inner.source}; times at most {stretch:.4g} for sums of cells"
        value, kind = inner.value * stretch, PredictionKind.UPPER_BOUND
        return Prediction(value, kind, source, inner.stderr * stretch)


class PossibleNoise:
    """The noise of a mechanism on the possible cells, whose law is public."""

    def __init__(self, matrix: sp.csr_array, mechanism: AdditiveMechanism) -> None:
        self.mechanism = mechanism
        #: The noise on sums.
        self.law = MappedNoise([Part(mechanism.noise, matrix)])
        #: Largest change of each possible cell by rounding, as `answer_rounding`.
        self.rounding = np.asarray(matrix @ mechanism.answer_rounding)

    @cached_property
    def _squares(self) -> tuple[FloatArray, Estimate]:
        """The variances of `law`, exact or from public draws, and their sum."""
        law = self.law
        if self.mechanism.noise.dimension <= MAX_COVARIANCE:
            return law.variances(), law.second_moment()
        total, lengths = np.zeros(law.dimension), []
        for block in public_blocks(law.sample, DRAWS, BLOCK_DRAWS):
            total += (block**2).sum(axis=0)
            lengths.append((block**2).sum(axis=1))
        return total / DRAWS, mean_estimate(np.concatenate(lengths))

    @property
    def deviations(self) -> FloatArray:
        """Standard deviation of each possible cell, a mean."""
        return np.asarray(np.sqrt(self._squares[0]) / self.mechanism.n)

    @property
    def predicted(self) -> Prediction:
        """As `AdditiveMechanism.predicted_rmse`, over the possible cells."""
        moment, count = self._squares[1], len(self.rounding)
        value = math.sqrt(moment.value / count) / self.mechanism.n
        stderr = value * moment.stderr / (2 * moment.value)
        rounding = math.sqrt(float(np.mean(self.rounding**2)))
        total = math.hypot(value, rounding)
        exact = total <= value * (1 + NEGLIGIBLE)
        kind = PredictionKind.EXACT if exact else PredictionKind.UPPER_BOUND
        source = "E||Z||^2 of the noise on the possible cells (JL-L14)"
        if moment.samples:
            source += f"; E||Z||^2 from {moment.samples} public draws"
        return Prediction(value if exact else total, kind, source, stderr)


def joined_tables(
    asked: Sequence[Table],
    weights: Sequence[float],
    joined: Sequence[JoinedColumn],
    *,
    weighted: bool,
) -> tuple[JoinedTables, list[float]]:
    """Tables of joined columns from which those asked follow, and their weights: 1, or if
    `weighted` the largest weight of a table that follows from them.
    """
    by_name = {column.name: column for column in joined}
    holder = {name: i for i, column in enumerate(joined) for name in column.names}
    sets = [tuple(sorted({holder[name] for name in table.columns})) for table in asked]
    kept = sorted(s for s in {*sets} if not any({*s} < {*other} for other in sets))
    sizes = [len(column.codes) for column in joined]
    cells = [math.prod(sizes[i] for i in own) for own in kept]
    if sum(cells) > MAX_MODEL:
        raise ValueError(
            "tables of columns that impossible combinations link must have at most 2^22 possible "
            f"cells together, got {sum(cells)}: declare less, or ask fewer of these columns"
        )
    starts = [*itertools.accumulate(cells, initial=0)]
    # Each table asked is summed from the smallest table that has its columns.
    sources = [min((k for k, s in enumerate(kept) if {*s} >= {*own}), key=cells.__getitem__)
               for own in sets]  # fmt: skip
    largest = [1.0] * len(kept)
    if weighted:
        used = [*zip(sources, weights, strict=True)]
        largest = [max(w for source, w in used if source == k) for k in range(len(kept))]
    rows, columns, values, first = [], [], [], 0
    for table, weight, source in zip(asked, weights, sources, strict=True):
        own = kept[source]
        grid = np.indices([sizes[i] for i in own]).reshape(len(own), -1)
        levels = {joined[i].name: found for i, found in zip(own, grid, strict=True)}
        codes = codes_of(by_name, levels)
        shape = [len(levels) for levels in table.levels]
        rows.append(first + np.ravel_multi_index([codes[name] for name in table.columns], shape))
        columns.append(starts[source] + np.arange(cells[source]))
        values.append(np.full(cells[source], weight / largest[source]))
        first += table.n_cells
    entries = (np.concatenate(values), (np.concatenate(rows), np.concatenate(columns)))
    matrix = sp.csr_array(entries, shape=(first, starts[-1]))
    tables = tuple(
        Table(
            tuple(joined[i].name for i in own),
            tuple(tuple(map(str, joined[i].labels)) for i in own),
        )
        for own in kept
    )
    return JoinedTables(by_name, tables, matrix), largest
