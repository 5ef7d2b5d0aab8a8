"""Tables with cells that a schema declares impossible: how they are measured, and their noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from geomdp._numerics.linalg import spread
from geomdp._typing import BoolArray, FloatArray
from geomdp.data.possible import JoinedColumn
from geomdp.data.schema import Table, places_of
from geomdp.geometry.projection import Estimate
from geomdp.mechanisms import AdditiveMechanism, Mechanism, Prediction, PredictionKind, Release
from geomdp.mechanisms.additive_noise.base import additive_within, predicted_error
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


@dataclass(frozen=True, eq=False)
class JoinedTables:
    """Tables of joined columns; `matrix` maps their cells to the possible cells asked, weighted."""

    columns: dict[str, JoinedColumn]
    tables: tuple[Table, ...]
    matrix: sp.csr_array


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
    """The possible cells of tables: cells (m,) that are not `live` are impossible, `measured` has
    few cells, and `model` none that are impossible, so cells of its distributions agree.
    """

    live: BoolArray
    measured: JoinedTables
    model: JoinedTables
    _last: PossibleNoise | None = None

    def noise(self, mechanism: AdditiveMechanism) -> PossibleNoise:
        """The noise on the possible cells; that of the last mechanism is kept."""
        found = self._last
        if found is None or found.mechanism is not mechanism:
            found = PossibleNoise(self.measured.matrix, mechanism)
            object.__setattr__(self, "_last", found)
        return found

    def spread(self, cells: FloatArray) -> FloatArray:
        """All cells (m,) from those that are possible."""
        return spread(cells, self.live)

    def refined(self, tables: Sequence[Table]) -> list[tuple[slice, slice, sp.csr_array]]:
        """For each of `tables` that is a sum of another one on all possible records: its place, the
        place of the (first) other one of most possible cells, and the sums.
        """
        places = places_of(tables)
        rows, cells = np.flatnonzero(self.live), self.model.matrix.shape[1]
        found = self.model.matrix.tocoo()
        inside = sp.csr_array(
            (np.ones(found.nnz), (rows[found.row], found.col)), (len(self.live), cells)
        )
        parts = [inside[place] for place in places]
        sizes = [int(self.live[place].sum()) for place in places]
        pairs = []
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
                pairs.append((places[t], places[best], sums))
        return pairs

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
        moment, noise = self._squares[1], "the noise on the possible cells"
        return predicted_error(moment, self.mechanism.n, self.rounding, noise)


def joined_tables(
    asked: Sequence[Table],
    weights: Sequence[float],
    joined: Sequence[JoinedColumn],
    *,
    weighted: bool,
) -> tuple[JoinedTables, list[float]]:
    """Tables of joined columns from which those asked follow, and their weights: 1, or, if
    `weighted`, the largest weight of a table that follows.
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
